/* tools/simcuda/sim_op.h - an operation in a stream: submitted, waiting, running, done.
 * Called by  every file that enqueues   Calls  sim_op.c (engine), sim_work.c (what it does)
 * Threads    caller holds sim_lock; a worker releases it while it executes
 * Promise    an op runs after all that it depends on, exactly once, with the work it was given
 * Start at   sim_enqueue()                                                                  */
#ifndef SIMCUDA_SIM_OP_H
#define SIMCUDA_SIM_OP_H

#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_event;
struct sim_exec;
struct sim_function;
struct sim_program;
struct sim_range;
struct sim_stream;

enum sim_work_kind {
    SIM_WORK_EMPTY,
    SIM_WORK_KERNEL,
    SIM_WORK_COPY,
    SIM_WORK_SET,
    SIM_WORK_RECORD,
    SIM_WORK_WAIT,
    SIM_WORK_HOST,
    SIM_WORK_CALLBACK,
    SIM_WORK_WAIT_VALUE,
    SIM_WORK_WRITE_VALUE,
    SIM_WORK_BATCH,
    SIM_WORK_GRAPH,
    SIM_WORK_ALLOC,
    SIM_WORK_FREE,
    SIM_WORK_PREFETCH
};

enum { SIM_MAX_ATTRIBUTES = 16 };

struct sim_kernel_work {
    struct sim_function *function; /* counted */
    uint32_t grid[3], block[3], shared;
    int max_dynamic, carveout, cache; /* of the function, at the call */
    int priority;
    CUlaunchAttribute attributes[SIM_MAX_ATTRIBUTES];
    unsigned nattributes;
    CUkernel kernel; /* the handle, where it was named by one instead of a CUfunction */
    void *args;      /* packed, owned */
};

/* The allocation that an operand named when the work was made. */
struct sim_operand {
    uint64_t id;             /* 0: pageable memory */
    int kind;                /* enum sim_memory_kind, -1: pageable memory */
    struct sim_context *ctx; /* never followed, only compared */
};

struct sim_copy_work {
    uintptr_t dst, src;
    struct sim_operand to, from;
    size_t width, height, depth;
    size_t dst_pitch, src_pitch, dst_slice, src_slice; /* bytes */
    void *staged; /* owned copy of pageable source; src points into it */
    bool dst_host, src_host;
    CUmemorytype dst_type, src_type; /* declared, or what they are; 0: to be found out */
};

struct sim_set_work {
    uintptr_t dst;
    uint32_t value, element; /* element: 1, 2, 4 bytes */
    size_t width, height, pitch;
    struct sim_operand to;
};

/* What an op, or a node of a graph, does. Never changes once shared. */
struct sim_work {
    struct sim_object object;
    enum sim_work_kind kind;
    union {
        struct sim_kernel_work kernel;
        struct sim_copy_work copy;
        struct sim_set_work set;
        struct {
            struct sim_event *event; /* counted */
        } event;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            CUstream stream;
            void *data;
        } host;
        struct {
            uintptr_t at;
            uint64_t value;
            unsigned flags, bytes;
        } value;
        struct {
            struct sim_work **list; /* counted, in order */
            size_t n;
        } batch;
        struct {
            struct sim_program *program; /* counted */
            struct sim_op **markers;     /* one per node that records an event; owned */
            struct sim_op **waits;       /* one per node that waits for one; owned */
            uintptr_t exec;              /* its handle, for the log */
        } graph;
        struct {
            uintptr_t at;
            size_t bytes;
            bool cancelled; /* a free whose memory was given out again before it ran */
            bool begun;     /* a free that has released its memory, though it is not done yet */
        } memory;
    };
};

struct sim_op {
    struct sim_object object;
    struct sim_work *work;     /* counted */
    struct sim_stream *stream; /* counted until done */
    uint64_t sub;              /* global order of submission */
    uint64_t submit_ns, ready_ns, end_ns;
    int pending; /* dependencies not done */
    bool done;
    CUresult status;
    struct sim_op **dependents; /* counted */
    size_t ndependents, room;
    struct sim_op *next;
};

struct sim_work *sim_work_new(enum sim_work_kind kind, struct sim_context *ctx);
/* Runs it: lock held on entry and return, released while it executes. Returns the end time. */
uint64_t sim_work_run(struct sim_work *work, struct sim_op *op, const char *how, uint64_t start_ns);
/* It waits for something that has not come yet. */
bool sim_work_stands(const struct sim_work *work);
/* Marks the record node's events done, drops whatever the op did not do. */
void sim_work_skip(struct sim_work *work, struct sim_op *op);

/* The one way into a stream: joins its capture, or becomes an op. Takes over `work`. *out_op, where
 * asked for, is counted (NULL when captured). */
CUresult sim_enqueue(struct sim_stream *stream, struct sim_work *work, struct sim_op **out_op);
struct sim_op *sim_op_new(struct sim_work *work);
void sim_op_after(struct sim_op *op, struct sim_op *dependency);
void sim_op_submit(struct sim_stream *stream, struct sim_op *op);
/* Around a module load or a free that waits for the context: launches of other threads wait as long,
 * whatever their stream (facts fill.launch_beside_a_load_that_waits, .._a_free_that_waits). */
void sim_op_shut(struct sim_context *ctx);
void sim_op_reopen(struct sim_context *ctx);
void sim_op_finish(struct sim_op *op, uint64_t end_ns, CUresult status);
/* Blocks the calling thread (virtually, too) until the op is done. */
void sim_op_wait(struct sim_op *op);
/* The same without moving the caller's virtual clock: for workers. */
void sim_op_wait_done(struct sim_op *op);
void sim_op_start_worker(struct sim_stream *stream);

#endif
