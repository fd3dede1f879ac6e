/* tools/simcuda/sim_capture.c - stream capture by the program: a state machine per capture.
 * Called by  see sim_capture.h          Calls  sim_graph.c
 * Threads    bodies hold sim_lock
 * Promise    see sim_capture.h
 * Start at   cuStreamBeginCapture_v2                                                        */
#define _GNU_SOURCE
#include "tools/simcuda/sim_capture.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

static struct sim_capture *active; /* captures that have not ended */
static uint64_t next_id = 1;

static void free_capture(struct sim_object *self)
{
    sim_unref(((struct sim_capture *)self)->graph);
}

void sim_capture_forget_heads(struct sim_node ***heads, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        sim_unref((*heads)[i]);
    free(*heads);
    *heads = NULL;
    *n = 0;
}

static void set_heads(struct sim_stream *s, struct sim_node *const *nodes, size_t n)
{
    struct sim_node **heads = sim_new((n + 1) * sizeof *heads);
    for (size_t i = 0; i < n; i++)
        heads[i] = sim_ref(nodes[i]);
    sim_capture_forget_heads(&s->heads, &s->nheads);
    s->heads = heads;
    s->nheads = n;
}

static void add_head(struct sim_stream *s, struct sim_node *node)
{
    for (size_t i = 0; i < s->nheads; i++)
        if (s->heads[i] == node)
            return;
    s->heads = realloc(s->heads, (s->nheads + 1) * sizeof(struct sim_node *));
    if (!s->heads)
        abort();
    s->heads[s->nheads++] = sim_ref(node);
}

CUresult sim_capture_break(struct sim_capture *c, CUresult code)
{
    c->invalid = true;
    return code;
}

CUresult sim_capture_add(struct sim_stream *s, struct sim_work *work)
{
    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct sim_node *node = sim_graph_add(s->capture->graph, sim_node_type(work), sim_ref(work),
                                          s->heads, NULL, s->nheads);
    set_heads(s, &node, 1);
    return CUDA_SUCCESS;
}

CUresult sim_capture_record(struct sim_stream *s, struct sim_event *e, unsigned flags)
{
    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct sim_work *w = sim_work_new(SIM_WORK_RECORD, s->object.ctx);
        w->event.event = sim_ref(e);
        CUresult ret = sim_capture_add(s, w);
        sim_unref(w);
        return ret;
    }
    struct sim_node **heads = sim_new((s->nheads + 1) * sizeof *heads);
    for (size_t i = 0; i < s->nheads; i++)
        heads[i] = sim_ref(s->heads[i]);
    sim_capture_forget_heads(&e->heads, &e->nheads);
    e->heads = heads;
    e->nheads = s->nheads;
    sim_ref(s->capture);
    sim_unref(e->capture);
    e->capture = s->capture;
    return CUDA_SUCCESS;
}

static CUresult wait_external(struct sim_stream *s, struct sim_event *e)
{
    struct sim_work *w = sim_work_new(SIM_WORK_WAIT, s->object.ctx);
    w->event.event = sim_ref(e);
    CUresult ret = sim_capture_add(s, w);
    sim_unref(w);
    return ret;
}

