/* capture/lock.h - a small mutual exclusion lock on a futex.
 * Called by  capture/            Calls  the kernel, only when contended
 * Threads    any
 * Promise    two atomic operations uncontended. Of our own because pthread_mutex_lock may live in a
 * library that an old glibc has not loaded, and because a forked child must be able to ignore it.
 */
#ifndef AG_CAPTURE_LOCK_H
#define AG_CAPTURE_LOCK_H

#include "capture/atomic.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_lock {
    AG_ATOMIC(uint32_t) state; /* 0 free, 1 taken, 2 taken and somebody sleeps */
};

void ag_lock_wait(struct ag_lock *lock);
/* Waits for so long at most; false: not taken. */
bool ag_lock_wait_for(struct ag_lock *lock, uint32_t us);
void ag_lock_wake(struct ag_lock *lock);

#ifndef __cplusplus
static inline bool ag_lock_try(struct ag_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void ag_lock_take(struct ag_lock *lock)
{
    if (!ag_lock_try(lock))
        ag_lock_wait(lock);
}

static inline void ag_lock_give(struct ag_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        ag_lock_wake(lock);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
