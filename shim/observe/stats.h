/* shim/observe/stats.h - the statistics file: what was replayed, what was not, and why not.
 * Called by  shim/runtime.c at exit, the liveness thread now and then
 * Calls      shim/observe/{file,json,log}.h, policy/refusal.h
 * Threads    any; a writer that finds another at work leaves it to that one (the last waits)
 * Promise    the file is complete at every moment, so also after _exit and kill: a newer one takes
 *            its name. After the one with `last` set nothing is written. A forked child writes
 *            nothing. A failure is one line in the log, once. No allocation, errno untouched.
 * Start at   ag_stats_write()
 *
 * Schema "autograph-stats/1", one object; readers ignore members that they do not know:
 *   schema, version, program, pid, host   program: the command line, spaces between its words
 *   start, written                        seconds since 1970
 *   seconds                               between these two
 *   complete                              true: written at exit; false: on the way
 *   driver_version                        13000 for 13.0; 0: no driver was reached
 *   mode, off_reason                      off_reason: why holding is off though not asked, or null
 *   log_trouble                           why there is no log though asked for, or null
 *   options                               {name: value in force, as text}
 *   options_given                         [name] of those that the environment sets
 *   option_problems                       [text]; the first few
 *   counters                              {name: number}, the names of counters.h
 *   shares                                {held, replayed: of the launches seen, 0..1;
 *                                          patched: nodes patched per launch replayed;
 *                                          launches_per_graph: replayed per graph launch}
 *   eager                                 [{reason, sentence, count}], most frequent first
 *   calls, drains                         {entry point: number}, without the zeros
 *   */
#ifndef AG_SHIM_OBSERVE_STATS_H
#define AG_SHIM_OBSERVE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/observe/counters.h"
#include "shim/observe/file.h"
#include "shim/observe/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ag_stats_input {
    const struct ag_options *options;
    const struct ag_identity *identity;
    const struct ag_counters *counters;
    const char *version;    /* of autograph */
    int driver_version;     /* as cuDriverGetVersion gives it; 0 if there is none */
    const char *mode;       /* in force now: "on", "off", "observe" */
    const char *off_reason; /* NULL if holding is not off, or was asked to be */
    bool last;              /* at exit: wait for another writer (at most 200 ms), then no more */
};

/* 0 if written, if there was nothing to do (not asked for, a forked child, after the last) or if
 * another thread is writing; else an errno value. */
int ag_stats_write(const struct ag_stats_input *in);

#ifdef __cplusplus
}
#endif
#endif
