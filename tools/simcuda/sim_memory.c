/* tools/simcuda/sim_memory.c - allocations, and what is known about an address.
 * Called by  programs; see sim_memory.h Calls  sim_arena.c, sim_context.c
 * Threads    bodies hold sim_lock
 * Promise    a free waits for the context's work, as programs rely on
 * Start at   sim_memory_make()                                                              */
#define _GNU_SOURCE
#include "tools/simcuda/sim_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_pool.h"

static struct sim_range **ranges; /* sorted by base */
static size_t nranges, room;
static size_t used[SIM_MAX_DEVICES];
static uint64_t next_id = 1;

/* Index of the first range with a base above the address. */
static size_t above(uintptr_t address)
{
    size_t low = 0, high = nranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sim_range *sim_memory_at(uintptr_t address)
{
    size_t i = above(address);
    if (!i || address - ranges[i - 1]->base >= ranges[i - 1]->bytes)
        return NULL;
    return ranges[i - 1];
}

struct sim_range *sim_memory_holds(uintptr_t at, size_t bytes)
{
    struct sim_range *r = sim_memory_at(at);
    return r && bytes <= r->bytes - (at - r->base) ? r : NULL;
}

bool sim_memory_is_ours(uintptr_t address)
{
    return sim_arena_holds(address);
}

bool sim_memory_is_gone(uintptr_t address)
{
    return sim_memory_is_ours(address) && !sim_memory_at(address);
}

bool sim_memory_is_host(const struct sim_range *range)
{
    return range->kind == SIM_MEMORY_HOST || range->kind == SIM_MEMORY_REGISTERED;
}

size_t sim_memory_used(int device)
{
    return used[device];
}

static size_t rounded(size_t bytes)
{
    return (bytes + 511) & ~(size_t)511;
}

size_t sim_memory_stream_ordered(const struct sim_pool *pool)
{
    size_t n = 0;
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i]->pool == pool && !ranges[i]->freeing)
            n += rounded(ranges[i]->bytes);
    return n;
}

void sim_memory_forget_pool(const struct sim_pool *pool)
{
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i]->pool == pool)
            ranges[i]->pool = NULL;
}

struct sim_operand sim_memory_operand(uintptr_t at)
{
    const struct sim_range *r = sim_memory_at(at);
    return r ? (struct sim_operand){r->id, (int)r->kind, r->ctx} : (struct sim_operand){.kind = -1};
}

bool sim_memory_is_still(uintptr_t at, size_t bytes, const struct sim_operand *was)
{
    const struct sim_range *r = sim_memory_at(at);
    return r ? r->id == was->id && sim_memory_holds(at, bytes)
             : !was->id && !sim_memory_is_ours(at);
}

/* Managed memory stands for device memory where an operand is exchanged. */
static int kind_of(const struct sim_operand *o)
{
    return o->kind == SIM_MEMORY_MANAGED ? SIM_MEMORY_DEVICE : o->kind;
}

bool sim_memory_same_mapping(const struct sim_operand *a, const struct sim_operand *b)
{
    return kind_of(a) == kind_of(b) && a->ctx == b->ctx;
}

static bool counts(enum sim_memory_kind kind)
{
    return kind == SIM_MEMORY_DEVICE || kind == SIM_MEMORY_MANAGED || kind == SIM_MEMORY_CONSTANT;
}

static struct sim_range *insert(struct sim_context *ctx, enum sim_memory_kind kind, uintptr_t base,
                                size_t bytes)
{
    struct sim_range *r = sim_new(sizeof *r);
    *r = (struct sim_range){.base = base,
                            .bytes = bytes,
                            .kind = kind,
                            .device = ctx->device,
                            .id = next_id++,
                            .ctx = ctx};
    if (nranges == room) {
        room = room ? 2 * room : 64;
        ranges = realloc(ranges, room * sizeof(struct sim_range *));
        if (!ranges)
            abort();
    }
    size_t i = above(base);
    memmove(ranges + i + 1, ranges + i, (nranges - i) * sizeof(struct sim_range *));
    ranges[i] = r;
    nranges++;
    if (counts(kind))
        used[ctx->device] += rounded(bytes);
    return r;
}

