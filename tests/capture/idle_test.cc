// While the pace of a stream is measured: which waits of the program count. The clock is scripted, and the program
// waits only where its launches were replayed: if that counts, graphs lose the trial.
#include "tests/capture/scripted_driver.h"

#include "capture/idle.h"
#include "capture/oplog.h"

#include <gtest/gtest.h>

#include <functional>

namespace
{
uint64_t now, reads;
} // namespace

extern "C" uint64_t __wrap_ag_now_ns(void)
{
    reads++;
    return now;
}

namespace
{
constexpr uint64_t EAGER_NS = 6000, REPLAYED_NS = 100, WAIT_NS = 4000000;
constexpr int OPS = 64;
const CUstream kStream = reinterpret_cast<CUstream>(0x77000);
const CUstream kOther = reinterpret_cast<CUstream>(0x78000);
const CUevent kEvent = reinterpret_cast<CUevent>(0x79000);

class Idle : public ::testing::Test
{
  protected:
    Idle() : f(d.Function("f", {8}))
    {
        now = 1000000;
        reads = 0;
        d.cap.limits.pace = AG_PACE_KINDS;
    }

    // What the launches took.
    void Work()
    {
        now += d.Count("graph") * REPLAYED_NS + d.Count("eager") * EAGER_NS;
        if (d.executed.size() > OPS / 2)
            in_graphs = d.Count("graph") > OPS / 2;
        d.executed.clear();
    }
    // What the hooks do.
    void Synchronise(ag_row row, const void *what)
    {
        ag_drain(&d.cap, AG_DRAIN_SYNC, AG_ABOUT_ALL, row);
        Work();
        in_call();
        EXPECT_EQ(CUDA_SUCCESS, ag_deliver(&d.cap, row, what, CUDA_SUCCESS));
    }
    void Query(ag_row row, const void *what, CUresult answer)
    {
        ag_drain(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
        Work();
        if (answer == CUDA_SUCCESS)
            ag_note_idle(&d.cap, AG_ABOUT_ALL);
        EXPECT_EQ(answer, ag_deliver(&d.cap, row, what, answer));
    }
    void Record(CUevent e, CUstream s)
    {
        EXPECT_EQ(CUDA_SUCCESS, d.Record(e, s));
    }
    void Finish()
    {
        Synchronise(AG_ROW_cuCtxSynchronize, nullptr);
    }
    void Launch(CUstream s, int i)
    {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, s));
    }
    void Wait()
    {
        if (in_graphs)
            now += WAIT_NS;
    }

    // An iteration: most of its launches, the last one, then the rest of what the program does.
    void Iterate(const std::function<void()> &between, const std::function<void()> &after)
    {
        for (int i = 0; i < OPS - 1; i++)
            Launch(stream, i);
        between();
        Launch(stream, OPS - 1);
        after();
        d.CheckInvariants();
    }

    // Whether eager launches win the trial.
    bool Counts(const std::function<void()> &between, const std::function<void()> &after)
    {
        for (int k = 0; k < 2000 && !d.counters.pace_trials.load(); k++)
            Iterate(between, after);
        EXPECT_EQ(1u, d.counters.pace_trials.load());
        return d.counters.pace_eager.load() == 1;
    }
    bool Counts(const std::function<void()> &after)
    {
        return Counts([] {}, after);
    }

    // Of the clock, but for those that tell how long a build took.
    uint64_t Reads()
    {
        return reads - 2 * d.counters.graphs_built.load();
    }

    ScriptedDriver d;
    CUfunction f;
    CUstream stream = kStream;
    std::function<void()> in_call = [] {}; // the device is waited for
    bool in_graphs = false;                // most launches of the iteration were
};

TEST_F(Idle, AfterAContextSynchronisationTheProgramsTimeDoesNotCount)
{
    EXPECT_FALSE(Counts([&] { Finish(), Wait(); }));
}

TEST_F(Idle, AfterASynchronisationWithTheStreamItDoesNotCount)
{
    EXPECT_FALSE(Counts([&] { Synchronise(AG_ROW_cuStreamSynchronize, kStream), Wait(); }));
}

TEST_F(Idle, AfterAQueryThatSucceededItDoesNotCount)
{
    EXPECT_FALSE(Counts([&] {
        Query(AG_ROW_cuStreamQuery, kStream, CUDA_ERROR_NOT_READY);
        Query(AG_ROW_cuStreamQuery, kStream, CUDA_SUCCESS);
        Wait();
    }));
}

TEST_F(Idle, AfterTheEventThatStandsForAllOfTheStreamItDoesNotCount)
{
    EXPECT_FALSE(Counts([&] {
        Record(kEvent, kStream);
        Synchronise(AG_ROW_cuEventSynchronize, kEvent);
        Wait();
    }));
}

