// A submission that blocks because the driver's queue of a stream is full, and what other threads may
// do meanwhile.
#include "capture/record.h"
#include "tests/capture/full_stream.h"

namespace
{
using Bypass = FullStream;

TEST_F(Bypass, C3ACallAboutAnotherStreamReturns)
{
    for (const bool on_a_processor : {false, true}) { // the driver waits asleep, or not
        spins = on_a_processor;
        FillUp(kFull);
        EXPECT_TRUE(ReturnsMeanwhile([&] { Drain(kOther); }));
        EXPECT_EQ(before + 3, d.executed.size());
        inside = open_gate = false;
        full = kNone;
    }
}

// NULL means another stream to the entry points with a default stream per thread.
TEST_F(Bypass, C3ALaunchIntoTheStreamOfAThreadReturns)
{
    slots[AG_ROW_cuLaunchKernel_ptsz] = reinterpret_cast<ag_fn>(launch_now);
    unsigned long long value = 1;
    void *params[] = {&value};
    ag_launch l = {};
    l.row = AG_ROW_cuLaunchKernel_ptsz;
    l.handle = f;
    l.config = {{1, 1, 1}, {32, 1, 1}, 0};
    l.params = params;
    FillUp(kFull);
    EXPECT_TRUE(ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, ag_submit_launch(&d.cap, &l)); }));
    EXPECT_EQ(before + 1 + 3, d.executed.size());
}

TEST_F(Bypass, C1ACallAboutTheSameStreamWaits)
{
    FillUp(kFull);
    EXPECT_FALSE(ReturnsMeanwhile([&] { Drain(kFull); }, 400));
    EXPECT_EQ(before + 3, d.executed.size());
}

// The legacy stream waits for work of blocking streams, and they for its.
TEST_F(Bypass, C1ACallAboutTheLegacyStreamWaits)
{
    for (const CUstream legacy : {CU_STREAM_LEGACY, static_cast<CUstream>(nullptr)}) {
        FillUp(kFull);
        EXPECT_FALSE(ReturnsMeanwhile([&] { Drain(legacy); }, 400));
        EXPECT_EQ(before + 3, d.executed.size());
        inside = open_gate = false;
        full = kNone;
    }
}

TEST_F(Bypass, C1ACallBehindTheLegacyStreamWaits)
{
    FillUp(nullptr);
    EXPECT_FALSE(ReturnsMeanwhile([&] { Drain(kOther); }, 400));
    EXPECT_EQ(before + 3, d.executed.size());
}

// An event stands for submitted work, whatever stream is full.
TEST_F(Bypass, C3AnEventIsAskedAboutBesideALegacyStreamThatIsFull)
{
    FillUp(nullptr);
    EXPECT_TRUE(ReturnsMeanwhile([&] { Drain(AG_ABOUT_NO_STREAM); }));
}

// C4: the thread that flushes what a silent program left has other contexts to look after.
TEST_F(Bypass, C4TheLivenessThreadDoesNotWaitForALegacyStreamThatIsFull)
{
    FillUp(nullptr);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        ag_look(&d.cap);
        ag_look(&d.cap);
        ag_look(&d.cap);
    }));
}

// The legacy stream waits for no stream made with CU_STREAM_NON_BLOCKING, and no such stream for it.
TEST_F(Bypass, C3ACallAboutANonBlockingStreamReturnsBesideALegacyStreamThatIsFull)
{
    Loop(kApart, 8);
    FillUp(nullptr);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        Drain(kApart);
        for (int i = 0; i < 12; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kApart));
    }));
    EXPECT_EQ(before + 12 + 3, d.executed.size());
}

TEST_F(Bypass, C3ACallAboutTheLegacyStreamReturnsBesideANonBlockingStreamThatIsFull)
{
    Loop(nullptr, 8);
    for (const CUstream legacy : {CU_STREAM_LEGACY, static_cast<CUstream>(nullptr)}) {
        FillUp(kApart);
        EXPECT_TRUE(ReturnsMeanwhile([&] {
            Drain(legacy);
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 7, legacy));
        }));
        EXPECT_EQ(before + 1 + 3, d.executed.size());
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        inside = open_gate = false;
        full = kNone;
    }
}

