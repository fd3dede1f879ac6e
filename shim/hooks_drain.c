/* shim/hooks_drain.c - calls that drain and whose status is looked at: synchronisations, queries,
 * and the copies, memsets and events that programs make often enough for it to matter. One line a
 * row; the kinds: SYNC     the program waits for the device          QUERY  the program asks,
 * without waiting ENQUEUE  more work for a stream Called by the exports; calls capture/submit.c and
 * the driver. `about`: see ag_drain(). */
#include "shim/hooks.h"

#define SYNC(symbol, about, parameters, arguments)                                                 \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_SYNC, about, AG_ROW_##symbol);                                   \
        return ag_deliver(AG_CAP, AG_DRIVER(symbol) arguments);                                    \
    }

#define QUERY(symbol, about, parameters, arguments)                                                \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, about, AG_ROW_##symbol);                                  \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        if (ret == CUDA_SUCCESS)                                                                   \
            ag_note_idle(AG_CAP, about);                                                           \
        return ag_deliver(AG_CAP, ret);                                                            \
    }

#define ENQUEUE(symbol, about, parameters, arguments)                                              \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, about, AG_ROW_##symbol);                                  \
        const CUresult pending = ag_take_pending(AG_CAP);                                          \
        if (pending != CUDA_SUCCESS)                                                               \
            return pending;                                                                        \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol) arguments);                              \
    }

#define BOTH(kind, symbol, about, parameters, arguments)                                           \
    kind(symbol, about, parameters, arguments)                                                     \
        kind(symbol##_ptsz, (about) ? (about) : CU_STREAM_PER_THREAD, parameters, arguments)
#define BOTH_PTDS(kind, symbol, about, parameters, arguments)                                      \
    kind(symbol, about, parameters, arguments) kind(symbol##_ptds, about, parameters, arguments)

SYNC(cuCtxSynchronize, AG_ABOUT_ALL, (void), ())
SYNC(cuEventSynchronize, AG_ABOUT_NO_STREAM, (CUevent e), (e))
BOTH(SYNC, cuStreamSynchronize, s, (CUstream s), (s))
BOTH_PTDS(SYNC, cuMemcpy, AG_ABOUT_ALL, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyHtoD_v2, AG_ABOUT_ALL, (CUdeviceptr to, const void *from, size_t n),
          (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyDtoH_v2, AG_ABOUT_ALL, (void *to, CUdeviceptr from, size_t n),
          (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyDtoD_v2, AG_ABOUT_ALL, (CUdeviceptr to, CUdeviceptr from, size_t n),
          (to, from, n))

QUERY(cuEventQuery, AG_ABOUT_NO_STREAM, (CUevent e), (e))
BOTH(QUERY, cuStreamQuery, s, (CUstream s), (s))

BOTH(ENQUEUE, cuEventRecord, s, (CUevent e, CUstream s), (e, s))
BOTH(ENQUEUE, cuEventRecordWithFlags, s, (CUevent e, CUstream s, unsigned flags), (e, s, flags))
BOTH(ENQUEUE, cuStreamWaitEvent, s, (CUstream s, CUevent e, unsigned flags), (s, e, flags))
BOTH(ENQUEUE, cuMemcpyHtoDAsync_v2, s, (CUdeviceptr to, const void *from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemcpyDtoHAsync_v2, s, (void *to, CUdeviceptr from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemsetD8Async, s, (CUdeviceptr to, unsigned char value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuMemsetD16Async, s, (CUdeviceptr to, unsigned short value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuMemsetD32Async, s, (CUdeviceptr to, unsigned value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuLaunchHostFunc, s, (CUstream s, CUhostFn fn, void *data), (s, fn, data))
