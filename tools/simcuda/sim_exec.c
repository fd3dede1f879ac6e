/* tools/simcuda/sim_exec.c - instantiated graphs: launched, patched, updated, run.
 * Called by  programs; sim_work.c       Calls  sim_graph.c, sim_op.c
 * Threads    bodies hold sim_lock; a launch runs on the worker of its stream
 * Promise    patching affects future launches only; one exec never runs twice at a time; the order
 *            of independent nodes is drawn from SIMCUDA_SEED, so that a missing edge shows
 * Start at   cuGraphLaunch and sim_program_run()                                            */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_stream.h"

static void free_program(struct sim_object *self)
{
    struct sim_program *p = (struct sim_program *)self;
    for (size_t i = 0; i < p->n; i++) {
        sim_unref(p->steps[i].work);
        free(p->steps[i].children);
    }
    free(p->steps);
}

static void free_exec(struct sim_object *self)
{
    struct sim_exec *e = (struct sim_exec *)self;
    sim_unref(e->program);
    sim_unref(e->last);
}

static size_t index_of(const struct sim_graph *g, const struct sim_node *node)
{
    size_t i = 0;
    while (i < g->n && g->nodes[i] != node)
        i++;
    return i;
}

static bool has_cycle(const struct sim_program *p)
{
    size_t *left = sim_new(p->n * sizeof *left), *ready = sim_new(p->n * sizeof *ready);
    size_t nready = 0, seen = 0;
    for (size_t i = 0; i < p->n; i++)
        if (!(left[i] = p->steps[i].ndeps))
            ready[nready++] = i;
    while (nready) {
        const struct sim_step *s = &p->steps[ready[--nready]];
        seen++;
        for (size_t c = 0; c < s->nchildren; c++)
            if (--left[s->children[c]] == 0)
                ready[nready++] = s->children[c];
    }
    free(left);
    free(ready);
    return seen != p->n;
}

struct sim_program *sim_program_of_graph(const struct sim_graph *g, unsigned flags)
{
    struct sim_program *p = sim_object_new(sizeof *p, 0, NULL, free_program);
    p->n = g->n;
    p->flags = flags;
    p->steps = sim_new(g->n * sizeof *p->steps);
    for (size_t i = 0; i < g->n; i++) {
        const struct sim_node *node = g->nodes[i];
        p->steps[i].serial = node->serial;
        p->steps[i].type = node->type;
        p->steps[i].work = sim_ref(node->work);
        p->steps[i].ndeps = node->ndeps;
        for (size_t d = 0; d < node->ndeps; d++) {
            /* A dependency is nearly always the node added just before. */
            size_t at = i && g->nodes[i - 1] == node->deps[d] ? i - 1 : index_of(g, node->deps[d]);
            struct sim_step *from = &p->steps[at];
            from->children = realloc(from->children, (from->nchildren + 1) * sizeof(size_t));
            if (!from->children)
                abort();
            from->children[from->nchildren++] = i;
        }
    }
    return p;
}

/* Launches in flight keep the program as it was. */
struct sim_program *sim_exec_own_program(struct sim_exec *e)
{
    struct sim_program *old = e->program;
    if (old->object.refs == 1)
        return old;
    struct sim_program *p = sim_object_new(sizeof *p, 0, NULL, free_program);
    p->n = old->n;
    p->flags = old->flags;
    p->steps = sim_new(p->n * sizeof *p->steps);
    for (size_t i = 0; i < p->n; i++) {
        struct sim_step *s = &p->steps[i];
        *s = old->steps[i];
        sim_ref(s->work);
        s->children = sim_new(s->nchildren * sizeof *s->children);
        if (s->nchildren)
            memcpy(s->children, old->steps[i].children, s->nchildren * sizeof *s->children);
    }
    e->program = p;
    sim_unref(old);
    return p;
}

/* A real driver (580.159) crashes on a copy node whose memory was freed; memory that has been given out again under the
 * node may be what was meant, or not. */
static CUresult check_operands(const struct sim_graph *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct sim_node *node = g->nodes[i];
        if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY || sim_copy_is_still(&node->work->copy))
            continue;
        const struct sim_copy_work *c = &node->work->copy;
        const bool gone = sim_memory_is_gone(c->dst) || sim_memory_is_gone(c->src);
        const CUresult ret = sim_misuse(CUDA_ERROR_INVALID_VALUE,
                                        "a graph has a copy from %#llx to %#llx whose memory is %s",
                                        (unsigned long long)c->src, (unsigned long long)c->dst,
                                        gone ? "gone" : "somebody else's");
        if (gone)
            return ret;
    }
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(graph, &ret);
    const unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                     CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!out || !g || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    ret = check_operands(g);
    if (ret)
        return ret;
    struct sim_program *p = sim_program_of_graph(g, (unsigned)flags);
    if (has_cycle(p)) {
        sim_unref(p);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_exec *e = sim_object_new(sizeof *e, SIM_EXEC, NULL, free_exec);
    e->program = p;
    *out = sim_handle_make(e);
    sim_unref(e);
    sim_clock_spend(SIM_NS_INSTANTIATE_NODE * p->n);
    sim_stats.graphs_instantiated++;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphInstantiateWithFlags, SIM_NS_CREATE, SIM_CTX | SIM_UNSAFE,
        (CUgraphExec * out, CUgraph graph, unsigned long long flags), (out, graph, flags))
{
    return instantiate(out, graph, flags);
}