// ... and each context has a legacy stream of its own.
TEST_F(Bypass, C3CallsOfAnotherContextReturnBesideALegacyStreamThatIsFull)
{
    UseTwoContexts();
    current = kThere;
    Loop(kFar, 8);
    current = kHere;
    FillUp(nullptr);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        current = kThere;
        Drain(kFar);
        Drain(nullptr);
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 7, kFar));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 7));
    }));
    EXPECT_EQ(before + 2 + 3, d.executed.size());
}

TEST_F(Bypass, C1LaunchesIntoAnotherStreamGoOnInTheirOrder)
{
    Loop(kOther, 8);
    FillUp(kFull);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        for (int i = 0; i < 12; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 100 + i, 1, kOther));
    }));
    ASSERT_EQ(before + 12 + 3, d.executed.size());
    for (int i = 0; i < 12; i++) {
        EXPECT_EQ(kOther, d.executed[before + i].stream);
        char hex[4];
        snprintf(hex, sizeof hex, " %02x", 100 + i);
        EXPECT_NE(std::string::npos, d.executed[before + i].op.find(hex)) << i;
    }
    d.CheckInvariants();
}

// C5: where policy has stepped aside from the other stream, it is told of launches now and then.
TEST_F(Bypass, C3LaunchesIntoAStreamThatWasSteppedAsideFromGoOn)
{
    BeSteppedAsideFrom(kOther);
    FillUp(kFull);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        for (int i = 0; i < 3000; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kOther));
    }));
    EXPECT_EQ(before + 3000 + 3, d.executed.size());
}

// ... and where that falls into the moment in which somebody begins to submit, it is told later.
TEST_F(Bypass, C3ABatchOfLaunchesIsToldToPolicyWhenTheLockIsFree)
{
    uint64_t launches = BeSteppedAsideFrom(kOther) + 3000;
    struct ag_oplog *log = d.cap.logs[0];
    log->submitting = kFull;
    log->submission++;
    log->lock.state = 1;
    std::promise<void> done;
    auto holder = std::async(std::launch::async, [&, until = done.get_future()] {
        const bool in_time = until.wait_for(std::chrono::seconds(3)) == std::future_status::ready;
        log->submitting = nullptr;
        if (log->lock.state.exchange(0) == 2)
            ag_lock_wake(&log->lock);
        return in_time;
    });
    for (int i = 0; i < 3000; i++) // this thread: it knows the stream
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kOther));
    done.set_value();
    EXPECT_TRUE(holder.get());
    for (uint64_t i = 0; i < 1024 && d.counters.launches_seen.load() != launches; i++, launches++)
        d.Launch8(f, i, 1, kOther);
    EXPECT_EQ(launches, d.counters.launches_seen.load());
    EXPECT_EQ(launches, d.executed.size());
}

// C3, at the end of the process too: a thread that found no room does not keep another from leaving.
TEST_F(Bypass, C3HoldingEndsBesideAStreamThatIsFull)
{
    FillUp(kFull);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        ag_capture_wish_off(&d.cap, "a test");
        ag_capture_settle(&d.cap);
    }));
    EXPECT_FALSE(d.turned_off) << "bare calls would overtake what is being submitted";
    EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 3, 1, kFull));
    EXPECT_EQ(before + 4, d.executed.size());
    EXPECT_EQ(0u, ag_open_logs.load());
}

TEST_F(Bypass, C3GraphsAreWrittenDownBesideAStreamThatIsFull)
{
    Loop(kOther, 8);
    FillUp(kFull);
    snprintf(d.options.dump, sizeof d.options.dump, "%s", testing::TempDir().c_str());
    EXPECT_TRUE(ReturnsMeanwhile([&] { ag_record_all(&d.cap); }));
}

