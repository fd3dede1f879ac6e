/* policy/decide_state.h - the state of one stream's policy, and what always holds for it.
 * Called by  policy/decide.c, tests      Calls  policy/{trie,pay,pace}.h
 * Threads    none: the caller serialises
 * Promise    nobody but decide.c and tests includes this
 * Start at   struct ag_policy */
#ifndef AG_POLICY_DECIDE_STATE_H
#define AG_POLICY_DECIDE_STATE_H

#include "policy/decide.h"
#include "policy/pace.h"
#include "policy/pay.h"
#include "policy/trie.h"

#define AG_POLICY_LOST UINT32_MAX /* cursor of a segment that is not remembered */

/* Why the segment before ended. Only the first is a place that the program itself makes. */
enum before { BEFORE_PLACE, BEFORE_GROWTH, BEFORE_LENGTH, BEFORE_MARK };

struct ag_policy {
    struct ag_trie trie;

    /* the segment under way */
    uint32_t cursor; /* its node, or AG_POLICY_LOST */
    uint32_t guess;  /* the node expected next, 0: none */
    uint32_t depth;  /* its ops */
    uint32_t run;    /* ops since the last end that is a place of the program */
    uint32_t cap; /* most ops in a segment for now: what the host makes within the liveness bound */
    uint32_t caps[AG_PACE_KINDS]; /* the same for each pace */
    uint32_t cut_at;              /* run at which it ends in any case */
    uint32_t recur_at;            /* run from which a recurring window ends it */
    uint32_t end_bit;             /* of the pace in use, in ag_node.end */
    bool sent;                    /* an op of it was answered with send, or it was spoiled */
    bool fresh;                   /* it left what is remembered */
    bool torn;                    /* a break has happened since the last place of the program */
    bool lost;                    /* no anchor was met for a long time, once */
    bool settled;                 /* the anchor is a drain or was met again */

    uint64_t window;                   /* the last 8 signatures */
    uint64_t prev;                     /* the window at the last end */
    uint64_t anchor;                   /* the anchor's window, 0: none */
    uint64_t bytes;                    /* the last 8 contents, where the caller tells them */
    uint64_t prev_bytes, anchor_bytes; /* as they were with prev and anchor */
    bool loose; /* contents do not recur: a place is known by signatures alone */
    uint8_t near, misses, matches, turns; /* see judge_contents() */
    uint64_t anchor_at;                   /* ops when it was chosen or met last */
    uint64_t met_at;                      /* ops when any anchor was met last */

    uint32_t held_ends, breaks, broken_ops, quiet; /* see mind_the_host() */

    uint32_t ended; /* the node where the last segment ended, 0: none */
    enum before before;
    uint32_t step;
    uint32_t steps; /* step from which the stream runs free */
    uint32_t hash_shift;
    struct ag_policy_limits limits;

    struct ag_pay pay;
    struct ag_pace pace;
    bool timing;                             /* the time is wanted */
    uint64_t ops, held, replayed, built_ops; /* of ended segments */
    /* P1 depth <= run, and run < cut_at between calls, and cut_at <= max_segment.
     * P2 the cursor is AG_POLICY_LOST or the node `depth` ops below the root.
     * P3 not sent: the cursor is not AG_POLICY_LOST and, past the root, has a graph or some below
     * it.
     * P4 guess is 0 or a used node whose parent is the cursor.
     * P5 while aside the segment is empty. */
};

#endif
