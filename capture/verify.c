/* capture/verify.c - see verify.h. A check answers with what differs, NULL: nothing. */
#define _GNU_SOURCE
#include "capture/verify.h"
#include "capture/readback.h"
#include "capture/track.h"
#include "shim/observe/log.h"
#include <stdlib.h>
#include <string.h>

uint64_t ag_verify_bytes(const struct ag_oplog *log)
{
    return log->args_used +
           log->n * (sizeof(struct ag_told) + 2 * sizeof(CUgraphNode) + sizeof(CUgraphEdgeData));
}

struct ag_verify *ag_verify_make(const struct ag_graph *g)
{
    struct ag_verify *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->told = calloc(g->n, sizeof *v->told);
    v->args = calloc(1, g->args_used + 1);
    v->from = calloc(g->n + 1, sizeof(CUgraphNode));
    v->to = calloc(g->n + 1, sizeof(CUgraphNode));
    v->edge = calloc(g->n + 1, sizeof *v->edge);
    if (v->told && v->args && v->from && v->to && v->edge)
        return v;
    ag_verify_free(v);
    return NULL;
}

void ag_verify_free(struct ag_verify *v)
{
    if (!v)
        return;
    free(v->told);
    free(v->args);
    free(v->from);
    free(v->to);
    free(v->edge);
    free(v);
}

/* The numbers by which a place or an event is told from one that has its address later. */
static void read_generations(enum ag_op_kind kind, const unsigned char *args, uint64_t out[2])
{
    struct ag_copy c;
    struct ag_event_record r;
    out[0] = out[1] = 0;
    if (kind == AG_OP_COPY) {
        memcpy(&c, args, sizeof c);
        out[0] = c.to_generation;
        out[1] = c.from_generation;
    } else if (kind == AG_OP_RECORD) {
        memcpy(&r, args, sizeof r);
        out[0] = r.generation;
    }
}

void ag_verify_told(struct ag_graph *g, uint32_t op, CUgraphExec exec,
                    const struct ag_node_params *p, const unsigned char *args)
{
    const struct ag_node *node = &g->node[op];
    const struct ag_func *f = node->sig->func;
    struct ag_told *told = &g->verify->told[op];
    told->params = *p;
    told->node = node->node;
    told->exec = exec;
    read_generations(p->kind, args, told->generations);
    if (p->kind != AG_OP_KERNEL && p->kind != AG_OP_FILL)
        return;
    /* As the driver reads them: through the pointers it was given. */
    for (uint32_t i = 0; i < f->params; i++)
        memcpy(g->verify->args + node->args + f->param[i].offset, p->kernel.kernelParams[i],
               f->param[i].size);
    told->params.kernel.kernelParams = NULL;
}

/* ---- one node against one op ---- */

static const unsigned char *args_of(const struct ag_oplog *log, uint32_t op)
{
    return log->args + log->ops[op].args;
}

static const char *arguments_differ(const struct ag_func *f, const unsigned char *args,
                                    void *const *pointers)
{
    if (f->params && !pointers)
        return "there are no arguments";
    for (uint32_t i = 0; i < f->params; i++)
        if (memcmp(args + f->param[i].offset, pointers[i], f->param[i].size))
            return "argument bytes";
    return NULL;
}

static bool is_size(const CUDA_KERNEL_NODE_PARAMS_v2 *p, const uint32_t grid[3],
                    const uint32_t block[3])
{
    return p->gridDimX == grid[0] && p->gridDimY == grid[1] && p->gridDimZ == grid[2] &&
           p->blockDimX == block[0] && p->blockDimY == block[1] && p->blockDimZ == block[2];
}

/* A node of a kernel names its function too, and its context: conformance facts kernel_node.params_name_function,
 * params_context. */
static const char *kernel_differs(const struct ag_oplog *log, uint32_t op,
                                  const CUDA_KERNEL_NODE_PARAMS_v2 *p, void *const *pointers)
{
    const struct ag_sig *sig = log->ops[op].sig;
    const void *named = sig->func->is_kernel ? (const void *)p->kern : (const void *)p->func;
    if (named != (const void *)sig->key.handle)
        return "the kernel";
    if (sig->func->is_kernel && p->ctx != log->ctx)
        return "context of the kernel";
    if (!is_size(p, sig->key.config.grid, sig->key.config.block))
        return "grid or block";
    if (p->sharedMemBytes != sig->key.config.shared_bytes)
        return "dynamic shared memory";
    return arguments_differ(sig->func, args_of(log, op), pointers);
}

