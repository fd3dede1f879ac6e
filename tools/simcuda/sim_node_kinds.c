/* tools/simcuda/sim_node_kinds.c - host, event and batch nodes looked at and changed; graphs cloned.
 * Called by  programs                   Calls  sim_graph.c, sim_node.c
 * Threads    bodies hold sim_lock
 * Promise    a change of a node is not a change of what was instantiated before
 * Start at   cuGraphHostNodeGetParams                                                       */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_stream.h"

SIM_API(cuGraphHostNodeGetParams, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out), (handle, out))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_HOST, &ret);
    if (node && out)
        *out = (CUDA_HOST_NODE_PARAMS){node->work->host.fn, node->work->host.data};
    return node && !out ? CUDA_ERROR_INVALID_VALUE : ret;
}

SIM_API(cuGraphHostNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *p), (handle, p))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_HOST, &ret);
    struct sim_work *w = node ? sim_node_host(p, &ret) : NULL;
    if (w)
        sim_node_put(node, w);
    return ret;
}

static CUresult set_event(CUgraphNode handle, CUgraphNodeType type, enum sim_work_kind kind,
                          CUevent event)
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, type, &ret);
    struct sim_work *w = node ? sim_node_event(kind, event, &ret) : NULL;
    if (w)
        sim_node_put(node, w);
    return ret;
}

SIM_API(cuGraphEventRecordNodeSetEvent, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, CUevent event), (handle, event))
{
    return set_event(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, SIM_WORK_RECORD, event);
}

SIM_API(cuGraphEventWaitNodeSetEvent, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, CUevent event), (handle, event))
{
    return set_event(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, SIM_WORK_WAIT, event);
}

SIM_API(cuGraphBatchMemOpNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), (handle, p))
{
    CUresult ret;
    struct sim_node *node = sim_node_typed(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &ret);
    if (!node || !p)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    struct sim_work *w = sim_node_batch(p->ctx, p->count, p->paramArray, &ret);
    if (w)
        sim_node_put(node, w);
    return ret;
}

static CUresult dependents(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *edges,
                           size_t *inout_n)
{
    CUresult ret;
    struct sim_node *node = sim_node_of(handle, &ret);
    if (!node || !inout_n)
        return node ? CUDA_ERROR_INVALID_VALUE : ret;
    const struct sim_graph *g = node->graph;
    struct sim_node **list = sim_new((g->n + 1) * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        for (size_t d = 0; d < g->nodes[i]->ndeps; d++)
            if (g->nodes[i]->deps[d] == node) {
                if (out && edges && n < *inout_n)
                    edges[n] = g->nodes[i]->edges[d];
                list[n++] = g->nodes[i];
            }
    ret = sim_nodes_give(list, n, out, inout_n);
    free(list);
    return ret;
}

SIM_API(cuGraphNodeGetDependentNodes, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUgraphNode *out, size_t *n), (handle, out, n))
{
    return dependents(handle, out, NULL, n);
}

SIM_API(cuGraphNodeGetDependentNodes_v2, SIM_NS_SMALL, SIM_INIT,
        (CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n),
        (handle, out, edges, n))
{
    return dependents(handle, out, edges, n);
}

SIM_API(cuGraphClone, SIM_NS_SMALL, SIM_INIT, (CUgraph * out, CUgraph handle), (out, handle))
{
    CUresult ret;
    struct sim_graph *from = sim_graph_of(handle, &ret);
    if (!from || !out)
        return from ? CUDA_ERROR_INVALID_VALUE : ret;
    struct sim_graph *to = sim_graph_make(NULL);
    for (size_t i = 0; i < from->n; i++) /* dependencies may name later nodes */
        sim_graph_add(to, from->nodes[i]->type, sim_ref(from->nodes[i]->work), NULL, NULL, 0);
    for (size_t i = 0; i < from->n; i++) {
        const struct sim_node *a = from->nodes[i];
        for (size_t d = 0; d < a->ndeps; d++) {
            size_t at = 0;
            while (from->nodes[at] != a->deps[d])
                at++;
            sim_graph_link(to->nodes[i], to->nodes[at], &a->edges[d]);
        }
    }
    *out = sim_handle_make(to);
    sim_unref(to);
    return CUDA_SUCCESS;
}
