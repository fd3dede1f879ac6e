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
struct sim_work *sim_copy_of_3d(struct sim_context *ctx, const CUDA_MEMCPY3D *c, CUresult *out_ret);
struct sim_work *sim_set_make(struct sim_context *ctx, const struct sim_set_work *want,
                              CUresult *out_ret);

#endif
