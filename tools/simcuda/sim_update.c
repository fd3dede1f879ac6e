/* tools/simcuda/sim_update.c - a whole exec updated from a graph.
 * Called by  programs                   Calls  sim_graph.c, sim_exec.c
 * Threads    bodies hold sim_lock
 * Promise    nothing changes unless everything may
 * Start at   update()                                                                       */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_module.h"

static bool same_links(const struct sim_step *a, const struct sim_step *b)
{
    return a->nchildren == b->nchildren &&
           (!a->nchildren || !memcmp(a->children, b->children, a->nchildren * sizeof *a->children));
}

static bool same_attributes(const struct sim_kernel_work *a, const struct sim_kernel_work *b)
{
    if (a->nattributes != b->nattributes)
        return false;
    for (unsigned i = 0; i < a->nattributes; i++)
        if (a->attributes[i].id != b->attributes[i].id ||
            memcmp(&a->attributes[i].value, &b->attributes[i].value,
                   sizeof a->attributes[i].value) != 0)
            return false;
    return true;
}

static CUgraphExecUpdateResult compare(const struct sim_step *old, const struct sim_step *new)
{
    if (old->type != new->type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (old->ndeps != new->ndeps || !same_links(old, new))
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!old->work || !new->work)
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (old->work->object.ctx != new->work->object.ctx)
        return old->type == CU_GRAPH_NODE_TYPE_KERNEL
                   ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    switch (old->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return same_attributes(&old->work->kernel, &new->work->kernel)
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_copy_may_become(&old->work->copy, &new->work->copy, false)
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sim_set_may_become(&old->work->set, &new->work->set)
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    default:
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    }
}

static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphNode *out_node,
                       CUgraphExecUpdateResult *out_result)
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(exec, &ret);
    struct sim_graph *g = e ? sim_graph_of(graph, &ret) : NULL;
    *out_node = NULL;
    *out_result = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (!g)
        return ret;
    struct sim_program *new = sim_program_of_graph(g, e->program->flags);
    CUgraphExecUpdateResult result = new->n == e->program->n
                                         ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                         : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; !result && i < new->n; i++) {
        result = compare(&e->program->steps[i], &new->steps[i]);
        if (result)
            *out_node = g->nodes[i]->object.handle;
    }
    *out_result = result;
    if (!result) {
        struct sim_program *p = sim_exec_own_program(e);
        for (size_t i = 0; i < p->n; i++) {
            sim_unref(p->steps[i].work);
            p->steps[i].work = sim_ref(new->steps[i].work);
        }
        e->patched = p->n;
        sim_stats.patched_nodes += p->n;
        sim_clock_spend(SIM_NS_SET_PARAMS * p->n);
    }
    sim_unref(new);
    return result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}

SIM_API(cuGraphExecUpdate_v2, SIM_NS_LAUNCH, SIM_INIT,
        (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *out), (exec, graph, out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node;
    memset(out, 0, sizeof *out);
    CUresult ret = update(exec, graph, &node, &out->result);
    out->errorNode = node;
    return ret;
}

SIM_API(cuGraphExecUpdate, SIM_NS_LAUNCH, SIM_INIT,
        (CUgraphExec exec, CUgraph graph, CUgraphNode *out_node, CUgraphExecUpdateResult *out),
        (exec, graph, out_node, out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node;
    CUresult ret = update(exec, graph, &node, out);
    if (out_node)
        *out_node = node;
    return ret;
}
