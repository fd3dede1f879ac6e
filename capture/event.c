/* capture/event.c - see event.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/event.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/track.h"
#include "capture/transfer.h"
#include <stdlib.h>
#include <string.h>

/* The caller holds the lock, here and below. */
static struct ag_event *find(const struct ag_events *events, CUevent handle)
{
    struct ag_event *e;
    HASH_FIND_PTR(events->table, &handle, e);
    return e;
}

static void keep_for_later(struct ag_events *events, struct ag_event *e)
{
    e->next = events->spare;
    events->spare = e;
}

static void forget(struct ag_events *events, CUevent handle)
{
    struct ag_event *e = find(events, handle);
    if (!e)
        return;
    HASH_DEL(events->table, e);
    keep_for_later(events, e);
    atomic_fetch_sub_explicit(&events->n, 1, memory_order_relaxed);
}

/* An entry that nothing refers to any more, or a new one. */
static struct ag_event *make_entry(struct ag_events *events)
{
    struct ag_event *e = events->spare;
    if (!e || atomic_load(&e->held) || atomic_load(&e->awaited))
        return calloc(1, sizeof *e);
    events->spare = e->next;
    return e;
}

static void remember(struct ag_events *events, CUevent handle, unsigned flags, CUcontext ctx,
                     unsigned long long ctx_id)
{
    const unsigned before = HASH_COUNT(events->table);
    struct ag_event *e = before < AG_EVENTS_MAX ? make_entry(events) : NULL;
    if (!e)
        return;
    e->handle = handle;
    e->ctx = ctx;
    e->ctx_id = ctx_id;
    e->doubted = false;
    e->generation = ++events->generations;
    e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    e->shared = flags & CU_EVENT_INTERPROCESS;
    e->captured = false;
    HASH_ADD_PTR(events->table, handle, e);
    if (HASH_COUNT(events->table) == before)
        keep_for_later(events, e);
    else
        atomic_fetch_add_explicit(&events->n, 1, memory_order_relaxed);
}

/* The current context; NULL: none. */
static CUcontext current(struct ag_capture *cap, unsigned long long *out_id)
{
    CUcontext ctx = NULL;
    *out_id = 0;
    if (ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx ||
        ag_real(cap->drv, cuCtxGetId)(ctx, out_id) != CUDA_SUCCESS)
        return NULL;
    return ctx;
}

void ag_event_came(struct ag_capture *cap, CUevent event, unsigned flags)
{
    struct ag_events *events = &cap->events;
    unsigned long long id;
    const CUcontext ctx = current(cap, &id);
    ag_lock_take(&events->lock);
    forget(events, event); /* of a context that ended */
    remember(events, event, flags, ctx, id);
    ag_lock_give(&events->lock);
}

void ag_event_goes(struct ag_capture *cap, CUevent event, enum ag_row row)
{
    struct ag_events *events = &cap->events;
    ag_drain_changed_event(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, event, row);
    ag_lock_take(&events->lock);
    forget(events, event);
    ag_lock_give(&events->lock);
}

static void set_captured(struct ag_events *events, CUevent event, bool captured)
{
    ag_lock_take(&events->lock);
    struct ag_event *e = find(events, event);
    if (e)
        e->captured = captured;
    ag_lock_give(&events->lock);
}

void ag_event_lost(struct ag_capture *cap, CUevent event)
{
    set_captured(&cap->events, event, true);
}

void ag_events_doubt(struct ag_events *events, CUcontext ctx)
{
    struct ag_event *e, *next;
    ag_lock_take(&events->lock);
    HASH_ITER (hh, events->table, e, next)
        e->doubted |= !ctx || e->ctx == ctx;
    ag_lock_give(&events->lock);
}

const struct ag_event *ag_event_with_held(struct ag_capture *cap, CUevent event,
                                          struct ag_oplog **out_log)
{
    struct ag_events *events = &cap->events;
    if (!atomic_load_explicit(&events->held, memory_order_relaxed))
        return NULL;
    ag_lock_take(&events->lock);
    const struct ag_event *e = find(events, event);
    const CUcontext ctx = e ? e->ctx : NULL;
    ag_lock_give(&events->lock);
    if (!ctx || !(atomic_load(&e->held) || atomic_load(&e->awaited)))
        return NULL;
    *out_log = ag_oplog_of(cap, ctx);
    return *out_log ? e : NULL;
}

