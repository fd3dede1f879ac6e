/* tests/differential/copies.c - the rarer copies: pitched, batched, large, from memory that is used again, refused.
 * Called by  acts.c                      Calls  buffers.c, the driver API
 * Threads    see state.h
 * Promise    pageable sources are spoilt as soon as the call has returned, pinned ones only after their event said so
 * Start at   df_copy_2d() */
#define _GNU_SOURCE
#include "tests/differential/state.h"

#include <stdlib.h>
#include <string.h>

void df_memset_2d(struct df_step *step)
{
    static const size_t pitches[] = {64, 128, 256};
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    uint32_t v = df_value(step, 2), shape = df_value(step, 3);
    size_t pitch = pitches[step->action->pick[0] % 3u];
    unsigned element = 1u << step->action->pick[0] / 3u % 3u;
    size_t width = 1 + shape % (pitch / element), height = 1 + shape / 64u % (DF_BYTES / pitch);
    CUresult ret;
    if (!p)
        return;
    uint64_t before = df_enter(step);
    if (element == 1)
        ret = cuMemsetD2D8Async(p, pitch, (unsigned char)v, width, height, stream->handle);
    else if (element == 2)
        ret = cuMemsetD2D16Async(p, pitch, (unsigned short)v, width, height, stream->handle);
    else
        ret = cuMemsetD2D32Async(p, pitch, v, width, height, stream->handle);
    if (!df_say(step, "memset 2d", ret))
        df_expect_memset(step, stream, before, p, v, element, width, height, pitch);
}

struct ends {
    struct df_stream *stream;
    CUdeviceptr from, to;
    size_t width, height, sp, dp;
};

static CUDA_MEMCPY2D flat(const struct ends *e)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = e->from,
                           .srcPitch = e->sp,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = e->to,
                           .dstPitch = e->dp,
                           .WidthInBytes = e->width,
                           .Height = e->height};
}

static void copy_3d(struct df_step *step, const struct ends *e, bool peer)
{
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = e->from,
                       .srcPitch = e->sp,
                       .srcHeight = 8,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = e->to,
                       .dstPitch = e->dp,
                       .dstHeight = 8,
                       .WidthInBytes = e->width,
                       .Height = e->height % 8u + 1u,
                       .Depth = 2};
    CUDA_MEMCPY3D_PEER p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = e->from,
                            .srcContext = step->lane->ctx,
                            .srcPitch = e->sp,
                            .srcHeight = 8,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = e->to,
                            .dstContext = step->lane->ctx,
                            .dstPitch = e->dp,
                            .dstHeight = 8,
                            .WidthInBytes = e->width,
                            .Height = c.Height,
                            .Depth = 2};
    uint64_t before = df_enter(step);
    CUresult ret =
        peer ? cuMemcpy3DPeerAsync(&p, e->stream->handle) : cuMemcpy3DAsync(&c, e->stream->handle);
    if (!df_say(step, "copy 3d", ret))
        df_expect_copy(step, e->stream, before, e->to, e->from,
                       &(struct df_area){.width = e->width, .height = c.Height, .depth = 2});
}

static void copy_peer(struct df_step *step, const struct ends *e)
{
    CUcontext ctx = step->lane->ctx;
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyPeerAsync(e->to, ctx, e->from, ctx, e->width, e->stream->handle);
    if (!df_say(step, "copy peer", ret))
        df_expect_copy(step, e->stream, before, e->to, e->from,
                       &(struct df_area){.width = e->width});
}

/* Two copies in one call; the legacy stream takes no batches. */
static void copy_batch(struct df_step *step, const struct ends *e)
{
    CUdeviceptr to[2] = {e->to, e->to + 1024}, from[2] = {e->from + 512, e->from};
    size_t bytes[2] = {e->width, e->width}, first = 0;
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    if (e->stream->kind == DF_LEGACY)
        return;
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyBatchAsync(to, from, bytes, 2, &how, &first, 1, e->stream->handle);
    if (df_say(step, "copy batch", ret))
        return;
    for (int i = 0; i < 2; i++)
        df_expect_copy(step, e->stream, before, to[i], from[i],
                       &(struct df_area){.width = e->width});
}

