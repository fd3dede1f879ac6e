/* capture/replay.c - see replay.h. */
#include "capture/replay.h"
#include "capture/event.h"
#include "capture/graph.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/record.h"
#include "capture/track.h"
#include "capture/transfer.h"
#include "capture/verify.h"
#include "shim/observe/log.h"
#include <stdlib.h>
#include <string.h>

void ag_oplog_keep_error(struct ag_oplog *log, CUresult ret)
{
    if (log->pending == CUDA_SUCCESS) {
        log->pending = ret;
        atomic_fetch_add(&log->cap->troubled, 1);
    }
    if (ag_sticky(ret))
        ag_capture_wish_off(log->cap, "a held launch met a sticky error");
}

/* Refused by the driver it would have left the event at its record before. That one may have been left out of a graph:
 * a second try for it, which stands for more, but for nothing that was not called before this. */
static CUresult submit_record(struct ag_oplog *log, const struct ag_stream *s, const void *words)
{
    const struct ag_driver *drv = log->cap->drv;
    struct ag_event_record r;
#ifdef AG_MUTANT_RECORD_DROPPED /* what was held of an event is forgotten, outside of graphs */
    ag_event_submitted(log, words);
    return CUDA_SUCCESS;
#endif
    const CUresult ret = ag_make_transfer(drv, AG_OP_RECORD, words, s->handle);
    memcpy(&r, words, sizeof r);
    if (ret != CUDA_SUCCESS && r.covers)
        ag_make_transfer(drv, AG_OP_RECORD, words, s->handle);
    ag_event_submitted(log, words);
    return ret;
}

static CUresult submit_to(struct ag_oplog *log, const struct ag_stream *s, const struct ag_op *op)
{
    const struct ag_driver *drv = log->cap->drv;
    const enum ag_op_kind kind = op->sig->func->kind;
    if (kind == AG_OP_RECORD)
        return submit_record(log, s, log->args + op->args);
    if (kind != AG_OP_KERNEL)
        return ag_make_transfer(drv, kind, log->args + op->args, s->handle);
    const struct ag_sig_key *key = &op->sig->key;
    const struct ag_config *c = &key->config;
    void **params = ag_op_pointers(log, op->sig->func, log->args + op->args);
    if (!key->attrs)
        return ag_real(drv, cuLaunchKernel)(key->handle, c->grid[0], c->grid[1], c->grid[2],
                                            c->block[0], c->block[1], c->block[2], c->shared_bytes,
                                            s->handle, params, NULL);
    struct ag_attrs attrs = *ag_attrs_at(&log->attrs, key->attrs);
    const CUlaunchConfig config = {
        .gridDimX = c->grid[0],
        .gridDimY = c->grid[1],
        .gridDimZ = c->grid[2],
        .blockDimX = c->block[0],
        .blockDimY = c->block[1],
        .blockDimZ = c->block[2],
        .sharedMemBytes = c->shared_bytes,
        .hStream = s->handle,
        .attrs = attrs.attr,
        .numAttrs = attrs.n,
    };
    return ag_real(drv, cuLaunchKernelEx)(&config, key->handle, params, NULL);
}

/* The driver has the op, alone or in a graph. */
static void gave(struct ag_oplog *log, struct ag_op *op)
{
    op->done = true;
    if (log->cur->streams > 1)
        ag_oplog_gave(log, ag_track_stream(log->cur, op->sig));
}

static CUresult submit_op(struct ag_oplog *log, struct ag_op *op)
{
    CUresult ret = CUDA_SUCCESS;
#ifdef AG_MUTANT_WAIT_DROPPED /* a stream does not wait for the other one */
    if (op->sig->func->kind != AG_OP_WAIT)
#endif
        ret = submit_to(log, ag_track_stream(log->cur, op->sig), op);
    if (op->sig->func->kind == AG_OP_WAIT)
        ag_event_waited(log, op);
    gave(log, op);
    return ret;
}

static void submitted(struct ag_oplog *log)
{
    log->sent = log->n;
    atomic_store_explicit(&log->holding, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&log->flushes, 1, memory_order_relaxed);
}

static uint32_t launches_held(const struct ag_oplog *log)
{
    uint32_t n = 0;
    for (uint32_t i = log->sent; i < log->n; i++)
        n += log->ops[i].sig->func->kind == AG_OP_KERNEL && !log->ops[i].done;
    return n;
}

