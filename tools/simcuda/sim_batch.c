/* tools/simcuda/sim_batch.c - copies that come in batches or name contexts; prefetches, advice.
 * Called by  programs                   Calls  sim_copy.c, sim_op.c
 * Threads    bodies hold sim_lock
 * Promise    a batch is checked as a whole before any of it is enqueued
 * Start at   batch()                                                                        */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

/* Not for the legacy stream. */
static struct sim_stream *stream_of_batch(CUstream handle, CUresult *out_ret)
{
    struct sim_stream *s = sim_stream_for_work(handle, out_ret);
    if (s && s->kind == SIM_STREAM_LEGACY) {
        *out_ret = CUDA_ERROR_INVALID_VALUE;
        return NULL;
    }
    return s;
}

static enum sim_copy_way way_of(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? SIM_COPY_READS_NOW
                                                               : SIM_COPY_ASYNC;
}

static bool is_order(CUmemcpySrcAccessOrder order)
{
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* A source that is to be read during the call makes the call wait for the stream: an H200 did not come back while the
 * stream stood still, from pinned memory. */
static CUresult wait_for_sources(struct sim_stream *s, const enum sim_copy_way *way, size_t n)
{
    struct sim_context *ctx = s->object.ctx;
    size_t i = 0;
    while (i < n && way[i] != SIM_COPY_READS_NOW)
        i++;
    if (i == n || s->capture || !s->last)
        return CUDA_SUCCESS;
    struct sim_op *op = sim_ref(s->last);
    sim_op_wait(op);
    sim_unref(op);
    return ctx->sticky;
}

/* All or none: takes over nothing. */
static CUresult submit_all(struct sim_stream *s, CUstream handle, struct sim_copy_work *want,
                           const enum sim_copy_way *way, size_t n, size_t *out_fail)
{
    CUresult ret = CUDA_SUCCESS;
    sim_ref(s); /* others may destroy it while a copy waits */
    for (size_t i = 0; !ret && i < n; i++) {
        struct sim_work *w = sim_copy_make(s->object.ctx, &want[i], &ret);
        sim_unref(w);
        if (ret && out_fail)
            *out_fail = i;
    }
    for (size_t i = 0; !ret && i < n; i++)
        ret = sim_copy_submit(&want[i], handle, way[i]);
    if (!ret)
        ret = wait_for_sources(s, way, n);
    sim_unref(s);
    return ret;
}

static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t n,
                      CUmemcpyAttributes *attrs, size_t *first, size_t nattrs, size_t *out_fail,
                      CUstream handle)
{
    CUresult ret;
    struct sim_stream *s = stream_of_batch(handle, &ret);
    if (out_fail)
        *out_fail = SIZE_MAX;
    if (!s)
        return ret;
    if (!dsts || !srcs || !sizes || !n || !attrs || !first || !nattrs || nattrs > n || first[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t a = 0; a < nattrs; a++)
        if (!is_order(attrs[a].srcAccessOrder) || first[a] >= n || (a && first[a] <= first[a - 1]))
            return CUDA_ERROR_INVALID_VALUE;
    struct sim_copy_work *want = sim_new(n * sizeof *want);
    enum sim_copy_way *way = sim_new(n * sizeof *way);
    size_t a = 0;
    for (size_t i = 0; i < n; i++) {
        while (a + 1 < nattrs && first[a + 1] <= i)
            a++;
        way[i] = way_of(attrs[a].srcAccessOrder);
        want[i] = (struct sim_copy_work){.dst = dsts[i],
                                         .src = srcs[i],
                                         .width = sizes[i],
                                         .height = 1,
                                         .depth = 1,
                                         .dst_host = true,
                                         .src_host = true};
        if (!sizes[i])
            ret = CUDA_ERROR_INVALID_VALUE;
    }
    if (!ret)
        ret = submit_all(s, handle, want, way, n, out_fail);
    free(want);
    free(way);
    return ret;
}

SIM_API_PTSZ(cuMemcpyBatchAsync_v2, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t n,
              CUmemcpyAttributes *attrs, size_t *first, size_t nattrs, CUstream stream),
             (dsts, srcs, sizes, n, attrs, first, nattrs, stream))
{
    return batch(dsts, srcs, sizes, n, attrs, first, nattrs, NULL, stream);
}