static const char *fill_differs(const struct ag_oplog *log, uint32_t op,
                                const CUDA_KERNEL_NODE_PARAMS_v2 *p, void *const *pointers)
{
    const uint32_t grid[3] = {ag_fill_grid(args_of(log, op)), 1, 1};
    const uint32_t block[3] = {AG_FILL_BLOCK, 1, 1};
    if (p->func != log->filler.function)
        return "the kernel of a memset";
    if (!is_size(p, grid, block) || p->sharedMemBytes)
        return "grid or block of a memset";
    return arguments_differ(log->ops[op].sig->func, args_of(log, op), pointers);
}

static const char *copy_differs(const struct ag_oplog *log, uint32_t op, const CUDA_MEMCPY3D *p)
{
    struct ag_copy c;
    memcpy(&c, args_of(log, op), sizeof c);
    if (p->srcMemoryType != CU_MEMORYTYPE_DEVICE || p->dstMemoryType != CU_MEMORYTYPE_DEVICE)
        return "kind of memory of a copy";
    if (p->srcDevice + p->srcXInBytes != c.from || p->dstDevice + p->dstXInBytes != c.to)
        return "place of a copy";
    return p->WidthInBytes != c.bytes || p->Height != 1 || p->Depth != 1 ? "bytes of a copy" : NULL;
}

static const char *event_differs(const struct ag_oplog *log, uint32_t op, CUevent event)
{
    struct ag_event_record r;
    memcpy(&r, args_of(log, op), sizeof r);
    return (uintptr_t)event != r.event ? "event of a record" : NULL;
}

const char *ag_verify_node(const struct ag_oplog *log, uint32_t op, const struct ag_node_params *p,
                           void *const *pointers)
{
    if (p->kind != log->ops[op].sig->func->kind)
        return "kind of the node";
    switch (p->kind) {
    case AG_OP_KERNEL:
        return kernel_differs(log, op, &p->kernel, pointers);
    case AG_OP_FILL:
        return fill_differs(log, op, &p->kernel, pointers);
    case AG_OP_COPY:
        return copy_differs(log, op, &p->copy);
    case AG_OP_RECORD:
        return event_differs(log, op, p->event);
    case AG_OP_WAIT:
    case AG_OP_KINDS:
        break;
    }
    return "kind of the node";
}

/* ---- the function, as the driver knows it now ---- */

static bool is_layout(const struct ag_driver *drv, const struct ag_func *f)
{
    size_t offset, size;
    for (uint32_t i = 0; i < f->params; i++) {
        const CUresult ret =
            f->is_kernel
                ? ag_real(drv, cuKernelGetParamInfo)((CUkernel)f->handle, i, &offset, &size)
                : ag_real(drv, cuFuncGetParamInfo)(f->handle, i, &offset, &size);
        if (ret != CUDA_SUCCESS || offset != f->param[i].offset || size != f->param[i].size)
            return false;
    }
    return true;
}

static bool is_named(const struct ag_driver *drv, const struct ag_func *f)
{
    const char *name = NULL;
    const CUresult ret = f->is_kernel ? ag_real(drv, cuKernelGetName)(&name, (CUkernel)f->handle)
                                      : ag_real(drv, cuFuncGetName)(&name, f->handle);
    return !f->name || (ret == CUDA_SUCCESS && name && !strcmp(name, f->name));
}

/* Of all attributes the one that decides whether a launch is legal, and of functions alone: what a kernel says is of a
 * device, and not what a call about its function set (conformance fact kernel.attribute_set_by_function). */
static bool is_in_state(const struct ag_driver *drv, const struct ag_sig *sig)
{
    const CUfunction_attribute which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const struct ag_func_state *s = &sig->func->state[sig->key.state];
    int value = 0;
    if (sig->func->is_kernel || !(s->known >> which & 1))
        return true;
    return ag_real(drv, cuFuncGetAttribute)(&value, which, sig->key.handle) == CUDA_SUCCESS &&
           value == s->value[which];
}

const char *ag_verify_function(const struct ag_oplog *log, uint32_t op)
{
    const struct ag_driver *drv = log->cap->drv;
    const struct ag_sig *sig = log->ops[op].sig;
    if (sig->func->kind != AG_OP_KERNEL || (op && log->ops[op - 1].sig == sig))
        return NULL;
    if (!is_named(drv, sig->func))
        return "the kernel has another name now";
    if (!is_layout(drv, sig->func))
        return "the kernel has other parameters now";
    return is_in_state(drv, sig) ? NULL : "the function's dynamic shared memory limit";
}

/* ---- a graph that is about to be launched ---- */

/* Does a later record of the segment stand for this one? Not where a wait for the event comes between. */
static bool is_overtaken(const struct ag_oplog *log, uint32_t op)
{
    struct ag_event_record r, later;
    struct ag_event_wait w;
    memcpy(&r, args_of(log, op), sizeof r);
    for (uint32_t i = op + 1; i < log->n; i++) {
        const enum ag_op_kind kind = log->ops[i].sig->func->kind;
        if (kind == AG_OP_RECORD) {
            memcpy(&later, args_of(log, i), sizeof later);
            if (later.event == r.event && later.generation == r.generation)
                return log->ops[i].sig->key.lane == log->ops[op].sig->key.lane;
        } else if (kind == AG_OP_WAIT) {
            memcpy(&w, args_of(log, i), sizeof w);
            if (w.event == r.event && w.generation == r.generation)
                return false;
        }
    }
    return false;
}