struct sim_range *sim_memory_make(struct sim_context *ctx, enum sim_memory_kind kind, size_t bytes)
{
    if (counts(kind) && (bytes > sim.memory || used[ctx->device] + rounded(bytes) > sim.memory))
        return NULL;
    uintptr_t at = sim_arena_take(kind == SIM_MEMORY_HOST ? SIM_ARENA_HOST : ctx->device, bytes);
    return at ? insert(ctx, kind, at, bytes) : NULL;
}

void sim_memory_release(struct sim_range *r)
{
    size_t i = above(r->base) - 1;
    memmove(ranges + i, ranges + i + 1, (nranges - i - 1) * sizeof(struct sim_range *));
    nranges--;
    if (counts(r->kind))
        used[r->device] -= rounded(r->bytes);
    if (r->kind != SIM_MEMORY_REGISTERED)
        sim_arena_give(r->kind == SIM_MEMORY_HOST ? SIM_ARENA_HOST : r->device, r->base);
    free(r);
}

void sim_memory_free_all_of(struct sim_context *ctx)
{
    for (size_t i = nranges; i-- > 0;)
        if (ranges[i]->ctx == ctx)
            sim_memory_release(ranges[i]);
}

static CUresult allocate(CUdeviceptr *out, enum sim_memory_kind kind, size_t bytes, unsigned flags)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *r = sim_memory_make(sim_context_current(), kind, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->flags = flags;
    *out = r->base;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAlloc_v2, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE, (CUdeviceptr * out, size_t bytes),
        (out, bytes))
{
    return allocate(out, SIM_MEMORY_DEVICE, bytes, 0);
}

SIM_API(cuMemAllocPitch_v2, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE,
        (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
        (out, pitch, width, height, element))
{
    if (!pitch || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + 511) & ~(size_t)511;
    return allocate(out, SIM_MEMORY_DEVICE, *pitch * height, 0);
}

SIM_API(cuMemAllocManaged, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE,
        (CUdeviceptr * out, size_t bytes, unsigned flags), (out, bytes, flags))
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, SIM_MEMORY_MANAGED, bytes, flags);
}

SIM_API(cuMemFree_v2, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE, (CUdeviceptr at), (at))
{
    if (!at)
        return CUDA_SUCCESS;
    struct sim_range *r = sim_memory_at(at);
    if (!r || r->base != at || (r->kind != SIM_MEMORY_DEVICE && r->kind != SIM_MEMORY_MANAGED))
        return sim_misuse(CUDA_ERROR_INVALID_VALUE, "%#llx is not an allocation (freed twice?)",
                          at);
    if (r->freeing)
        return sim_misuse(CUDA_ERROR_INVALID_VALUE, "%#llx was freed by cuMemFreeAsync", at);
    CUresult ret = sim_context_drain_shut(r->ctx);
    r = sim_memory_at(at); /* the lock was open while we waited */
    if (r && r->base == at)
        sim_memory_release(r);
    return ret;
}

