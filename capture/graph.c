/* capture/graph.c - see graph.h. */
#define _GNU_SOURCE
#include "capture/graph.h"
#include "capture/event.h"
#include "capture/verify.h"
#include <stdlib.h>
#include <string.h>

void **ag_op_pointers(struct ag_oplog *log, const struct ag_func *func, unsigned char *args)
{
    for (uint32_t i = 0; i < func->params; i++)
        log->pointers[i] = args + func->param[i].offset;
    return log->pointers;
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_params(struct ag_oplog *log, const struct ag_sig *sig,
                                              unsigned char *args)
{
    const struct ag_config *c = &sig->key.config;
    CUDA_KERNEL_NODE_PARAMS_v2 p = {
        .gridDimX = c->grid[0],
        .gridDimY = c->grid[1],
        .gridDimZ = c->grid[2],
        .blockDimX = c->block[0],
        .blockDimY = c->block[1],
        .blockDimZ = c->block[2],
        .sharedMemBytes = c->shared_bytes,
        .kernelParams = ag_op_pointers(log, sig->func, args),
    };
    if (sig->func->is_kernel) {
        p.kern = (CUkernel)sig->key.handle;
        p.ctx = log->ctx;
    } else {
        p.func = sig->key.handle;
    }
    return p;
}

/* Measured on one H200: a kernel node takes 3-6 KB of device and 8 KB of host memory with 12 bytes
 * of arguments, 9-12 and 24 KB with 4 KB of them. */
uint64_t ag_graph_estimate(const struct ag_oplog *log)
{
    const uint64_t verify = log->cap->options->verify ? ag_verify_bytes(log) : 0;
    return (uint64_t)log->n * (6 + 8) * 1024 + log->args_used * 6 + verify;
}

static bool is_record(const struct ag_oplog *log, uint32_t i)
{
    return log->ops[i].sig->func->kind == AG_OP_RECORD;
}

/* False: not enough for a graph. */
static bool choose_pieces(const struct ag_oplog *log, struct ag_graph *g)
{
    g->pieces = ag_pieces_choose(log, g->place, g->piece);
    for (uint32_t k = 0; k < g->pieces; k++) {
        g->execs += g->piece[k].is_graph;
        g->tail = g->piece[k].is_graph ? k + 1 : g->tail;
    }
    return g->pieces;
}

static struct ag_graph *allocate(const struct ag_oplog *log)
{
    struct ag_graph *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->track = log->cur;
    g->n = log->n;
    g->args_used = log->args_used;
    g->node = calloc(g->n, sizeof *g->node);
    g->place = calloc(g->n, sizeof *g->place);
    g->piece = calloc(g->n, sizeof *g->piece);
    g->args = malloc(g->args_used + 1);
    g->bytes = ag_graph_estimate(log);
    uint32_t params = 0;
    for (uint32_t i = 0; i < log->n; i++)
        params += log->ops[i].sig->func->params;
    if (log->cap->options->dump[0])
        g->changed = calloc(params + 1, sizeof *g->changed);
    const bool verified = log->cap->options->verify;
    if (verified)
        g->verify = ag_verify_make(g);
    if (g->node && g->place && g->piece && g->args && (g->verify || !verified))
        return g;
    ag_graph_destroy(g, log->cap->drv);
    return NULL;
}

static CUresult set_attributes(const struct ag_oplog *log, const struct ag_node *node)
{
    CUresult ret = CUDA_SUCCESS;
    if (!node->sig->key.attrs)
        return ret;
    const struct ag_attrs *attrs = ag_attrs_at(&log->attrs, node->sig->key.attrs);
    for (uint32_t i = 0; i < attrs->n && ret == CUDA_SUCCESS; i++)
        if (ag_attr_is_for_nodes(&attrs->attr[i]))
            ret = ag_real(log->cap->drv, cuGraphKernelNodeSetAttribute)(
                node->node, attrs->attr[i].id, &attrs->attr[i].value);
    return ret;
}

/* A line of bytes. `args` are a struct ag_copy. */
static CUDA_MEMCPY3D copy_params(const unsigned char *args)
{
    struct ag_copy c;
    memcpy(&c, args, sizeof c);
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = (CUdeviceptr)c.from,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = (CUdeviceptr)c.to,
        .WidthInBytes = c.bytes,
        .Height = 1,
        .Depth = 1,
    };
}