/* Submits held ops one by one until all are. Returns the status of the last. */
static CUresult send_all(struct ag_oplog *log)
{
    const struct ag_stream *to = NULL;
    CUresult last = CUDA_SUCCESS;
    for (uint32_t i = log->sent; i < log->n; i++) {
        if (last != CUDA_SUCCESS)
            ag_oplog_keep_error(log, last);
        last = CUDA_SUCCESS;
        if (log->ops[i].done)
            continue;
        if (to != ag_track_stream(log->cur, log->ops[i].sig)) {
            to = ag_track_stream(log->cur, log->ops[i].sig);
            ag_oplog_submits(log, to);
        }
#if defined(AG_MUTANT_LOST_OP)
        if (i == log->sent + 1 && log->n - log->sent > 3)
            continue;
#elif defined(AG_MUTANT_SWAPPED_OPS)
        const uint32_t j = log->n - log->sent > 3 && i < log->sent + 2 ? 2 * log->sent + 1 - i : i;
        last = submit_op(log, &log->ops[j]);
        continue;
#endif
        last = submit_op(log, &log->ops[i]);
#ifdef AG_MUTANT_DOUBLED_OP
        if (i == log->sent + 1)
            last = submit_op(log, &log->ops[i]);
#endif
#ifdef AG_MUTANT_IGNORED_STATUS
        last = CUDA_SUCCESS;
#endif
        if (last != CUDA_SUCCESS)
            ag_count(&log->cap->counters->flush_errors, 1);
    }
    ag_oplog_submitted(log);
    return last;
}

CUresult ag_oplog_flush(struct ag_oplog *log, enum ag_refusal why)
{
    if (log->sent == log->n)
        return CUDA_SUCCESS;
    ag_count(&log->cap->counters->eager[why], launches_held(log));
    const CUresult last = send_all(log);
    submitted(log);
    return last;
}

static void forget_graph(struct ag_graph *g)
{
    struct ag_track *t = g->track;
    struct ag_oplog *log = t->log;
    ag_record_graph(log->cap, g);
    ag_policy_dropped(t->policy, g->segment);
    ag_budget_release(log->budget, g->entry);
    log->by_entry[g->entry] = NULL;
    t->graph[g->number] = NULL;
    ag_count_down(&log->cap->counters->graphs_live, g->execs);
    ag_count_down(&log->cap->counters->graph_bytes, g->bytes);
    ag_graph_destroy(g, log->cap->drv);
}

/* The first of its CUDA graphs has it. */
static uint32_t serial_of(const struct ag_graph *g)
{
    uint32_t k = 0;
    while (!g->piece[k].is_graph)
        k++;
    return g->piece[k].serial;
}

static void refuse(struct ag_graph *g, enum ag_refusal why, CUresult ret)
{
    ag_log(AG_LEVEL_WARN, "graph %u: %s, code %d", serial_of(g), ag_refusal_sentence(why),
           (int)ret);
    forget_graph(g);
}

/* All ops of the piece are in a graph that has been launched. */
static void launched(struct ag_oplog *log, const struct ag_graph *g, const struct ag_piece *p)
{
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next) {
        struct ag_op *op = &log->ops[i];
        gave(log, op);
        if (op->sig->func->kind == AG_OP_RECORD)
            ag_event_submitted(log, log->args + op->args);
    }
}

static CUresult launch(struct ag_oplog *log, const struct ag_piece *p)
{
    ag_oplog_submits(log, p->stream);
    const CUresult ret = ag_real(log->cap->drv, cuGraphLaunch)(p->exec, p->stream->handle);
    ag_oplog_submitted(log);
    return ret;
}

static void call(struct ag_oplog *log, const struct ag_graph *g, const struct ag_piece *p)
{
    uint32_t launches = 0;
    ag_oplog_submits(log, p->stream);
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next) {
        const CUresult ret = submit_op(log, &log->ops[i]);
        launches += log->ops[i].sig->func->kind == AG_OP_KERNEL;
        if (ret != CUDA_SUCCESS) {
            ag_count(&log->cap->counters->flush_errors, 1);
            ag_oplog_keep_error(log, ret);
        }
    }
    ag_oplog_submitted(log);
    ag_count(&log->cap->counters->eager[AG_REFUSAL_SHORT], launches);
}

