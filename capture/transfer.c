/* capture/transfer.c - see transfer.h. */
#include "capture/transfer.h"
#include "capture/guard.h"
#include <string.h>

/* An op saved is nothing to a copy of this size, and the limits of a node's pitch are not those of
 * a plain copy. */
#define LARGEST_COPY ((size_t)1 << 30)

CUresult ag_submit_copy(struct ag_capture *cap, enum ag_row row, CUdeviceptr to, CUdeviceptr from,
                        size_t bytes, CUstream stream)
{
    struct ag_copy c = {.to = to, .from = from, .bytes = bytes};
    const struct ag_launch l = {.row = row,
                                .handle = AG_OP_HANDLE(AG_OP_COPY),
                                .stream = stream,
                                .kind = AG_OP_COPY,
                                .words = &c};
    CUcontext ctx = NULL;
    if (!ag_thread.busy && bytes <= LARGEST_COPY &&
        ag_real(cap->drv, cuCtxGetCurrent)(&ctx) == CUDA_SUCCESS && ctx) {
        c.to_generation = ag_memory_generation(&cap->memory, to, bytes, ctx);
        c.from_generation = ag_memory_generation(&cap->memory, from, bytes, ctx);
#ifdef AG_MUTANT_GENERATION_IGNORED /* equal bytes pass for an equal copy */
        c.to_generation = c.to_generation != 0;
        c.from_generation = c.from_generation != 0;
#endif
    }
    if (!ag_thread.busy && !(c.to_generation && c.from_generation)) {
        ag_count(&cap->counters->copies_unproven, 1);
        return ag_pass(cap, &l, AG_REFUSAL_NONE);
    }
    return ag_submit_launch(cap, &l);
}

CUresult ag_send_transfer(const struct ag_driver *drv, const struct ag_launch *l)
{
    const struct ag_copy *c = l->words;
    switch ((int)l->row) {
    case AG_ROW_cuMemcpyDtoDAsync_v2:
        return ag_real(drv, cuMemcpyDtoDAsync_v2)(c->to, c->from, c->bytes, l->stream);
    case AG_ROW_cuMemcpyDtoDAsync_v2_ptsz:
        return ag_real(drv, cuMemcpyDtoDAsync_v2_ptsz)(c->to, c->from, c->bytes, l->stream);
    case AG_ROW_cuMemcpyAsync:
        return ag_real(drv, cuMemcpyAsync)(c->to, c->from, c->bytes, l->stream);
    case AG_ROW_cuMemcpyAsync_ptsz:
        return ag_real(drv, cuMemcpyAsync_ptsz)(c->to, c->from, c->bytes, l->stream);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult ag_make_transfer(const struct ag_driver *drv, enum ag_op_kind kind, const void *words,
                          CUstream stream)
{
    struct ag_copy c;
    if (kind != AG_OP_COPY)
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(&c, words, sizeof c);
    return ag_real(drv, cuMemcpyDtoDAsync_v2)(c.to, c.from, c.bytes, stream);
}

bool ag_transfer_is_per_thread(enum ag_row row)
{
    return row == AG_ROW_cuMemcpyDtoDAsync_v2_ptsz || row == AG_ROW_cuMemcpyAsync_ptsz;
}
