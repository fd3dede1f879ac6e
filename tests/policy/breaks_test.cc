/* Irregular ends: the liveness bound, another stream's op, an error. */
#include "tests/policy/player.h"

#include <random>

namespace
{

/* The loop of 120 ops with a break after op `at` (0: none). */
void Iterate(Player &p, uint32_t at, uint32_t second = 0)
{
    for (uint32_t sig : Body(120)) {
        p.Op(sig);
        if (sig == at || sig == second)
            p.Drain(AG_DRAIN_BREAK);
    }
}

TEST(Break, AtTheSameOpEachIterationBecomesAnEnd)
{
    Player p;
    for (int i = 0; i < 20; i++)
        Iterate(p, 47);
    p.Mark();
    for (int i = 0; i < 10; i++)
        Iterate(p, 47);
    EXPECT_EQ(p.Share(), 1.0);
    ag_verdict v{};
    for (uint32_t sig : Body(47))
        v = p.Op(sig);
    EXPECT_EQ(v.use, AG_USE_REPLAY) << "the end comes by itself, before the break";
}

TEST(Break, RegularInsideOfAGrowingSegmentEndsItTheNextTime)
{
    Player p;
    auto stretch = [&](bool breaks) {
        std::vector<uint32_t> ends;
        for (uint32_t sig : Body(60)) {
            if (p.Op(sig).cut)
                ends.push_back(sig);
            if (sig == 20 && breaks)
                p.Drain(AG_DRAIN_BREAK);
        }
        p.Drain(AG_DRAIN_SYNC);
        return ends;
    };
    EXPECT_EQ(stretch(false), (std::vector<uint32_t>{4, 12, 28, 60}));
    for (int i = 0; i < 6; i++)
        stretch(true);
    EXPECT_EQ(stretch(false), (std::vector<uint32_t>{4, 12, 20, 36}));
    p.Mark();
    stretch(true);
    EXPECT_EQ(p.Share(), 1.0);
}

TEST(Break, SeveralRegularOnesAnIterationAreLearnedTogether)
{
    Player p;
    for (int i = 0; i < 12; i++)
        Iterate(p, 31, 77);
    p.Mark();
    for (int i = 0; i < 10; i++)
        Iterate(p, 31, 77);
    EXPECT_EQ(p.Share(), 1.0);
}

TEST(Break, AtRandomOpsNeverGetsAGraphBuilt)
{
    Player p;
    std::mt19937 random(7);
    for (int i = 0; i < 20; i++)
        Iterate(p, 0);
    uint64_t asked = p.builds_asked;
    p.Mark();
    for (int i = 0; i < 3000; i++)
        Iterate(p, i % 20 ? 0 : 1 + random() % 120);
    EXPECT_LE(p.builds_asked - asked, 3u);
    EXPECT_GT(p.Share(), 0.88) << "a break costs the segment it falls in and no more";
    p.ExpectSound();
}

TEST(Break, DoesNotMoveTheEndsThatFollowIt)
{
    Player p;
    auto stretch = [&](uint32_t at) {
        for (uint32_t sig : Body(120)) {
            p.Op(sig);
            if (sig == at)
                p.Drain(AG_DRAIN_BREAK);
        }
        p.Drain(AG_DRAIN_SYNC);
    };
    for (int i = 0; i < 5; i++)
        stretch(0);
    p.Mark();
    stretch(20); /* inside the segment of ops 13 to 28 */
    EXPECT_EQ(p.replayed_since, 120u - 16u);
}

TEST(Break, ThatComesOnceIsNoSightingOfTheShortSegment)
{
    Player p;
    for (int i = 0; i < 2; i++) {
        p.Run(Body(30));
        p.Drain(AG_DRAIN_SYNC);
    }
    EXPECT_EQ(p.builds_asked, 0u);
    p.Run(Body(10));
    EXPECT_EQ(p.Drain(AG_DRAIN_BREAK).use, AG_USE_NONE);
    EXPECT_EQ(p.builds_asked, 1u) << "only the first four ops were seen for the third time";
}

TEST(Break, ReplaysWhatIsHeldWhenItEndsAtAKnownEnd)
{
    Player p;
    for (int i = 0; i < 3; i++) {
        p.Run(Body(10));
        p.Drain(AG_DRAIN_SYNC);
    }
    p.Run(Body(10));
    EXPECT_EQ(p.Drain(AG_DRAIN_BREAK).use, AG_USE_REPLAY);
}

} // namespace
