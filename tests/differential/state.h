/* tests/differential/state.h - what a running random program owns, and what it says.
 * Called by  run.c, acts.c, launch.c, program.c      Calls  the driver API through -lcuda
 * Threads    a lane belongs to one thread at a time; texts belong to a track; the two counters are atomic
 * Promise    everything said is a function of the plan alone: no handle, no address, no time
 * Start at   struct df_lane */
#ifndef AG_TESTS_DIFFERENTIAL_STATE_H
#define AG_TESTS_DIFFERENTIAL_STATE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "tests/differential/plan.h"

enum {
    DF_BYTES = 4096, /* of each buffer */
    DF_WORDS = DF_BYTES / 4,
    DF_VALUES =
        4096, /* more than a lane uses: a late write into one used again would undo a newer one */
    DF_LARGE =
        256 * 1024, /* of the one large buffer; its first DF_BYTES are used like any other's */
    DF_BUFFERS = 12,
    DF_MANAGED_BUFFER = 10, /* of cuMemAllocManaged */
    DF_LARGE_BUFFER = 11,
    DF_BLOCKS = 4, /* of host memory that are filled again once their event says so */
    DF_POOLED = 3, /* allocations in stream order that live at the same time */
    DF_PEEK = 64,  /* bytes that a host function looks at */
    DF_EVENTS = 4,
    DF_MODULES = 4,   /* the last one holds the flag kernels and stays */
    DF_FUNCTIONS = 6, /* of a module */
    DF_PINNED =
        64 * DF_BYTES, /* sources of asynchronous uploads, never written twice between two waits */
    DF_DEFAULT_SHARED = 48 * 1024
};

struct df_text {
    char *data;
    size_t used, size;
};
__attribute__((format(printf, 2, 3))) void df_text_add(struct df_text *text, const char *format,
                                                       ...);
void df_text_add_hex(struct df_text *text, const void *bytes, size_t n);

struct df_kernel {
    const char *image, *name;
    /* W a buffer of the stream, R another one, r the one that is only read; u any word, n a count, x y an nx by ny
     * grid, i c s b small integers of 4, 1, 2, 1 bytes, f float, d double; by value: S 16 ints, D 8 doubles, A 1022
     * words, B 8184 words */
    const char *params;
};
struct df_image {
    const char *name;
    const unsigned char *bytes;
};
extern const struct df_image df_images[];
extern const struct df_kernel df_kernels[];
int df_images_count(void);
/* The i-th kernel of the image, NULL after the last. */
const struct df_kernel *df_kernel_of(int image, int i);

enum df_stream_kind { DF_BLOCKING, DF_NON_BLOCKING, DF_LEGACY, DF_PER_THREAD };
struct df_stream {
    CUstream handle;
    enum df_stream_kind kind;
    uint64_t id; /* cuStreamGetId: never used twice, so it names the stream in the expectation */
    unsigned char *out;  /* pinned, destination of asynchronous downloads */
    unsigned char *peek; /* pinned, what host functions of the stream look at */
    bool out_pending;
    _Atomic uint64_t called; /* order of the callbacks that ran, folded into a number */
};

struct df_function {
    CUfunction handle;
    const struct df_kernel *kernel;
    int limit; /* dynamic shared memory allowed now */
};

