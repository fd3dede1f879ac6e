/* tests/differential/plan.h - a random CUDA program as data: what it will do, before it does it.
 * Called by  program.c, run.c            Calls  nothing
 * Threads    none: a plan is written once, then only read
 * Promise    the same seed and filter give the same plan on every machine. An action names things by slot and by
 *            random picks that are resolved when it runs, so a plan with actions dropped is still a valid program:
 *            that is what makes shrinking possible.
 * Start at   df_plan_make() */
#ifndef AG_TESTS_DIFFERENTIAL_PLAN_H
#define AG_TESTS_DIFFERENTIAL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DF_MAX_ACTIONS = 1024, /* of a plan, before loops repeat them */
    DF_MAX_BLOCKS = 64,
    DF_MAX_TRACKS = 4,
    DF_MAX_LANES = 4,
    DF_MAX_THREADS = 4,
    DF_STREAMS = 5, /* stream slots of a lane */
    DF_PICKS = 4
};

/* How often it stands in straight code, and in the body of a loop, where not a launch; whether it lets a shim go on
 * holding (some loops have only such); for the summary. */
#define DF_KIND_LIST(X)                                                                            \
    X(DF_LAUNCH, 0, 0, 0, "launch")                                                                \
    X(DF_BAD_LAUNCH, 3, 2, 0, "bad launch") /* refused by that very call */                        \
    X(DF_MEMSET, 3, 4, 1, "memset")                                                                \
    X(DF_MEMSET_2D, 2, 2, 1, "2-D memset")                                                         \
    X(DF_COPY_DEVICE, 3, 5, 1, "device copy") /* still or moving addresses */                      \
    X(DF_COPY_2D, 3, 3, 1, "pitched copy")    /* 2-D, 3-D, peer, batched */                        \
    X(DF_COPY_IN, 4, 3, 0, "upload")                                                               \
    X(DF_COPY_OUT, 3, 2, 1, "download")         /* to pinned memory; shown at the next wait */     \
    X(DF_UPLOAD_LARGE, 2, 1, 0, "large upload") /* pageable, spoilt right after the call */        \
    X(DF_REUSE, 3, 3, 0, "pinned reuse") /* a block is filled again once its event says so */      \
    X(DF_REGISTER, 1, 1, 0, "register")  /* pinned becomes pageable, and back */                   \
    X(DF_BAD_COPY, 2, 1, 0, "bad copy")  /* refused by that very call */                           \
    X(DF_HANDOFF, 4, 3, 1, "handoff")    /* record, wait: a buffer changes its stream */           \
    X(DF_FORK, 3, 5, 1, "fork and join")                                                           \
    X(DF_RECORD_AGAIN, 2, 1, 0, "re-record")      /* a wait keeps the record it was given */       \
    X(DF_EVENT_AGAIN, 2, 1, 1, "event destroyed") /* while it is waited for */                     \
    X(DF_ELAPSED, 2, 2, 0, "elapsed")                                                              \
    X(DF_VALUE, 2, 2, 1, "stream value") /* written in one stream, waited for in another */        \
    X(DF_POOL, 3, 3, 1, "stream-ordered memory")                                                   \
    X(DF_PREFETCH, 1, 1, 1, "prefetch")                                                            \
    X(DF_SYNC, 5, 4, 0, "sync")                                                                    \
    X(DF_QUERY, 4, 4, 0, "query")                                                                  \
    X(DF_ATTRIBUTE, 4, 8, 0, "attribute") /* maximum dynamic shared memory of a function */        \
    X(DF_MODULE, 3, 1, 0, "module")       /* unload, load another image in its place */            \
    X(DF_BUFFER, 3, 1, 0, "buffer")       /* free, allocate again */                               \
    X(DF_SPIN, 3, 3, 0, "spin")           /* the host watches mapped memory, no CUDA call */       \
    X(DF_BLOCK, 3, 1, 0, "block")         /* a stream stands while the host goes on */             \
    X(DF_STREAM, 2, 1, 0, "stream")       /* destroy with work in it, create again */              \
    X(DF_GETTER, 3, 4, 0, "getter")                                                                \
    X(DF_CALLBACK, 2, 1, 1, "callback")                                                            \
    X(DF_HOST_SEES, 2, 2, 1, "host function") /* records what the stream had sent by then */       \
    X(DF_READBACK, 5, 4, 0, "readback")       /* the one that shows data */

