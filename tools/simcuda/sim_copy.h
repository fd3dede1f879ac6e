/* tools/simcuda/sim_copy.h - copies and memsets checked at once, for streams and graph nodes alike.
 * Called by  sim_graph.c, sim_exec.c    Calls  sim_copy.c
 * Threads    caller holds sim_lock
 * Promise    an operand outside of one live allocation is refused
 * Start at   sim_copy_make()                                                                */
#ifndef SIMCUDA_SIM_COPY_H
#define SIMCUDA_SIM_COPY_H

#include "tools/simcuda/sim_op.h"

/* Work for a copy whose operands `want` names as the caller means them, or NULL with *out_ret. */
struct sim_work *sim_copy_make(struct sim_context *ctx, const struct sim_copy_work *want,
                               CUresult *out_ret);
/* How a call reads its source: within the call and done at return, when the operation runs, or
 * within the call although it runs later. */
enum sim_copy_way { SIM_COPY_SYNC, SIM_COPY_ASYNC, SIM_COPY_READS_NOW };
CUresult sim_copy_submit(const struct sim_copy_work *want, CUstream stream, enum sim_copy_way way);
CUresult sim_copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, enum sim_copy_way way);
/* An exec's node may be changed so: the operands keep their context and kind of memory. Changed `alone`, not with its
 * graph, it also keeps the memory types that were declared, and a shape of several rows. */
bool sim_copy_may_become(const struct sim_copy_work *was, const struct sim_copy_work *is,
                         bool alone);
bool sim_set_may_become(const struct sim_set_work *was, const struct sim_set_work *is);
/* The operands are what they were when the work was made: not freed, not somebody else's. */
bool sim_copy_is_still(const struct sim_copy_work *c);
bool sim_set_is_still(const struct sim_set_work *s);
struct sim_work *sim_copy_of_3d(struct sim_context *ctx, const CUDA_MEMCPY3D *c, CUresult *out_ret);
struct sim_work *sim_set_make(struct sim_context *ctx, const struct sim_set_work *want,
                              CUresult *out_ret);

#endif
