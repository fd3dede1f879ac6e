/* capture/transfer.h - ops that are no launch: copies and memsets of device memory, records of events, waits for them.
 * Called by  shim/hooks_enqueue.c (they arrive; events: capture/event.c), capture/{submit,replay}.c (they
 *            are made)
 * Calls      capture/{memory,submit}.c, the driver
 * Threads    any, without locks; ag_send_transfer and ag_make_transfer as their callers need it
 * Promise    one is held only where every byte it touches is known to lie in live memory of the current
 *            context (C2), else the driver judges it, at once
 * Start at   ag_submit_copy() */
#ifndef AG_CAPTURE_TRANSFER_H
#define AG_CAPTURE_TRANSFER_H

#include "capture/submit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A copy of device memory, by cuMemcpyDtoDAsync or cuMemcpyAsync. Units: bytes. Holds it or makes it. Returns
 * what the program is to see. */
CUresult ag_submit_copy(struct ag_capture *cap, enum ag_row row, CUdeviceptr to, CUdeviceptr from,
                        size_t bytes, CUstream stream);

/* A memset. `f` is what the call asks for, unchecked. Same return. */
CUresult ag_submit_fill(struct ag_capture *cap, enum ag_row row, const struct ag_fill *f,
                        CUstream stream);

/* The times to load what memsets need, where the current context does not have it yet. What was held has been drained.
 * Beside a call of the program's that waits for all work of the context, and lets no thread launch meanwhile: after a
 * module load that succeeded (one that fails does not wait), before the free of an allocation. Whoever launches
 * during ours could have done so during the program's. */
void ag_prepare_fills(struct ag_capture *cap);
/* Anywhere: loads only if the program has not enqueued anything yet. */
void ag_prepare_fills_at_rest(struct ag_capture *cap);

/* Every asynchronous memset, with the type of an element. */
#define AG_FILLS(LINE, RECTANGLE)                                                                  \
    AG_FILLS_OF(LINE, cuMemsetD8Async, unsigned char)                                              \
    AG_FILLS_OF(LINE, cuMemsetD16Async, unsigned short)                                            \
    AG_FILLS_OF(LINE, cuMemsetD32Async, unsigned)                                                  \
    AG_FILLS_OF(RECTANGLE, cuMemsetD2D8Async, unsigned char)                                       \
    AG_FILLS_OF(RECTANGLE, cuMemsetD2D16Async, unsigned short)                                     \
    AG_FILLS_OF(RECTANGLE, cuMemsetD2D32Async, unsigned)
#define AG_FILLS_OF(X, symbol, type) X(symbol, type) X(symbol##_ptsz, type)

/* As the program made it, through the entry point it used. */
CUresult ag_send_transfer(const struct ag_driver *drv, const struct ag_launch *l);
/* A held one. `words` are the op's arguments, not aligned. */
CUresult ag_make_transfer(const struct ag_driver *drv, enum ag_op_kind kind, const void *words,
                          CUstream stream);
/* Does the entry point mean the per-thread default stream by NULL? */
bool ag_transfer_is_per_thread(enum ag_row row);

/* What is counted where. */
static inline ag_counter *ag_seen_counter(struct ag_counters *c, enum ag_op_kind kind)
{
    ag_counter *const of[AG_OP_KINDS] = {&c->launches_seen, &c->copies_seen, &c->memsets_seen,
                                         &c->records_seen, &c->waits_seen};
    return of[kind];
}
/* NULL: such ops are in no graph. */
static inline ag_counter *ag_replayed_counter(struct ag_counters *c, enum ag_op_kind kind)
{
    ag_counter *const of[AG_OP_KINDS] = {&c->launches_replayed, &c->copies_replayed,
                                         &c->memsets_replayed, &c->records_replayed, NULL};
    return of[kind];
}

#ifdef __cplusplus
}
#endif

#endif
