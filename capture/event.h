/* capture/event.h - which events take the time.
 * Called by  shim/hooks_state.c (events come and go), shim/hooks_drain.c (they are recorded and read)
 * Calls      capture/submit.c (the stream)
 * Threads    any; the lock is a leaf, nothing is called under it
 * Promise    in a program that reads elapsed times, what follows a timed record at once is not held: autotuners
 *            (Triton, cuDNN, XLA) measure a few launches between two of them, and another choice of theirs changes
 *            results. Most events take the time and are never asked for it; their programs are left alone
 * Start at   ag_event_recorded() */
#ifndef AG_CAPTURE_EVENT_H
#define AG_CAPTURE_EVENT_H

#include "capture/submit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ops of a stream that are not held after a timed record: autotuners time fewer, programs that time a whole
 * iteration lose little. */
#define AG_TIMED_OPS 16
/* Timed records that count as such after a time has been read. */
#define AG_TIMED_RECORDS 1024

/* Timed events that are remembered; more are taken for ones that are not. */
#define AG_TIMED_EVENTS 65536u

/* The event has been made; is about to be destroyed. The latter drains. */
void ag_event_came(struct ag_capture *cap, CUevent event, unsigned flags);
void ag_event_goes(struct ag_capture *cap, CUevent event, enum ag_row row);
/* The event has been recorded in the stream, of the current context; CU_STREAM_PER_THREAD for a per-thread default
 * stream. */
void ag_event_recorded(struct ag_capture *cap, CUevent event, CUstream stream);
/* An elapsed time is read. Drains. */
void ag_event_read(struct ag_capture *cap, enum ag_row row);
void ag_events_clear(struct ag_events *events);

#ifdef __cplusplus
}
#endif

#endif
