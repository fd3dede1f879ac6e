/* capture/event.h - the program's events: which may be held back, which are, which take the time.
 * Called by  shim/hooks_*.c (events come, are recorded, read, and go), capture/{drain,graph,replay,submit}.c
 * Calls      capture/submit.c
 * Threads    any; the lock is a leaf, nothing is called under it. What is marked so belongs to a log's lock
 * Promise    a record is held only where the driver would accept it: of a live event of the current context
 *            that cuEventCreate made, not shared with other processes, not part of a capture (C2). Who asks
 *            for a held one finds how many there are, and hands them to the driver first (C3).
 *            In a program that reads elapsed times, what follows a timed record at once is not held: autotuners
 *            (Triton, cuDNN, XLA) measure a few launches between two of them, and another choice of theirs changes
 *            results. Most events take the time and are never asked for it; their programs are left alone
 *            Of the records of an event in one graph the last one is made: nobody could have asked for the others,
 *            since who asks ends the segment, or is a wait in it.
 *            A wait is held only of a stream that takes turns with others (track.h), and for such an event
 * Start at   ag_submit_record() */
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

/* A record behind fewer ops than this since the one before is an op itself, a node of a graph; else it is made
 * between two graphs. Measured on one H200, 32 records: behind one kernel each a graph with record nodes takes 44.1 us,
 * graphs between the records 54.7, calls 135; behind nine kernels each 115.6 and 98.8. A line through the two points
 * meets zero at four. Nodes of events that take the time cost twice as much (DESIGN 4): those are always calls. */
#define AG_DENSE_OPS 4

/* Events that are remembered; records of others are not held, and not taken for timed ones. */
#define AG_EVENTS_MAX 65536u

/* A record of an event. Holds it or makes it. Returns what the program is to see. */
CUresult ag_submit_record(struct ag_capture *cap, enum ag_row row, CUevent event, CUstream stream,
                          unsigned flags);

/* A wait of the stream for an event. Same return. */
CUresult ag_submit_wait(struct ag_capture *cap, enum ag_row row, CUstream stream, CUevent event,
                        unsigned flags);

/* The event has been made, in the current context; is about to be destroyed. The latter drains. */
void ag_event_came(struct ag_capture *cap, CUevent event, unsigned flags);
void ag_event_goes(struct ag_capture *cap, CUevent event, enum ag_row row);
/* An elapsed time between the two is read. Drains. */
void ag_event_read(struct ag_capture *cap, CUevent from, CUevent to, enum ag_row row);
/* The call uses the event in a way that is not followed: it may be part of a capture now. */
void ag_event_lost(struct ag_capture *cap, CUevent event);
/* `ctx` may end, NULL: any may. Nothing is held there. */
void ag_events_doubt(struct ag_events *events, CUcontext ctx);

/* The last op of the log is a record and will be held. Caller has entered the log. */
void ag_event_held(struct ag_oplog *log);
/* The last op of the log is a wait and will be held: the records before it are not overtaken by those behind it. */
void ag_event_awaited(struct ag_oplog *log);
/* Says of each record in the open segment whether another one before or behind it is of the same event, and whether
 * a wait for it stands before it, as ag_event_held() does as they come. Nothing is held. */
void ag_events_compare(struct ag_oplog *log);
/* Does a wait for the event of the op, a record, stand before it in the segment? */
bool ag_event_is_behind(const struct ag_oplog *log, const struct ag_op *op);
/* A record that was held has been submitted; `words` are the op's arguments, not aligned. */
void ag_event_submitted(struct ag_oplog *log, const void *words);
/* A wait that was held has been submitted. */
void ag_event_waited(struct ag_oplog *log, const struct ag_op *op);
/* The event's entry if any record of it or wait for it is held, else NULL; the log it is held in. */
const struct ag_event *ag_event_with_held(struct ag_capture *cap, CUevent event,
                                          struct ag_oplog **out_log);
/* I7 of the log, for one held op. */
bool ag_event_counts(const struct ag_oplog *log, const struct ag_op *op);
void ag_events_clear(struct ag_events *events);

#ifdef __cplusplus
}
#endif

#endif
