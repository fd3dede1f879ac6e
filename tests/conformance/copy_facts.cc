/* tests/conformance/copy_facts.cc - copies and memsets: calls that vary, and nodes that are patched.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases what a test holds
 * Promise    FACT where cuda.h says so, NOTE where it is silent and the shim must know
 * Start at   class CopyNodes                                                                */
#include "tests/conformance/facts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

// A graph with two buffers: x holds 1, 2, 3..., y zeros.
class CopyNodes : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        s = stream();
        x = buffer();
        y = buffer();
        std::vector<int> v(1024);
        for (int i = 0; i < 1024; i++)
            v[static_cast<size_t>(i)] = i + 1;
        NEED(drv.cuMemcpyHtoD(x, v.data(), 4096));
        NEED(drv.cuGraphCreate(&graph, 0));
    }
    void TearDown() override
    {
        if (exec)
            drv.cuGraphExecDestroy(exec);
        drv.cuGraphDestroy(graph);
        Facts::TearDown();
    }
    CUgraphNode add(const CUDA_MEMCPY3D &c, std::vector<CUgraphNode> after = {})
    {
        CUgraphNode node = nullptr;
        EXPECT_EQ(drv.cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &c, ctx),
                  CUDA_SUCCESS);
        return node;
    }
    void run()
    {
        if (!exec) {
            NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
        }
        NEED(drv.cuGraphLaunch(exec, s));
        NEED(drv.cuStreamSynchronize(s));
    }
    CUresult patch(CUgraphNode node, const CUDA_MEMCPY3D &c)
    {
        return drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx);
    }

    CUdeviceptr x = 0, y = 0;
    CUstream s = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
};

TEST_F(CopyNodes, TakeAnotherPlaceForLaterLaunchesOnly)
{
    CUgraphNode node = add(row(y, x, 4));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("copy_node.patch_in_flight", patch(node, row(y + 8, x + 4, 8)), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    release();
    NEED(drv.cuStreamSynchronize(s));
    FACT("copy_node.launch_before_the_patch", read(y), 1);
    FACT("copy_node.launch_after_the_patch", read(y, 3), 3);
    FACT("copy_node.refused_patch", patch(node, row(0x10000, x, 8)), CUDA_ERROR_INVALID_VALUE);
    NEED(drv.cuMemsetD32(y, 0, 4));
    NEED(drv.cuCtxSynchronize()); // it does not wait, nor does the non-blocking stream for it
    run();
    FACT("copy_node.refused_patch_changes_nothing", read(y, 2), 2);
}

TEST_F(CopyNodes, CopyRowsOfPitchedMemory)
{
    CUDA_MEMCPY3D c = row(y, x, 8);
    c.srcPitch = 64;
    c.dstPitch = 16;
    c.Height = 4;
    CUgraphNode node = add(c);
    run();
    FACT("copy_node.2d_row_0", read(y, 1), 2);
    FACT("copy_node.2d_row_3", read(y, 12), 3 * 16 + 1);
    FACT("copy_node.2d_between_rows", read(y, 2), 0);
    // cuda.h: one-dimensional only.
    FACT("copy_node.2d_patch_address", patch(node, c), CUDA_SUCCESS);
    FACT("copy_node.2d_to_1d", patch(node, row(y, x, 8)), CUDA_ERROR_INVALID_VALUE);
    c.dstDevice = y + 1024;
    NOTE("copy_node.2d_patch_other_address", patch(node, c));
    run();
    NOTE("copy_node.2d_patch_other_address_value", read(y, 256 + 1));
    c.dstPitch = 32;
    NOTE("copy_node.2d_patch_pitch", patch(node, c));
    c.dstPitch = 16;
    c.WidthInBytes = 4;
    NOTE("copy_node.2d_patch_width", patch(node, c));
    c.WidthInBytes = 8;
    c.Height = 2;
    NOTE("copy_node.2d_patch_height", patch(node, c));
}

TEST_F(CopyNodes, ReadHostMemoryWhenTheyRun)
{
    int *pinned = reinterpret_cast<int *>(flag) + 8;
    int pageable = 1;
    pinned[0] = 1;
    CUDA_MEMCPY3D in = row(y, 0, 4), out = row(0, x + 8, 4), loose = row(y + 4, 0, 4);
    in.srcMemoryType = loose.srcMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = pinned;
    loose.srcHost = &pageable;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = pinned + 1;
    add(in);
    add(out);
    add(loose);
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    pinned[0] = pageable = 2;
    run();
    FACT("copy_node.pinned_source_as_of_the_run", read(y), 2);
    FACT("copy_node.pinned_destination", pinned[1], 3);
    NOTE("copy_node.pageable_source_as_of_the_run", read(y, 1));
}

TEST_F(CopyNodes, RefuseWhatIsNoMemory)
{
    CUgraphNode node = nullptr;
    auto added = [&](const CUDA_MEMCPY3D &c) {
        return drv.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &c, ctx);
    };
    FACT("copy_node.add_unknown_source", added(row(y, 0x10000, 4)), CUDA_ERROR_INVALID_VALUE);
    FACT("copy_node.add_null_params",
         drv.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr, ctx),
         CUDA_ERROR_INVALID_VALUE);
    NOTE("copy_node.add_width_0", added(row(y, x, 0)));
}

