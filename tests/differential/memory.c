/* tests/differential/memory.c - copies, fills, buffers of a random program.
 * Called by  acts.c                      Calls  the driver API
 * Threads    see state.h
 * Promise    only the stream that owns a buffer touches it; host memory is read and written by the rules of CUDA
 * Start at   df_readback() */
#include "tests/differential/state.h"

#include <string.h>

static CUdeviceptr owned_address(struct df_step *step, int pick, struct df_stream **out_stream)
{
    int slot;
    *out_stream = df_stream_of(step, &slot);
    int buffer = df_owned(step->lane, slot, df_value(step, pick));
    return buffer < 0 ? 0 : step->lane->buffer[buffer].address;
}

/* The legacy stream, in which synchronous calls run, waits for this stream by itself. */
static bool ordered(const struct df_stream *stream)
{
    return stream->kind == DF_BLOCKING || stream->kind == DF_LEGACY;
}

static size_t some_bytes(const struct df_step *step)
{
    return 4u * (1u + df_value(step, 3) % DF_WORDS);
}

static void count(struct df_step *step, CUresult ret)
{
    if (!ret)
        atomic_fetch_add(&step->run->ops, 1);
}

void df_memset(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = owned_address(step, 1, &stream);
    uint32_t v = df_value(step, 2);
    size_t n = some_bytes(step);
    CUresult ret;
    if (!p)
        return;
    switch (step->action->pick[0] % 5u) {
    case 0:
        ret = cuMemsetD8Async(p, (unsigned char)v, n, stream->handle);
        break;
    case 1:
        ret = cuMemsetD16Async(p, (unsigned short)v, n / 2, stream->handle);
        break;
    case 2:
        if (ordered(stream)) {
            df_open_gates(step);
            ret = cuMemsetD32(p, v, n / 4);
            break;
        }
        /* fall through */
    default:
        ret = cuMemsetD32Async(p, v, n / 4, stream->handle);
        break;
    }
    count(step, df_say(step, "memset", ret));
}

void df_copy_device(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr from = owned_address(step, 0, &stream), to = owned_address(step, 1, &stream);
    if (!to)
        return;
    if (from == to)
        from = step->lane->fixed;
    count(step,
          df_say(step, "copy", cuMemcpyDtoDAsync(to, from, some_bytes(step), stream->handle)));
}

static void fill(unsigned char *bytes, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value + i * 13u);
}

/* Pinned memory that no earlier upload still reads. */
static unsigned char *fresh_pinned(struct df_step *step, size_t n)
{
    struct df_lane *lane = step->lane;
    if (lane->pinned_used + n > DF_PINNED) {
        df_open_gates(step);
        df_say(step, "wrap", cuCtxSynchronize());
        lane->pinned_used = 0;
    }
    lane->pinned_used += n;
    return lane->pinned + lane->pinned_used - n;
}

void df_copy_in(struct df_step *step)
{
    unsigned char pageable[DF_BYTES];
    struct df_stream *stream;
    CUdeviceptr p = owned_address(step, 1, &stream);
    uint32_t v = df_value(step, 2);
    size_t n = some_bytes(step);
    unsigned char *source = pageable;
    CUresult ret;
    if (!p)
        return;
    switch (step->action->pick[0] % 4u) {
    case 0:
        df_open_gates(step);
        if (!ordered(stream))
            df_say(step, "wait", cuStreamSynchronize(stream->handle));
        fill(pageable, n, v);
        ret = cuMemcpyHtoD(p, pageable, n);
        if (!ordered(stream))
            df_say(step, "wait", cuCtxSynchronize());
        break;
    case 1:
        df_open_gates(step);
        fill(pageable, n, v);
        ret = cuMemcpyHtoDAsync(p, pageable, n, stream->handle);
        break;
    default:
        source = fresh_pinned(step, n);
        fill(source, n, v);
        ret = cuMemcpyHtoDAsync(p, source, n, stream->handle);
        break;
    }
    memset(pageable, 0x5a, sizeof pageable);
    count(step, df_say(step, "upload", ret));
}

void df_copy_out(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = owned_address(step, 1, &stream);
    if (!p)
        return;
    CUresult ret = cuMemcpyDtoHAsync(stream->out, p, some_bytes(step), stream->handle);
    stream->out_pending = true;
    count(step, df_say(step, "download", ret));
}

void df_show(struct df_step *step, struct df_stream *stream)
{
    uint64_t called = atomic_load(&stream->called);
    df_text_add(&step->run->said[step->track], "%u.%u called=%llx", step->action->id,
                step->iteration, (unsigned long long)called);
    if (stream->out_pending)
        df_text_add(&step->run->said[step->track], " out=%08x", df_digest(stream->out, DF_BYTES));
    stream->out_pending = false;
    df_text_add(&step->run->said[step->track], "\n");
}

void df_buffer(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    int buffer = df_owned(lane, slot, df_value(step, 1));
    if (buffer < 0)
        return;
    df_open_gates(step);
    df_say(step, "free", cuMemFree(lane->buffer[buffer].address));
    df_say(step, "alloc", cuMemAlloc(&lane->buffer[buffer].address, DF_BYTES));
    df_say(step, "clear",
           cuMemsetD32Async(lane->buffer[buffer].address, step->action->pick[2], DF_WORDS,
                            stream->handle));
}

void df_readback(struct df_step *step)
{
    unsigned char bytes[DF_BYTES];
    struct df_lane *lane = step->lane;
    struct df_stream *stream;
    CUdeviceptr p = owned_address(step, 1, &stream);
    CUresult wait = CUDA_SUCCESS, ret;
    if (!p)
        return;
    memset(bytes, 0, sizeof bytes);
    df_open_gates(step);
    uint32_t way = step->action->pick[0] % 6u;
    switch (way) {
    case 0:
    case 1:
        if (!ordered(stream) || way == 1)
            wait = cuStreamSynchronize(stream->handle);
        ret = cuMemcpyDtoH(bytes, p, DF_BYTES);
        break;
    case 2:
        ret = cuMemcpyDtoHAsync(bytes, p, DF_BYTES, stream->handle);
        wait = cuStreamSynchronize(stream->handle);
        break;
    case 3: {
        CUevent event = lane->event[step->action->pick[3] % DF_EVENTS];
        ret = cuMemcpyDtoHAsync(stream->out, p, DF_BYTES, stream->handle);
        CUresult record = cuEventRecord(event, stream->handle);
        wait = cuEventSynchronize(event);
        wait = record ? record : wait;
        memcpy(bytes, stream->out, DF_BYTES);
        break;
    }
    case 4:
        wait = cuCtxSynchronize();
        ret = cuMemcpyDtoH(bytes, p, DF_BYTES);
        break;
    default: /* nothing but looking whether the stream is done */
        while ((wait = cuStreamQuery(stream->handle)) == CUDA_ERROR_NOT_READY)
            ;
        ret = cuMemcpyDtoH(bytes, p, DF_BYTES);
        break;
    }
    df_text_add(&step->run->said[step->track], "%u.%u read %d %d %08x\n", step->action->id,
                step->iteration, wait, ret, df_digest(bytes, DF_BYTES));
}
