// Streams that take turns, where the queue of one of them is full: what is held for the others is not passed.
#include "tests/capture/full_stream.h"

namespace
{
const CUevent E = reinterpret_cast<CUevent>(0xe000);
const CUstream kThird = reinterpret_cast<CUstream>(0x75000);
std::atomic<CUstream> no_upload{kNone}; // whose queue has no room for a graph either
__typeof__(&cuGraphUpload) upload_now;

CUresult BlockingUpload(CUgraphExec exec, CUstream s)
{
    if (s == no_upload) {
        inside = true;
        while (!open_gate)
            Doze();
    }
    return upload_now(exec, s);
}

class FullTurns : public FullStream
{
  protected:
    FullTurns()
    {
        no_upload = kNone;
        ag_event_came(&d.cap, E, CU_EVENT_DISABLE_TIMING);
    }
    void Round(unsigned grid)
    {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, grid, kFull));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 1, grid, kOther));
        EXPECT_EQ(CUDA_SUCCESS, waits ? d.Wait(kOther, E) : d.Record(E, kOther));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 2, grid, kThird));
    }
    bool waits = false; // a round waits for the event, not records it
    void Rounds(int n)
    {
        for (int k = 0; k < n; k++) {
            for (unsigned i = 1; i < 5; i++)
                Round(i);
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }
    // A round is held, and the thread that submits it blocks in its first launch.
    void FillUpAtTheFirst()
    {
        Rounds(200);
        EXPECT_EQ(2u, d.counters.tracks_joined.load());
        HoldOne();
    }
    void HoldOne()
    {
        Round(1); // goes eagerly, what repeats comes behind it
        before = d.executed.size();
        Round(2);
        ASSERT_EQ(before, d.executed.size()) << "all are held";
        full = kFull;
        blocked = std::thread(
            [this] { ag_drain(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAlloc_v2); });
        WaitUntilInside();
    }
    void WaitUntilInside()
    {
        for (int i = 0; i < 20000 && !inside; i++)
            Doze();
        ASSERT_TRUE(inside);
    }
    // How many ops of the stream were executed since the round, the one that begins so not included.
    int OpsBefore(CUstream s, const std::string &text)
    {
        int n = 0;
        for (size_t k = before; k < d.executed.size(); k++)
            if (d.executed[k].stream == s) {
                if (d.executed[k].op.compare(0, text.size(), text) == 0)
                    return n;
                n++;
            }
        return -1;
    }
};

// C1: in the order of the stream, though the one before has no room.
TEST_F(FullTurns, C1ALaunchComesBehindWhatIsHeldForItsStream)
{
    FillUpAtTheFirst();
    EXPECT_FALSE(
        ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 9, 77, kOther)); }, 800));
    EXPECT_EQ(2, OpsBefore(kOther, "f <<<77"));
}

// C3: who asks for a stream asks for what is held for it.
TEST_F(FullTurns, C3ACallAboutAStreamComesBehindWhatIsHeldForIt)
{
    FillUpAtTheFirst();
    EXPECT_FALSE(ReturnsMeanwhile([&] { Drain(kOther); }, 800));
    EXPECT_EQ(before + 4, d.executed.size());
}

// C1: nothing of that stream is held.
TEST_F(FullTurns, C3ACallAboutAStreamOfWhichNothingIsHeldReturns)
{
    const CUstream fourth = reinterpret_cast<CUstream>(0x76000);
    FillUpAtTheFirst();
    EXPECT_TRUE(ReturnsMeanwhile([&] { Drain(fourth); }));
    EXPECT_EQ(before + 4, d.executed.size());
}

// C1: the wait is for the record that is held, though nothing is held for the stream that waits.
TEST_F(FullTurns, C1AWaitComesBehindTheHeldRecord)
{
    for (int k = 0; k < 400; k++) {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 5, 1, kApart));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 6, 1, kFull));
        if (k % 16 == 15)
            d.Synchronize();
    }
    Rounds(200);
    EXPECT_EQ(3u, d.counters.tracks_joined.load());
    std::atomic<bool> used{false}, waited{false};
    std::thread waiter([&] {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 5, 1, kApart));
        used = true;
        while (!inside)
            Doze();
        EXPECT_EQ(CUDA_SUCCESS, d.Wait(kApart, E));
        waited = true;
    });
    while (!used)
        Doze();
    d.Synchronize();
    HoldOne();
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    EXPECT_FALSE(waited);
    Open();
    waiter.join();
    ASSERT_EQ(before + 5, d.executed.size());
    EXPECT_EQ(kApart, d.executed.back().stream) << "behind the record";
}

