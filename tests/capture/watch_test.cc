// C4 where the submission of a silent program's held work blocks: who looks after other contexts.
#include "tests/capture/full_stream.h"

#include <mutex>

namespace
{
// C4: the threads that submit what a silent program left, really started.
class Watched : public FullStream
{
  protected:
    Watched()
    {
        UseTwoContexts();
        d.liveness.bound_us = 50000;
        may_start = 100;
        d.cap.start_thread = [](void *(*body)(void *), void *argument) {
            std::lock_guard<std::mutex> lock(threads_mutex);
            if (!may_start)
                return false;
            may_start--;
            threads.emplace_back(body, argument);
            return true;
        };
    }
    ~Watched() override
    {
        Open();
        current = kHere;
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        d.cap.off = true;
        ag_liveness_rouse(&d.liveness);
        for (std::thread &t : threads)
            t.join();
        threads.clear();
    }
    // Launches of a learned loop are held, and the thread that submits them blocks.
    void BlockTheWatch(CUcontext ctx, CUstream s)
    {
        current = ctx;
        Loop(s, 8);
        full = s;
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, s));
        while (!inside)
            Doze();
    }
    // One launch is held; the program goes silent. Is it submitted within a second?
    bool IsSubmitted(CUcontext ctx, CUstream s)
    {
        current = ctx;
        watched = s;
        seen = 0;
        const uint64_t flushes = d.counters.liveness_flushes;
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 1, s));
        for (int i = 0; i < 100 && !seen; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(flushes + 1, d.counters.liveness_flushes) << "it was held";
        return seen == 1;
    }

    static std::mutex threads_mutex;
    static std::vector<std::thread> threads;
    static int may_start;
};

std::mutex Watched::threads_mutex;
std::vector<std::thread> Watched::threads;
int Watched::may_start;

TEST_F(Watched, C4WhatAnotherContextHoldsIsSubmittedWhileTheLivenessThreadIsStuck)
{
    current = kThere;
    Loop(kFar, 8);
    BlockTheWatch(kHere, kFull);
    EXPECT_TRUE(IsSubmitted(kThere, kFar));
    EXPECT_EQ(1u, d.counters.liveness_reliefs.load());
    EXPECT_EQ(2u, threads.size());
}

TEST_F(Watched, C4AContextThatComesWhileTheLivenessThreadIsStuckIsLookedAfter)
{
    BlockTheWatch(kHere, kFull);
    EXPECT_EQ(1u, threads.size()) << "one context needs no more";
    current = kThere;
    Loop(kFar, 8);
    EXPECT_TRUE(IsSubmitted(kThere, kFar));
    EXPECT_EQ(2u, threads.size());
}

TEST_F(Watched, C4TheThreadThatWasStuckTakesItsTurnAgain)
{
    current = kThere;
    Loop(kFar, 8);
    BlockTheWatch(kHere, kFull);
    ASSERT_TRUE(IsSubmitted(kThere, kFar));
    Open();
    full = kNone;
    current = kHere;
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    EXPECT_TRUE(IsSubmitted(kHere, kFull)) << "by the thread that was spare";
    inside = open_gate = false;
    BlockTheWatch(kThere, kFar);
    EXPECT_TRUE(IsSubmitted(kHere, kFull));
    EXPECT_EQ(2u, d.counters.liveness_reliefs.load());
    EXPECT_EQ(2u, threads.size());
}

// C6: without a second thread it is as it was, and the statistics say so.
TEST_F(Watched, C4AThreadThatCannotBeStartedIsCounted)
{
    may_start = 1;
    current = kThere;
    Loop(kFar, 8);
    BlockTheWatch(kHere, kFull);
    current = kThere;
    EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 1, kFar));
    Open();
    EXPECT_EQ(1u, d.counters.liveness_alone.load()) << "and tried once";
    EXPECT_EQ(0u, d.counters.liveness_reliefs.load());
}
} // namespace
