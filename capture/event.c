/* capture/event.c - see event.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/event.h"
#include "capture/guard.h"
#include <stdlib.h>

struct ag_event {
    CUevent handle; /* key */
    UT_hash_handle hh;
};

/* The caller holds the lock. */
static void forget(struct ag_events *events, CUevent handle)
{
    struct ag_event *e;
    HASH_FIND_PTR(events->timed, &handle, e);
    if (!e)
        return;
    HASH_DEL(events->timed, e);
    free(e);
    atomic_fetch_sub_explicit(&events->n, 1, memory_order_relaxed);
}

/* A timed event that there is no room or memory for is taken for one that is not. */
static void remember(struct ag_events *events, CUevent handle)
{
    const unsigned before = HASH_COUNT(events->timed);
    struct ag_event *e = before < AG_TIMED_EVENTS ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return;
    e->handle = handle;
    HASH_ADD_PTR(events->timed, handle, e);
    if (HASH_COUNT(events->timed) == before)
        free(e);
    else
        atomic_fetch_add_explicit(&events->n, 1, memory_order_relaxed);
}

void ag_event_came(struct ag_capture *cap, CUevent event, unsigned flags)
{
    struct ag_events *events = &cap->events;
    ag_lock_take(&events->lock);
    forget(events, event); /* of a context that ended */
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        remember(events, event);
    ag_lock_give(&events->lock);
}

void ag_event_goes(struct ag_capture *cap, CUevent event, enum ag_row row)
{
    struct ag_events *events = &cap->events;
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, row);
    ag_lock_take(&events->lock);
    forget(events, event);
    ag_lock_give(&events->lock);
}

static bool is_timed(struct ag_events *events, CUevent event)
{
    struct ag_event *e;
    if (!atomic_load_explicit(&events->n, memory_order_relaxed))
        return false;
    ag_lock_take(&events->lock);
    HASH_FIND_PTR(events->timed, &event, e);
    ag_lock_give(&events->lock);
    return e;
}

void ag_event_recorded(struct ag_capture *cap, CUevent event, CUstream stream)
{
    struct ag_events *events = &cap->events;
    enum ag_refusal why;
    uint32_t read = atomic_load_explicit(&events->read, memory_order_relaxed);
    if (!read || ag_thread.busy || stream == CU_STREAM_PER_THREAD || !is_timed(events, event) ||
        atomic_load(&cap->off) || atomic_load(&cap->capturing))
        return;
    /* Fails where another thread was here or has read a time: that one counts. */
    atomic_compare_exchange_strong(&events->read, &read, read - 1);
    struct ag_stream *s = ag_find_stream(cap, stream, &why);
    if (s)
        atomic_store_explicit(&s->timed, AG_TIMED_OPS, memory_order_relaxed);
}

void ag_event_read(struct ag_capture *cap, enum ag_row row)
{
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, row);
    atomic_store_explicit(&cap->events.read, AG_TIMED_RECORDS, memory_order_relaxed);
}

void ag_events_clear(struct ag_events *events)
{
    struct ag_event *e, *next;
    HASH_ITER (hh, events->timed, e, next) {
        HASH_DEL(events->timed, e);
        free(e);
    }
    atomic_store(&events->n, 0);
}
