// Records of events against a scripted driver: nodes where they are dense, calls where they are not.
#include "capture/event.h"
#include "capture/graph.h"
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>

namespace
{
CUevent Event(uintptr_t i)
{
    return reinterpret_cast<CUevent>(0xe0000 + 0x100 * i);
}

class Records : public ::testing::Test
{
  protected:
    Records() : f(d.Function("f", {8}))
    {
        for (uintptr_t i = 0; i < 64; i++)
            ag_event_came(&d.cap, Event(i), CU_EVENT_DISABLE_TIMING);
    }

    // Launches, a record after each `every`; event(i) is that of the i-th record.
    template <typename F> void Iterate(int launches, int every, F event)
    {
        for (int i = 0; i < launches; i++) {
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1 + i));
            asked.push_back("launch " + std::to_string(i));
            if (i % every != every - 1)
                continue;
            const CUevent e = Event(event(i / every));
            EXPECT_EQ(CUDA_SUCCESS, d.Record(e));
            asked.push_back(ScriptedDriver::RecordText(e));
        }
    }
    template <typename F> void Loop(int rounds, int launches, int every, F event)
    {
        for (int k = 0; k < rounds; k++) {
            Iterate(launches, every, event);
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }
    // What ran, in the words of `asked`.
    std::vector<std::string> Ran(const char *how = nullptr) const
    {
        std::vector<std::string> ran;
        for (const auto &e : d.executed) {
            if (how && e.how != how)
                continue;
            const bool launch = e.op[0] == 'f';
            const size_t args = e.op.find(">>>") + 3;
            ran.push_back(launch ? "launch " +
                                       std::to_string(std::stoi(e.op.substr(args), nullptr, 16))
                                 : e.op);
        }
        return ran;
    }
    int Records_(const char *how) const
    {
        int n = 0;
        for (const auto &e : d.executed)
            n += e.op[0] == 'r' && e.how == how;
        return n;
    }

    ScriptedDriver d;
    CUfunction f;
    std::vector<std::string> asked;
};
} // namespace

