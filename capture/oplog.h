/* capture/oplog.h - the log of a CUDA context: what was accepted from the program and not yet given
 * to the driver. Called by  capture/            Calls  policy/, capture/{func,sig,graph}.c Threads
 * a log's fields belong to its lock unless they say otherwise
 * Start at   struct ag_oplog */
#ifndef AG_CAPTURE_OPLOG_H
#define AG_CAPTURE_OPLOG_H

#include "capture/atomic.h"
#include "capture/attr.h"
#include "capture/fill.h"
#include "capture/first.h"
#include "capture/func.h"
#include "capture/lock.h"
#include "capture/memory.h"
#include "capture/ring.h"
#include "capture/sig.h"
#include "policy/budget.h"
#include "policy/decide.h"
#include "policy/refusal.h"
#include "shim/driver.h"
#include "shim/observe/counters.h"
#include "shim/observe/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AG_CONTEXTS_MAX 256
#define AG_MADE_SLOTS 1024 /* power of two */
#define AG_TRACK_STREAMS 16

/* In place of the stream that a call is about. NULL is the legacy stream. */
#define AG_ABOUT_ALL ((CUstream) ~(uintptr_t)1)
#define AG_ABOUT_NO_STREAM ((CUstream) ~(uintptr_t)0)

struct ag_graph;

struct ag_op {
    struct ag_sig *sig;
    uint32_t args; /* offset of the packed arguments in ag_oplog.args */
    bool done;     /* has been submitted, though ops before it have not */
};

/* Streams of a context whose ops are one sequence to policy (track.h), mostly one stream alone. */
struct ag_track {
    struct ag_oplog *log;
    struct ag_policy *policy;
    struct ag_graph **graph; /* [graphs], by the number policy was given; freed numbers are NULL */
    uint32_t graphs;
    uint32_t other_records; /* replays refused for records that were not overtaken any more */
    uint32_t streams;
    struct ag_stream *stream[AG_TRACK_STREAMS]; /* by lane (ag_sig_key.lane); NULL: not in use */
};

/* One CUDA stream of one context, from its first launch to its destruction. When a context ends,
 * the records of its streams stay, empty: another thread may be looking at one of another context.
 */
struct ag_stream {
    CUstream handle; /* key; both spellings of the legacy stream are CU_STREAM_LEGACY */
    uint64_t id;     /* cuStreamGetId, unique in the process */
    bool apart;      /* CU_STREAM_NON_BLOCKING: in no order with the legacy stream */
    uint32_t epoch;  /* ag_capture.epoch when handle and id were last seen to belong together */
    struct ag_oplog *log;
    struct ag_track *track;     /* the log's lock */
    uint32_t lane;              /* in it */
    AG_ATOMIC(bool) aside;      /* policy has stepped aside: read without the lock */
    AG_ATOMIC(bool) joined;     /* its track has other streams too; likewise */
    AG_ATOMIC(uint32_t) timed;  /* ops that are not held, after a timed record */
    uint64_t recorded_at;       /* ops that policy had been told of at the last plain record */
    AG_ATOMIC(uint32_t) passed; /* launches since then; lost increments only delay the return */
    UT_hash_handle hh;
};

/* How the streams of a context take turns (track.h). */
struct ag_turns {
    const struct ag_stream *of; /* of the last op, NULL: none */
    uint64_t thread;            /* that made it */
    uint32_t run;               /* ops since another one's */
    uint32_t shorts;            /* short turns, less some for long ones */
    uint32_t enough;            /* so many make one track */
};

/* I1 sent <= n <= room; ops[0, sent) have been submitted, ops[sent, n) are held, but for those that are done.
 * I2 n > 0 exactly when `cur` is the track of all n ops and `open` is counted in ag_open_logs.
 * I3 every held op's signature is proven.
 * I4 the argument slots of ops do not overlap and lie in args[0, args_used).
 * I5 whoever lets the program see whether work has run has set n to 0 first.
 * I6 sent == 0 or sent == n after every public function: a segment is all held or all sent.
 * I7 a held record is counted in its event. */
