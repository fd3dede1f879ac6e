// capture/ against a scripted driver: what reaches the device is what the program asked for,
// whatever fails.
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace
{
std::string Expected(const std::string &name, unsigned long long value, unsigned grid = 1)
{
    std::string text = name + " <<<" + std::to_string(grid) + ",32>>>";
    for (int i = 0; i < 8; i++) {
        char hex[4];
        snprintf(hex, sizeof hex, " %02x", static_cast<unsigned>(value >> 8 * i & 0xff));
        text += hex;
    }
    return text;
}

class Capture : public ::testing::Test
{
  protected:
    Capture() : f(d.Function("f", {8})), g(d.Function("g", {8}))
    {
    }

    // One iteration of a loop: n launches of f and g in turn with arguments that depend on `seed`,
    // then a sync.
    void Iterate(int n, unsigned long long seed)
    {
        for (int i = 0; i < n; i++) {
            const CUfunction which = i % 3 ? f : g;
            asked.push_back(Expected(i % 3 ? "f" : "g", seed + i));
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(which, seed + i));
        }
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    void Learn(int n)
    {
        for (int k = 0; k < 8; k++)
            Iterate(n, 100 * k);
        const int before = d.Count("graph");
        Iterate(n, 900);
        ASSERT_GE(d.Count("graph") - before, n / 2) << "the loop is replayed";
    }
    void ExpectAllExecutedInOrder()
    {
        std::vector<std::string> ran;
        for (const auto &e : d.executed)
            ran.push_back(e.op);
        EXPECT_EQ(asked, ran);
    }

    ScriptedDriver d;
    CUfunction f, g;
    std::vector<std::string> asked;
};

// C1
TEST_F(Capture, ALearnedLoopRunsInGraphsWithTheBytesOfEachCall)
{
    Learn(20);
    ExpectAllExecutedInOrder();
}

// C1: the iteration that differs in the middle.
TEST_F(Capture, ADivergingIterationLosesAndReordersNothing)
{
    Learn(20);
    for (int cut = 0; cut < 20; cut++) {
        Iterate(cut, 5000);
        Iterate(20, 6000);
    }
    ExpectAllExecutedInOrder();
}

// C3
TEST_F(Capture, NothingIsHeldWhenASynchronisationReachesTheDriver)
{
    Learn(20);
    Iterate(7, 1);
    ExpectAllExecutedInOrder();
    EXPECT_EQ(0u, ag_open_logs.load());
}

// C4
TEST_F(Capture, TwoLooksWithoutACallSubmitWhatIsHeld)
{
    Learn(20);
    asked.push_back(Expected("g", 1));
    d.Launch8(g, 1);
    EXPECT_NE(asked.size(), d.executed.size()) << "the first launch of a learned loop is held";
    ag_look(&d.cap);
    ag_look(&d.cap);
    ExpectAllExecutedInOrder();
}

// C5: a launch into a stream that is gone answers as if the context were.
TEST_F(Capture, OneLaunchIntoADestroyedStreamDoesNotEndHolding)
{
    Learn(20);
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 1, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, d.Launch8(f, 1, /*grid=*/77));
    EXPECT_FALSE(d.turned_off);
    const int before = d.Count("graph");
    Iterate(20, 3);
    Iterate(20, 4);
    EXPECT_GT(d.Count("graph"), before);
    ExpectAllExecutedInOrder();
}

// C4: patience is for a program that goes on launching, and ends even then.
TEST_F(Capture, APatientStreamIsFlushedWhenItGoesSilentAndAfterItsPatience)
{
    d.cap.limits.pace = AG_PACE_PATIENT;
    const CUstream stream = reinterpret_cast<CUstream>(0x77000);
    auto launch = [&](int i) {
        asked.push_back(Expected(i % 3 ? "f" : "g", i));
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(i % 3 ? f : g, i, 1, stream));
    };
    for (int pass = 0; pass < 8; pass++) {
        for (int i = 0; i < 100; i++)
            launch(i);
        d.Synchronize();
    }
    for (int i = 0; i < 4 + 8 + 16; i++) // the segments that end have been launched
        launch(i);
    const size_t given = d.executed.size();
    EXPECT_EQ(asked.size(), given);
    int looks = 0;
    for (int i = 28; d.executed.size() == given && looks < 100; i++, looks++) {
        launch(i);
        ag_look(&d.cap);
    }
    EXPECT_EQ(2 * int(AG_PACE_PATIENCE) - 1, looks - 1)
        << "half a bound each, after the one that found it";
    ExpectAllExecutedInOrder();

    d.Synchronize();
    launch(0);
    ag_look(&d.cap);
    launch(1);
    ag_look(&d.cap);
    EXPECT_NE(asked.size(), d.executed.size()) << "still launching: held";
    ag_look(&d.cap);
    ExpectAllExecutedInOrder();
}

