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

bool ag_fill_is_ready(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx,
                      bool *out_wanted)
{
    const uint32_t state = atomic_load_explicit(&filler->state, memory_order_acquire);
    *out_wanted = false;
    if (state == AG_FILL_READY)
        return true;
    if (state == AG_FILL_UNASKED)
        *out_wanted = change(filler, AG_FILL_UNASKED, AG_FILL_WANTED);
    if (state != AG_FILL_DOUBTED)
        return false;
    if (is_still(filler, drv, ctx)) {
        const bool ready = filler->function;
        return change(filler, AG_FILL_DOUBTED, ready ? AG_FILL_READY : AG_FILL_REFUSED) && ready;
    }
    *out_wanted = change(filler, AG_FILL_DOUBTED, AG_FILL_WANTED);
    return false;
}

void ag_fill_load(struct ag_filler *filler, const struct ag_driver *drv, CUcontext ctx)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    if (!change(filler, AG_FILL_WANTED, AG_FILL_LOADING))
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
