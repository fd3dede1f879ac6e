/* When graphs do not pay: builds are rationed, and the stream is left alone for longer and longer.
 * */
#include "policy/decide_state.h"
#include "policy/pay.h"

#include "tests/policy/player.h"

#include <random>

namespace
{

TEST(Pay, NeverRepeatingOpsAreLeftAloneAlmostAlways)
{
    Player p;
    uint32_t sig = 1;
    const uint32_t ops = 20000000;
    for (uint32_t i = 0; i < ops; i++)
        p.Op(sig++);
    EXPECT_EQ(p.builds_asked, 0u);
    EXPECT_LT(p.Look().ops, ops / 50) << "ops that were looked at";
    EXPECT_LE(p.Look().nodes, Limits().max_nodes);
    p.ExpectSound();
}

TEST(Pay, TheFirstPauseComesAfterAFewWindows)
{
    Player p;
    uint32_t sig = 1;
    while (!ag_policy_aside(p.policy()) && sig < 1000000)
        p.Op(sig++);
    EXPECT_LT(sig, 30000u);
    EXPECT_GT(sig, 20000u);
}

TEST(Pay, ALongLoopHasAFairChanceBeforeItIsLeftAlone)
{
    for (uint32_t period : {2000u, 5000u, 10000u}) {
        Player p;
        for (int i = 0; i < 8; i++)
            p.Run(Body(period));
        EXPECT_EQ(p.Look().asides, 0u) << period;
        p.Mark();
        p.Run(Body(period));
        EXPECT_GT(p.Share(), 0.5) << period;
    }
}

TEST(Pay, StretchesTooShortForAGraphAreLeftAlone)
{
    Player p;
    for (int i = 0; i < 200000; i++) {
        p.Run({1, 2, 3});
        p.Drain(AG_DRAIN_SYNC);
    }
    EXPECT_GT(p.Look().asides, 2u);
    EXPECT_LT(p.Look().ops, 300000u);
}

TEST(Pay, ALoopThatBeginsDuringAPauseIsFoundAtTheNextLook)
{
    Player p;
    uint32_t sig = 1000;
    for (uint32_t i = 0; i < 200000; i++)
        p.Op(sig++);
    for (uint32_t i = 0; i < 4000000 / 120; i++)
        p.Run(Body(120));
    p.Mark();
    for (uint32_t i = 0; i < 100; i++)
        p.Run(Body(120));
    EXPECT_GT(p.Share(), 0.99);
}

TEST(Pay, APauseEndsByItselfInAnyGranularity)
{
    Player p;
    uint32_t sig = 1;
    while (!ag_policy_aside(p.policy()))
        p.Op(sig++);
    ag_policy_passed(p.policy(), AG_PAY_ASIDE_FIRST - 1);
    EXPECT_TRUE(ag_policy_aside(p.policy()));
    ag_policy_passed(p.policy(), 1000);
    EXPECT_FALSE(ag_policy_aside(p.policy()));
    ag_policy_passed(p.policy(), 1000); /* nothing to end */
    p.ExpectSound();
}

TEST(Pay, APauseThatABreakBeganLeavesNothingOfTheTornStretch)
{
    ag_policy_limits limits = Limits();
    limits.first_segment = 200;
    Player p(limits);
    uint32_t sig = 1;
    while (!ag_policy_aside(p.policy())) {
        p.Op(sig++);
        p.Drain(sig % 100 ? AG_DRAIN_BREAK : AG_DRAIN_SYNC);
    }
    ASSERT_NE(sig % 100, 0u);
    ag_policy_passed(p.policy(), AG_PAY_ASIDE_FIRST);
    uint32_t ops = 1;
    while (!p.Op(sig++).cut)
        ops++;
    EXPECT_EQ(ops, 200u);
}

TEST(Pay, OpsShownDuringAPauseAreSentAndCounted)
{
    Player p;
    uint32_t sig = 1;
    while (!ag_policy_aside(p.policy()))
        p.Op(sig++);
    for (uint32_t i = 0; i < AG_PAY_ASIDE_FIRST; i++) {
        ASSERT_TRUE(ag_policy_aside(p.policy()));
        ag_verdict v = ag_policy_op(p.policy(), 1 + i % 4);
        ASSERT_FALSE(v.hold);
        ASSERT_FALSE(v.cut);
        ag_policy_drain(p.policy(), i % 2 ? AG_DRAIN_SYNC : AG_DRAIN_BREAK);
    }
    EXPECT_FALSE(ag_policy_aside(p.policy()));
    p.ExpectSound();
}

/* C5: in the middle of a trial. What passes meanwhile are ops of no block, so that the time of none
 * may count either. */
TEST(Pay, APauseInATrialLeavesItsTimeInNoBlock)
{
    ag_policy_limits limits = Limits();
    limits.pace = AG_PACE_KINDS;
    Player p(limits);
    uint64_t now = 1;
    p.clock = [&] { return now; };
    const ag_pace &pace = p.policy()->pace;
    auto iterate = [&] {
        for (uint32_t sig : Body(120)) {
            now += 1000;
            p.Op(sig);
        }
        p.Drain(AG_DRAIN_SYNC);
    };
    while (pace.now != AG_PACE_EAGER || !pace.skipped)
        iterate();
    iterate();
    ASSERT_GT(pace.ops, 0u) << "in the middle of a block";
    ag_pay_pause(&p.policy()->pay, 5000);
    ag_policy_passed(p.policy(), 5000);
    ASSERT_FALSE(ag_policy_aside(p.policy()));
    now += 1000000000;
    while (pace.phase == AG_PACE_TRIAL)
        iterate();
    ASSERT_EQ(1u, pace.round);
    EXPECT_NEAR(1000 * 16, pace.cost[AG_PACE_PROMPT][0], 160);
    EXPECT_NEAR(1000 * 16, pace.cost[AG_PACE_EAGER][0], 160);
    p.ExpectSound();
}

/* Ever new sequences, each of them five times: builds are paid from the grant, then from a trifle.
 * */
TEST(Pay, SequencesThatRecurAFewTimesOnlyGetAFewBuilds)
{
    Player p;
    uint32_t from = 1;
    const uint32_t rounds = 2000;
    for (uint32_t i = 0; i < rounds; i++, from += 100) {
        for (int k = 0; k < 5; k++) {
            p.Run(Body(100, from));
            p.Drain(AG_DRAIN_SYNC);
        }
    }
    /* 2 replays of 5 gain 6 us a node, as much as its build costs: neither gain nor loss */
    EXPECT_LT(p.built_nodes, 8192 + p.replayed / 4 + p.total / 256);
    p.ExpectSound();
}

/* Twice the sightings needed, never again: nothing is gained, so the grant is all that is lost. */
TEST(Pay, BuildsThatAreNeverReplayedEndWithTheGrant)
{
    Player p;
    uint32_t from = 1;
    for (uint32_t i = 0; i < 3000; i++, from += 100) {
        for (int k = 0; k < 3; k++) {
            p.Run(Body(100, from));
            p.Drain(AG_DRAIN_SYNC);
        }
    }
    EXPECT_EQ(p.replayed, 0u);
    EXPECT_GT(p.built_nodes, 4000u);
    EXPECT_LE(p.built_nodes, 8192 + p.total / 256);
    EXPECT_GT(p.Look().asides, 0u);
}

TEST(Pay, ManySequencesInTurnAreBuiltAsTheyEarnIt)
{
    Player p;
    auto round = [&] {
        for (uint32_t i = 0; i < 100; i++) {
            p.Run(Body(300, 1 + i * 1000));
            p.Drain(AG_DRAIN_SYNC);
        }
    };
    for (int i = 0; i < 30; i++)
        round();
    p.Mark();
    round();
    EXPECT_GT(p.Share(), 0.9);
}

TEST(Pay, AGoodWindowRestoresPatienceAndShortensTheNextPause)
{
    ag_pay y;
    ag_pay_init(&y);
    auto window = [&](bool known, bool replayed) {
        ag_pay_segment(&y, AG_PAY_WINDOW, known, replayed);
        return y.aside_left;
    };
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(window(false, false), 0u);
        EXPECT_EQ(window(false, true), 0u);
    }
    EXPECT_EQ(y.patience, AG_PAY_PATIENCE);
    while (!window(false, false))
        ;
    EXPECT_EQ(y.aside_left, AG_PAY_ASIDE_FIRST);
    EXPECT_TRUE(ag_pay_pass(&y, AG_PAY_ASIDE_FIRST));
    while (!window(false, false))
        ;
    EXPECT_EQ(y.aside_left, 2 * AG_PAY_ASIDE_FIRST);
    ag_pay_pass(&y, y.aside_left);
    window(true, true);
    while (!window(false, false))
        ;
    EXPECT_EQ(y.aside_left, AG_PAY_ASIDE_FIRST);
}

TEST(Pay, ChecksEachInvariant)
{
    const char *why = nullptr;
    ag_pay y;
    auto broken = [&](const char *name, auto change) {
        ag_pay_init(&y);
        ASSERT_TRUE(ag_pay_check(&y, &why));
        change();
        EXPECT_FALSE(ag_pay_check(&y, &why)) << name;
        EXPECT_EQ(std::string(why).substr(0, 2), name);
        EXPECT_FALSE(ag_pay_check(&y, nullptr));
    };
    broken("Y1", [&] { y.credit = -1; });
    broken("Y1", [&] { y.credit = AG_PAY_MOST + 1; });
    broken("Y2", [&] { y.replayed = 1; });
    broken("Y2", [&] { y.known = 1; });
    broken("Y3", [&] { y.patience = 0; });
    broken("Y3", [&] { y.patience = AG_PAY_PATIENCE + 1; });
}

} // namespace
