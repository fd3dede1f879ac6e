/* tools/simcuda/sim_context.c - contexts: created, primary, current.
 * Called by  programs; sim_call.c       Calls  sim_stream.c, sim_memory.c, sim_object.c
 * Threads    bodies hold sim_lock
 * Promise    destroying a context waits for its work, then kills every handle that it owns
 * Start at   activate() and tear_down()                                                     */
#define _GNU_SOURCE
#include "tools/simcuda/sim_context.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

static struct sim_context *primary[SIM_MAX_DEVICES];
static unsigned primary_flags[SIM_MAX_DEVICES];
static uint64_t next_id = 1;

SIM_API(cuInit, SIM_NS_LOAD, SIM_ANY, (unsigned flags), (flags))
{
    if (sim.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim.devices)
        return CUDA_ERROR_NO_DEVICE;
    sim.inited = true;
    return CUDA_SUCCESS;
}

struct sim_context *sim_context_current(void)
{
    struct sim_tls *tls = sim_self();
    return tls->depth ? tls->stack[tls->depth - 1] : NULL;
}

struct sim_context *sim_context_find(CUcontext handle)
{
    struct sim_context *ctx = sim_handle_find(handle, SIM_CONTEXT);
    return ctx && !ctx->destroyed ? ctx : NULL;
}

void sim_context_break(struct sim_context *ctx, CUresult code)
{
    if (!ctx->sticky)
        __atomic_store_n(&ctx->sticky, code, __ATOMIC_RELAXED); /* waits look without the lock */
}

CUresult sim_context_drain(struct sim_context *ctx)
{
    size_t n = 0;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        n++;
    struct sim_op **ops = sim_new((n + 1) * sizeof *ops);
    n = 0;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        if (s->last)
            ops[n++] = sim_ref(s->last);
    for (size_t i = 0; i < n; i++) {
        sim_op_wait(ops[i]);
        sim_unref(ops[i]);
    }
    free(ops);
    return ctx->sticky;
}

CUresult sim_context_drain_shut(struct sim_context *ctx)
{
    sim_ref(ctx);
    sim_op_shut(ctx);
    const CUresult ret = sim_context_drain(ctx);
    sim_op_reopen(ctx);
    sim_unref(ctx);
    return ret;
}

static void activate(struct sim_context *ctx, unsigned flags)
{
    ctx->flags = flags;
    ctx->destroyed = false;
    ctx->sticky = CUDA_SUCCESS;
    ctx->id = next_id++;
    ctx->cache = CU_FUNC_CACHE_PREFER_NONE;
    memset(ctx->limits, 0, sizeof ctx->limits);
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    ctx->legacy = sim_stream_make(ctx, SIM_STREAM_LEGACY, 0, 0);
}

static struct sim_context *new_context(int device)
{
    struct sim_context *ctx = sim_object_new(sizeof *ctx, SIM_CONTEXT, NULL, NULL);
    ctx->device = device;
    sim_handle_make(ctx);
    return ctx;
}

static void drop(void *object, void *data)
{
    (void)data;
    sim_handle_drop(object);
}

static void retire(void *object, void *data)
{
    (void)data;
    sim_module_retire(object);
}

static void tear_down(struct sim_context *ctx)
{
    sim_context_drain(ctx);
    for (struct sim_stream *s = ctx->streams; s;)
        if (s->closed) {
            s = s->next;
        } else {
            sim_stream_close(s);
            s = ctx->streams;
        }
    sim_handle_each(SIM_EVENT, ctx, drop, NULL);
    sim_handle_each(SIM_MODULE, ctx, retire, NULL);
    sim_memory_free_all_of(ctx);
    sim_unref(ctx->legacy);
    ctx->legacy = NULL;
    ctx->destroyed = true;
    ctx->captures = 0;
}

