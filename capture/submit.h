/* capture/submit.h - a launch arrives; everything that makes the program see its work; the
 * program's own captures. Called by  shim/hooks_*.c, shim/runtime.c       Calls
 * capture/{oplog,replay,liveness}.c, policy/ Threads    any, without locks Start at
 * ag_submit_launch() */
#ifndef AG_CAPTURE_SUBMIT_H
#define AG_CAPTURE_SUBMIT_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call of cuLaunchKernel or cuLaunchKernelEx as it came. Nothing it points to is kept. */
struct ag_launch {
    enum ag_row row; /* the entry point: the eager launch goes through the same one */
    CUfunction handle;
    struct ag_config config;
    CUstream stream;
    void **params, **extra;
    const CUlaunchConfig *full; /* of cuLaunchKernelEx, else NULL */
    enum ag_op_kind
        kind; /* not a kernel: `handle` is that of the kind, and instead of `params` there is */
    const void *words; /* the struct that the kind has for arguments; else NULL */
};

/* Holds the launch or makes it. Returns what the program is to see. */
CUresult ag_submit_launch(struct ag_capture *cap, const struct ag_launch *l);

/* The record of a stream of the current context, made at first sight. NULL: none, *out_why. */
struct ag_stream *ag_find_stream(struct ag_capture *cap, CUstream handle, enum ag_refusal *out_why);

/* Drains, then makes the launch. Returns what the program is to see. */
CUresult ag_pass(struct ag_capture *cap, const struct ag_launch *l, enum ag_refusal why);

/* Device memory has come to the current context; is about to go. The latter drains, and says whether it is
 * known to be an allocation of the current context. */
void ag_memory_came(struct ag_capture *cap, CUdeviceptr base, size_t bytes);
bool ag_memory_goes(struct ag_capture *cap, CUdeviceptr base, enum ag_row row);

/* Hands everything held in the process to the driver; never waits for the device. `about`: the only
 * stream whose work the call can see or has to follow, AG_ABOUT_ALL where that is not known, or
 * AG_ABOUT_NO_STREAM (an event whose record the driver has: what it stands for was submitted before).
 * `row`: on whose behalf. */
void ag_drain(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about, enum ag_row row);
/* The same for a call that is about the event as well: waits until the driver has every record of it, though
 * another thread be kept inside the submission of what stands before it. */
void ag_drain_event(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about, CUevent event,
                    enum ag_row row);
/* Likewise before the event is recorded or destroyed: every held wait for it, too. */
void ag_drain_changed_event(struct ag_capture *cap, enum ag_drain_kind kind, CUstream about,
                            CUevent event, enum ag_row row);
/* Looks at a status the program is about to see, and returns it: after a sticky error nothing is
 * held any more. */
CUresult ag_settle_status(struct ag_capture *cap, CUresult ret);
/* The same for a synchronisation or query: in place of success or "not ready" a pending error of
 * the current context is told, once. `what`: the stream or event that `row` was called about, NULL
 * where it takes neither. */
CUresult ag_deliver(struct ag_capture *cap, enum ag_row row, const void *what, CUresult ret);
/* The pending error of the current context, once; CUDA_SUCCESS when there is none. */
CUresult ag_take_pending(struct ag_capture *cap);
/* The same for a caller that has entered the log. */
CUresult ag_take_error(struct ag_oplog *log);
/* The program has seen that the device is idle (a query answered success). */
void ag_note_idle(struct ag_capture *cap, CUstream about);

/* Drains, then forgets. Called before the driver is told; handles are re-used afterwards. */
void ag_retire_module(struct ag_capture *cap, CUmodule module,
                      enum ag_row row); /* NULL: any module */
void ag_retire_stream(struct ag_capture *cap, CUstream handle, enum ag_row row);
/* `ctx` is about to go; NULL: any context may. */
void ag_retire_contexts(struct ag_capture *cap, CUcontext ctx, enum ag_row row);
/* State that launches read has changed in a way that is not tracked by value. */
void ag_forget_state(struct ag_capture *cap, enum ag_row row);

/* Before setting a function's attribute: drains unless the value is in force already. After:
 * remembers it. */
void ag_attribute_changes(struct ag_capture *cap, CUfunction f, int attribute, int value,
                          enum ag_row row);
void ag_attribute_set(struct ag_capture *cap, CUfunction f, int attribute, int value);
/* The same for a CUkernel, which stands for a CUfunction per context: every function of its name
 * may have changed. */
void ag_kernel_attribute_set(struct ag_capture *cap, CUkernel kernel, int attribute, int value);

/* Has cuKernelGetFunction answered for this kernel in the current context, as far as is remembered?
 * False is always safe; forgotten with everything else that refers to functions. */
bool ag_function_is_made(struct ag_capture *cap, CUkernel kernel);
void ag_function_made(struct ag_capture *cap, CUkernel kernel);

void ag_capture_begins(struct ag_capture *cap, enum ag_row row);
void ag_capture_began(struct ag_capture *cap, CUresult ret);
void ag_capture_ended(struct ag_capture *cap, CUresult ret);

/* Liveness, by the thread on watch: drains what was held at the last look already. False: it blocked, and
 * another thread has the watch. */
bool ag_look(struct ag_capture *cap);

#ifdef __cplusplus
}
#endif

#endif
