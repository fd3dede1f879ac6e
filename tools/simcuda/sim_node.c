/* tools/simcuda/sim_node.c - what a graph says about itself, and changes to its nodes.
 * Called by  programs                   Calls  sim_graph.c
 * Threads    bodies hold sim_lock
 * Promise    pointers handed out stay readable until the node changes or dies
 * Start at   cuGraphGetNodes                                                                */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_stream.h"

/* The CUDA way of returning lists: with no array the count; else up to *n, zeros beyond. */
CUresult sim_nodes_give(struct sim_node *const *nodes, size_t have, CUgraphNode *out,
                        size_t *inout_n)
{
    if (!inout_n)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out && i < *inout_n; i++)
        out[i] = i < have ? nodes[i]->object.handle : NULL;
    if (!out || *inout_n > have)
        *inout_n = have;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphGetNodes, SIM_NS_SMALL, SIM_INIT, (CUgraph handle, CUgraphNode *out, size_t *n),
        (handle, out, n))
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(handle, &ret);
    return g ? sim_nodes_give(g->nodes, g->n, out, n) : ret;
}

SIM_API(cuGraphGetRootNodes, SIM_NS_SMALL, SIM_INIT, (CUgraph handle, CUgraphNode *out, size_t *n),
        (handle, out, n))
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(handle, &ret);
    if (!g)
        return ret;
    struct sim_node **roots = sim_new((g->n + 1) * sizeof *roots);
    size_t have = 0;
    for (size_t i = 0; i < g->n; i++)
        if (!g->nodes[i]->ndeps)
            roots[have++] = g->nodes[i];
    ret = sim_nodes_give(roots, have, out, n);
    free(roots);
    return ret;
}

static CUresult edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                      size_t *inout_n)
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(handle, &ret);
    if (!g || !inout_n || (!from != !to))
        return g ? CUDA_ERROR_INVALID_VALUE : ret;
    size_t have = 0;
    for (size_t i = 0; i < g->n; i++)
        for (size_t d = 0; d < g->nodes[i]->ndeps; d++, have++)
            if (from && have < *inout_n) {
                from[have] = g->nodes[i]->deps[d]->object.handle;
                to[have] = g->nodes[i]->object.handle;
                if (data)
                    data[have] = g->nodes[i]->edges[d];
            }
    if (!from || *inout_n > have)
        *inout_n = have;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphGetEdges, SIM_NS_SMALL, SIM_INIT,
        (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n), (graph, from, to, n))
{
    return edges(graph, from, to, NULL, n);
}