/* From or to pinned memory, row by row. */
static void copy_with_host(struct df_step *step, const struct ends *e, bool in)
{
    CUDA_MEMCPY2D c = flat(e);
    struct df_area area = {.width = e->width, .height = e->height, .pitch = 64};
    uintptr_t to = e->to, from = e->from;
    if (in) {
        unsigned char *bytes = df_fresh_pinned(step, 64 * e->height);
        df_fill(bytes, 64 * e->height, df_value(step, 2));
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = bytes;
        c.srcPitch = 64;
        from = (uintptr_t)bytes;
        area.host_source = bytes;
    } else {
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = e->stream->out;
        c.dstPitch = 64;
        to = (uintptr_t)e->stream->out;
        e->stream->out_pending = true;
    }
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpy2DAsync(&c, e->stream->handle);
    if (!df_say(step, in ? "upload 2d" : "download 2d", ret))
        df_expect_copy(step, e->stream, before, to, from, &area);
}

static void copy_flat(struct df_step *step, const struct ends *e, bool now)
{
    CUDA_MEMCPY2D c = flat(e);
    const struct df_stream *in = now ? &step->lane->plain : e->stream;
    if (now)
        df_open_gates(step);
    uint64_t before = df_enter(step);
    CUresult ret = now ? cuMemcpy2DUnaligned(&c) : cuMemcpy2DAsync(&c, e->stream->handle);
    if (!df_say(step, "copy 2d", ret))
        df_expect_copy(step, in, before, e->to, e->from,
                       &(struct df_area){.width = e->width, .height = e->height});
}

void df_copy_2d(struct df_step *step)
{
    struct ends e;
    uint32_t shape = df_value(step, 3);
    e.from = df_owned_address(step, 0, &e.stream);
    e.to = df_owned_address(step, 1, &e.stream);
    if (!e.to)
        return;
    if (e.from == e.to)
        e.from = step->lane->fixed;
    e.width = 4u * (1u + shape % 16u);
    e.height = 1u + shape / 16u % 16u;
    e.sp = step->action->form & 1 ? 64 : 128;
    e.dp = step->action->form & 2 ? 64 : 128;
    switch (step->action->pick[2] % 9u) {
    case 0:
        copy_3d(step, &e, false);
        break;
    case 1:
        copy_3d(step, &e, true);
        break;
    case 2:
        copy_peer(step, &e);
        break;
    case 3:
        copy_batch(step, &e);
        break;
    case 4:
        copy_with_host(step, &e, true);
        break;
    case 5:
        copy_with_host(step, &e, false);
        break;
    default:
        copy_flat(step, &e, step->action->pick[2] % 9u == 6 && df_ordered(e.stream));
        break;
    }
}

/* Pageable, on the heap, gone when the call has returned. */
void df_upload_large(struct df_step *step)
{
    static const size_t sizes[] = {4, 64 * 1024, 64 * 1024 + 4, 200 * 1024};
    struct df_lane *lane = step->lane;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    CUdeviceptr p = lane->buffer[DF_LARGE_BUFFER].address;
    size_t n = sizes[df_value(step, 0) % 4u];
    if (lane->buffer[DF_LARGE_BUFFER].owner != slot) {
        p = df_owned_address(step, 1, &stream);
        n = DF_BYTES;
    }
    unsigned char *source = p ? malloc(n) : NULL;
    if (!source)
        return;
    df_fill(source, n, df_value(step, 2));
    df_open_gates(step); /* the call may wait for the stream */
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyHtoDAsync(p, source, n, stream->handle);
    if (!df_say(step, "upload large", ret))
        df_expect_copy(step, stream, before, p, 0,
                       &(struct df_area){.host_source = source, .width = n});
    memset(source, 0x5a, n);
    free(source);
}

