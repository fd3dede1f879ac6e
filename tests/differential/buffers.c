/* tests/differential/buffers.c - copies, fills, buffers of a random program.
 * Called by  acts.c                      Calls  the driver API, expect.c
 * Threads    see state.h
 * Promise    only the stream that owns a buffer touches it; host memory is read and written by the rules of CUDA
 * Start at   df_readback() */
#include "tests/differential/state.h"

#include <string.h>

CUdeviceptr df_owned_address(struct df_step *step, int pick, struct df_stream **out_stream)
{
    int slot;
    *out_stream = df_stream_of(step, &slot);
    int buffer = df_owned(step->lane, slot, df_value(step, pick));
    return buffer < 0 ? 0 : step->lane->buffer[buffer].address;
}

bool df_ordered(const struct df_stream *stream)
{
    return stream->kind == DF_BLOCKING || stream->kind == DF_LEGACY;
}

size_t df_some_bytes(const struct df_step *step, size_t *out_at)
{
    uint32_t v = df_value(step, 3);
    size_t at = step->action->form & 1 ? 4u * (v >> 20 & 63u) : 0;
    *out_at = at;
    return 4u * (1u + v % (DF_WORDS - 64u));
}

static CUresult wait_for(struct df_step *step, const struct df_stream *stream)
{
    uint64_t before = df_enter(step);
    return df_say_drained(step, "wait", before,
                          stream ? cuStreamSynchronize(stream->handle) : cuCtxSynchronize());
}

void df_memset(struct df_step *step)
{
    struct df_stream *stream;
    const struct df_stream *in;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    uint32_t v = df_value(step, 2);
    size_t at, n = df_some_bytes(step, &at);
    unsigned element = 4;
    CUresult ret;
    if (!p)
        return;
    p += at;
    in = stream;
    uint32_t way = step->action->pick[0] % 5u;
    if (way == 2 && df_ordered(stream))
        df_open_gates(step);
    uint64_t before = df_enter(step);
    if (way == 0) {
        element = 1;
        ret = cuMemsetD8Async(p, (unsigned char)v, n, stream->handle);
    } else if (way == 1) {
        element = 2;
        ret = cuMemsetD16Async(p, (unsigned short)v, n / 2, stream->handle);
    } else if (way == 2 && df_ordered(stream)) {
        in = &step->lane->plain;
        ret = cuMemsetD32(p, v, n / 4);
    } else {
        ret = cuMemsetD32Async(p, v, n / 4, stream->handle);
    }
    if (!df_say(step, "memset", ret))
        df_expect_memset(step, in, before, p, v, element, n / element, 1, 0);
}

void df_copy_device(struct df_step *step)
{
    struct df_stream *stream;
    const struct df_stream *in;
    CUdeviceptr from = df_owned_address(step, 0, &stream), to = df_owned_address(step, 1, &stream);
    size_t at, n = df_some_bytes(step, &at);
    if (!to)
        return;
    if (from == to)
        from = step->lane->fixed;
    to += at;
    in = stream;
    uint32_t way = step->action->pick[2] % 8u;
    CUresult ret;
    if (way == 0 && df_ordered(stream))
        df_open_gates(step);
    uint64_t before = df_enter(step);
    if (way == 0 && df_ordered(stream)) {
        in = &step->lane->plain;
        ret = cuMemcpyDtoD(to, from, n);
    } else if (way == 1) {
        ret = cuMemcpyAsync(to, from, n, stream->handle);
    } else {
        ret = cuMemcpyDtoDAsync(to, from, n, stream->handle);
    }
    if (!df_say(step, "copy", ret))
        df_expect_copy(step, in, before, to, from, &(struct df_area){.width = n});
}

void df_fill(unsigned char *bytes, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value + i * 13u);
}

unsigned char *df_fresh_pinned(struct df_step *step, size_t n)
{
    struct df_lane *lane = step->lane;
    if (lane->pinned_used + n > DF_PINNED) {
        df_open_gates(step);
        wait_for(step, NULL);
        lane->pinned_used = 0;
    }
    lane->pinned_used += n;
    return lane->pinned + lane->pinned_used - n;
}

static void upload_now(struct df_step *step, struct df_stream *stream, CUdeviceptr p,
                       unsigned char *source, size_t n)
{
    if (!df_ordered(stream))
        wait_for(step, stream);
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyHtoD(p, source, n);
    if (!df_say(step, "upload", ret))
        df_expect_copy(step, &step->lane->plain, before, p, 0,
                       &(struct df_area){.host_source = source, .width = n});
    if (!df_ordered(stream))
        wait_for(step, NULL);
}

/* Both ends are the host's: the bytes are there when the call returns. */
static void copy_within_host(struct df_step *step, struct df_stream *stream, uint32_t v, size_t n)
{
    unsigned char bytes[DF_BYTES];
    unsigned char *source = df_fresh_pinned(step, n);
    df_fill(source, n, v);
    memset(bytes, 0, sizeof bytes);
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyAsync((CUdeviceptr)bytes, (CUdeviceptr)source, n, stream->handle);
    if (!df_say(step, "host copy", ret))
        df_expect_copy(step, stream, before, 0, (uintptr_t)source,
                       &(struct df_area){.host_source = source, .width = n});
    df_text_add(&step->run->said[step->track], "%u.%u copied %08x\n", step->action->id,
                step->iteration, df_digest(bytes, n));
}