static const char *told_differs(const struct ag_graph *g, struct ag_oplog *log, uint32_t op,
                                CUgraphExec exec)
{
    const struct ag_told *told = &g->verify->told[op];
    const struct ag_sig *sig = log->ops[op].sig;
    uint64_t generations[2];
    unsigned enabled = 0;
    if (!told->node)
        return sig->func->kind == AG_OP_RECORD && is_overtaken(log, op) ? NULL : "no node has it";
    if (told->exec && told->exec != exec)
        return "another exec was told";
    read_generations(sig->func->kind, args_of(log, op), generations);
    if (memcmp(generations, told->generations, sizeof generations))
        return "the memory or event is another one of that address";
    if (g->node[op].sig->key.attrs != sig->key.attrs)
        return "launch attributes";
    void **pointers = ag_op_pointers(log, sig->func, g->verify->args + g->node[op].args);
    const char *what = ag_verify_node(log, op, &told->params, pointers);
    what = what ? what : ag_verify_function(log, op);
    if (what || sig->func->kind == AG_OP_RECORD) /* the driver tells it of other nodes only */
        return what;
    if (ag_real(log->cap->drv, cuGraphNodeGetEnabled)(exec, told->node, &enabled) != CUDA_SUCCESS)
        return "the exec does not know the node";
    return enabled ? NULL : "the node is disabled";
}

/* Every op is in one piece, which is for its stream and has its ops in the order of the log. */
static struct ag_mismatch pieces_differ(const struct ag_graph *g, const struct ag_oplog *log)
{
    uint32_t ops = 0;
    if (g->n != log->n)
        return (struct ag_mismatch){0, "number of ops"};
    for (uint32_t k = 0; k < g->pieces; k++) {
        uint32_t least = 0;
        for (uint32_t i = g->piece[k].first; i != AG_NO_OP; i = g->place[i].next, ops++) {
            if (i < least || i >= g->n || g->place[i].piece != k)
                return (struct ag_mismatch){i < g->n ? i : 0, "place in the segment"};
            if (ag_track_stream(log->cur, log->ops[i].sig) != g->piece[k].stream)
                return (struct ag_mismatch){i, "stream"};
            least = i + 1;
        }
    }
    return (struct ag_mismatch){0, ops == g->n ? NULL : "number of ops in pieces"};
}

struct ag_mismatch ag_verify_replay(const struct ag_graph *g, struct ag_oplog *log)
{
    const struct ag_mismatch m = pieces_differ(g, log);
    if (m.what)
        return m;
    for (uint32_t k = 0; k < g->pieces; k++) {
        const struct ag_piece *p = &g->piece[k];
        for (uint32_t i = p->first; p->is_graph && i != AG_NO_OP; i = g->place[i].next) {
            const char *what = told_differs(g, log, i, p->exec);
            if (what)
                return (struct ag_mismatch){i, what};
        }
    }
    return (struct ag_mismatch){0, NULL};
}

/* ---- counted and logged ---- */

static bool passes(const struct ag_oplog *log, struct ag_mismatch m)
{
    if (!m.what)
        return true;
    const char *name = log->ops[m.op].sig->func->name;
    ag_count(&log->cap->counters->graphs_mismatched, 1);
    ag_log(AG_LEVEL_ERROR, "a graph is not used: op %u of %u, %s, is not as called: %s", m.op + 1,
           log->n, name ? name : "without a name", m.what);
    return false;
}

bool ag_verify_passes_built(const struct ag_graph *g, const struct ag_piece *p,
                            const struct ag_oplog *log)
{
    ag_count(&log->cap->counters->graphs_read_back, 1);
    return passes(log, ag_readback_compare(g, p, log));
}

/* One of each `every` turns, at a place in them that no loop keeps in step with (xorshift, 64 bits). */
static bool is_due(struct ag_oplog *log, uint64_t every)
{
    if (!log->sample.left) {
        uint64_t x = log->sample.random ? log->sample.random : (uintptr_t)log | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        log->sample.random = x;
        log->sample.left = (uint32_t)every;
        log->sample.at = (uint32_t)(x % every) + 1;
    }
    return log->sample.left-- == log->sample.at;
}

bool ag_verify_passes(const struct ag_graph *g, struct ag_oplog *log)
{
    if (!is_due(log, log->cap->options->verify) || !g->verify)
        return true;
    ag_count(&log->cap->counters->graphs_verified, g->execs);
    return passes(log, ag_verify_replay(g, log));
}
