/* tools/simcuda/sim_stream.c - streams: made, named, asked, closed.
 * Called by  programs                   Calls  sim_op.c, sim_capture.c
 * Threads    bodies hold sim_lock
 * Promise    destroying a stream never blocks; its work still runs
 * Start at   sim_stream_of()                                                                */
#define _GNU_SOURCE
#include "tools/simcuda/sim_stream.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_op.h"

static uint64_t next_id = 1;

static void free_stream(struct sim_object *self)
{
    struct sim_stream *s = (struct sim_stream *)self;
    sim_capture_forget_heads(&s->heads, &s->nheads);
    sim_unref(s->capture);
    sim_unref(s->last);
    pthread_cond_destroy(&s->wake);
    free(s->ends);
    sim_unref(s->object.ctx);
}

struct sim_stream *sim_stream_make(struct sim_context *ctx, enum sim_stream_kind kind,
                                   unsigned flags, int priority)
{
    struct sim_stream *s = sim_object_new(sizeof *s, SIM_STREAM, ctx, free_stream);
    s->kind = kind;
    s->id = next_id++;
    s->flags = flags;
    s->priority = priority;
    sim_ref(ctx); /* a worker may outlive cuCtxDestroy */
    pthread_cond_init(&s->wake, NULL);
    s->next = ctx->streams;
    ctx->streams = sim_ref(s);
    return s;
}

void sim_stream_close(struct sim_stream *s)
{
    if (s->closed)
        return;
    s->closed = true;
    sim_capture_stream_destroyed(s);
    if (s->has_worker) {
        pthread_cond_signal(&s->wake); /* the worker leaves the context's list when it is done */
    } else {
        struct sim_context *ctx = s->object.ctx;
        for (struct sim_stream **at = &ctx->streams; *at; at = &(*at)->next)
            if (*at == s) {
                *at = s->next;
                sim_unref(s);
                break;
            }
    }
    if (s->object.handle)
        sim_handle_drop(s);
}

bool sim_stream_is_blocking(const struct sim_stream *s)
{
    return s->kind != SIM_STREAM_USER || !(s->flags & CU_STREAM_NON_BLOCKING);
}

static struct sim_stream *per_thread(struct sim_context *ctx)
{
    struct sim_tls *tls = sim_self();
    size_t n = sizeof tls->own_streams / sizeof *tls->own_streams, i = 0;
    while (i < n && tls->own_streams[i] &&
           (tls->own_streams[i]->object.ctx != ctx || tls->own_streams[i]->closed))
        i++;
    if (i == n) {
        for (i = 0; i < n - 1 && !tls->own_streams[i]->closed; i++)
            ;
        sim_stream_close(tls->own_streams[i]);
        sim_unref(tls->own_streams[i]);
        tls->own_streams[i] = NULL;
    }
    if (!tls->own_streams[i])
        tls->own_streams[i] = sim_stream_make(ctx, SIM_STREAM_PER_THREAD, 0, 0);
    return tls->own_streams[i];
}

struct sim_stream *sim_stream_of(CUstream handle, CUresult *out_ret)
{
    struct sim_context *ctx = sim_context_current();
    *out_ret = CUDA_SUCCESS;
    if (!handle)
        handle = sim_self()->per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        if (!ctx)
            *out_ret = CUDA_ERROR_INVALID_CONTEXT;
        else
            return handle == CU_STREAM_LEGACY ? ctx->legacy : per_thread(ctx);
        return NULL;
    }
    struct sim_stream *s = sim_handle_find(handle, SIM_STREAM);
    if (s && s->object.ctx != ctx && s->object.ctx->sticky)
        *out_ret = s->object.ctx->sticky;
    else if (!s && sim_handle_is_dead(handle, SIM_STREAM))
        *out_ret =
            sim_misuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "stream %p is destroyed", (void *)handle);
    else if (!s)
        *out_ret = CUDA_ERROR_INVALID_HANDLE;
    return *out_ret ? NULL : s;
}

struct sim_stream *sim_stream_for_work(CUstream handle, CUresult *out_ret)
{
    struct sim_stream *s = sim_stream_of(handle, out_ret);
    if (s && s->kind == SIM_STREAM_LEGACY)
        *out_ret = sim_capture_forbids_legacy(s->object.ctx);
    return *out_ret ? NULL : s;
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority > SIM_PRIORITY_LEAST)
        priority = SIM_PRIORITY_LEAST;
    if (priority < SIM_PRIORITY_GREATEST)
        priority = SIM_PRIORITY_GREATEST;
    struct sim_stream *s = sim_stream_make(sim_context_current(), SIM_STREAM_USER, flags, priority);
    *out = sim_handle_make(s);
    sim_unref(s);
    return CUDA_SUCCESS;
}

