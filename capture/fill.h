/* capture/fill.h - the shim's own kernel, which writes what a memset writes (kernels/fill.cu).
 * Called by  capture/{transfer,graph,oplog}.c      Calls  the driver
 * Threads    any, without locks; the function is read where `state` has been seen to be READY
 * Promise    loading a module waits for all work of the context, and while it waits no thread can launch (H200,
 *            580.159: blocks.cuModuleLoadData = 1, fill.launch_beside_a_load_that_waits = 0). So it is loaded only
 *            where the program's own call does the same, or where there is nothing to wait for (transfer.h says
 *            where); and never unloaded. Until then memsets are not held.
 *            The kernel is that of the context as it lives now: a handle may come back for another one.
 * Start at   ag_fill_is_ready()
 *
 * Why a kernel: 32 memset nodes among 64 make a graph's launch take 48 us instead of 1.9 (one H200,
 * driver 580.159). A driver that does not take the image (12.x would have to translate that of CUDA 13)
 * is asked once in a context. */
#ifndef AG_CAPTURE_FILL_H
#define AG_CAPTURE_FILL_H

#include "capture/atomic.h"
#include "capture/func.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ag_fill_state {
    AG_FILL_WANTED, /* from the context's birth */
    AG_FILL_LOADING,
    AG_FILL_READY,
    AG_FILL_DOUBTED, /* was READY or REFUSED; the context may be another one by now */
    AG_FILL_REFUSED
};

struct ag_filler {
    AG_ATOMIC(uint32_t) state;
    unsigned long long ctx_id; /* cuCtxGetId of the context that it was loaded in, or tried to be */
    CUfunction function;       /* NULL: refused */
};

/* May a memset be held? */
bool ag_fill_is_ready(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx);
/* Loads the kernel if it is wanted. `ctx` is current; the caller knows that this is a time to wait for its work. */
void ag_fill_load(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx);
/* Contexts may have ended. */
void ag_fill_doubt(struct ag_filler *filler);

/* Blocks of AG_FILL_BLOCK threads that the kernel is launched with. `args`: a struct ag_fill, not aligned. */
#define AG_FILL_BLOCK 256
uint32_t ag_fill_grid(const void *args);

#ifdef __cplusplus
}
#endif

#endif