TEST_F(Idle, AfterACopyToTheHostThatWaitedForTheLegacyStreamItDoesNotCount)
{
    stream = CU_STREAM_LEGACY;
    EXPECT_FALSE(Counts([&] { Synchronise(AG_ROW_cuMemcpyDtoH_v2, nullptr), Wait(); }));
}

TEST_F(Idle, AllOfItUntilTheNextOpDoesNotCountWhateverElseIsAskedFor)
{
    EXPECT_FALSE(Counts([&] {
        Finish(), Wait();
        Finish(), Wait();
        Query(AG_ROW_cuStreamQuery, kOther, CUDA_SUCCESS), Wait();
        Query(AG_ROW_cuStreamQuery, kOther, CUDA_ERROR_NOT_READY);
        Finish(), Wait();
    }));
}

// C5: the device is waited for inside the call.
TEST_F(Idle, TheWaitForTheDeviceCounts)
{
    in_call = [&] { Wait(); };
    EXPECT_TRUE(Counts([&] { Finish(); }));
}

TEST_F(Idle, TheWaitInsideALaterSynchronisationCounts)
{
    EXPECT_TRUE(Counts([&] {
        Finish();
        in_call = [&] { Wait(); };
        Synchronise(AG_ROW_cuStreamSynchronize, kOther);
        in_call = [] {};
    }));
}

// C5: for what is held, say, through memory that the device writes.
TEST_F(Idle, AWaitAfterAnOpCounts)
{
    EXPECT_TRUE(Counts([&] { Wait(); }, [&] { Finish(); }));
}

TEST_F(Idle, AWaitAfterAnOpOfAnotherStreamCounts)
{
    EXPECT_TRUE(Counts([&] { Finish(), Launch(kOther, 0), Wait(); }));
}

// What another thread launches while this one is in the call may still run when it returns.
TEST_F(Idle, AWaitAfterAnOpThatCameDuringTheSynchronisationCounts)
{
    in_call = [&] { Launch(kStream, 0); };
    EXPECT_TRUE(Counts([&] { Finish(), Wait(); }));
}

TEST_F(Idle, AWaitForWhatIsNotReadyCounts)
{
    EXPECT_TRUE(Counts([&] {
        Finish();
        Query(AG_ROW_cuStreamQuery, kOther, CUDA_ERROR_NOT_READY), Wait();
    }));
}

TEST_F(Idle, AfterWhatDoesNotTellThatTheStreamIsIdleTheProgramsTimeCounts)
{
    const std::function<void()> tells_less[] = {
        [&] { Synchronise(AG_ROW_cuStreamSynchronize, kOther); },
        [&] { Synchronise(AG_ROW_cuStreamSynchronize, nullptr); },
        [&] { Synchronise(AG_ROW_cuStreamSynchronize_ptsz, nullptr); },
        [&] { Synchronise(AG_ROW_cuMemcpyDtoD_v2, nullptr); },
        [&] { Synchronise(AG_ROW_cuMemcpyDtoH_v2, nullptr); },
        [&] { Synchronise(AG_ROW_cuEventSynchronize, kEvent); },
        [&] { Query(AG_ROW_cuEventQuery, kEvent, CUDA_SUCCESS); },
        [&] {
            Record(kEvent, kStream), Record(kEvent, kOther);
            Synchronise(AG_ROW_cuEventSynchronize, kEvent);
        },
    };
    for (const auto &call : tells_less) {
        ag_retire_stream(&d.cap, kStream, AG_ROW_cuStreamDestroy_v2);
        d.counters.pace_trials = d.counters.pace_eager = 0;
        EXPECT_TRUE(Counts([&] { Record(kEvent, kStream); }, [&] { call(), Wait(); }))
            << &call - tells_less;
    }
}

// The clock costs more than a held launch.
TEST_F(Idle, OutsideATrialNoClockIsRead)
{
    for (int k = 0; k < 20; k++)
        Iterate([] {}, [&] { Finish(); });
    EXPECT_GT(d.counters.launches_replayed.load(), 0u);
    EXPECT_EQ(0u, Reads());
    EXPECT_FALSE(Counts([&] { Finish(), Wait(); }));
    const uint64_t read = Reads();
    EXPECT_GT(read, 0u);
    for (int k = 0; k < 100; k++)
        Iterate([] {}, [&] { Finish(), Wait(); });
    EXPECT_EQ(read, Reads());
}

// C5: a stream made anew in the place of one that was being measured is not.
TEST_F(Idle, OfAStreamThatIsGoneNoTimeIsTold)
{
    while (!d.cap.contexts || !d.cap.logs[0].load()->idle.of.load())
        Iterate([] {}, [&] { Finish(); });
    ag_retire_stream(&d.cap, kStream, AG_ROW_cuStreamDestroy_v2);
    const uint64_t before = Reads();
    for (int k = 0; k < 10; k++)
        Iterate([] {}, [&] { Finish(); });
    EXPECT_EQ(before, Reads());
}
} // namespace
