/* tests/conformance/blocking_facts.cc - which calls come back while the device is held up.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases the device after 300 ms
 * Promise    1 means: the call waited for work that was queued before it
 * Start at   Facts::blocks()                                                                */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

class Blocking : public Facts
{
};

TEST_F(Blocking, CallsThatMakeThings)
{
    CUstream s = stream();
    CUdeviceptr p = 0;
    void *h = nullptr;
    CUstream made = nullptr;
    CUevent e = nullptr;
    CUmodule m = nullptr;
    FACT("blocks.cuMemAlloc", blocks(s, [&] { drv.cuMemAlloc(&p, 1 << 20); }), 0);
    FACT("blocks.cuMemHostAlloc", blocks(s, [&] { drv.cuMemHostAlloc(&h, 1 << 16, 0); }), 0);
    FACT("blocks.cuStreamCreate", blocks(s, [&] { drv.cuStreamCreate(&made, 1); }), 0);
    FACT("blocks.cuEventCreate", blocks(s, [&] { drv.cuEventCreate(&e, 0); }), 0);
    FACT("blocks.cuModuleLoadData", blocks(s, [&] { drv.cuModuleLoadData(&m, ag_image_varying); }),
         1);
    FACT("blocks.cuFuncSetAttribute",
         blocks(s,
                [&] {
                    drv.cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           65536);
                }),
         0);
    FACT("blocks.cuMemFree", blocks(s, [&] { drv.cuMemFree(p); }), 1);
    FACT("blocks.cuMemFreeHost", blocks(s, [&] { drv.cuMemFreeHost(h); }), 1);
    FACT("blocks.cuStreamDestroy", blocks(s, [&] { drv.cuStreamDestroy(made); }), 0);
    FACT("blocks.cuEventDestroy", blocks(s, [&] { drv.cuEventDestroy(e); }), 0);
    FACT("blocks.cuModuleUnload", blocks(s, [&] { drv.cuModuleUnload(m); }), 1);
    NEED(drv.cuStreamCreate(&made, 1));
    FACT("blocks.cuStreamDestroy_of_the_held", blocks(made, [&] { drv.cuStreamDestroy(made); }), 0);
}

/* A launch of another thread waits for room in its stream's queue: who waits with it? The shim lets calls about other
 * streams pass it. */
class BesideAFullQueue : public Facts
{
  protected:
    int waits(const std::function<void()> &call)
    {
        CUstream full = stream();
        std::atomic<unsigned> launched{0};
        hold(full);
        std::thread busy([&] {
            drv.cuCtxSetCurrent(ctx);
            for (int i = 0; i < 1500; i++, launched++)
                launch(null_kernel, full, {});
        });
        for (unsigned before = 1, now = 0; before != now; now = launched) {
            before = launched;
            usleep(100000);
        }
        const int waited = waits_for_release(call);
        busy.join();
        EXPECT_EQ(drv.cuCtxSynchronize(), CUDA_SUCCESS);
        return waited;
    }
};

TEST_F(BesideAFullQueue, OtherStreamsGoOn)
{
    CUstream other = stream();
    CUdeviceptr x = buffer();
    CUevent e = event();
    NEED(launch(null_kernel, other, {}));
    NEED(drv.cuEventRecord(e, other));
    NEED(drv.cuCtxSynchronize());
    FACT("full.query_other", waits([&] { drv.cuStreamQuery(other); }), 0);
    FACT("full.launch_other", waits([&] { launch(null_kernel, other, {}); }), 0);
    FACT("full.synchronize_other", waits([&] { drv.cuStreamSynchronize(other); }), 0);
    FACT("full.event_query", waits([&] { drv.cuEventQuery(e); }), 0);
    FACT("full.record_other", waits([&] { drv.cuEventRecord(e, other); }), 0);
    FACT("full.memset_other", waits([&] { drv.cuMemsetD8Async(x, 0, 64, other); }), 0);
}

TEST_F(Blocking, FirstLaunchOfAFunction)
{
    CUstream s = stream(), other = stream();
    CUdeviceptr x = buffer();
    CUfunction f = function(ag_image_varying, "vary_rot");
    unsigned a = 1;
    FACT("blocks.first_launch", blocks(s, [&] { launch(f, other, {&x, &a}); }), 0);
}

