/* capture/drain.c - everything that makes the program see its work, or changes what a launch reads.
 * See submit.h.
 * Start at   ag_drain() */
#include "capture/event.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/liveness.h"
#include "capture/replay.h"
#include "capture/submit.h"
#include <string.h>

static uint32_t logs(struct ag_capture *cap)
{
    return atomic_load_explicit(&cap->contexts, memory_order_acquire);
}

/* Caller has entered the log. */
static void finish(struct ag_oplog *log, enum ag_drain_kind kind, enum ag_refusal why)
{
    struct ag_track *t = log->cur ? log->cur : log->last;
    if (!t)
        return;
    ag_oplog_finish(log, ag_policy_drain(t->policy, kind), why);
    ag_oplog_time(log, t);
    if (kind == AG_DRAIN_SYNC)
        atomic_store_explicit(&log->anchored, 1, memory_order_relaxed);
}

static bool concerned(const struct ag_oplog *log, enum ag_drain_kind kind)
{
    if (atomic_load_explicit(&log->open, memory_order_relaxed))
        return true;
    return kind == AG_DRAIN_SYNC && !atomic_load_explicit(&log->anchored, memory_order_relaxed);
}

/* At a synchronisation of any context: who has moved on makes no call here any more. */
static void give_room(struct ag_oplog *log, CUstream about)
{
    if (!ag_oplog_is_wanted(log) || !ag_oplog_enter_for(log, about))
        return;
    ag_oplog_give_room(log);
    ag_oplog_leave(log);
}

/* Who waits for work of the current context sees none of another's: not worth waiting for that
 * one's submission to find room. What may do anything to any context (AG_DRAIN_ASYNC about all)
 * waits. */
static CUstream about_here(struct ag_oplog *log, enum ag_drain_kind kind, CUstream about)
{
    CUcontext ctx = NULL;
    if (kind == AG_DRAIN_SYNC && about == AG_ABOUT_ALL &&
        ag_real(log->cap->drv, cuCtxGetCurrent)(&ctx) == CUDA_SUCCESS && ctx && ctx != log->ctx)
        return AG_ABOUT_NO_STREAM;
    return about;
}

void ag_drain(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about, enum ag_row row)
{
    if (ag_thread.busy)
        return;
#ifdef AG_MUTANT_NO_DRAIN_BUT_AT_SYNC /* queries, frees and copies leave held work where it is */
    if (kind == AG_DRAIN_ASYNC)
        return;
#endif
#ifdef AG_MUTANT_NO_DRAIN_AT_SYNC
    if (kind == AG_DRAIN_SYNC)
        return;
#endif
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (kind == AG_DRAIN_SYNC) {
            ag_idle_end(log);
            give_room(log, about_here(log, kind, about));
        }
        if (!concerned(log, kind) || !ag_oplog_enter_for(log, about_here(log, kind, about)))
            continue;
        if (log->sent < log->n && cap->counters->drains)
            ag_count(&cap->counters->drains[row], 1);
        finish(log, kind, AG_REFUSAL_SHORT);
        ag_oplog_leave(log);
    }
}

/* Whoever asks after the record was made finds it made: what stands before it had room without the shim as well. One
 * that asks in no order with it may wait for that room too (docs/ARCHITECTURE.md). What stands behind the record may
 * have none: as soon as the driver has the record, nobody waits for the rest. */
static void drain_event(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about,
                        CUevent event, enum ag_row row, bool changes)
{
    struct ag_oplog *log;
#ifdef AG_MUTANT_RECORD_LATE /* who asks for an event, or waits for it, leaves its held record where it is */
    if (event)
        return;
#endif
    ag_drain(cap, kind, about, row);
    if (!event || ag_thread.busy)
        return;
    const struct ag_event *e = ag_event_with_held(cap, event, &log);
    while (e && (atomic_load(&e->held) || (changes && atomic_load(&e->awaited)))) {
        if (!ag_oplog_try_enter(log))
            continue;
        finish(log, kind, AG_REFUSAL_SHORT);
        ag_oplog_leave(log);
        break;
    }
}

