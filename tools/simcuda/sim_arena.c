/* tools/simcuda/sim_arena.c - address space for device and pinned memory.
 * Called by  sim_memory.c               Calls  mmap
 * Threads    caller holds sim_lock
 * Promise    the block freed last, of the size asked for, is the next one given out; one device
 *            has at most SIMCUDA_MEMORY; addresses are the same from run to run
 * Start at   sim_arena_take()                                                               */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_object.h"

enum { GRAIN = 512, PAGE = 4096, POISON_MOST = 1 << 20, FREED = 0xD5, FRESH = 0xA5 };

struct block {
    uintptr_t at;
    size_t bytes;
    bool used;
    uint64_t freed; /* when: counts frees */
    struct block *next;
};

static struct {
    uintptr_t base;
    size_t bytes;
    struct block *first;
} arenas[SIM_ARENAS];
static uint64_t frees;

static bool open_arena(int n)
{
    size_t bytes = n == SIM_ARENA_HOST ? 16ull << 30 : (sim.memory + 0x1fffff) & ~(size_t)0x1fffff;
    void *hint = (void *)(0x7e9000000000ull + (uint64_t)n * (32ull << 30));
    void *p = mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return false;
    arenas[n].base = (uintptr_t)p;
    arenas[n].bytes = bytes;
    arenas[n].first = sim_new(sizeof(struct block));
    *arenas[n].first = (struct block){.at = (uintptr_t)p, .bytes = bytes};
    return true;
}

/* The right size and freed last; else the first that is large enough. */
static struct block *choose(int n, size_t bytes)
{
    struct block *best = NULL, *fit = NULL;
    for (struct block *b = arenas[n].first; b; b = b->next) {
        if (b->used || b->bytes < bytes)
            continue;
        if (b->bytes == bytes && b->freed && (!best || b->freed > best->freed))
            best = b;
        if (!fit && (!sim.guard_freed || !b->freed))
            fit = b;
    }
    return best && !sim.guard_freed ? best : fit;
}

static void join_free(int n)
{
    for (struct block *b = arenas[n].first; b; b = b->next)
        while (!b->used && b->next && !b->next->used) {
            struct block *gone = b->next;
            b->bytes += gone->bytes;
            b->next = gone->next;
            free(gone);
        }
    for (struct block *b = arenas[n].first; b; b = b->next)
        if (!b->used) {
            if (sim.guard_freed)
                mprotect((void *)b->at, b->bytes, PROT_READ | PROT_WRITE);
            b->freed = 0;
        }
}

uintptr_t sim_arena_take(int n, size_t bytes)
{
    const size_t grain = sim.guard_freed ? PAGE : GRAIN;
    bytes = (bytes + grain - 1) & ~(grain - 1);
    if (!arenas[n].base && !open_arena(n))
        return 0;
    struct block *b = choose(n, bytes);
    if (!b) {
        join_free(n);
        b = choose(n, bytes);
    }
    if (!b)
        return 0;
    if (b->bytes > bytes) {
        struct block *rest = sim_new(sizeof *rest);
        *rest = (struct block){b->at + bytes, b->bytes - bytes, false, b->freed, b->next};
        b->next = rest;
        b->bytes = bytes;
    }
    b->used = true;
    if (!b->freed)
        memset((void *)b->at, FRESH, bytes < POISON_MOST ? bytes : POISON_MOST);
    return b->at;
}

void sim_arena_give(int n, uintptr_t at)
{
    for (struct block *b = arenas[n].first; b; b = b->next) {
        if (b->at != at)
            continue;
        b->used = false;
        b->freed = ++frees;
        if (sim.guard_freed)
            mprotect((void *)at, b->bytes, PROT_NONE);
        else
            memset((void *)at, FREED, b->bytes < POISON_MOST ? b->bytes : POISON_MOST);
        return;
    }
}

bool sim_arena_holds(uintptr_t address)
{
    for (int n = 0; n < SIM_ARENAS; n++)
        if (arenas[n].base && address >= arenas[n].base &&
            address - arenas[n].base < arenas[n].bytes)
            return true;
    return false;
}
