/* shim/fork_lock.h - a spin lock for a few microseconds of work that survives fork().
 * Called by  shim/driver.c, shim/resolve.c       Calls  the kernel, when it has to wait
 * Threads    any
 * Promise    a child never waits for a thread of its parent: a lock whose owner is another process
 * is taken over. What it protects must be safe to start again from the middle. */
#ifndef AG_SHIM_FORK_LOCK_H
#define AG_SHIM_FORK_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ag_fork_lock {
    _Atomic int owner; /* process id + 1 while taken: 0 is free */
};

/* True when it was taken over from a process that this one was forked from. */
static inline bool ag_fork_lock_take(struct ag_fork_lock *lock)
{
    const int me = (int)syscall(SYS_getpid) + 1;
    for (;;) {
        int owner = 0;
        if (atomic_compare_exchange_strong(&lock->owner, &owner, me))
            return false;
        if (owner != me && atomic_compare_exchange_strong(&lock->owner, &owner, me))
            return true;
        syscall(SYS_sched_yield);
    }
}

static inline void ag_fork_lock_give(struct ag_fork_lock *lock)
{
    atomic_store(&lock->owner, 0);
}

#endif