/* A block whose last upload is over, as its event says. */
static struct df_block_of_host *free_block(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    struct df_block_of_host *found = NULL;
    CUresult ret = CUDA_SUCCESS;
    uint64_t before = df_enter(step);
    for (uint32_t i = 0; i < DF_BLOCKS && !found; i++) {
        struct df_block_of_host *b = &lane->block[(step->iteration + i) % DF_BLOCKS];
        CUresult now = cuEventQuery(b->event);
        if (now == CUDA_SUCCESS)
            found = b;
        else if (now != CUDA_ERROR_NOT_READY)
            ret = now;
    }
    if (!found) {
        df_open_gates(step);
        found = &lane->block[step->iteration % DF_BLOCKS];
        CUresult now = cuEventSynchronize(found->event);
        ret = ret ? ret : now;
    }
    return df_say_drained(step, "block", before, ret) ? NULL : found;
}

void df_reuse(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    size_t at, n = df_some_bytes(step, &at);
    struct df_block_of_host *b = p ? free_block(step) : NULL;
    if (!b)
        return;
    df_fill(b->bytes, n, df_value(step, 2));
    if (!b->pinned)
        df_open_gates(step);
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyHtoDAsync(p + at, b->bytes, n, stream->handle);
    if (!df_say(step, "upload block", ret))
        df_expect_copy(step, stream, before, p + at, b->pinned ? (uintptr_t)b->bytes : 0,
                       &(struct df_area){.host_source = b->bytes, .width = n});
    if (!b->pinned)
        memset(b->bytes, 0x5a, n);
    before = df_enter(step);
    if (df_say(step, "record block", cuEventRecord(b->event, stream->handle)))
        return;
    df_expect_edge(step, stream, before, 'R', "b", (uint32_t)(b - step->lane->block), b->event,
                   b->life);
    atomic_fetch_add(&step->run->ops, 1);
}

void df_register(struct df_step *step)
{
    struct df_block_of_host *b = &step->lane->block[1 + step->action->pick[0] % 2u * 2u];
    df_open_gates(step);
    uint64_t before = df_enter(step);
    if (df_say_drained(step, "block", before, cuEventSynchronize(b->event)))
        return;
    CUresult ret =
        b->pinned ? cuMemHostUnregister(b->bytes) : cuMemHostRegister(b->bytes, DF_BYTES, 0);
    if (!df_say(step, b->pinned ? "unregister" : "register", ret))
        b->pinned = !b->pinned;
}

/* Refused by the very call, or nothing to do: no operation comes of it. */
void df_copy_bad(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    CUresult ret;
    unsigned char bytes[16] = {0};
    if (!p)
        return;
    CUDA_MEMCPY2D narrow = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = step->lane->fixed,
                            .srcPitch = 8,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = p,
                            .dstPitch = 64,
                            .WidthInBytes = 16,
                            .Height = 2};
    switch (step->action->pick[0] % 8u) {
    case 0:
        ret = cuMemcpyDtoDAsync(p, 0x10000, 16, stream->handle);
        break;
    case 1:
        ret = cuMemcpyHtoDAsync(0x10000, bytes, 16, stream->handle);
        break;
    case 2:
        ret = cuMemcpyDtoDAsync(p, step->lane->fixed, (size_t)1 << 40, stream->handle);
        break;
    case 3:
        ret = cuMemsetD32Async(p + 1, 1, 4, stream->handle);
        break;
    case 4:
        ret = cuMemcpy2DAsync(&narrow, stream->handle);
        break;
    case 5:
        ret = cuMemcpyDtoDAsync(p, step->lane->fixed, 0, stream->handle);
        break;
    case 6:
        ret = cuMemsetD8Async(p, 1, 0, stream->handle);
        break;
    default:
        ret = cuEventRecord(NULL, stream->handle);
        break;
    }
    df_say(step, "refused", ret);
}
