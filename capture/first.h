/* capture/first.h - has the program enqueued anything yet?
 * Called by  shim/, capture/{submit,drain,transfer}.c       Calls  nothing
 * Threads    any, without other locks; the lock here comes before all of them
 * Promise    between ag_first_take() and ag_first_give() there is no work that a call of ours could wait for, as far as
 *            the shim has seen, and nobody starts any. Of the process, not of one context: a load may hold up all
 * Start at   ag_first_note() */
#ifndef AG_CAPTURE_FIRST_H
#define AG_CAPTURE_FIRST_H

#include "capture/lock.h"
#include "shim/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ag_first {
    struct ag_lock
        lock; /* rank 0: `enqueued`, `watched`; driver calls run under it, while nothing is enqueued */
    AG_ATOMIC(bool) enqueued; /* never taken back */
    bool watched;
};

/* From now until something is enqueued every thunk of class DRAIN_ALL comes by ag_drain_thunk(): counted in
 * ag_open_logs. */
void ag_first_watch(struct ag_first *first);
/* Something is about to be enqueued. */
void ag_first_come(struct ag_first *first);
/* False: something was. Else nothing is until ag_first_give(). The thread is marked busy meanwhile. */
bool ag_first_take(struct ag_first *first);
void ag_first_give(struct ag_first *first);

/* What a call of class DRAIN_ALL can be. Of what is not known better: that it enqueues. */
enum ag_first_kind {
    AG_FIRST_ENQUEUES,
    AG_FIRST_MAKES, /* gets something ready: nothing runs */
    AG_FIRST_LOADS  /* the same, and about code */
};
enum ag_first_kind ag_first_kind_of(enum ag_row row);

#ifndef __cplusplus
/* Before every call that enqueues something. */
static inline void ag_first_note(struct ag_first *first)
{
    if (__builtin_expect(!atomic_load_explicit(&first->enqueued, memory_order_relaxed), 0))
        ag_first_come(first);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