static struct ag_event_record record_of(const void *words)
{
    struct ag_event_record r;
    memcpy(&r, words, sizeof r);
    return r;
}

static struct ag_event *entry_of(const void *words)
{
    return (struct ag_event *)(uintptr_t)record_of(words).entry;
}

/* Op i of the log is a record; `covered`: so is the op e->last, of the same event; `behind`: there is a wait for
 * it before. */
static void compare(struct ag_oplog *log, uint32_t i, struct ag_event *e, bool covered, bool behind)
{
    unsigned char *words = log->args + log->ops[i].args;
    struct ag_event_record r = record_of(words);
    r.dead = 0;
    r.covers = covered;
    r.behind = behind;
    memcpy(words, &r, sizeof r);
    if (covered) {
        words = log->args + log->ops[e->last].args;
        r = record_of(words);
        r.dead = 1;
        memcpy(words, &r, sizeof r);
    }
    e->last = i;
}

static struct ag_event *awaited_by(const struct ag_oplog *log, uint32_t i)
{
    struct ag_event_wait w;
    memcpy(&w, log->args + log->ops[i].args, sizeof w);
    return (struct ag_event *)(uintptr_t)w.entry;
}

static void await(struct ag_oplog *log, uint32_t i)
{
    struct ag_event *e = awaited_by(log, i);
    if (e)
        e->last = UINT32_MAX;
}

void ag_event_awaited(struct ag_oplog *log)
{
    struct ag_event *e = awaited_by(log, log->n - 1);
    await(log, log->n - 1);
    if (e) {
        atomic_fetch_add(&e->awaited, 1);
        atomic_fetch_add(&log->cap->events.held, 1);
    }
    ag_count(&log->cap->counters->waits_held, 1);
}

void ag_event_waited(struct ag_oplog *log, const struct ag_op *op)
{
    struct ag_event *e = awaited_by(log, (uint32_t)(op - log->ops));
    if (!e)
        return;
    atomic_fetch_sub(&e->awaited, 1);
    atomic_fetch_sub(&log->cap->events.held, 1);
}

static bool is_behind_wait(const struct ag_oplog *log, uint32_t i, const struct ag_event *e)
{
    while (i--)
        if (log->ops[i].sig->func->kind == AG_OP_WAIT && awaited_by(log, i) == e)
            return true;
    return false;
}

bool ag_event_is_behind(const struct ag_oplog *log, const struct ag_op *op)
{
    return record_of(log->args + op->args).behind;
}

void ag_events_compare(struct ag_oplog *log)
{
    bool waits = false;
    for (uint32_t i = 0; i < log->n; i++)
        if (log->ops[i].sig->func->kind == AG_OP_RECORD)
            entry_of(log->args + log->ops[i].args)->last = UINT32_MAX;
    for (uint32_t i = 0; i < log->n; i++) {
        if (log->ops[i].sig->func->kind == AG_OP_WAIT)
            await(log, i);
        waits |= log->ops[i].sig->func->kind == AG_OP_WAIT;
        if (log->ops[i].sig->func->kind != AG_OP_RECORD)
            continue;
        struct ag_event *e = entry_of(log->args + log->ops[i].args);
        compare(log, i, e, e->last != UINT32_MAX, waits && is_behind_wait(log, i, e));
    }
}

static bool is_record_of(const struct ag_oplog *log, uint32_t op, uint32_t end,
                         const struct ag_event *e)
{
    return op < end && log->ops[op].sig->func->kind == AG_OP_RECORD &&
           entry_of(log->args + log->ops[op].args) == e;
}

void ag_event_held(struct ag_oplog *log)
{
    const uint32_t i = log->n - 1;
    struct ag_event *e = entry_of(log->args + log->ops[i].args);
    compare(log, i, e, atomic_load(&e->held) && is_record_of(log, e->last, i, e),
            atomic_load(&e->awaited));
    atomic_store(&e->in, ag_track_stream(log->cur, log->ops[i].sig)->handle);
    atomic_fetch_add(&e->held, 1);
    atomic_fetch_add(&log->cap->events.held, 1);
    ag_count(&log->cap->counters->records_held, 1);
}