void ag_drain_event(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about, CUevent event,
                    enum ag_row row)
{
    drain_event(cap, kind, about, event, row, false);
}

void ag_drain_changed_event(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about,
                            CUevent event, enum ag_row row)
{
    drain_event(cap, kind, about, event, row, true);
}

void ag_note_idle(struct ag_capture *cap, CUstream about)
{
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (ag_thread.busy || !concerned(log, AG_DRAIN_SYNC) || !ag_oplog_enter_for(log, about))
            continue;
        if (!log->n)
            finish(log, AG_DRAIN_SYNC, AG_REFUSAL_SHORT);
        ag_oplog_leave(log);
    }
}

CUresult ag_take_error(struct ag_oplog *log)
{
    const CUresult ret = log->pending;
    log->pending = CUDA_SUCCESS;
    if (ret != CUDA_SUCCESS) {
        atomic_fetch_sub(&log->cap->troubled, 1);
        ag_count(&log->cap->counters->errors_delivered, 1);
    }
    return ret;
}

CUresult ag_take_pending(struct ag_capture *cap)
{
    CUcontext ctx = NULL;
    CUresult ret = CUDA_SUCCESS;
    if (!atomic_load_explicit(&cap->troubled, memory_order_relaxed) || ag_thread.busy)
        return CUDA_SUCCESS;
    if (ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx)
        return CUDA_SUCCESS;
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (log->ctx != ctx || !ag_oplog_enter_for(log, AG_ABOUT_NO_STREAM))
            continue;
        ret = ag_take_error(log);
        ag_oplog_leave(log);
    }
    return ret;
}

/* CONTEXT_IS_DESTROYED is also what a launch into a destroyed stream answers, and then the context
 * lives on (seen on simcuda; 580.159 may crash instead). After a sticky error cuStreamGetId fails
 * too (fact sticky.stream_id). */
static bool context_lives(struct ag_capture *cap)
{
    unsigned long long id;
    return ag_real(cap->drv, cuStreamGetId)(CU_STREAM_LEGACY, &id) == CUDA_SUCCESS;
}

CUresult ag_settle_status(struct ag_capture *cap, CUresult ret)
{
#ifdef AG_MUTANT_STICKY_MISSED /* goes on holding in a context that is lost */
    return ret;
#endif
    if (ag_sticky(ret) && !(ret == CUDA_ERROR_CONTEXT_IS_DESTROYED && context_lives(cap))) {
        ag_capture_wish_off(cap, "the context reported a sticky error");
        if (!ag_thread.busy)
            ag_capture_settle(cap);
    }
    return ret;
}

CUresult ag_deliver(struct ag_capture *cap, enum ag_row row, const void *what, CUresult ret)
{
    if (ret != CUDA_SUCCESS && ret != CUDA_ERROR_NOT_READY)
        return ag_settle_status(cap, ret);
    ag_idle_seen(cap, row, what, ret);
    const CUresult pending = ag_take_pending(cap);
    return pending == CUDA_SUCCESS ? ret : pending;
}

/* Launches of a stream that policy has stepped aside from, not counted yet. */
static void count_passed(struct ag_stream *s)
{
    struct ag_counters *counters = s->log->cap->counters;
    const uint32_t passed = atomic_exchange(&s->passed, 0);
    ag_policy_passed(s->track->policy, passed);
    ag_count(&counters->launches_seen, passed);
    ag_count(&counters->eager[AG_REFUSAL_ASIDE], passed);
}

/* Drains under every log's lock, whatever it looks like from outside. Who enters a log afterwards
 * sees what was written before this (`off`, `capturing`), and holds nothing. False: a log was left alone
 * (see ag_oplog_enter_for), whose work is being submitted. */
