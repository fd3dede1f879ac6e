/* tools/simcuda/sim_pool.c - the stream-ordered allocator and its pools.
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
#include "tools/simcuda/sim_pool.h"
#include "tools/simcuda/sim_stream.h"

static struct sim_pool *pools[SIM_MAX_DEVICES];   /* the default ones */
static struct sim_pool *current[SIM_MAX_DEVICES]; /* where cuMemAllocAsync allocates; NULL: there */

/* Freed in a stream, not yet run: this stream may have it back. */
static struct late_free {
    struct sim_range *range;
    struct sim_op *op; /* counted */
    struct sim_stream *stream;
    struct late_free *next;
} * late;

static void free_pool(struct sim_object *self)
{
    sim_memory_forget_pool((struct sim_pool *)self);
}

static struct sim_pool *make_pool(int device)
{
    struct sim_pool *p = sim_object_new(sizeof *p, SIM_POOL, NULL, free_pool);
    p->device = device;
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    sim_handle_make(p);
    return p;
}

static struct sim_pool *default_pool(int device)
{
    if (!pools[device]) {
        pools[device] = make_pool(device);
        pools[device]->is_default = true;
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
static struct sim_range *take_back(struct sim_stream *s, const struct sim_pool *pool, size_t bytes)
{
    for (struct late_free **at = &late; *at; at = &(*at)->next) {
        struct late_free *l = *at;
        if (l->stream != s || l->op->done || l->op->work->memory.begun ||
            l->range->bytes != bytes || l->range->pool != pool)
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

static cuuint64_t used_now(const struct sim_pool *pool)
{
    return sim_memory_stream_ordered(pool);
}

static CUresult alloc(CUdeviceptr *out, size_t bytes, struct sim_pool *pool, CUstream handle)
{
    CUresult ret;
    struct sim_stream *s = sim_stream_for_work(handle, &ret);
    if (!s)
        return ret;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) /* memory nodes are not simulated */
        return sim_capture_break(s->capture, CUDA_ERROR_NOT_SUPPORTED);
    if (!bytes) { /* nothing, and no operation */
        *out = 0;
        return CUDA_SUCCESS;
    }
    const int device = s->object.ctx->device;
    if (!pool)
        pool = current[device] ? current[device] : default_pool(device);
    if (pool->most && used_now(pool) + bytes > pool->most)
        return CUDA_ERROR_OUT_OF_MEMORY;
    forget_done();
    struct sim_range *r = take_back(s, pool, bytes);
    const bool again = r != NULL;
    if (!r)
        r = sim_memory_make(s->object.ctx, SIM_MEMORY_DEVICE, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Given back within the stream it was never gone; elsewhere earlier work may still name it. */
    r->unborn = !again;
    r->stream_ordered = true;
    r->pool = pool;
    if (used_now(pool) > pool->used_high)
        pool->used_high = used_now(pool);
    *out = r->base;
    struct sim_work *w = sim_work_new(SIM_WORK_ALLOC, s->object.ctx);
    w->memory.at = r->base;
    w->memory.bytes = bytes;
    return sim_enqueue(s, w, NULL);
}

SIM_API_PTSZ(cuMemAllocAsync, SIM_NS_LAUNCH, SIM_CTX,
             (CUdeviceptr * out, size_t bytes, CUstream stream), (out, bytes, stream))
{
    return alloc(out, bytes, NULL, stream);
}

SIM_API_PTSZ(cuMemAllocFromPoolAsync, SIM_NS_LAUNCH, SIM_CTX,
             (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
             (out, bytes, pool, stream))
{
    struct sim_pool *p = sim_handle_find(pool, SIM_POOL);
    return p ? alloc(out, bytes, p, stream) : CUDA_ERROR_INVALID_VALUE;
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

static CUresult device_pool(CUmemoryPool *out, CUdevice device, bool of_default)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    struct sim_pool *p = of_default ? NULL : current[device];
    *out = (p ? p : default_pool(device))->object.handle;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetDefaultMemPool, SIM_NS_SMALL, SIM_INIT, (CUmemoryPool * out, CUdevice device),
        (out, device))
{
    return device_pool(out, device, true);
}

SIM_API(cuDeviceGetMemPool, SIM_NS_SMALL, SIM_INIT, (CUmemoryPool * out, CUdevice device),
        (out, device))
{
    return device_pool(out, device, false);
}

SIM_API(cuDeviceSetMemPool, SIM_NS_SMALL, SIM_INIT, (CUdevice device, CUmemoryPool handle),
        (device, handle))
{
    CUresult ret;
    struct sim_pool *p = pool_of(handle, &ret);
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!p || p->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    current[device] = p;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolCreate, SIM_NS_CREATE, SIM_INIT, (CUmemoryPool * out, const CUmemPoolProps *props),
        (out, props))
{
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->location.id < 0 ||
        props->location.id >= sim.devices)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED; /* nothing is exported here */
    struct sim_pool *p = make_pool(props->location.id);
    p->most = props->maxSize;
    *out = p->object.handle;
    sim_unref(p);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolDestroy, SIM_NS_CREATE, SIM_INIT, (CUmemoryPool handle), (handle))
{
    CUresult ret;
    struct sim_pool *p = pool_of(handle, &ret);
    if (!p || p->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (current[p->device] == p) /* the device goes back to its default pool */
        current[p->device] = NULL;
    sim_handle_drop(p);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAccess, SIM_NS_SMALL, SIM_INIT,
        (CUmemoryPool handle, const CUmemAccessDesc *map, size_t n), (handle, map, n))
{
    CUresult ret;
    struct sim_pool *p = pool_of(handle, &ret);
    for (size_t i = 0; p && map && i < n; i++)
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id < 0 ||
            map[i].location.id >= sim.devices ||
            (map[i].location.id == p->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            return CUDA_ERROR_INVALID_DEVICE;
    return p && map ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
        *(int *)out = p->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)out = p->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)out = used_now(p);
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
    if (which <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        p->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value;
    if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        p->threshold = *(const cuuint64_t *)value;
    if (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH || which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        p->used_high = used_now(p);
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
