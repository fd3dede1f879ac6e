/* policy/decide.h - hold, cut, replay or build? The whole policy of one stream.
 * Called by  capture/submit.c            Calls  policy/trie.c
 * Threads    none: the caller serialises all calls on one ag_policy (it holds the context's log
 *            lock)
 * Promise    pure: no clock, no I/O, no CUDA; the same inputs give the same verdicts. Memory
 *            bounded by `limits`.
 * Start at   ag_policy_op()
 *
 * A *signature* is a number from 1; equal numbers mean ops that may share a graph node. A *segment*
 * is the run of ops since the last cut; it is named by a trie node number from 1 that is stable
 * until ag_policy_forget(). */
#ifndef AG_POLICY_DECIDE_H
#define AG_POLICY_DECIDE_H

#include "policy/pace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_policy;

struct ag_policy_limits {
    uint32_t first_segment; /* ops of the first segment after a synchronisation; then doubles */
    uint32_t min_segment;   /* free running: no cut below this many ops, 1..max_segment */
    uint32_t max_segment;   /* never more ops than this in a segment */
    uint32_t min_graph;     /* a segment shorter than this is never built */
    uint32_t min_seen;      /* sightings (this one counted) at which a segment is built */
    uint32_t max_nodes;     /* trie nodes kept; pruned when reached */
    enum ag_pace_kind pace; /* the only one, or AG_PACE_KINDS: the best one, by measurement */
};

enum ag_use {
    AG_USE_NONE,   /* not a cut, or nothing to do: what is held must be sent op by op */
    AG_USE_REPLAY, /* every op of the segment is held and `graph` does all of them */
    AG_USE_BUILD, /* send what is held op by op, build a graph of the segment, report the outcome */
};

struct ag_verdict {
    bool hold;        /* keep the op; false: send everything held before it, then it */
    bool cut;         /* the segment ends with this op */
    enum ag_use use;  /* meaningful at a cut */
    uint32_t segment; /* at a cut: the segment that ended, 0 if it is not remembered */
    uint32_t graph;   /* with AG_USE_REPLAY: the number given to ag_policy_built() */
};

enum ag_drain_kind {
    AG_DRAIN_ASYNC, /* order point; the device goes on */
    AG_DRAIN_SYNC,  /* the program waits for the device: it will be idle when the next op comes */
    AG_DRAIN_BREAK, /* an irregular end (liveness, other stream, error): no place of the program,
                     * unless it keeps coming to the same op */
};

/* NULL when out of memory. The limits are copied. */
struct ag_policy *ag_policy_create(const struct ag_policy_limits *limits);
void ag_policy_destroy(struct ag_policy *p);

/* The signature most likely to come next, 0 if there is no guess. O(1): lets the caller skip
 * interning. */
uint32_t ag_policy_expect(const struct ag_policy *p);

/* Before ag_policy_op, if at all: a number that stands for the op's arguments. It only helps to
 * choose where segments end: in a loop of equal launches whose arguments recur after 120 of them, a
 * graph of 120 needs no patch. */
void ag_policy_content(struct ag_policy *p, uint32_t content);

/* One op arrived. Within a segment verdicts are hold* send*: after one `hold == false` none is true
 * until the cut. A cut verdict with AG_USE_REPLAY has hold == true for all its ops. */
struct ag_verdict ag_policy_op(struct ag_policy *p, uint32_t sig);

/* Everything held must go now. Ends the segment (if it has ops) and says how; cut is false when it
 * had none. */
struct ag_verdict ag_policy_drain(struct ag_policy *p, enum ag_drain_kind kind);

/* The caller could not hold though allowed to, or what was held has been sent: no op of the current
 * segment may be answered with hold any more. */
void ag_policy_spoil(struct ag_policy *p);

/* Outcome of AG_USE_BUILD, now or later. graph > 0. `built` makes the segment replayable; `failed`
 * stops it being asked again. Ignored for a segment that no build was asked for. */
void ag_policy_built(struct ag_policy *p, uint32_t segment, uint32_t graph);
void ag_policy_failed(struct ag_policy *p, uint32_t segment);
/* The graph of this segment is gone (evicted, refused by the driver), or the build was not made for
 * lack of room; it may be learned again, at twice the sightings (64-fold at most: what keeps being
 * dropped is asked for ever less). */
void ag_policy_dropped(struct ag_policy *p, uint32_t segment);

/* Signatures have become meaningless: forget everything learned; the current segment goes on
 * unremembered. The caller has destroyed all graphs, and reports no outcome of a build that was
 * asked for before. */
void ag_policy_forget(struct ag_policy *p);

/* C5. True while the stream should not be looked at: the caller sends ops without calling
 * ag_policy_op and reports how many passed, in any granularity; the policy ends the pause by
 * itself. */
bool ag_policy_aside(const struct ag_policy *p);
void ag_policy_passed(struct ag_policy *p, uint32_t ops);

/* After a cut or a drain: true when the policy wants to know the time, which ag_policy_time tells it before the
 * next op. It measures which pace the stream should have. */
bool ag_policy_wants_time(const struct ag_policy *p);
enum ag_pace_news ag_policy_time(struct ag_policy *p, uint64_t now_ns);
/* Is it being measured? Only then the caller reads a clock in between, and tells how long the program
 * had seen the device idle when an op came: before that op. */
bool ag_policy_on_trial(const struct ag_policy *p);
void ag_policy_idle(struct ag_policy *p, uint64_t ns);
enum ag_pace_kind ag_policy_pace(const struct ag_policy *p);
/* Liveness bounds that an op may be held for while launches keep arriving; read it when a segment
 * begins. */
uint32_t ag_policy_patience(const struct ag_policy *p);

/* For statistics and tests. */
struct ag_policy_view {
    uint32_t nodes, graphs, depth, step;
    uint64_t ops, held, replayed, built_ops, asides;
};
void ag_policy_look(const struct ag_policy *p, struct ag_policy_view *out);
/* Checks the invariants written on the structs; false and a message in `why` (may be NULL) when one
 * is broken. */
bool ag_policy_check(const struct ag_policy *p, const char **why);

#ifdef __cplusplus
}
#endif
#endif
