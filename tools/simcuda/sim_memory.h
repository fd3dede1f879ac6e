/* tools/simcuda/sim_memory.h - ranges of memory that a copy, a set or a kernel may name.
 * Called by  sim_copy.c, sim_work.c, sim_pool.c, sim_module.c     Calls  sim_memory.c, sim_arena.c
 * Threads    caller holds sim_lock
 * Promise    device memory is host memory at fixed addresses; what is freed is poisoned, and the
 *            next allocation of the same size gets the same address (or, with SIMCUDA_FREE=guard,
 *            freed memory is not mapped)
 * Start at   struct sim_range                                                               */
#ifndef SIMCUDA_SIM_MEMORY_H
#define SIMCUDA_SIM_MEMORY_H

#include "tools/simcuda/sim_call.h"

enum sim_memory_kind {
    SIM_MEMORY_DEVICE,
    SIM_MEMORY_HOST,       /* cuMemHostAlloc */
    SIM_MEMORY_REGISTERED, /* cuMemHostRegister */
    SIM_MEMORY_MANAGED,
    SIM_MEMORY_CONSTANT /* of a module; not to be freed by the program */
};

struct sim_pool;
struct sim_operand;

struct sim_range {
    uintptr_t base;
    size_t bytes;
    enum sim_memory_kind kind;
    unsigned flags;
    int device;
    uint64_t id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct sim_context *ctx;
    bool stream_ordered;   /* of cuMemAllocAsync */
    bool freeing;          /* cuMemFreeAsync was called */
    bool unborn;           /* cuMemAllocAsync was called, its place in the stream not reached */
    bool sync_memops;      /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    struct sim_pool *pool; /* of a stream-ordered one; counted by the pool */
};

/* NULL: out of memory. */
struct sim_range *sim_memory_make(struct sim_context *ctx, enum sim_memory_kind kind, size_t bytes);
void sim_memory_release(struct sim_range *range);
void sim_memory_free_all_of(struct sim_context *ctx);
struct sim_range *sim_memory_at(uintptr_t address);
/* All of [at, at + bytes) in one live range, or NULL. */
struct sim_range *sim_memory_holds(uintptr_t at, size_t bytes);
/* The address is one of ours, whether allocated or freed. */
bool sim_memory_is_ours(uintptr_t address);
/* One of ours, and freed. */
bool sim_memory_is_gone(uintptr_t address);
bool sim_memory_is_host(const struct sim_range *range);
/* What is at the address now; the whole of [at, at + bytes) is the same as it was. */
struct sim_operand sim_memory_operand(uintptr_t at);
bool sim_memory_is_still(uintptr_t at, size_t bytes, const struct sim_operand *was);
bool sim_memory_same_mapping(const struct sim_operand *a, const struct sim_operand *b);
size_t sim_memory_used(int device);
/* Bytes of the pool's allocations whose free has not been asked for. */
size_t sim_memory_stream_ordered(const struct sim_pool *pool);
/* The pool goes: its allocations stay. */
void sim_memory_forget_pool(const struct sim_pool *pool);

/* ---- sim_arena.c: addresses ---- */
enum sim_arena_name { SIM_ARENA_HOST = SIM_MAX_DEVICES, SIM_ARENAS };
/* 0: no room. */
uintptr_t sim_arena_take(int arena, size_t bytes);
void sim_arena_give(int arena, uintptr_t at);
bool sim_arena_holds(uintptr_t address);

#endif
