/* tests/differential/saboteur.c - a preloaded library that breaks one promise about what streams carry.
 * Called by  programs of the differential test, in the place of the shim      Calls  the driver
 * Threads    one lock around what is put off
 * Promise    AG_SABOTAGE=NAME: one of the faults below, each of them one that a shim which holds copies, memsets,
 *            events and host functions could have. Everything else passes through.
 * Start at   is() */
#define _GNU_SOURCE
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF(x) #x
#define REAL(name) ((__typeof__(&name))real(NAME_OF(name)))

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static bool is(const char *fault)
{
    const char *chosen = getenv("AG_SABOTAGE");
    return chosen && !strcmp(chosen, fault);
}

static bool every(unsigned n)
{
    static unsigned calls;
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % n == 0;
}

/* ---- calls that are put off until the next one ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum { NOTHING, UPLOAD, WAIT } kind;
    CUdeviceptr dst;
    const void *src;
    size_t bytes;
    CUstream stream;
    CUevent event;
} late;

static void catch_up(void)
{
    pthread_mutex_lock(&lock);
    if (late.kind == UPLOAD)
        REAL(cuMemcpyHtoDAsync)(late.dst, late.src, late.bytes, late.stream);
    else if (late.kind == WAIT)
        REAL(cuStreamWaitEvent)(late.stream, late.event, 0);
    late.kind = NOTHING;
    pthread_mutex_unlock(&lock);
}

static bool is_pageable(const void *p)
{
    unsigned type;
    return REAL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p) !=
           CUDA_SUCCESS;
}

/* ---- what is no fault: every operation as a graph of one node ---- */

static CUresult run_graph(CUgraph graph, CUresult added, CUstream stream)
{
    CUgraphExec exec = NULL;
    CUresult ret = added ? added : cuGraphInstantiate(&exec, graph, 0);
    if (!ret)
        ret = cuGraphLaunch(exec, stream);
    if (exec)
        cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    return ret;
}

static bool as_graph(CUgraph *out, CUcontext *out_ctx)
{
    return is("as_graphs") && !cuCtxGetCurrent(out_ctx) && !cuGraphCreate(out, 0);
}

static CUresult copy_as_graph(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext ctx;
    if (!bytes || !as_graph(&graph, &ctx))
        return CUDA_ERROR_UNKNOWN;
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = src,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = dst,
                       .WidthInBytes = bytes,
                       .Height = 1,
                       .Depth = 1};
    return run_graph(graph, cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, ctx), stream);
}

static CUresult memset_as_graph(CUdeviceptr at, unsigned value, size_t n, CUstream stream)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext ctx;
    if (!n || !as_graph(&graph, &ctx))
        return CUDA_ERROR_UNKNOWN;
    CUDA_MEMSET_NODE_PARAMS set = {at, 0, value, 4, n, 1};
    return run_graph(graph, cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, ctx), stream);
}

static CUresult record_as_graph(CUevent event, CUstream stream)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext ctx;
    if (!event || !as_graph(&graph, &ctx))
        return CUDA_ERROR_UNKNOWN;
    return run_graph(graph, cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), stream);
}

static CUresult wait_as_graph(CUstream stream, CUevent event)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext ctx;
    if (!as_graph(&graph, &ctx))
        return CUDA_ERROR_UNKNOWN;
    return run_graph(graph, cuGraphAddEventWaitNode(&node, graph, NULL, 0, event), stream);
}

static CUresult host_as_graph(CUstream stream, CUhostFn fn, void *data)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext ctx;
    CUDA_HOST_NODE_PARAMS host = {fn, data};
    if (!as_graph(&graph, &ctx))
        return CUDA_ERROR_UNKNOWN;
    return run_graph(graph, cuGraphAddHostNode(&node, graph, NULL, 0, &host), stream);
}

