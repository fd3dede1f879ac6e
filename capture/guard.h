/* capture/guard.h - "this thread is inside the shim": the one thread-local of the library.
 * Called by  shim/hooks_*.c, capture/       Calls  nothing
 * Threads    each its own
 * Promise    a driver call made while `busy` (a profiler's callback under our lock, say) is passed
 * straight on. The model is initial-exec: no call and no allocation to reach it. */
#ifndef AG_CAPTURE_GUARD_H
#define AG_CAPTURE_GUARD_H

#include "shim/driver.h"

struct ag_stream;

struct ag_thread {
    int busy;
    int number;  /* the kernel's; 0 until the thread has submitted something */
    uint64_t id; /* no other thread's, before or after; 0 until it is asked for */
    /* The last stream this thread launched into; valid while `epoch` is the capture's. */
    CUcontext ctx;
    CUstream handle;
    uint32_t epoch;
    struct ag_stream *stream;
};

/* ag_thread.id. */
uint64_t ag_thread_id(void);

extern _Thread_local struct ag_thread ag_thread __attribute__((tls_model("initial-exec")));

#endif