// C2
TEST_F(Capture, AFailingEagerLaunchFailsAtTheCallAndIsNotReplayed)
{
    Learn(20);
    const int next = d.calls["cuLaunchKernel"] + 1;
    d.FailCall("cuLaunchKernel", next, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Launch8(f, 1, /*grid=*/77));
    Iterate(20, 3);
    ExpectAllExecutedInOrder();
}

// C2: every call of the driver that a replayed iteration makes fails once.
TEST_F(Capture, NoOpIsLostOrDoubledWhateverDriverCallOfAReplayFails)
{
    for (const char *entry : {"cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"}) {
        for (int nth = 1; nth <= 25; nth++) {
            ScriptedDriver fresh;
            const CUfunction h = fresh.Function("h", {8});
            std::vector<std::string> want, ran;
            for (int k = 0; k < 12; k++) {
                if (k == 8)
                    fresh.FailCall(entry, fresh.calls[entry] + nth, CUDA_ERROR_UNKNOWN);
                for (int i = 0; i < 20; i++) {
                    want.push_back(Expected("h", 100 * k + i));
                    EXPECT_EQ(CUDA_SUCCESS, fresh.Launch8(h, 100 * k + i));
                }
                EXPECT_EQ(CUDA_SUCCESS, fresh.Synchronize());
            }
            for (const auto &e : fresh.executed)
                ran.push_back(e.op);
            EXPECT_EQ(want, ran) << entry << " failing at call " << nth;
        }
    }
}

// C2, O-34: every call of a build fails once; the program sees nothing of it.
TEST_F(Capture, AFailedBuildLeavesNoTraceButARefusal)
{
    for (const char *entry : {"cuGraphCreate", "cuGraphAddKernelNode_v2",
                              "cuGraphInstantiateWithFlags", "cuGraphUpload"}) {
        for (int nth = 1; nth <= 3; nth++) {
            ScriptedDriver fresh;
            const CUfunction h = fresh.Function("h", {8});
            fresh.FailCall(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
            for (int k = 0; k < 12; k++) {
                for (int i = 0; i < 20; i++)
                    EXPECT_EQ(CUDA_SUCCESS, fresh.Launch8(h, i));
                EXPECT_EQ(CUDA_SUCCESS, fresh.Synchronize());
            }
            EXPECT_EQ(12u * 20u, fresh.executed.size()) << entry << " failing at call " << nth;
        }
    }
}

// C2, O-49: a held op that the driver refuses later.
TEST_F(Capture, ARefusedHeldLaunchIsToldOnceAndTheRestOfTheLogRuns)
{
    Learn(20);
    for (int i = 0; i < 3; i++) // held: the first segment has four
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(i % 3 ? f : g, i));
    const size_t before = d.executed.size();
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 2, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Synchronize());
    EXPECT_EQ(before + 2, d.executed.size()) << "the first and the third of three";
    EXPECT_EQ(CUDA_SUCCESS, d.Synchronize()) << "told once";
    EXPECT_FALSE(d.turned_off);
}

// C2, C5: the launch that tells of a failed one ended a segment that was to be built; it is asked for again.
TEST_F(Capture, ASegmentWhoseEndWasNotMadeForAnErrorIsStillBuiltLater)
{
    Learn(20);
    auto variant = [&] {
        CUresult last = CUDA_SUCCESS;
        for (int i = 0; i < 4; i++)
            last = d.Launch8(i % 3 ? f : g, i, i == 3 ? 77 : 1);
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        return last;
    };
    EXPECT_EQ(CUDA_SUCCESS, variant());
    EXPECT_EQ(CUDA_SUCCESS, variant());
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 2, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, variant());
    for (int k = 0; k < 20; k++)
        EXPECT_EQ(CUDA_SUCCESS, variant());
    EXPECT_EQ("graph", d.executed.back().how);
}

