/* capture/liveness.c - see liveness.h. */
#define _GNU_SOURCE
#include "capture/liveness.h"
#include "capture/submit.h"
#include <errno.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_LOOKS 20000 /* about a second at the default bound */
#define IDLE_LOOKS 40    /* looks that find nothing held before the thread goes to sleep */

void ag_liveness_rouse(struct ag_liveness *l)
{
    const int saved = errno;
    atomic_store(&l->asleep, 0);
    syscall(SYS_futex, &l->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

static bool anything_held(struct ag_capture *cap)
{
    const uint32_t n = atomic_load(&cap->contexts);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&atomic_load(&cap->logs[i])->holding))
            return true;
    return false;
}

/* Dekker with ag_liveness_wake: one of the two sees the other's store. */
static void sleep_until_held(struct ag_liveness *l)
{
    atomic_store(&l->asleep, 1);
    if (anything_held(l->cap))
        atomic_store(&l->asleep, 0);
    while (atomic_load(&l->asleep))
        syscall(SYS_futex, &l->asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void *body(void *argument)
{
    struct ag_liveness *l = argument;
    const struct timespec half = {0, (long)(l->bound_us * 1000 / 2)};
    unsigned idle = 0, looks = 0;
    prctl(PR_SET_NAME, "autograph");
    prctl(PR_SET_TIMERSLACK, 1000UL);
    while (!atomic_load(&l->cap->off)) {
        if (idle >= IDLE_LOOKS || ++looks >= TICK_LOOKS) {
            l->cap->tick(l->cap);
            looks = 0;
        }
        if (idle >= IDLE_LOOKS) {
            sleep_until_held(l);
            idle = 0;
        }
        clock_nanosleep(CLOCK_MONOTONIC, 0, &half, NULL);
        idle = anything_held(l->cap) ? 0 : idle + 1;
        atomic_store(&l->looking, true);
#ifndef AG_MUTANT_NO_LIVENESS
        if (!atomic_load(&l->cap->off))
            ag_look(l->cap);
#endif
        atomic_store(&l->looking, false);
    }
    return NULL;
}

bool ag_liveness_ready(struct ag_liveness *l)
{
    uint32_t none = 0;
    const uint32_t state = atomic_load_explicit(&l->state, memory_order_acquire);
    if (state)
        return state == 2;
    if (!atomic_compare_exchange_strong(&l->state, &none, 1))
        return none == 2;
    const bool made = l->cap->start_thread(body, l);
    atomic_store(&l->state, made ? 2 : 3);
    return made;
}
