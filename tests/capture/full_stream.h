// A driver that stands still inside cuLaunchKernel for one stream until told, as where the queue of a stream
// is full; beside it other streams, and another context.
#pragma once
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "tests/capture/scripted_driver.h"

inline const CUstream kFull = reinterpret_cast<CUstream>(0x71000);
inline const CUstream kNone = reinterpret_cast<CUstream>(0x70000);
inline const CUstream kOther = reinterpret_cast<CUstream>(0x72000);
inline const CUstream kFar = reinterpret_cast<CUstream>(0x73000); // of another context
inline const CUstream kApart =
    reinterpret_cast<CUstream>(0x74000); // made with CU_STREAM_NON_BLOCKING

// The gate of the full stream. Static: the driver's functions have no argument for it.
inline std::atomic<CUstream> full{kNone};
inline std::atomic<CUstream> watched{kNone};
inline std::atomic<int> seen{0};     // launches into it
inline std::atomic<int> pause_ms{0}; // of each launch into the full stream
inline std::atomic<int> work_ms{
    0}; // processor time of each, on a processor that is not given willingly
inline std::atomic<bool> inside{false}, open_gate{false};
inline std::atomic<bool> spins{false}; // while it waits for the gate
inline ag_fn slots[AG_ROWS];
inline __typeof__(&cuLaunchKernel) launch_now;

inline void Doze()
{
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// This thread to the first processor that it may use.
inline void Pin()
{
    cpu_set_t all, one;
    int first = 0;
    CPU_ZERO(&one);
    EXPECT_EQ(0, pthread_getaffinity_np(pthread_self(), sizeof all, &all));
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &all))
        first++;
    CPU_SET(first, &one);
    EXPECT_EQ(0, pthread_setaffinity_np(pthread_self(), sizeof one, &one));
}

// A thread that gets what others leave of a processor.
inline void WorkWhereItIsBusy(int ms)
{
    const sched_param none = {};
    Pin();
    EXPECT_EQ(0, pthread_setschedparam(pthread_self(), SCHED_IDLE, &none));
    const clock_t until = clock_t(ms) * 1000000;
    timespec t, began;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while ((t.tv_sec - began.tv_sec) * 1000000000 + t.tv_nsec - began.tv_nsec < until);
}

inline CUresult BlockingLaunch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
                               void **extra)
{
    seen += s == watched;
    if (s == full) {
        inside = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
        if (work_ms)
            WorkWhereItIsBusy(work_ms);
        while (!open_gate)
            if (!spins)
                Doze();
    }
    return launch_now(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}

// Two contexts, where a test asks for them. The hooks of a thread see one current.
inline const CUcontext kHere = reinterpret_cast<CUcontext>(0x1000);
inline const CUcontext kThere = reinterpret_cast<CUcontext>(0x2000);
inline thread_local CUcontext current; // NULL: kHere
inline thread_local CUcontext pushed_over;
inline CUresult CurrentOfThread(CUcontext *c)
{
    *c = current ? current : kHere;
    return CUDA_SUCCESS;
}

inline CUresult PushContext(CUcontext c)
{
    pushed_over = std::exchange(current, c);
    return CUDA_SUCCESS;
}

inline CUresult PopContext(CUcontext *c)
{
    *c = std::exchange(current, pushed_over);
    return CUDA_SUCCESS;
}

inline CUresult ContextOfStream(CUstream s, CUcontext *c)
{
    *c = s == kFar ? kThere : kHere;
    return CUDA_SUCCESS;
}

inline CUresult FlagsOfStream(CUstream s, unsigned *flags)
{
    *flags = s == kApart ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
}

class FullStream : public ::testing::Test
{
  protected:
    FullStream() : f(d.Function("f", {8}))
    {
        full = watched = kNone;
        seen = 0;
        inside = open_gate = spins = false;
        pause_ms = work_ms = 0;
        std::copy(d.table.slot, d.table.slot + AG_ROWS, slots);
        launch_now = ag_real(&d.table, cuLaunchKernel);
        slots[AG_ROW_cuLaunchKernel] = reinterpret_cast<ag_fn>(BlockingLaunch);
        slots[AG_ROW_cuStreamGetFlags] = reinterpret_cast<ag_fn>(FlagsOfStream);
        d.table.slot = slots;
        current = kHere;
    }
    void UseTwoContexts()
    {
        slots[AG_ROW_cuCtxGetCurrent] = reinterpret_cast<ag_fn>(CurrentOfThread);
        slots[AG_ROW_cuCtxPushCurrent_v2] = reinterpret_cast<ag_fn>(PushContext);
        slots[AG_ROW_cuCtxPopCurrent_v2] = reinterpret_cast<ag_fn>(PopContext);
        slots[AG_ROW_cuStreamGetCtx] = reinterpret_cast<ag_fn>(ContextOfStream);
    }
    ~FullStream() override
    {
        Open();
    }
    void Loop(CUstream s, int rounds)
    {
        for (int k = 0; k < rounds; k++) {
            for (int i = 0; i < 12; i++)
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, s));
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }
    // Returns how many launches it took.
    uint64_t BeSteppedAsideFrom(CUstream s)
    {
        uint64_t n = 0;
        for (unsigned grid = 1; n < 100000 && !d.counters.asides.load(); n++)
            d.Launch8(f, n, 1 + ((grid = grid * 1103515245u + 12345u) >> 16) % 256, s);
        EXPECT_GT(d.counters.asides.load(), 0u);
        return n;
    }
    // Three launches of a learned loop are held for `s`; a thread that submits them blocks in the first.
    void FillUp(CUstream s)
    {
        Loop(s, 8);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, s));
        before = d.executed.size();
        full = s ? s : CU_STREAM_LEGACY;
        blocked = std::thread(
            [this] { ag_drain(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAlloc_v2); });
        while (!inside)
            Doze();
    }
    void Open()
    {
        open_gate = true;
        if (blocked.joinable())
            blocked.join();
    }
    // Whether the call returns while the queue is full. The gate is open afterwards.
    bool ReturnsMeanwhile(const std::function<void()> &call, int ms = 3000)
    {
        std::promise<void> done;
        std::future<void> result = done.get_future();
        std::thread caller([&] {
            call();
            done.set_value();
        });
        const bool returned =
            result.wait_for(std::chrono::milliseconds(ms)) == std::future_status::ready;
        Open();
        caller.join();
        return returned;
    }
    void Drain(CUstream about)
    {
        ag_drain(&d.cap, AG_DRAIN_ASYNC, about, AG_ROW_cuEventQuery);
    }

    ScriptedDriver d;
    CUfunction f;
    std::thread blocked;
    size_t before = 0;
};
