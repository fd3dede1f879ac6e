// A stream that policy has stepped aside from, beside one that is held for.
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>

namespace
{
const CUstream kAside = reinterpret_cast<CUstream>(0x72000);

class Aside : public ::testing::Test
{
  protected:
    Aside() : f(d.Function("f", {8}))
    {
        uint32_t random = 1;
        for (int i = 0; i < 100000 && !d.counters.asides.load(); i++) {
            random = random * 1103515245u + 12345u;
            d.Launch8(f, i, 1 + (random >> 16) % 256, kAside);
        }
    }
    void Loop(int rounds)
    {
        for (int k = 0; k < rounds; k++) {
            for (int i = 0; i < 12; i++)
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i));
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }

    ScriptedDriver d;
    CUfunction f;
};

// C6: its launches are no segment, however many there are: nothing would ever end it.
TEST_F(Aside, LaunchesAfterAHeldOneOfAnotherStreamDoNotFillTheLog)
{
    ASSERT_EQ(1u, d.counters.asides.load());
    Loop(8);
    EXPECT_GT(d.Count("graph"), 0);
    EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0));
    EXPECT_EQ(1u, ag_open_logs.load()) << "held";
    const size_t before = d.executed.size();
    for (size_t i = 1; i <= 1000 && !HasFailure(); i++) {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 7, kAside));
        EXPECT_EQ(before + 1 + i, d.executed.size());
        EXPECT_EQ(kAside, d.executed.back().stream);
        EXPECT_EQ(0u, ag_open_logs.load());
        d.CheckInvariants();
    }
}

// C5: ... and they count as launches of the pause.
TEST_F(Aside, ThePauseEndsForLaunchesBetweenThoseOfAnotherStreamToo)
{
    Loop(8);
    for (int k = 0; k < 20000; k++) {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0));
        for (int i = 0; i < 12; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1 + i, kAside));
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        d.executed.resize(0);
        if (d.counters.launches_replayed.load() > 2000)
            break;
    }
    EXPECT_GT(d.counters.launches_replayed.load(), 2000u);
}

// What passes is counted in batches; when holding ends nothing is left uncounted.
TEST_F(Aside, EveryLaunchThatPassesIsCountedInTheEnd)
{
    for (int i = 0; i < 777; i++)
        d.Launch8(f, i, 7, kAside);
    EXPECT_NE(d.executed.size(), ag_count_read(&d.counters.launches_seen));
    ag_capture_settle(&d.cap);
    EXPECT_EQ(d.executed.size(), ag_count_read(&d.counters.launches_seen));
    EXPECT_LE(777u, ag_count_read(&d.counters.eager[AG_REFUSAL_ASIDE]));
}

TEST_F(Aside, EveryLaunchThatPassedIsCountedWhereItsStreamEndsBefore)
{
    for (int i = 0; i < 777; i++)
        d.Launch8(f, i, 7, kAside);
    ag_retire_stream(&d.cap, kAside, AG_ROW_cuStreamDestroy_v2);
    EXPECT_EQ(d.executed.size(), ag_count_read(&d.counters.launches_seen));
}
} // namespace
