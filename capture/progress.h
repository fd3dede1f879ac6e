/* capture/progress.h - has another thread of this process had the time to get on?
 * Called by  capture/oplog.c, by a thread that waits for a lock      Calls  the kernel
 * Threads    each waiting thread has a struct of its own
 * Promise    a thread that waits for a processor is told from one that the driver keeps: the former will
 *            get on without anybody's help, and giving it up would change the order of calls.
 * Start at   ag_progress_since() */
#ifndef AG_CAPTURE_PROGRESS_H
#define AG_CAPTURE_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was seen at the last look. All zero: there was none. */
struct ag_progress {
    int thread;
    uint64_t wall_ns, cpu_ns;
};

/* As the kernel numbers threads. */
int ag_progress_self(void);
/* Nanoseconds since the last look that the thread ran or slept, most_ns at most: who looks late has been kept
 * off its processor itself, or the whole process was stopped. 0 at the first look at a thread. Where the kernel
 * does not tell what the thread does, all the time counts. */
uint64_t ag_progress_since(struct ag_progress *p, int thread, uint64_t most_ns);

#ifdef __cplusplus
}
#endif

#endif
