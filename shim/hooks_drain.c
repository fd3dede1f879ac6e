/* shim/hooks_drain.c - calls that drain and whose status is looked at: synchronisations, queries,
 * and the copies and events that programs make often enough for it to matter. One line a
 * row; the kinds:
 *   SYNC     the program waits for the device     QUERY   it asks, without waiting
 *   COPY     both: work, and it waits for it
 *   ENQUEUE  more work for a stream
 * Called by the exports; calls capture/{submit,idle,event,first}.h and the driver. `about`: see ag_drain();
 * `what`: see ag_deliver(). */
#include "capture/event.h"
#include "capture/idle.h"
#include "shim/hooks.h"

/* `event`: that the call is about, NULL where it is about none. */
#define SYNC_FOR(event, symbol, about, what, parameters, arguments)                                \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain_event(AG_CAP, AG_DRAIN_SYNC, about, event, AG_ROW_##symbol);                      \
        return ag_deliver(AG_CAP, AG_ROW_##symbol, what, AG_DRIVER(symbol) arguments);             \
    }

#define COPY(symbol, parameters, arguments)                                                        \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        AG_ENQUEUES();                                                                             \
        ag_drain(AG_CAP, AG_DRAIN_SYNC, AG_ABOUT_ALL, AG_ROW_##symbol);                            \
        return ag_deliver(AG_CAP, AG_ROW_##symbol, NULL, AG_DRIVER(symbol) arguments);             \
    }

#define QUERY_FOR(event, symbol, about, what, parameters, arguments)                               \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        ag_drain_event(AG_CAP, AG_DRAIN_ASYNC, about, event, AG_ROW_##symbol);                     \
        const CUresult ret = AG_DRIVER(symbol) arguments;                                          \
        if (ret == CUDA_SUCCESS)                                                                   \
            ag_note_idle(AG_CAP, about);                                                           \
        return ag_deliver(AG_CAP, AG_ROW_##symbol, what, ret);                                     \
    }

#define ENQUEUE(symbol, about, parameters, arguments)                                              \
    CUresult ag_hook_##symbol parameters                                                           \
    {                                                                                              \
        AG_ENQUEUES();                                                                             \
        ag_drain(AG_CAP, AG_DRAIN_ASYNC, about, AG_ROW_##symbol);                                  \
        const CUresult pending = ag_take_pending(AG_CAP);                                          \
        if (pending != CUDA_SUCCESS)                                                               \
            return pending;                                                                        \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol) arguments);                              \
    }

#define SYNC(...) SYNC_FOR(NULL, __VA_ARGS__)
#define QUERY(...) QUERY_FOR(NULL, __VA_ARGS__)

#define PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)
#define BOTH(kind, symbol, about, ...)                                                             \
    kind(symbol, about, __VA_ARGS__) kind(symbol##_ptsz, PER_THREAD(about), __VA_ARGS__)
#define BOTH_PTDS(kind, symbol, ...) kind(symbol, __VA_ARGS__) kind(symbol##_ptds, __VA_ARGS__)

SYNC(cuCtxSynchronize, AG_ABOUT_ALL, NULL, (void), ())
SYNC_FOR(e, cuEventSynchronize, AG_ABOUT_NO_STREAM, e, (CUevent e), (e))
BOTH(SYNC, cuStreamSynchronize, s, s, (CUstream s), (s))
BOTH_PTDS(COPY, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
BOTH_PTDS(COPY, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t n), (to, from, n))
BOTH_PTDS(COPY, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t n), (to, from, n))
BOTH_PTDS(COPY, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))

QUERY_FOR(e, cuEventQuery, AG_ABOUT_NO_STREAM, e, (CUevent e), (e))
BOTH(QUERY, cuStreamQuery, s, s, (CUstream s), (s))

#define ELAPSED(symbol)                                                                            \
    CUresult ag_hook_##symbol(float *ms, CUevent from, CUevent to)                                 \
    {                                                                                              \
        ag_event_read(AG_CAP, from, to, AG_ROW_##symbol);                                          \
        return ag_settle_status(AG_CAP, AG_DRIVER(symbol)(ms, from, to));                          \
    }
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)

BOTH(ENQUEUE, cuMemcpyHtoDAsync_v2, s, (CUdeviceptr to, const void *from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuMemcpyDtoHAsync_v2, s, (void *to, CUdeviceptr from, size_t n, CUstream s),
     (to, from, n, s))
BOTH(ENQUEUE, cuLaunchHostFunc, s, (CUstream s, CUhostFn fn, void *data), (s, fn, data))
