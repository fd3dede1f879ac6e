/* tools/simcuda/sim_value.c - waits for and writes of values in memory: in streams and as graph nodes.
 * Called by  programs; sim_graph.c      Calls  sim_op.c, sim_memory.c
 * Threads    bodies hold sim_lock
 * Promise    the operations of a batch run in their order, nothing of the stream between them
 * Start at   make_one()                                                                     */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_stream.h"

static struct sim_work *make_one(struct sim_context *ctx, enum sim_work_kind kind, uintptr_t at,
                                 uint64_t value, unsigned bytes, unsigned flags, CUresult *out_ret)
{
    const unsigned known = kind == SIM_WORK_WAIT_VALUE ? 3u | CU_STREAM_WAIT_VALUE_FLUSH
                                                       : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    *out_ret = flags & ~known || at % bytes || !sim_memory_holds(at, bytes)
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(kind, ctx);
    w->value.at = at;
    w->value.value = value;
    w->value.bytes = bytes;
    w->value.flags = flags;
    return w;
}

static CUresult memory_op(enum sim_work_kind kind, CUstream stream, CUdeviceptr at, uint64_t value,
                          unsigned bytes, unsigned flags)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    struct sim_work *w = s ? make_one(s->object.ctx, kind, at, value, bytes, flags, &ret) : NULL;
    return w ? sim_enqueue(s, w, NULL) : ret;
}

#define MEMORY_OP(name, kind, type)                                                                \
    SIM_API_PTSZ(name, SIM_NS_LAUNCH, SIM_CTX,                                                     \
                 (CUstream stream, CUdeviceptr at, type value, unsigned flags),                    \
                 (stream, at, value, flags))                                                       \
    {                                                                                              \
        return memory_op(kind, stream, at, value, sizeof(type), flags);                            \
    }

MEMORY_OP(cuStreamWaitValue32_v2, SIM_WORK_WAIT_VALUE, cuuint32_t)
MEMORY_OP(cuStreamWaitValue64_v2, SIM_WORK_WAIT_VALUE, cuuint64_t)
MEMORY_OP(cuStreamWriteValue32_v2, SIM_WORK_WRITE_VALUE, cuuint32_t)
MEMORY_OP(cuStreamWriteValue64_v2, SIM_WORK_WRITE_VALUE, cuuint64_t)

static struct sim_work *make_of(struct sim_context *ctx, const CUstreamBatchMemOpParams *p,
                                CUresult *out_ret)
{
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return make_one(ctx, SIM_WORK_WAIT_VALUE, p->waitValue.address, p->waitValue.value, 4,
                        p->waitValue.flags, out_ret);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return make_one(ctx, SIM_WORK_WAIT_VALUE, p->waitValue.address, p->waitValue.value64, 8,
                        p->waitValue.flags, out_ret);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return make_one(ctx, SIM_WORK_WRITE_VALUE, p->writeValue.address, p->writeValue.value, 4,
                        p->writeValue.flags, out_ret);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return make_one(ctx, SIM_WORK_WRITE_VALUE, p->writeValue.address, p->writeValue.value64, 8,
                        p->writeValue.flags, out_ret);
    case CU_STREAM_MEM_OP_BARRIER: /* every operation here is ordered as it stands */
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        *out_ret = CUDA_SUCCESS;
        return sim_work_new(SIM_WORK_EMPTY, ctx);
    default:
        *out_ret = CUDA_ERROR_INVALID_VALUE;
        return NULL;
    }
}

static struct sim_work *make_batch(struct sim_context *ctx, unsigned n,
                                   const CUstreamBatchMemOpParams *list, CUresult *out_ret)
{
    *out_ret = n && n <= 256 && list ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_BATCH, ctx);
    w->batch.list = sim_new(n * sizeof *w->batch.list);
    for (; w->batch.n < n; w->batch.n++) {
        w->batch.list[w->batch.n] = make_of(ctx, &list[w->batch.n], out_ret);
        if (!w->batch.list[w->batch.n]) {
            sim_unref(w);
            return NULL;
        }
    }
    return w;
}

struct sim_work *sim_node_batch(CUcontext handle, unsigned n, const CUstreamBatchMemOpParams *list,
                                CUresult *out_ret)
{
    struct sim_context *ctx = handle ? sim_context_find(handle) : sim_context_current();
    *out_ret = CUDA_ERROR_INVALID_CONTEXT;
    return ctx ? make_batch(ctx, n, list, out_ret) : NULL;
}

SIM_API_PTSZ(cuStreamBatchMemOp_v2, SIM_NS_LAUNCH, SIM_CTX,
             (CUstream stream, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags),
             (stream, n, list, flags))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    struct sim_work *w = flags ? NULL : make_batch(s->object.ctx, n, list, &ret);
    if (!w)
        return flags ? CUDA_ERROR_INVALID_VALUE : ret;
    return sim_enqueue(s, w, NULL);
}

SIM_API(cuGraphAddBatchMemOpNode, SIM_NS_ADD_NODE, SIM_INIT,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
         const CUDA_BATCH_MEM_OP_NODE_PARAMS *p),
        (out, graph, deps, n, p))
{
    CUresult ret = CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = p ? sim_node_batch(p->ctx, p->count, p->paramArray, &ret) : NULL;
    return sim_graph_put(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, w, ret);
}
