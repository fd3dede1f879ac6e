/* capture/memory.h - which device memory the program has: what makes a copy provably valid (C2).
 * Called by  shim/hooks_state.c (allocations come and go), capture/submit.c      Calls  the driver's
 *            cuCtxGetCurrent
 * Threads    any; the lock is a leaf, nothing is called under it
 * Promise    a range is live from the return of its cuMemAlloc to the call of its cuMemFree, and has
 *            a generation of its own: bytes that compare equal after a free and another allocation
 *            are not an equal copy (O-52: a memcpy node is valid for the memory it was made for).
 *            Memory of other kinds (managed, pooled, mapped, imported, host) is not known here.
 * Start at   ag_memory_generation() */
#ifndef AG_CAPTURE_MEMORY_H
#define AG_CAPTURE_MEMORY_H

#include "capture/lock.h"
#include "shim/driver.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_MEMORY_RANGES 65536 /* more are not remembered */

struct ag_memory_range {
    CUdeviceptr base;
    size_t bytes;
    CUcontext ctx;
    uint64_t generation; /* from 1, never given twice */
};

struct ag_memory {
    struct ag_lock lock;           /* everything below */
    struct ag_memory_range *range; /* [n] by rising base; they do not overlap */
    uint32_t n, room;
    uint64_t generations;
};

/* The allocation has been made in `ctx`. Forgotten silently when there is no memory for it. */
void ag_memory_add(struct ag_memory *m, CUdeviceptr base, size_t bytes, CUcontext ctx);
/* The allocation is about to be freed. Its context, NULL: it is not known. */
CUcontext ag_memory_remove(struct ag_memory *m, CUdeviceptr base);
/* The context has ended, or is about to; NULL: any may have. */
void ag_memory_forget(struct ag_memory *m, CUcontext ctx);
void ag_memory_clear(struct ag_memory *m);
/* The generation of the range that [at, at + bytes) lies in, 0: in none of `ctx`, or bytes is 0. */
uint64_t ag_memory_generation(struct ag_memory *m, CUdeviceptr at, size_t bytes, CUcontext ctx);

#ifdef __cplusplus
}
#endif

#endif
