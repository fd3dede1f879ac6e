/* shim/observe/log.h - messages for the user, if the user asked for them.
 * Called by  everyone, never on the replay path      Calls  shim/observe/sys.h
 * Threads    any, at any time, also while holding any lock of the shim; takes none itself
 * Promise    silent until ag_log_open() was given a place. One message is one line and one write.
 *            errno, signal mask and the program's descriptors are left alone; a full disk, a closed
 *            pipe or a size limit lose the message and nothing else; what the program opened
 *            after it closed our descriptor is not written to.
 * Start at   ag_log() */
#ifndef AG_SHIM_OBSERVE_LOG_H
#define AG_SHIM_OBSERVE_LOG_H

#include <stdbool.h>

#include "shim/observe/file.h"
#include "shim/observe/options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_LOG_LINE = 1024 }; /* longest line with its end; what is longer ends in "..." */

/* Opens the place that the options name and writes the options' problems there. False: the place
 * could not be used, nothing will be logged, and ag_log_trouble() says why. True also if no log was
 * asked for. Call once, in init. */
bool ag_log_open(const struct ag_options *o, const struct ag_identity *id);
/* After this everything is dropped again. The shim itself never needs it. */
void ag_log_close(void);
/* Why the log could not be opened, or NULL; for the statistics. */
const char *ag_log_trouble(void);

/* Would a message of this level be written? For those that would have to work to make one. */
bool ag_log_wants(enum ag_level level);

/* Lower case, values after words, no full stop, no line end: ag_log(AG_LEVEL_WARN, "graph %u
 * refused, code %d"). */
__attribute__((format(printf, 2, 3))) void ag_log(enum ag_level level, const char *fmt, ...);

#ifdef __cplusplus
}
#endif
#endif
