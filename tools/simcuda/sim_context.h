/* tools/simcuda/sim_context.h - devices, contexts, the current-context stack.
 * Called by  every sim_*.c              Calls  sim_context.c
 * Threads    caller holds sim_lock
 * Promise    a primary context keeps its handle over reset and release, as the real one does
 * Start at   struct sim_context                                                             */
#ifndef SIMCUDA_SIM_CONTEXT_H
#define SIMCUDA_SIM_CONTEXT_H

#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_stream;

enum { SIM_LIMITS = CU_LIMIT_MAX };

struct sim_context {
    struct sim_object object;
    int device;
    uint64_t id;
    unsigned flags;
    bool primary;
    int retains;     /* of a primary context */
    bool destroyed;  /* or, for a primary one: not active */
    CUresult sticky; /* 0, or the code that every later call gets */
    size_t limits[SIM_LIMITS];
    CUfunc_cache cache;
    struct sim_stream *streams; /* all that may still have work, also destroyed ones */
    struct sim_stream *legacy;
    unsigned captures;     /* going on in streams of this context */
    unsigned shut;         /* module loads and frees that wait: no launch gets in meanwhile */
    size_t pool_threshold; /* of the device's default pool: kept here for want of a better place */
};

/* Top of the calling thread's stack, or NULL. */
struct sim_context *sim_context_current(void);
struct sim_context *sim_context_find(CUcontext handle);
/* From now on every call of the context returns the code; queued work is dropped. */
void sim_context_break(struct sim_context *ctx, CUresult code);
/* Waits for everything that was submitted to the context before. */
CUresult sim_context_drain(struct sim_context *ctx);
/* The same, and no other thread's launch gets in meanwhile: it waits as long. */
CUresult sim_context_drain_shut(struct sim_context *ctx);

#endif