struct df_lane {
    uint32_t index, home; /* home: the thread whose per-thread stream slot 3 is */
    CUcontext ctx;
    struct df_stream stream[DF_STREAMS];
    struct df_stream plain; /* the legacy stream, where calls without a stream do their work */
    CUevent event[DF_EVENTS];
    uint32_t event_number[DF_EVENTS]; /* names the object for the judge; the handle is used again */
    unsigned event_life[DF_EVENTS];   /* for how many */
    struct df_buffer {
        CUdeviceptr address;
        uint8_t owner; /* stream slot: only that stream's work touches the buffer */
    } buffer[DF_BUFFERS];
    struct df_block_of_host {
        unsigned char *bytes;
        CUevent event;
        unsigned life;
        bool malloced, pinned; /* the former can be registered and unregistered */
    } block[DF_BLOCKS];
    struct df_buffer pooled[DF_POOLED]; /* address 0: none */
    CUdeviceptr values;                 /* words that streams write and wait for */
    uint32_t value;                     /* last one used; they only grow */
    uint32_t events_made;
    CUdeviceptr fixed; /* only ever read */
    struct {
        CUmodule handle;
        int image, functions;
        struct df_function function[DF_FUNCTIONS];
    } module[DF_MODULES];
    unsigned char *pinned;
    size_t pinned_used;
    volatile uint32_t
        *word; /* mapped: [0] kernels write and the host watches, [1] the other way round */
    CUdeviceptr word_device;
    uint32_t spins,
        gate; /* last value sent to [0]; what [1] must reach for the streams at the gate */
    bool blocked;
};

struct df_run {
    const struct df_plan *plan;
    uint32_t episode;
    pthread_mutex_t held;    /* df_hold_others */
    _Atomic uint32_t closed; /* lanes with a closed gate; raised under `held` */
    long patience;           /* seconds that the host watches mapped memory before it gives up */
    struct df_lane lane[DF_MAX_LANES];
    struct df_text said[DF_MAX_TRACKS];     /* observables */
    struct df_text expected[DF_MAX_TRACKS]; /* launches that were accepted, see judge.h */
    volatile uint32_t at[DF_MAX_TRACKS];    /* where each track is, for the watchdog */
    _Atomic uint64_t clock;                 /* moves at the start and the end of each launch call */
    _Atomic uint64_t ops;                   /* operations enqueued */
    _Atomic uint32_t kinds[DF_KINDS];       /* actions carried out */
};

/* One action being carried out. */
struct df_step {
    struct df_run *run;
    struct df_lane *lane;
    const struct df_action *action;
    uint32_t track, thread, iteration;
    uint32_t twist_grid, twist_argument,
        twist_shared; /* nonzero while the loop body is changed that way */
};

/* lanes.c */
CUresult df_lane_open(struct df_run *run, uint32_t index, CUdevice device);
void df_lane_close(struct df_run *run, uint32_t index, CUdevice device);
CUresult df_lane_load(struct df_lane *lane, int module, int image);
CUresult df_lane_make_stream(struct df_step *step, int slot, enum df_stream_kind kind);
CUresult df_lane_make_event(struct df_lane *lane, int slot);
uint32_t df_digest(const void *bytes, size_t n);

/* expect.c: what the judge is told (judge.h) of each call that was accepted. df_enter before the call; the others
 * after it. */
