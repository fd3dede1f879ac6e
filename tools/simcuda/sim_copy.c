/* tools/simcuda/sim_copy.c - copies.
 * Called by  programs; sim_graph.c      Calls  sim_op.c, sim_memory.c
 * Threads    bodies hold sim_lock
 * Promise    pageable memory: an async upload has read its source when it returns, a download has
 *            arrived. Pinned memory is read and written when the operation runs.
 * Start at   sim_copy_submit()                                                                         */
#define _GNU_SOURCE
#include "tools/simcuda/sim_copy.h"

#include <string.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_stream.h"

/* Pageable uploads up to this size are staged at once and the call returns (seen up to 1 MiB, driver
 * 580.159); beyond it we keep to the manual, which lets them wait for the stream. */
enum { STAGED_MOST = 1024 * 1024 };

static size_t extent(const struct sim_copy_work *c, size_t pitch, size_t slice)
{
    return (c->depth - 1) * slice + (c->height - 1) * pitch + c->width;
}

/* Device memory must be allocated; host memory may be anything that is not ours. */
static CUresult check_operand(uintptr_t at, size_t bytes, bool host)
{
    struct sim_range *r = sim_memory_at(at);
    if (!at || (r && !sim_memory_holds(at, bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!r && sim_memory_is_ours(at))
        return sim_misuse(CUDA_ERROR_INVALID_VALUE, "%#llx is freed memory",
                          (unsigned long long)at);
    return !host && !r ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool is_host(uintptr_t at)
{
    struct sim_range *r = sim_memory_at(at);
    return !r || sim_memory_is_host(r);
}

struct sim_work *sim_copy_make(struct sim_context *ctx, const struct sim_copy_work *want,
                               CUresult *out_ret)
{
    *out_ret =
        check_operand(want->dst, extent(want, want->dst_pitch, want->dst_slice), want->dst_host);
    if (!*out_ret)
        *out_ret = check_operand(want->src, extent(want, want->src_pitch, want->src_slice),
                                 want->src_host);
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_COPY, ctx);
    w->copy = *want;
    w->copy.dst_host = is_host(want->dst);
    w->copy.src_host = is_host(want->src);
    if (!want->dst_type)
        w->copy.dst_type = w->copy.dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (!want->src_type)
        w->copy.src_type = w->copy.src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    w->copy.to = sim_memory_operand(want->dst);
    w->copy.from = sim_memory_operand(want->src);
    return w;
}

static bool is_line(const struct sim_copy_work *c)
{
    return c->height == 1 && c->depth == 1;
}

static bool same_shape(const struct sim_copy_work *a, const struct sim_copy_work *b)
{
    return a->width == b->width && a->height == b->height && a->depth == b->depth &&
           a->dst_pitch == b->dst_pitch && a->src_pitch == b->src_pitch &&
           (a->depth == 1 || (a->dst_slice == b->dst_slice && a->src_slice == b->src_slice));
}

static bool is_same(const struct sim_copy_work *a, const struct sim_copy_work *b)
{
    return same_shape(a, b) && a->dst == b->dst && a->src == b->src;
}

bool sim_copy_may_become(const struct sim_copy_work *was, const struct sim_copy_work *is,
                         bool alone)
{
    const bool same_types = was->dst_type == is->dst_type && was->src_type == is->src_type;
    const bool lines = is_line(was) && is_line(is);
    /* Of one node of an exec, several rows: nothing may change. H200. */
    if (alone && (!same_types || (!lines && !is_same(was, is))))
        return false;
    return sim_memory_same_mapping(&was->to, &is->to) &&
           sim_memory_same_mapping(&was->from, &is->from);
}

bool sim_copy_is_still(const struct sim_copy_work *c)
{
    return sim_memory_is_still(c->dst, extent(c, c->dst_pitch, c->dst_slice), &c->to) &&
           (c->staged ||
            sim_memory_is_still(c->src, extent(c, c->src_pitch, c->src_slice), &c->from));
}

static void stage(struct sim_copy_work *c)
{
    char *to = c->staged = sim_new(c->width * c->height * c->depth);
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++, to += c->width)
            memcpy(to, (const char *)c->src + z * c->src_slice + y * c->src_pitch, c->width);
    c->src = (uintptr_t)c->staged;
    c->src_pitch = c->width;
    c->src_slice = c->width * c->height;
}

/* A plain copy is work in the legacy stream: another thread's capture of a non-blocking stream does
 * not forbid it, one of a blocking stream does (IMPLICIT, from sim_stream_for_work).
 * dst_host, src_host of `want`: the operand may be memory that we did not allocate. */
CUresult sim_copy_submit(const struct sim_copy_work *want, CUstream stream, enum sim_copy_way way)
{
    const bool async = way != SIM_COPY_SYNC;
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (!async && s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (!want->width || !want->height || !want->depth)
        return CUDA_SUCCESS;
    struct sim_work *w = sim_copy_make(s->object.ctx, want, &ret);
    if (!w)
        return ret;
    const bool from_pageable = !sim_memory_at(want->src), to_pageable = !sim_memory_at(want->dst);
    const bool within_device = !w->copy.dst_host && !w->copy.src_host;
    const bool within_host = w->copy.dst_host && w->copy.src_host;
    if (((from_pageable && async && !within_host) || way == SIM_COPY_READS_NOW) && !s->capture)
        stage(&w->copy);
    struct sim_context *ctx = s->object.ctx;
    const size_t bytes = want->width * want->height * want->depth;
    struct sim_op *op;
    ret = sim_enqueue(s, w, &op);
    if (!op)
        return ret;
    /* Synchronous with the host: what touches pageable or only host memory, and plain copies other
     * than those within the device. */
    const bool large_upload = from_pageable && bytes > STAGED_MOST;
    const bool told_to = within_device && (sim_memory_at(want->dst)->sync_memops ||
                                           sim_memory_at(want->src)->sync_memops);
    if (async ? within_host || to_pageable || large_upload : !within_device || told_to)
        sim_op_wait(op);
    sim_unref(op);
    return ctx->sticky;
}

static struct sim_copy_work line(uintptr_t dst, bool dst_host, uintptr_t src, bool src_host,
                                 size_t bytes)
{
    return (struct sim_copy_work){.dst = dst,
                                  .src = src,
                                  .width = bytes,
                                  .height = 1,
                                  .depth = 1,
                                  .dst_host = dst_host,
                                  .src_host = src_host};
}

static CUresult copy_line(uintptr_t dst, bool dst_host, uintptr_t src, bool src_host, size_t bytes,
                          CUstream stream, bool async)
{
    struct sim_copy_work want = line(dst, dst_host, src, src_host, bytes);
    return sim_copy_submit(&want, stream, async ? SIM_COPY_ASYNC : SIM_COPY_SYNC);
}

SIM_API_PTDS(cuMemcpyHtoD_v2, SIM_NS_COPY, SIM_CTX, (CUdeviceptr dst, const void *src, size_t n),
             (dst, src, n))
{
    return copy_line(dst, false, (uintptr_t)src, true, n, NULL, false);
}

SIM_API_PTDS(cuMemcpyDtoH_v2, SIM_NS_COPY, SIM_CTX, (void *dst, CUdeviceptr src, size_t n),
             (dst, src, n))
{
    return copy_line((uintptr_t)dst, true, src, false, n, NULL, false);
}

SIM_API_PTDS(cuMemcpyDtoD_v2, SIM_NS_COPY, SIM_CTX, (CUdeviceptr dst, CUdeviceptr src, size_t n),
             (dst, src, n))
{
    return copy_line(dst, false, src, false, n, NULL, false);
}

SIM_API_PTDS(cuMemcpy, SIM_NS_COPY, SIM_CTX, (CUdeviceptr dst, CUdeviceptr src, size_t n),
             (dst, src, n))
{
    return copy_line(dst, true, src, true, n, NULL, false);
}

SIM_API_PTSZ(cuMemcpyHtoDAsync_v2, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr dst, const void *src, size_t n, CUstream stream), (dst, src, n, stream))
{
    return copy_line(dst, false, (uintptr_t)src, true, n, stream, true);
}

SIM_API_PTSZ(cuMemcpyDtoHAsync_v2, SIM_NS_COPY, SIM_CTX,
             (void *dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
    return copy_line((uintptr_t)dst, true, src, false, n, stream, true);
}

SIM_API_PTSZ(cuMemcpyDtoDAsync_v2, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
    return copy_line(dst, false, src, false, n, stream, true);
}

SIM_API_PTSZ(cuMemcpyAsync, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
    return copy_line(dst, true, src, true, n, stream, true);
}

SIM_API_PTDS(cuMemcpyPeer, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t n),
             (dst, dst_ctx, src, src_ctx, n))
{
    struct sim_context *a = sim_context_find(dst_ctx), *b = sim_context_find(src_ctx);
    if (!a || !b)
        return CUDA_ERROR_INVALID_CONTEXT;
    /* Ordered against both devices' earlier work. */
    CUresult ret = sim_context_drain(a);
    if (!ret && b != a)
        ret = sim_context_drain(b);
    return ret ? ret : copy_line(dst, false, src, false, n, NULL, false);
}

SIM_API_PTSZ(cuMemcpyPeerAsync, SIM_NS_COPY, SIM_CTX,
             (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t n,
              CUstream stream),
             (dst, dst_ctx, src, src_ctx, n, stream))
{
    if (!sim_context_find(dst_ctx) || !sim_context_find(src_ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_line(dst, false, src, false, n, stream, true);
}

/* ---- pitched copies ---- */

static CUresult side(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                     size_t offset, uintptr_t *out_at, bool *out_host)
{
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_NOT_SUPPORTED; /* arrays */
    *out_host = type != CU_MEMORYTYPE_DEVICE;
    *out_at = (type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device) + offset;
    (void)pitch;
    return CUDA_SUCCESS;
}

static CUresult want_of_3d(const CUDA_MEMCPY3D *c, struct sim_copy_work *out)
{
    size_t sp = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    size_t dp = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    *out = (struct sim_copy_work){.width = c->WidthInBytes,
                                  .height = c->Height,
                                  .depth = c->Depth,
                                  .dst_pitch = dp,
                                  .src_pitch = sp,
                                  .dst_slice = dp * (c->dstHeight ? c->dstHeight : c->Height),
                                  .src_slice = sp * (c->srcHeight ? c->srcHeight : c->Height)};
    /* A pitch that is given holds a row and what stands before it. */
    if ((c->srcPitch && sp < c->WidthInBytes + c->srcXInBytes) ||
        (c->dstPitch && dp < c->WidthInBytes + c->dstXInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    out->src_type = c->srcMemoryType;
    out->dst_type = c->dstMemoryType;
    CUresult ret =
        side(c->srcMemoryType, c->srcHost, c->srcDevice, sp,
             c->srcXInBytes + c->srcY * sp + c->srcZ * out->src_slice, &out->src, &out->src_host);
    return ret ? ret
               : side(c->dstMemoryType, c->dstHost, c->dstDevice, dp,
                      c->dstXInBytes + c->dstY * dp + c->dstZ * out->dst_slice, &out->dst,
                      &out->dst_host);
}

struct sim_work *sim_copy_of_3d(struct sim_context *ctx, const CUDA_MEMCPY3D *c, CUresult *out_ret)
{
    struct sim_copy_work want;
    *out_ret = want_of_3d(c, &want);
    if (!*out_ret && (!want.width || !want.height || !want.depth))
        *out_ret = CUDA_ERROR_INVALID_VALUE;
    return *out_ret ? NULL : sim_copy_make(ctx, &want, out_ret);
}

CUresult sim_copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, enum sim_copy_way way)
{
    struct sim_copy_work want;
    CUresult ret = c ? want_of_3d(c, &want) : CUDA_ERROR_INVALID_VALUE;
    return ret ? ret : sim_copy_submit(&want, stream, way);
}

static CUDA_MEMCPY3D flat(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                           .srcY = c->srcY,
                           .srcMemoryType = c->srcMemoryType,
                           .srcHost = c->srcHost,
                           .srcDevice = c->srcDevice,
                           .srcPitch = c->srcPitch,
                           .dstXInBytes = c->dstXInBytes,
                           .dstY = c->dstY,
                           .dstMemoryType = c->dstMemoryType,
                           .dstHost = c->dstHost,
                           .dstDevice = c->dstDevice,
                           .dstPitch = c->dstPitch,
                           .WidthInBytes = c->WidthInBytes,
                           .Height = c->Height,
                           .Depth = 1};
}

SIM_API_PTDS(cuMemcpy2D_v2, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY2D *c), (c))
{
    CUDA_MEMCPY3D all = c ? flat(c) : (CUDA_MEMCPY3D){0};
    return c ? sim_copy_3d(&all, NULL, SIM_COPY_SYNC) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API_PTDS(cuMemcpy2DUnaligned_v2, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY2D *c), (c))
{
    CUDA_MEMCPY3D all = c ? flat(c) : (CUDA_MEMCPY3D){0};
    return c ? sim_copy_3d(&all, NULL, SIM_COPY_SYNC) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API_PTSZ(cuMemcpy2DAsync_v2, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY2D *c, CUstream stream),
             (c, stream))
{
    CUDA_MEMCPY3D all = c ? flat(c) : (CUDA_MEMCPY3D){0};
    return c ? sim_copy_3d(&all, stream, SIM_COPY_ASYNC) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API_PTDS(cuMemcpy3D_v2, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY3D *c), (c))
{
    return sim_copy_3d(c, NULL, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpy3DAsync_v2, SIM_NS_COPY, SIM_CTX, (const CUDA_MEMCPY3D *c, CUstream stream),
             (c, stream))
{
    return sim_copy_3d(c, stream, SIM_COPY_ASYNC);
}