// C2, O-33
TEST_F(Capture, AfterAStickyErrorNothingIsHeldAnyMore)
{
    Learn(20);
    for (int i = 0; i < 3; i++)
        d.Launch8(i % 3 ? f : g, i);
    for (int i = 1; i < 100; i++)
        d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + i, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, d.Synchronize());
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, d.Launch8(g, 1))
        << "the call itself is answered by the driver";
}

// O-47
TEST_F(Capture, AnAttributeThatChangesDrainsAndOneThatDoesNotHoldsOn)
{
    Learn(20);
    ag_attribute_set(&d.cap, g, 8, 1000);
    for (int k = 0; k < 8; k++)
        Iterate(20, k);
    asked.push_back(Expected("g", 7));
    d.Launch8(g, 7);
    ag_attribute_changes(&d.cap, g, 8, 1000, AG_ROW_cuFuncSetAttribute);
    EXPECT_NE(asked.size(), d.executed.size()) << "the same value: still held";
    ag_attribute_changes(&d.cap, g, 8, 2000, AG_ROW_cuFuncSetAttribute);
    ExpectAllExecutedInOrder();
}

// O-48
TEST_F(Capture, AHandleThatComesBackWithAnotherLayoutIsLearnedAnew)
{
    Learn(20);
    d.Retire(f);
    EXPECT_EQ(0u, d.counters.graphs_live.load());
}

// C6: a thread that cannot be made means that nothing is held, not that something may stay held for
// ever.
TEST_F(Capture, WithoutALivenessThreadNothingIsHeld)
{
    d.thread_starts = false;
    for (int k = 0; k < 10; k++)
        Iterate(20, k);
    EXPECT_EQ(0, d.Count("graph"));
    ExpectAllExecutedInOrder();
}

// O-32
TEST_F(Capture, ANullArgumentGoesToTheDriverAndEndsNothingElse)
{
    Learn(20);
    void *params[] = {nullptr};
    d.Launch8(g, 1);
    d.FailCall("cuLaunchKernel", d.calls["cuLaunchKernel"] + 2, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Launch(f, params));
    EXPECT_EQ(0u, ag_open_logs.load());
}

// Two streams: the driver has a prefix of the context's call order.
TEST_F(Capture, WorkForAnotherStreamComesAfterWhatWasHeld)
{
    Learn(20);
    asked.push_back(Expected("g", 1));
    asked.push_back(Expected("f", 2));
    d.Launch8(g, 1);
    d.Launch8(f, 2, 1, reinterpret_cast<CUstream>(0x7000));
    ExpectAllExecutedInOrder();
}

// DRAIN_ALL thunks do not show their status: the next launch is the driver's to answer.
TEST_F(Capture, TheFirstLaunchAfterAnUnseenStatusIsEager)
{
    Learn(20);
    const int before = d.calls["cuLaunchKernel"];
    ag_unseen_calls++;
    d.Launch8(g, 1);
    EXPECT_EQ(before + 1, d.calls["cuLaunchKernel"]);
}

TEST_F(Capture, APerThreadStreamIsNeverHeld)
{
    Learn(20);
    d.Launch8(g, 1, 1, CU_STREAM_PER_THREAD);
    EXPECT_EQ(Expected("g", 1), d.executed.back().op);
}

TEST_F(Capture, NothingIsHeldWhileTheProgramCaptures)
{
    Learn(20);
    ag_capture_begins(&d.cap, AG_ROW_cuStreamBeginCapture_v2);
    ag_capture_began(&d.cap, CUDA_SUCCESS);
    d.Launch8(g, 1);
    EXPECT_EQ(Expected("g", 1), d.executed.back().op);
    ag_capture_ended(&d.cap, CUDA_ERROR_ILLEGAL_STATE);
    d.Launch8(g, 2);
    EXPECT_EQ(Expected("g", 2), d.executed.back().op) << "that was not the end of the capture";
    ag_capture_ended(&d.cap, CUDA_SUCCESS);
}

