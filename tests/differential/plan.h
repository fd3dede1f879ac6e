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

enum df_kind {
    DF_LAUNCH,
    DF_BAD_LAUNCH, /* refused by that very call */
    DF_MEMSET,
    DF_COPY_DEVICE,
    DF_COPY_IN,
    DF_COPY_OUT, /* asynchronous, to pinned memory; shown at the next synchronisation */
    DF_HANDOFF,  /* event record, event wait: a buffer changes its stream */
    DF_SYNC,
    DF_QUERY,
    DF_ATTRIBUTE, /* maximum dynamic shared memory of a function: same value, higher, lower */
    DF_MODULE,    /* unload, load another image in its place */
    DF_BUFFER,    /* free, allocate again */
    DF_SPIN,      /* the host watches mapped memory, no CUDA call */
    DF_BLOCK,     /* the stream stands still while the host goes on issuing */
    DF_STREAM,    /* destroy with work in it, create again */
    DF_GETTER,
    DF_CALLBACK,
    DF_READBACK, /* the one that shows data */
    DF_KINDS
};

/* How values that an action passes move from one iteration of its loop to the next. */
enum df_motion { DF_STILL, DF_COUNT, DF_JUMP, DF_PARITY, DF_MOTIONS };

struct df_action {
    uint32_t id; /* from 1; the name of the action when shrinking */
    uint8_t kind, lane, thread, stream, motion, form;
    uint32_t pick[DF_PICKS];
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
    char fault_text[160]; /* value of SIMCUDA_FAULT, "" for none */
    char min_seen[8], flush_us[8], max_segment[8], max_bytes[8];
    uint32_t episodes; /* plans run one after the other in the process */
};

/* xorshift-multiply step: `state` moves on, the result is well mixed. */
uint64_t df_random(uint64_t *state);
void df_setting_make(uint64_t seed, struct df_setting *out);
void df_plan_make(uint64_t seed, struct df_plan *out);
void df_plan_filter(struct df_plan *plan, const struct df_filter *filter);

#endif
