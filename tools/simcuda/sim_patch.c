/* tools/simcuda/sim_patch.c - changes to nodes of graphs and of execs.
 * Called by  programs                   Calls  sim_graph.c
 * Threads    bodies hold sim_lock
 * Promise    the source node must exist, the context stays, attributes cannot be changed in an exec,
 *            copies of one row stay that, copies of several keep their shape
 * Start at   patch()                                                                        */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_stream.h"

/* The step of the exec that was made of the node, or NULL. */
static struct sim_step *step_of(struct sim_exec *e, const struct sim_node *node)
{
    for (size_t i = 0; i < e->program->n; i++)
        if (e->program->steps[i].serial == node->serial)
            return &sim_exec_own_program(e)->steps[i];
    return NULL;
}

static CUresult find(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
                     struct sim_exec **out_exec, struct sim_step **out)
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(exec, &ret);
    struct sim_node *n = e ? sim_node_of(node, &ret) : NULL;
    *out = n ? step_of(e, n) : NULL;
    *out_exec = e;
    if (!ret && (!*out || (*out)->type != type))
        ret = CUDA_ERROR_INVALID_VALUE;
    return ret;
}

/* Takes over `work`. */
static void put(struct sim_exec *e, struct sim_step *s, struct sim_work *work)
{
    sim_unref(s->work);
    s->work = work;
    e->patched++;
    sim_stats.patched_nodes++;
}

static CUresult patch_kernel(CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, &e, &s);
    if (ret)
        return ret;
    struct sim_work *w = sim_node_kernel(p, &ret);
    if (!w)
        return ret;
    if (w->object.ctx != s->work->object.ctx) {
        sim_unref(w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sim_kernel_work *old = &s->work->kernel;
    memcpy(w->kernel.attributes, old->attributes, sizeof old->attributes);
    w->kernel.nattributes = old->nattributes;
    w->kernel.priority = old->priority;
    put(e, s, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecKernelNodeSetParams_v2, SIM_NS_SET_PARAMS, SIM_CTX,
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p), (exec, node, p))
{
    return p ? patch_kernel(exec, node, p) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecKernelNodeSetParams, SIM_NS_SET_PARAMS, SIM_CTX,
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p), (exec, node, p))
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v2 wide = sim_node_widen(p);
    return patch_kernel(exec, node, &wide);
}

static CUresult patch_memcpy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p,
                             CUcontext ctx)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &e, &s);
    if (ret || !p)
        return ret ? ret : CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = sim_node_memcpy(p, ctx, &ret);
    if (!w)
        return ret;
    /* Not refused when the memory that the node had is gone: H200. */
    if (w->object.ctx != s->work->object.ctx ||
        !sim_copy_may_become(&s->work->copy, &w->copy, true)) {
        sim_unref(w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    put(e, s, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx),
        (exec, node, p, ctx))
{
    return patch_memcpy(exec, node, p, ctx);
}

static CUresult patch_memset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p,
                             CUcontext ctx)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &e, &s);
    if (ret || !p)
        return ret ? ret : CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = sim_node_memset(p, ctx, &ret);
    if (!w)
        return ret;
    /* As for copies: not refused when the memory that the node had is gone. */
    if (w->object.ctx != s->work->object.ctx || !sim_set_may_become(&s->work->set, &w->set)) {
        sim_unref(w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    put(e, s, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecMemsetNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
        (exec, node, p, ctx))
{
    return patch_memset(exec, node, p, ctx);
}

static CUresult patch_host(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, CU_GRAPH_NODE_TYPE_HOST, &e, &s);
    struct sim_work *w = ret ? NULL : sim_node_host(p, &ret);
    if (w)
        put(e, s, w);
    return ret;
}

SIM_API(cuGraphExecHostNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p), (exec, node, p))
{
    return patch_host(exec, node, p);
}

static CUresult patch_event(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, type, &e, &s);
    struct sim_event *ev = ret ? NULL : sim_event_of(event, &ret);
    if (!ev)
        return ret;
    struct sim_work *w = sim_work_new(s->work->kind, ev->object.ctx);
    w->event.event = sim_ref(ev);
    put(e, s, w);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecEventRecordNodeSetEvent, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
{
    return patch_event(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

SIM_API(cuGraphExecEventWaitNodeSetEvent, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
{
    return patch_event(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static CUresult patch_batch(CUgraphExec exec, CUgraphNode node,
                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    struct sim_exec *e;
    struct sim_step *s;
    CUresult ret = find(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &e, &s);
    if (ret || !p)
        return ret ? ret : CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = sim_node_batch(p->ctx, p->count, p->paramArray, &ret);
    if (w)
        put(e, s, w);
    return ret;
}

SIM_API(cuGraphExecBatchMemOpNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p),
        (exec, node, p))
{
    return patch_batch(exec, node, p);
}

SIM_API(cuGraphExecNodeSetParams, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p), (exec, node, p))
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel = sim_node_narrow(&p->kernel);
        return patch_kernel(exec, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return patch_memcpy(exec, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS set = {p->memset.dst,         p->memset.pitch, p->memset.value,
                                       p->memset.elementSize, p->memset.width, p->memset.height};
        return patch_memset(exec, node, &set, p->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
        CUDA_HOST_NODE_PARAMS host = {p->host.fn, p->host.userData};
        return patch_host(exec, node, &host);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return patch_event(exec, node, p->type, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return patch_event(exec, node, p->type, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {p->memOp.ctx, p->memOp.count, p->memOp.paramArray,
                                               p->memOp.flags};
        return patch_batch(exec, node, &batch);
    }
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* Both calls are for "kernel, memset and memcpy nodes" (cuda.h 13.0). */
static bool can_be_disabled(const struct sim_step *s)
{
    return s->type == CU_GRAPH_NODE_TYPE_KERNEL || s->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           s->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

SIM_API(cuGraphNodeSetEnabled, SIM_NS_SET_PARAMS, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, unsigned enabled), (exec, node, enabled))
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(exec, &ret);
    struct sim_node *n = e ? sim_node_of(node, &ret) : NULL;
    struct sim_step *s = n ? step_of(e, n) : NULL;
    if (ret || !s)
        return ret ? ret : CUDA_ERROR_INVALID_VALUE;
    if (!can_be_disabled(s))
        return CUDA_ERROR_INVALID_VALUE;
    s->disabled = !enabled;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetEnabled, SIM_NS_GETTER, SIM_INIT,
        (CUgraphExec exec, CUgraphNode node, unsigned *out), (exec, node, out))
{
    CUresult ret;
    struct sim_exec *e = sim_exec_of(exec, &ret);
    struct sim_node *n = e ? sim_node_of(node, &ret) : NULL;
    struct sim_step *s = n ? step_of(e, n) : NULL;
    if (ret || !s || !out || !can_be_disabled(s))
        return ret ? ret : CUDA_ERROR_INVALID_VALUE;
    *out = !s->disabled;
    return CUDA_SUCCESS;
}
