/* capture/replay.h - from the log to the driver: as one graph, or op by op.
 * Called by  capture/submit.c, capture/drain.c       Calls  capture/graph.c, policy/, the driver
 * Threads    caller has entered the log
 * Promise    every op of the segment has been submitted once, in order, when ag_oplog_cut()
 * returns; a refusal of the driver is kept as the log's pending error, or returned when it concerns
 * the last op.
 * Start at   ag_oplog_cut() */
#ifndef AG_CAPTURE_REPLAY_H
#define AG_CAPTURE_REPLAY_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the segment the way the verdict says. `why` counts the ops that have to go one by one.
 * Returns the status of the segment's last op if it was submitted here (it may be the call in
 * progress), else CUDA_SUCCESS. */
CUresult ag_oplog_cut(struct ag_oplog *log, struct ag_verdict verdict, enum ag_refusal why);
/* The same where no call waits for the last op's status: an error of it is the program's to see later. */
void ag_oplog_finish(struct ag_oplog *log, struct ag_verdict verdict, enum ag_refusal why);
/* Submits what is held, op by op; the segment stays open. Same return. */
CUresult ag_oplog_flush(struct ag_oplog *log, enum ag_refusal why);
/* Tells policy the time, if it wants to know it. Caller has entered the log; `t` is a track of it. */
void ag_oplog_time(struct ag_oplog *log, struct ag_track *t);
/* The memory for graphs is the process's. Is this log's share wanted elsewhere, and not used here? */
bool ag_oplog_is_wanted(struct ag_oplog *log);
/* Then half of it goes, what was used least recently first, unless a segment is open. */
void ag_oplog_give_room(struct ag_oplog *log);
/* Keeps an error for the program. */
void ag_oplog_keep_error(struct ag_oplog *log, CUresult ret);

#ifdef __cplusplus
}
#endif

#endif
