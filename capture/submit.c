/* capture/submit.c - a launch arrives. See submit.h; what drains is in drain.c.
 * Start at   ag_submit_launch(), then accept() */
#include "capture/submit.h"
#include "capture/event.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/liveness.h"
#include "capture/replay.h"
#include "capture/track.h"
#include "capture/transfer.h"
#include <stdlib.h>
#include <string.h>

#define ASIDE_BATCH 1024 /* launches that pass before policy is told */

/* The launch as the program made it, through the entry point it used. */
static CUresult send(struct ag_capture *cap, const struct ag_launch *l)
{
    const struct ag_driver *drv = cap->drv;
    const struct ag_config *c = &l->config;
    if (l->kind != AG_OP_KERNEL)
        return ag_send_transfer(drv, l);
    if (l->row == AG_ROW_cuLaunchKernelEx)
        return ag_real(drv, cuLaunchKernelEx)(l->full, l->handle, l->params, l->extra);
    if (l->row == AG_ROW_cuLaunchKernelEx_ptsz)
        return ag_real(drv, cuLaunchKernelEx_ptsz)(l->full, l->handle, l->params, l->extra);
    const __typeof__(&cuLaunchKernel) launch = l->row == AG_ROW_cuLaunchKernel_ptsz
                                                   ? ag_real(drv, cuLaunchKernel_ptsz)
                                                   : ag_real(drv, cuLaunchKernel);
    return launch(l->handle, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                  c->block[2], c->shared_bytes, l->stream, l->params, l->extra);
}

static void count_seen(struct ag_capture *cap, const struct ag_launch *l)
{
    ag_count(ag_seen_counter(cap->counters, l->kind), 1);
}

/* Seen, and given to the driver as it is. */
static void count_eager(struct ag_capture *cap, const struct ag_launch *l, enum ag_refusal why)
{
    count_seen(cap, l);
    ag_count(&cap->counters->eager[why], l->kind == AG_OP_KERNEL);
}

/* Entry points that mean the per-thread default stream by NULL. */
static bool is_per_thread(enum ag_row row)
{
    return row == AG_ROW_cuLaunchKernel_ptsz || row == AG_ROW_cuLaunchKernelEx_ptsz ||
           ag_transfer_is_per_thread(row);
}

/* The i-th event that the call records or waits for, NULL after the last. */
static CUevent event_of(const struct ag_launch *l, unsigned i)
{
    if (l->kind == AG_OP_RECORD)
        return i ? NULL : (CUevent)(uintptr_t)((const struct ag_event_record *)l->words)->event;
    if (l->kind == AG_OP_WAIT)
        return i ? NULL : (CUevent)(uintptr_t)((const struct ag_event_wait *)l->words)->event;
    return ag_attrs_event(l->full, i);
}

/* Not held, and nothing before it stays held: the driver has a prefix of the call order. */
CUresult ag_pass(struct ag_capture *cap, const struct ag_launch *l, enum ag_refusal why)
{
    const bool per_thread = !l->stream && is_per_thread(l->row);
    ag_first_note(&cap->first);
    const CUstream about = per_thread ? CU_STREAM_PER_THREAD : l->stream;
    CUevent event;
    ag_drain(cap, AG_DRAIN_ASYNC, about, l->row);
    for (unsigned i = 0; (event = event_of(l, i)); i++) {
        if (l->kind == AG_OP_WAIT)
            ag_drain_event(cap, AG_DRAIN_ASYNC, about, event, l->row);
        else
            ag_drain_changed_event(cap, AG_DRAIN_ASYNC, about, event, l->row);
        if (l->kind == AG_OP_KERNEL)
            ag_event_lost(cap, event);
    }
    const CUresult pending = ag_take_pending(cap);
    if (pending != CUDA_SUCCESS)
        return pending;
    count_eager(cap, l, why);
    return ag_settle_status(cap, send(cap, l));
}