enum df_kind {
#define X(kind, straight, loop, held, name) kind,
    DF_KIND_LIST(X)
#undef X
        DF_KINDS
};

/* How values that an action passes move from one iteration of its loop to the next. */
enum df_motion { DF_STILL, DF_COUNT, DF_JUMP, DF_PARITY, DF_MOTIONS };

struct df_action {
    uint32_t id; /* from 1; the name of the action when shrinking */
    uint8_t kind, lane, thread, stream, motion, form;
    uint8_t record,
        look; /* what comes behind it: a record of event `record` - 1; who looks at that */
    uint32_t pick[DF_PICKS];
};

enum { DF_MOVING_RECORD = 9 };
/* Of an event that was recorded in a chain: nobody, another stream, the host; or it is recorded elsewhere; or
 * another stream waits, and the event goes and another one comes. */
enum df_look {
    DF_NO_LOOK,
    DF_LOOK_WAIT,
    DF_LOOK_GLANCE,
    DF_LOOK_SYNC,
    DF_LOOK_ELSEWHERE,
    DF_LOOK_AGAIN,
    DF_LOOKS
};

enum df_change {
    DF_SAME,
    DF_INSERT,
    DF_DELETE,
    DF_REPLACE,
    DF_REORDER,
    DF_NEW_GRID,
    DF_NEW_ARGUMENT,
    DF_NEW_SHARED,
    DF_CHANGES
};

/* A run of actions, repeated; at iteration `at` the body changes, for once or for good. */
struct df_block {
    uint16_t first, count, iterations, at, where;
    uint16_t extra; /* index of the action that DF_INSERT and DF_REPLACE bring in */
    uint8_t change;
    bool for_good;
};

/* Blocks that run one after the other. Several tracks run at the same time, each in its own thread. */
struct df_track {
    uint16_t blocks;
    struct df_block block[DF_MAX_BLOCKS];
};

struct df_filter {
    uint32_t drop_tracks; /* bit set: not run */
    uint32_t
        cap; /* 0, or the most iterations of a loop (what comes before and after its change, each) */
    uint32_t dropped[DF_MAX_ACTIONS / 32 + 1];
    bool plain_threads; /* everything on thread 0 */
};

struct df_plan {
    uint64_t seed;
    uint8_t tracks, threads, lanes;
    bool shared_context; /* lanes live in one context */
    bool primary;        /* ... which is the primary one of the device */
    uint32_t actions;
    struct df_action action[DF_MAX_ACTIONS];
    struct df_track track[DF_MAX_TRACKS];
};

/* Environment of the process that the seed asks for: shim options and faults of the driver. */
enum df_fault { DF_NO_FAULT, DF_GRAPH_FAULT, DF_LAUNCH_FAULT, DF_STICKY_FAULT };
struct df_setting {
    enum df_fault fault;
    char fault_text[256]; /* value of SIMCUDA_FAULT, "" for none */
    char min_seen[8], flush_us[8], max_segment[8], max_bytes[8], pace[8];
    uint32_t episodes; /* plans run one after the other in the process */
};

const char *df_kind_name(int kind);
/* xorshift-multiply step: `state` moves on, the result is well mixed. */
uint64_t df_random(uint64_t *state);
void df_setting_make(uint64_t seed, struct df_setting *out);
void df_plan_make(uint64_t seed, struct df_plan *out);
void df_plan_filter(struct df_plan *plan, const struct df_filter *filter);

#endif