uint64_t df_enter(struct df_step *step);
void df_expect(struct df_step *step, const struct df_stream *stream, uint64_t before,
               const char *name, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The stream exists; its number, how it is ordered, its context. */
void df_expect_stream(struct df_step *step, const struct df_stream *stream);
/* 'R' or 'W': the stream gives what it holds to the event (or a value), or waits for that. */
void df_expect_edge(struct df_step *step, const struct df_stream *stream, uint64_t before,
                    char what, const char *key, uint32_t number, CUevent event, unsigned life);
void df_expect_event(struct df_step *step, const struct df_stream *stream, uint64_t before,
                     char what, int event);
/* The call had to hand all earlier work to the driver. */
void df_expect_drain(struct df_step *step, uint64_t before);
struct df_area {                               /* of a copy: 0 rows are 1 */
    const void *host_source;                   /* NULL: what moved is known to the device alone */
    size_t width, height, depth, pitch, slice; /* of the source */
};
void df_expect_copy(struct df_step *step, const struct df_stream *stream, uint64_t before,
                    uint64_t dst, uint64_t src, const struct df_area *area);
void df_expect_memset(struct df_step *step, const struct df_stream *stream, uint64_t before,
                      CUdeviceptr dst, uint32_t value, unsigned element, size_t width,
                      size_t height, size_t pitch);

/* Said when a call returned; successes of launches too: each return code is an observable. */
CUresult df_say(struct df_step *step, const char *what, CUresult ret);
/* The same for a call that drains: entered at `before`. */
CUresult df_say_drained(struct df_step *step, const char *what, uint64_t before, CUresult ret);

/* acts.c: waits, queries, modules, streams. buffers.c: copies, buffers. copies.c: the rarer copies. events.c: records,
 * waits, forks, values. pooled.c: allocation in stream order, managed memory. launch.c: launches, good and bad. */
void df_act(struct df_step *step);
void df_memset(struct df_step *step);
void df_copy_device(struct df_step *step);
void df_copy_in(struct df_step *step);
void df_copy_out(struct df_step *step);
void df_buffer(struct df_step *step);
void df_readback(struct df_step *step);
void df_memset_2d(struct df_step *step);
void df_copy_2d(struct df_step *step);
void df_upload_large(struct df_step *step);
void df_reuse(struct df_step *step);
void df_register(struct df_step *step);
void df_copy_bad(struct df_step *step);
void df_handoff(struct df_step *step);
void df_fork(struct df_step *step);
void df_record_again(struct df_step *step);
void df_event_again(struct df_step *step);
void df_elapsed(struct df_step *step);
void df_value_pair(struct df_step *step);
void df_pool(struct df_step *step);
void df_prefetch(struct df_step *step);
void df_host_sees(struct df_step *step);
/* A host function that keeps the stream from going on until the lane's gate reaches the value; the next value. */
void df_gate(struct df_step *step);
void df_fill(unsigned char *bytes, size_t n, uint32_t value);
/* Pinned memory that no earlier upload still reads. */
unsigned char *df_fresh_pinned(struct df_step *step, size_t n);
/* The legacy stream, in which synchronous calls run, waits for this stream by itself. */
bool df_ordered(const struct df_stream *stream);
/* A buffer that the action's stream owns, or 0. */
CUdeviceptr df_owned_address(struct df_step *step, int pick, struct df_stream **out_stream);
/* Some bytes of a buffer, a multiple of 4; *out_at: where in it, for actions whose addresses move. */
size_t df_some_bytes(const struct df_step *step, size_t *out_at);
/* Record and wait, as the program does it; false: an error was said. */
bool df_record(struct df_step *step, const struct df_stream *stream, int event);
bool df_wait(struct df_step *step, const struct df_stream *stream, int event);
/* What comes behind an action in a chain of records. */
void df_chain(struct df_step *step);
/* After a wait for the stream: what it sent to the host since the last time. */
void df_show(struct df_step *step, struct df_stream *stream);
void df_launch(struct df_step *step);
void df_launch_bad(struct df_step *step);
/* By position in its module: after a reload the same pick means what took the place. NULL: module not loaded. */
struct df_function *df_function_of(struct df_lane *lane, uint32_t pick);
/* Lets go whatever stands at a gate, before a call that may wait for it. */
void df_open_gates(struct df_step *step);
/* Around a module load or a free, with the lane's own gates open: it waits for all work of the context and keeps every
 * thread from launching (H200). Where another lane's work stands at a gate that opens after some more launches of that
 * lane, it would wait for ever; so it begins when all gates are open, and none is closed until it has ended. */
void df_hold_others(struct df_step *step);
void df_let_others_go(struct df_step *step);
/* A value of the action that moves with the iteration as the action says. */
uint32_t df_value(const struct df_step *step, int pick);
/* Slot the action uses: the per-thread stream is left to its own thread. */
struct df_stream *df_stream_of(struct df_step *step, int *out_slot);
/* The same for another slot than the action's. */
struct df_stream *df_stream_at(struct df_step *step, int slot, int *out_slot);
/* A buffer the slot owns, 0 when it owns none. */
int df_owned(const struct df_lane *lane, int slot, uint32_t pick);
/* set_flag or wait_flag on a word of the lane's mapped memory, on the action's stream. */
CUresult df_launch_flag(struct df_step *step, struct df_function *f, uint32_t word, uint32_t value);

/* run.c */
int df_run_plan(struct df_run *run);

#endif
