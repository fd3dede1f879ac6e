// Records that are held for a stream whose queue is full: who waits for them, and until when.
#include "tests/capture/full_stream.h"

namespace
{
const CUevent E = reinterpret_cast<CUevent>(0xe000);
std::atomic<int> room{0}; // launches into the full stream that still return

CUresult LaunchWhileThereIsRoom(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream s,
                                void **params, void **extra)
{
    if (s == full && --room < 0) {
        inside = true;
        while (!open_gate && room < 0)
            Doze();
    }
    return launch_now(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}

class HeldRecords : public FullStream
{
  protected:
    HeldRecords()
    {
        slots[AG_ROW_cuLaunchKernel] = reinterpret_cast<ag_fn>(LaunchWhileThereIsRoom);
        ag_event_came(&d.cap, E, CU_EVENT_DISABLE_TIMING);
    }
    void Pairs(int n)
    {
        for (int i = 0; i < n; i++) {
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kFull));
            EXPECT_EQ(CUDA_SUCCESS, d.Record(E, kFull));
        }
    }
    // A launch, a record and a launch are held; a thread that submits them has room for so many launches.
    void FillUpBehind(int launches)
    {
        for (int k = 0; k < 8; k++) {
            Pairs(6);
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
        Pairs(1);
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 2, 1, kFull));
        EXPECT_EQ(1u, d.cap.events.held.load());
        before = d.executed.size();
        room = launches;
        full = kFull;
        blocked = std::thread(
            [this] { ag_drain(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAlloc_v2); });
        while (!inside)
            Doze();
    }
    void Ask()
    {
        ag_drain_event(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, E, AG_ROW_cuEventQuery);
    }
};

TEST_F(HeldRecords, C3ACallAboutTheirEventWaitsForThem)
{
    FillUpBehind(0);
    EXPECT_FALSE(ReturnsMeanwhile([&] { Ask(); }, 400));
    EXPECT_EQ(before + 3, d.executed.size());
}

TEST_F(HeldRecords, C3ACallAboutTheirEventWaitsForThemWhileAnotherContextEnds)
{
    FillUpBehind(0);
    ag_events_doubt(&d.cap.events, nullptr);
    EXPECT_FALSE(ReturnsMeanwhile([&] { Ask(); }, 400));
    EXPECT_EQ(before + 3, d.executed.size());
}

// What the device has to be told to make room may come after that call.
TEST_F(HeldRecords, C3ACallAboutTheirEventDoesNotWaitForWhatComesBehindThem)
{
    FillUpBehind(1);
    EXPECT_TRUE(ReturnsMeanwhile([&] { Ask(); }));
    EXPECT_EQ(before + 3, d.executed.size());
}

TEST_F(HeldRecords, C3ACallAboutTheirEventReturnsAsSoonAsThereWasRoomForThem)
{
    FillUpBehind(0);
    std::thread device([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        room = 0;
    });
    EXPECT_TRUE(ReturnsMeanwhile([&] { Ask(); }));
    device.join();
    EXPECT_EQ(before + 3, d.executed.size());
}

TEST_F(HeldRecords, C3ACallAboutAnotherEventDoesNotWaitForThem)
{
    FillUpBehind(0);
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        ag_drain_event(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, reinterpret_cast<CUevent>(8),
                       AG_ROW_cuEventQuery);
    }));
}

TEST_F(HeldRecords, C1ARecordInAnotherStreamWaitsForThem)
{
    FillUpBehind(0);
    EXPECT_FALSE(ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Record(E, kOther)); }, 400));
    ASSERT_EQ(before + 4, d.executed.size());
    EXPECT_EQ(kOther, d.executed[before + 3].stream);
}

TEST_F(HeldRecords, C1TheDestructionOfTheirEventWaitsForThem)
{
    FillUpBehind(0);
    EXPECT_FALSE(
        ReturnsMeanwhile([&] { ag_event_goes(&d.cap, E, AG_ROW_cuEventDestroy_v2); }, 400));
    EXPECT_EQ(before + 3, d.executed.size());
}
} // namespace
