/* capture/liveness.c - see liveness.h. */
#define _GNU_SOURCE
#include "capture/liveness.h"
#include "capture/submit.h"
#include "shim/observe/log.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_US 1000000 /* at the most, while something is held */
#define IDLE_LOOKS 40   /* looks that find nothing held before the thread goes to sleep */
#define RELIEF_US 5000  /* between two looks of a spare thread: seldom enough to cost nothing */

void ag_liveness_rouse(struct ag_liveness *l)
{
    const int saved = errno;
    atomic_store(&l->asleep, 0);
    syscall(SYS_futex, &l->asleep, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
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

static void sleep_on(struct ag_liveness *l)
{
    while (atomic_load(&l->asleep))
        syscall(SYS_futex, &l->asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

/* Dekker with ag_liveness_wake: one of the two sees the other's store. */
static void sleep_until_held(struct ag_liveness *l)
{
    atomic_store(&l->asleep, 1);
    if (anything_held(l->cap))
        atomic_store(&l->asleep, 0);
    sleep_on(l);
}

static void pause_us(uint64_t us)
{
    const struct timespec time = {0, (long)us * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

uint32_t ag_liveness_away(struct ag_liveness *l)
{
    return atomic_fetch_add(&l->shift, 1) + 1;
}

bool ag_liveness_back(struct ag_liveness *l, uint32_t shift)
{
    return atomic_compare_exchange_strong(&l->shift, &shift, shift + 1);
}

/* Until holding ends or another thread has the watch. */
static void watch(struct ag_liveness *l)
{
    uint64_t idle = 0, looks = 0;
    bool on_watch = true;
    while (on_watch && !atomic_load(&l->cap->off)) {
        if (idle >= IDLE_LOOKS || ++looks * (l->bound_us / 2) >= TICK_US) {
            l->cap->tick(l->cap);
            looks = 0;
        }
        if (idle >= IDLE_LOOKS) {
            sleep_until_held(l);
            idle = 0;
        }
        pause_us(l->bound_us / 2);
        idle = anything_held(l->cap) ? 0 : idle + 1;
        atomic_fetch_add(&l->looking, 1);
#ifndef AG_MUTANT_NO_LIVENESS
        if (!atomic_load(&l->cap->off))
            on_watch = ag_look(l->cap);
#endif
        atomic_fetch_sub(&l->looking, 1);
    }
}

/* The watch, from a thread that is stuck. False: holding has ended. */
static bool take_over(struct ag_liveness *l)
{
    uint32_t seen = 0;
    while (!atomic_load(&l->cap->off)) {
        const uint32_t shift = atomic_load(&l->shift);
        if (shift % 2 && shift == seen && ag_liveness_back(l, shift))
            return true;
        seen = shift;
        sleep_on(l);
        pause_us(RELIEF_US);
    }
    return false;
}

static void want_spare(struct ag_liveness *l);

static void serve(struct ag_liveness *l)
{
    while (take_over(l)) {
        atomic_fetch_sub(&l->spares, 1);
        ag_count(&l->cap->counters->liveness_reliefs, 1);
        want_spare(l);
        watch(l);
        atomic_fetch_add(&l->spares, 1);
    }
}

static void introduce(void)
{
    prctl(PR_SET_NAME, "autograph");
    prctl(PR_SET_TIMERSLACK, 1000UL);
}

static void *first(void *argument)
{
    struct ag_liveness *l = argument;
    introduce();
    watch(l);
    atomic_fetch_add(&l->spares, 1);
    serve(l);
    return NULL;
}

static void *spare(void *argument)
{
    introduce();
    serve(argument);
    return NULL;
}

/* One that could not be made is not tried again until there is another context. */
static void want_spare(struct ag_liveness *l)
{
    uint32_t threads = atomic_load_explicit(&l->threads, memory_order_relaxed);
    if (atomic_load_explicit(&l->spares, memory_order_relaxed) ||
        threads >= atomic_load_explicit(&l->cap->contexts, memory_order_relaxed) ||
        !atomic_compare_exchange_strong(&l->threads, &threads, threads + 1))
        return;
    atomic_fetch_add(&l->spares, 1);
    if (l->cap->start_thread(spare, l))
        return;
    atomic_fetch_sub(&l->spares, 1);
    ag_count(&l->cap->counters->liveness_alone, 1);
    ag_log(AG_LEVEL_WARN, "no spare liveness thread: a context may wait for another's queue");
}

bool ag_liveness_ready(struct ag_liveness *l)
{
    uint32_t none = 0;
    const uint32_t state = atomic_load_explicit(&l->state, memory_order_acquire);
    if (state == 2)
        want_spare(l);
    if (state)
        return state == 2;
    if (!atomic_compare_exchange_strong(&l->state, &none, 1))
        return none == 2;
    atomic_store(&l->threads, 1);
    const bool made = l->cap->start_thread(first, l);
    atomic_store(&l->state, made ? 2 : 3);
    return made;
}
