/* tests/conformance/event_facts.cc - events, host functions and values as nodes and calls; pools.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases what a test holds
 * Promise    FACT where cuda.h says so, NOTE where it is silent and the shim must know
 * Start at   class EventNodes                                                               */
#include "tests/conformance/facts.h"

#include <unistd.h>

class EventNodes : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        s = stream();
        t = stream();
        x = buffer();
        NEED(drv.cuGraphCreate(&graph, 0));
    }
    void TearDown() override
    {
        release(); // a graph may wait for what a test held
        if (exec)
            drv.cuGraphExecDestroy(exec);
        drv.cuGraphDestroy(graph);
        Facts::TearDown();
    }
    CUgraphNode record(CUevent e, std::vector<CUgraphNode> after = {})
    {
        CUgraphNode node = nullptr;
        EXPECT_EQ(drv.cuGraphAddEventRecordNode(&node, graph, after.data(), after.size(), e),
                  CUDA_SUCCESS);
        return node;
    }
    CUgraphNode wait(CUevent e)
    {
        CUgraphNode node = nullptr;
        EXPECT_EQ(drv.cuGraphAddEventWaitNode(&node, graph, nullptr, 0, e), CUDA_SUCCESS);
        return node;
    }
    // x[index] = value
    CUgraphNode set(size_t index, unsigned value, std::vector<CUgraphNode> after = {})
    {
        CUgraphNode node = nullptr;
        CUDA_MEMSET_NODE_PARAMS p = {x + 4 * index, 0, value, 4, 1, 1};
        EXPECT_EQ(drv.cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &p, ctx),
                  CUDA_SUCCESS);
        return node;
    }
    void instantiate()
    {
        NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    }

    CUstream s = nullptr, t = nullptr;
    CUdeviceptr x = 0;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
};