TEST_F(CopyNodes, KeepTheKindOfMemory)
{
    CUdeviceptr managed = 0;
    CUgraphNode node = add(row(y, x, 4));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(drv.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    FACT("copy_node.patch_device_to_managed", patch(node, row(managed, x, 4)), CUDA_SUCCESS);
    CUDA_MEMCPY3D unified = row(y, x, 4);
    unified.srcMemoryType = unified.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    FACT("copy_node.patch_device_to_unified_type", patch(node, unified), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY3D out = row(0, x, 4);
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = flag + 8;
    FACT("copy_node.patch_device_to_pinned", patch(node, out), CUDA_ERROR_INVALID_VALUE);
    NEED(drv.cuMemFree(managed));
}

TEST_F(CopyNodes, KeepTheTypeThatWasDeclared)
{
    CUgraphNode node = nullptr;
    CUDA_MEMCPY3D unified = row(y, x, 4);
    unified.srcMemoryType = unified.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    NOTE("copy_node.add_unified_type",
         drv.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &unified, ctx));
    if (!node)
        return;
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    unified.dstDevice = y + 4;
    NOTE("copy_node.patch_unified_to_unified", patch(node, unified));
    NOTE("copy_node.patch_unified_to_device_type", patch(node, row(y + 8, x, 4)));
}

TEST_F(CopyNodes, AreUpdatedWithTheirGraph)
{
    CUgraph other = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExecUpdateResultInfo info = {};
    add(row(y, x, 4));
    run();
    NEED(drv.cuGraphCreate(&other, 0));
    CUDA_MEMCPY3D c = row(y + 4, x + 4, 4);
    NEED(drv.cuGraphAddMemcpyNode(&node, other, nullptr, 0, &c, ctx));
    FACT("update.copy_address", drv.cuGraphExecUpdate(exec, other, &info), CUDA_SUCCESS);
    run();
    FACT("update.copy_address_value", read(y, 1), 2);
    NEED(drv.cuGraphDestroy(other));
    NEED(drv.cuGraphCreate(&other, 0));
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = flag + 8;
    NEED(drv.cuGraphAddMemcpyNode(&node, other, nullptr, 0, &c, ctx));
    FACT("update.copy_to_host", drv.cuGraphExecUpdate(exec, other, &info),
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    NOTE("update.copy_to_host_result", info.result);
    NEED(drv.cuGraphDestroy(other));
}

TEST_F(CopyNodes, MemsetsKeepTheirRows)
{
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS set = {y, 64, 5, 4, 2, 3};
    NEED(drv.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, ctx));
    run();
    FACT("memset_node.2d_last", read(y, 2 * 16 + 1), 5);
    FACT("memset_node.2d_between_rows", read(y, 2), 0);
    auto patched = [&] { return drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx); };
    set.value = 6;
    set.dst = y + 1024;
    FACT("memset_node.2d_patch_value_and_address", patched(), CUDA_SUCCESS);
    set.width = 3;
    FACT("memset_node.2d_patch_width", patched(), CUDA_ERROR_INVALID_VALUE);
    set.width = 2;
    set.height = 2;
    FACT("memset_node.2d_patch_height", patched(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CopyNodes, MemsetsOfOneRowTakeOtherElementsPerhaps)
{
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS set = {y, 0, 5, 4, 4, 1};
    NEED(drv.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, ctx));
    run();
    auto patched = [&] { return drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx); };
    set.elementSize = 1;
    NOTE("memset_node.patch_element", patched());
    set.elementSize = 4;
    set.width = 1024;
    NOTE("memset_node.patch_to_many_more", patched());
    set.width = 4;
    set.height = 2;
    set.pitch = 64;
    FACT("memset_node.patch_height", patched(), CUDA_ERROR_INVALID_VALUE);
    set.height = 1;
    set.elementSize = 3;
    FACT("memset_node.patch_element_3", patched(), CUDA_ERROR_INVALID_VALUE);
}

