/* shim/hooks_state.c - state that a launch reads, objects that come and go, the program's captures,
 * look-ups. Called by the exports; calls capture/submit.c and the driver. */
#include "shim/hooks.h"
#include "capture/event.h"
#include "capture/transfer.h"
#include "shim/resolve.h"

/* TRACK by value: drains only when the value changes. */
#define ATTRIBUTE(symbol, parameters, arguments, handle, attribute, value)                         \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_attribute_changes(AG_CAP, handle, attribute, value, AG_ROW_##symbol);                   \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        if (ret == CUDA_SUCCESS)                                                                   \
            ag_attribute_set(AG_CAP, handle, attribute, value);                                    \
        return ag_settle_status(AG_CAP, ret);                                                      \
    }

/* TRACK of what is set rarely: everything learned is forgotten. */
#define STATE(symbol, parameters, arguments)                                                       \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_forget_state(AG_CAP, AG_ROW_##symbol);                                                  \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol) arguments);                              \
    }

/* RETIRE: what refers to the object is gone before the driver may give its handle to another. */
#define RETIRE(symbol, parameters, arguments, retire)                                              \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        retire;                                                                                    \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol) arguments);                              \
    }

#define BEGIN_CAPTURE(symbol, parameters, arguments)                                               \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_capture_begins(AG_CAP, AG_ROW_##symbol);                                                \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        ag_capture_began(AG_CAP, ret);                                                             \
        return ag_settle_status(AG_CAP, ret);                                                      \
    }

#define END_CAPTURE(symbol)                                                                        \
    CUresult ag_hook_##symbol(CUstream s, CUgraph *graph)                                          \
    {                                                                                              \
        const CUresult ret = AG_DRIVER(symbol)(s, graph);                                          \
        ag_capture_ended(AG_CAP, ret);                                                             \
        return ag_settle_status(AG_CAP, ret);                                                      \
    }

ATTRIBUTE(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute a, int v), (f, a, v), f, (int)a,
          v)
ATTRIBUTE(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache c), (f, c), f, AG_FUNC_CACHE_CONFIG,
          (int)c)
ATTRIBUTE(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig c), (f, c), f,
          AG_FUNC_SHARED_CONFIG, (int)c)

CUresult ag_hook_cuKernelSetAttribute(CUfunction_attribute a, int v, CUkernel kernel,
                                      CUdevice device)
{
    ag_attribute_changes(AG_CAP, (CUfunction)kernel, (int)a, v, AG_ROW_cuKernelSetAttribute);
    const CUresult ret = AG_DRIVER(cuKernelSetAttribute)(a, v, kernel, device);
    if (ret == CUDA_SUCCESS)
        ag_kernel_attribute_set(AG_CAP, kernel, (int)a, v);
    return ag_settle_status(AG_CAP, ret);
}

STATE(cuKernelSetCacheConfig, (CUkernel k, CUfunc_cache c, CUdevice d), (k, c, d))
STATE(cuFuncSetBlockShape, (CUfunction f, int x, int y, int z), (f, x, y, z))
STATE(cuFuncSetSharedSize, (CUfunction f, unsigned bytes), (f, bytes))
STATE(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value))
STATE(cuCtxSetCacheConfig, (CUfunc_cache c), (c))
STATE(cuCtxSetSharedMemConfig, (CUsharedconfig c), (c))
STATE(cuCtxSetFlags, (unsigned flags), (flags))
STATE(cuCtxResetPersistingL2Cache, (void), ())
STATE(cuStreamSetAttribute, (CUstream s, CUstreamAttrID a, const CUstreamAttrValue *v), (s, a, v))
STATE(cuStreamSetAttribute_ptsz, (CUstream s, CUstreamAttrID a, const CUstreamAttrValue *v),
      (s, a, v))
STATE(cuStreamCopyAttributes, (CUstream to, CUstream from), (to, from))
STATE(cuStreamCopyAttributes_ptsz, (CUstream to, CUstream from), (to, from))