static CUresult host_alloc(void **out, size_t bytes, unsigned flags)
{
    CUdeviceptr at = 0;
    if (!out || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult ret = allocate(&at, SIM_MEMORY_HOST, bytes, flags);
    *out = (void *)(uintptr_t)at;
    return ret;
}

SIM_API(cuMemHostAlloc, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE,
        (void **out, size_t bytes, unsigned flags), (out, bytes, flags))
{
    return host_alloc(out, bytes, flags);
}

SIM_API(cuMemAllocHost_v2, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE, (void **out, size_t bytes),
        (out, bytes))
{
    return host_alloc(out, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
}

SIM_API(cuMemFreeHost, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE, (void *at), (at))
{
    struct sim_range *r = sim_memory_at((uintptr_t)at);
    if (!at)
        return CUDA_SUCCESS;
    if (!r || r->base != (uintptr_t)at || r->kind != SIM_MEMORY_HOST)
        return sim_misuse(CUDA_ERROR_INVALID_VALUE, "%p is not pinned memory (freed twice?)", at);
    CUresult ret = sim_context_drain(r->ctx);
    r = sim_memory_at((uintptr_t)at);
    if (r && r->base == (uintptr_t)at)
        sim_memory_release(r);
    return ret;
}

SIM_API(cuMemHostRegister_v2, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE,
        (void *at, size_t bytes, unsigned flags), (at, bytes, flags))
{
    if (!at || !bytes || flags & ~15u)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i]->base < (uintptr_t)at + bytes &&
            (uintptr_t)at < ranges[i]->base + ranges[i]->bytes)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    insert(sim_context_current(), SIM_MEMORY_REGISTERED, (uintptr_t)at, bytes)->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostUnregister, SIM_NS_ALLOC, SIM_CTX | SIM_UNSAFE, (void *at), (at))
{
    struct sim_range *r = sim_memory_at((uintptr_t)at);
    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    if (!r || r->base != (uintptr_t)at || r->kind != SIM_MEMORY_REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    CUresult ret = sim_context_drain(r->ctx);
    r = sim_memory_at((uintptr_t)at);
    if (r && r->base == (uintptr_t)at)
        sim_memory_release(r);
    return ret;
}

SIM_API(cuMemHostGetDevicePointer_v2, SIM_NS_SMALL, SIM_CTX,
        (CUdeviceptr * out, void *at, unsigned flags), (out, at, flags))
{
    struct sim_range *r = sim_memory_at((uintptr_t)at);
    if (!out || flags || !r || !sim_memory_is_host(r))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)at;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags, SIM_NS_SMALL, SIM_CTX, (unsigned *out, void *at), (out, at))
{
    struct sim_range *r = sim_memory_at((uintptr_t)at);
    if (!out || !r || r->kind != SIM_MEMORY_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *out = r->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetInfo_v2, SIM_NS_SMALL, SIM_CTX, (size_t * out_free, size_t *out_total),
        (out_free, out_total))
{
    if (!out_free || !out_total)
        return CUDA_ERROR_INVALID_VALUE;
    *out_total = sim.memory;
    *out_free = sim.memory - used[sim_context_current()->device];
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange_v2, SIM_NS_SMALL, SIM_CTX,
        (CUdeviceptr * out_base, size_t *out_bytes, CUdeviceptr at), (out_base, out_bytes, at))
{
    struct sim_range *r = sim_memory_at(at);
    if (!r)
        return CUDA_ERROR_NOT_FOUND;
    if (out_base)
        *out_base = r->base;
    if (out_bytes)
        *out_bytes = r->bytes;
    return CUDA_SUCCESS;
}

static CUresult attribute(void *out, CUpointer_attribute which, const struct sim_range *r,
                          uintptr_t at)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = r->ctx->object.handle;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = sim_memory_is_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = at;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (r->kind == SIM_MEMORY_DEVICE || r->kind == SIM_MEMORY_CONSTANT)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)at;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = r->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = r->pool ? r->pool->object.handle : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = r->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = r->kind == SIM_MEMORY_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = r->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = r->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = r->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SIM_API(cuPointerGetAttribute, SIM_NS_SMALL, SIM_CTX,
        (void *out, CUpointer_attribute which, CUdeviceptr at), (out, which, at))
{
    if (!out || (int)which <= 0 || which > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *r = sim_memory_at(at);
    return r ? attribute(out, which, r, at) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuPointerGetAttributes, SIM_NS_SMALL, SIM_CTX,
        (unsigned n, CUpointer_attribute *which, void **out, CUdeviceptr at), (n, which, out, at))
{
    if (!n || !which || !out)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *r = sim_memory_at(at);
    for (unsigned i = 0; i < n; i++) {
        /* Unknown memory is no error here: every answer is zero. */
        if (!r)
            memset(out[i], 0,
                   which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                           which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
                           which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED
                       ? 4
                       : 8);
        else
            (void)attribute(out[i], which[i], r, at);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute, SIM_NS_SMALL, SIM_CTX,
        (const void *value, CUpointer_attribute which, CUdeviceptr at), (value, which, at))
{
    struct sim_range *r = sim_memory_at(at);
    if (!value || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !r)
        return CUDA_ERROR_INVALID_VALUE;
    r->sync_memops = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}