// C3: a graph of several streams is made; one of them has no room for its part.
TEST_F(FullTurns, C3ACallAboutAStreamReturnsWhileAnotherOnesGraphIsMade)
{
    upload_now = ag_real(&d.table, cuGraphUpload);
    slots[AG_ROW_cuGraphUpload] = reinterpret_cast<ag_fn>(BlockingUpload);
    Rounds(1);
    no_upload = kOther;
    blocked = std::thread([this] { Rounds(200); });
    WaitUntilInside();
    EXPECT_TRUE(ReturnsMeanwhile([&] { Drain(kFull); }));
}
} // namespace

// C1: the wait is for the record before the one that comes now.
TEST_F(FullTurns, C1ARecordComesBehindTheHeldWaitForItsEvent)
{
    const CUstream fourth = reinterpret_cast<CUstream>(0x76000);
    waits = true;
    FillUpAtTheFirst();
    EXPECT_FALSE(ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Record(E, fourth)); }, 800));
    ASSERT_EQ(before + 5, d.executed.size());
    EXPECT_EQ(fourth, d.executed.back().stream);
}

// C2: an event may go when those who wait for it have been told to.
TEST_F(FullTurns, C2AnEventGoesBehindTheHeldWaitForIt)
{
    waits = true;
    FillUpAtTheFirst();
    EXPECT_FALSE(
        ReturnsMeanwhile([&] { ag_event_goes(&d.cap, E, AG_ROW_cuEventDestroy_v2); }, 800));
    EXPECT_EQ(before + 4, d.executed.size());
}

// C3: whoever waits for an event does not care who else does.
TEST_F(FullTurns, C3AnEventThatIsOnlyWaitedForIsAskedMeanwhile)
{
    waits = true;
    FillUpAtTheFirst();
    EXPECT_TRUE(ReturnsMeanwhile([&] {
        ag_drain_event(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, E, AG_ROW_cuEventQuery);
    }));
}

// Two streams take turns, the first of them apart and without room; an op of each is held.
class FullApart : public FullStream
{
  protected:
    void FillUpBeside(CUstream second)
    {
        Rounds(second, 200);
        EXPECT_EQ(1u, d.counters.tracks_joined.load());
        before = d.executed.size();
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, 1, kApart));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 1, 1, second));
        ASSERT_EQ(before, d.executed.size()) << "both are held";
        full = kApart;
        blocked = std::thread(
            [this] { ag_drain(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAlloc_v2); });
        while (!inside)
            Doze();
    }
    void Rounds(CUstream second, int n)
    {
        for (int k = 0; k < n; k++) {
            for (unsigned i = 1; i < 9; i++) {
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 0, i, kApart));
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 1, i, second));
            }
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }
};

// C1: the legacy stream and those that are not apart wait for each other's work.
TEST_F(FullApart, C1AnotherStreamsLaunchComesBehindWhatIsHeldForTheLegacyStream)
{
    FillUpBeside(nullptr);
    EXPECT_FALSE(
        ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 9, 77, kOther)); }, 800));
    EXPECT_EQ(kOther, d.executed.back().stream);
}

TEST_F(FullApart, C1ALegacyLaunchComesBehindWhatIsHeldForAnotherStream)
{
    FillUpBeside(kOther);
    EXPECT_FALSE(
        ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 9, 77, nullptr)); }, 800));
    ASSERT_EQ(before + 3, d.executed.size());
    EXPECT_NE(kOther, d.executed.back().stream);
}

TEST_F(FullApart, C3AnotherStreamsLaunchDoesNotWaitForOneThatIsApart)
{
    FillUpBeside(kOther);
    EXPECT_TRUE(ReturnsMeanwhile([&] { EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 9, 77, kThird)); }));
}
