/* tools/simcuda/sim_set.c - memsets.
 * Called by  programs; sim_graph.c      Calls  sim_op.c, sim_memory.c
 * Threads    bodies hold sim_lock
 * Promise    a memset of device memory does not wait; of pinned host memory it does
 * Start at   set()                                                                          */
#define _GNU_SOURCE
#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_stream.h"

struct sim_work *sim_set_make(struct sim_context *ctx, const struct sim_set_work *want,
                              CUresult *out_ret)
{
    size_t row = want->width * want->element;
    size_t all = (want->height - 1) * want->pitch + row;
    *out_ret = CUDA_SUCCESS;
    if (!want->width || !want->height || want->dst % want->element ||
        (want->height > 1 && want->pitch < row))
        *out_ret = CUDA_ERROR_INVALID_VALUE;
    else if (!sim_memory_holds(want->dst, all))
        *out_ret = sim_memory_is_ours(want->dst) && !sim_memory_at(want->dst)
                       ? sim_misuse(CUDA_ERROR_INVALID_VALUE, "%#llx is freed memory",
                                    (unsigned long long)want->dst)
                       : CUDA_ERROR_INVALID_VALUE;
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_SET, ctx);
    w->set = *want;
    w->set.to = sim_memory_operand(want->dst);
    return w;
}

bool sim_set_may_become(const struct sim_set_work *was, const struct sim_set_work *is)
{
    const bool same_shape = was->width == is->width && was->height == is->height &&
                            was->element == is->element && was->pitch == is->pitch;
    const bool lines = was->height == 1 && is->height == 1;
    return (same_shape || lines) && sim_memory_same_mapping(&was->to, &is->to);
}

bool sim_set_is_still(const struct sim_set_work *s)
{
    return sim_memory_is_still(s->dst, (s->height - 1) * s->pitch + s->width * s->element, &s->to);
}

static CUresult set(uintptr_t dst, size_t pitch, uint32_t value, unsigned element, size_t width,
                    size_t height, CUstream stream, bool async)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (!async && s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (!width || !height)
        return CUDA_SUCCESS;
    const struct sim_set_work want = {dst, value, element, width, height, pitch, {0}};
    struct sim_work *w = sim_set_make(s->object.ctx, &want, &ret);
    if (!w)
        return ret;
    struct sim_context *ctx = s->object.ctx;
    const struct sim_range *r = sim_memory_at(dst);
    const bool must_wait = sim_memory_is_host(r) || r->sync_memops;
    struct sim_op *op;
    ret = sim_enqueue(s, w, &op);
    if (!op)
        return ret;
    if (!async && must_wait)
        sim_op_wait(op);
    sim_unref(op);
    return ctx->sticky;
}

#define SETS(bits, type)                                                                           \
    SIM_API_PTDS(cuMemsetD##bits##_v2, SIM_NS_MEMSET, SIM_CTX,                                     \
                 (CUdeviceptr at, type value, size_t n), (at, value, n))                           \
    {                                                                                              \
        return set(at, 0, value, bits / 8, n, 1, NULL, false);                                     \
    }                                                                                              \
    SIM_API_PTSZ(cuMemsetD##bits##Async, SIM_NS_MEMSET, SIM_CTX,                                   \
                 (CUdeviceptr at, type value, size_t n, CUstream stream), (at, value, n, stream))  \
    {                                                                                              \
        return set(at, 0, value, bits / 8, n, 1, stream, true);                                    \
    }                                                                                              \
    SIM_API_PTDS(cuMemsetD2D##bits##_v2, SIM_NS_MEMSET, SIM_CTX,                                   \
                 (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height),          \
                 (at, pitch, value, width, height))                                                \
    {                                                                                              \
        return set(at, pitch, value, bits / 8, width, height, NULL, false);                        \
    }                                                                                              \
    SIM_API_PTSZ(                                                                                  \
        cuMemsetD2D##bits##Async, SIM_NS_MEMSET, SIM_CTX,                                          \
        (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream stream),  \
        (at, pitch, value, width, height, stream))                                                 \
    {                                                                                              \
        return set(at, pitch, value, bits / 8, width, height, stream, true);                       \
    }

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
