/* shim/runtime.h - the one process object: first call, modes, fork, exit.
 * Called by  shim/thunk.S, shim/hooks_*.c       Calls  everything below
 * Threads    any
 * Promise    nothing happens before the first driver call: no constructor, thread, file or driver
 * call. While libcuda is not mapped an exported cu* answers CUDA_ERROR_STUB_LIBRARY, as the
 * toolkit's driverless library does.
 * Start at   ag_runtime_first() */
#ifndef AG_SHIM_RUNTIME_H
#define AG_SHIM_RUNTIME_H

#include "capture/submit.h"
#include "shim/driver.h"

/* From thunk.S: a call of `row` arrived before initialisation. Returns where it goes. */
ag_fn ag_runtime_first(unsigned row);
/* From thunk.S: drains for a DRAIN_ALL row or a numbered thunk, returns the driver's function. */
ag_fn ag_drain_thunk(unsigned row);
ag_fn ag_pool_thunk(unsigned number);

/* The process's capture object; valid in every hook body. */
struct ag_capture *ag_runtime_capture(void);
/* A function had to be handed out bare. */
void ag_runtime_leaked(void);

/* Bodies in C, by row; NULL for PURE and DRAIN_ALL. */
extern ag_fn const ag_body[AG_ROWS];

#endif