SIM_API_PTSZ(cuMemcpyBatchAsync, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t n,
              CUmemcpyAttributes *attrs, size_t *first, size_t nattrs, size_t *fail,
              CUstream stream),
             (dsts, srcs, sizes, n, attrs, first, nattrs, fail, stream))
{
    return batch(dsts, srcs, sizes, n, attrs, first, nattrs, fail, stream);
}

static bool want_of_op(const CUDA_MEMCPY3D_BATCH_OP *op, struct sim_copy_work *out)
{
    if (op->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
        op->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER || !op->extent.width || !op->extent.height ||
        !op->extent.depth || !is_order(op->srcAccessOrder))
        return false;
    size_t sp = op->src.op.ptr.rowLength, dp = op->dst.op.ptr.rowLength;
    size_t sh = op->src.op.ptr.layerHeight, dh = op->dst.op.ptr.layerHeight;
    sp = sp ? sp : op->extent.width;
    dp = dp ? dp : op->extent.width;
    *out = (struct sim_copy_work){.dst = op->dst.op.ptr.ptr,
                                  .src = op->src.op.ptr.ptr,
                                  .width = op->extent.width,
                                  .height = op->extent.height,
                                  .depth = op->extent.depth,
                                  .dst_pitch = dp,
                                  .src_pitch = sp,
                                  .dst_slice = dp * (dh ? dh : op->extent.height),
                                  .src_slice = sp * (sh ? sh : op->extent.height),
                                  .dst_host = true,
                                  .src_host = true};
    return sp >= op->extent.width && dp >= op->extent.width;
}

static CUresult batch_3d(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
                         size_t *out_fail, CUstream handle)
{
    CUresult ret;
    struct sim_stream *s = stream_of_batch(handle, &ret);
    if (out_fail)
        *out_fail = SIZE_MAX;
    if (!s)
        return ret;
    if (!n || !ops || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_copy_work *want = sim_new(n * sizeof *want);
    enum sim_copy_way *way = sim_new(n * sizeof *way);
    for (size_t i = 0; i < n; i++) {
        if (!want_of_op(&ops[i], &want[i]))
            ret = CUDA_ERROR_INVALID_VALUE;
        way[i] = way_of(ops[i].srcAccessOrder);
    }
    if (!ret)
        ret = submit_all(s, handle, want, way, n, out_fail);
    free(want);
    free(way);
    return ret;
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync_v2, SIM_NS_COPY, SIM_CTX,
             (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
             (n, ops, flags, stream))
{
    return batch_3d(n, ops, flags, NULL, stream);
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync, SIM_NS_COPY, SIM_CTX,
             (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
              CUstream stream),
             (n, ops, fail, flags, stream))
{
    return batch_3d(n, ops, flags, fail, stream);
}

/* ---- copies that name contexts ---- */

static CUresult peer_3d(const CUDA_MEMCPY3D_PEER *p, CUstream stream, enum sim_copy_way way)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *to = sim_context_find(p->dstContext);
    struct sim_context *from = sim_context_find(p->srcContext);
    if (!to || !from)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult ret = CUDA_SUCCESS;
    if (way == SIM_COPY_SYNC) /* ordered against both devices' earlier work */
        ret = sim_context_drain(to);
    if (!ret && way == SIM_COPY_SYNC && from != to)
        ret = sim_context_drain(from);
    CUDA_MEMCPY3D c = {.srcXInBytes = p->srcXInBytes,
                       .srcY = p->srcY,
                       .srcZ = p->srcZ,
                       .srcMemoryType = p->srcMemoryType,
                       .srcHost = p->srcHost,
                       .srcDevice = p->srcDevice,
                       .srcPitch = p->srcPitch,
                       .srcHeight = p->srcHeight,
                       .dstXInBytes = p->dstXInBytes,
                       .dstY = p->dstY,
                       .dstZ = p->dstZ,
                       .dstMemoryType = p->dstMemoryType,
                       .dstHost = p->dstHost,
                       .dstDevice = p->dstDevice,
                       .dstPitch = p->dstPitch,
                       .dstHeight = p->dstHeight,
                       .WidthInBytes = p->WidthInBytes,
                       .Height = p->Height,
                       .Depth = p->Depth};
    return ret ? ret : sim_copy_3d(&c, stream, way);
}

SIM_API_PTDS(cuMemcpy3DPeer, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY3D_PEER *p), (p))
{
    return peer_3d(p, NULL, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpy3DPeerAsync, SIM_NS_COPY, SIM_CTX,
             (const CUDA_MEMCPY3D_PEER *p, CUstream stream), (p, stream))
{
    return peer_3d(p, stream, SIM_COPY_ASYNC);
}

/* ---- managed memory ---- */

static CUresult prefetch(CUdeviceptr at, size_t bytes, CUstream stream)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    const struct sim_range *r = sim_memory_holds(at, bytes);
    if (!r || r->kind != SIM_MEMORY_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_work *w = sim_work_new(SIM_WORK_PREFETCH, s->object.ctx);
    w->memory.at = at;
    w->memory.bytes = bytes;
    return sim_enqueue(s, w, NULL);
}

SIM_API_PTSZ(cuMemPrefetchAsync_v2, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr at, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream),
             (at, bytes, where, flags, stream))
{
    (void)where;
    return flags ? CUDA_ERROR_INVALID_VALUE : prefetch(at, bytes, stream);
}

