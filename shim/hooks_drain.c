/* shim/hooks_drain.c - calls that drain and whose status is looked at: synchronisations, queries,
 * and the copies, memsets and events that programs make often enough for it to matter. One line a
 * row; the kinds: SYNC     the program waits for the device          QUERY  the program asks,
 * without waiting ENQUEUE  more work for a stream Called by the exports; calls capture/submit.c and
 * the driver. */
#include "shim/hooks.h"

#define SYNC(symbol, parameters, arguments)                                                        \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_SYNC, AG_ROW_##symbol);                                          \
        return ag_deliver(AG_CAP, AG_DRIVER(symbol) arguments);                                    \
    }

#define QUERY(symbol, parameters, arguments)                                                       \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ROW_##symbol);                                         \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        if (ret == CUDA_SUCCESS)                                                                   \
            ag_note_idle(AG_CAP);                                                                  \
        return ag_deliver(AG_CAP, ret);                                                            \
    }

#define ENQUEUE(symbol, parameters, arguments)                                                     \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, AG_ROW_##symbol);                                         \
        const CUresult pending = ag_take_pending(AG_CAP);                                          \
        if (pending != CUDA_SUCCESS)                                                               \
            return pending;                                                                        \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol) arguments);                              \
    }

#define BOTH(kind, symbol, parameters, arguments)                                                  \
    kind(symbol, parameters, arguments) kind(symbol##_ptsz, parameters, arguments)
#define BOTH_PTDS(kind, symbol, parameters, arguments)                                             \
    kind(symbol, parameters, arguments) kind(symbol##_ptds, parameters, arguments)

SYNC(cuCtxSynchronize, (void), ())
SYNC(cuEventSynchronize, (CUevent e), (e))
BOTH(SYNC, cuStreamSynchronize, (CUstream s), (s))
BOTH_PTDS(SYNC, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t n), (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t n), (to, from, n))
BOTH_PTDS(SYNC, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))

QUERY(cuEventQuery, (CUevent e), (e))
BOTH(QUERY, cuStreamQuery, (CUstream s), (s))

BOTH(ENQUEUE, cuEventRecord, (CUevent e, CUstream s), (e, s))
BOTH(ENQUEUE, cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned flags), (e, s, flags))
BOTH(ENQUEUE, cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags), (s, e, flags))
BOTH(ENQUEUE, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t n, CUstream s),
     (to, value, n, s))
BOTH(ENQUEUE, cuLaunchHostFunc, (CUstream s, CUhostFn fn, void *data), (s, fn, data))