SIM_API(cuGraphGetEdges_v2, SIM_NS_SMALL, SIM_INIT,
        (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
        (graph, from, to, data, n))
{
    return edges(graph, from, to, data, n);
}

SIM_API(cuGraphNodeGetType, SIM_NS_SMALL, SIM_INIT, (CUgraphNode handle, CUgraphNodeType *out),
        (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (node)
        *out = node->type;
    return ret;
}

SIM_API(cuGraphNodeGetDependencies, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUgraphNode *out, size_t *n), (handle, out, n))
{
    CUresult ret;
    struct sim_node *node = sim_node_of(handle, &ret);
    return node ? sim_nodes_give(node->deps, node->ndeps, out, n) : ret;
}

static void remove_dep(struct sim_node *node, const struct sim_node *dep)
{
    for (size_t d = 0; d < node->ndeps; d++)
        if (node->deps[d] == dep) {
            node->ndeps--;
            memmove(node->deps + d, node->deps + d + 1, (node->ndeps - d) * sizeof *node->deps);
            memmove(node->edges + d, node->edges + d + 1, (node->ndeps - d) * sizeof *node->edges);
            return;
        }
}

SIM_API(cuGraphDestroyNode, SIM_NS_SMALL, SIM_INIT, (CUgraphNode handle), (handle))
{
    CUresult ret;
    struct sim_node *node = sim_node_of(handle, &ret);
    if (!node)
        return ret;
    struct sim_graph *g = node->graph;
    size_t at = 0;
    for (size_t i = 0; i < g->n; i++) {
        remove_dep(g->nodes[i], node);
        if (g->nodes[i] == node)
            at = i;
    }
    g->n--;
    memmove(g->nodes + at, g->nodes + at + 1, (g->n - at) * sizeof(struct sim_node *));
    node->graph = NULL;
    sim_handle_drop(node);
    sim_unref(node);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphRemoveDependencies, SIM_NS_SMALL, SIM_INIT,
        (CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n),
        (handle, from, to, n))
{
    CUresult ret;
    struct sim_graph *g = sim_graph_of(handle, &ret);
    struct sim_node **a = NULL, **b = NULL;
    if (g)
        ret = sim_nodes_of(g, from, n, &a);
    if (!ret)
        ret = sim_nodes_of(g, to, n, &b);
    for (size_t i = 0; !ret && i < n; i++)
        remove_dep(b[i], a[i]);
    free(a);
    free(b);
    return ret;
}

/* ---- parameters ---- */

struct sim_node *sim_node_typed(CUgraphNode handle, CUgraphNodeType type, CUresult *out_ret)
{
    struct sim_node *node = sim_node_of(handle, out_ret);
    if (node && node->type != type) {
        *out_ret = CUDA_ERROR_INVALID_VALUE;
        return NULL;
    }
    return node;
}

static CUfunction function_handle(const struct sim_kernel_work *k)
{
    struct sim_function *f = k->function;
    return f->object.handle ? f->object.handle : sim_handle_make(f);
}

static void get_kernel(struct sim_node *node, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    const struct sim_kernel_work *k = &node->work->kernel;
    const struct sim_kernel *host = k->function->host;
    free(node->view);
    node->view = sim_new((host->nparams + 1) * sizeof *node->view);
    for (uint32_t i = 0; i < host->nparams; i++)
        node->view[i] = (char *)k->args + host->params[i].offset;
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){.gridDimX = k->grid[0],
                                        .gridDimY = k->grid[1],
                                        .gridDimZ = k->grid[2],
                                        .blockDimX = k->block[0],
                                        .blockDimY = k->block[1],
                                        .blockDimZ = k->block[2],
                                        .sharedMemBytes = k->shared,
                                        .kernelParams = node->view};
    out->ctx = node->work->object.ctx->object.handle;
    out->kern = k->kernel;
    out->func = function_handle(k); /* of a kernel too */
}

SIM_API(cuGraphKernelNodeGetParams_v2, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *out), (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (node)
        get_kernel(node, out);
    return ret;
}

SIM_API(cuGraphKernelNodeGetParams, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out), (handle, out))
{
    CUresult ret;
    CUDA_KERNEL_NODE_PARAMS_v2 wide;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!node)
        return ret;
    get_kernel(node, &wide);
    memcpy(out, &wide, sizeof *out); /* the newer structure continues the older one */
    return CUDA_SUCCESS;
}

void sim_node_put(struct sim_node *node, struct sim_work *work)
{
    sim_unref(node->work);
    node->work = work;
}

static CUresult set_kernel(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    struct sim_work *w = node ? sim_node_kernel(p, &ret) : NULL;
    if (!w)
        return ret;
    const struct sim_kernel_work *old = &node->work->kernel;
    memcpy(w->kernel.attributes, old->attributes, sizeof old->attributes);
    w->kernel.nattributes = old->nattributes;
    w->kernel.priority = old->priority;
    sim_node_put(node, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetParams_v2, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v2 *p), (handle, p))
{
    return p ? set_kernel(handle, p) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphKernelNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1 *p), (handle, p))
{
    CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    wide = sim_node_widen(p);
    return set_kernel(handle, &wide);
}

SIM_API(cuGraphMemsetNodeGetParams, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out), (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_MEMSET, &ret);
    if (!node || !out)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    const struct sim_set_work *s = &node->work->set;
    *out = (CUDA_MEMSET_NODE_PARAMS){s->dst, s->pitch, s->value, s->element, s->width, s->height};
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemsetNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *p), (handle, p))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_MEMSET, &ret);
    if (!node || !p)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    struct sim_work *w = sim_node_memset(p, node->work->object.ctx->object.handle, &ret);
    if (w)
        sim_node_put(node, w);
    return ret;
}

