/* capture/readback.c - see readback.h. A check answers with what differs, NULL: nothing. */
#include "capture/readback.h"
#include <string.h>

static bool is_among(const CUgraphNode *list, size_t n, size_t hint, CUgraphNode node)
{
    if (hint < n && list[hint] == node)
        return true;
    for (size_t i = 0; i < n; i++)
        if (list[i] == node)
            return true;
    return false;
}

static bool is_edge(const struct ag_verify *v, size_t n, size_t hint, CUgraphNode from,
                    CUgraphNode to)
{
    if (hint < n && v->from[hint] == from && v->to[hint] == to)
        return true;
    for (size_t i = 0; i < n; i++)
        if (v->from[i] == from && v->to[i] == to)
            return true;
    return false;
}

/* The nodes of the piece and no other, each behind the one before and behind nothing else. The lists of the driver are
 * in no promised order; as many as are expected, and each of the expected ones among them, are the same. */
static struct ag_mismatch chain_differs(const struct ag_graph *g, const struct ag_piece *p,
                                        const struct ag_driver *drv)
{
    const struct ag_verify *v = g->verify;
    const size_t room = (size_t)g->n + 1;
    size_t nodes = room, edges = room, at = 0;
    if (ag_real(drv, cuGraphGetNodes)(p->graph, v->from, &nodes) != CUDA_SUCCESS || nodes > room)
        return (struct ag_mismatch){p->first, "the driver does not tell the nodes"};
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next)
        if (v->told[i].node && !is_among(v->from, nodes, at++, v->told[i].node))
            return (struct ag_mismatch){i, "the node is missing"};
    if (at != nodes)
        return (struct ag_mismatch){p->first, "number of nodes"};
    if (ag_real(drv, cuGraphGetEdges_v2)(p->graph, v->from, v->to, v->edge, &edges) !=
            CUDA_SUCCESS ||
        edges > room)
        return (struct ag_mismatch){p->first, "the driver does not tell the edges"};
    CUgraphNode last = NULL;
    at = 0;
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next) {
        const CUgraphNode node = v->told[i].node;
        if (node && last && !is_edge(v, edges, at++, last, node))
            return (struct ag_mismatch){i, "the edge from the node before"};
        last = node ? node : last;
    }
    for (size_t i = 0; i < edges; i++)
        if (v->edge[i].type || v->edge[i].from_port || v->edge[i].to_port)
            return (struct ag_mismatch){p->first, "kind of an edge"};
    return (struct ag_mismatch){p->first, at == edges ? NULL : "number of edges"};
}

static const char *attributes_differ(const struct ag_oplog *log, uint32_t op, CUgraphNode node)
{
    const uint32_t id = log->ops[op].sig->key.attrs;
    const struct ag_attrs *attrs = id ? ag_attrs_at(&log->attrs, id) : NULL;
    for (uint32_t i = 0; attrs && i < attrs->n; i++) {
        const CUlaunchAttribute *a = &attrs->attr[i];
        CUlaunchAttributeValue value;
        if (!ag_attr_is_for_nodes(a))
            continue;
        if (ag_real(log->cap->drv, cuGraphKernelNodeGetAttribute)(node, a->id, &value) !=
                CUDA_SUCCESS ||
            memcmp(&value, &a->value, (size_t)ag_attr_bytes(a)))
            return "a launch attribute";
    }
    return NULL;
}

static CUresult read_back(const struct ag_driver *drv, CUgraphNode node, struct ag_node_params *p)
{
    switch (p->kind) {
    case AG_OP_KERNEL:
    case AG_OP_FILL:
        return ag_real(drv, cuGraphKernelNodeGetParams_v2)(node, &p->kernel);
    case AG_OP_COPY:
        return ag_real(drv, cuGraphMemcpyNodeGetParams)(node, &p->copy);
    case AG_OP_RECORD:
        return ag_real(drv, cuGraphEventRecordNodeGetEvent)(node, &p->event);
    case AG_OP_WAIT:
    case AG_OP_KINDS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static const char *built_differs(const struct ag_graph *g, const struct ag_oplog *log, uint32_t op)
{
    const CUgraphNode node = g->verify->told[op].node;
    struct ag_node_params p = {.kind = log->ops[op].sig->func->kind};
    if (!node)
        return p.kind == AG_OP_RECORD ? NULL : "the op has no node";
    if (read_back(log->cap->drv, node, &p) != CUDA_SUCCESS)
        return "the driver does not tell the node's parameters";
    const bool launches = p.kind == AG_OP_KERNEL || p.kind == AG_OP_FILL;
    const char *what = ag_verify_node(log, op, &p, launches ? p.kernel.kernelParams : NULL);
    what = what ? what : ag_verify_function(log, op);
    return what ? what : attributes_differ(log, op, node);
}

struct ag_mismatch ag_readback_compare(const struct ag_graph *g, const struct ag_piece *p,
                                       const struct ag_oplog *log)
{
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next) {
        const char *what = built_differs(g, log, i);
        if (what)
            return (struct ag_mismatch){i, what};
    }
    return chain_differs(g, p, log->cap->drv);
}