static enum ag_refusal inadmissible(const struct ag_capture *cap, const struct ag_launch *l)
{
    const bool per_thread =
        l->stream == CU_STREAM_PER_THREAD || (!l->stream && is_per_thread(l->row));
    if (atomic_load_explicit(&cap->off, memory_order_relaxed))
        return AG_REFUSAL_OFF;
    if (per_thread)
        return AG_REFUSAL_PER_THREAD_STREAM;
    if (!l->handle)
        return AG_REFUSAL_ARGUMENTS;
    if (atomic_load_explicit(&cap->capturing, memory_order_relaxed))
        return AG_REFUSAL_CAPTURING;
    return !l->full || ag_attrs_admissible(l->full) ? AG_REFUSAL_NONE : AG_REFUSAL_ATTRIBUTE;
}

/* The last one of the thread is remembered. */
struct ag_stream *ag_find_stream(struct ag_capture *cap, CUstream handle, enum ag_refusal *out_why)
{
    const uint32_t epoch = atomic_load_explicit(&cap->epoch, memory_order_acquire);
    struct ag_thread *t = &ag_thread;
    CUcontext ctx = NULL;
    *out_why = AG_REFUSAL_NO_MEMORY;
    if (!handle)
        handle = CU_STREAM_LEGACY;
    if (ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx)
        return NULL;
    if (t->stream && t->ctx == ctx && t->handle == handle && t->epoch == epoch)
        return t->stream;
    ag_first_note(&cap->first);
    struct ag_oplog *log = ag_oplog_of(cap, ctx);
    if (!log)
        return NULL;
    *out_why = AG_REFUSAL_QUEUE_FULL;
    if (!ag_oplog_enter_for(log, handle))
        return NULL;
    *out_why = AG_REFUSAL_NO_MEMORY;
    struct ag_stream *s = ag_stream_of(log, handle);
    ag_oplog_leave(log);
    *t = (struct ag_thread){t->busy, t->number, t->id, ctx, handle, epoch, s};
    return s;
}

static bool reserve_args(struct ag_oplog *log, const struct ag_func *f)
{
    const size_t need = log->args_used + f->bytes + 16;
    if (need > log->args_room) {
        const size_t room = need * 2 < 65536 ? 65536 : need * 2;
        unsigned char *grown = realloc(log->args, room);
        if (!grown)
            return false;
        log->args = grown;
        log->args_room = room;
    }
    if (f->params > log->pointers_room) {
        void **grown = realloc(log->pointers, f->params * sizeof *grown);
        if (!grown)
            return false;
        log->pointers = grown;
        log->pointers_room = f->params;
    }
    return true;
}

/* Most are pointers and numbers: spared the call. */
static void copy_param(unsigned char *to, const void *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, size);
}

static bool copy_params(unsigned char *to, const struct ag_func *f, void **params)
{
    if (!params)
        return f->params == 0;
    for (uint32_t i = 0; i < f->params; i++) {
        if (!params[i])
            return false;
        copy_param(to + f->param[i].offset, params[i], f->param[i].size);
    }
    return true;
}

/* `extra` is a list of (name, value) pairs ended by CU_LAUNCH_PARAM_END. */
static bool copy_extra(unsigned char *to, const struct ag_func *f, void **extra)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)extra[i + 1];
        else
            return false;
    }
    if (size < f->bytes || (f->bytes && !buffer))
        return false;
    if (f->bytes)
        memcpy(to, buffer, f->bytes);
    return true;
}

/* Copies the argument bytes behind those of the segment; the op is not part of it yet. */
static bool copy_args(struct ag_oplog *log, struct ag_sig *sig, const struct ag_launch *l)
{
    const struct ag_func *f = sig->func;
    if ((l->params && l->extra) || !reserve_args(log, f))
        return false;
    unsigned char *to = log->args + log->args_used;
    if (f->padded)
        memset(to, 0, f->bytes);
    if (l->words)
        memcpy(to, l->words, f->bytes);
    else if (l->extra ? !copy_extra(to, f, l->extra) : !copy_params(to, f, l->params))
        return false;
    log->ops[log->n] = (struct ag_op){sig, (uint32_t)log->args_used, false};
    return true;
}