/* A memset as a launch of the shim's own kernel. */
static CUDA_KERNEL_NODE_PARAMS_v2 fill_params(struct ag_oplog *log, const struct ag_sig *sig,
                                              unsigned char *args)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = log->filler.function,
        .gridDimX = ag_fill_grid(args),
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = AG_FILL_BLOCK,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = ag_op_pointers(log, sig->func, args),
    };
}

static struct ag_event_record record_params(const unsigned char *args)
{
    struct ag_event_record r;
    memcpy(&r, args, sizeof r);
    return r;
}

/* Is the record left out, as the one behind it in the segment that is of its event stands for it? */
static bool is_dead(const struct ag_oplog *log, uint32_t i)
{
#ifdef AG_MUTANT_RECORD_ELIDED /* ... whatever event that one is of */
    while (++i < log->n)
        if (is_record(log, i))
            return true;
    return false;
#endif
    return record_params(log->args + log->ops[i].args).dead;
}

static CUevent record_event(const unsigned char *args)
{
    return (CUevent)(uintptr_t)record_params(args).event;
}

static struct ag_node_params params_of(struct ag_oplog *log, const struct ag_sig *sig,
                                       unsigned char *args)
{
    struct ag_node_params p;
    p.kind = sig->func->kind;
    switch (p.kind) {
    case AG_OP_KERNEL:
        p.kernel = node_params(log, sig, args);
        break;
    case AG_OP_COPY:
        p.copy = copy_params(args);
        break;
    case AG_OP_FILL:
        p.kernel = fill_params(log, sig, args);
        break;
    case AG_OP_RECORD:
        p.event = record_event(args);
        break;
    case AG_OP_WAIT:
    case AG_OP_KINDS:
        p.event = NULL;
        break;
    }
    return p;
}