// C1
TEST_F(Records, OfADenseLoopAreNodesInTheirPlaces)
{
    Loop(12, 24, 2, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(Records_("graph"), 60);
    EXPECT_EQ(144u, ag_count_read(&d.counters.records_seen));
    EXPECT_EQ(static_cast<uint64_t>(Records_("graph")),
              ag_count_read(&d.counters.records_replayed));
    EXPECT_LE(ag_count_read(&d.counters.records_replayed), ag_count_read(&d.counters.records_held));
}

// C1: another event at each turn is another event in the graph.
TEST_F(Records, AreOfTheEventThatTheCallNamed)
{
    for (int k = 0; k < 12; k++)
        Loop(1, 24, 2, [k](int i) { return (i + 5 * k) % 64; });
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(Records_("graph"), 60);
    EXPECT_GT(d.calls["cuGraphExecEventRecordNodeSetEvent"], 0);
}

// C1: a handle that comes back is another event, which the node has to be told of again.
TEST_F(Records, AreOfTheEventThatHasTheHandleNow)
{
    Loop(8, 24, 2, [](int i) { return i; });
    const int told = d.calls["cuGraphExecEventRecordNodeSetEvent"];
    Loop(1, 24, 2, [](int i) { return i; });
    EXPECT_EQ(told, d.calls["cuGraphExecEventRecordNodeSetEvent"]);
    ag_event_goes(&d.cap, Event(1), AG_ROW_cuEventDestroy_v2);
    ag_event_came(&d.cap, Event(1), CU_EVENT_DISABLE_TIMING);
    Loop(1, 24, 2, [](int i) { return i; });
    EXPECT_EQ(told + 1, d.calls["cuGraphExecEventRecordNodeSetEvent"]);
    EXPECT_EQ(asked, Ran());
}

// C5: records far apart end a graph, as a call between two costs less than a node inside one.
TEST_F(Records, ThatAreFarApartAreMadeBetweenGraphs)
{
    Loop(20, 5 * AG_DENSE_OPS, AG_DENSE_OPS, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(0, Records_("graph"));
    EXPECT_GT(d.Count("graph"), 10 * AG_DENSE_OPS);
    EXPECT_GT(ag_count_read(&d.counters.records_sparse), 90u);
    Loop(20, 5 * (AG_DENSE_OPS - 1), AG_DENSE_OPS - 1, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(Records_("graph"), 0);
}

// C5: one that a segment ends with is a call behind the graph.
TEST_F(Records, AtTheEndOfASegmentAreMadeBehindItsGraph)
{
    Loop(12, 3, 3, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(d.Count("graph"), 20);
    EXPECT_EQ(0, Records_("graph"));
    EXPECT_GT(ag_count_read(&d.counters.records_held), 0u);
}

// A graph of one launch was never built, and a record does not make two of it.
TEST_F(Records, MakeNoGraphOfALaunchAlone)
{
    Loop(12, 1, 1, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(0, d.Count("graph"));
}

// C2: of these the driver has to say whether it takes them.
TEST_F(Records, ThatTheDriverMayRefuseAreMadeAtOnce)
{
    const CUevent unknown = Event(100), shared = Event(101), timed = Event(102), old = Event(103);
    ag_event_came(&d.cap, old, CU_EVENT_DISABLE_TIMING);
    ag_retire_contexts(&d.cap, reinterpret_cast<CUcontext>(0x1000), AG_ROW_cuCtxDestroy_v2);
    d.context_id++; // it has ended, and another one has its handle
    for (uintptr_t i = 0; i < 64; i++)
        ag_event_came(&d.cap, Event(i), CU_EVENT_DISABLE_TIMING);
    ag_event_came(&d.cap, shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    ag_event_came(&d.cap, timed, CU_EVENT_DEFAULT);
    Loop(8, 24, 2, [](int i) { return i; });
    for (const CUevent e : {unknown, shared, timed, old}) {
        Iterate(4, 2, [](int i) { return i; });
        const size_t before = d.executed.size();
        EXPECT_LT(before, asked.size()) << "something is held";
        EXPECT_EQ(CUDA_SUCCESS, d.Record(e));
        asked.push_back(ScriptedDriver::RecordText(e));
        EXPECT_EQ(asked, Ran());
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    Iterate(4, 2, [](int i) { return i; });
    const int held = static_cast<int>(d.cap.events.held.load());
    EXPECT_GT(held, 0);
    d.FailCall("cuEventRecord", d.calls["cuEventRecord"] + held + 1, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, d.Record(unknown));
}

// C5: libraries retain and release the primary context while the program goes on in it, or another context ends.
TEST_F(Records, AreHeldAgainWhereTheirContextHasNotEndedAfterAll)
{
    Loop(8, 24, 2, [](int i) { return i; });
    for (const CUcontext c :
         {static_cast<CUcontext>(nullptr), reinterpret_cast<CUcontext>(0x1000)}) {
        ag_retire_contexts(&d.cap, c, AG_ROW_cuDevicePrimaryCtxRelease_v2);
        const int before = Records_("graph");
        Loop(8, 24, 2, [](int i) { return i; });
        EXPECT_GT(Records_("graph"), before + 40);
    }
    EXPECT_EQ(asked, Ran());
}

// C1: what an event in a capture stands for is not for a node to change.
TEST_F(Records, OfAnEventInACaptureAreMadeAtOnceUntilOneOutsideHasBeen)
{
    Loop(8, 24, 2, [](int i) { return i; });
    ag_capture_begins(&d.cap, AG_ROW_cuStreamBeginCapture_v2);
    ag_capture_began(&d.cap, CUDA_SUCCESS);
    EXPECT_EQ(CUDA_SUCCESS, d.Record(Event(0)));
    asked.push_back(ScriptedDriver::RecordText(Event(0)));
    ag_capture_ended(&d.cap, CUDA_SUCCESS);
    EXPECT_EQ(asked, Ran());
    Iterate(2, 2, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    const int in_graphs = Records_("graph");
    Loop(2, 24, 2, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(Records_("graph"), in_graphs);
}

// C3: whoever asks for an event, or makes another wait for it, finds it recorded.
TEST_F(Records, AreWithTheDriverWhenTheirEventIsAskedFor)
{
    Loop(8, 24, 2, [](int i) { return i; });
    for (const enum ag_row row : {AG_ROW_cuEventQuery, AG_ROW_cuStreamWaitEvent}) {
        Iterate(4, 2, [](int i) { return i; });
        EXPECT_LT(d.executed.size(), asked.size());
        EXPECT_LT(0u, d.cap.events.held.load());
        ag_drain_event(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, Event(0), row);
        EXPECT_EQ(asked, Ran());
        EXPECT_EQ(0u, d.cap.events.held.load());
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
}

// C2, C6: a graph that the driver refuses is made op by op, each record once.
TEST_F(Records, OfAGraphThatIsRefusedAreMadeOneByOne)
{
    Loop(8, 24, 2, [](int i) { return i; });
    d.FailCall("cuGraphLaunch", d.calls["cuGraphLaunch"] + 1, CUDA_ERROR_OUT_OF_MEMORY);
    Loop(12, 24, 2, [](int i) { return i; });
    d.FailCall("cuGraphExecEventRecordNodeSetEvent",
               d.calls["cuGraphExecEventRecordNodeSetEvent"] + 1, CUDA_ERROR_INVALID_VALUE);
    Loop(12, 24, 2, [](int i) { return i + 20; });
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(0u, d.cap.events.held.load());
    EXPECT_GT(ag_count_read(&d.counters.eager[AG_REFUSAL_LAUNCH_FAILED]), 0u);
    EXPECT_GT(ag_count_read(&d.counters.eager[AG_REFUSAL_PATCH_FAILED]), 0u);
}

// C1: a record in another stream comes after the one that is held.
TEST_F(Records, InAnotherStreamComeAfterTheHeldOne)
{
    const CUstream other = reinterpret_cast<CUstream>(0x72000);
    Loop(8, 24, 2, [](int i) { return i; });
    Iterate(4, 2, [](int i) { return i; });
    EXPECT_LT(d.executed.size(), asked.size());
    EXPECT_EQ(CUDA_SUCCESS, d.Record(Event(0), other));
    asked.push_back(ScriptedDriver::RecordText(Event(0)));
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    EXPECT_EQ(asked, Ran());
}

// C1: a launch may record an event by itself, where nobody but the driver can tell what that makes of it.
TEST_F(Records, OfAnEventThatALaunchHasRecordedAreMadeAtOnceTheFirstTime)
{
    CUlaunchAttribute by_launch = {};
    by_launch.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    by_launch.value.launchCompletionEvent.event = Event(0);
    Loop(8, 24, 2, [](int i) { return i; });
    Iterate(4, 2, [](int i) { return i; });
    EXPECT_LT(d.executed.size(), asked.size());
    EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, 119, &by_launch, 1));
    asked.push_back("launch 119");
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    Iterate(2, 2, [](int i) { return i; });
    EXPECT_EQ(asked, Ran());
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    Loop(1, 24, 2, [](int i) { return i; });
    Iterate(2, 2, [](int i) { return i; });
    EXPECT_LT(d.executed.size(), asked.size());
}

// C1: of several records of an event between two looks the last one is seen.
TEST_F(Records, ThatALaterOneOvertakesAreLeftOutOfAGraph)
{
    Loop(12, 24, 2, [](int) { return 0; });
    EXPECT_LT(Ran().size(), asked.size());
    const uint64_t elided = ag_count_read(&d.counters.records_elided);
    EXPECT_GT(elided, 30u);
    EXPECT_EQ(asked.size() - elided, Ran().size());
    EXPECT_GT(elided, static_cast<uint64_t>(Records_("graph")));
    Loop(12, 24, 2, [](int i) { return i / 2; });
    EXPECT_GT(Records_("graph"), 0);
    EXPECT_EQ(0u, d.cap.events.held.load());
}

// C1: every event that is looked at stands for what was launched before its last record.
TEST_F(Records, ThatAreSeenAreMadeWhicheverTheyAre)
{
    unsigned seed = 1;
    size_t checked = 0;
    for (int round = 0; round < 400; round++) {
        const bool one = round < 20 || round % 7;
        std::map<int, std::string> last; // the launch before the last record of each event
        for (int i = 0; i < 24; i++) {
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1 + i));
            if (i % 2 == 0)
                continue;
            seed = seed * 1103515245u + 12345u;
            const int e = one ? i % 4 / 2 : static_cast<int>(seed >> 16) % 5;
            EXPECT_EQ(CUDA_SUCCESS, d.Record(Event(e)));
            last[e] = "launch " + std::to_string(i);
        }
        const int asked_for = round % 5;
        ag_drain_event(&d.cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, Event(asked_for),
                       AG_ROW_cuEventQuery);
        std::map<int, std::string> seen;
        std::string launch;
        for (const std::string &op : Ran())
            for (int e = 0; e < 5; e++)
                if (op[0] == 'l')
                    launch = op;
                else if (op == ScriptedDriver::RecordText(Event(e)))
                    seen[e] = launch;
        for (const auto &[e, before] : last)
            EXPECT_EQ(before, seen[e]) << "event " << e << ", round " << round;
        checked += last.size();
        d.executed.clear();
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    EXPECT_GT(checked, 800u);
    EXPECT_GT(ag_count_read(&d.counters.records_elided), 0u);
    EXPECT_GT(ag_count_read(&d.counters.eager[AG_REFUSAL_OTHER_RECORDS]), 0u);
}

// C5: where that changes all the time every record gets a node, which serves all. A graph that was given up is built
// again only after twice the sightings.
TEST_F(Records, ThatAreOvertakenNowAndThenAreKept)
{
    auto turn = [&] {
        Loop(250, 8, 1, [](int i) { return i < 3 ? 0 : i; });
        Loop(1, 8, 1, [](int i) { return i; });
    };
    for (int k = 0; k < AG_OTHER_RECORDS; k++)
        turn();
    const uint64_t refused = ag_count_read(&d.counters.eager[AG_REFUSAL_OTHER_RECORDS]);
    const uint64_t elided = ag_count_read(&d.counters.records_elided);
    const int nodes = Records_("graph");
    EXPECT_GT(refused, 0u);
    for (int k = 0; k < 4; k++)
        turn();
    EXPECT_EQ(refused, ag_count_read(&d.counters.eager[AG_REFUSAL_OTHER_RECORDS]));
    EXPECT_EQ(elided, ag_count_read(&d.counters.records_elided));
    EXPECT_GT(Records_("graph"), nodes + 2000);
}

// C1: where the driver refuses the record that stands for those left out.
TEST_F(Records, ThatWereLeftOutAreMadeUpForWhereTheLastOneIsRefused)
{
    Loop(12, 2, 1, [](int) { return 0; });
    EXPECT_GT(ag_count_read(&d.counters.records_elided), 3u);
    const size_t before = d.executed.size();
    d.FailCall("cuEventRecord", d.calls["cuEventRecord"] + 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1 + i));
        EXPECT_EQ(i ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, d.Record(Event(0)));
    }
    EXPECT_EQ(before + 3, d.executed.size());
    EXPECT_EQ(ScriptedDriver::RecordText(Event(0)), d.executed.back().op);
}