void ag_event_submitted(struct ag_oplog *log, const void *words)
{
    atomic_fetch_sub(&entry_of(words)->held, 1);
    atomic_fetch_sub(&log->cap->events.held, 1);
}

bool ag_event_counts(const struct ag_oplog *log, const struct ag_op *op)
{
    return op->sig->func->kind != AG_OP_RECORD ||
           (atomic_load(&entry_of(log->args + op->args)->held) &&
            atomic_load(&log->cap->events.held));
}

/* What may become of a record of the event. */
enum use { USE_UNKNOWN, USE_DOUBTED, USE_TIMED, USE_CAPTURED, USE_PLAIN };

static enum use look_up(struct ag_events *events, CUevent event, CUcontext ctx, uint64_t *out_entry,
                        uint64_t *out_generation)
{
    enum use use = USE_UNKNOWN;
    ag_lock_take(&events->lock);
    struct ag_event *e = find(events, event);
    if (e && e->timed)
        use = USE_TIMED;
    else if (e && e->captured)
        use = USE_CAPTURED;
    else if (e && ctx && e->ctx == ctx && !e->shared)
        use = e->doubted ? USE_DOUBTED : USE_PLAIN;
    if (use == USE_PLAIN) {
        *out_entry = (uintptr_t)e;
        *out_generation = e->generation;
    }
    ag_lock_give(&events->lock);
    return use;
}

/* Is the event's context the current one still? A handle may come back for another. */
static void settle_doubt(struct ag_capture *cap, CUevent event)
{
    struct ag_events *events = &cap->events;
    unsigned long long id;
    const CUcontext ctx = current(cap, &id);
    ag_lock_take(&events->lock);
    struct ag_event *e = find(events, event);
    if (e && ctx && e->ctx == ctx) {
        if (e->ctx_id != id)
            e->ctx = NULL;
        e->doubted = false;
    }
    ag_lock_give(&events->lock);
}

/* What may become of a record of the event, or of a wait for it, in the current context. */
static enum use use_of(struct ag_capture *cap, CUevent event, uint64_t *out_entry,
                       uint64_t *out_generation)
{
    CUcontext ctx = NULL;
    if (ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS)
        ctx = NULL;
    const enum use use = look_up(&cap->events, event, ctx, out_entry, out_generation);
    if (use != USE_DOUBTED)
        return use;
    settle_doubt(cap, event);
    return look_up(&cap->events, event, ctx, out_entry, out_generation);
}

/* Has the stream had few ops since its last record? Asked once for each. The same in each iteration of a
 * program, however its ops are held and cut. A stream that takes turns with others has records as ops always: one
 * by itself would end the segments of all of them. */
static bool is_dense(struct ag_capture *cap, CUstream stream)
{
    enum ag_refusal why;
    struct ag_policy_view view;
    struct ag_stream *s = ag_find_stream(cap, stream, &why);
    if (!s || atomic_load_explicit(&s->timed, memory_order_relaxed) ||
        atomic_load_explicit(&s->aside, memory_order_relaxed) ||
        !ag_oplog_enter_current_for(s->log, s->handle))
        return false;
    ag_policy_look(s->track->policy, &view);
    const bool dense = view.ops < s->recorded_at + AG_DENSE_OPS || s->track->streams > 1;
    s->recorded_at = view.ops + dense; /* as an op of its own it is counted next */
    ag_oplog_leave(s->log);
    return dense;
}

static bool means_per_thread(const struct ag_launch *l)
{
    return l->stream == CU_STREAM_PER_THREAD || (!l->stream && ag_transfer_is_per_thread(l->row));
}

/* C2: where the driver would accept it, and it pays. */
static bool may_be_held(struct ag_capture *cap, const struct ag_launch *l, enum use use)
{
    struct ag_counters *counters = cap->counters;
    const struct ag_event_record *r = l->words;
    if (means_per_thread(l) || r->flags || use != USE_PLAIN) {
        ag_count(use == USE_TIMED ? &counters->records_timed : &counters->records_unproven, 1);
        return false;
    }
    if (atomic_load(&cap->off) || atomic_load(&cap->capturing))
        return false;
    const bool dense = is_dense(cap, l->stream);
    ag_count(&counters->records_sparse, !dense);
    return dense;
}

/* The event has been recorded in the stream, of the current context; CU_STREAM_PER_THREAD for a per-thread default
 * stream. */