// C2: a held launch that fails beside calls that went on is told once, by a later call.
TEST_F(Bypass, C2AnErrorOfWhatWasLeftBehindIsToldOnce)
{
    FillUp(kFull);
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 2, CUDA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        Drain(kOther);
        EXPECT_EQ(CUDA_SUCCESS, ag_take_pending(&d.cap));
    }));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Synchronize());
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    EXPECT_EQ(before + 2, d.executed.size()) << "the first and the third of three";
}

// The error that keeps a launch from being made is told by that launch, whoever asks at the same moment.
std::function<void()> *at_second_question;
int questions;

CUresult CurrentWithCompany(CUcontext *c)
{
    *c = reinterpret_cast<CUcontext>(0x1000);
    if (at_second_question && ++questions == 2)
        std::thread(*std::exchange(at_second_question, nullptr)).join();
    return CUDA_SUCCESS;
}

TEST_F(Bypass, C1ALaunchThatAnswersSuccessWasMadeThoughAnotherThreadTookTheError)
{
    slots[AG_ROW_cuCtxGetCurrent] = reinterpret_cast<ag_fn>(CurrentWithCompany);
    Loop(kOther, 8);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kOther));
    before = d.executed.size();
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 2, CUDA_ERROR_INVALID_VALUE);
    std::function<void()> asks = [&] { ag_take_pending(&d.cap); };
    questions = 0;
    at_second_question = &asks;
    const bool success = d.Launch8(f, 9, 55, kOther) == CUDA_SUCCESS;
    at_second_question = nullptr;
    EXPECT_EQ(before + 2 + success, d.executed.size()) << "of three held ones one failed";
}

// C3, C5: a segment that goes op by op into a queue where room comes now and then.
TEST_F(Bypass, C3ACallAboutAnotherStreamDoesNotWaitForAWholeSegmentThatGoesSlowly)
{
    auto launch = [&](int n) {
        for (int i = 0; i < n; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kFull));
    };
    for (int k = 0; k < 8; k++) {
        launch(60);
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    launch(4 + 8 + 16 + 20); // the first three are segments; the rest is held
    before = d.executed.size();
    watched = kFull;
    seen = 0;
    open_gate = true;
    pause_ms = 60;
    full = kFull;
    blocked = std::thread([this] { Drain(AG_ABOUT_ALL); });
    while (!inside)
        Doze();
    Drain(kOther);
    EXPECT_LT(seen, 12) << "of 20";
    pause_ms = 0;
    blocked.join();
    EXPECT_EQ(before + 20, d.executed.size());
}

// C1: a holder that only waits for a processor gets on by itself, and what it submits goes first.
TEST_F(Bypass, C1ACallAboutAnotherStreamWaitsForAThreadThatIsKeptOffItsProcessor)
{
    std::atomic<bool> over{false};
    std::thread busy([&] {
        Pin();
        while (!over)
            ;
    });
    open_gate = true;
    work_ms = 1;
    FillUp(kFull);
    Drain(kOther);
    EXPECT_EQ(before + 3, d.executed.size());
    over = true;
    busy.join();
    Open();
}

// Many threads ask for the lock while submissions come and go: nobody sleeps for ever.
TEST_F(Bypass, NobodyIsForgottenAtTheLock)
{
    ag_lock lock = {};
    std::atomic<int> taken{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 3000; i++) {
                if (t % 2) {
                    ag_lock_wait(&lock);
                } else if (!ag_lock_wait_for(&lock, 1 + i % 50)) {
                    refused++;
                    continue;
                }
                taken++;
                if (i % 64 == 0)
                    std::this_thread::sleep_for(std::chrono::microseconds(50));
                if (lock.state.exchange(0) == 2)
                    ag_lock_wake(&lock);
            }
        });
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(6 * 3000, taken + refused);
    EXPECT_EQ(0u, lock.state.load());
}
} // namespace