struct ag_oplog {
    struct ag_lock
        lock; /* rank 2; driver calls run under it, since submission order is the promise */
    struct ag_capture *cap;
    CUcontext ctx;
    struct ag_op *ops; /* [room] */
    uint32_t n, sent, room;
    unsigned char *args;
    size_t args_used, args_room;
    void **pointers; /* [pointers_room]: kernelParams of the op at hand */
    uint32_t pointers_room;
    struct ag_track *cur, *last; /* track of the open segment; of the last op */
    struct ag_turns turns;
    struct ag_stream *streams; /* table */
    struct ag_funcs funcs;
    struct ag_sigs sigs;
    struct ag_attr_table attrs;
    struct ag_filler filler;
    AG_ATOMIC(CUkernel) made[AG_MADE_SLOTS]; /* kernels whose function exists, by hash; no lock */
    struct ag_budget *budget;
    struct ag_graph **by_entry; /* [entries], by budget entry */
    uint32_t entries;
    /* Builds of other contexts that had no room since the last replay here; see ag_oplog_give_room.
     */
    AG_ATOMIC(uint32_t) wanted;
    uint32_t generation;          /* raised when signatures and functions were forgotten */
    uint32_t seen_calls;          /* ag_unseen_calls at the last launch whose status was seen */
    CUresult pending;             /* error of a held op, not yet told to the program */
    bool pushed, swapped;         /* our thread made ctx current and has to undo that */
    CUcontext over;               /* what was current before */
    AG_ATOMIC(uint32_t) open;     /* 1 while n > 0: read without the lock */
    AG_ATOMIC(uint32_t) holding;  /* 1 while sent < n: read without the lock */
    AG_ATOMIC(uint32_t) flushes;  /* changes whenever held ops were submitted */
    AG_ATOMIC(uint32_t) arrived;  /* changes whenever an op was held */
    AG_ATOMIC(uint32_t) patience; /* bounds that the open segment may be held for */
    /* The watch's own (liveness.h): at its last look `flushes` + 1 and `arrived`, and the looks since
     * `flushes` changed. */
    uint32_t looked, looked_arrived, looks;
    AG_ATOMIC(bool) attended; /* a liveness thread is about to submit, or at it */
    /* The stream that the lock's holder is submitting to, NULL: none; whether it is apart; the thread it
     * is; how many submissions there were, the one under way included; which of them somebody gave up
     * waiting for. */
    AG_ATOMIC(CUstream) submitting;
    AG_ATOMIC(bool) submitting_apart;
    AG_ATOMIC(int) submitter;
    AG_ATOMIC(uint32_t) submission, given_up;
    /* By lane, where the open segment is of several streams: `ops` are held for the stream and not yet with
     * the driver; NULL: none. Others read without the lock for whom, and whether it is apart. */
    struct {
        AG_ATOMIC(CUstream) stream;
        AG_ATOMIC(bool) apart;
        uint32_t ops;
    } owed[AG_TRACK_STREAMS];
    /* The stream in a trial, NULL: none; since when the program has seen it idle, 0: it is not; how
     * long it was, not yet told; the event that stands for all its work. See idle.h. */
    struct {
        AG_ATOMIC(CUstream) of;
        AG_ATOMIC(uint64_t) since, ns;
        AG_ATOMIC(CUevent) mark;
    } idle;
    /* Which of the next replays is verified (verify.h). */
    struct {
        uint64_t random; /* 0: not begun */
        uint32_t left, at;
    } sample;
    AG_ATOMIC(bool) used; /* there is something to forget; read without the lock */
    AG_ATOMIC(uint32_t)
    anchored; /* 1: no op since the last synchronisation; read without the lock */
    uint64_t seen[AG_OP_KINDS], held; /* ops, held launches since they were last counted */
    struct ag_ring ring;
};

/* An event of the program's, from its creation to its destruction. `held` records of it are in the log of its
 * context, all for the stream `in`, and `awaited` waits for it. */
struct ag_event {
    CUevent handle;            /* key */
    CUcontext ctx;             /* NULL: has ended */
    unsigned long long ctx_id; /* cuCtxGetId of it */
    bool doubted;              /* it may have ended, and another one may have its handle */
    uint64_t generation;       /* from 1, never given twice */
    bool timed, shared;        /* takes the time; is of CU_EVENT_INTERPROCESS */
    bool captured;             /* may be part of a program's capture */
    AG_ATOMIC(uint32_t) held, awaited;
    AG_ATOMIC(CUstream) in;
    uint32_t last;         /* op of the last one; the log's lock, and nothing while none is held */
    struct ag_event *next; /* once it is destroyed */
    UT_hash_handle hh;
};

/* Entries are not freed before the end: who found one may look at `held` without the lock. */
struct ag_events {
    struct ag_lock lock;    /* rank 3: the tables and their entries, but for the atomics */
    struct ag_event *table; /* [n] */
    struct ag_event *spare; /* of destroyed events */
    uint64_t generations;
    AG_ATOMIC(uint32_t) n;
    AG_ATOMIC(uint32_t) held; /* records and waits, of all events */
    AG_ATOMIC(uint32_t) read; /* timed records to come that count, since a time was read */
};