// Arguments through `extra`: one packed buffer, perhaps longer than the arguments.
TEST_F(Capture, ArgumentsInOnePackedBufferAreReplayedToo)
{
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < 20; i++) {
            unsigned long long buffer[2] = {static_cast<unsigned long long>(k * 100 + i), 0};
            size_t size = sizeof buffer;
            void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                             &size, CU_LAUNCH_PARAM_END};
            ag_launch l = {};
            l.row = AG_ROW_cuLaunchKernel;
            l.handle = f;
            l.config = {{1, 1, 1}, {32, 1, 1}, 0};
            l.extra = extra;
            if (k > 7)
                asked.push_back(Expected("f", buffer[0]));
            if (k == 8 && i == 0)
                d.executed.clear();
            EXPECT_EQ(CUDA_SUCCESS, ag_submit_launch(&d.cap, &l));
        }
        d.Synchronize();
    }
    EXPECT_GT(d.Count("graph"), 20);
    ExpectAllExecutedInOrder();
}

// O-06: another cluster size is another signature, and a node keeps the one it was built with.
TEST_F(Capture, ClusterDimensionsAreThoseOfEachLaunch)
{
    for (int k = 0; k < 12; k++) {
        for (int i = 0; i < 20; i++) {
            unsigned long long value = 100 * k + i;
            CUlaunchAttribute attr = {};
            attr.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attr.value.clusterDim.x = i % 2 ? 4 : 2;
            attr.value.clusterDim.y = attr.value.clusterDim.z = 1;
            std::string want = Expected("f", value, 8);
            want.insert(want.find(">>>") + 3, i % 2 ? " cluster 4" : " cluster 2");
            asked.push_back(want);
            EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, value, &attr, 1));
        }
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        if (k == 10) { // three held ops that must be sent one by one
            EXPECT_GT(d.Count("graph"), 40);
        }
    }
    ExpectAllExecutedInOrder();
}

CUlaunchAttribute Programmatic()
{
    CUlaunchAttribute a = {};
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a.value.programmaticStreamSerializationAllowed = 1;
    return a;
}
CUlaunchAttribute SyncDomain(CUlaunchMemSyncDomain domain)
{
    CUlaunchAttribute a = {};
    a.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    a.value.memSyncDomain = domain;
    return a;
}

// C1: what a programmatic launch allows is not asked of a node; in eager launches it stays.
TEST_F(Capture, AProgrammaticLaunchIsANodeBehindAFullEdge)
{
    CUlaunchAttribute attr = Programmatic();
    for (int k = 0; k < 12; k++) {
        for (int i = 0; i < 20; i++) {
            asked.push_back(Expected("f", i, 8));
            EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, i, &attr, i % 3 ? 1 : 0));
        }
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    EXPECT_GT(d.Count("graph"), 100);
    EXPECT_EQ(0, d.calls["cuGraphKernelNodeSetAttribute"]);
    ExpectAllExecutedInOrder();
    // Held and then sent one by one: as it came.
    const int before = d.calls["cuLaunchKernelEx"];
    for (int i = 0; i < 2; i++)
        d.LaunchEx8(f, i, &attr, i % 3 ? 1 : 0);
    d.Launch8(g, 7, /*grid=*/99);
    EXPECT_EQ(before + 1, d.calls["cuLaunchKernelEx"]);
}

// Issue order and edges of these are not what a chain of nodes gives.
TEST_F(Capture, ALaunchWithAnAttributeThatANodeLacksGoesToTheDriverAsItCame)
{
    Learn(20);
    CUlaunchAttribute remote = SyncDomain(CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE), event = {};
    event.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    for (CUlaunchAttribute *attr : {&remote, &event}) {
        for (int i = 0; i < 5; i++) {
            const int before = d.calls["cuLaunchKernelEx"];
            EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, 1, attr, 1));
            EXPECT_EQ(before + 1, d.calls["cuLaunchKernelEx"]);
        }
    }
}

TEST_F(Capture, TheDefaultMemorySyncDomainIsSetOnTheNode)
{
    CUlaunchAttribute attr = SyncDomain(CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    for (int k = 0; k < 12; k++) {
        for (int i = 0; i < 20; i++)
            EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, i, &attr, 1));
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    EXPECT_GT(d.Count("graph"), 100);
    EXPECT_GT(d.calls["cuGraphKernelNodeSetAttribute"], 0);
}
} // namespace
