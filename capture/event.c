/* capture/event.c - see event.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/event.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/transfer.h"
#include <stdlib.h>

/* The caller holds the lock. */
static void forget(struct ag_events *events, CUevent handle)
{
    struct ag_event *e;
    HASH_FIND_PTR(events->table, &handle, e);
    if (!e)
        return;
    HASH_DEL(events->table, e);
    free(e);
    atomic_fetch_sub_explicit(&events->n, 1, memory_order_relaxed);
}

/* The caller holds the lock. */
static void remember(struct ag_events *events, const struct ag_event *made)
{
    const unsigned before = HASH_COUNT(events->table);
    struct ag_event *e = before < AG_EVENTS_MAX ? malloc(sizeof *e) : NULL;
    if (!e)
        return;
    *e = *made;
    HASH_ADD_PTR(events->table, handle, e);
    if (HASH_COUNT(events->table) == before)
        free(e);
    else
        atomic_fetch_add_explicit(&events->n, 1, memory_order_relaxed);
}

void ag_event_came(struct ag_capture *cap, CUevent event, unsigned flags)
{
    struct ag_events *events = &cap->events;
    const struct ag_event made = {.handle = event, .timed = !(flags & CU_EVENT_DISABLE_TIMING)};
    ag_lock_take(&events->lock);
    forget(events, event); /* of a context that ended */
    remember(events, &made);
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
    ag_lock_take(&events->lock);
    HASH_FIND_PTR(events->table, &event, e);
    const bool timed = e && e->timed;
    ag_lock_give(&events->lock);
    return timed;
}

/* The event has been recorded in the stream, of the current context; CU_STREAM_PER_THREAD for a per-thread default
 * stream. */
static void note_timed(struct ag_capture *cap, CUevent event, CUstream stream)
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

CUresult ag_submit_record(struct ag_capture *cap, enum ag_row row, CUevent event, CUstream stream,
                          unsigned flags)
{
    const struct ag_event_record r = {.event = (uintptr_t)event, .flags = flags};
    const struct ag_launch l = {.row = row,
                                .handle = AG_OP_HANDLE(AG_OP_RECORD),
                                .stream = stream,
                                .kind = AG_OP_RECORD,
                                .words = &r};
    const bool per_thread = !stream && ag_transfer_is_per_thread(row);
    const CUresult ret = ag_pass(cap, &l, AG_REFUSAL_NONE);
    if (ret != CUDA_SUCCESS)
        return ret;
    ag_idle_mark(cap, row, event, stream);
    note_timed(cap, event, per_thread ? CU_STREAM_PER_THREAD : stream);
    return ret;
}

void ag_event_read(struct ag_capture *cap, enum ag_row row)
{
    ag_drain(cap, AG_DRAIN_ASYNC, AG_ABOUT_NO_STREAM, row);
    atomic_store_explicit(&cap->events.read, AG_TIMED_RECORDS, memory_order_relaxed);
}

void ag_events_clear(struct ag_events *events)
{
    struct ag_event *e, *next;
    HASH_ITER (hh, events->table, e, next) {
        HASH_DEL(events->table, e);
        free(e);
    }
    atomic_store(&events->n, 0);
}
