/* tests/conformance/capture_facts.cc - stream capture: what it forbids to whom, and its codes.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one makes the calls of "another thread"
 * Promise    each test is about one thing that the shim relies on
 * Start at   class Capture                                                                  */
#include "tests/conformance/facts.h"

class Capture : public Facts
{
  protected:
    CUresult begin(CUstream s, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL)
    {
        return drv.cuStreamBeginCapture(s, mode);
    }
    // The code of EndCapture; the graph, if any, is counted and destroyed.
    CUresult end(CUstream s, size_t *out_nodes = nullptr)
    {
        CUgraph g = nullptr;
        CUresult ret = drv.cuStreamEndCapture(s, &g);
        size_t n = 0;
        if (g) {
            drv.cuGraphGetNodes(g, nullptr, &n);
            drv.cuGraphDestroy(g);
        }
        if (out_nodes)
            *out_nodes = n;
        return ret;
    }
    // What another thread gets for the call during a capture of `mode`, then what EndCapture says.
    void elsewhere(const std::string &name, CUstreamCaptureMode mode,
                   const std::function<CUresult()> &call, CUresult want, CUresult want_end)
    {
        CUstream s = stream();
        CUresult got = CUDA_ERROR_UNKNOWN;
        NEED(begin(s, mode));
        std::thread([&] {
            drv.cuCtxSetCurrent(ctx);
            got = call();
        }).join();
        FACT("capture.elsewhere." + name, got, want);
        FACT("capture.elsewhere." + name + ".end", end(s), want_end);
    }
};