SIM_API(cuStreamCreate, SIM_NS_CREATE, SIM_CTX, (CUstream * out, unsigned flags), (out, flags))
{
    return create(out, flags, 0);
}

SIM_API(cuStreamCreateWithPriority, SIM_NS_CREATE, SIM_CTX,
        (CUstream * out, unsigned flags, int priority), (out, flags, priority))
{
    return create(out, flags, priority);
}

SIM_API(cuStreamDestroy_v2, SIM_NS_CREATE, SIM_CTX, (CUstream handle), (handle))
{
    CUresult ret;
    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (s)
        sim_stream_close(s);
    return ret;
}

/* The ops that must be done for the stream to be idle; the legacy stream speaks for all blocking
 * ones. Counted. */
static size_t pending_of(struct sim_stream *stream, struct sim_op ***out)
{
    struct sim_context *ctx = stream->object.ctx;
    size_t n = 1;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        n++;
    struct sim_op **ops = sim_new(n * sizeof *ops);
    n = 0;
    if (stream->last)
        ops[n++] = sim_ref(stream->last);
    if (stream->kind == SIM_STREAM_LEGACY)
        for (struct sim_stream *s = ctx->streams; s; s = s->next)
            if (s != stream && s->last && sim_stream_is_blocking(s))
                ops[n++] = sim_ref(s->last);
    *out = ops;
    return n;
}

SIM_API_PTSZ(cuStreamSynchronize, SIM_NS_SYNC, SIM_CTX | SIM_UNSAFE, (CUstream handle), (handle))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(handle, &ret);
    if (!s)
        return ret;
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_context *ctx = s->object.ctx;
    struct sim_op **ops;
    size_t n = pending_of(s, &ops);
    for (size_t i = 0; i < n; i++) {
        sim_op_wait(ops[i]);
        sim_unref(ops[i]);
    }
    free(ops);
    return ctx->sticky;
}

SIM_API_PTSZ(cuStreamQuery, SIM_NS_QUERY, SIM_CTX | SIM_UNSAFE, (CUstream handle), (handle))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(handle, &ret);
    if (!s)
        return ret;
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_op **ops;
    size_t n = pending_of(s, &ops);
    for (size_t i = 0; i < n; i++) {
        if (!ops[i]->done)
            ret = CUDA_ERROR_NOT_READY;
        sim_unref(ops[i]);
    }
    free(ops);
    return ret;
}

SIM_API_PTSZ(cuStreamGetId, SIM_NS_GETTER, SIM_CTX, (CUstream handle, unsigned long long *out),
             (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->id;
    return ret;
}

SIM_API_PTSZ(cuStreamGetFlags, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE,
             (CUstream handle, unsigned *out), (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->flags;
    return ret;
}

SIM_API_PTSZ(cuStreamGetPriority, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE, (CUstream handle, int *out),
             (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->priority;
    return ret;
}

SIM_API_PTSZ(cuStreamGetCtx, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE,
             (CUstream handle, CUcontext *out), (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->object.ctx->object.handle;
    return ret;
}

SIM_API_PTSZ(cuStreamGetCtx_v2, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE,
             (CUstream handle, CUcontext *out, CUgreenCtx *out_green), (handle, out, out_green))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->object.ctx->object.handle;
    if (s && out_green)
        *out_green = NULL;
    return ret;
}

SIM_API_PTSZ(cuStreamGetDevice, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE,
             (CUstream handle, CUdevice *out), (handle, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s)
        *out = s->object.ctx->device;
    return ret;
}

SIM_API_PTSZ(cuStreamSetAttribute, SIM_NS_SMALL, SIM_CTX,
             (CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value),
             (handle, id, value))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!value || (unsigned)id >= SIM_STREAM_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (s && id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = value->priority;
    if (s)
        s->attributes[id] = *value;
    return ret;
}

SIM_API_PTSZ(cuStreamGetAttribute, SIM_NS_SMALL, SIM_CTX,
             (CUstream handle, CUstreamAttrID id, CUstreamAttrValue *out), (handle, id, out))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_of(handle, &ret);
    if (!out || (unsigned)id >= SIM_STREAM_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (s) {
        *out = s->attributes[id];
        if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            out->priority = s->priority;
    }
    return ret;
}

SIM_API_PTSZ(cuStreamCopyAttributes, SIM_NS_SMALL, SIM_CTX, (CUstream dst, CUstream src),
             (dst, src))
{
    CUresult ret;
    struct sim_stream *to = sim_stream_of(dst, &ret);
    struct sim_stream *from = to ? sim_stream_of(src, &ret) : NULL;
    if (from)
        memcpy(to->attributes, from->attributes, sizeof to->attributes);
    return ret;
}
