/* capture/liveness.h - C4: held work reaches the driver within a bounded time, whatever the program
 * does. Called by  capture/submit.c, capture/drain.c       Calls  ag_look(), the kernel
 * Threads    of its own: one on watch, made at the first op that could be held; where there are several
 * contexts, spare ones, so that there is one off watch or one for each context
 * Promise    an op is held for at most AUTOGRAPH_FLUSH_US plus what the scheduler takes. While work flows
 * the program's threads make no system call for it: the thread looks every half bound by itself, and sleeps
 * on a futex only after a stretch without held work. It may block in a submission, for as long as a stream
 * has no room; then a spare thread takes the watch after 10 ms at most, and the blocked one is spare
 * afterwards. */
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
    AG_ATOMIC(uint32_t) asleep;  /* futex: 1 while the threads sleep or are about to */
    AG_ATOMIC(uint32_t) looking; /* threads that may be inside the driver */
    AG_ATOMIC(uint32_t) state;   /* 0 no thread yet, 1 being made, 2 there, 3 could not be made */
    /* Odd while the thread on watch does what may block. Who raises it from there has the watch: that
     * thread when it comes back, or a spare one that saw the same odd number twice. */
    AG_ATOMIC(uint32_t) shift;
    AG_ATOMIC(uint32_t) threads; /* made, or tried; at most one a context */
    AG_ATOMIC(uint32_t) spares;  /* of them off watch */
};

/* Makes the thread if there is none, and a spare one that is wanted. False: the former could not be made,
 * nothing may be held. */
bool ag_liveness_ready(struct ag_liveness *l);
void ag_liveness_rouse(struct ag_liveness *l);
/* Around what may block, by the thread on watch. The number is the latter's argument; false: another thread
 * has the watch now. */
uint32_t ag_liveness_away(struct ag_liveness *l);
bool ag_liveness_back(struct ag_liveness *l, uint32_t shift);

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
