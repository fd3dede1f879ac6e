/* capture/idle.h - time that a program spends with nothing to do for the device, while the pace of a
 * stream is measured.
 * Called by  capture/{drain,oplog,replay,submit}.c, shim/hooks_drain.c        Calls  policy/decide.h
 * Threads    any; ag_idle_tell, _watch and _forget under the log's lock
 * Promise    outside a trial one load, and no clock
 * Start at   ag_idle_seen()
 *
 * Idle time begins when a call has told the program that all it gave to the stream in the trial is
 * done, and ends when the stream's context gets the next op, when the program waits for anything
 * else in a synchronisation, or is told that anything is not ready. What it does in between, waits
 * for outside work included, takes as long at every pace. A wait for the device does not: it is
 * inside a call, or comes after an op. */
#ifndef AG_CAPTURE_IDLE_H
#define AG_CAPTURE_IDLE_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `row` has answered SUCCESS or NOT_READY. `what`: the stream or event that it was about, NULL where
 * it was about neither. */
void ag_idle_seen(struct ag_capture *cap, enum ag_row row, const void *what, CUresult ret);
/* The event was recorded in the stream: it stands for all that the stream was given. */
void ag_idle_mark(struct ag_capture *cap, enum ag_row row, CUevent event, CUstream stream);
/* The program is not idle any more. */
void ag_idle_end(struct ag_oplog *log);
/* An op has come, and a stream is in a trial: policy is told how long that was idle before. */
void ag_idle_tell(struct ag_oplog *log);
/* Whether this track is in a trial may have changed. Of one with several streams it is not known when all of them are
 * idle: there that time counts. */
void ag_idle_watch(struct ag_oplog *log, const struct ag_track *t);
/* It is gone. */
void ag_idle_forget(struct ag_oplog *log, const struct ag_stream *s);

#ifdef __cplusplus
}
#endif
#endif