TEST_F(Capture, CollectsLaunches)
{
    CUstream s = stream();
    size_t n = 0;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    FACT("capture.begin", begin(s), CUDA_SUCCESS);
    for (int i = 0; i < 64; i++)
        NEED(launch(null_kernel, s, {}));
    NEED(drv.cuStreamIsCapturing(s, &status));
    FACT("capture.status", status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    FACT("capture.end", end(s, &n), CUDA_SUCCESS);
    FACT("capture.nodes", n, 64);
    NEED(drv.cuStreamIsCapturing(s, &status));
    FACT("capture.status_after", status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Capture, HasCodesForTheWrongMoment)
{
    CUstream s = stream();
    FACT("capture.begin_legacy", begin(nullptr), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FACT("capture.end_without_begin", end(s), CUDA_ERROR_ILLEGAL_STATE);
    NEED(begin(s));
    FACT("capture.begin_twice", begin(s), CUDA_ERROR_ILLEGAL_STATE);
    FACT("capture.end_after_begin_twice", end(s), CUDA_SUCCESS);
}

TEST_F(Capture, ForbidsWaitingForItsStream)
{
    CUstream s = stream();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    NEED(begin(s));
    FACT("capture.sync_own", drv.cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    NEED(drv.cuStreamIsCapturing(s, &status));
    FACT("capture.status_after_sync", status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    FACT("capture.launch_when_invalid", launch(null_kernel, s, {}),
         CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    FACT("capture.end_when_invalid", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    NEED(begin(s));
    FACT("capture.query_own", drv.cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FACT("capture.end_after_query", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    NEED(begin(s));
    FACT("capture.ctx_sync", drv.cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FACT("capture.end_after_ctx_sync", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    NEED(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    FACT("capture.ctx_sync_relaxed", drv.cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FACT("capture.end_after_ctx_sync_relaxed", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, KeepsEventsApart)
{
    CUstream s = stream(), other = stream();
    CUevent captured = event(), outside = event();
    NEED(drv.cuEventRecord(outside, other));
    NEED(drv.cuCtxSynchronize());
    NEED(begin(s));
    NEED(drv.cuEventRecord(captured, s));
    FACT("capture.query_captured_event", drv.cuEventQuery(captured), CUDA_ERROR_CAPTURED_EVENT);
    FACT("capture.end_after_event_query", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    NEED(begin(s));
    FACT("capture.wait_outside_event", drv.cuStreamWaitEvent(s, outside, 0),
         CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    FACT("capture.end_after_outside_event", end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, SpreadsThroughEvents)
{
    CUstream s = stream(), t = stream();
    CUevent fork = event(), join = event();
    size_t n = 0;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    NEED(begin(s));
    NEED(launch(null_kernel, s, {}));
    NEED(drv.cuEventRecord(fork, s));
    FACT("capture.spread", drv.cuStreamWaitEvent(t, fork, 0), CUDA_SUCCESS);
    NEED(drv.cuStreamIsCapturing(t, &status));
    FACT("capture.spread_status", status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    NEED(launch(null_kernel, t, {}));
    FACT("capture.end_in_other_stream", end(t), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    NOTE("capture.end_after_unmatched", end(s));
    NEED(begin(s));
    NEED(drv.cuEventRecord(fork, s));
    NEED(drv.cuStreamWaitEvent(t, fork, 0));
    NEED(launch(null_kernel, t, {}));
    FACT("capture.unjoined", end(s), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    NEED(begin(s));
    NEED(launch(null_kernel, s, {}));
    NEED(drv.cuEventRecord(fork, s));
    NEED(drv.cuStreamWaitEvent(t, fork, 0));
    NEED(launch(null_kernel, t, {}));
    NEED(drv.cuEventRecord(join, t));
    NEED(drv.cuStreamWaitEvent(s, join, 0));
    NEED(launch(null_kernel, s, {}));
    FACT("capture.joined", end(s, &n), CUDA_SUCCESS);
    FACT("capture.joined_nodes", n, 3);
}

TEST_F(Capture, DoesNotMerge)
{
    CUstream s = stream(), t = stream();
    CUevent e = event();
    NEED(begin(s));
    NEED(begin(t));
    NEED(drv.cuEventRecord(e, s));
    FACT("capture.merge", drv.cuStreamWaitEvent(t, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    NOTE("capture.merge_end_source", end(s));
    NOTE("capture.merge_end_target", end(t));
}

TEST_F(Capture, KnowsTheLegacyStream)
{
    CUstream nb = stream(), blocking = stream(CU_STREAM_DEFAULT);
    NEED(begin(nb));
    FACT("capture.legacy_launch_beside_nonblocking", launch(null_kernel, nullptr, {}),
         CUDA_SUCCESS);
    FACT("capture.end_after_legacy_launch", end(nb), CUDA_SUCCESS);
    NEED(begin(blocking));
    FACT("capture.legacy_launch_beside_blocking", launch(null_kernel, nullptr, {}),
         CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    FACT("capture.end_after_implicit", end(blocking), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, EndsWithARefusedLaunch)
{
    CUstream s = stream();
    size_t n = 0;
    NEED(begin(s));
    FACT("capture.bad_launch",
         drv.cuLaunchKernel(null_kernel, 1, 1, 1, 2048, 1, 1, 0, s, nullptr, nullptr),
         CUDA_ERROR_INVALID_VALUE);
    FACT("capture.launch_after_bad_launch", launch(null_kernel, s, {}),
         CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    FACT("capture.end_after_bad_launch", end(s, &n), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    NEED(begin(s));
    FACT("capture.end_empty", end(s, &n), CUDA_SUCCESS);
    FACT("capture.nodes_empty", n, 0);
}

TEST_F(Capture, BelongsToItsThreadUnlessRelaxed)
{
    CUstream s = stream();
    CUresult got = CUDA_ERROR_UNKNOWN;
    auto end_elsewhere = [&] {
        std::thread([&] {
            drv.cuCtxSetCurrent(ctx);
            got = end(s);
        }).join();
        return got;
    };
    NEED(begin(s));
    FACT("capture.end_in_other_thread", end_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    FACT("capture.end_after_wrong_thread", end(s), CUDA_ERROR_ILLEGAL_STATE);
    NEED(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    FACT("capture.relaxed_end_in_other_thread", end_elsewhere(), CUDA_SUCCESS);
}

TEST_F(Capture, OfOtherThreadsForbidsUnsafeCalls)
{
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    const CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const CUresult broken = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, ok = CUDA_SUCCESS;
    CUstream other = stream();
    CUevent e = event();
    CUdeviceptr p = 0, d = buffer();
    int v = 0;
    NEED(drv.cuEventRecord(e, other));
    NEED(drv.cuCtxSynchronize());
    elsewhere(
        "launch", global, [&] { return launch(null_kernel, other, {}); }, ok, ok);
    elsewhere(
        "malloc", global, [&] { return drv.cuMemAlloc(&p, 64); }, no, broken);
    elsewhere(
        "malloc_local", local, [&] { return drv.cuMemAlloc(&p, 64); }, ok, ok);
    elsewhere(
        "malloc_exchanged", global,
        [&] {
            CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
            drv.cuThreadExchangeStreamCaptureMode(&relaxed);
            return drv.cuMemAlloc(&p, 64);
        },
        ok, ok);
    elsewhere(
        "stream_query", global, [&] { return drv.cuStreamQuery(other); }, no, broken);
    elsewhere(
        "stream_sync", global, [&] { return drv.cuStreamSynchronize(other); }, no, broken);
    elsewhere(
        "event_query", global, [&] { return drv.cuEventQuery(e); }, no, broken);
    elsewhere(
        "event_sync", global, [&] { return drv.cuEventSynchronize(e); }, no, broken);
    elsewhere(
        "event_record", global, [&] { return drv.cuEventRecord(e, other); }, ok, ok);
    elsewhere(
        "ctx_sync", global, [&] { return drv.cuCtxSynchronize(); }, no, broken);
    elsewhere(
        "ctx_sync_local", local, [&] { return drv.cuCtxSynchronize(); }, no, broken);
    elsewhere(
        "memcpy_sync", global, [&] { return drv.cuMemcpyHtoD(d, &v, 4); }, ok, ok);
    elsewhere(
        "memcpy_sync_dtoh", global, [&] { return drv.cuMemcpyDtoH(&v, d, 4); }, ok, ok);
    elsewhere(
        "memset_sync", global, [&] { return drv.cuMemsetD8(d, 0, 4); }, ok, ok);
    elsewhere(
        "memcpy_async", global, [&] { return drv.cuMemcpyDtoDAsync(d, d + 64, 4, other); }, ok, ok);
    elsewhere(
        "event_create", global,
        [&] {
            CUevent made = nullptr;
            CUresult ret = drv.cuEventCreate(&made, 0);
            drv.cuEventDestroy(made);
            return ret;
        },
        ok, ok);
    elsewhere(
        "stream_create", global,
        [&] {
            CUstream made = nullptr;
            CUresult ret = drv.cuStreamCreate(&made, 1);
            drv.cuStreamDestroy(made);
            return ret;
        },
        ok, ok);
}

TEST_F(Capture, OfOtherThreadsForbidsMakingAndDestroyingExecs)
{
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, bad = CUDA_ERROR_INVALID_VALUE;
    const CUresult broken = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, ok = CUDA_SUCCESS;
    CUgraph g = nullptr;
    CUgraphExec e = nullptr, refused = nullptr, none = nullptr;
    CUgraphNode node = nullptr;
    CUstream other = stream();
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = null_kernel;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    NEED(drv.cuGraphCreate(&g, 0));
    elsewhere(
        "graph_add", global, [&] { return drv.cuGraphAddKernelNode(&node, g, nullptr, 0, &p); }, ok,
        ok);
    NEED(drv.cuGraphInstantiateWithFlags(&e, g, 0));
    auto instantiate = [&] { return drv.cuGraphInstantiateWithFlags(&refused, g, 0); };
    elsewhere("graph_instantiate", global, instantiate, no, broken);
    /* The capture is asked before the handle here ... */
    elsewhere(
        "graph_exec_destroy", global, [&] { return drv.cuGraphExecDestroy(none); }, no, broken);
    /* ... and not at all there. */
    elsewhere(
        "graph_upload", global, [&] { return drv.cuGraphUpload(none, other); }, bad, ok);
    elsewhere(
        "graph_launch", global, [&] { return drv.cuGraphLaunch(none, other); }, bad, ok);
    elsewhere(
        "graph_set_params", global,
        [&] { return drv.cuGraphExecKernelNodeSetParams(none, node, &p); }, bad, ok);
    elsewhere(
        "live_exec_upload", global, [&] { return drv.cuGraphUpload(e, other); }, ok, ok);
    elsewhere(
        "live_exec_launch", global, [&] { return drv.cuGraphLaunch(e, other); }, ok, ok);
    elsewhere(
        "live_exec_set_params", global,
        [&] { return drv.cuGraphExecKernelNodeSetParams(e, node, &p); }, ok, ok);
    elsewhere(
        "live_exec_destroy", global, [&] { return drv.cuGraphExecDestroy(e); }, no, broken);
    /* What a builder beside the program must do. */
    elsewhere(
        "graph_instantiate_exchanged", global,
        [&] {
            CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
            drv.cuThreadExchangeStreamCaptureMode(&relaxed);
            return instantiate();
        },
        ok, ok);
    NEED(drv.cuGraphExecDestroy(e));
    NEED(drv.cuGraphExecDestroy(refused));
    NEED(drv.cuGraphDestroy(g));
}
