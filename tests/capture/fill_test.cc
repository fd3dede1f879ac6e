// Memsets against a scripted driver: a kernel in the graph where the bytes are known to be live, calls where not.
#include "tests/capture/scripted_driver.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace
{
constexpr CUdeviceptr A = 0x700000000;

// What each entry point may ask for, a memset of A.
struct Kind {
    enum ag_row row;
    ag_fill fill;
};
const Kind KINDS[] = {
    {AG_ROW_cuMemsetD8Async, {A, 0, 100, 1, 0x12, 1}},
    {AG_ROW_cuMemsetD16Async, {A + 2, 0, 100, 1, 0x1234, 2}},
    {AG_ROW_cuMemsetD32Async, {A + 4, 0, 100, 1, 0x12345678, 4}},
    {AG_ROW_cuMemsetD2D8Async, {A + 1, 64, 63, 5, 0x12, 1}},
    {AG_ROW_cuMemsetD2D16Async, {A + 2, 64, 32, 5, 0x1234, 2}},
    {AG_ROW_cuMemsetD2D32Async, {A + 4, 64, 16, 1, 0x12345678, 4}},
};

class Fills : public ::testing::Test
{
  protected:
    Fills() : f(d.Function("f", {8}))
    {
        ag_memory_came(&d.cap, A, 4096);
    }

    // Launches with a memset after every second one, of all kinds in turn; `step` changes value and place.
    void Iterate(int n, unsigned step, ScriptedDriver *driver, CUfunction launched)
    {
        for (int i = 0; i < n; i++) {
            EXPECT_EQ(CUDA_SUCCESS, driver->Launch8(launched, i));
            Kind k = KINDS[i / 2 % 6];
            if (i % 2 == 0)
                continue;
            k.fill.to += 4 * step;
            k.fill.value ^= step;
            asked.push_back(ScriptedDriver::FillText(k.fill));
            EXPECT_EQ(CUDA_SUCCESS, driver->Fill(k.row, k.fill));
        }
        EXPECT_EQ(CUDA_SUCCESS, driver->Synchronize());
    }
    void Iterate(int n, unsigned step)
    {
        Iterate(n, step, &d, f);
    }
    static std::vector<std::string> Ran(const ScriptedDriver &driver, const char *how = nullptr)
    {
        std::vector<std::string> ran;
        for (const auto &e : driver.executed)
            if (e.op.compare(0, 4, "fill") == 0 && (!how || e.how == how))
                ran.push_back(e.op);
        return ran;
    }

    ScriptedDriver d;
    CUfunction f;
    std::vector<std::string> asked;
};
} // namespace

// C1
TEST_F(Fills, OfALearnedLoopAreKernelsOfTheGraphAndWriteWhatEachCallSaid)
{
    d.Loaded();
    for (unsigned k = 0; k < 12; k++)
        Iterate(24, k);
    EXPECT_EQ(asked, Ran(d));
    EXPECT_GT(Ran(d, "graph").size(), 72u);
    EXPECT_EQ(144u, ag_count_read(&d.counters.memsets_seen));
    EXPECT_EQ(Ran(d, "graph").size(), ag_count_read(&d.counters.memsets_replayed));
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
    EXPECT_EQ(1, d.calls["cuFuncLoad"]) << "or it is loaded where it is launched first";
}