static void note_timed(struct ag_capture *cap, CUstream stream)
{
    struct ag_events *events = &cap->events;
    enum ag_refusal why;
    uint32_t read = atomic_load_explicit(&events->read, memory_order_relaxed);
    if (!read || stream == CU_STREAM_PER_THREAD || atomic_load(&cap->off) ||
        atomic_load(&cap->capturing))
        return;
    /* Fails where another thread was here or has read a time: that one counts. */
    atomic_compare_exchange_strong(&events->read, &read, read - 1);
    struct ag_stream *s = ag_find_stream(cap, stream, &why);
    if (s)
        atomic_store_explicit(&s->timed, AG_TIMED_OPS, memory_order_relaxed);
}

/* A record that another stream's log holds comes first. */
static void settle_elsewhere(struct ag_capture *cap, const struct ag_launch *l)
{
    const struct ag_event_record *r = l->words;
    const struct ag_event *e = (const struct ag_event *)(uintptr_t)r->entry;
    const CUstream stream = l->stream ? l->stream : CU_STREAM_LEGACY;
    if (atomic_load(&e->held) && atomic_load(&e->in) != stream)
        ag_drain_event(cap, AG_DRAIN_ASYNC, stream, e->handle, l->row);
}

CUresult ag_submit_record(struct ag_capture *cap, enum ag_row row, CUevent event, CUstream stream,
                          unsigned flags)
{
    struct ag_event_record r = {.event = (uintptr_t)event, .flags = flags};
    const struct ag_launch l = {.row = row,
                                .handle = AG_OP_HANDLE(AG_OP_RECORD),
                                .stream = stream,
                                .kind = AG_OP_RECORD,
                                .words = &r};
    if (ag_thread.busy)
        return ag_pass(cap, &l, AG_REFUSAL_NONE);
    const enum use use = use_of(cap, event, &r.entry, &r.generation);
    const bool captures = atomic_load(&cap->capturing);
    const bool hold = may_be_held(cap, &l, use);
    if (hold)
        settle_elsewhere(cap, &l);
    const CUresult ret = hold ? ag_submit_launch(cap, &l) : ag_pass(cap, &l, AG_REFUSAL_NONE);
    if (ret != CUDA_SUCCESS)
        return ret;
    if (captures || use == USE_CAPTURED)
        set_captured(&cap->events, event, captures);
    ag_idle_mark(cap, row, event, stream);
    if (use == USE_TIMED)
        note_timed(cap, means_per_thread(&l) ? CU_STREAM_PER_THREAD : stream);
    return ret;
}

/* Does the stream take turns with others? */
static bool is_joined(struct ag_capture *cap, CUstream stream)
{
    enum ag_refusal why;
    const struct ag_stream *s = ag_find_stream(cap, stream, &why);
    return s && atomic_load_explicit(&s->joined, memory_order_relaxed);
}

CUresult ag_submit_wait(struct ag_capture *cap, enum ag_row row, CUstream stream, CUevent event,
                        unsigned flags)
{
    struct ag_event_wait w = {.event = (uintptr_t)event, .flags = flags};
    const struct ag_launch l = {.row = row,
                                .handle = AG_OP_HANDLE(AG_OP_WAIT),
                                .stream = stream,
                                .kind = AG_OP_WAIT,
                                .words = &w};
    const bool hold = !ag_thread.busy && !flags && !means_per_thread(&l) &&
                      !atomic_load(&cap->off) && !atomic_load(&cap->capturing) &&
                      is_joined(cap, stream) &&
                      use_of(cap, event, &w.entry, &w.generation) == USE_PLAIN;
    return hold ? ag_submit_launch(cap, &l) : ag_pass(cap, &l, AG_REFUSAL_NONE);
}

void ag_event_read(struct ag_capture *cap, CUevent from, CUevent to, enum ag_row row)
{
    ag_drain_event(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, from, row);
    ag_drain_event(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, to, row);
    atomic_store_explicit(&cap->events.read, AG_TIMED_RECORDS, memory_order_relaxed);
}

void ag_events_clear(struct ag_events *events)
{
    struct ag_event *e, *next;
    HASH_ITER (hh, events->table, e, next)
        forget(events, e->handle);
    while ((e = events->spare)) {
        events->spare = e->next;
        free(e);
    }
}
