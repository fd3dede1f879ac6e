/* capture/fill.h - the shim's own kernel, which writes what a memset writes (kernels/fill.cu).
 * Called by  capture/{transfer,graph,oplog}.c      Calls  the driver
 * Threads    any, without locks; the function is read where `state` has been seen to be READY
 * Promise    loading a module can wait for all work of the context (CUDA C++ Programming Guide, "Lazy Loading"), and
 *            that for the very thread that loads, or for one that wants a lock of the driver. So it is loaded only
 *            where there is none: a cuCtxSynchronize has just succeeded (who may launch meanwhile, for a kernel that
 *            waits for this thread, could have done so before, and the program would have hung by itself), or where the
 *            program waits alike, in a free; and never unloaded. Until then memsets are not held.
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
    AG_FILL_UNASKED,
    AG_FILL_WANTED,
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

/* May a memset be held? If not, the kernel is wanted from now on: the return is true once for that. */
bool ag_fill_is_ready(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx,
                      bool *out_wanted);
/* Loads the kernel if it is wanted. `ctx` is current, and the caller is about to wait for all its work. */
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