SIM_API(cuGraphInstantiate_v2, SIM_NS_CREATE, SIM_CTX | SIM_UNSAFE,
        (CUgraphExec * out, CUgraph graph, CUgraphNode *out_node, char *log, size_t n),
        (out, graph, out_node, log, n))
{
    CUresult ret = instantiate(out, graph, 0);
    if (out_node)
        *out_node = NULL;
    if (log && n)
        *log = 0;
    return ret;
}

SIM_API_PTSZ(cuGraphInstantiateWithParams, SIM_NS_CREATE, SIM_CTX | SIM_UNSAFE,
             (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (out, graph, p))
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult ret = instantiate(out, graph, p->flags);
    p->result_out = ret ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    p->hErrNode_out = NULL;
    return ret;
}

struct sim_exec *sim_exec_of(CUgraphExec handle, CUresult *out_ret)
{
    struct sim_exec *e = sim_handle_find(handle, SIM_EXEC);
    *out_ret =
        e ? CUDA_SUCCESS
        : sim_handle_is_dead(handle, SIM_EXEC)
            ? sim_misuse(CUDA_ERROR_INVALID_VALUE, "graph exec %p is destroyed", (void *)handle)
            : CUDA_ERROR_INVALID_VALUE;
    return e;
}

SIM_API(cuGraphExecDestroy, SIM_NS_CREATE, SIM_INIT, (CUgraphExec handle), (handle))
{
    /* Needs no context, but is unsafe during captures, whatever the handle. */
    CUresult ret = sim_capture_forbids_unsafe();
    if (ret)
        return ret;
    struct sim_exec *e = sim_exec_of(handle, &ret);
    if (e)
        sim_handle_drop(e); /* a launch in flight keeps the program */
    return ret;
}

SIM_API(cuGraphExecGetFlags, SIM_NS_GETTER, SIM_INIT, (CUgraphExec handle, cuuint64_t *out),
        (handle, out))
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (e)
        *out = e->program->flags;
    return ret;
}

SIM_API_PTSZ(cuGraphUpload, SIM_NS_CREATE, SIM_CTX, (CUgraphExec handle, CUstream stream),
             (handle, stream))
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(handle, &ret);
    struct sim_stream *s = e ? sim_stream_for_work(stream, &ret) : NULL;
    if (s && !e->uploaded)
        sim_clock_spend(SIM_NS_UPLOAD_NODE * e->program->n);
    if (s)
        e->uploaded = true;
    return ret;
}

static uint64_t launch_cost(const struct sim_exec *e)
{
    const struct sim_program *p = e->program;
    uint64_t ns = SIM_NS_SET_PARAMS_LAUNCH * e->patched, branches = 0;
    if (p->n > SIM_NS_GRAPH_FREE_NODES)
        ns += (p->n - SIM_NS_GRAPH_FREE_NODES) * SIM_PS_GRAPH_NODE / 1000;
    if (!e->uploaded)
        ns += SIM_NS_UPLOAD_NODE * p->n;
    for (size_t i = 0; i < p->n; i++) {
        const struct sim_step *s = &p->steps[i];
        branches += (s->ndeps == 0) + (s->nchildren > 1 ? s->nchildren - 1 : 0);
        if (s->type == CU_GRAPH_NODE_TYPE_MEMSET)
            ns += SIM_NS_GRAPH_MEMSET;
        else if (s->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
            ns += s->work->event.event->flags & CU_EVENT_DISABLE_TIMING
                      ? SIM_NS_GRAPH_RECORD_UNTIMED
                      : SIM_NS_GRAPH_RECORD;
        else if (s->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
                 (s->work->copy.dst_host || s->work->copy.src_host))
            ns += SIM_NS_GRAPH_HOST_COPY;
    }
    return ns + (branches > 1 ? (branches - 1) * SIM_NS_GRAPH_BRANCH : 0);
}

/* Event nodes: what they record exists from the launch on, what they wait for is recorded now. */
static void bind_events(struct sim_work *w)
{
    struct sim_program *p = w->graph.program;
    w->graph.markers = sim_new(p->n * sizeof *w->graph.markers);
    w->graph.waits = sim_new(p->n * sizeof *w->graph.waits);
    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
            w->graph.waits[i] = sim_ref(p->steps[i].work->event.event->record);
    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && !p->steps[i].disabled) {
            struct sim_event *e = p->steps[i].work->event.event;
            w->graph.markers[i] = sim_op_new(NULL);
            sim_capture_forget_heads(&e->heads, &e->nheads);
            sim_unref(e->capture);
            e->capture = NULL;
            sim_unref(e->record);
            e->record = sim_ref(w->graph.markers[i]);
        }
}