/* The whole of capture/: one per process (tests make their own). */
struct ag_capture {
    const struct ag_driver *drv;
    const struct ag_options *options;
    struct ag_counters *counters;
    struct ag_policy_limits limits;
    struct ag_lock contexts_lock;                       /* rank 1: adding to `logs` */
    AG_ATOMIC(struct ag_oplog *) logs[AG_CONTEXTS_MAX]; /* never freed, never removed */
    AG_ATOMIC(uint32_t) contexts;
    AG_ATOMIC(uint32_t)
    epoch; /* raised when a stream or context may have ended: thread caches are stale */
    struct ag_memory memory;
    struct ag_events events;
    struct ag_first first;
    AG_ATOMIC(uint32_t) capturing; /* program captures under way: nothing is held, nothing built */
    AG_ATOMIC(uint32_t) no_builds; /* a communication kernel was launched */
    bool keeps_order;              /* across streams too: they are never joined */
    AG_ATOMIC(uint32_t) troubled;  /* logs with a pending error */
    AG_ATOMIC(bool) off;           /* nothing is held any more, for good */
    AG_ATOMIC(const char *) off_reason; /* set first: somebody found a reason under a lock */
    /* Given by the owner. `turned_off` is called without locks, once nothing is held or being submitted
     * and no error is pending. */
    void (*turned_off)(struct ag_capture *cap);
    bool (*start_thread)(void *(*body)(void *), void *argument);
    bool (*may_build)(
        struct ag_capture *cap); /* looks for objects that by-pass the shim; false: do not hold */
    void (*tick)(struct ag_capture *
                     cap); /* from the liveness thread: now and then, and before it goes to sleep */
    struct ag_liveness *liveness;
};

/* Read by the thunks (shim/thunk.S). */
extern AG_ATOMIC(uint32_t)
    ag_open_logs; /* logs with an open segment; one more: see ag_first_watch() */
extern AG_ATOMIC(uint32_t) ag_unseen_calls; /* draining calls whose status nobody looked at */

/* The log of the current context, made at first sight. NULL: none is current, or no room. */
struct ag_oplog *ag_oplog_of(struct ag_capture *cap, CUcontext ctx);
/* The stream's record. NULL: not a stream of this context, or no memory. Caller holds the log's
 * lock. */
struct ag_stream *ag_stream_of(struct ag_oplog *log, CUstream handle);
/* Nothing is held. */
void ag_stream_free(struct ag_stream *s);
/* Drops everything that refers to functions, signatures or graphs. Nothing is held. */
void ag_oplog_forget(struct ag_oplog *log);
/* Frees every log; for owners that end before the process does. No call is under way. */
void ag_capture_release(struct ag_capture *cap);
/* Checks I1-I4, I6, I7; false and the number of the broken one. */
bool ag_oplog_check(const struct ag_oplog *log, int *broken);
bool ag_sticky(CUresult ret);
/* CLOCK_MONOTONIC; no system call where the kernel offers it without one. */
uint64_t ag_now_ns(void);

/* Enter and leave a log: the thread is marked busy, the lock taken, the log's context made current.
 * Between the two the caller may call the driver. Leaving also carries out a wish to turn off. */
void ag_oplog_enter(struct ag_oplog *log);
/* The same for a thread whose current context is the log's. */
void ag_oplog_enter_current(struct ag_oplog *log);
/* A submission may block: the driver's queue of a stream has room for about 1,020 launches. Enters
 * like ag_oplog_enter, unless the lock's holder is inside such a submission to a stream that `about` is in no
 * order with, does not come out of it, and nothing is held for one that it is in order with: then false. What is
 * left there was not asked for: another stream's work, by a call that without the shim would not have returned
 * yet. AG_ABOUT_NO_STREAM waits for no stream's sake. AG_ABOUT_ALL always enters: nobody knows what the call
 * does, so what the program asked for before it has to be with the driver first (C1, C3), however long the
 * driver takes. */
bool ag_oplog_enter_for(struct ag_oplog *log, CUstream about);
/* The same as ag_oplog_enter_current does. */
bool ag_oplog_enter_current_for(struct ag_oplog *log, CUstream about);
/* Enters like ag_oplog_enter, unless another thread has the lock for longer than a wait between two looks. */
bool ag_oplog_try_enter(struct ag_oplog *log);
/* Around the driver calls that submit to a stream, under the log's lock. */
void ag_oplog_submits(struct ag_oplog *log, const struct ag_stream *s);
void ag_oplog_submitted(struct ag_oplog *log);
/* An op of the open segment, which is of several streams, is held for this one; the driver has it. */
void ag_oplog_owes(struct ag_oplog *log, const struct ag_stream *s);
void ag_oplog_gave(struct ag_oplog *log, const struct ag_stream *s);
void ag_oplog_leave(struct ag_oplog *log);
/* Asks for holding to end; carried out by the next ag_oplog_leave or ag_capture_settle. Any thread,
 * any lock. */
void ag_capture_wish_off(struct ag_capture *cap, const char *reason);
void ag_capture_settle(struct ag_capture *cap);

#ifdef __cplusplus
}
#endif

#endif
