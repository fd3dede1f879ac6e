/* tools/simcuda/sim_pool.h - pools of the stream-ordered allocator.
 * Called by  sim_pool.c, sim_memory.c   Calls  nothing
 * Threads    caller holds sim_lock
 * Promise    a destroyed pool's allocations stay valid until they are freed
 * Start at   struct sim_pool                                                                */
#ifndef SIMCUDA_SIM_POOL_H
#define SIMCUDA_SIM_POOL_H

#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_pool {
    struct sim_object object;
    int device;
    bool is_default;
    cuuint64_t threshold, used_high, most; /* most: 0, or what it may hold */
    int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_*, remembered; reuse here is within a stream only */
};

#endif