// ---- calls ----

class CopyCalls : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        s = stream();
        d = buffer();
        pinned = reinterpret_cast<int *>(flag) + 8;
    }
    CUstream s = nullptr;
    CUdeviceptr d = 0;
    int *pinned = nullptr;
};

TEST_F(CopyCalls, BetweenHostMemoryWait)
{
    int pageable = 7;
    auto copy = [&](void *dst, const void *src) {
        return blocks(s, [&] {
            drv.cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src, 4, s);
        });
    };
    FACT("copy.host_to_host_waits", copy(pinned, &pageable), 1);
    FACT("copy.host_to_host_value", *pinned, 7);
    NOTE("copy.pinned_to_pinned_waits", copy(pinned + 1, pinned));
}

TEST_F(CopyCalls, FromRegisteredMemoryUntilItIsUnregistered)
{
    int *v = static_cast<int *>(aligned_alloc(4096, 4096));
    ASSERT_NE(v, nullptr);
    NEED(drv.cuMemHostRegister(v, 4096, 0));
    *v = 1;
    hold(s);
    NEED(drv.cuMemcpyHtoDAsync(d, v, 4, s));
    *v = 2;
    release();
    FACT("copy.registered_as_of_the_run", read(d), 2);
    FACT("memory.register_twice", drv.cuMemHostRegister(v, 4096, 0),
         CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    NEED(drv.cuMemHostUnregister(v));
    *v = 3;
    hold(s);
    NEED(drv.cuMemcpyHtoDAsync(d, v, 4, s));
    *v = 4;
    release();
    FACT("copy.unregistered_as_of_the_call", read(d), 3);
    free(v);
}

TEST_F(CopyCalls, OfManagedMemory)
{
    CUdeviceptr m = 0;
    NEED(drv.cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
    NEED(drv.cuMemsetD32(m, 5, 4));
    NEED(drv.cuCtxSynchronize());
    NEED(drv.cuMemcpyDtoDAsync(d, m, 4, s));
    FACT("copy.managed_to_device", read(d), 5);
    int waits = blocks(s, [&] { drv.cuMemcpyDtoDAsync(d, m, 4, s); });
    FACT("blocks.managed_to_device", waits, 0);
    NOTE("blocks.pageable_to_managed", blocks(s, [&] {
             int v = 6;
             drv.cuMemcpyHtoDAsync(m, &v, 4, s);
         }));
    CUmemLocation here = {};
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    FACT("prefetch.managed", drv.cuMemPrefetchAsync(m, 4096, here, 0, s), CUDA_SUCCESS);
    FACT("prefetch.device_memory", drv.cuMemPrefetchAsync(d, 4096, here, 0, s),
         CUDA_ERROR_INVALID_VALUE);
    FACT("attach.global", drv.cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    NOTE("attach.device_memory", drv.cuStreamAttachMemAsync(s, d, 0, CU_MEM_ATTACH_GLOBAL));
    NEED(drv.cuCtxSynchronize());
    NEED(drv.cuMemFree(m));
}

TEST_F(CopyCalls, OfRowsAndLayers)
{
    CUdeviceptr e = buffer();
    std::vector<int> v(1024);
    for (int i = 0; i < 1024; i++)
        v[static_cast<size_t>(i)] = i;
    NEED(drv.cuMemcpyHtoD(d, v.data(), 4096));
    CUDA_MEMCPY2D c = {};
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = d;
    c.dstDevice = e;
    c.srcPitch = 64;
    c.dstPitch = 32;
    c.srcXInBytes = 8;
    c.WidthInBytes = 16;
    c.Height = 3;
    FACT("copy.2d", drv.cuMemcpy2DAsync(&c, s), CUDA_SUCCESS);
    FACT("copy.2d_value", read(e, 2 * 8 + 3), 2 * 16 + 5);
    c.srcPitch = 16;
    FACT("copy.2d_pitch_below_offset_and_width", drv.cuMemcpy2DAsync(&c, s),
         CUDA_ERROR_INVALID_VALUE);
    c.srcPitch = 64;
    c.Height = 0;
    NOTE("copy.2d_height_0", drv.cuMemcpy2DAsync(&c, s));
    CUDA_MEMCPY3D l = row(e, d, 8);
    l.srcPitch = l.dstPitch = 16;
    l.srcHeight = 4;
    l.dstHeight = 2;
    l.Height = l.Depth = 2;
    FACT("copy.3d", drv.cuMemcpy3DAsync(&l, s), CUDA_SUCCESS);
    FACT("copy.3d_value", read(e, 2 * 4 + 4 + 1), 4 * 4 + 4 + 1);
    FACT("copy.peer_within_a_context", drv.cuMemcpyPeerAsync(e, ctx, d + 40, ctx, 4, s),
         CUDA_SUCCESS);
    FACT("copy.peer_value", read(e), 10);
    FACT("memset.2d", drv.cuMemsetD2D8Async(e, 64, 1, 4, 2, s), CUDA_SUCCESS);
    FACT("memset.2d_value", read(e, 16), 0x01010101);
    FACT("memset.2d_pitch_below_width", drv.cuMemsetD2D8Async(e, 2, 1, 4, 2, s),
         CUDA_ERROR_INVALID_VALUE);
    FACT("memset.16", drv.cuMemsetD16Async(e, 0x0203, 2, s), CUDA_SUCCESS);
    FACT("memset.16_value", read(e), 0x02030203);
    FACT("memset.16_misaligned", drv.cuMemsetD16Async(e + 1, 1, 2, s), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CopyCalls, OfMemoryThatMustSynchronise)
{
    unsigned on = 1;
    CUdeviceptr e = buffer();
    CUstream blocking = stream(CU_STREAM_DEFAULT);
    NOTE("blocks.dtod", blocks(blocking, [&] { drv.cuMemcpyDtoD(e, d, 4); }));
    FACT("memory.set_sync_memops",
         drv.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d), CUDA_SUCCESS);
    FACT("blocks.dtod_with_sync_memops", blocks(blocking, [&] { drv.cuMemcpyDtoD(e, d, 4); }), 1);
    NOTE("blocks.memset_of_pinned_async",
         blocks(s, [&] { drv.cuMemsetD32Async((CUdeviceptr)(uintptr_t)pinned, 1, 1, s); }));
}

// ---- what may crash ----

class IsolatedCopies : public CopyNodes
{
};

TEST_F(IsolatedCopies, CallWithFreedMemory)
{
    CUdeviceptr gone = 0;
    int v = 1;
    NEED(drv.cuMemAlloc(&gone, 64 << 20)); // large: a mapping of its own
    NEED(drv.cuMemFree(gone));
    FACT("copy.from_freed_at_the_call", drv.cuMemcpyDtoDAsync(y, gone, 4, s),
         CUDA_ERROR_INVALID_VALUE);
    FACT("copy.to_freed_at_the_call", drv.cuMemcpyHtoDAsync(gone, &v, 4, s),
         CUDA_ERROR_INVALID_VALUE);
    FACT("memset.freed_at_the_call", drv.cuMemsetD32Async(gone, 1, 1, s), CUDA_ERROR_INVALID_VALUE);
    FACT("copy.sync_after_freed", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
}

TEST_F(IsolatedCopies, CallBeyondTheEnd)
{
    CUdeviceptr p = 0;
    NEED(drv.cuMemAlloc(&p, 64 << 20));
    NOTE("copy.beyond_the_end_at_the_call",
         drv.cuMemcpyDtoDAsync(p, p + (32 << 20), (32 << 20) + 4096, s));
    NOTE("copy.sync_after_beyond_the_end", drv.cuStreamSynchronize(s));
}

TEST_F(IsolatedCopies, NodeWhoseMemoryIsSomebodyElses)
{
    CUdeviceptr gone = 0, again = 0;
    NEED(drv.cuMemAlloc(&gone, 64 << 20));
    add(row(y, gone, 4));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(drv.cuMemFree(gone));
    NEED(drv.cuMemAlloc(&again, 64 << 20));
    NOTE("copy_node.reallocated_at_the_same_address", again == gone);
    NEED(drv.cuMemsetD32(again, 77, 4));
    NEED(drv.cuCtxSynchronize());
    NOTE("copy_node.launch_after_reallocation", drv.cuGraphLaunch(exec, s));
    NOTE("copy_node.sync_after_reallocation", drv.cuStreamSynchronize(s));
    NOTE("copy_node.value_after_reallocation", read(y));
}

TEST_F(IsolatedCopies, NodeWhoseMemoryIsGone)
{
    CUdeviceptr gone = 0;
    NEED(drv.cuMemAlloc(&gone, 64 << 20));
    add(row(y, gone, 4));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(drv.cuMemFree(gone));
    NOTE("copy_node.launch_after_free", drv.cuGraphLaunch(exec, s));
    FACT("copy_node.sync_after_free", drv.cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* What was built for memory that is gone. A driver may crash on any of these, so each is asked alone. */
class IsolatedFreed : public CopyNodes
{
  protected:
    void build(bool instantiated)
    {
        NEED(drv.cuMemAlloc(&gone, 4096));
        node = add(row(y, gone, 4));
        if (instantiated) {
            NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
        }
        NEED(drv.cuMemFree(gone));
    }
    CUdeviceptr gone = 0;
    CUgraphNode node = nullptr;
};

TEST_F(IsolatedFreed, SourceAndTheGraphIsInstantiated)
{
    build(false);
    NOTE("copy_node.instantiate_after_source_freed",
         drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

TEST_F(IsolatedFreed, SourceAndTheNodeIsPatchedAndTheGraphInstantiatedAgain)
{
    CUgraphExec second = nullptr;
    build(true);
    NEED(patch(node, row(y, x, 4)));
    NOTE("copy_node.instantiate_again_after_source_freed",
         drv.cuGraphInstantiateWithFlags(&second, graph, 0));
}

TEST_F(IsolatedFreed, SourceAndTheNodeIsPatched)
{
    build(true);
    FACT("copy_node.patch_after_source_freed", patch(node, row(y, x, 4)), CUDA_SUCCESS);
}

TEST_F(IsolatedFreed, SourceAndTheNodeIsPatchedAndLaunched)
{
    build(true);
    NEED(patch(node, row(y, x, 4)));
    FACT("copy_node.launch_patched_after_source_freed", drv.cuGraphLaunch(exec, s), CUDA_SUCCESS);
    FACT("copy_node.sync_patched_after_source_freed", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    FACT("copy_node.value_patched_after_source_freed", read(y), 1);
}

TEST_F(IsolatedFreed, SourceAndItsSuccessorTakesItsPlace)
{
    CUdeviceptr again = 0;
    build(true);
    NEED(drv.cuMemAlloc(&again, 4096));
    NEED(drv.cuMemsetD32(again, 77, 4));
    NEED(drv.cuCtxSynchronize());
    FACT("copy_node.patch_after_source_reallocated", patch(node, row(y, again, 4)), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("copy_node.value_after_source_reallocated", read(y), 77);
    NEED(drv.cuMemFree(again));
}

TEST_F(IsolatedFreed, SourceAndTheExecIsDestroyed)
{
    build(true);
    FACT("copy_node.destroy_after_source_freed", drv.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    exec = nullptr;
}

TEST_F(IsolatedFreed, SourceAndTheGraphIsDestroyed)
{
    build(false);
    FACT("copy_node.destroy_graph_after_source_freed", drv.cuGraphDestroy(graph), CUDA_SUCCESS);
    NEED(drv.cuGraphCreate(&graph, 0));
}

TEST_F(IsolatedFreed, DestinationAndTheNodeIsPatchedAndLaunched)
{
    NEED(drv.cuMemAlloc(&gone, 4096));
    node = add(row(gone, x, 4));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(drv.cuMemFree(gone));
    FACT("copy_node.patch_after_destination_freed", patch(node, row(y, x, 4)), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("copy_node.value_after_destination_freed", read(y), 1);
}

TEST_F(IsolatedFreed, MemoryOfAMemsetAndTheNodeIsPatched)
{
    NEED(drv.cuMemAlloc(&gone, 4096));
    CUDA_MEMSET_NODE_PARAMS set = {gone, 0, 5, 4, 4, 1};
    NEED(drv.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, ctx));
    NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(drv.cuMemFree(gone));
    set.dst = y;
    NOTE("memset_node.patch_after_memory_freed",
         drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx));
}