static CUresult add(CUgraph graph, const struct ag_oplog *log, struct ag_node *node,
                    const CUgraphNode *after, const struct ag_node_params *p)
{
    const struct ag_driver *drv = log->cap->drv;
    const size_t edges = after ? 1 : 0;
    CUresult ret;
    switch (p->kind) {
    case AG_OP_KERNEL:
        ret = ag_real(drv, cuGraphAddKernelNode_v2)(&node->node, graph, after, edges, &p->kernel);
        return ret == CUDA_SUCCESS ? set_attributes(log, node) : ret;
    case AG_OP_COPY:
        return ag_real(drv, cuGraphAddMemcpyNode)(&node->node, graph, after, edges, &p->copy,
                                                  log->ctx);
    case AG_OP_FILL:
        return ag_real(drv, cuGraphAddKernelNode_v2)(&node->node, graph, after, edges, &p->kernel);
    case AG_OP_RECORD:
        return ag_real(drv, cuGraphAddEventRecordNode)(&node->node, graph, after, edges, p->event);
    case AG_OP_WAIT:
    case AG_OP_KINDS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult add_node(struct ag_graph *g, CUgraph graph, struct ag_oplog *log, uint32_t op,
                         const CUgraphNode *after)
{
    struct ag_node *node = &g->node[op];
    unsigned char *args = log->args + node->args;
    const struct ag_node_params p = params_of(log, node->sig, args);
    const CUresult ret = add(graph, log, node, after, &p);
    if (ret == CUDA_SUCCESS && g->verify)
        ag_verify_told(g, op, NULL, &p, args);
    return ret;
}

static CUresult patch(CUgraphExec exec, const struct ag_oplog *log, CUgraphNode node,
                      const struct ag_node_params *p)
{
    const struct ag_driver *drv = log->cap->drv;
    switch (p->kind) {
    case AG_OP_KERNEL:
    case AG_OP_FILL:
        return ag_real(drv, cuGraphExecKernelNodeSetParams_v2)(exec, node, &p->kernel);
    case AG_OP_COPY:
        return ag_real(drv, cuGraphExecMemcpyNodeSetParams)(exec, node, &p->copy, log->ctx);
    case AG_OP_RECORD:
        return ag_real(drv, cuGraphExecEventRecordNodeSetEvent)(exec, node, p->event);
    case AG_OP_WAIT:
    case AG_OP_KINDS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult patch_node(struct ag_graph *g, struct ag_oplog *log, uint32_t op,
                           unsigned char *args)
{
    const struct ag_node *node = &g->node[op];
    const CUgraphExec exec = g->piece[g->place[op].piece].exec;
    const struct ag_node_params p = params_of(log, node->sig, args);
    const CUresult ret = patch(exec, log, node->node, &p);
    if (ret == CUDA_SUCCESS && g->verify)
        ag_verify_told(g, op, exec, &p, args);
    return ret;
}

static void place_ops(struct ag_graph *g, const struct ag_oplog *log)
{
    uint32_t params = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        struct ag_node *node = &g->node[i];
        node->sig = log->ops[i].sig;
        node->args = log->ops[i].args;
        node->first_param = params;
        params += node->sig->func->params;
    }
}

static CUresult add_nodes(struct ag_graph *g, struct ag_piece *p, struct ag_oplog *log)
{
    const bool elides = g->track->other_records < AG_OTHER_RECORDS;
    const CUgraphNode *last = NULL;
    CUresult ret = ag_real(log->cap->drv, cuGraphCreate)(&p->graph, 0);
    for (uint32_t i = p->first; i != AG_NO_OP && ret == CUDA_SUCCESS; i = g->place[i].next) {
        struct ag_node *node = &g->node[i];
        if (elides && is_record(log, i) && is_dead(log, i)) {
            g->elided++;
            continue;
        }
        g->of_kind[node->sig->func->kind]++;
        ret = add_node(g, p->graph, log, i, last);
        last = &node->node;
    }
    return ret;
}

static enum ag_refusal make_pieces(struct ag_graph *g, struct ag_oplog *log)
{
    const struct ag_driver *drv = log->cap->drv;
    CUresult ret = CUDA_SUCCESS;
    for (uint32_t k = 0; k < g->pieces && ret == CUDA_SUCCESS; k++) {
        struct ag_piece *p = &g->piece[k];
        if (!p->is_graph)
            continue;
        ag_oplog_submits(log, p->stream);
        ret = add_nodes(g, p, log);
        if (ret == CUDA_SUCCESS && g->verify && !ag_verify_passes_built(g, p, log))
            return AG_REFUSAL_MISMATCH;
        if (ret == CUDA_SUCCESS)
            ret = ag_real(drv, cuGraphInstantiateWithFlags)(&p->exec, p->graph, 0);
        if (ret == CUDA_SUCCESS)
            ret = ag_real(drv, cuGraphUpload)(p->exec, p->stream->handle);
    }
    return ret == CUDA_SUCCESS ? AG_REFUSAL_NONE : AG_REFUSAL_BUILD_FAILED;
}

struct ag_graph *ag_graph_build(struct ag_oplog *log, enum ag_refusal *out_why)
{
    const struct ag_driver *drv = log->cap->drv;
    const uint64_t start = ag_now_ns();
    struct ag_graph *g = allocate(log);
    *out_why = AG_REFUSAL_NO_MEMORY;
    if (!g)
        return NULL;
    ag_events_compare(log);
    *out_why = AG_REFUSAL_SHORT;
    if (!choose_pieces(log, g)) {
        ag_graph_destroy(g, drv);
        return NULL;
    }
    /* Another thread's global-mode capture must not see our calls as its own mistake. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    place_ops(g, log);
    *out_why = make_pieces(g, log);
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    if (*out_why != AG_REFUSAL_NONE) {
        ag_graph_destroy(g, drv);
        return NULL;
    }
    memcpy(g->args, log->args, g->args_used);
    g->build_ns = ag_now_ns() - start;
    return g;
}

static void note_changed(struct ag_graph *g, const struct ag_node *node, const unsigned char *args)
{
    const struct ag_func *f = node->sig->func;
    for (uint32_t i = 0; i < f->params; i++) {
        const struct ag_param *p = &f->param[i];
        if (memcmp(g->args + node->args + p->offset, args + p->offset, p->size))
            g->changed[node->first_param + i]++;
    }
}

/* Is the exec to be told? What does not stand in a node needs no telling, nor does what only says that a record
 * in the graph is not the last one. */
static bool tells(const struct ag_node *node, const unsigned char *was, const unsigned char *is)
{
    if (!node->node || node->sig->func->kind != AG_OP_RECORD)
        return node->node;
#ifdef AG_MUTANT_RECORD_STALE /* the event of the record that the graph was built for */
    return false;
#endif
    const struct ag_event_record a = record_params(was), b = record_params(is);
#ifdef AG_MUTANT_RECORD_GENERATION /* the event that had the handle before */
    return a.event != b.event;
#endif
    return a.event != b.event || a.generation != b.generation;
}

/* A record that the graph leaves out, and that no other one stands for any more. */
static bool is_missed(const struct ag_graph *g, const struct ag_oplog *log, uint32_t i)
{
    return !g->node[i].node && g->piece[g->place[i].piece].is_graph && !is_dead(log, i);
}

/* A record of an event that the driver was not yet told to wait for, in a graph that it would have before. */
static bool is_early(const struct ag_graph *g, const struct ag_oplog *log, uint32_t i)
{
#ifdef AG_MUTANT_RECORD_EARLY
    return false;
#endif
    return g->node[i].node && is_record(log, i) && ag_event_is_behind(log, &log->ops[i]);
}

enum ag_refusal ag_graph_patch(struct ag_graph *g, struct ag_oplog *log, uint64_t *out_nodes,
                               uint64_t *out_bytes)
{
    *out_nodes = *out_bytes = 0;
    if (!memcmp(g->args, log->args, g->args_used))
        return AG_REFUSAL_NONE;
#ifdef AG_MUTANT_STALE_ARGUMENT
    return AG_REFUSAL_NONE;
#endif
    for (uint32_t i = 0; i < g->n; i++) {
        struct ag_node *node = &g->node[i];
        unsigned char *args = log->args + node->args;
        const uint32_t bytes = node->sig->func->bytes;
        if (!memcmp(g->args + node->args, args, bytes))
            continue;
        if (is_missed(g, log, i) || is_early(g, log, i))
            return AG_REFUSAL_OTHER_RECORDS;
        const bool told = tells(node, g->args + node->args, args);
        if (told && patch_node(g, log, i, args) != CUDA_SUCCESS)
            return AG_REFUSAL_PATCH_FAILED;
        node->patched += told;
        if (g->changed)
            note_changed(g, node, args);
        memcpy(g->args + node->args, args, bytes);
        *out_nodes += told;
        *out_bytes += told ? bytes : 0;
    }
    return AG_REFUSAL_NONE;
}

/* Destroying an exec, like making one, ends a global-mode capture of another thread, even a capture
 * that has nothing to do with it (conformance fact capture.elsewhere.graph_exec_destroy). */
void ag_graph_destroy(struct ag_graph *g, const struct ag_driver *drv)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    for (uint32_t k = 0; g->piece && k < g->pieces; k++) {
        if (g->piece[k].exec)
            ag_real(drv, cuGraphExecDestroy)(g->piece[k].exec);
        if (g->piece[k].graph)
            ag_real(drv, cuGraphDestroy)(g->piece[k].graph);
    }
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    free(g->node);
    free(g->place);
    free(g->piece);
    free(g->args);
    free(g->changed);
    ag_verify_free(g->verify);
    free(g);
}
