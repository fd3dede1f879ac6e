/* shim/observe/sink.h - bytes on their way to a descriptor, through a buffer of their own.
 * Called by  shim/observe/{file,json,dump}.c      Calls  shim/observe/sys.h
 * Threads    one per sink
 * Promise    the first failure sticks: later bytes are dropped and ag_sink_flush() returns it. No
 *            allocation.
 * Start at   ag_sink_put() */
#ifndef AG_SHIM_OBSERVE_SINK_H
#define AG_SHIM_OBSERVE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_sink {
    int fd;
    int error; /* errno value of the first failure, or 0 */
    size_t used;
    char bytes[2048];
};

void ag_sink_open(struct ag_sink *s, int fd);
void ag_sink_put(struct ag_sink *s, const void *bytes, size_t size);
void ag_sink_text(struct ag_sink *s, const char *text);
void ag_sink_u64(struct ag_sink *s, uint64_t value);
/* Writes what is in the buffer. 0 or an errno value. */
int ag_sink_flush(struct ag_sink *s);

/* Length of the well-formed UTF-8 character at `text`, 0 if there is none. Reads no further than
 * the first byte that does not fit, so a terminated string is safe. */
size_t ag_sink_utf8(const char *text);

#ifdef __cplusplus
}
#endif
#endif