SIM_API(cuGraphMemcpyNodeGetParams, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUDA_MEMCPY3D *out), (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_MEMCPY, &ret);
    if (!node || !out)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    const struct sim_copy_work *c = &node->work->copy;
    *out = (CUDA_MEMCPY3D){.srcMemoryType = c->src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                           .srcHost = c->src_host ? (void *)c->src : NULL,
                           .srcDevice = c->src_host ? 0 : c->src,
                           .srcPitch = c->src_pitch,
                           .dstMemoryType = c->dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                           .dstHost = c->dst_host ? (void *)c->dst : NULL,
                           .dstDevice = c->dst_host ? 0 : c->dst,
                           .dstPitch = c->dst_pitch,
                           .WidthInBytes = c->width,
                           .Height = c->height,
                           .Depth = c->depth};
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemcpyNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_MEMCPY3D *p), (handle, p))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_MEMCPY, &ret);
    if (!node || !p)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    struct sim_work *w = sim_node_memcpy(p, node->work->object.ctx->object.handle, &ret);
    if (w)
        sim_node_put(node, w);
    return ret;
}

SIM_API(cuGraphEventRecordNodeGetEvent, SIM_NS_SMALL, SIM_INIT, (CUgraphNode handle, CUevent *out),
        (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &ret);
    if (node && out)
        *out = node->work->event.event->object.handle;
    return node && !out ? CUDA_ERROR_INVALID_VALUE : ret;
}

SIM_API(cuGraphEventWaitNodeGetEvent, SIM_NS_SMALL, SIM_INIT, (CUgraphNode handle, CUevent *out),
        (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &ret);
    if (node && out)
        *out = node->work->event.event->object.handle;
    return node && !out ? CUDA_ERROR_INVALID_VALUE : ret;
}

SIM_API(cuGraphNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, CUgraphNodeParams *p), (handle, p))
{
    CUresult ret;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel = sim_node_narrow(&p->kernel);
        return set_kernel(handle, &kernel);
    }
    struct sim_node *node = sim_node_typed(handle, p->type, &ret);
    struct sim_work *w = node ? sim_node_any(p, &ret) : NULL;
    if (w)
        sim_node_put(node, w);
    return ret;
}

/* ---- attributes of kernel nodes ---- */

static struct sim_work *copy_kernel(const struct sim_work *w)
{
    struct sim_work *n = sim_work_new(SIM_WORK_KERNEL, w->object.ctx);
    size_t bytes = w->kernel.function->host->args_bytes;
    n->kernel = w->kernel;
    sim_ref(n->kernel.function);
    n->kernel.args = memcpy(sim_new(bytes), w->kernel.args, bytes);
    return n;
}

SIM_API(cuGraphKernelNodeSetAttribute, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value),
        (handle, id, value))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    if (!node)
        return ret;
    if (!value || (unsigned)id > CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
        id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || /* launches only: cuda.h */
        id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = copy_kernel(node->work);
    struct sim_kernel_work *k = &w->kernel;
    unsigned i = 0;
    while (i < k->nattributes && k->attributes[i].id != id)
        i++;
    if (i == SIM_MAX_ATTRIBUTES) {
        sim_unref(w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    k->attributes[i].id = id;
    k->attributes[i].value = *value;
    if (i == k->nattributes)
        k->nattributes++;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        k->priority = value->priority;
    free(node->view);
    node->view = NULL;
    sim_node_put(node, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeGetAttribute, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out), (handle, id, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    if (!node || !out)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    const struct sim_kernel_work *k = &node->work->kernel;
    memset(out, 0, sizeof *out);
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        out->priority = k->priority;
    for (unsigned i = 0; i < k->nattributes; i++)
        if (k->attributes[i].id == id)
            *out = k->attributes[i].value;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeCopyAttributes, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode to, CUgraphNode from), (to, from))
{
    CUresult ret;
    struct sim_node *dst = sim_node_typed(to, CU_GRAPH_NODE_TYPE_KERNEL, &ret);
    struct sim_node *src = dst ? sim_node_typed(from, CU_GRAPH_NODE_TYPE_KERNEL, &ret) : NULL;
    if (!src)
        return ret;
    struct sim_work *w = copy_kernel(dst->work);
    memcpy(w->kernel.attributes, src->work->kernel.attributes, sizeof w->kernel.attributes);
    w->kernel.nattributes = src->work->kernel.nattributes;
    w->kernel.priority = src->work->kernel.priority;
    free(dst->view);
    dst->view = NULL;
    sim_node_put(dst, w);
    return CUDA_SUCCESS;
}