SIM_API_PTSZ(cuMemPrefetchAsync, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr at, size_t bytes, CUdevice where, CUstream stream),
             (at, bytes, where, stream))
{
    if (where != CU_DEVICE_CPU && (where < 0 || where >= sim.devices))
        return CUDA_ERROR_INVALID_DEVICE;
    return prefetch(at, bytes, stream);
}

static CUresult prefetch_all(CUdeviceptr *at, size_t *bytes, size_t n, unsigned long long flags,
                             CUstream stream)
{
    CUresult ret;
    if (!stream_of_batch(stream, &ret))
        return ret;
    if (!at || !bytes || !n || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        const struct sim_range *r = sim_memory_holds(at[i], bytes[i]);
        if (!r || r->kind != SIM_MEMORY_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; !ret && i < n; i++)
        ret = prefetch(at[i], bytes[i], stream);
    return ret;
}

SIM_API_PTSZ(cuMemPrefetchBatchAsync, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr * at, size_t *bytes, size_t n, CUmemLocation *where, size_t *first,
              size_t nwhere, unsigned long long flags, CUstream stream),
             (at, bytes, n, where, first, nwhere, flags, stream))
{
    if (!where || !first || !nwhere || nwhere > n || first[0])
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch_all(at, bytes, n, flags, stream);
}

/* "Attached" is a property of the memory from here on in the stream; nothing else depends on it. */
SIM_API_PTSZ(cuStreamAttachMemAsync, SIM_NS_SMALL, SIM_CTX,
             (CUstream stream, CUdeviceptr at, size_t bytes, unsigned flags),
             (stream, at, bytes, flags))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    const struct sim_range *r = sim_memory_at(at);
    const bool whole = !bytes || (r && bytes == r->bytes);
    if (!r || r->kind != SIM_MEMORY_MANAGED || r->base != at || !whole ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
         flags != CU_MEM_ATTACH_SINGLE) ||
        (flags == CU_MEM_ATTACH_SINGLE && s->kind == SIM_STREAM_LEGACY))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return sim_enqueue(s, sim_work_new(SIM_WORK_EMPTY, s->object.ctx), NULL);
}

SIM_API(cuMemAdvise_v2, SIM_NS_SMALL, SIM_CTX,
        (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation where),
        (at, bytes, advice, where))
{
    (void)advice, (void)where;
    const struct sim_range *r = sim_memory_holds(at, bytes);
    return r && r->kind == SIM_MEMORY_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
