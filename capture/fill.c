/* capture/fill.c - see fill.h. */
#include "capture/fill.h"
#include "kernels/images.h"
#include "shim/observe/log.h"
#include <string.h>

static bool change(struct ag_filler *filler, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&filler->state, &from, to);
}

static bool is_still(const struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx)
{
    unsigned long long id = 0;
    return ag_real(drv, cuCtxGetId)(ctx, &id) == CUDA_SUCCESS && id == filler->ctx_id;
}

/* The state, no longer in doubt. */
static uint32_t state_of(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx)
{
    const uint32_t state = atomic_load_explicit(&filler->state, memory_order_acquire);
    if (__builtin_expect(state != AG_FILL_DOUBTED, 1))
        return state;
    const uint32_t now = !is_still(filler, drv, ctx) ? AG_FILL_WANTED
                         : filler->function          ? AG_FILL_READY
                                                     : AG_FILL_REFUSED;
    change(filler, AG_FILL_DOUBTED, now);
    return atomic_load_explicit(&filler->state, memory_order_acquire);
}

bool ag_fill_is_ready(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx)
{
    return state_of(filler, drv, ctx) == AG_FILL_READY;
}

void ag_fill_load(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    if (state_of(filler, drv, ctx) != AG_FILL_WANTED ||
        !change(filler, AG_FILL_WANTED, AG_FILL_LOADING))
        return;
    /* Another thread's global-mode capture must not see our calls as its own mistake. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    CUresult ret = ag_real(drv, cuCtxGetId)(ctx, &filler->ctx_id);
    if (ret == CUDA_SUCCESS)
        ret = ag_real(drv, cuModuleLoadData)(&module, ag_image_fill);
    if (ret == CUDA_SUCCESS)
        ret = ag_real(drv, cuModuleGetFunction)(&function, module, "ag_fill");
    if (ret == CUDA_SUCCESS) /* or its first launch would, in a graph */
        ret = ag_real(drv, cuFuncLoad)(function);
    ag_real(drv, cuThreadExchangeStreamCaptureMode)(&mode);
    filler->function = ret == CUDA_SUCCESS ? function : NULL;
    if (ret != CUDA_SUCCESS)
        ag_log(AG_LEVEL_WARN, "no memset is held: their kernel was refused, code %d", (int)ret);
    atomic_store_explicit(&filler->state, ret == CUDA_SUCCESS ? AG_FILL_READY : AG_FILL_REFUSED,
                          memory_order_release);
}

void ag_fill_doubt(struct ag_filler *filler)
{
    if (!change(filler, AG_FILL_READY, AG_FILL_DOUBTED))
        change(filler, AG_FILL_REFUSED, AG_FILL_DOUBTED);
}

uint32_t ag_fill_grid(const void *args)
{
    enum { PIECE = 16, MOST = 1024 }; /* bytes a thread writes at a time; several waves of blocks */
    struct ag_fill f;
    memcpy(&f, args, sizeof f);
    const uint64_t pieces = (f.columns * f.element + 2 * PIECE - 2) / PIECE * f.height;
    const uint64_t blocks = (pieces + AG_FILL_BLOCK - 1) / AG_FILL_BLOCK;
    return blocks < MOST ? (uint32_t)blocks : MOST;
}
