/* capture/lock.c - see lock.h. */
#define _GNU_SOURCE
#include "capture/lock.h"
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 100 /* a holder submits for about a microsecond: worth a short wait before sleeping */

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool spin(struct ag_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (ag_lock_try(lock))
            return true;
        pause_cpu();
    }
    return false;
}

void ag_lock_wait(struct ag_lock *lock)
{
    const int saved = errno;
    if (spin(lock))
        return;
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = saved;
}

bool ag_lock_wait_for(struct ag_lock *lock, uint32_t us)
{
    const int saved = errno;
    struct timespec until;
    bool late = false;
    if (spin(lock))
        return true;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)us * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        if (late) {
            errno = saved;
            return false;
        }
        late = syscall(SYS_futex, &lock->state, FUTEX_WAIT_BITSET_PRIVATE, 2, &until, NULL,
                       FUTEX_BITSET_MATCH_ANY) != 0 &&
               errno == ETIMEDOUT;
    }
    errno = saved;
    return true;
}

void ag_lock_wake(struct ag_lock *lock)
{
    const int saved = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