TEST_F(EventNodes, GiveElapsedTimes)
{
    CUevent a = event(), b = event(), untimed = event(CU_EVENT_DISABLE_TIMING);
    float ms = -1;
    CUgraphNode first = record(a);
    CUgraphNode work = set(0, 1, {first});
    CUgraphNode last = record(b, {work});
    record(untimed, {last});
    instantiate();
    FACT("event_node.elapsed_before_launch", drv.cuEventElapsedTime(&ms, a, b),
         CUDA_ERROR_INVALID_HANDLE);
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("event_node.elapsed", drv.cuEventElapsedTime(&ms, a, b), CUDA_SUCCESS);
    FACT("event_node.elapsed_not_negative", ms >= 0, 1);
    FACT("event_node.elapsed_untimed", drv.cuEventElapsedTime(&ms, a, untimed),
         CUDA_ERROR_INVALID_HANDLE);
    NEED(drv.cuEventRecord(b, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("event_node.elapsed_to_a_stream", drv.cuEventElapsedTime(&ms, a, b), CUDA_SUCCESS);
    FACT("event_node.elapsed_to_a_stream_not_negative", ms >= 0, 1);
}

TEST_F(EventNodes, AreWaitedForByStreams)
{
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    CUgraphNode node = record(e);
    set(0, 5, {node});
    instantiate();
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("event_node.stream_waits_for_it", drv.cuStreamWaitEvent(t, e, 0), CUDA_SUCCESS);
    NEED(launch(null_kernel, t, {}));
    FACT("event_node.waiting_stream", drv.cuStreamQuery(t), CUDA_ERROR_NOT_READY);
    release();
    FACT("event_node.waiting_stream_ends", drv.cuStreamSynchronize(t), CUDA_SUCCESS);
}

TEST_F(EventNodes, TakeAnotherEventForLaterLaunches)
{
    CUevent a = event(), b = event();
    CUgraphNode node = record(a);
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("event_node.set_event", drv.cuGraphExecEventRecordNodeSetEvent(exec, node, b),
         CUDA_SUCCESS);
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("event_node.old_event_is_left_alone", drv.cuEventQuery(a), CUDA_SUCCESS);
    FACT("event_node.new_event_is_pending", drv.cuEventQuery(b), CUDA_ERROR_NOT_READY);
    release();
    NEED(drv.cuStreamSynchronize(s));
    FACT("event_node.new_event", drv.cuEventQuery(b), CUDA_SUCCESS);
}

TEST_F(EventNodes, WaitForWhatWasRecorded)
{
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    CUgraphNode node = wait(e);
    set(0, 9, {node});
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("event_node.wait_for_never_recorded", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    hold(t);
    NEED(drv.cuEventRecord(e, t));
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("event_node.graph_waits", drv.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    release();
    FACT("event_node.graph_ends", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    FACT("event_node.graph_ran", read(x), 9);
}

/* Does the node mean the record as of the launch, or as of its turn? */
TEST_F(EventNodes, WaitForTheRecordAsOfSomeMoment)
{
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    CUstream u = stream();
    unsigned *second = flag + 4, one = 1;
    wait(e);
    instantiate();
    NEED(drv.cuEventRecord(e, u));
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(launch(wait_flag, t, {&second, &one}));
    NEED(drv.cuEventRecord(e, t));
    release();
    usleep(200000);
    NOTE("event_node.wait_means_the_record_at_its_turn",
         drv.cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
    __atomic_store_n(second, 1, __ATOMIC_RELEASE);
    NEED(drv.cuCtxSynchronize());
}

TEST_F(EventNodes, AreOfCapturesOnlyWhereAFlagAsksForThem)
{
    CUevent e = event();
    FACT("event.record_external_outside_capture",
         drv.cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    FACT("event.record_default_flags", drv.cuEventRecordWithFlags(e, s, 0), CUDA_SUCCESS);
    FACT("event.wait_external_outside_capture", drv.cuStreamWaitEvent(t, e, CU_EVENT_WAIT_EXTERNAL),
         CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(EventNodes, ForkAndJoinInOneGraph)
{
    CUgraphNode root = set(0, 1), a = set(1, 2, {root}), b = set(2, 3, {root});
    set(3, 4, {a, b});
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("branches.first", read(x, 1), 2);
    FACT("branches.second", read(x, 2), 3);
    FACT("branches.joined", read(x, 3), 4);
}

/* One branch stands still: does the other run? A device need not promise it. */
TEST_F(EventNodes, BranchesRunBesideOneThatWaits)
{
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    CUgraphNode node = wait(e), other = nullptr;
    CUDA_MEMSET_NODE_PARAMS p = {(CUdeviceptr)(uintptr_t)(flag + 8), 0, 3, 4, 1, 1};
    set(0, 2, {node});
    NEED(drv.cuGraphAddMemsetNode(&other, graph, nullptr, 0, &p, ctx));
    instantiate();
    hold(t);
    NEED(drv.cuEventRecord(e, t));
    NEED(drv.cuGraphLaunch(exec, s));
    for (int i = 0; i < 1000 && __atomic_load_n(flag + 8, __ATOMIC_ACQUIRE) != 3; i++)
        usleep(1000);
    NOTE("branches.run_beside_a_waiting_one", __atomic_load_n(flag + 8, __ATOMIC_ACQUIRE) == 3);
    release();
    NEED(drv.cuStreamSynchronize(s));
}

// ---- calls ----

class EventCalls : public EventNodes
{
};

TEST_F(EventCalls, MayWaitForTheirOwnStream)
{
    CUevent e = event();
    NEED(drv.cuEventRecord(e, s));
    FACT("event.wait_in_its_own_stream", drv.cuStreamWaitEvent(s, e, 0), CUDA_SUCCESS);
    FACT("event.own_stream_ends", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    CUevent shared = nullptr;
    FACT("event.create_interprocess",
         drv.cuEventCreate(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    if (shared)
        drv.cuEventDestroy(shared);
}

TEST_F(EventCalls, TellTimesBackwards)
{
    CUevent a = event(), b = event();
    float ms = 0;
    NEED(drv.cuEventRecord(a, s));
    NEED(launch(null_kernel, s, {}));
    NEED(drv.cuEventRecord(b, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("elapsed.backwards", drv.cuEventElapsedTime(&ms, b, a), CUDA_SUCCESS);
    FACT("elapsed.backwards_not_positive", ms <= 0, 1);
}

TEST_F(EventCalls, DoNotWaitForTheDevice)
{
    CUevent e = event(), f = event();
    FACT("blocks.event_record", blocks(s, [&] { drv.cuEventRecord(e, s); }), 0);
    FACT("blocks.stream_wait_event",
         blocks(s,
                [&] {
                    drv.cuEventRecord(f, s);
                    drv.cuStreamWaitEvent(t, f, 0);
                }),
         0);
    FACT("blocks.launch_host_func",
         blocks(s,
                [&] {
                    drv.cuLaunchHostFunc(
                        s, [](void *) {}, nullptr);
                }),
         0);
    FACT("blocks.stream_write_value", blocks(s, [&] { drv.cuStreamWriteValue32(s, x, 1, 0); }), 0);
    FACT("blocks.event_sync_of_earlier", blocks(s, [&] { drv.cuEventSynchronize(e); }), 0);
}

TEST_F(EventCalls, OfValues)
{
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)(flag + 4);
    NEED(drv.cuStreamWaitValue32(s, host, 2, CU_STREAM_WAIT_VALUE_EQ));
    FACT("value.waits_for_the_host", drv.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag + 4, 2, __ATOMIC_RELEASE);
    FACT("value.host_store_ends_it", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    CUstreamBatchMemOpParams op[2] = {};
    op[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op[0].waitValue.address = x;
    op[0].waitValue.value = 1;
    op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op[1].writeValue.address = x + 8;
    op[1].writeValue.value64 = 6;
    FACT("value.batch", drv.cuStreamBatchMemOp(s, 2, op, 0), CUDA_SUCCESS);
    FACT("value.batch_waits", drv.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    NEED(drv.cuStreamWriteValue32(t, x, 1, 0));
    NEED(drv.cuStreamSynchronize(s));
    FACT("value.batch_in_order", read(x, 2), 6);
    FACT("value.batch_flags", drv.cuStreamBatchMemOp(s, 2, op, 7), CUDA_ERROR_INVALID_VALUE);
    FACT("value.unknown_memory", drv.cuStreamWriteValue32(s, 0x10000, 1, 0),
         CUDA_ERROR_INVALID_VALUE);
    NOTE("value.misaligned_64", drv.cuStreamWriteValue64(s, x + 4, 1, 0));
}

TEST_F(EventCalls, OfValuesInGraphs)
{
    CUgraphNode node = nullptr, after = nullptr;
    CUstreamBatchMemOpParams op = {};
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op.waitValue.address = (CUdeviceptr)(uintptr_t)(flag + 4);
    op.waitValue.value = 1;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    CUDA_BATCH_MEM_OP_NODE_PARAMS p = {ctx, 1, &op, 0};
    FACT("value_node.add", drv.cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &p),
         CUDA_SUCCESS);
    after = set(0, 8, {node});
    ASSERT_NE(after, nullptr);
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("value_node.waits", drv.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag + 4, 1, __ATOMIC_RELEASE);
    FACT("value_node.ends", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    FACT("value_node.ran", read(x), 8);
}

static int calls_of_a, calls_of_b;

TEST_F(EventCalls, OfHostFunctionsInGraphs)
{
    CUgraphNode node = nullptr;
    CUDA_HOST_NODE_PARAMS p = {[](void *) { calls_of_a++; }, nullptr};
    NEED(drv.cuGraphAddHostNode(&node, graph, nullptr, 0, &p));
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("host_node.once_a_launch", calls_of_a, 2);
    p.fn = [](void *) { calls_of_b++; };
    FACT("host_node.patch", drv.cuGraphExecHostNodeSetParams(exec, node, &p), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuStreamSynchronize(s));
    FACT("host_node.patched", calls_of_b, 1);
    FACT("host_node.not_the_old_one", calls_of_a, 2);
}

TEST_F(EventCalls, OfCallbacks)
{
    static CUresult status, inside;
    status = CUDA_ERROR_UNKNOWN;
    NEED(drv.cuStreamAddCallback(
        s,
        [](CUstream, CUresult ret, void *) {
            status = ret;
            inside = drv.cuMemFree(0);
        },
        nullptr, 0));
    NEED(drv.cuStreamSynchronize(s));
    FACT("callback.status", status, CUDA_SUCCESS);
    NOTE("callback.call_inside", inside);
    FACT("callback.unknown_flag",
         drv.cuStreamAddCallback(
             s, [](CUstream, CUresult, void *) {}, nullptr, 1),
         CUDA_ERROR_INVALID_VALUE);
}

// ---- memory in stream order ----

class Pools : public EventNodes
{
};

TEST_F(Pools, GiveMemoryInStreamOrder)
{
    CUdeviceptr p = 0;
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    hold(s);
    FACT("pool.alloc_behind_held_work", drv.cuMemAllocAsync(&p, 4096, s), CUDA_SUCCESS);
    FACT("pool.address_at_once", p != 0, 1);
    NEED(drv.cuMemsetD32Async(p, 4, 4, s));
    NEED(drv.cuEventRecord(e, s));
    NEED(drv.cuStreamWaitEvent(t, e, 0));
    NEED(drv.cuMemcpyDtoDAsync(x, p, 4, t));
    FACT("pool.free_in_another_stream", drv.cuMemFreeAsync(p, t), CUDA_SUCCESS);
    release();
    FACT("pool.used_in_another_stream", read(x), 4);
    NEED(drv.cuMemAllocAsync(&p, 4096, s));
    FACT("pool.freed_like_any_other", drv.cuMemFree(p), CUDA_SUCCESS);
    FACT("pool.alloc_0", drv.cuMemAllocAsync(&p, 0, s), CUDA_SUCCESS);
    NOTE("pool.alloc_0_gives_null", p == 0);
}

TEST_F(Pools, OfTheProgramsOwn)
{
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0;
    cuuint64_t used = 0;
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    FACT("pool.create", drv.cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    NEED(drv.cuMemAllocFromPoolAsync(&p, 4096, pool, s));
    CUmemoryPool of = nullptr;
    FACT("pool.pointer_knows_it",
         drv.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), CUDA_SUCCESS);
    FACT("pool.pointer_names_it", of == pool, 1);
    NEED(drv.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    FACT("pool.used", used >= 4096, 1);
    NEED(drv.cuMemFreeAsync(p, s));
    NEED(drv.cuStreamSynchronize(s));
    NEED(drv.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    FACT("pool.used_after_free", used, 0);
    FACT("pool.destroy", drv.cuMemPoolDestroy(pool), CUDA_SUCCESS);
    props.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    FACT("pool.create_nowhere", drv.cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

// ---- what may crash ----

class IsolatedEvents : public EventNodes
{
};

TEST_F(IsolatedEvents, NodeWhoseEventIsDestroyed)
{
    CUevent e = nullptr;
    NEED(drv.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    record(e);
    instantiate();
    NEED(drv.cuEventDestroy(e));
    NOTE("event_node.launch_after_destroy", drv.cuGraphLaunch(exec, s));
    NOTE("event_node.sync_after_destroy", drv.cuStreamSynchronize(s));
}