/* CUDA 13.0 leaves graphs with kernels of such modules undefined. */
#define REFERENCE(symbol, parameters, arguments)                                                   \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_capture_wish_off(AG_CAP, "the program uses texture or surface references");             \
        ag_capture_settle(AG_CAP);                                                                 \
        return AG_DRIVER(symbol) arguments;                                                        \
    }
REFERENCE(cuModuleGetTexRef, (CUtexref * ref, CUmodule m, const char *name), (ref, m, name))
REFERENCE(cuModuleGetSurfRef, (CUsurfref * ref, CUmodule m, const char *name), (ref, m, name))

CUresult ag_hook_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuLibraryGetKernel);
    const CUresult ret = AG_DRIVER(cuLibraryGetKernel)(kernel, library, name);
    if (ret == CUDA_SUCCESS && kernel)
        ag_func_note_kernel(*kernel);
    ag_prepare_fills_at_rest(AG_CAP);
    return ag_settle_status(AG_CAP, ret);
}

/* cuBLAS and cuDNN ask for the same function before nearly every launch. The first time it may be
 * loaded, which can wait for the device; from then on the answer is a look-up. */
CUresult ag_hook_cuKernelGetFunction(CUfunction *f, CUkernel kernel)
{
    if (!ag_function_is_made(AG_CAP, kernel))
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuKernelGetFunction);
    const CUresult ret = AG_DRIVER(cuKernelGetFunction)(f, kernel);
    if (ret == CUDA_SUCCESS)
        ag_function_made(AG_CAP, kernel);
    ag_prepare_fills_at_rest(AG_CAP);
    return ag_settle_status(AG_CAP, ret);
}

/* CREATE. Waits for the context, but only where the image is one: what the shim needs comes afterwards. */
#define LOAD(symbol, parameters, arguments)                                                        \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_##symbol);                           \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        if (ret == CUDA_SUCCESS)                                                                   \
            ag_prepare_fills(AG_CAP);                                                              \
        return ag_settle_status(AG_CAP, ret);                                                      \
    }
LOAD(cuModuleLoad, (CUmodule * m, const char *file), (m, file))
LOAD(cuModuleLoadData, (CUmodule * m, const void *image), (m, image))
LOAD(cuModuleLoadDataEx,
     (CUmodule * m, const void *image, unsigned n, CUjit_option *options, void **values),
     (m, image, n, options, values))
LOAD(cuModuleLoadFatBinary, (CUmodule * m, const void *image), (m, image))

RETIRE(cuModuleUnload, (CUmodule m), (m), ag_retire_module(AG_CAP, m, AG_ROW_cuModuleUnload))
RETIRE(cuLibraryUnload, (CUlibrary l), (l), ag_retire_module(AG_CAP, NULL, AG_ROW_cuLibraryUnload))
RETIRE(cuStreamDestroy, (CUstream s), (s), ag_retire_stream(AG_CAP, s, AG_ROW_cuStreamDestroy))
RETIRE(cuStreamDestroy_v2, (CUstream s), (s),
       ag_retire_stream(AG_CAP, s, AG_ROW_cuStreamDestroy_v2))
RETIRE(cuCtxDestroy, (CUcontext c), (c), ag_retire_contexts(AG_CAP, c, AG_ROW_cuCtxDestroy))
RETIRE(cuCtxDestroy_v2, (CUcontext c), (c), ag_retire_contexts(AG_CAP, c, AG_ROW_cuCtxDestroy_v2))
RETIRE(cuCtxDetach, (CUcontext c), (c), ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuCtxDetach))
RETIRE(cuDevicePrimaryCtxRelease, (CUdevice d), (d),
       ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuDevicePrimaryCtxRelease))
RETIRE(cuDevicePrimaryCtxRelease_v2, (CUdevice d), (d),
       ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuDevicePrimaryCtxRelease_v2))
RETIRE(cuDevicePrimaryCtxReset, (CUdevice d), (d),
       ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuDevicePrimaryCtxReset))
RETIRE(cuDevicePrimaryCtxReset_v2, (CUdevice d), (d),
       ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuDevicePrimaryCtxReset_v2))
