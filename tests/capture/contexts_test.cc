// Contexts that end while others are at work.
#include "tests/capture/scripted_driver.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

// C1: any context may have ended, so every log is forgotten; one that has ops is that of a living context, and whoever
// submits them makes it current.
TEST(Contexts, ALogWithOpsIsInUseWhoeverEndsAContextMeanwhile)
{
    ScriptedDriver d;
    const CUfunction f = d.Function("f", {8});
    d.may_build = false; // the script is for one thread
    ASSERT_EQ(CUDA_SUCCESS, d.Launch8(f, 0));
    struct ag_oplog *log = d.cap.logs[0];
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over)
            ag_retire_contexts(&d.cap, nullptr, AG_ROW_cuCtxDestroy_v2);
    });
    int open = 0, unused = 0;
    for (int i = 0; i < 300000; i++) {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i));
        ag_oplog_enter_current(log);
        open += log->n > 0;
        unused += log->n > 0 && !atomic_load(&log->used);
        ag_oplog_leave(log);
        d.executed.clear();
    }
    over = true;
    other.join();
    EXPECT_GT(open, 0);
    EXPECT_EQ(0, unused) << "of " << open;
}