CUresult sim_capture_wait(struct sim_stream *s, struct sim_event *e, unsigned flags)
{
    if (s->capture && s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->capture && (flags & CU_EVENT_WAIT_EXTERNAL))
        return wait_external(s, e);
    if (!e->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (e->capture->invalid || e->capture->over)
        return e->capture->over ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->kind == SIM_STREAM_LEGACY)
        return sim_capture_break(e->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (s->capture && s->capture != e->capture) {
        s->capture->invalid = true;
        return sim_capture_break(e->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (!s->capture) { /* the capture spreads to this stream */
        s->capture = sim_ref(e->capture);
        s->object.ctx->captures++;
    }
    for (size_t i = 0; i < e->nheads; i++)
        add_head(s, e->heads[i]);
    return CUDA_SUCCESS;
}

CUresult sim_capture_forbids_unsafe(void)
{
    const struct sim_tls *tls = sim_self();
    CUresult ret = CUDA_SUCCESS;
    if (tls->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return ret;
    for (struct sim_capture *c = active; c; c = c->next) {
        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (c->thread == tls->number || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                         tls->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL))
            ret = sim_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return ret;
}

CUresult sim_capture_forbids_legacy(struct sim_context *ctx)
{
    if (!ctx->captures)
        return CUDA_SUCCESS;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        if (s->capture && sim_stream_is_blocking(s))
            return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return CUDA_SUCCESS;
}

CUresult sim_capture_forbids_context_wait(struct sim_context *ctx)
{
    CUresult ret = CUDA_SUCCESS;
    for (struct sim_capture *c = active; c; c = c->next)
        if (c->object.ctx == ctx)
            ret = sim_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return ret;
}

static void leave(struct sim_stream *s)
{
    sim_capture_forget_heads(&s->heads, &s->nheads);
    sim_unref(s->capture);
    s->capture = NULL;
    if (s->object.ctx->captures)
        s->object.ctx->captures--;
}

static void finish(struct sim_capture *c, struct sim_context *ctx)
{
    for (struct sim_capture **at = &active; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    c->over = true;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        if (s->capture == c)
            leave(s);
    sim_unref(c); /* the list's */
}

void sim_capture_stream_destroyed(struct sim_stream *s)
{
    if (!s->capture)
        return;
    struct sim_capture *c = s->capture;
    c->invalid = true;
    if (c->origin == s)
        finish(c, s->object.ctx);
    else
        leave(s);
}

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct sim_graph *graph)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!s)
        return ret;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->kind == SIM_STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *c = sim_object_new(sizeof *c, 0, s->object.ctx, free_capture);
    c->id = next_id++;
    c->graph = graph ? sim_ref(graph) : sim_graph_make(NULL);
    c->to_graph = graph != NULL;
    c->mode = mode;
    c->origin = s;
    c->thread = sim_self()->number;
    c->next = active;
    active = c;
    s->capture = sim_ref(c);
    s->object.ctx->captures++;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamBeginCapture_v2, SIM_NS_SMALL, SIM_CTX,
             (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
    return begin(stream, mode, NULL);
}

SIM_API_PTSZ(cuStreamBeginCapture, SIM_NS_SMALL, SIM_CTX, (CUstream stream), (stream))
{
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL);
}

SIM_API_PTSZ(cuStreamBeginCaptureToGraph, SIM_NS_SMALL, SIM_CTX,
             (CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
              size_t n, CUstreamCaptureMode mode),
             (stream, graph, deps, edges, n, mode))
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(graph, &ret);
    struct sim_node **nodes = NULL;
    (void)edges;
    if (g)
        ret = sim_nodes_of(g, deps, n, &nodes);
    if (!ret)
        ret = begin(stream, mode, g);
    if (!ret)
        set_heads(sim_stream_of(stream, &ret), nodes, n);
    free(nodes);
    return ret;
}

/* Work in another stream that the origin does not depend on. */
static bool is_unjoined(struct sim_capture *c, struct sim_context *ctx)
{
    for (struct sim_stream *s = ctx->streams; s; s = s->next) {
        if (s->capture != c || s == c->origin)
            continue;
        for (size_t h = 0; h < s->nheads; h++) {
            bool joined = false;
            for (size_t i = 0; i < c->origin->nheads; i++)
                joined |= c->origin->heads[i] == s->heads[h];
            for (size_t i = 0; i < c->graph->n; i++)
                for (size_t d = 0; d < c->graph->nodes[i]->ndeps; d++)
                    joined |= c->graph->nodes[i]->deps[d] == s->heads[h];
            if (!joined)
                return true;
        }
    }
    return false;
}

SIM_API_PTSZ(cuStreamEndCapture, SIM_NS_SMALL, SIM_CTX, (CUstream handle, CUgraph *out),
             (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!s)
        return ret;
    struct sim_capture *c = s->capture;
    if (out)
        *out = NULL;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return sim_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    sim_ref(c);
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != sim_self()->number)
        ret = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD; /* the capture is over all the same */
    else if (c->invalid)
        ret = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (is_unjoined(c, s->object.ctx))
        ret = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    finish(c, s->object.ctx);
    if (!ret)
        *out = c->graph->object.handle ? c->graph->object.handle : sim_handle_make(c->graph);
    else if (c->graph->object.handle && !c->to_graph)
        sim_handle_drop(c->graph);
    sim_unref(c);
    return ret;
}

