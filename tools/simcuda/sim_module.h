/* tools/simcuda/sim_module.h - modules, libraries, functions and kernels.
 * Called by  sim_launch.c, sim_graph.c, sim_work.c      Calls  sim_module.c, sim_function.c
 * Threads    caller holds sim_lock unless said otherwise
 * Promise    a function lives as long as work refers to it, its handle as long as its module
 * Start at   struct sim_function                                                            */
#ifndef SIMCUDA_SIM_MODULE_H
#define SIMCUDA_SIM_MODULE_H

#include "kernels/host.h"
#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_range;

struct sim_constant_copy {
    const struct sim_constant *host;
    struct sim_range *range;
    uintptr_t at;
};

struct sim_module {
    struct sim_object object;
    struct sim_function **functions; /* counted */
    size_t nfunctions;
    struct sim_constant_copy *constants;
    size_t nconstants;
    struct sim_library *library; /* not counted; NULL: loaded as a module */
};

struct sim_function {
    struct sim_object object;
    const struct sim_kernel *host;
    char *name;
    struct sim_module *module; /* counted */
    uint32_t static_shared;
    bool loaded;
    /* what a launch reads */
    int max_dynamic, carveout, cache;
    int cluster[3], cluster_required, nonportable_cluster;
};

struct sim_kernel_object {
    struct sim_object object; /* SIM_KERNEL */
    struct sim_library *library;
    size_t index; /* of the function in each of its modules */
    /* What the kernel itself was told, by device. It goes down to the function; what the function is
     * told does not come up. */
    bool told[SIM_MAX_DEVICES];
    int max_dynamic[SIM_MAX_DEVICES];
};

struct sim_library {
    struct sim_object object;
    void *image; /* struct sim_image, owned */
    struct sim_kernel_object **kernels;
    size_t nkernels;
    struct sim_module **modules; /* one per context that needed it; counted */
    size_t nmodules;
};

enum { SIM_DEFAULT_DYNAMIC_SHARED = 48 * 1024, SIM_MOST_SHARED = 227 * 1024 };

/* The function behind a CUfunction or CUkernel in a context; NULL with *out_ret. */
struct sim_function *sim_function_of(CUfunction handle, struct sim_context *ctx, bool *out_kernel,
                                     CUresult *out_ret);
struct sim_function *sim_kernel_function(struct sim_kernel_object *kernel, struct sim_context *ctx,
                                         CUresult *out_ret);
/* Kills the handles of the module and its functions. */
void sim_module_retire(struct sim_module *module);
/* On the thread that is about to run the function; without the lock. */
void sim_module_bring_constants(struct sim_module *module);

#endif
