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

/* The gain is one launch, whatever the size; a kernel of 1,024 blocks writes this much in one go. */
#define LARGEST_FILL ((uint64_t)4 << 20)
#define LARGEST_PITCH INT32_MAX /* CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device so far */

static bool is_line(enum ag_row row)
{
    switch ((int)row) {
#define LINE(symbol, type) case AG_ROW_##symbol:
#define RECTANGLE(symbol, type)
        AG_FILLS(LINE, RECTANGLE)
#undef RECTANGLE
#undef LINE
        return true;
    default:
        return false;
    }
}

/* The bytes from the first to the last that is written. 0: the driver may refuse it, or it is not worth it. */
static uint64_t extent(enum ag_row row, const struct ag_fill *f)
{
    const bool aligned = f->to % f->element == 0 && f->pitch % f->element == 0;
    if (!f->columns || !f->height || !aligned || !f->pitch != is_line(row) ||
        f->columns > LARGEST_FILL || f->height > LARGEST_FILL || f->pitch > LARGEST_PITCH)
        return 0;
    const uint64_t width = f->columns * f->element;
    uint64_t all;
    if (width * f->height > LARGEST_FILL || (f->pitch && f->pitch < width) ||
        __builtin_mul_overflow(f->pitch, f->height - 1, &all) ||
        __builtin_add_overflow(all, width, &all))
        return 0;
    return all;
}

/* Loads the current context's kernel, whatever that waits for; not where the shim builds nothing either. */
static void load_fill(struct ag_capture *cap)
{
    CUcontext ctx = NULL;
    if (cap->options->mode == AG_MODE_OBSERVE || atomic_load(&cap->off) ||
        atomic_load(&cap->capturing) || atomic_load(&cap->no_builds) ||
        ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx)
        return;
    struct ag_oplog *log = ag_oplog_of(cap, ctx);
    ag_thread.busy++;
    if (log)
        ag_fill_load(&log->filler, cap->drv, ctx);
    ag_thread.busy--;
}