static void count_replay(struct ag_oplog *log, struct ag_graph *g)
{
    struct ag_counters *counters = log->cap->counters;
    g->replays++;
    ag_budget_use(log->budget, g->entry);
    for (unsigned kind = 0; kind < AG_OP_WAIT; kind++)
        ag_count(ag_replayed_counter(counters, kind), g->of_kind[kind]);
    ag_count(&counters->records_elided, g->elided);
    ag_count(&counters->graph_launches, g->execs);
}

/* Of the graphs before piece `end` alone: the next one was refused. */
static void count_part(struct ag_oplog *log, const struct ag_graph *g, uint32_t end)
{
    struct ag_counters *counters = log->cap->counters;
    for (uint32_t k = 0; k < end; k++) {
        if (!g->piece[k].is_graph)
            continue;
        ag_count(&counters->graph_launches, 1);
        for (uint32_t i = g->piece[k].first; i != AG_NO_OP; i = g->place[i].next)
            ag_count(g->node[i].node ? ag_replayed_counter(counters, g->node[i].sig->func->kind)
                                     : &counters->records_elided,
                     1);
    }
}

/* NONE: the segment's graphs have been launched, with what belongs between them. What comes behind the last is
 * still held. */
static enum ag_refusal replay(struct ag_oplog *log, uint32_t number)
{
    struct ag_graph *g = log->cur->graph[number];
    struct ag_counters *counters = log->cap->counters;
    uint64_t nodes, bytes;
    enum ag_refusal why = ag_graph_patch(g, log, &nodes, &bytes);
    if (__builtin_expect(log->cap->options->verify != 0, 0) && why == AG_REFUSAL_NONE &&
        !ag_verify_passes(g, log))
        why = AG_REFUSAL_MISMATCH;
    if (why != AG_REFUSAL_NONE) {
        log->cur->other_records += why == AG_REFUSAL_OTHER_RECORDS;
        refuse(g, why, CUDA_SUCCESS);
        return why;
    }
    for (uint32_t k = 0; k < g->tail; k++) {
        const struct ag_piece *p = &g->piece[k];
        if (!p->is_graph) {
            call(log, g, p);
            continue;
        }
        const CUresult ret = launch(log, p);
        if (ret != CUDA_SUCCESS) {
            count_part(log, g, k);
            refuse(g, AG_REFUSAL_LAUNCH_FAILED, ret);
            return AG_REFUSAL_LAUNCH_FAILED;
        }
        if (g->pieces > 1 || log->cur->streams > 1 || g->of_kind[AG_OP_RECORD] + g->elided)
            launched(log, g, p);
    }
    if (g->pieces == 1)
        submitted(log);
    atomic_store_explicit(&log->wanted, 0, memory_order_relaxed);
    count_replay(log, g);
    if (nodes) {
        g->patched_launches++;
        ag_count(&counters->nodes_patched, nodes);
        ag_count(&counters->bytes_patched, bytes);
    }
    return AG_REFUSAL_NONE;
}

/* A number for a new graph of the track: the smallest free one, so the table stays as small as the
 * graphs are many. */
static uint32_t free_number(struct ag_track *s)
{
    uint32_t i = 1;
    while (i < s->graphs && s->graph[i])
        i++;
    if (i < s->graphs)
        return i;
    const uint32_t room = s->graphs ? s->graphs * 2 : 16;
    struct ag_graph **grown = realloc(s->graph, room * sizeof *grown);
    if (!grown)
        return 0;
    for (uint32_t k = s->graphs; k < room; k++)
        grown[k] = NULL;
    s->graph = grown;
    if (!s->graphs)
        i = 1;
    s->graphs = room;
    return i;
}

static void obey_budget(struct ag_oplog *log)
{
    for (uint32_t victim; (victim = ag_budget_victim(log->budget));) {
        forget_graph(log->by_entry[victim]);
        ag_count(&log->cap->counters->graphs_evicted, 1);
    }
}

