/* tools/simcuda/sim_graph.c - graphs and nodes: made, linked, described.
 * Called by  programs; sim_capture.c    Calls  sim_launch.c, sim_copy.c
 * Threads    bodies hold sim_lock
 * Promise    parameters are copied when they are given
 * Start at   sim_graph_add()                                                                */
#define _GNU_SOURCE
#include "tools/simcuda/sim_graph.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_launch.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_stream.h"

static uint64_t next_serial = 1;

static void free_node(struct sim_object *self)
{
    struct sim_node *n = (struct sim_node *)self;
    sim_unref(n->work);
    free(n->deps);
    free(n->edges);
    free(n->view);
}

static void free_graph(struct sim_object *self)
{
    struct sim_graph *g = (struct sim_graph *)self;
    for (size_t i = 0; i < g->n; i++) {
        g->nodes[i]->graph = NULL;
        sim_handle_drop(g->nodes[i]);
        sim_unref(g->nodes[i]);
    }
    free(g->nodes);
}

struct sim_graph *sim_graph_make(struct sim_context *ctx)
{
    return sim_object_new(sizeof(struct sim_graph), SIM_GRAPH, ctx, free_graph);
}

static void add_deps(struct sim_node *node, struct sim_node *const *deps,
                     const CUgraphEdgeData *edges, size_t n)
{
    node->deps = realloc(node->deps, (node->ndeps + n + 1) * sizeof *node->deps);
    node->edges = realloc(node->edges, (node->ndeps + n + 1) * sizeof *node->edges);
    if (!node->deps || !node->edges)
        abort();
    for (size_t i = 0; i < n; i++) {
        node->deps[node->ndeps] = deps[i];
        node->edges[node->ndeps++] = edges ? edges[i] : (CUgraphEdgeData){0};
    }
}

void sim_graph_link(struct sim_node *node, struct sim_node *on, const CUgraphEdgeData *edge)
{
    add_deps(node, &on, edge, 1);
}

struct sim_node *sim_graph_add(struct sim_graph *g, CUgraphNodeType type, struct sim_work *work,
                               struct sim_node *const *deps, const CUgraphEdgeData *edges, size_t n)
{
    struct sim_node *node = sim_object_new(sizeof *node, SIM_NODE, NULL, free_node);
    node->graph = g;
    node->serial = next_serial++;
    node->type = type;
    node->work = work;
    add_deps(node, deps, edges, n);
    sim_handle_make(node);
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->nodes = realloc(g->nodes, g->room * sizeof(struct sim_node *));
        if (!g->nodes)
            abort();
    }
    g->nodes[g->n++] = node;
    return node;
}

struct sim_graph *sim_graph_of(CUgraph handle, CUresult *out_ret)
{
    struct sim_graph *g = sim_handle_find(handle, SIM_GRAPH);
    *out_ret = g ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_GRAPH)
                   ? sim_misuse(CUDA_ERROR_INVALID_VALUE, "graph %p is destroyed", (void *)handle)
                   : CUDA_ERROR_INVALID_VALUE;
    return g;
}

struct sim_node *sim_node_of(CUgraphNode handle, CUresult *out_ret)
{
    struct sim_node *n = sim_handle_find(handle, SIM_NODE);
    *out_ret = n ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_NODE)
                   ? sim_misuse(CUDA_ERROR_INVALID_VALUE, "node %p: its graph is destroyed",
                                (void *)handle)
                   : CUDA_ERROR_INVALID_VALUE;
    return n;
}

