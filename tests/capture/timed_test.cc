// Events that take the time: what an autotuner measures is left as it is.
#include "capture/event.h"
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>

namespace
{
const CUevent TIMED = reinterpret_cast<CUevent>(0xe000), PLAIN = reinterpret_cast<CUevent>(0xe100);

class Timed : public ::testing::Test
{
  protected:
    Timed() : f(d.Function("f", {8}))
    {
        ag_event_came(&d.cap, TIMED, CU_EVENT_DEFAULT);
        ag_event_came(&d.cap, PLAIN, CU_EVENT_DISABLE_TIMING);
    }
    void Record(CUevent e, CUstream stream = nullptr)
    {
        EXPECT_EQ(CUDA_SUCCESS, d.Record(e, stream));
    }
    // The launches of the last of so many rounds that ran in a graph.
    int InGraphs(int rounds, int launches, CUevent before)
    {
        int in_graphs = 0;
        for (int k = 0; k < rounds; k++) {
            in_graphs = d.Count("graph");
            Record(before);
            for (int i = 0; i < launches; i++)
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i));
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
        return d.Count("graph") - in_graphs;
    }

    ScriptedDriver d;
    CUfunction f;
};
} // namespace

TEST_F(Timed, RecordsKeepTheNextSixteenOutOfGraphsOnceATimeHasBeenRead)
{
    EXPECT_EQ(40, InGraphs(12, 40, TIMED));
    ag_event_read(&d.cap, TIMED, TIMED, AG_ROW_cuEventElapsedTime);
    EXPECT_EQ(24, InGraphs(12, 40, TIMED));
    EXPECT_EQ(0, InGraphs(12, AG_TIMED_OPS, TIMED));
    EXPECT_EQ(static_cast<uint64_t>(24 * AG_TIMED_OPS),
              ag_count_read(&d.counters.eager[AG_REFUSAL_TIMED]));
}

TEST_F(Timed, RecordsMatterToTheirOwnStreamAlone)
{
    ag_event_read(&d.cap, TIMED, TIMED, AG_ROW_cuEventElapsedTime);
    EXPECT_EQ(40, InGraphs(12, 40, PLAIN));
    Record(TIMED, reinterpret_cast<CUstream>(0x72000));
    EXPECT_EQ(40, InGraphs(1, 40, PLAIN));
    Record(TIMED, CU_STREAM_PER_THREAD);
    EXPECT_EQ(40, InGraphs(1, 40, PLAIN));
}

TEST_F(Timed, EventsOfWhichNoTimeIsReadAnyMoreAreOrdinary)
{
    ag_event_read(&d.cap, TIMED, TIMED, AG_ROW_cuEventElapsedTime);
    for (int i = 0; i < AG_TIMED_RECORDS; i++)
        Record(TIMED);
    for (int i = 0; i < AG_TIMED_OPS; i++)
        d.Launch8(f, i);
    EXPECT_EQ(40, InGraphs(12, 40, TIMED));
}

// C6: a context may end with its events, which are not told one by one.
TEST_F(Timed, EventsAreRememberedUpToABound)
{
    for (uintptr_t i = 1; i <= 2 * AG_EVENTS_MAX; i++)
        ag_event_came(&d.cap, reinterpret_cast<CUevent>(i << 16), CU_EVENT_DEFAULT);
    EXPECT_EQ(AG_EVENTS_MAX, d.cap.events.n.load());
    ag_event_goes(&d.cap, reinterpret_cast<CUevent>(uintptr_t{1} << 16), AG_ROW_cuEventDestroy_v2);
    EXPECT_EQ(AG_EVENTS_MAX - 1, d.cap.events.n.load());
}

// Handles come back for other events.
TEST_F(Timed, EventsAreForgottenWithTheirHandle)
{
    ag_event_read(&d.cap, TIMED, TIMED, AG_ROW_cuEventElapsedTime);
    ag_event_goes(&d.cap, TIMED, AG_ROW_cuEventDestroy_v2);
    EXPECT_EQ(40, InGraphs(12, 40, TIMED));
    ag_event_came(&d.cap, TIMED, CU_EVENT_BLOCKING_SYNC);
    EXPECT_EQ(24, InGraphs(12, 40, TIMED));
    ag_event_came(&d.cap, TIMED, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
    EXPECT_EQ(40, InGraphs(12, 40, TIMED));
}