static CUresult push(struct sim_context *ctx)
{
    struct sim_tls *tls = sim_self();
    if (tls->depth == SIM_STACK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    tls->stack[tls->depth++] = sim_ref(ctx);
    return CUDA_SUCCESS;
}

static struct sim_context *pop(void)
{
    struct sim_tls *tls = sim_self();
    return tls->depth ? tls->stack[--tls->depth] : NULL;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    if (!out || flags & ~0x3fu)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    struct sim_context *ctx = new_context(device);
    activate(ctx, flags);
    *out = ctx->object.handle;
    CUresult ret = push(ctx);
    sim_unref(ctx); /* the handle and the stack hold it */
    return ret;
}

SIM_API(cuCtxCreate_v2, SIM_NS_LOAD, SIM_INIT, (CUcontext * out, unsigned flags, CUdevice device),
        (out, flags, device))
{
    return create(out, flags, device);
}

SIM_API(cuCtxCreate_v3, SIM_NS_LOAD, SIM_INIT,
        (CUcontext * out, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device),
        (out, affinity, n, flags, device))
{
    (void)affinity;
    return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(out, flags, device);
}

SIM_API(cuCtxCreate_v4, SIM_NS_LOAD, SIM_INIT,
        (CUcontext * out, CUctxCreateParams *params, unsigned flags, CUdevice device),
        (out, params, flags, device))
{
    if (params && (params->numExecAffinityParams || params->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(out, flags, device);
}

SIM_API(cuCtxDestroy_v2, SIM_NS_LOAD, SIM_INIT, (CUcontext handle), (handle))
{
    struct sim_context *ctx = sim_context_find(handle);
    if (!ctx)
        return sim_misuse(CUDA_ERROR_INVALID_CONTEXT, "context %p is not alive", (void *)handle);
    if (ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_ref(ctx);
    tear_down(ctx);
    if (sim_context_current() == ctx)
        sim_unref(pop());
    sim_handle_drop(ctx);
    sim_unref(ctx);
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRetain, SIM_NS_SMALL, SIM_INIT, (CUcontext * out, CUdevice device),
        (out, device))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!primary[device]) {
        primary[device] = new_context(device);
        primary[device]->primary = true;
        primary[device]->destroyed = true;
    }
    struct sim_context *ctx = primary[device];
    if (ctx->destroyed) {
        activate(ctx, primary_flags[device]);
        sim_clock_spend(SIM_NS_LOAD);
    }
    ctx->retains++;
    *out = ctx->object.handle;
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRelease_v2, SIM_NS_SMALL, SIM_INIT, (CUdevice device), (device))
{
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    struct sim_context *ctx = primary[device];
    if (!ctx || ctx->destroyed || !ctx->retains)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--ctx->retains == 0)
        tear_down(ctx);
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxReset_v2, SIM_NS_LOAD, SIM_INIT, (CUdevice device), (device))
{
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    struct sim_context *ctx = primary[device];
    if (ctx && !ctx->destroyed) {
        tear_down(ctx);
        ctx->retains = 0;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxGetState, SIM_NS_SMALL, SIM_INIT,
        (CUdevice device, unsigned *flags, int *active), (device, flags, active))
{
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *ctx = primary[device];
    *active = ctx && !ctx->destroyed;
    *flags = *active ? ctx->flags : primary_flags[device];
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxSetFlags_v2, SIM_NS_SMALL, SIM_INIT, (CUdevice device, unsigned flags),
        (device, flags))
{
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~0x3fu)
        return CUDA_ERROR_INVALID_VALUE;
    primary_flags[device] = flags;
    if (primary[device])
        primary[device]->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCurrent, SIM_NS_SMALL, SIM_INIT, (CUcontext handle), (handle))
{
    struct sim_context *ctx = NULL;
    if (handle && !(ctx = sim_context_find(handle)))
        return sim_misuse(CUDA_ERROR_INVALID_CONTEXT, "context %p is not alive", (void *)handle);
    if (sim_self()->depth)
        sim_unref(pop());
    return ctx ? push(ctx) : CUDA_SUCCESS;
}

SIM_API(cuCtxGetCurrent, SIM_NS_GETTER, SIM_INIT, (CUcontext * out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *ctx = sim_context_current();
    *out = ctx ? ctx->object.handle : NULL;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxPushCurrent_v2, SIM_NS_SMALL, SIM_INIT, (CUcontext handle), (handle))
{
    struct sim_context *ctx = sim_context_find(handle);
    if (!ctx)
        return sim_misuse(CUDA_ERROR_INVALID_CONTEXT, "context %p is not alive", (void *)handle);
    return push(ctx);
}

SIM_API(cuCtxPopCurrent_v2, SIM_NS_SMALL, SIM_INIT, (CUcontext * out), (out))
{
    struct sim_context *ctx = pop();
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out)
        *out = ctx->object.handle;
    sim_unref(ctx);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSynchronize, SIM_NS_SYNC, SIM_CTX | SIM_UNSAFE, (void), ())
{
    CUresult ret = sim_capture_forbids_context_wait(sim_context_current());
    if (ret)
        return ret;
    return sim_context_drain(sim_context_current());
}

SIM_API(cuCtxGetDevice, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE, (CUdevice * out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_context_current()->device;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetFlags, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE, (unsigned *out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_context_current()->flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetId, SIM_NS_GETTER, SIM_INIT, (CUcontext handle, unsigned long long *out),
        (handle, out))
{
    struct sim_context *ctx = handle ? sim_context_find(handle) : sim_context_current();
    if (!ctx || !out)
        return ctx ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    *out = ctx->id;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion, SIM_NS_GETTER, SIM_INIT, (CUcontext handle, unsigned *out),
        (handle, out))
{
    struct sim_context *ctx = handle ? sim_context_find(handle) : sim_context_current();
    if (!ctx || !out)
        return ctx ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    *out = 3020;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetStreamPriorityRange, SIM_NS_GETTER, SIM_CTX | SIM_PASSIVE,
        (int *least, int *greatest), (least, greatest))
{
    if (least)
        *least = SIM_PRIORITY_LEAST;
    if (greatest)
        *greatest = SIM_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit, SIM_NS_SMALL, SIM_CTX | SIM_PASSIVE, (size_t * out, CUlimit limit),
        (out, limit))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= SIM_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *out = sim_context_current()->limits[limit];
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetLimit, SIM_NS_SMALL, SIM_CTX, (CUlimit limit, size_t value), (limit, value))
{
    if ((unsigned)limit >= SIM_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    sim_context_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCacheConfig, SIM_NS_GETTER, SIM_CTX, (CUfunc_cache * out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_context_current()->cache;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig, SIM_NS_SMALL, SIM_CTX, (CUfunc_cache cache), (cache))
{
    sim_context_current()->cache = cache;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxEnablePeerAccess, SIM_NS_ALLOC, SIM_CTX, (CUcontext peer, unsigned flags),
        (peer, flags))
{
    struct sim_context *ctx = sim_context_find(peer);
    if (!ctx || flags)
        return ctx ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    return ctx->device == sim_context_current()->device ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                                                        : CUDA_SUCCESS;
}