/* Where every byte is known to be live (C2), and there is a kernel to stand for it, or no graph will need one. */
static bool may_be_held(struct ag_capture *cap, enum ag_row row, const struct ag_fill *f)
{
    const uint64_t all = extent(row, f);
    CUcontext ctx = NULL;
    if (!all || ag_real(cap->drv, cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx ||
        !ag_memory_generation(&cap->memory, f->to, all, ctx))
        return false;
    if (cap->options->mode == AG_MODE_OBSERVE)
        return true;
    struct ag_oplog *log = ag_oplog_of(cap, ctx);
#ifdef AG_MUTANT_FILL_LOADED_AT_ONCE /* which may wait for a kernel that waits for this thread */
    load_fill(cap);
#endif
    return log && ag_fill_is_ready(&log->filler, cap->drv, ctx);
}

CUresult ag_submit_fill(struct ag_capture *cap, enum ag_row row, const struct ag_fill *f,
                        CUstream stream)
{
    const struct ag_launch l = {.row = row,
                                .handle = AG_OP_HANDLE(AG_OP_FILL),
                                .stream = stream,
                                .kind = AG_OP_FILL,
                                .words = f};
    bool proven = !ag_thread.busy && may_be_held(cap, row, f);
#ifdef AG_MUTANT_FILL_UNPROVEN /* any memset is taken to be valid */
    proven = true;
#endif
    if (proven || ag_thread.busy)
        return ag_submit_launch(cap, &l);
    ag_count(&cap->counters->memsets_unproven, 1);
    return ag_pass(cap, &l, AG_REFUSAL_NONE);
}

void ag_prepare_fills(struct ag_capture *cap)
{
#ifdef AG_MUTANT_FILL_LOADED_AT_ONCE /* with the first memset instead */
    (void)cap;
#else
    if (!ag_thread.busy)
        load_fill(cap);
#endif
}

void ag_prepare_fills_at_rest(struct ag_capture *cap)
{
    if (!ag_first_take(&cap->first))
        return;
#ifndef AG_MUTANT_FILL_LOADED_AT_ONCE
    load_fill(cap);
#endif
    ag_first_give(&cap->first);
}

static CUresult send_copy(const struct ag_driver *drv, const struct ag_launch *l)
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

static CUresult send_fill(const struct ag_driver *drv, enum ag_row row, const struct ag_fill *f,
                          CUstream stream)
{
    switch ((int)row) {
#define LINE(symbol, type)                                                                         \
    case AG_ROW_##symbol:                                                                          \
        return ag_real(drv, symbol)(f->to, (type)f->value, f->columns, stream);
#define RECTANGLE(symbol, type)                                                                    \
    case AG_ROW_##symbol:                                                                          \
        return ag_real(drv, symbol)(f->to, f->pitch, (type)f->value, f->columns, f->height, stream);
        AG_FILLS(LINE, RECTANGLE)
#undef RECTANGLE
#undef LINE
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult send_record(const struct ag_driver *drv, const struct ag_launch *l)
{
    const struct ag_event_record *r = l->words;
    const CUevent event = (CUevent)(uintptr_t)r->event;
    switch ((int)l->row) {
    case AG_ROW_cuEventRecord:
        return ag_real(drv, cuEventRecord)(event, l->stream);
    case AG_ROW_cuEventRecord_ptsz:
        return ag_real(drv, cuEventRecord_ptsz)(event, l->stream);
    case AG_ROW_cuEventRecordWithFlags:
        return ag_real(drv, cuEventRecordWithFlags)(event, l->stream, r->flags);
    case AG_ROW_cuEventRecordWithFlags_ptsz:
        return ag_real(drv, cuEventRecordWithFlags_ptsz)(event, l->stream, r->flags);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult send_wait(const struct ag_driver *drv, const struct ag_launch *l)
{
    const struct ag_event_wait *w = l->words;
    const CUevent event = (CUevent)(uintptr_t)w->event;
    if (l->row == AG_ROW_cuStreamWaitEvent_ptsz)
        return ag_real(drv, cuStreamWaitEvent_ptsz)(l->stream, event, w->flags);
    return ag_real(drv, cuStreamWaitEvent)(l->stream, event, w->flags);
}

CUresult ag_send_transfer(const struct ag_driver *drv, const struct ag_launch *l)
{
    switch (l->kind) {
    case AG_OP_COPY:
        return send_copy(drv, l);
    case AG_OP_FILL:
        return send_fill(drv, l->row, l->words, l->stream);
    case AG_OP_RECORD:
        return send_record(drv, l);
    case AG_OP_WAIT:
        return send_wait(drv, l);
    case AG_OP_KERNEL:
    case AG_OP_KINDS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

static enum ag_row fill_row(const struct ag_fill *f)
{
    switch (f->element) {
    case 4:
        return f->pitch ? AG_ROW_cuMemsetD2D32Async : AG_ROW_cuMemsetD32Async;
    case 2:
        return f->pitch ? AG_ROW_cuMemsetD2D16Async : AG_ROW_cuMemsetD16Async;
    default:
        return f->pitch ? AG_ROW_cuMemsetD2D8Async : AG_ROW_cuMemsetD8Async;
    }
}

CUresult ag_make_transfer(const struct ag_driver *drv, enum ag_op_kind kind, const void *words,
                          CUstream stream)
{
    struct ag_copy c;
    struct ag_fill f;
    struct ag_event_record r;
    struct ag_event_wait w;
    switch (kind) {
    case AG_OP_COPY:
        memcpy(&c, words, sizeof c);
        return ag_real(drv, cuMemcpyDtoDAsync_v2)(c.to, c.from, c.bytes, stream);
    case AG_OP_FILL:
        memcpy(&f, words, sizeof f);
        return send_fill(drv, fill_row(&f), &f, stream);
    case AG_OP_RECORD:
        memcpy(&r, words, sizeof r);
        return ag_real(drv, cuEventRecord)((CUevent)(uintptr_t)r.event, stream);
    case AG_OP_WAIT:
        memcpy(&w, words, sizeof w);
        return ag_real(drv, cuStreamWaitEvent)(stream, (CUevent)(uintptr_t)w.event, 0);
    case AG_OP_KERNEL:
    case AG_OP_KINDS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

bool ag_transfer_is_per_thread(enum ag_row row)
{
    switch ((int)row) {
    case AG_ROW_cuMemsetD8Async_ptsz:
    case AG_ROW_cuMemsetD16Async_ptsz:
    case AG_ROW_cuMemsetD32Async_ptsz:
    case AG_ROW_cuMemsetD2D8Async_ptsz:
    case AG_ROW_cuMemsetD2D16Async_ptsz:
    case AG_ROW_cuMemsetD2D32Async_ptsz:
    case AG_ROW_cuMemcpyDtoDAsync_v2_ptsz:
    case AG_ROW_cuMemcpyAsync_ptsz:
    case AG_ROW_cuEventRecord_ptsz:
    case AG_ROW_cuEventRecordWithFlags_ptsz:
    case AG_ROW_cuStreamWaitEvent_ptsz:
        return true;
    default:
        return false;
    }
}