CUresult sim_nodes_of(struct sim_graph *g, const CUgraphNode *handles, size_t n,
                      struct sim_node ***out)
{
    *out = NULL;
    if (n && !handles)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_new((n + 1) * sizeof **out);
    for (size_t i = 0; i < n; i++) {
        CUresult ret;
        (*out)[i] = sim_node_of(handles[i], &ret);
        if (!(*out)[i] || (*out)[i]->graph != g) {
            free(*out);
            *out = NULL;
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS_v2 sim_node_widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = p->func,
                                        .gridDimX = p->gridDimX,
                                        .gridDimY = p->gridDimY,
                                        .gridDimZ = p->gridDimZ,
                                        .blockDimX = p->blockDimX,
                                        .blockDimY = p->blockDimY,
                                        .blockDimZ = p->blockDimZ,
                                        .sharedMemBytes = p->sharedMemBytes,
                                        .kernelParams = p->kernelParams,
                                        .extra = p->extra};
}

/* The context that a node's parameters name, else the current one. */
static struct sim_context *context_for(CUcontext handle, CUresult *out_ret)
{
    struct sim_context *ctx = handle ? sim_context_find(handle) : sim_context_current();
    *out_ret = ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    return ctx;
}

struct sim_work *sim_node_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *p, CUresult *out_ret)
{
    /* `func` takes functions only: a kernel cast to one can be launched, but not added. */
    if ((!p->func && !p->kern) || (p->func && sim_handle_find(p->func, SIM_KERNEL))) {
        *out_ret = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    struct sim_function *f = p->func ? sim_handle_find(p->func, SIM_FUNCTION) : NULL;
    struct sim_context *ctx = f ? f->object.ctx : context_for(p->func ? NULL : p->ctx, out_ret);
    CUlaunchConfig c = {p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                        p->blockDimZ, p->sharedMemBytes, NULL,        NULL,         0};
    if (!ctx)
        return NULL;
    return sim_launch_pack(&c, p->func ? p->func : (CUfunction)p->kern, ctx, p->kernelParams,
                           p->extra, out_ret);
}

struct sim_work *sim_node_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext handle,
                                 CUresult *out_ret)
{
    struct sim_context *ctx = context_for(handle, out_ret);
    if (!ctx)
        return NULL;
    const struct sim_set_work want = {p->dst,   p->value, p->elementSize, p->width, p->height,
                                      p->pitch, {0}};
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) {
        *out_ret = CUDA_ERROR_INVALID_VALUE;
        return NULL;
    }
    return sim_set_make(ctx, &want, out_ret);
}

struct sim_work *sim_node_memcpy(const CUDA_MEMCPY3D *p, CUcontext handle, CUresult *out_ret)
{
    struct sim_context *ctx = context_for(handle, out_ret);
    return ctx ? sim_copy_of_3d(ctx, p, out_ret) : NULL;
}

CUgraphNodeType sim_node_type(const struct sim_work *work)
{
    switch (work->kind) {
    case SIM_WORK_KERNEL:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case SIM_WORK_COPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case SIM_WORK_SET:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case SIM_WORK_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case SIM_WORK_RECORD:
        return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case SIM_WORK_WAIT:
        return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case SIM_WORK_WAIT_VALUE:
    case SIM_WORK_WRITE_VALUE:
    case SIM_WORK_BATCH:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

SIM_API(cuGraphCreate, SIM_NS_SMALL, SIM_INIT, (CUgraph * out, unsigned flags), (out, flags))
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_graph *g = sim_graph_make(NULL);
    *out = sim_handle_make(g);
    sim_unref(g);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroy, SIM_NS_SMALL, SIM_INIT, (CUgraph handle), (handle))
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(handle, &ret);
    if (g)
        sim_handle_drop(g);
    return ret;
}

CUresult sim_graph_put(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                       const CUgraphEdgeData *edges, size_t n, CUgraphNodeType type,
                       struct sim_work *work, CUresult ret)
{
    CUresult found;
    struct sim_graph *g = sim_graph_of(graph, &found);
    struct sim_node **nodes = NULL;
    if (!ret && (!out || !g))
        ret = CUDA_ERROR_INVALID_VALUE;
    if (!ret)
        ret = sim_nodes_of(g, deps, n, &nodes);
    if (ret) {
        sim_unref(work);
        return ret;
    }
    *out = sim_graph_add(g, type, work, nodes, edges, n)->object.handle;
    free(nodes);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddKernelNode_v2, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_KERNEL_NODE_PARAMS_v2 *p),
        (out, graph, deps, n, p))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_kernel(p, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_KERNEL, w, ret);
}

SIM_API(cuGraphAddKernelNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_KERNEL_NODE_PARAMS_v1 *p),
        (out, graph, deps, n, p))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};
    if (p)
        wide = sim_node_widen(p);
    struct sim_work *w = p ? sim_node_kernel(&wide, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_KERNEL, w, ret);
}

SIM_API(cuGraphAddMemcpyNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_MEMCPY3D *p, CUcontext ctx),
        (out, graph, deps, n, p, ctx))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_memcpy(p, ctx, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_MEMCPY, w, ret);
}

SIM_API(cuGraphAddMemsetNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
        (out, graph, deps, n, p, ctx))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_memset(p, ctx, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_MEMSET, w, ret);
}

SIM_API(cuGraphAddEmptyNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n),
        (out, graph, deps, n))
{
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_EMPTY, NULL, CUDA_SUCCESS);
}