static bool drain_surely(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about)
{
    bool all = true;
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!ag_oplog_enter_for(log, about)) {
            all = false;
            continue;
        }
        if (log->n)
            finish(log, kind, AG_REFUSAL_SHORT);
        for (struct ag_stream *s = log->streams; s; s = s->hh.next)
            count_passed(s);
        ag_oplog_leave(log);
    }
    return all;
}

/* Nothing is held any more; where no error waits either, and no submission that bare calls could
 * overtake, the hooks may become bare jumps. */
void ag_capture_settle(struct ag_capture *cap)
{
    if (ag_thread.busy || atomic_exchange(&cap->off, true))
        return;
    if (drain_surely(cap, AG_DRAIN_BREAK, AG_ABOUT_NO_STREAM) && !atomic_load(&cap->troubled))
        cap->turned_off(cap);
}

static void retire(struct ag_capture *cap, enum ag_row row,
                   void (*forget)(struct ag_oplog *, const void *), const void *what)
{
    if (ag_thread.busy)
        return;
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load(&log->used)) /* its context may be gone */
            continue;
        ag_oplog_enter(log);
        finish(log, AG_DRAIN_BREAK, AG_REFUSAL_SHORT);
        forget(log, what);
        ag_oplog_leave(log);
    }
}

static void forget_module(struct ag_oplog *log, const void *module)
{
#ifdef AG_MUTANT_LAYOUT_KEPT
    (void)log;
    (void)module;
#else
    if (!module || ag_funcs_touch_module(&log->funcs, (CUmodule)module))
        ag_oplog_forget(log);
#endif
}

void ag_retire_module(struct ag_capture *cap, CUmodule module, enum ag_row row)
{
    retire(cap, row, forget_module, module);
}

static void forget_stream(struct ag_oplog *log, const void *handle)
{
    struct ag_stream *s;
    HASH_FIND_PTR(log->streams, &handle, s);
#ifdef AG_MUTANT_STREAM_KEPT /* launches of a destroyed stream are held as before */
    s = NULL;
#endif
    if (!s)
        return;
    count_passed(s);
    ag_stream_free(s);
}

void ag_retire_stream(struct ag_capture *cap, CUstream handle, enum ag_row row)
{
    if (handle == CU_STREAM_LEGACY || !handle)
        ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
    else
        retire(cap, row, forget_stream, handle);
}

static void forget_context(struct ag_oplog *log, const void *unused)
{
    (void)unused;
    ag_oplog_forget(log);
    atomic_fetch_add(&log->cap->epoch, 1);
    atomic_store(&log->used, false);
    atomic_store(&log->anchored, 1); /* nothing to tell policy about, and no context to enter */
    log->last = NULL;
    if (log->pending != CUDA_SUCCESS)
        atomic_fetch_sub(&log->cap->troubled, 1);
    log->pending = CUDA_SUCCESS;
}

void ag_memory_came(struct ag_capture *cap, CUdeviceptr base, size_t bytes)
{
    CUcontext ctx = NULL;
    if (ag_real(cap->drv, cuCtxGetCurrent)(&ctx) == CUDA_SUCCESS)
        ag_memory_add(&cap->memory, base, bytes, ctx);
}

bool ag_memory_goes(struct ag_capture *cap, CUdeviceptr base, enum ag_row row)
{
    CUcontext now = NULL;
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
    const CUcontext ctx = ag_memory_remove(&cap->memory, base);
    return ctx && ag_real(cap->drv, cuCtxGetCurrent)(&now) == CUDA_SUCCESS && now == ctx;
}

void ag_retire_contexts(struct ag_capture *cap, CUcontext ctx, enum ag_row row)
{
    ag_memory_forget(&cap->memory, ctx);
    retire(cap, row, forget_context, NULL);
    ag_events_doubt(&cap->events, ctx);
    /* A log has one from its first memset on, be it ever so unused otherwise. */
    for (uint32_t i = 0, n = logs(cap); i < n; i++)
        ag_fill_doubt(&atomic_load_explicit(&cap->logs[i], memory_order_relaxed)->filler);
}

static void forget_all(struct ag_oplog *log, const void *unused)
{
    (void)unused;
    ag_oplog_forget(log);
}