void df_copy_in(struct df_step *step)
{
    unsigned char pageable[DF_BYTES];
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    uint32_t v = df_value(step, 2), way = step->action->pick[0] % 9u;
    size_t at, n = df_some_bytes(step, &at);
    unsigned char *source = pageable;
    if (!p)
        return;
    p += at;
    if (way <= 3 || way == 8)
        df_open_gates(step);
    if (way == 8) {
        copy_within_host(step, stream, v, n);
        return;
    }
    if (way > 3)
        source = df_fresh_pinned(step, n);
    df_fill(source, n, v);
    struct df_area area = {.host_source = source, .width = n};
    if (way <= 1) {
        upload_now(step, stream, p, source, n);
    } else {
        uint64_t before = df_enter(step);
        CUresult ret = way == 7 ? cuMemcpyAsync(p, (CUdeviceptr)source, n, stream->handle)
                                : cuMemcpyHtoDAsync(p, source, n, stream->handle);
        if (!df_say(step, "upload", ret))
            df_expect_copy(step, stream, before, p, way > 3 ? (uintptr_t)source : 0, &area);
    }
    memset(pageable, 0x5a, sizeof pageable);
}

void df_copy_out(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    size_t at, n = df_some_bytes(step, &at);
    if (!p)
        return;
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyDtoHAsync(stream->out, p + at, n, stream->handle);
    stream->out_pending = true;
    if (!df_say(step, "download", ret))
        df_expect_copy(step, stream, before, (uintptr_t)stream->out, p + at,
                       &(struct df_area){.width = n});
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
    CUdeviceptr *p = &lane->buffer[buffer].address;
    size_t bytes = buffer == DF_LARGE_BUFFER ? DF_LARGE : DF_BYTES;
    df_open_gates(step);
    df_hold_others(step);
    uint64_t before = df_enter(step);
    df_say_drained(step, "free", before, cuMemFree(*p));
    df_let_others_go(step);
    df_say(step, "alloc",
           buffer == DF_MANAGED_BUFFER ? cuMemAllocManaged(p, bytes, CU_MEM_ATTACH_GLOBAL)
                                       : cuMemAlloc(p, bytes));
    before = df_enter(step);
    CUresult ret = cuMemsetD32Async(*p, step->action->pick[2], bytes / 4, stream->handle);
    if (!df_say(step, "clear", ret))
        df_expect_memset(step, stream, before, *p, step->action->pick[2], 4, bytes / 4, 1, 0);
}

/* Asks for all of the buffer and waits, in one of several ways; what came is in `bytes`. */
static CUresult read_async(struct df_step *step, struct df_stream *stream, CUdeviceptr p,
                           unsigned char *bytes, uint32_t way, CUresult *out_wait)
{
    const bool pinned = way == 3;
    unsigned char *to = pinned ? stream->out : bytes;
    int event = (int)(step->action->pick[3] % DF_EVENTS);
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyDtoHAsync(to, p, DF_BYTES, stream->handle), record = CUDA_SUCCESS;
    if (!ret)
        df_expect_copy(step, stream, before, pinned ? (uintptr_t)to : 0, p,
                       &(struct df_area){.width = DF_BYTES});
    if (pinned && !df_record(step, stream, event))
        record = CUDA_ERROR_UNKNOWN; /* which one was said */
    before = df_enter(step);
    *out_wait =
        pinned ? cuEventSynchronize(step->lane->event[event]) : cuStreamSynchronize(stream->handle);
    df_expect_drain(step, before);
    *out_wait = record ? record : *out_wait;
    if (pinned)
        memcpy(bytes, to, DF_BYTES);
    return ret;
}

static CUresult read_now(struct df_step *step, struct df_stream *stream, CUdeviceptr p,
                         unsigned char *bytes, uint32_t way, CUresult *out_wait)
{
    uint64_t before = df_enter(step);
    if (way == 4)
        *out_wait = cuCtxSynchronize();
    else if (way == 5) /* nothing but looking whether the stream is done */
        while ((*out_wait = cuStreamQuery(stream->handle)) == CUDA_ERROR_NOT_READY)
            ;
    else if (!df_ordered(stream) || way == 1)
        *out_wait = cuStreamSynchronize(stream->handle);
    if (way != 0 || !df_ordered(stream)) /* one of them was called */
        df_expect_drain(step, before);
    before = df_enter(step);
    CUresult ret = cuMemcpyDtoH(bytes, p, DF_BYTES);
    if (!ret)
        df_expect_copy(step, &step->lane->plain, before, 0, p,
                       &(struct df_area){.width = DF_BYTES});
    return ret;
}

void df_readback(struct df_step *step)
{
    unsigned char bytes[DF_BYTES];
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    CUresult wait = CUDA_SUCCESS, ret;
    if (!p)
        return;
    memset(bytes, 0, sizeof bytes);
    df_open_gates(step);
    uint32_t way = step->action->pick[0] % 6u;
    ret = way == 2 || way == 3 ? read_async(step, stream, p, bytes, way, &wait)
                               : read_now(step, stream, p, bytes, way, &wait);
    df_text_add(&step->run->said[step->track], "%u.%u read %d %d %08x\n", step->action->id,
                step->iteration, wait, ret, df_digest(bytes, DF_BYTES));
}
