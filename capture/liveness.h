/* capture/liveness.h - C4: held work reaches the driver within a bounded time, whatever the program
 * does. Called by  capture/submit.c            Calls  ag_look(), the kernel Threads    one of its
 * own, made at the first op that could be held Promise    an op is held for at most
 * AUTOGRAPH_FLUSH_US plus what the scheduler takes. While work flows the program's threads make no
 * system call for it: the thread looks every half bound by itself, and sleeps on a futex only after
 * a stretch without held work. */
#ifndef AG_CAPTURE_LIVENESS_H
#define AG_CAPTURE_LIVENESS_H

#include "capture/atomic.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_capture;

struct ag_liveness {
    struct ag_capture *cap;
    uint64_t bound_us;
    AG_ATOMIC(uint32_t) asleep; /* futex: 1 while the thread sleeps or is about to */
    AG_ATOMIC(bool) looking;    /* the thread may be inside the driver */
    AG_ATOMIC(uint32_t) state;  /* 0 no thread yet, 1 being made, 2 there, 3 could not be made */
};

/* Makes the thread if there is none. False: it could not be made, nothing may be held. */
bool ag_liveness_ready(struct ag_liveness *l);
void ag_liveness_rouse(struct ag_liveness *l);

#ifndef __cplusplus
/* Something is held now (written sequentially consistent before). */
static inline void ag_liveness_wake(struct ag_liveness *l)
{
    if (atomic_load_explicit(&l->asleep, memory_order_seq_cst))
        ag_liveness_rouse(l);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