TEST_F(Blocking, CopiesAndMemsets)
{
    CUstream s = stream();
    CUstream blocking = stream(CU_STREAM_DEFAULT);
    CUdeviceptr a = buffer(1 << 20), b = buffer(1 << 20);
    std::vector<char> host(1 << 20, 1);
    for (size_t n : {size_t{4}, size_t{65536}, size_t{65540}, size_t{1} << 20})
        FACT("blocks.htod_async_pageable_" + std::to_string(n),
             blocks(s, [&] { drv.cuMemcpyHtoDAsync(a, host.data(), n, s); }), 0);
    FACT("blocks.dtoh_async_pageable",
         blocks(s, [&] { drv.cuMemcpyDtoHAsync(host.data(), a, 64, s); }), 1);
    FACT("blocks.htod_async_pinned", blocks(s, [&] { drv.cuMemcpyHtoDAsync(a, flag + 8, 4, s); }),
         0);
    FACT("blocks.dtoh_async_pinned", blocks(s, [&] { drv.cuMemcpyDtoHAsync(flag + 8, a, 4, s); }),
         0);
    FACT("blocks.dtod_async", blocks(s, [&] { drv.cuMemcpyDtoDAsync(a, b, 64, s); }), 0);
    FACT("blocks.memset_async", blocks(s, [&] { drv.cuMemsetD8Async(a, 1, 64, s); }), 0);
    FACT("blocks.htod_behind_blocking",
         blocks(blocking, [&] { drv.cuMemcpyHtoD(a, host.data(), 64); }), 1);
    FACT("blocks.htod_beside_nonblocking", blocks(s, [&] { drv.cuMemcpyHtoD(a, host.data(), 64); }),
         0);
    FACT("blocks.dtoh_beside_nonblocking", blocks(s, [&] { drv.cuMemcpyDtoH(host.data(), a, 64); }),
         0);
    FACT("blocks.dtod_behind_blocking", blocks(blocking, [&] { drv.cuMemcpyDtoD(a, b, 64); }), 0);
    FACT("blocks.memset_behind_blocking", blocks(blocking, [&] { drv.cuMemsetD8(a, 1, 64); }), 0);
}

TEST_F(Blocking, StreamOrderedAllocation)
{
    CUstream s = stream();
    CUdeviceptr p = 0;
    FACT("blocks.cuMemAllocAsync", blocks(s, [&] { drv.cuMemAllocAsync(&p, 4096, s); }), 0);
    FACT("blocks.cuMemFreeAsync", blocks(s, [&] { drv.cuMemFreeAsync(p, s); }), 0);
}

TEST_F(Blocking, Graphs)
{
    CUstream s = stream(), other = stream();
    CUdeviceptr x = buffer();
    unsigned m = 1, a = 1;
    int n = 4;
    void *args[] = {&x, &m, &a, &n};
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = step;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = args;
    CUgraph g = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec e = nullptr;
    NEED(drv.cuGraphCreate(&g, 0));
    FACT("blocks.cuGraphAddKernelNode",
         blocks(s, [&] { drv.cuGraphAddKernelNode(&node, g, nullptr, 0, &p); }), 0);
    FACT("blocks.cuGraphInstantiate", blocks(s, [&] { drv.cuGraphInstantiateWithFlags(&e, g, 0); }),
         0);
    FACT("blocks.cuGraphUpload", blocks(s, [&] { drv.cuGraphUpload(e, other); }), 0);
    FACT("blocks.cuGraphLaunch", blocks(s, [&] { drv.cuGraphLaunch(e, s); }), 0);
    FACT("blocks.cuGraphLaunch_again_in_flight",
         blocks(s, [&] { drv.cuGraphLaunch(e, s), drv.cuGraphLaunch(e, s); }), 0);
    FACT("blocks.cuGraphExecKernelNodeSetParams_in_flight",
         blocks(s,
                [&] {
                    drv.cuGraphLaunch(e, s);
                    drv.cuGraphExecKernelNodeSetParams(e, node, &p);
                }),
         0);
    FACT("blocks.cuGraphExecDestroy_in_flight",
         blocks(s,
                [&] {
                    drv.cuGraphLaunch(e, s);
                    drv.cuGraphExecDestroy(e);
                }),
         0);
    FACT("blocks.cuGraphDestroy", blocks(s, [&] { drv.cuGraphDestroy(g); }), 0);
}