void ag_forget_state(struct ag_capture *cap, enum ag_row row)
{
    retire(cap, row, forget_all, NULL);
}

void ag_attribute_changes(struct ag_capture *cap, CUfunction f, int attribute, int value,
                          enum ag_row row)
{
    bool drain = false, found = false;
#ifdef AG_MUTANT_ATTRIBUTE_IGNORED
    return;
#endif
    for (uint32_t i = 0, n = logs(cap); i < n && !ag_thread.busy; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load(&log->used))
            continue;
        ag_oplog_enter(log);
        const struct ag_func *known = ag_funcs_find(&log->funcs, f);
        found |= known != NULL;
        drain |= known && ag_func_changes(known, attribute, value);
        ag_oplog_leave(log);
    }
    if (drain || !found)
        ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
}

/* Caller has entered the log. */
static void set_or_forget(struct ag_oplog *log, bool set)
{
    if (set)
        return;
    finish(log, AG_DRAIN_BREAK, AG_REFUSAL_SHORT);
    ag_oplog_forget(log);
}

/* The current context, whose log will have something to forget from now on. */
static CUcontext current_context(struct ag_capture *cap)
{
    CUcontext ctx = NULL;
    ag_real(cap->drv, cuCtxGetCurrent)(&ctx);
    struct ag_oplog *log = ctx ? ag_oplog_of(cap, ctx) : NULL;
    if (log)
        atomic_store(&log->used, true);
    return ctx;
}

/* The entry of the handle in this log; made in the current context's, so that the value is known
 * before the first launch. */
static struct ag_func *entry_of(struct ag_oplog *log, CUfunction f, CUcontext current)
{
    return log->ctx == current ? ag_funcs_get(&log->funcs, log->cap->drv, f)
                               : ag_funcs_find(&log->funcs, f);
}

void ag_attribute_set(struct ag_capture *cap, CUfunction f, int attribute, int value)
{
#ifdef AG_MUTANT_ATTRIBUTE_IGNORED
    return;
#endif
    const CUcontext current = current_context(cap);
    if (ag_thread.busy)
        return;
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load(&log->used)) /* its context may be gone */
            continue;
        ag_oplog_enter(log);
        struct ag_func *known = entry_of(log, f, current);
        if (known && ag_func_changes(known, attribute, value))
            set_or_forget(log, ag_func_set(known, attribute, value));
        ag_oplog_leave(log);
    }
}

/* A function made from the kernel carries its name; one of that name that was not is only learned
 * anew. */
static void doubt_namesakes(struct ag_oplog *log, const struct ag_func *kernel, int attribute,
                            int value)
{
    bool set = true;
    for (struct ag_func *f = log->funcs.table; f; f = f->hh.next)
        if (f != kernel && (!f->name || !kernel->name || !strcmp(f->name, kernel->name)))
            set &= ag_func_doubt(f, attribute, value);
    set_or_forget(log, set);
}

void ag_kernel_attribute_set(struct ag_capture *cap, CUkernel kernel, int attribute, int value)
{
#ifdef AG_MUTANT_ATTRIBUTE_IGNORED
    return;
#endif
    if (ag_thread.busy)
        return;
    current_context(cap);
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load(&log->used)) /* its context may be gone */
            continue;
        ag_oplog_enter(log);
        struct ag_func *known = ag_funcs_get(&log->funcs, cap->drv, (CUfunction)kernel);
        if (!known) {
            set_or_forget(log, false);
        } else if (ag_func_changes(known, attribute, value)) {
            if (!ag_func_set(known, attribute, value))
                set_or_forget(log, false);
            else
                doubt_namesakes(log, known, attribute, value);
        }
        ag_oplog_leave(log);
    }
}

static AG_ATOMIC(CUkernel) * made_slot(struct ag_capture *cap, CUkernel kernel)
{
    const CUcontext current = current_context(cap);
    struct ag_oplog *log = current ? ag_oplog_of(cap, current) : NULL;
    const uint64_t hash = (uintptr_t)kernel * 0x9E3779B97F4A7C15ull;
    return log ? &log->made[hash >> 32 & (AG_MADE_SLOTS - 1)] : NULL;
}