RETIRE(cuGreenCtxDestroy, (CUgreenCtx c), (c),
       ag_retire_contexts(AG_CAP, NULL, AG_ROW_cuGreenCtxDestroy))

CUresult ag_hook_cuEventCreate(CUevent *e, unsigned flags)
{
    const CUresult ret = AG_DRIVER(cuEventCreate)(e, flags);
    if (ret == CUDA_SUCCESS)
        ag_event_came(AG_CAP, *e, flags);
    return ag_settle_status(AG_CAP, ret);
}

RETIRE(cuEventDestroy, (CUevent e), (e), ag_event_goes(AG_CAP, e, AG_ROW_cuEventDestroy))
RETIRE(cuEventDestroy_v2, (CUevent e), (e), ag_event_goes(AG_CAP, e, AG_ROW_cuEventDestroy_v2))

CUresult ag_hook_cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
    ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAlloc_v2);
    const CUresult ret = AG_DRIVER(cuMemAlloc_v2)(p, n);
    if (ret == CUDA_SUCCESS)
        ag_memory_came(AG_CAP, *p, n);
    ag_prepare_fills_at_rest(AG_CAP);
    return ag_settle_status(AG_CAP, ret);
}

CUresult ag_hook_cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
                                    unsigned element)
{
    ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuMemAllocPitch_v2);
    const CUresult ret = AG_DRIVER(cuMemAllocPitch_v2)(p, pitch, width, height, element);
    if (ret == CUDA_SUCCESS)
        ag_memory_came(AG_CAP, *p, *pitch * height);
    ag_prepare_fills_at_rest(AG_CAP);
    return ag_settle_status(AG_CAP, ret);
}

/* Waits for all work of the allocation's context. What is none (NULL among it) is answered at once. */
CUresult ag_hook_cuMemFree_v2(CUdeviceptr p)
{
    if (ag_memory_goes(AG_CAP, p, AG_ROW_cuMemFree_v2))
        ag_prepare_fills(AG_CAP);
    return ag_settle_status(AG_CAP, AG_DRIVER(cuMemFree_v2)(p));
}

RETIRE(cuMemFreeAsync, (CUdeviceptr p, CUstream s), (p, s),
       (AG_ENQUEUES(), ag_memory_goes(AG_CAP, p, AG_ROW_cuMemFreeAsync)))
RETIRE(cuMemFreeAsync_ptsz, (CUdeviceptr p, CUstream s), (p, s),
       (AG_ENQUEUES(), ag_memory_goes(AG_CAP, p, AG_ROW_cuMemFreeAsync_ptsz)))

BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream s), (s))
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream s), (s))
BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode m), (s, m))
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream s, CUstreamCaptureMode m), (s, m))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph,
              (CUstream s, CUgraph g, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
               size_t n, CUstreamCaptureMode m),
              (s, g, nodes, edges, n, m))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz,
              (CUstream s, CUgraph g, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
               size_t n, CUstreamCaptureMode m),
              (s, g, nodes, edges, n, m))
END_CAPTURE(cuStreamEndCapture)
END_CAPTURE(cuStreamEndCapture_ptsz)

/* The driver decides whether there is an answer and which variant; only the pointer is exchanged.
 */
static void exchange(CUresult ret, const char *name, void **pfn)
{
    if (ret != CUDA_SUCCESS || !pfn || !*pfn)
        return;
    *pfn = ag_resolve_address(*pfn, name);
    if (ag_resolve_leaked())
        ag_runtime_leaked();
}

CUresult ag_hook_cuGetProcAddress(const char *name, void **pfn, int version, cuuint64_t flags)
{
    const CUresult ret = AG_DRIVER(cuGetProcAddress)(name, pfn, version, flags);
    exchange(ret, name, pfn);
    return ret;
}

CUresult ag_hook_cuGetProcAddress_v2(const char *name, void **pfn, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status)
{
    const CUresult ret = AG_DRIVER(cuGetProcAddress_v2)(name, pfn, version, flags, status);
    exchange(ret, name, pfn);
    return ret;
}