// C4: loading waits for the device, perhaps for a kernel that waits for a launch to come. The script sees to it that
// the module is loaded where the program's own calls do that too, with no lock of the shim held.
TEST_F(Fills, AreNotHeldBeforeTheProgramHasLoadedAModule)
{
    for (int k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(0u, Ran(d, "graph").size());
    EXPECT_EQ(0, d.calls["cuModuleLoadData"]);
    EXPECT_EQ(96u, ag_count_read(&d.counters.memsets_unproven));
    d.Loaded();
    for (int k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
    EXPECT_GT(Ran(d, "graph").size(), 0u);
    EXPECT_EQ(96u, ag_count_read(&d.counters.memsets_unproven));
}

TEST_F(Fills, NeedTheirKernelOnce)
{
    for (int i = 0; i < 3; i++) {
        d.Rest();
        d.Loaded();
    }
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
}

TEST_F(Fills, ArePreparedForWhereNothingIsEnqueuedYet)
{
    d.Rest();
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
    for (int k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_GT(Ran(d, "graph").size(), 0u);
}

// C4: the one call may be a kernel that waits for this thread; in whatever context.
TEST_F(Fills, AreNotPreparedForAtRestOnceAnythingIsEnqueued)
{
    using Call = std::function<void(ScriptedDriver &)>;
    const Call calls[] = {
        [](ScriptedDriver &fresh) { fresh.Launch8(fresh.Function("g", {8}), 1); },
        [](ScriptedDriver &fresh) {
            fresh.Launch8(fresh.Function("g", {8}), 1, 1, CU_STREAM_PER_THREAD);
        },
        [](ScriptedDriver &fresh) { fresh.Copy(A, A + 64, 8); },
        [](ScriptedDriver &fresh) { fresh.Fill(KINDS[0].row, KINDS[0].fill); },
        [](ScriptedDriver &fresh) {
            ag_capture_begins(&fresh.cap, AG_ROW_cuStreamBeginCapture_v2);
            ag_capture_began(&fresh.cap, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        },
        [](ScriptedDriver &fresh) { ag_first_come(&fresh.cap.first); },
    };
    for (const Call &call : calls) {
        ScriptedDriver fresh;
        call(fresh);
        fresh.Rest();
        EXPECT_EQ(0, fresh.calls["cuModuleLoadData"]) << "call " << &call - calls;
        fresh.Loaded();
        EXPECT_EQ(1, fresh.calls["cuModuleLoadData"]) << "call " << &call - calls;
    }
}

// C4: between the look and the load nobody starts what the load would wait for.
TEST_F(Fills, LetNoWorkBeginWhileTheyArePreparedForAtRest)
{
    std::thread other;
    d.during_load = [&] {
        other = std::thread([&] { EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, 1)); });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_EQ(0, d.calls["cuLaunchKernel"]);
    };
    d.Rest();
    other.join();
    EXPECT_EQ(1, d.Count("eager"));
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
}

// Calls that only make things are none; what is not known better may be anything.
TEST(First, CallsOfADrainingThunkEnqueueUnlessTheyAreKnownNotTo)
{
    for (const enum ag_row row : {AG_ROW_cuInit, AG_ROW_cuCtxCreate_v4, AG_ROW_cuStreamCreate,
                                  AG_ROW_cuMemHostAlloc, AG_ROW_cuMemGetInfo_v2})
        EXPECT_EQ(AG_FIRST_MAKES, ag_first_kind_of(row));
    for (const enum ag_row row : {AG_ROW_cuLibraryLoadData, AG_ROW_cuModuleGetFunction})
        EXPECT_EQ(AG_FIRST_LOADS, ag_first_kind_of(row));
    for (const enum ag_row row :
         {AG_ROW_cuGraphLaunch, AG_ROW_cuStreamWaitValue32_v2, AG_ROW_cuLaunchCooperativeKernel,
          AG_ROW_cuMemsetD8_v2, AG_ROW_cuStreamAddCallback, AG_ROW_cuMemAllocAsync,
          AG_ROW_cuStreamBatchMemOp_v2, AG_ROW_cuMemcpy2DAsync_v2})
        EXPECT_EQ(AG_FIRST_ENQUEUES, ag_first_kind_of(row));
}

// The thunks come by only until then: afterwards they cost what they did.
TEST(First, IsWatchedForUntilItHasCome)
{
    struct ag_first first = {};
    ag_first_watch(&first);
    EXPECT_EQ(1u, ag_open_logs.load());
    EXPECT_TRUE(ag_first_take(&first));
    ag_first_give(&first);
    EXPECT_EQ(1u, ag_open_logs.load());
    for (int i = 0; i < 2; i++) {
        ag_first_come(&first);
        EXPECT_EQ(0u, ag_open_logs.load());
        EXPECT_FALSE(ag_first_take(&first));
    }
    ag_first_watch(&first);
    EXPECT_EQ(0u, ag_open_logs.load());
}

// AUTOGRAPH=observe changes nothing; what is off for good has no use for it.
TEST_F(Fills, AreNotPreparedForWhereNothingIsHeld)
{
    d.options.mode = AG_MODE_OBSERVE;
    d.Rest();
    d.Loaded();
    d.options.mode = AG_MODE_ON;
    d.cap.off = true;
    d.Rest();
    d.Loaded();
    EXPECT_EQ(0, d.calls["cuModuleLoadData"]);
}

// C4: a load may wait for a collective that another thread has launched half of. Graphs are not built there either.
TEST_F(Fills, AreNotPreparedForWhereCollectivesRun)
{
    EXPECT_EQ(CUDA_SUCCESS, d.Launch8(d.Function("ncclDevKernel_AllReduce", {8}), 0));
    d.Loaded();
    for (int k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(0, d.calls["cuModuleLoadData"]);
}

// C2: a load during somebody's capture may break it.
TEST_F(Fills, AreNotPreparedForDuringACapture)
{
    ag_capture_begins(&d.cap, AG_ROW_cuStreamBeginCapture_v2);
    ag_capture_began(&d.cap, CUDA_SUCCESS);
    d.Loaded();
    EXPECT_EQ(0, d.calls["cuModuleLoadData"]);
    ag_capture_ended(&d.cap, CUDA_SUCCESS);
    d.Loaded();
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]);
}

// C2: what the driver may refuse is the driver's to judge, at once.
TEST_F(Fills, ThatTheDriverMayRefuseAreMadeAtOnce)
{
    const CUdeviceptr big = 0x800000000;
    ag_memory_came(&d.cap, big, size_t{1} << 33);
    d.Loaded();
    for (unsigned k = 0; k < 8; k++)
        Iterate(24, 0);
    const Kind bad[] = {
        {AG_ROW_cuMemsetD8Async, {A + 4095, 0, 2, 1, 1, 1}},
        {AG_ROW_cuMemsetD8Async, {A - 1, 0, 1, 1, 1, 1}},
        {AG_ROW_cuMemsetD8Async, {A, 0, 0, 1, 1, 1}},
        {AG_ROW_cuMemsetD8Async, {A, 0, SIZE_MAX, 1, 1, 1}},
        {AG_ROW_cuMemsetD16Async, {A + 1, 0, 1, 1, 1, 2}},
        {AG_ROW_cuMemsetD32Async, {A + 2, 0, 1, 1, 1, 4}},
        {AG_ROW_cuMemsetD32Async, {A, 0, SIZE_MAX / 4 + 2, 1, 1, 4}},
        {AG_ROW_cuMemsetD2D8Async, {A, 64, 64, 65, 1, 1}},
        {AG_ROW_cuMemsetD2D8Async, {A, 63, 64, 2, 1, 1}},
        {AG_ROW_cuMemsetD2D8Async, {A, 0, 64, 1, 1, 1}},
        {AG_ROW_cuMemsetD2D8Async, {A, 64, 64, 0, 1, 1}},
        {AG_ROW_cuMemsetD2D8Async, {A, SIZE_MAX / 2, 1, 3, 1, 1}},
        {AG_ROW_cuMemsetD2D8Async, {big, size_t{1} << 31, 1, 2, 1, 1}}, // a pitch above CUDA's most
        {AG_ROW_cuMemsetD2D16Async, {A, 65, 2, 2, 1, 2}},
        {AG_ROW_cuMemsetD2D32Async, {A, 66, 2, 2, 1, 4}},
        {AG_ROW_cuMemsetD8Async, {0x1234, 0, 1, 1, 1, 1}},
    };
    const uint64_t unproven = ag_count_read(&d.counters.memsets_unproven);
    for (const Kind &k : bad) {
        const size_t before = d.executed.size();
        d.Fill(k.row, k.fill);
        ASSERT_EQ(before + 1, d.executed.size()) << ScriptedDriver::FillText(k.fill);
        EXPECT_EQ("eager", d.executed[before].how);
        EXPECT_EQ(ScriptedDriver::FillText(k.fill), d.executed[before].op);
    }
    EXPECT_EQ(unproven + std::size(bad), ag_count_read(&d.counters.memsets_unproven));
}

// C2
TEST_F(Fills, AreNotHeldBeforeOneHasSucceeded)
{
    d.FailCall("memset", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Fill(KINDS[0].row, KINDS[0].fill));
    EXPECT_EQ(CUDA_SUCCESS, d.Fill(KINDS[0].row, KINDS[0].fill));
    EXPECT_EQ(2, d.calls["memset"]);
}

// C6: a driver that takes neither image nor node nor update loses nothing, and is not asked for the image again.
TEST_F(Fills, SurviveEveryRefusal)
{
    for (const char *entry : {"cuModuleLoadData", "cuModuleGetFunction", "cuFuncLoad",
                              "cuGraphAddKernelNode_v2", "cuGraphExecKernelNodeSetParams_v2"})
        for (int n = 1; n < 30; n++) {
            ScriptedDriver fresh;
            asked.clear();
            fresh.FailCall(entry, n, CUDA_ERROR_INVALID_VALUE);
            ag_memory_came(&fresh.cap, A, 4096);
            fresh.Loaded();
            for (unsigned k = 0; k < 12; k++)
                Iterate(24, k, &fresh, fresh.Function("g" + std::to_string(k / 12), {8}));
            EXPECT_EQ(asked, Ran(fresh)) << entry << " " << n;
            EXPECT_LE(fresh.calls["cuModuleLoadData"], 1);
        }
}

// A context that had no room for the image says nothing about the next one that has its handle.
TEST_F(Fills, AreAskedForAnewInTheNextContextAndOnlyThere)
{
    d.FailCall("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int life = 0; life < 3; life++) {
        ag_memory_came(&d.cap, A, 4096);
        d.Loaded();
        for (unsigned k = 0; k < 8; k++)
            Iterate(24, 0);
        ag_retire_contexts(&d.cap, nullptr, AG_ROW_cuCtxDestroy_v2);
        EXPECT_EQ(life < 2 ? 1 : 2, d.calls["cuModuleLoadData"]);
        d.context_id += life; // the first time it was another context that ended
    }
    EXPECT_GT(Ran(d, "graph").size(), 0u);
    EXPECT_EQ(asked, Ran(d));
}

// C5: without the kernel the launches between memsets still become graphs.
TEST_F(Fills, ThatCannotBeNodesStandBetweenGraphs)
{
    d.FailCall("cuModuleLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    d.Loaded();
    for (unsigned k = 0; k < 30; k++) {
        for (int i = 0; i < 20; i++)
            d.Launch8(f, i);
        d.Fill(KINDS[0].row, KINDS[0].fill);
        for (int i = 0; i < 20; i++)
            d.Launch8(f, i);
        d.Synchronize();
    }
    EXPECT_EQ(0u, Ran(d, "graph").size());
    EXPECT_EQ(30u, Ran(d, "eager").size());
    EXPECT_GT(d.Count("graph"), 400);
}

// O-52's kind: a handle of a context may come back for another one, which has no such function yet.
TEST_F(Fills, UseTheKernelOfTheContextThatLivesNow)
{
    d.Loaded();
    for (unsigned k = 0; k < 8; k++)
        Iterate(24, 0);
    ag_retire_contexts(&d.cap, nullptr, AG_ROW_cuCtxDestroy_v2);
    ag_memory_came(&d.cap, A, 4096);
    d.Loaded();
    for (unsigned k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(1, d.calls["cuModuleLoadData"]) << "another context was destroyed";
    ag_retire_contexts(&d.cap, nullptr, AG_ROW_cuCtxDestroy_v2);
    ag_memory_came(&d.cap, A, 4096);
    d.context_id++;
    d.Loaded();
    for (unsigned k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(2, d.calls["cuModuleLoadData"]);
    EXPECT_EQ(asked, Ran(d));
}

// The same where a context saw one memset and no launch: there is nothing else to forget in it.
TEST_F(Fills, UseTheKernelOfTheContextThatLivesNowWhateverRanInTheOthers)
{
    for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
        ag_memory_came(&d.cap, A, 4096);
        d.Loaded();
        d.Fill(KINDS[0].row, KINDS[0].fill, stream);
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        ag_retire_contexts(&d.cap, nullptr, AG_ROW_cuCtxDestroy_v2);
        d.context_id++;
    }
    ag_memory_came(&d.cap, A, 4096);
    d.Loaded();
    for (unsigned k = 0; k < 8; k++)
        Iterate(24, 0);
    EXPECT_EQ(3, d.calls["cuModuleLoadData"]) << "each context has a kernel of its own";
    EXPECT_GT(Ran(d, "graph").size(), 0u);
}

// A large one gains nothing from a graph.
TEST_F(Fills, ThatAreLargeAreMadeAtOnce)
{
    const CUdeviceptr big = 0x800000000;
    ag_memory_came(&d.cap, big, size_t{1} << 30);
    d.Loaded();
    for (int k = 0; k < 12; k++) {
        for (int i = 0; i < 6; i++)
            d.Fill(AG_ROW_cuMemsetD8Async, {big, 0, (4 << 20) + 1, 1, 0, 1});
        d.Synchronize();
    }
    EXPECT_EQ(0, d.Count("graph"));
    EXPECT_EQ(72, d.Count("eager"));
}