static void adopt(struct ag_oplog *log, struct ag_graph *g)
{
    struct ag_counters *counters = log->cap->counters;
    log->cur->graph[g->number] = g;
    log->by_entry[g->entry] = g;
    for (uint32_t k = 0; k < g->pieces; k++) {
        if (!g->piece[k].is_graph)
            continue;
        ag_count(&counters->graphs_built, 1);
        g->piece[k].serial = (uint32_t)ag_count_read(&counters->graphs_built);
    }
    ag_count(&counters->graphs_live, g->execs);
    ag_count(&counters->graph_bytes, g->bytes);
    ag_count(&counters->build_ns_total, g->build_ns);
    ag_count_max(&counters->build_ns_max, g->build_ns);
    ag_record_graph(log->cap, g);
}

static enum ag_refusal may_build(struct ag_oplog *log)
{
    struct ag_capture *cap = log->cap;
    if (cap->options->mode == AG_MODE_OBSERVE)
        return AG_REFUSAL_OFF;
    if (atomic_load(&cap->no_builds))
        return AG_REFUSAL_COLLECTIVE;
    if (atomic_load(&cap->capturing))
        return AG_REFUSAL_CAPTURING;
    if (!cap->may_build(cap))
        return AG_REFUSAL_OFF;
    for (uint32_t i = 0; i < log->n; i++)
        if (!log->ops[i].sig->proven)
            return AG_REFUSAL_FIRST_SIGHT;
    return AG_REFUSAL_NONE;
}

/* The memory for graphs is the process's: what other contexts' graphs take is not there for this
 * one. Contexts that build at the same moment may exceed it by that graph, until the next build. */
static void share_budget(struct ag_oplog *log)
{
    const uint64_t most = log->cap->options->max_bytes;
    const uint64_t all = ag_count_read(&log->cap->counters->graph_bytes);
    const uint64_t own = ag_budget_bytes(log->budget);
    const uint64_t others = all > own ? all - own : 0;
    ag_budget_limit(log->budget, others < most ? most - others : 0);
    obey_budget(log);
}

/* What the budget itself takes for a program that has moved on, see policy/budget.c. */
#define WANTED_ENOUGH 8

bool ag_oplog_is_wanted(struct ag_oplog *log)
{
    return atomic_load_explicit(&log->wanted, memory_order_relaxed) >= WANTED_ENOUGH &&
           atomic_load(&log->used) && !atomic_load(&log->cap->capturing) &&
           !atomic_load(&log->cap->no_builds);
}

void ag_oplog_give_room(struct ag_oplog *log)
{
    if (log->n || !ag_oplog_is_wanted(log))
        return;
    atomic_store(&log->wanted, 0);
    ag_budget_limit(log->budget, ag_budget_bytes(log->budget) / 2);
    obey_budget(log);
}

/* A build had no room: the other contexts' logs are asked for some, which the next
 * synchronisation takes. */
static void want(const struct ag_oplog *log)
{
    const uint32_t n = atomic_load_explicit(&log->cap->contexts, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        struct ag_oplog *other = atomic_load_explicit(&log->cap->logs[i], memory_order_relaxed);
        if (other != log)
            atomic_fetch_add_explicit(&other->wanted, 1, memory_order_relaxed);
    }
}

/* A graph of the open segment, in the tables. NULL: *out_why. */
static struct ag_graph *make_graph(struct ag_oplog *log, enum ag_refusal *out_why)
{
    share_budget(log);
    const uint32_t number = free_number(log->cur);
    const uint32_t entry = number ? ag_budget_admit(log->budget, ag_graph_estimate(log)) : 0;
    *out_why = number ? AG_REFUSAL_BUDGET : AG_REFUSAL_NO_MEMORY;
    if (!entry)
        return NULL;
    struct ag_graph *g = ag_graph_build(log, out_why);
    if (!g) {
        ag_budget_release(log->budget, entry);
        return NULL;
    }
    g->number = number;
    g->entry = entry;
    adopt(log, g);
    return g;
}

/* Returns the graph's number, 0: not built. */
static uint32_t build(struct ag_oplog *log, uint32_t segment)
{
    enum ag_refusal why = may_build(log);
    ag_oplog_submits(
        log, ag_track_stream(log->cur, log->ops[0].sig)); /* may wait for the device here as well */
    struct ag_graph *g = why == AG_REFUSAL_NONE ? make_graph(log, &why) : NULL;
    ag_oplog_submitted(log);
    if (g) {
        g->segment = segment;
        ag_policy_built(log->cur->policy, segment, g->number);
        const uint32_t number = g->number;
        obey_budget(log);
        return number;
    }
    ag_log(AG_LEVEL_INFO, "segment of %u launches not built: %s", log->n, ag_refusal_sentence(why));
    if (why == AG_REFUSAL_BUDGET)
        want(log);
    if (why == AG_REFUSAL_BUDGET || why == AG_REFUSAL_CAPTURING) /* another time, perhaps */
        ag_policy_dropped(log->cur->policy, segment);
    else
        ag_policy_failed(log->cur->policy, segment);
    return 0;
}