bool ag_function_is_made(struct ag_capture *cap, CUkernel kernel)
{
    AG_ATOMIC(CUkernel) *slot = made_slot(cap, kernel);
    return slot && kernel && atomic_load_explicit(slot, memory_order_relaxed) == kernel;
}

void ag_function_made(struct ag_capture *cap, CUkernel kernel)
{
    AG_ATOMIC(CUkernel) *slot = made_slot(cap, kernel);
    if (slot)
        atomic_store_explicit(slot, kernel, memory_order_relaxed);
}

void ag_capture_begins(struct ag_capture *cap, enum ag_row row)
{
#ifdef AG_MUTANT_CAPTURE_IGNORED /* work is held and handed over during a capture as at any time */
    return;
#endif
    ag_first_note(&cap->first);
    atomic_fetch_add(&cap->capturing, 1);
    if (ag_thread.busy)
        return;
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
    drain_surely(cap, AG_DRAIN_ASYNC, AG_ABOUT_ALL);
}

void ag_capture_began(struct ag_capture *cap, CUresult ret)
{
    if (ret != CUDA_SUCCESS)
        atomic_fetch_sub(&cap->capturing, 1);
}

/* Did this answer of EndCapture end a capture? The 900 codes say that it ended invalid, WRONG_THREAD
 * among them (conformance fact capture.end_after_wrong_thread); ILLEGAL_STATE is the answer where
 * there was none. */
static bool over(CUresult ret)
{
    switch ((int)ret) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
        return true;
    default:
        return false;
    }
}

void ag_capture_ended(struct ag_capture *cap, CUresult ret)
{
    uint32_t now = atomic_load(&cap->capturing);
    while (over(ret) && now && !atomic_compare_exchange_weak(&cap->capturing, &now, now - 1))
        ;
}

/* Half a bound has passed since the last look. Has the log held for too long? That is, an op that
 * was there before: at all, when the program went silent; for its whole patience otherwise. */
static bool overdue(struct ag_oplog *log)
{
    const uint32_t flushes = atomic_load_explicit(&log->flushes, memory_order_relaxed) + 1;
    const uint32_t arrived = atomic_load_explicit(&log->arrived, memory_order_relaxed);
    const bool silent = arrived == log->looked_arrived;
    log->looked_arrived = arrived;
    if (!atomic_load_explicit(&log->holding, memory_order_relaxed)) {
        log->looked = 0;
        return false;
    }
    if (log->looked != flushes) {
        log->looked = flushes;
        log->looks = 0;
        return false;
    }
    const uint32_t patience = atomic_load_explicit(&log->patience, memory_order_relaxed);
    return ++log->looks + 1 >= 2 * patience || silent;
}

/* What is overdue goes to the driver. False: that took so long that another thread has the watch. */
static bool submit_overdue(struct ag_oplog *log)
{
    struct ag_capture *cap = log->cap;
    const uint32_t looked = log->looked; /* the watch's */
    atomic_store(&log->attended, true);
    const uint32_t shift = ag_liveness_away(cap->liveness);
    if (ag_oplog_enter_for(log, AG_ABOUT_NO_STREAM)) {
        if (log->sent < log->n && looked == atomic_load(&log->flushes) + 1) {
            ag_count(&cap->counters->liveness_flushes, 1);
            finish(log, AG_DRAIN_BREAK, AG_REFUSAL_LIVENESS);
        }
        ag_oplog_leave(log);
    }
    atomic_store(&log->attended, false);
    return ag_liveness_back(cap->liveness, shift);
}

bool ag_look(struct ag_capture *cap)
{
    for (uint32_t i = 0, n = logs(cap); i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (!atomic_load(&log->attended) && overdue(log) && !submit_overdue(log))
            return false;
    }
    return true;
}