static bool same_config(const struct ag_config *a, const struct ag_config *b)
{
    uint32_t differ = a->shared_bytes ^ b->shared_bytes;
    for (int i = 0; i < 3; i++)
        differ |= (a->grid[i] ^ b->grid[i]) | (a->block[i] ^ b->block[i]);
    return !differ;
}

static bool same(const struct ag_sig *sig, const struct ag_launch *l, uint32_t attrs, uint32_t lane)
{
    return sig->key.handle == l->handle && sig->key.lane == lane &&
           same_config(&sig->key.config, &l->config) && sig->key.state == sig->func->state_id &&
           sig->key.attrs == attrs;
}

/* The launch's signature: the expected one if it fits, else by look-up. NULL: *out_why. */
static struct ag_sig *signature(struct ag_oplog *log, struct ag_stream *s,
                                const struct ag_launch *l, enum ag_refusal *out_why)
{
    const uint32_t expected = ag_policy_expect(s->track->policy);
    uint32_t attrs = 0;
    *out_why = AG_REFUSAL_NO_MEMORY;
    if (l->full && !ag_attrs_intern(&log->attrs, l->full, &attrs))
        return NULL;
    if (expected && same(ag_sigs_at(&log->sigs, expected), l, attrs, s->lane))
        return ag_sigs_at(&log->sigs, expected);
    struct ag_func *f = l->kind == AG_OP_KERNEL
                            ? ag_funcs_get(&log->funcs, log->cap->drv, l->handle)
                            : ag_funcs_of_kind(&log->funcs, l->kind);
    if (!f)
        return NULL;
    *out_why = f->barrier    ? AG_REFUSAL_COMMUNICATION
               : f->excluded ? AG_REFUSAL_EXCLUDED
                             : AG_REFUSAL_PARAM_INFO;
    if (f->barrier)
        atomic_store(&log->cap->no_builds, 1);
    if (f->barrier || f->excluded || !f->usable)
        return NULL;
    *out_why = AG_REFUSAL_NO_MEMORY;
    return ag_sigs_intern(&log->sigs, f, &l->config, attrs, s->lane);
}

/* Too many signatures for the tables: forget them all and start again. */
static void make_room(struct ag_oplog *log)
{
    if (log->sigs.count == AG_SIGS_MAX || log->attrs.count == AG_ATTR_SETS)
        ag_oplog_forget(log);
}

static void open_segment(struct ag_oplog *log, struct ag_track *t)
{
    if (log->n++)
        return;
    log->cur = log->last = t;
    atomic_store_explicit(&log->patience, ag_policy_patience(t->policy), memory_order_relaxed);
    atomic_store_explicit(&log->open, 1, memory_order_relaxed);
    atomic_fetch_add(&ag_open_logs, 1);
    atomic_store_explicit(&log->anchored, 0, memory_order_relaxed);
}

/* What accept() decided; `sig` is set when the launch is an op of the log. */
struct decision {
    bool send;
    bool cut; /* with send: end the segment afterwards, as `verdict` says */
    struct ag_verdict verdict;
    enum ag_refusal why;
    struct ag_sig *sig; /* valid under the log's lock while the log's generation is `generation` */
    uint32_t generation;
    CUresult ret; /* without send: what the program is told */
};

static struct decision hold(struct ag_oplog *log, const struct ag_sig *sig, struct ag_verdict v)
{
    struct decision d = {.ret = CUDA_SUCCESS};
    if (log->cur->streams > 1)
        ag_oplog_owes(log, ag_track_stream(log->cur, sig));
    if (sig->func->kind == AG_OP_KERNEL)
        log->held++;
    else if (sig->func->kind == AG_OP_RECORD)
        ag_event_held(log);
    else if (sig->func->kind == AG_OP_WAIT)
        ag_event_awaited(log);
    atomic_store_explicit(&log->arrived, log->n, memory_order_relaxed);
    if (!atomic_load_explicit(&log->holding, memory_order_relaxed)) {
        atomic_store_explicit(&log->holding, 1, memory_order_seq_cst);
        ag_liveness_wake(log->cap->liveness);
    }
    if (v.cut)
        d.ret = ag_oplog_cut(log, v, AG_REFUSAL_DIVERGED);
    return d;
}

