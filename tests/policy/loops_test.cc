/* Loops of many periods: after learning, few segments, all of them replayed. */
#include "tests/policy/player.h"

namespace
{

enum Shape { FREE, SYNC, DRAINED, SYNC_DRAINED };

struct Loop {
    uint32_t period;
    Shape shape;
};

/* One iteration. With drains: two, that are no synchronisation, inside of it. */
void Iterate(Player &p, const Loop &loop, const Ops &body)
{
    bool drains = loop.shape == DRAINED || loop.shape == SYNC_DRAINED;
    for (uint32_t i = 0; i < body.size(); i++) {
        p.Op(body[i]);
        if (drains && (i + 1 == body.size() * 5 / 12 || i + 1 == body.size() * 3 / 4))
            p.Drain(AG_DRAIN_ASYNC);
    }
    if (loop.shape == SYNC || loop.shape == SYNC_DRAINED)
        p.Drain(AG_DRAIN_SYNC);
}

uint32_t Times(uint32_t period)
{
    return period < 100 ? 40000 / period : 60;
}

class Loops : public testing::TestWithParam<Loop>
{
};

TEST_P(Loops, AreReplayedWhollyInFewSegments)
{
    Loop loop = GetParam();
    Player p;
    Ops body = Body(loop.period);
    for (uint32_t i = 0; i < Times(loop.period); i++)
        Iterate(p, loop, body);
    p.ExpectSound();
    p.Mark();
    uint64_t built = p.built_nodes;
    for (uint32_t i = 0; i < Times(loop.period); i++)
        Iterate(p, loop, body);
    EXPECT_GT(p.Share(), 0.999);
    EXPECT_EQ(p.built_nodes, built) << "still learning";
    EXPECT_LE(p.built_nodes, loop.period + 20) << "an op of the loop is in more than one graph";
    /* growing takes 7 segments, two drains add two, and each 256 ops one */
    EXPECT_LE(p.distinct.size(), 10 + loop.period / 256);
    EXPECT_EQ(p.Look().asides, 0u);
    p.ExpectSound();
}

const Loop loops[] = {
    {1, FREE},      {2, FREE},    {3, FREE},      {20, FREE},      {20, SYNC},
    {20, DRAINED},  {120, FREE},  {120, SYNC},    {120, DRAINED},  {125, SYNC},
    {250, FREE},    {250, SYNC},  {250, DRAINED}, {256, FREE},     {257, FREE},
    {257, DRAINED}, {400, FREE},  {400, SYNC},    {400, DRAINED},  {400, SYNC_DRAINED},
    {513, FREE},    {2000, FREE}, {2000, SYNC},   {2000, DRAINED}, {2000, SYNC_DRAINED},
    {5000, FREE},
};

std::string Name(const testing::TestParamInfo<Loop> &info)
{
    const char *names[] = {"free", "sync", "drained", "syncdrained"};
    return names[info.param.shape] + std::to_string(info.param.period);
}

INSTANTIATE_TEST_SUITE_P(OfEachPeriod, Loops, testing::ValuesIn(loops), Name);

/* A free loop no longer than a graph settles on one segment an iteration. */
TEST(Loop, ShorterThanAGraphIsOneGraphAnIteration)
{
    for (uint32_t period : {16u, 20u, 120u, 250u, 256u}) {
        Player p;
        for (uint32_t i = 0; i < 60; i++)
            p.Run(Body(period));
        p.Mark();
        for (uint32_t i = 0; i < 60; i++)
            p.Run(Body(period));
        EXPECT_EQ(p.distinct.size(), 1u) << period;
        EXPECT_EQ(p.distinct.begin()->size(), period);
    }
}

TEST(Loop, IsReplayedFromTheFourthOrFifthIteration)
{
    Player p;
    for (int i = 0; i < 3; i++) {
        p.Run(Body(120));
        p.Drain(AG_DRAIN_SYNC);
    }
    p.Mark();
    p.Run(Body(120));
    p.Drain(AG_DRAIN_SYNC);
    EXPECT_EQ(p.Share(), 1.0);
}

/* One more op at a third of every seventh iteration: only the segment that it falls in is another.
 * */
TEST(Loop, WithAnOpInsertedEverySeventhIterationIsLearnedInBothForms)
{
    for (uint32_t period : {2u, 20u, 120u, 250u, 256u, 400u, 2000u}) {
        for (bool sync : {false, true}) {
            if (sync && period < 4)
                continue; /* shorter than a graph may be */
            Player p;
            auto iterate = [&](uint32_t times) {
                for (uint32_t it = 0; it < times; it++) {
                    for (uint32_t sig : Body(period)) {
                        p.Op(sig);
                        if (it % 7 == 6 && sig == period / 3)
                            p.Op(1000000);
                    }
                    if (sync)
                        p.Drain(AG_DRAIN_SYNC);
                }
            };
            iterate(period < 100 ? 1400 : 140);
            p.Mark();
            iterate(70);
            EXPECT_GT(p.Share(), 0.99) << period << (sync ? " sync" : "");
            EXPECT_LE(p.distinct.size(), 20 + 2 * period / 256) << period;
            p.ExpectSound();
        }
    }
}

/* The inserted op is new each time: it can never be in a graph, and its iteration alone suffers. */
TEST(Loop, AnOpThatNeverComesBackCostsOnlyTheSegmentItFallsIn)
{
    Player p;
    uint32_t news = 1000000;
    auto iterate = [&](uint32_t times) {
        for (uint32_t it = 0; it < times; it++) {
            p.Run(Body(120));
            if (it % 7 == 6)
                p.Op(news++);
        }
    };
    iterate(70);
    p.Mark();
    iterate(70);
    EXPECT_GT(p.Share(), 6.0 / 7 - 0.02);
}

TEST(Loop, RealignsAfterOneInsertedOp)
{
    Player p;
    for (int i = 0; i < 20; i++)
        p.Run(Body(120));
    uint64_t built = p.built_nodes;
    p.Run(Body(60));
    p.Op(777777);
    p.Run(Body(60, 61));
    p.Run(Body(120)); /* at worst the rest of the segment */
    p.Mark();
    for (int i = 0; i < 20; i++)
        p.Run(Body(120));
    EXPECT_GT(p.Share(), 0.94);
    EXPECT_EQ(p.built_nodes, built) << "nothing had to be learned anew";
}

/* The same 12 layers of 30 ops, then a tail of 200: layers are shared. */
TEST(Loop, WithRepeatedLayersNeedsFewerGraphNodesThanItHasOps)
{
    Player p;
    Ops body;
    for (int layer = 0; layer < 12; layer++)
        for (uint32_t sig : Body(30))
            body.push_back(sig);
    for (uint32_t sig : Body(200, 1000))
        body.push_back(sig);
    for (int i = 0; i < 40; i++)
        p.Run(body);
    p.Mark();
    for (int i = 0; i < 20; i++)
        p.Run(body);
    EXPECT_GT(p.Share(), 0.99);
    EXPECT_LT(p.built_nodes, 3 * body.size());
}

TEST(Loop, ThatChangesToAnotherAndBackIsStillKnown)
{
    Player p;
    auto phase = [&](uint32_t period, uint32_t from) {
        for (uint32_t i = 0; i < 6000 / period; i++)
            p.Run(Body(period, from));
    };
    for (int i = 0; i < 4; i++) {
        phase(120, 1);
        phase(75, 10000);
        phase(600, 20000);
    }
    p.Mark();
    phase(120, 1);
    phase(75, 10000);
    phase(600, 20000);
    EXPECT_GT(p.Share(), 0.9);
    p.ExpectSound();
}

/* Beyond 64 segments of 256 ops no anchor holds; the content of the stream does. */
TEST(Loop, LongerThanAnAnchorLastsSettlesOnItsContent)
{
    Player p;
    for (int i = 0; i < 60; i++)
        p.Run(Body(20000));
    p.Mark();
    for (int i = 0; i < 3; i++)
        p.Run(Body(20000));
    EXPECT_GT(p.Share(), 0.99);
    EXPECT_LT(p.distinct.size(), 200u);
}

/* A tail of one op after the last growing segment would stay eager for ever. */
TEST(Loop, LeavesNoTailTooShortForAGraph)
{
    for (uint32_t period : {5u, 13u, 29u, 61u, 62u, 63u, 125u, 253u, 509u, 510u}) {
        Player p;
        for (int i = 0; i < 60; i++) {
            p.Run(Body(period));
            p.Drain(AG_DRAIN_SYNC);
        }
        p.Mark();
        for (int i = 0; i < 10; i++) {
            p.Run(Body(period));
            p.Drain(AG_DRAIN_SYNC);
        }
        EXPECT_EQ(p.Share(), 1.0) << period;
    }
}

} // namespace