/* Whether policy looks at the stream, for threads that do not take the lock. */
static void note_aside(struct ag_track *t)
{
    const bool aside = ag_policy_aside(t->policy);
    if (t->streams > 1) /* the next op ends that */
        return;
    if (aside && !ag_track_is_aside(t)) {
        ag_count(&t->log->cap->counters->asides, 1);
        ag_idle_watch(t->log, t);
    }
    ag_track_set_aside(t, aside);
}

void ag_oplog_time(struct ag_oplog *log, struct ag_track *t)
{
    struct ag_counters *counters = log->cap->counters;
    if (!ag_policy_wants_time(t->policy))
        return;
    const bool chosen = ag_policy_time(t->policy, ag_now_ns()) == AG_PACE_CHOSEN;
    const enum ag_pace_kind pace = ag_policy_pace(t->policy);
    ag_count(&counters->pace_trials, chosen);
    ag_count(&counters->pace_eager, chosen && pace == AG_PACE_EAGER);
    ag_count(&counters->pace_patient, chosen && pace == AG_PACE_PATIENT);
    ag_idle_watch(log, t);
    note_aside(t);
}

static void close_segment(struct ag_oplog *log)
{
    struct ag_counters *counters = log->cap->counters;
    ag_oplog_time(log, log->cur);
    for (unsigned kind = 0; kind < AG_OP_KINDS; kind++) {
        ag_count(ag_seen_counter(counters, kind), log->seen[kind]);
        log->seen[kind] = 0;
    }
    ag_count(&counters->launches_held, log->held);
    log->held = 0;
    note_aside(log->cur);
    log->n = log->sent = 0;
    log->args_used = 0;
    log->cur = NULL;
    atomic_store_explicit(&log->open, 0, memory_order_relaxed);
    atomic_fetch_sub(&ag_open_logs, 1);
}

static void note(struct ag_oplog *log, enum ag_deed deed, uint32_t graph, enum ag_refusal why)
{
    const struct ag_decision d = {
        .stream = (uintptr_t)ag_track_stream(log->cur, log->ops[0].sig)->handle,
        .deed = deed,
        .ops = log->n,
        .graph = graph,
        .thread = (uint32_t)ag_thread.number,
    };
    ag_ring_note(&log->ring, &d, why);
}

CUresult ag_oplog_cut(struct ag_oplog *log, struct ag_verdict verdict, enum ag_refusal why)
{
    enum ag_deed deed = AG_DEED_SENT;
    CUresult ret = CUDA_SUCCESS;
    if (!log->n)
        return CUDA_SUCCESS;
    if (verdict.use == AG_USE_REPLAY && log->sent == 0) {
        const enum ag_refusal refused = replay(log, verdict.graph);
        why = refused != AG_REFUSAL_NONE ? refused : AG_REFUSAL_SHORT;
        deed = refused == AG_REFUSAL_NONE ? AG_DEED_REPLAYED : AG_DEED_SENT;
#ifdef AG_MUTANT_FAILURE_TOLD /* the program hears of a graph that it knows nothing of */
        if (refused != AG_REFUSAL_NONE)
            ag_oplog_keep_error(log, CUDA_ERROR_UNKNOWN);
#endif
    }
    ret = ag_oplog_flush(log, why);
    uint32_t graph = deed == AG_DEED_REPLAYED ? verdict.graph : 0;
    if (verdict.use == AG_USE_BUILD && (graph = build(log, verdict.segment)))
        deed = AG_DEED_BUILT;
    note(log, deed, graph, deed == AG_DEED_REPLAYED ? AG_REFUSAL_NONE : why);
    close_segment(log);
    return ret;
}

void ag_oplog_finish(struct ag_oplog *log, struct ag_verdict verdict, enum ag_refusal why)
{
    const CUresult ret = ag_oplog_cut(log, verdict, why);
    if (ret != CUDA_SUCCESS)
        ag_oplog_keep_error(log, ret);
}
