/* tools/simcuda/sim_launch.c - kernel launches and host functions.
 * Called by  programs; sim_graph.c      Calls  sim_op.c, sim_function.c
 * Threads    bodies hold sim_lock
 * Promise    what a driver refuses at once is refused at once, and nothing of it is queued
 * Start at   sim_launch_pack()                                                              */
#define _GNU_SOURCE
#include "tools/simcuda/sim_launch.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

static CUresult check_shape(const CUlaunchConfig *c, const struct sim_function *f)
{
    uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->gridDimX > 2147483647u || c->gridDimY > 65535 || c->gridDimZ > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->blockDimX > 1024 || c->blockDimY > 1024 || c->blockDimZ > 64 || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->sharedMemBytes > (unsigned)f->max_dynamic)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult take_attributes(struct sim_kernel_work *k, const CUlaunchConfig *c)
{
    if (c->numAttrs > SIM_MAX_ATTRIBUTES || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        if ((unsigned)a->id > CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
            return CUDA_ERROR_INVALID_VALUE;
        if (a->id == CU_LAUNCH_ATTRIBUTE_IGNORE)
            continue;
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
            (!a->value.clusterDim.x || !a->value.clusterDim.y || !a->value.clusterDim.z ||
             c->gridDimX % a->value.clusterDim.x || c->gridDimY % a->value.clusterDim.y ||
             c->gridDimZ % a->value.clusterDim.z))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        if (a->id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            k->priority = a->value.priority;
        k->attributes[k->nattributes++] = *a;
    }
    return CUDA_SUCCESS;
}

/* The `extra` list: a buffer and its size. A buffer that ends early is accepted; what lies beyond it
 * is undefined, here zero. */
static CUresult take_buffer(char *args, const struct sim_kernel *host, void **extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    if (!buffer)
        return host->args_bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    /* Not the padding: the log must not depend on it. */
    for (uint32_t i = 0; i < host->nparams && host->params[i].offset < bytes; i++) {
        const size_t at = host->params[i].offset, size = host->params[i].size;
        memcpy(args + at, (const char *)buffer + at, size < bytes - at ? size : bytes - at);
    }
    return CUDA_SUCCESS;
}

static CUresult take_arguments(char *args, const struct sim_kernel *host, void **params,
                               void **extra)
{
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return take_buffer(args, host, extra);
    if (host->nparams && !params)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < host->nparams; i++) {
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(args + host->params[i].offset, params[i], host->params[i].size);
    }
    return CUDA_SUCCESS;
}

struct sim_work *sim_launch_pack(const CUlaunchConfig *c, CUfunction function,
                                 struct sim_context *ctx, void **params, void **extra,
                                 CUresult *out_ret)
{
    bool is_kernel;
    struct sim_function *f = sim_function_of(function, ctx, &is_kernel, out_ret);
    if (!f)
        return NULL;
    if (f->object.ctx != ctx) {
        *out_ret = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    *out_ret = check_shape(c, f);
    if (*out_ret)
        return NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_KERNEL, ctx);
    struct sim_kernel_work *k = &w->kernel;
    k->function = sim_ref(f);
    k->kernel = is_kernel ? (CUkernel)function : NULL;
    k->grid[0] = c->gridDimX, k->grid[1] = c->gridDimY, k->grid[2] = c->gridDimZ;
    k->block[0] = c->blockDimX, k->block[1] = c->blockDimY, k->block[2] = c->blockDimZ;
    k->shared = c->sharedMemBytes;
    k->max_dynamic = f->max_dynamic;
    k->carveout = f->carveout;
    k->cache = f->cache;
    k->args = sim_new(f->host->args_bytes);
    *out_ret = take_attributes(k, c);
    if (!*out_ret)
        *out_ret = take_arguments(k->args, f->host, params, extra);
    if (*out_ret) {
        sim_unref(w);
        return NULL;
    }
    return w;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction function, void **params, void **extra)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(c->hStream, &ret);
    if (!s)
        return ret;
    struct sim_work *w = sim_launch_pack(c, function, s->object.ctx, params, extra, &ret);
    if (!w) /* a capture does not survive a refused launch */
        return s->capture ? sim_capture_break(s->capture, ret) : ret;
    bool own_priority = false;
    for (unsigned i = 0; i < w->kernel.nattributes; i++)
        own_priority |= w->kernel.attributes[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (!own_priority)
        w->kernel.priority = s->priority;
    return sim_enqueue(s, w, NULL);
}

SIM_API_PTSZ(cuLaunchKernel, SIM_NS_LAUNCH, SIM_CTX,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared, CUstream stream, void **params, void **extra),
             (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra))
{
    CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
    return launch(&c, f, params, extra);
}

SIM_API_PTSZ(cuLaunchKernelEx, SIM_NS_LAUNCH, SIM_CTX,
             (const CUlaunchConfig *c, CUfunction f, void **params, void **extra),
             (c, f, params, extra))
{
    return c ? launch(c, f, params, extra) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API_PTSZ(cuLaunchCooperativeKernel, SIM_NS_LAUNCH, SIM_CTX,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared, CUstream stream, void **params),
             (f, gx, gy, gz, bx, by, bz, shared, stream, params))
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
    cooperative.value.cooperative = 1;
    CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, &cooperative, 1};
    return launch(&c, f, params, NULL);
}

SIM_API_PTSZ(cuLaunchHostFunc, SIM_NS_HOST_FUNCTION, SIM_CTX,
             (CUstream stream, CUhostFn fn, void *data), (stream, fn, data))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_work *w = sim_work_new(SIM_WORK_HOST, s->object.ctx);
    w->host.fn = fn;
    w->host.data = data;
    return sim_enqueue(s, w, NULL);
}

SIM_API_PTSZ(cuStreamAddCallback, SIM_NS_HOST_FUNCTION, SIM_CTX,
             (CUstream stream, CUstreamCallback fn, void *data, unsigned flags),
             (stream, fn, data, flags))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (!fn || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_work *w = sim_work_new(SIM_WORK_CALLBACK, s->object.ctx);
    w->host.callback = fn;
    w->host.stream = stream;
    w->host.data = data;
    return sim_enqueue(s, w, NULL);
}
