/* Random programs: whatever they do, each verdict can be obeyed (Player judges it) and the state
 * stays sound. */
#include "tests/policy/player.h"

#include <random>

namespace
{

class Property : public testing::TestWithParam<uint32_t>
{
  protected:
    Property() : random(GetParam())
    {
    }
    uint32_t Below(uint32_t n)
    {
        return uint32_t(random() % n);
    }
    ag_policy_limits RandomLimits()
    {
        uint32_t most = 4 + Below(60);
        return {.first_segment = 1 + Below(8),
                .min_segment = 1 + Below(most),
                .max_segment = most,
                .min_graph = 1 + Below(5),
                .min_seen = 1 + Below(4),
                .max_nodes = 1 + (Below(2) ? Below(300) : Below(5000))};
    }
    /* A few phrases; the program says them in random order, now and then with a slip. */
    std::vector<Ops> Phrases()
    {
        std::vector<Ops> phrases(1 + Below(6));
        for (Ops &phrase : phrases)
            for (uint32_t i = 0, n = 1 + Below(90); i < n; i++)
                phrase.push_back(1 + Below(Below(2) ? 4 : 200));
        return phrases;
    }
    void Event(Player &p)
    {
        switch (Below(12)) {
        case 0:
        case 1:
            p.Drain(AG_DRAIN_SYNC);
            break;
        case 2:
        case 3:
            p.Drain(AG_DRAIN_ASYNC);
            break;
        case 4:
        case 5:
            p.Drain(AG_DRAIN_BREAK);
            break;
        case 6:
            p.Spoil();
            break;
        case 7:
        case 8:
            p.FinishBuild(Below(5) != 0);
            break;
        case 9:
            p.build_later = Below(2);
            p.build_works = Below(6) != 0;
            break;
        case 10:
            if (!p.GraphSegments().empty())
                p.Drop(p.GraphSegments()[Below(uint32_t(p.GraphSegments().size()))]);
            break;
        case 11:
            if (Below(30) == 0)
                p.Forget();
            break;
        }
    }
    /* Programs that are never replayed would prove nothing. */
    static void TearDownTestSuite()
    {
        EXPECT_GT(replayed, ops / 10);
        EXPECT_GT(verdicts, 0u);
        EXPECT_TRUE(seen[AG_PACE_PROMPT] && seen[AG_PACE_EAGER] && seen[AG_PACE_PATIENT]);
    }
    /* How far a clock goes on between two looks: steadily, anyhow, not at all, with leaps. */
    uint64_t Tick(uint32_t kind)
    {
        const uint64_t any = random();
        return kind == 0   ? 1000
               : kind == 1 ? any
               : kind == 2 ? 0
                           : (any % 4 ? any % 100000 : any << 28);
    }
    std::mt19937 random;
    static uint64_t replayed, ops, verdicts;
    static bool seen[AG_PACE_KINDS];
};

uint64_t Property::replayed, Property::ops, Property::verdicts;
bool Property::seen[AG_PACE_KINDS];

TEST_P(Property, VerdictsCanBeObeyedWhateverTheProgramDoes)
{
    ag_policy_limits limits = RandomLimits();
    Player p(limits);
    uint32_t rarely = 20 + Below(300);
    for (int part = 0; part < 3; part++) {
        std::vector<Ops> phrases = Phrases();
        for (int i = 0; i < 300; i++) {
            for (uint32_t sig : phrases[Below(2) ? 0 : Below(uint32_t(phrases.size()))]) {
                p.Op(Below(500) ? sig : 1 + Below(1000));
                if (Below(rarely) == 0)
                    Event(p);
            }
            if (i % 10 == 0)
                p.ExpectSound();
            ASSERT_LE(p.Look().nodes, limits.max_nodes);
            if (HasFailure())
                FAIL() << "seed " << GetParam();
        }
    }
    p.ExpectSound();
    replayed += p.replayed;
    ops += p.total;
}

TEST_P(Property, TheSameInputsGiveTheSameVerdicts)
{
    ag_policy_limits limits = RandomLimits();
    Player p(limits), q(limits);
    std::vector<Ops> phrases = Phrases();
    for (int i = 0; i < 200; i++) {
        for (uint32_t sig : phrases[Below(uint32_t(phrases.size()))]) {
            ag_verdict v = p.Op(sig), w = q.Op(sig);
            ASSERT_TRUE(v.hold == w.hold && v.cut == w.cut && v.use == w.use &&
                        v.segment == w.segment && v.graph == w.graph);
        }
        ag_drain_kind kind = ag_drain_kind(Below(3));
        p.Drain(kind);
        q.Drain(kind);
    }
}

/* The pace turns at any moment, by a clock that says anything; the host is slow at times. */
TEST_P(Property, ThePaceMayTurnAtAnyMoment)
{
    ag_policy_limits limits = RandomLimits();
    limits.pace = AG_PACE_KINDS;
    limits.max_nodes += 200;
    Player p(limits);
    uint64_t now = 1;
    const uint32_t clock = Below(4);
    p.clock = [&] { return now += Tick(clock); };
    for (int part = 0; part < 6; part++) {
        std::vector<Ops> phrases = Phrases();
        const uint32_t rarely = 50 + Below(2000);
        const uint32_t broken = Below(2) ? 1 + Below(2 * limits.max_segment) : 0;
        for (int i = 0; i < 600 && !HasFailure(); i++) {
            for (uint32_t sig : phrases[Below(4) ? 0 : Below(uint32_t(phrases.size()))]) {
                p.Op(Below(2000) ? sig : 1 + Below(1000));
                if (broken && Below(broken) == 0)
                    p.Drain(AG_DRAIN_BREAK);
                if (Below(rarely) == 0)
                    Event(p);
            }
            p.ExpectSound();
        }
        if (HasFailure())
            FAIL() << "seed " << GetParam();
    }
    verdicts += p.verdicts;
    for (int k = 0; k < AG_PACE_KINDS; k++)
        seen[k] |= ag_policy_pace(p.policy()) == k;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Property, testing::Range(1u, 121u));

} // namespace
