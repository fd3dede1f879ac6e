/* tools/simcuda/sim_launch.h - a launch checked at once and packed, for streams and nodes alike.
 * Called by  sim_graph.c, sim_exec.c    Calls  sim_launch.c
 * Threads    caller holds sim_lock
 * Promise    nothing of the caller's memory is read after the call
 * Start at   sim_launch_pack()                                                              */
#ifndef SIMCUDA_SIM_LAUNCH_H
#define SIMCUDA_SIM_LAUNCH_H

#include "tools/simcuda/sim_call.h"

struct sim_work;

/* Work for the launch, or NULL with *out_ret. */
struct sim_work *sim_launch_pack(const CUlaunchConfig *config, CUfunction function,
                                 struct sim_context *ctx, void **params, void **extra,
                                 CUresult *out_ret);

#endif