SIM_API_PTSZ(cuStreamIsCapturing, SIM_NS_GETTER, SIM_CTX,
             (CUstream handle, CUstreamCaptureStatus *out), (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!s)
        return ret;
    if (s->kind == SIM_STREAM_LEGACY) {
        ret = sim_capture_forbids_legacy(s->object.ctx);
        if (ret)
            return ret;
    }
    *out = !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return ret;
}

/* The nodes as handles, in memory that lives until the stream's next capture call. */
static CUresult info(CUstream handle, CUstreamCaptureStatus *out_status, cuuint64_t *out_id,
                     CUgraph *out_graph, const CUgraphNode **out_nodes, size_t *out_n)
{
    static _Thread_local CUgraphNode nodes[1024];
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out_status)
        return CUDA_ERROR_INVALID_VALUE;
    if (!s)
        return ret;
    const struct sim_capture *c = s->capture;
    *out_status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
                  : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*out_status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (out_id)
        *out_id = c->id;
    if (out_graph)
        *out_graph = c->graph->object.handle ? c->graph->object.handle : sim_handle_make(c->graph);
    for (size_t i = 0; i < s->nheads && i < 1024; i++)
        nodes[i] = s->heads[i]->object.handle;
    if (out_nodes)
        *out_nodes = nodes;
    if (out_n)
        *out_n = s->nheads;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCaptureInfo, SIM_NS_GETTER, SIM_CTX,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), (stream, status, id))
{
    return info(stream, status, id, NULL, NULL, NULL);
}

SIM_API_PTSZ(cuStreamGetCaptureInfo_v2, SIM_NS_GETTER, SIM_CTX,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
              const CUgraphNode **nodes, size_t *n),
             (stream, status, id, graph, nodes, n))
{
    return info(stream, status, id, graph, nodes, n);
}

SIM_API_PTSZ(cuStreamGetCaptureInfo_v3, SIM_NS_GETTER, SIM_CTX,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
              const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n),
             (stream, status, id, graph, nodes, edges, n))
{
    static const CUgraphEdgeData none[1024];
    if (edges)
        *edges = none;
    return info(stream, status, id, graph, nodes, n);
}

static CUresult change_heads(CUstream handle, const CUgraphNode *deps, size_t n, unsigned flags)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    struct sim_node **nodes = NULL;
    if (!s)
        return ret;
    if (!s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    ret = sim_nodes_of(s->capture->graph, deps, n, &nodes);
    if (!ret && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        set_heads(s, nodes, n);
    for (size_t i = 0; !ret && i < n; i++)
        add_head(s, nodes[i]);
    free(nodes);
    return ret;
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies, SIM_NS_SMALL, SIM_CTX,
             (CUstream stream, CUgraphNode *deps, size_t n, unsigned flags),
             (stream, deps, n, flags))
{
    return change_heads(stream, deps, n, flags);
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies_v2, SIM_NS_SMALL, SIM_CTX,
             (CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
              unsigned flags),
             (stream, deps, edges, n, flags))
{
    (void)edges;
    return change_heads(stream, deps, n, flags);
}

SIM_API(cuThreadExchangeStreamCaptureMode, SIM_NS_GETTER, SIM_INIT, (CUstreamCaptureMode * mode),
        (mode))
{
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_tls *tls = sim_self();
    CUstreamCaptureMode before = tls->capture_mode;
    tls->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
