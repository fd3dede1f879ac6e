/* Single verdicts: what one op or drain is answered. */
#include "policy/decide.h"

#include "tests/policy/player.h"

namespace
{

/* Plays `ops` and a synchronising drain until the segments are built. */
void Learn(Player &p, const Ops &ops)
{
    for (int i = 0; i < 3; i++) {
        p.Run(ops);
        p.Drain(AG_DRAIN_SYNC);
    }
}

TEST(Decide, SendsWhatItHasNeverSeen)
{
    Player p;
    for (uint32_t sig : Body(300))
        EXPECT_FALSE(p.Op(sig).hold);
}

TEST(Decide, EndsSegmentsAfter4Then8Then16OpsAfterASynchronisation)
{
    Player p;
    p.Drain(AG_DRAIN_SYNC);
    std::vector<size_t> ends;
    Ops ops = Body(70);
    for (size_t i = 0; i < ops.size(); i++)
        if (p.Op(ops[i]).cut)
            ends.push_back(i + 1);
    EXPECT_EQ(ends, (std::vector<size_t>{4, 12, 28, 60}));
}

TEST(Decide, AsksForABuildAtTheThirdSighting)
{
    Player p;
    Ops ops = Body(4);
    for (int i = 1; i <= 3; i++) {
        p.Run({1, 2, 3});
        ag_verdict v = p.Op(4);
        EXPECT_TRUE(v.cut);
        EXPECT_EQ(v.use, i < 3 ? AG_USE_NONE : AG_USE_BUILD) << "sighting " << i;
        p.Drain(AG_DRAIN_SYNC);
    }
}

TEST(Decide, HoldsAndReplaysWhatWasBuilt)
{
    Player p;
    Learn(p, Body(4));
    for (uint32_t sig : {1, 2, 3}) {
        ag_verdict v = p.Op(sig);
        EXPECT_TRUE(v.hold);
        EXPECT_FALSE(v.cut);
    }
    ag_verdict v = p.Op(4);
    EXPECT_TRUE(v.hold);
    EXPECT_EQ(v.use, AG_USE_REPLAY);
    EXPECT_EQ(v.graph, 1u);
}

TEST(Decide, ReplaysAtADrainToo)
{
    Player p;
    Learn(p, Body(10)); /* 4, then 6 until the drain */
    p.Run(Body(10));
    ag_verdict v = p.Drain(AG_DRAIN_ASYNC);
    EXPECT_EQ(v.use, AG_USE_REPLAY);
    EXPECT_EQ(p.replayed, 10u);
}

TEST(Decide, LetsGoAtTheFirstOpThatLeavesThePath)
{
    Player p;
    Learn(p, Body(4));
    EXPECT_TRUE(p.Op(1).hold);
    EXPECT_TRUE(p.Op(2).hold);
    EXPECT_FALSE(p.Op(99).hold);
    EXPECT_FALSE(p.Op(4).hold);
}

TEST(Decide, DoesNotReplayAnotherSegmentWithTheSameFirstOps)
{
    Player p;
    Learn(p, Body(4));
    p.Run({1, 2, 3});
    EXPECT_NE(p.Op(5).use, AG_USE_REPLAY);
}

TEST(Decide, DoesNotReplayAPrefix)
{
    Player p;
    Learn(p, Body(4));
    p.Run({1, 2, 3});
    EXPECT_EQ(p.Drain(AG_DRAIN_ASYNC).use, AG_USE_NONE);
}

TEST(Decide, HoldsNothingOfASpoiledSegmentAndReplaysTheNext)
{
    Player p;
    Learn(p, Body(12)); /* 4 and 8 */
    p.Op(1);
    p.Spoil();
    EXPECT_FALSE(p.Op(2).hold);
    EXPECT_FALSE(p.Op(3).hold);
    EXPECT_EQ(p.Op(4).use, AG_USE_NONE);
    EXPECT_TRUE(p.Op(5).hold);
}

TEST(Decide, SpoilingAnEmptySegmentSpoilsTheOneThatBegins)
{
    Player p;
    Learn(p, Body(4));
    p.Spoil();
    EXPECT_FALSE(p.Op(1).hold);
}

TEST(Decide, GuessesTheNextOpOfAKnownPath)
{
    Player p;
    EXPECT_EQ(ag_policy_expect(p.policy()), 0u);
    Learn(p, Body(4));
    for (uint32_t sig : Body(4)) {
        EXPECT_EQ(ag_policy_expect(p.policy()), sig);
        p.Op(sig);
    }
}

TEST(Decide, GuessesTheFirstOpOfTheSegmentThatFollowed)
{
    Player p;
    Ops ops = Body(120);
    Learn(p, ops);
    uint64_t before = p.predicted;
    Learn(p, ops);
    EXPECT_EQ(p.predicted - before, 3 * ops.size());
}

TEST(Decide, DoesNotAskAgainForWhatCannotBeBuilt)
{
    Player p;
    p.build_works = false;
    for (int i = 0; i < 50; i++) {
        p.Run(Body(4));
        p.Drain(AG_DRAIN_SYNC);
    }
    EXPECT_EQ(p.builds_asked, 1u);
    EXPECT_EQ(p.replayed, 0u);
}

TEST(Decide, DoesNotAskAgainWhileABuildIsUnderWay)
{
    Player p;
    p.build_later = true;
    for (int i = 0; i < 50; i++) {
        p.Run(Body(4));
        p.Drain(AG_DRAIN_SYNC);
    }
    EXPECT_EQ(p.builds_asked, 1u);
    p.FinishBuild(true);
    p.Run(Body(4));
    EXPECT_EQ(p.replayed, 4u);
}

TEST(Decide, RelearnsADroppedSegmentWithTwiceTheSightings)
{
    Player p;
    Learn(p, Body(4));
    uint32_t segment = p.GraphSegments().at(0);
    p.Drop(segment);
    for (int i = 1; i <= 6; i++) {
        ag_verdict v{};
        for (uint32_t sig : Body(4))
            v = p.Op(sig);
        EXPECT_EQ(v.use, i < 6 ? AG_USE_NONE : AG_USE_BUILD) << i;
        p.Drain(AG_DRAIN_SYNC);
    }
    p.Run(Body(4));
    EXPECT_EQ(p.replayed, 4u);
}

TEST(Decide, LetsGoWhenTheGraphItHeldForIsDropped)
{
    Player p;
    Learn(p, Body(4));
    EXPECT_TRUE(p.Op(1).hold);
    p.Drop(p.GraphSegments().at(0));
    p.ExpectSound();
    EXPECT_FALSE(p.Op(2).hold);
}

TEST(Decide, ABuildThatWasNotMadeForLackOfRoomIsAskedForAgain)
{
    Player p;
    uint32_t asked = 0, segment = 0;
    for (int i = 1; i <= 9; i++) {
        ag_verdict v{};
        for (uint32_t sig : Body(4))
            v = ag_policy_op(p.policy(), sig);
        ag_policy_drain(p.policy(), AG_DRAIN_SYNC);
        if (v.use != AG_USE_BUILD)
            continue;
        asked++;
        segment = v.segment;
        EXPECT_EQ(i, asked == 1 ? 3 : 9);
        ag_policy_dropped(p.policy(), v.segment);
    }
    EXPECT_EQ(asked, 2u);
    ag_policy_built(p.policy(), segment, 7); /* nobody waits for it any more */
    EXPECT_EQ(p.Look().graphs, 0u);
}

TEST(Decide, IgnoresOutcomesOfBuildsItDidNotAskFor)
{
    Player p;
    p.Run(Body(4));
    ag_policy_built(p.policy(), 4, 1);
    ag_policy_built(p.policy(), 0, 1);
    ag_policy_built(p.policy(), 999999, 1);
    ag_policy_failed(p.policy(), 999999);
    ag_policy_dropped(p.policy(), 999999);
    ag_policy_dropped(p.policy(), 0);
    EXPECT_EQ(p.Look().graphs, 0u);
    p.ExpectSound();
}

TEST(Decide, ForgetsEverythingAndLearnsAgain)
{
    Player p;
    Ops ops = Body(12);
    Learn(p, ops);
    p.Run({1, 2});
    p.Forget();
    p.ExpectSound();
    EXPECT_EQ(p.Look().nodes, 0u);
    EXPECT_FALSE(p.Op(3).hold);
    EXPECT_EQ(p.Op(4).segment, 0u) << "the segment under way goes on unremembered";
    p.Drain(AG_DRAIN_SYNC);
    uint64_t before = p.replayed;
    Learn(p, ops);
    p.Run(ops);
    p.Drain(AG_DRAIN_SYNC);
    EXPECT_EQ(p.replayed - before, ops.size());
}

TEST(Decide, ADrainWithoutOpsEndsNothingButStartsGrowingAnew)
{
    Player p;
    p.Run(Body(28)); /* 4, 8, 16 */
    EXPECT_EQ(p.Look().step, 3u);
    EXPECT_FALSE(p.Drain(AG_DRAIN_ASYNC).cut);
    EXPECT_EQ(p.Look().step, 3u);
    EXPECT_FALSE(p.Drain(AG_DRAIN_BREAK).cut);
    EXPECT_EQ(p.Look().step, 3u);
    EXPECT_FALSE(p.Drain(AG_DRAIN_SYNC).cut);
    EXPECT_EQ(p.Look().step, 0u);
}

TEST(Decide, NonsenseLimitsAreMadeSensible)
{
    for (uint32_t first : {0u, 1u, 5000u, UINT32_MAX}) {
        for (uint32_t most : {0u, 1u, 7u}) {
            Player p({.first_segment = first,
                      .min_segment = 0,
                      .max_segment = most < 7 ? most : 4096,
                      .min_graph = 0,
                      .min_seen = 0,
                      .max_nodes = 0});
            for (int i = 0; i < 200; i++)
                ag_policy_op(p.policy(), 1 + uint32_t(i) % 3);
            const char *why = "";
            EXPECT_TRUE(ag_policy_check(p.policy(), &why)) << why << first << " " << most;
        }
    }
}

TEST(Decide, CountsWhatItDid)
{
    Player p;
    Learn(p, Body(4));
    p.Run(Body(4));
    p.Drain(AG_DRAIN_SYNC);
    p.Run({1, 2, 99, 4});
    ag_policy_view v = p.Look();
    EXPECT_EQ(v.ops, 20u);
    EXPECT_EQ(v.held, 6u);
    EXPECT_EQ(v.replayed, 4u);
    EXPECT_EQ(v.built_ops, 4u);
    EXPECT_EQ(v.graphs, 1u);
}

} // namespace