static struct decision unrecorded(struct ag_oplog *log, const struct ag_launch *l,
                                  enum ag_refusal why)
{
    count_seen(log->cap, l);
    if (log->n)
        ag_oplog_finish(log, ag_policy_drain(log->cur->policy, AG_DRAIN_ASYNC), why);
    return (struct decision){.send = true, .why = why};
}

/* Policy has stepped aside from the stream, and would never end a segment of it. */
static struct decision unlooked(struct ag_oplog *log, struct ag_stream *s,
                                const struct ag_launch *l)
{
    ag_policy_passed(s->track->policy, 1);
    ag_track_set_aside(s->track, ag_policy_aside(s->track->policy));
    return unrecorded(log, l, AG_REFUSAL_ASIDE);
}

#define CONTENT_BYTES                                                                              \
    64 /* enough to tell the launches of a loop apart; hashing 4 KB would cost more than it finds  \
        */

/* A number for the arguments of the op about to be recorded. */
static uint32_t content(const unsigned char *args, uint32_t bytes)
{
    uint64_t hash = bytes;
    if (bytes > CONTENT_BYTES)
        bytes = CONTENT_BYTES;
    for (; bytes >= 8; bytes -= 8, args += 8) {
        uint64_t word;
        memcpy(&word, args, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    if (bytes) { /* what is read beyond them lies in the log's room, see reserve_args() */
        uint64_t word;
        memcpy(&word, args, 8);
        hash = (hash ^ (word & ((1ull << bytes * 8) - 1))) * 0x9E3779B97F4A7C15u;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

static struct decision record(struct ag_oplog *log, struct ag_track *t, struct ag_sig *sig)
{
    if (!log->n && !ag_liveness_ready(log->cap->liveness))
        ag_policy_spoil(t->policy);
    if (__builtin_expect(atomic_load_explicit(&log->idle.of, memory_order_relaxed) != NULL, 0))
        ag_idle_tell(log);
    ag_policy_content(t->policy, content(log->args + log->ops[log->n].args, sig->func->bytes));
    const struct ag_verdict v = ag_policy_op(t->policy, sig->id);
    const bool held_before = log->sent < log->n;
    if (v.hold) {
        open_segment(log, t);
        return hold(log, sig, v);
    }
    struct decision d = {
        .send = true, .cut = v.cut, .verdict = v, .sig = sig, .generation = log->generation};
    const CUresult ret = ag_oplog_flush(log, AG_REFUSAL_DIVERGED);
    if (ret != CUDA_SUCCESS)
        ag_oplog_keep_error(log, ret);
    d.why = held_before                                  ? AG_REFUSAL_DIVERGED
            : !sig->proven                               ? AG_REFUSAL_FIRST_SIGHT
            : ag_policy_pace(t->policy) == AG_PACE_EAGER ? AG_REFUSAL_TRIAL
                                                         : AG_REFUSAL_UNSEEN;
    sig->proven = true; /* taken back if the driver refuses it */
    open_segment(log, t);
    log->sent = log->n;
    return d;
}

/* Somebody may have ended a context and taken the log for unused since the stream was looked up. Under
 * the lock: whoever submits what is held makes the context of a log that is in use current. */
static void note_use(struct ag_oplog *log)
{
    if (!atomic_load_explicit(&log->used, memory_order_relaxed))
        atomic_store(&log->used, true);
}

/* The ops of a segment of several streams are of one thread (track.h). */
static bool is_other_thread(const struct ag_oplog *log)
{
    return log->cur->streams > 1 && log->turns.thread != ag_thread_id();
}

/* The heart: the launch becomes an op of the log, held or sent, or is sent without a trace. */
static struct decision accept(struct ag_oplog *log, struct ag_stream *s, const struct ag_launch *l)
{
    const uint32_t calls = atomic_load(&ag_unseen_calls);
    enum ag_refusal why = AG_REFUSAL_NONE;
    note_use(log);
    if (log->cur && (log->cur != s->track || is_other_thread(log)))
        ag_oplog_finish(log, ag_policy_drain(log->cur->policy, AG_DRAIN_ASYNC),
                        AG_REFUSAL_OTHER_STREAM);
    if (log->turns.of != s || log->turns.thread != ag_thread_id())
        ag_track_turn(log, s);
    log->turns.run++;
    /* Asked again under the lock: whoever ends holding drains under it afterwards. */
    if (atomic_load(&log->cap->off) || atomic_load(&log->cap->capturing))
        return unrecorded(log, l,
                          atomic_load(&log->cap->off) ? AG_REFUSAL_OFF : AG_REFUSAL_CAPTURING);
    if (log->seen_calls != calls) {
        log->seen_calls = calls;
        return unrecorded(log, l, AG_REFUSAL_AFTER_DRAIN);
    }
    const uint32_t timed = atomic_load_explicit(&s->timed, memory_order_relaxed);
    if (timed) {
        atomic_store_explicit(&s->timed, timed - 1, memory_order_relaxed);
        return unrecorded(log, l, AG_REFUSAL_TIMED);
    }
    if (ag_policy_aside(s->track->policy) && s->track->streams > 1)
        ag_track_split(s->track);
    if (ag_policy_aside(s->track->policy)) /* here because of what was held for another stream */
        return unlooked(log, s, l);
    struct ag_sig *sig = signature(log, s, l, &why);
    if (!sig) {
        struct decision d = unrecorded(log, l, why);
        make_room(log);
        return d;
    }
    if (!copy_args(log, sig, l))
        return unrecorded(log, l, AG_REFUSAL_ARGUMENTS);
    log->args_used += (sig->func->bytes + 15u) & ~15u;
    log->seen[l->kind]++;
    return record(log, s->track, sig);
}

/* The driver refused a launch that the log took for an op. */
static void refused(struct ag_oplog *log, const struct decision *d)
{
    if (d->sig && d->generation == log->generation)
        d->sig->proven = false;
    if (log->n)
        ag_oplog_finish(log, ag_policy_drain(log->cur->policy, AG_DRAIN_BREAK),
                        AG_REFUSAL_DIVERGED);
}

/* The device gets the op before the graph is built, which takes a while. */
static CUresult send_and_build(struct ag_stream *s, const struct ag_launch *l,
                               const struct decision *d)
{
    struct ag_oplog *log = s->log;
    ag_oplog_submits(log, s);
    const CUresult ret = send(log->cap, l);
    ag_oplog_submitted(log);
    if (ret != CUDA_SUCCESS)
        ag_policy_failed(log->cur->policy, d->verdict.segment);
    if (ret != CUDA_SUCCESS)
        refused(log, d);
    else
        ag_oplog_finish(log, d->verdict, AG_REFUSAL_UNSEEN);
    ag_oplog_leave(log);
    return ag_settle_status(log->cap, ret);
}

/* May block in the driver: no lock is held. */
static CUresult send_alone(struct ag_oplog *log, const struct ag_launch *l,
                           const struct decision *d)
{
    const CUresult ret = send(log->cap, l);
    if (ret == CUDA_SUCCESS)
        return ret;
    ag_oplog_enter(log);
    refused(log, d);
    ag_oplog_leave(log);
    return ag_settle_status(log->cap, ret);
}

static CUresult submit(struct ag_stream *s, const struct ag_launch *l)
{
    struct ag_oplog *log = s->log;
    struct decision d = {.send = false};
    if (!ag_oplog_enter_current_for(log, s->handle))
        return ag_pass(log->cap, l, AG_REFUSAL_QUEUE_FULL);
    const bool troubled = log->pending != CUDA_SUCCESS;
    if (!troubled)
        d = accept(log, s, l);
    if (log->pending != CUDA_SUCCESS && (troubled || d.send)) {
        /* What was held before this call failed just now: the call tells, and is not made. */
        if (d.cut && d.verdict.use == AG_USE_BUILD)
            ag_policy_dropped(log->cur->policy, d.verdict.segment);
        refused(log, &d);
        const CUresult told = ag_take_error(log); /* by nobody else: it is this call's answer */
        ag_oplog_leave(log);
        return told;
    }
    if (!d.send) {
        ag_oplog_leave(log);
        return d.ret == CUDA_SUCCESS ? d.ret : ag_settle_status(log->cap, d.ret);
    }
    ag_count(&log->cap->counters->eager[d.why], l->kind == AG_OP_KERNEL);
    if (d.cut && d.verdict.use == AG_USE_BUILD)
        return send_and_build(s, l, &d);
    if (d.cut)
        ag_oplog_finish(log, d.verdict, AG_REFUSAL_UNSEEN);
    ag_oplog_leave(log);
    return send_alone(log, l, &d);
}

/* A launch that policy is told of in batches. */
static void count_passed(struct ag_stream *s)
{
    struct ag_oplog *log = s->log;
    const uint32_t passed = atomic_load_explicit(&s->passed, memory_order_relaxed) + 1;
    atomic_store_explicit(&s->passed, passed, memory_order_relaxed);
    if (passed < ASIDE_BATCH || !ag_oplog_enter_for(log, s->handle))
        return; /* the batch grows */
    ag_policy_passed(s->track->policy, passed);
    atomic_store(&s->passed, 0);
    ag_track_set_aside(s->track, ag_policy_aside(s->track->policy));
    ag_oplog_leave(log);
    ag_count(&log->cap->counters->launches_seen, passed);
    ag_count(&log->cap->counters->eager[AG_REFUSAL_ASIDE], passed);
}

static CUresult pass_aside(struct ag_stream *s, const struct ag_launch *l)
{
    struct ag_capture *cap = s->log->cap;
    if (l->kind == AG_OP_KERNEL)
        count_passed(s);
    else
        count_seen(cap, l);
    const CUresult ret = send(cap, l);
    return ret == CUDA_SUCCESS ? ret : ag_settle_status(cap, ret);
}

/* May this launch go straight on? The stream of a handle that this thread used last needs no
 * look-up, not even of the current context: nothing is held there, whatever that is. */
static bool may_pass(const struct ag_capture *cap, const struct ag_stream *s)
{
    return atomic_load_explicit(&s->aside, memory_order_relaxed) &&
           !atomic_load_explicit(&s->log->open, memory_order_relaxed) &&
           !atomic_load_explicit(&cap->troubled, memory_order_relaxed);
}

static struct ag_stream *last_stream(const struct ag_capture *cap, CUstream handle)
{
    const struct ag_thread *t = &ag_thread;
    const bool own = handle && handle != CU_STREAM_LEGACY && t->handle == handle;
    return own && t->epoch == atomic_load_explicit(&cap->epoch, memory_order_acquire) ? t->stream
                                                                                      : NULL;
}

CUresult ag_submit_launch(struct ag_capture *cap, const struct ag_launch *l)
{
    if (ag_thread.busy)
        return send(cap, l);
    enum ag_refusal why = inadmissible(cap, l);
    struct ag_stream *s = why == AG_REFUSAL_NONE ? last_stream(cap, l->stream) : NULL;
    if (s && may_pass(cap, s))
        return pass_aside(s, l);
    s = why == AG_REFUSAL_NONE ? ag_find_stream(cap, l->stream, &why) : NULL;
    if (!s)
        return ag_pass(cap, l, why);
    if (may_pass(cap, s))
        return pass_aside(s, l);
    return submit(s, l);
}
