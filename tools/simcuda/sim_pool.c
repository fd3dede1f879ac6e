/* tools/simcuda/sim_pool.c - the stream-ordered allocator: one default pool a device.
 * Called by  programs                   Calls  sim_op.c, sim_memory.c
 * Threads    bodies hold sim_lock
 * Promise    the address is valid at once; memory freed in a stream is given out again in that
 *            stream at once, elsewhere when the free has run
 * Start at   cuMemAllocAsync                                                                */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

struct sim_pool {
    struct sim_object object;
    int device;
    cuuint64_t threshold, used_high;
};

static struct sim_pool *pools[SIM_MAX_DEVICES];

/* Freed in a stream, not yet run: this stream may have it back. */
static struct late_free {
    struct sim_range *range;
    struct sim_op *op; /* counted */
    struct sim_stream *stream;
    struct late_free *next;
} * late;

static struct sim_pool *default_pool(int device)
{
    if (!pools[device]) {
        pools[device] = sim_object_new(sizeof *pools[device], SIM_POOL, NULL, NULL);
        pools[device]->device = device;
        sim_handle_make(pools[device]);
    }
    return pools[device];
}

/* Frees that have run leave the list; their ranges are gone already. */
static void forget_done(void)
{
    for (struct late_free **at = &late; *at;) {
        struct late_free *l = *at;
        if (!l->op->done) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        sim_unref(l->op);
        free(l);
    }
}

/* A range that this stream freed, of the same size: its free will find nothing to do. */
static struct sim_range *take_back(struct sim_stream *s, size_t bytes)
{
    for (struct late_free **at = &late; *at; at = &(*at)->next) {
        struct late_free *l = *at;
        if (l->stream != s || l->range->bytes != bytes)
            continue;
        struct sim_range *r = l->range;
        l->op->work->memory.cancelled = true;
        r->freeing = false;
        *at = l->next;
        sim_unref(l->op);
        free(l);
        return r;
    }
    return NULL;
}

static cuuint64_t used_now(int device)
{
    return sim_memory_stream_ordered(device);
}

static CUresult alloc(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(handle, &ret);
    if (!s)
        return ret;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) /* memory nodes are not simulated */
        return sim_capture_break(s->capture, CUDA_ERROR_NOT_SUPPORTED);
    if (!bytes) {
        *out = 0;
        return CUDA_ERROR_INVALID_VALUE;
    }
    forget_done();
    struct sim_range *r = take_back(s, bytes);
    if (!r)
        r = sim_memory_make(s->object.ctx, SIM_MEMORY_DEVICE, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->stream_ordered = true;
    struct sim_pool *pool = default_pool(s->object.ctx->device);
    if (used_now(pool->device) > pool->used_high)
        pool->used_high = used_now(pool->device);
    *out = r->base;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuMemAllocAsync, SIM_NS_LAUNCH, SIM_CTX,
             (CUdeviceptr * out, size_t bytes, CUstream stream), (out, bytes, stream))
{
    return alloc(out, bytes, stream);
}

SIM_API_PTSZ(cuMemAllocFromPoolAsync, SIM_NS_LAUNCH, SIM_CTX,
             (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
             (out, bytes, pool, stream))
{
    return sim_handle_find(pool, SIM_POOL) ? alloc(out, bytes, stream) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API_PTSZ(cuMemFreeAsync, SIM_NS_LAUNCH, SIM_CTX, (CUdeviceptr at, CUstream handle),
             (at, handle))
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(handle, &ret);
    if (!s)
        return ret;
    struct sim_range *r = sim_memory_at(at);
    if (!r || r->base != at || r->kind != SIM_MEMORY_DEVICE || r->freeing)
        return sim_misuse(CUDA_ERROR_INVALID_VALUE, "%#llx is not there to be freed", at);
    if (s->capture)
        return sim_capture_break(s->capture, CUDA_ERROR_NOT_SUPPORTED);
    forget_done();
    r->freeing = true;
    struct sim_work *w = sim_work_new(SIM_WORK_FREE, s->object.ctx);
    w->memory.at = at;
    w->memory.bytes = r->bytes;
    struct late_free *l = sim_new(sizeof *l);
    l->range = r;
    l->stream = s;
    ret = sim_enqueue(s, w, &l->op);
    l->next = late;
    late = l;
    return ret;
}

static struct sim_pool *pool_of(CUmemoryPool handle, CUresult *out_ret)
{
    struct sim_pool *p = sim_handle_find(handle, SIM_POOL);
    *out_ret = p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return p;
}

static CUresult device_pool(CUmemoryPool *out, CUdevice device)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = default_pool(device)->object.handle;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetDefaultMemPool, SIM_NS_SMALL, SIM_INIT, (CUmemoryPool * out, CUdevice device),
        (out, device))
{
    return device_pool(out, device);
}

SIM_API(cuDeviceGetMemPool, SIM_NS_SMALL, SIM_INIT, (CUmemoryPool * out, CUdevice device),
        (out, device))
{
    return device_pool(out, device);
}

SIM_API(cuMemPoolGetAttribute, SIM_NS_SMALL, SIM_INIT,
        (CUmemoryPool pool, CUmemPool_attribute which, void *out), (pool, which, out))
{
    CUresult ret;
    struct sim_pool *p = pool_of(pool, &ret);
    if (!p || !out)
        return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)out = 1;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)out = p->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)out = used_now(p->device);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)out = p->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemPoolSetAttribute, SIM_NS_SMALL, SIM_INIT,
        (CUmemoryPool pool, CUmemPool_attribute which, void *value), (pool, which, value))
{
    CUresult ret;
    struct sim_pool *p = pool_of(pool, &ret);
    if (!p || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        p->threshold = *(const cuuint64_t *)value;
    if (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH || which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        p->used_high = used_now(p->device);
    return which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMemPoolTrimTo, SIM_NS_ALLOC, SIM_INIT, (CUmemoryPool pool, size_t keep), (pool, keep))
{
    CUresult ret;
    (void)keep;
    pool_of(pool, &ret);
    return ret;
}

/* No graph owns memory here. */
SIM_API(cuDeviceGetGraphMemAttribute, SIM_NS_SMALL, SIM_INIT,
        (CUdevice device, CUgraphMem_attribute which, void *out), (device, which, out))
{
    if (!out || (unsigned)which > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *(cuuint64_t *)out = 0;
    return CUDA_SUCCESS;
}
