/* capture/idle.c - see idle.h. */
#include "capture/idle.h"
#include "capture/guard.h"
#include "capture/track.h"

/* Does the call's success say that all that the stream in the trial was given is done? A copy within
 * the device returns before it; one of the host's memory waits for the legacy stream; another event
 * than the last may stand for less. */
static bool covers(struct ag_oplog *log, enum ag_row row, const void *what)
{
    const CUstream of = atomic_load_explicit(&log->idle.of, memory_order_relaxed);
    switch ((int)row) {
    case AG_ROW_cuCtxSynchronize:
        return true;
    case AG_ROW_cuStreamSynchronize:
    case AG_ROW_cuStreamQuery:
        return (what ? what : CU_STREAM_LEGACY) == of;
    case AG_ROW_cuStreamSynchronize_ptsz:
    case AG_ROW_cuStreamQuery_ptsz:
        return what == of;
    case AG_ROW_cuMemcpyHtoD_v2:
    case AG_ROW_cuMemcpyDtoH_v2:
        return of == CU_STREAM_LEGACY;
    case AG_ROW_cuEventSynchronize:
    case AG_ROW_cuEventQuery:
        return what && what == atomic_load_explicit(&log->idle.mark, memory_order_relaxed);
    default:
        return false;
    }
}

static bool is_current(struct ag_oplog *log)
{
    CUcontext ctx = NULL;
    return ag_real(log->cap->drv, cuCtxGetCurrent)(&ctx) == CUDA_SUCCESS && ctx == log->ctx;
}

static void begin(struct ag_oplog *log)
{
    uint64_t none = 0;
    if (!atomic_load(&log->anchored))
        return; /* another thread's op has come meanwhile */
    atomic_compare_exchange_strong(&log->idle.since, &none, ag_now_ns());
    if (!atomic_load(&log->anchored))
        atomic_store(&log->idle.since, 0);
}

void ag_idle_seen(struct ag_capture *cap, enum ag_row row, const void *what, CUresult ret)
{
    const uint32_t n = atomic_load_explicit(&cap->contexts, memory_order_acquire);
    for (uint32_t i = 0; i < n && !ag_thread.busy; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load_explicit(&log->idle.of, memory_order_relaxed))
            continue;
        if (ret != CUDA_SUCCESS)
            ag_idle_end(log);
        else if (covers(log, row, what) && is_current(log))
            begin(log);
    }
}

void ag_idle_mark(struct ag_capture *cap, enum ag_row row, CUevent event, CUstream stream)
{
    const bool own = row == AG_ROW_cuEventRecord_ptsz || row == AG_ROW_cuEventRecordWithFlags_ptsz;
    const uint32_t n = atomic_load_explicit(&cap->contexts, memory_order_acquire);
    if (!stream && !own)
        stream = CU_STREAM_LEGACY;
    for (uint32_t i = 0; i < n && !ag_thread.busy; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        const CUstream of = atomic_load_explicit(&log->idle.of, memory_order_relaxed);
        if (of && of == stream && is_current(log))
            atomic_store(&log->idle.mark, event);
        else if (of && atomic_load(&log->idle.mark) == event)
            atomic_store(&log->idle.mark, NULL);
    }
}

void ag_idle_end(struct ag_oplog *log)
{
    if (!atomic_load_explicit(&log->idle.since, memory_order_relaxed))
        return;
    const uint64_t since = atomic_exchange(&log->idle.since, 0);
    if (since)
        atomic_fetch_add(&log->idle.ns, ag_now_ns() - since);
}

void ag_idle_tell(struct ag_oplog *log)
{
    const CUstream of = atomic_load(&log->idle.of);
    struct ag_stream *s;
    ag_idle_end(log);
    atomic_store(&log->idle.mark, NULL);
    const uint64_t ns = atomic_exchange(&log->idle.ns, 0);
    HASH_FIND_PTR(log->streams, &of, s);
    if (s && ns)
        ag_policy_idle(s->track->policy, ns);
}

static void watch(struct ag_oplog *log, CUstream stream)
{
    atomic_store(&log->idle.of, stream);
    atomic_store(&log->idle.since, 0);
    atomic_store(&log->idle.ns, 0);
    atomic_store(&log->idle.mark, NULL);
}

void ag_idle_forget(struct ag_oplog *log, const struct ag_stream *s)
{
    if (atomic_load_explicit(&log->idle.of, memory_order_relaxed) == s->handle)
        watch(log, NULL);
}

void ag_idle_watch(struct ag_oplog *log, const struct ag_track *t)
{
    const struct ag_stream *s = ag_track_first(t);
    const bool measured = ag_policy_on_trial(t->policy) && !ag_policy_aside(t->policy);
    if (!s || t->streams > 1)
        return;
    if (!measured)
        ag_idle_forget(log, s);
    else if (atomic_load_explicit(&log->idle.of, memory_order_relaxed) != s->handle)
        watch(log, s->handle);
}