void sim_program_free_ops(struct sim_work *w)
{
    for (size_t i = 0; w->graph.markers && i < w->graph.program->n; i++) {
        sim_unref(w->graph.markers[i]);
        sim_unref(w->graph.waits[i]);
    }
    free(w->graph.markers);
    free(w->graph.waits);
}

SIM_API_PTSZ(cuGraphLaunch, SIM_NS_GRAPH_LAUNCH, SIM_CTX, (CUgraphExec handle, CUstream stream),
             (handle, stream))
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(handle, &ret);
    struct sim_stream *s = e ? sim_stream_for_work(stream, &ret) : NULL;
    if (!s)
        return ret;
    if (s->capture)
        return CUDA_ERROR_NOT_SUPPORTED; /* child graphs are not simulated */
    for (size_t i = 0; i < e->program->n; i++) {
        const struct sim_step *step = &e->program->steps[i];
        if (step->type == CU_GRAPH_NODE_TYPE_KERNEL &&
            !step->work->kernel.function->module->nfunctions)
            return sim_misuse(CUDA_ERROR_INVALID_VALUE,
                              "graph names a kernel of an unloaded module");
    }
    sim_clock_spend(launch_cost(e));
    sim_stats.graph_launches++;
    e->uploaded = true;
    e->patched = 0;
    struct sim_work *w = sim_work_new(SIM_WORK_GRAPH, s->object.ctx);
    w->graph.program = sim_ref(e->program);
    w->graph.exec = (uintptr_t)handle;
    struct sim_op *op = sim_op_new(w);
    bind_events(w);
    sim_op_after(op, e->last);
    sim_unref(e->last);
    e->last = sim_ref(op);
    sim_ref(e); /* submitting may wait, and let others destroy it */
    sim_op_submit(s, op);
    sim_unref(e);
    sim_unref(op);
    return CUDA_SUCCESS;
}

/* ---- a launch, on a worker ---- */

static uint64_t run_step(struct sim_work *w, struct sim_op *op, size_t i, uint64_t start_ns)
{
    const struct sim_step *s = &w->graph.program->steps[i];
    char how[64];
    if (w->graph.waits[i] && w->graph.waits[i]->end_ns > start_ns)
        start_ns = w->graph.waits[i]->end_ns;
    uint64_t end_ns = start_ns;
    if (!s->disabled && s->work && !op->stream->object.ctx->sticky) {
        snprintf(how, sizeof how, "graph:%#llx:%zu", (unsigned long long)w->graph.exec, i);
        end_ns = sim_work_run(s->work, op, how, start_ns);
    }
    if (w->graph.markers[i])
        sim_op_finish(w->graph.markers[i], end_ns, op->stream->object.ctx->sticky);
    return end_ns;
}

/* Would it stand still? Then another branch goes first: a device runs branches side by side. */
static bool stands(const struct sim_work *w, size_t i)
{
    const struct sim_step *s = &w->graph.program->steps[i];
    if (w->graph.waits[i])
        return !w->graph.waits[i]->done;
    return s->work && !s->disabled && sim_work_stands(s->work);
}

/* Index in `ready` of a step that can run, the search beginning at a drawn one. */
static size_t choose(const struct sim_work *w, const struct sim_op *op, const size_t *ready,
                     size_t nready, size_t from)
{
    for (;;) {
        for (size_t i = 0; i < nready; i++)
            if (op->stream->object.ctx->sticky || !stands(w, ready[(from + i) % nready]))
                return (from + i) % nready;
        pthread_mutex_unlock(&sim_lock);
        usleep(20);
        pthread_mutex_lock(&sim_lock);
    }
}

uint64_t sim_program_run(struct sim_work *w, struct sim_op *op, uint64_t start_ns)
{
    const struct sim_program *p = w->graph.program;
    size_t *left = sim_new(p->n * sizeof *left), *ready = sim_new(p->n * sizeof *ready);
    uint64_t *from = sim_new(p->n * sizeof *from), last_ns = start_ns, dice = sim.seed + op->sub;
    size_t nready = 0;
    for (size_t i = 0; i < p->n; i++) {
        from[i] = start_ns;
        if (!(left[i] = p->steps[i].ndeps))
            ready[nready++] = i;
    }
    while (nready) {
        dice = dice * 6364136223846793005ull + 1442695040888963407ull;
        size_t pick = choose(w, op, ready, nready, (size_t)((dice >> 33) % nready)),
               i = ready[pick];
        ready[pick] = ready[--nready];
        uint64_t end_ns = run_step(w, op, i, from[i]);
        if (end_ns > last_ns)
            last_ns = end_ns;
        for (size_t c = 0; c < p->steps[i].nchildren; c++) {
            size_t child = p->steps[i].children[c];
            if (end_ns > from[child])
                from[child] = end_ns;
            if (--left[child] == 0)
                ready[nready++] = child;
        }
    }
    free(left);
    free(ready);
    free(from);
    return last_ns;
}

void sim_program_skip(struct sim_work *w, struct sim_op *op)
{
    for (size_t i = 0; i < w->graph.program->n; i++)
        if (w->graph.markers[i])
            sim_op_finish(w->graph.markers[i], op->submit_ns, op->stream->object.ctx->sticky);
}