struct sim_work *sim_node_host(const CUDA_HOST_NODE_PARAMS *p, CUresult *out_ret)
{
    *out_ret = p && p->fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_HOST, NULL);
    w->host.fn = p->fn;
    w->host.data = p->userData;
    return w;
}

SIM_API(cuGraphAddHostNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_HOST_NODE_PARAMS *p),
        (out, graph, deps, n, p))
{
    CUresult ret;
    struct sim_work *w = sim_node_host(p, &ret);
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_HOST, w, ret);
}

struct sim_work *sim_node_event(enum sim_work_kind kind, CUevent event, CUresult *out_ret)
{
    struct sim_event *e = sim_event_of(event, out_ret);
    if (!e)
        return NULL;
    struct sim_work *w = sim_work_new(kind, e->object.ctx);
    w->event.event = sim_ref(e);
    return w;
}

SIM_API(cuGraphAddEventRecordNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent event),
        (out, graph, deps, n, event))
{
    CUresult ret;
    struct sim_work *w = sim_node_event(SIM_WORK_RECORD, event, &ret);
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, w, ret);
}

SIM_API(cuGraphAddEventWaitNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent event),
        (out, graph, deps, n, event))
{
    CUresult ret;
    struct sim_work *w = sim_node_event(SIM_WORK_WAIT, event, &ret);
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, w, ret);
}

CUDA_KERNEL_NODE_PARAMS_v2 sim_node_narrow(const CUDA_KERNEL_NODE_PARAMS_v3 *k)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){
        k->func,      k->gridDimX,       k->gridDimY,     k->gridDimZ, k->blockDimX, k->blockDimY,
        k->blockDimZ, k->sharedMemBytes, k->kernelParams, k->extra,    k->kern,      k->ctx};
}

struct sim_work *sim_node_any(const CUgraphNodeParams *p, CUresult *out_ret)
{
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS_v2 v2 = sim_node_narrow(&p->kernel);
        return sim_node_kernel(&v2, out_ret);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_node_memcpy(&p->memcpy.copyParams, p->memcpy.copyCtx, out_ret);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS_v2 *m = &p->memset;
        CUDA_MEMSET_NODE_PARAMS v1 = {m->dst,         m->pitch, m->value,
                                      m->elementSize, m->width, m->height};
        return sim_node_memset(&v1, m->ctx, out_ret);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
        CUDA_HOST_NODE_PARAMS host = {p->host.fn, p->host.userData};
        return sim_node_host(&host, out_ret);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return sim_node_event(SIM_WORK_RECORD, p->eventRecord.event, out_ret);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return sim_node_event(SIM_WORK_WAIT, p->eventWait.event, out_ret);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return sim_node_batch(p->memOp.ctx, p->memOp.count, p->memOp.paramArray, out_ret);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *out_ret = CUDA_SUCCESS;
        return NULL;
    default:
        *out_ret = CUDA_ERROR_NOT_SUPPORTED;
        return NULL;
    }
}

SIM_API(cuGraphAddNode_v2, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
         size_t n, CUgraphNodeParams *p),
        (out, graph, deps, edges, n, p))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_any(p, &ret) : NULL;
    return sim_graph_put(out, graph, deps, edges, n, p ? p->type : 0, w, ret);
}

SIM_API(cuGraphAddNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p),
        (out, graph, deps, n, p))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_any(p, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, p ? p->type : 0, w, ret);
}

static CUresult link(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                     const CUgraphEdgeData *edges, size_t n)
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(graph, &ret);
    struct sim_node **a = NULL, **b = NULL;
    if (g)
        ret = sim_nodes_of(g, from, n, &a);
    if (!ret)
        ret = sim_nodes_of(g, to, n, &b);
    for (size_t i = 0; !ret && i < n; i++) {
        for (size_t d = 0; d < b[i]->ndeps; d++)
            if (b[i]->deps[d] == a[i])
                ret = CUDA_ERROR_INVALID_VALUE; /* already there */
        if (a[i] == b[i])
            ret = CUDA_ERROR_INVALID_VALUE;
        if (!ret)
            add_deps(b[i], &a[i], edges ? &edges[i] : NULL, 1);
    }
    free(a);
    free(b);
    return ret;
}

SIM_API(cuGraphAddDependencies, SIM_NS_SMALL, SIM_INIT,
        (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n),
        (graph, from, to, n))
{
    return link(graph, from, to, NULL, n);
}

SIM_API(cuGraphAddDependencies_v2, SIM_NS_SMALL, SIM_INIT,
        (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
         const CUgraphEdgeData *edges, size_t n),
        (graph, from, to, edges, n))
{
    return link(graph, from, to, edges, n);
}
