/* tools/simcuda/sim_log.h - the log of what was executed, and of what was called.
 * Called by  sim_call.c, sim_work.c, sim_exec.c     Calls  write()
 * Threads    caller holds sim_lock: the lines stand in order
 * Promise    a line is whole and in the file before the operation it names begins
 * Start at   sim_log_exec(). Grammar: README.md                                             */
#ifndef SIMCUDA_SIM_LOG_H
#define SIMCUDA_SIM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_tls;

/* A line under construction. */
struct sim_text {
    char *bytes;
    size_t length, room;
};

bool sim_log_wanted(void);
void sim_log_forget(void); /* in a forked child */
void sim_log_call(struct sim_tls *tls, const char *symbol, int status);
void sim_log_line(struct sim_text *text); /* writes and empties it */

void sim_text_add(struct sim_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_text_hex(struct sim_text *text, const void *bytes, size_t n);
uint64_t sim_log_next(void); /* the next sequence number */

#endif
