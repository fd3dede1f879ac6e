/* capture/record.h - shows graphs to the user: capture's structs as the plain ones of
 * shim/observe/dump.h. Called by  capture/replay.c, shim/runtime.c        Calls shim/observe/dump.c
 * Threads    caller has entered the graph's log */
#ifndef AG_CAPTURE_RECORD_H
#define AG_CAPTURE_RECORD_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

void ag_record_graph(struct ag_capture *cap, struct ag_graph *g);
/* All graphs of all logs, with their counts as they are now. */
void ag_record_all(struct ag_capture *cap);

#ifdef __cplusplus
}
#endif

#endif