/* The source is read when the copy is passed on, not at the call. */
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    catch_up();
    if (is("snapshot_skipped") && bytes && dst > 0x10000 && is_pageable(src)) {
        pthread_mutex_lock(&lock);
        late = (__typeof__(late)){UPLOAD, dst, src, bytes, stream, NULL};
        pthread_mutex_unlock(&lock);
        return CUDA_SUCCESS;
    }
    return REAL(cuMemcpyHtoDAsync)(dst, src, bytes, stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    if (is("wait_dropped") && every(3))
        return CUDA_SUCCESS;
    if (!flags && !wait_as_graph(stream, event))
        return CUDA_SUCCESS;
    if (!is("wait_means_later_record"))
        return REAL(cuStreamWaitEvent)(stream, event, flags);
    catch_up();
    pthread_mutex_lock(&lock);
    late = (__typeof__(late)){WAIT, 0, NULL, 0, stream, event};
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* A stream of this library's own, if it belongs to the current context; else NULL. */
static CUstream side_stream(void)
{
    static CUstream side;
    CUcontext owner = NULL, here = NULL;
    cuCtxGetCurrent(&here);
    pthread_mutex_lock(&lock);
    if (!side)
        cuStreamCreate(&side, CU_STREAM_NON_BLOCKING);
    CUstream found = side;
    pthread_mutex_unlock(&lock);
    return !cuStreamGetCtx(found, &owner) && owner == here ? found : NULL;
}

/* Recorded before the work that was put in the stream just before. */
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUstream side = is("recorded_early") && every(3) ? side_stream() : NULL;
    if (side)
        return REAL(cuEventRecord)(event, side);
    if (!record_as_graph(event, stream))
        return CUDA_SUCCESS;
    return REAL(cuEventRecord)(event, stream);
}

CUresult cuEventQuery(CUevent event)
{
    CUresult ret = REAL(cuEventQuery)(event);
    return is("done_too_soon") && ret == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : ret;
}

/* All streams are non-blocking. */
CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    return REAL(cuStreamCreate)(out, is("legacy_order_lost") ? CU_STREAM_NON_BLOCKING : flags);
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t n, CUstream stream)
{
    catch_up();
    if (!memset_as_graph(at, value, n, stream))
        return CUDA_SUCCESS;
    if (is("memset_lost") && every(5))
        return CUDA_SUCCESS;
    if (is("memset_twice") && every(5))
        REAL(cuMemsetD32Async)(at, value, n, stream);
    return REAL(cuMemsetD32Async)(at, value, n, stream);
}

/* The operands of this thread's copy before. */
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    static __thread CUdeviceptr dst_before, src_before;
    static __thread size_t bytes_before;
    catch_up();
    CUresult ret = copy_as_graph(dst, src, bytes, stream);
    if (ret && is("stale_copy") && dst_before && every(4))
        ret = REAL(cuMemcpyDtoDAsync)(dst_before, src_before, bytes_before, stream);
    if (ret)
        ret = REAL(cuMemcpyDtoDAsync)(dst, src, bytes, stream);
    dst_before = dst;
    src_before = src;
    bytes_before = bytes;
    return ret;
}

/* Called at once, in the caller's thread. */
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
    if (!host_as_graph(stream, fn, data))
        return CUDA_SUCCESS;
    if (!is("called_too_soon") || !every(4))
        return REAL(cuLaunchHostFunc)(stream, fn, data);
    CUresult ret = REAL(cuStreamQuery)(stream);
    if (ret != CUDA_SUCCESS && ret != CUDA_ERROR_NOT_READY)
        return ret;
    if (ret == CUDA_ERROR_NOT_READY) /* or it would stand at a gate that nobody opens */
        return REAL(cuLaunchHostFunc)(stream, fn, data);
    fn(data);
    return CUDA_SUCCESS;
}

/* Freed when it is said, not when the stream gets there. */
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    CUstream side = is("freed_too_soon") ? side_stream() : NULL;
    return REAL(cuMemFreeAsync)(at, side ? side : stream);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    CUresult ret = REAL(cuStreamWriteValue32)(stream, at, value, flags);
    if (!ret && is("value_twice") && every(4))
        ret = REAL(cuStreamWriteValue32)(stream, at, value, flags);
    return ret;
}

/* ---- what puts nothing off, but must not overtake what was ---- */

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra)
{
    catch_up();
    return REAL(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    catch_up();
    return REAL(cuStreamSynchronize)(stream);
}

CUresult cuCtxSynchronize(void)
{
    catch_up();
    return REAL(cuCtxSynchronize)();
}
