// A host that is slower than the liveness bound: what it makes within the bound is what can be held.
#include "policy/decide.h"

#include "gtest/gtest.h"

namespace
{
struct Outcome {
    uint64_t replayed = 0, replays = 0, breaks = 0;
};

// A loop of `period` ops; a segment is broken when it has held more than `most` ops, give or take one, and at each
// `pause`-th op. `most` of the first `slow` ops is 6. The outcome is that of the second half.
Outcome Loop(uint32_t period, uint32_t most, uint32_t ops, uint32_t slow = 0,
             uint32_t pause = UINT32_MAX)
{
    const ag_policy_limits limits = {4, 64, 256, 2, 3, 65536};
    ag_policy *p = ag_policy_create(&limits);
    Outcome out;
    uint32_t next = 1, held = 0, noise = 1;
    auto take = [&](const ag_verdict &v, bool count) {
        if (v.use == AG_USE_BUILD)
            ag_policy_built(p, v.segment, next++);
        if (v.use == AG_USE_REPLAY && count)
            out.replays++;
    };
    for (uint32_t i = 0; i < ops; i++) {
        const bool count = i > ops / 2;
        noise = noise * 1103515245u + 12345u;
        const ag_verdict v = ag_policy_op(p, 1 + i % period);
        held = v.hold ? held + 1 : 0;
        if (v.cut) {
            out.replayed += v.use == AG_USE_REPLAY && count ? held : 0;
            take(v, count);
            held = 0;
        } else if (held > (i < slow ? 6 : most) + (noise >> 16) % 3 - 1 ||
                   (held && i % pause == pause - 1)) {
            out.breaks += count;
            take(ag_policy_drain(p, AG_DRAIN_BREAK), count);
            held = 0;
        }
        if (i % 1024 == 0) {
            EXPECT_TRUE(ag_policy_check(p, nullptr));
        }
    }
    ag_policy_destroy(p);
    return out;
}

// C4, C5: segments become as long as the host can make them in time, not ever shorter.
TEST(SlowHost, SegmentsFitIntoTheBoundAndStayThatLong)
{
    for (uint32_t period : {40u, 120u, 1000u}) {
        for (uint32_t most : {6u, 14u, 40u}) {
            const Outcome o = Loop(period, most, 200000);
            EXPECT_GT(o.replayed, 90000u) << period << " " << most;
            EXPECT_LT(o.breaks * 20, o.replays) << period << " " << most;
            EXPECT_GT(o.replayed / o.replays, most / 4) << period << " " << most;
        }
    }
}

// The bound is not met: nothing changes.
TEST(SlowHost, AFastHostKeepsItsLongSegments)
{
    const Outcome o = Loop(120, 1000, 200000);
    EXPECT_EQ(0u, o.breaks);
    EXPECT_GE(o.replayed / o.replays, 100u);
}

// C5: every process is off its processor now and then. After a slow start that is no reason for short segments, and
// neither are the places where they ended while they were short.
TEST(SlowHost, OneThatBecameFastHasSegmentsAsLongAsIfItHadNotBeenSlow)
{
    const uint32_t ops = 8000000;
    for (uint32_t period : {7u, 120u}) {
        for (uint32_t pause : {5003u, 20011u, 100003u}) {
            const Outcome fast = Loop(period, 1000, ops, 0, pause);
            const Outcome o = Loop(period, 1000, ops, 50000, pause);
            EXPECT_GE(o.replayed / o.replays + 2, fast.replayed / fast.replays)
                << period << " " << pause;
            EXPECT_GT(o.replayed, 3800000u) << period << " " << pause;
        }
    }
}
} // namespace
