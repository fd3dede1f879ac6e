/* shim/observe/counters.h - what happened, in numbers. Only ever counted up, but for the two that
 * say so.
 * Called by  capture/, shim/ (count), shim/observe/stats.c (read)      Calls  nothing
 * Threads    any; every access is relaxed, so two counters need not agree while the program runs
 * Start at   ag_count() */
#ifndef AG_SHIM_OBSERVE_COUNTERS_H
#define AG_SHIM_OBSERVE_COUNTERS_H

#include <stdint.h>

#include "policy/refusal.h"

/* The same object from C and from the tests' C++. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> ag_counter;
static_assert(sizeof(ag_counter) == sizeof(uint64_t), "C and C++ agree on a counter");
#define AG_COUNTER_RELAXED std::memory_order_relaxed
#else
#include <stdatomic.h>
typedef _Atomic uint64_t ag_counter;
#define AG_COUNTER_RELAXED memory_order_relaxed
#endif

/* Every plain counter: AG_COUNTER(name, "sentence"). Struct, statistics and their order derive from
 * it. */
#define AG_COUNTERS(AG_COUNTER)                                                                    \
    AG_COUNTER(launches_seen, "kernel launches the program made")                                  \
    AG_COUNTER(launches_held, "launches kept back for a graph, replayed or not")                   \
    AG_COUNTER(launches_replayed, "launches that ran inside a graph")                              \
    AG_COUNTER(copies_seen, "device-to-device copies the program made")                            \
    AG_COUNTER(copies_replayed, "copies that ran inside a graph")                                  \
    AG_COUNTER(copies_unproven, "copies between places not known to be live device memory")        \
    AG_COUNTER(memsets_seen, "asynchronous memsets the program made")                              \
    AG_COUNTER(memsets_replayed, "memsets that ran inside a graph, as a kernel of the shim's")     \
    AG_COUNTER(memsets_unproven, "memsets not held: not known to be valid, or no kernel yet")      \
    AG_COUNTER(records_seen, "records of events the program made")                                 \
    AG_COUNTER(records_held, "records kept back for a graph, replayed or not")                     \
    AG_COUNTER(records_replayed, "records that ran inside a graph")                                \
    AG_COUNTER(records_elided, "records left out of a graph, for a later one of their event")      \
    AG_COUNTER(records_unproven, "records of events not known to be plain and of the context")     \
    AG_COUNTER(records_timed, "records of events that take the time, which graphs do slowly")      \
    AG_COUNTER(records_sparse, "records made between two graphs, for they are far apart")          \
    AG_COUNTER(waits_seen, "waits of a stream for an event the program made")                      \
    AG_COUNTER(waits_held, "waits kept back among the ops of streams that take turns")             \
    AG_COUNTER(tracks_joined, "times streams that take turns became one sequence")                 \
    AG_COUNTER(tracks_split, "times they went their own ways again, as graphs did not pay")        \
    AG_COUNTER(graph_launches, "graphs given to the driver")                                       \
    AG_COUNTER(nodes_patched, "graph nodes whose arguments were updated before a launch")          \
    AG_COUNTER(bytes_patched, "argument bytes of those nodes that had changed")                    \
    AG_COUNTER(graphs_built, "graphs instantiated")                                                \
    AG_COUNTER(graphs_evicted, "graphs given up again for memory")                                 \
    AG_COUNTER(graphs_verified, "graphs compared with the calls they stand for before a launch")   \
    AG_COUNTER(graphs_read_back, "graphs read back from the driver when they were built")          \
    AG_COUNTER(graphs_mismatched, "graphs of both that were not as they should be; not used")      \
    AG_COUNTER(graphs_live, "graphs now; goes down too")                                           \
    AG_COUNTER(graph_bytes, "device and host memory of graphs now; goes down too")                 \
    AG_COUNTER(build_ns_total, "nanoseconds spent building graphs")                                \
    AG_COUNTER(build_ns_max, "longest single build in nanoseconds")                                \
    AG_COUNTER(errors_delivered, "late errors returned to the program")                            \
    AG_COUNTER(flush_errors, "held launches that the driver refused when they were submitted")     \
    AG_COUNTER(asides, "times a stream stopped using graphs because they did not pay")             \
    AG_COUNTER(pace_trials, "times it was measured whether graphs pay and for how long to hold")   \
    AG_COUNTER(pace_eager, "trials won by holding nothing")                                        \
    AG_COUNTER(pace_patient, "trials won by holding for longer than the liveness bound")           \
    AG_COUNTER(liveness_flushes, "times held work was submitted because the bound had passed")     \
    AG_COUNTER(liveness_reliefs, "times a second thread took over from one that blocked doing so") \
    AG_COUNTER(liveness_alone, "times there could be no such thread")

struct ag_counters {
#define AG_COUNTER(name, sentence) ag_counter name;
    AG_COUNTERS(AG_COUNTER)
#undef AG_COUNTER
    ag_counter eager[AG_REFUSALS]; /* launches given to the driver one by one, by reason */

    /* By entry point; written once in init, before anything is counted. May be NULL with rows == 0.
     * */
    uint32_t rows;
    const char *const *names; /* exported symbol of the row */
    ag_counter *calls;        /* calls of it */
    ag_counter *drains;       /* calls of it that found something held */
};

static inline void ag_count(ag_counter *c, uint64_t n)
{
#ifdef __cplusplus
    c->fetch_add(n, AG_COUNTER_RELAXED);
#else
    atomic_fetch_add_explicit(c, n, AG_COUNTER_RELAXED);
#endif
}

static inline void ag_count_down(ag_counter *c, uint64_t n)
{
#ifdef __cplusplus
    c->fetch_sub(n, AG_COUNTER_RELAXED);
#else
    atomic_fetch_sub_explicit(c, n, AG_COUNTER_RELAXED);
#endif
}

static inline uint64_t ag_count_read(const ag_counter *c)
{
#ifdef __cplusplus
    return c->load(AG_COUNTER_RELAXED);
#else
    return atomic_load_explicit((ag_counter *)c, AG_COUNTER_RELAXED);
#endif
}

/* Keeps the largest value seen. */
static inline void ag_count_max(ag_counter *c, uint64_t value)
{
    uint64_t seen = ag_count_read(c);
#ifdef __cplusplus
    while (seen < value && !c->compare_exchange_weak(seen, value, AG_COUNTER_RELAXED)) {
    }
#else
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               c, &seen, value, AG_COUNTER_RELAXED, AG_COUNTER_RELAXED)) {
    }
#endif
}

#endif
