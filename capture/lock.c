/* capture/lock.c - see lock.h. */
#define _GNU_SOURCE
#include "capture/lock.h"
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 100 /* a holder submits for about a microsecond: worth a short wait before sleeping */

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void ag_lock_wait(struct ag_lock *lock)
{
    const int saved = errno;
    for (int i = 0; i < SPINS; i++) {
        if (ag_lock_try(lock))
            return;
        pause_cpu();
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = saved;
}

void ag_lock_wake(struct ag_lock *lock)
{
    const int saved = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
