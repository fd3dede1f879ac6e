/* tools/simcuda/sim_call.h - one entry point of the driver: prologue, body, epilogue.
 * Called by  every sim_*.c              Calls  sim_call.c, sim_fault.c, sim_log.c
 * Threads    a body runs with sim_lock held; blocking waits release it (pthread_cond_wait)
 * Promise    every entry is counted, can be made to fail, costs virtual time, and is logged
 * Start at   SIM_API                                                                        */
#ifndef SIMCUDA_SIM_CALL_H
#define SIMCUDA_SIM_CALL_H

/* All declarations, old and new, and no renaming macros: the symbols are what we define. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/simcuda/sim_clock.h"

enum {
    SIM_ANY = 0,         /* works before cuInit */
    SIM_INIT = 1,        /* needs cuInit */
    SIM_CTX = 2 | 1,     /* needs a current context without a sticky error */
    SIM_UNSAFE = 4,      /* forbidden during somebody's global-mode capture */
    SIM_PER_THREAD = 16, /* stream 0 is the thread's own (the _ptsz and _ptds twins) */
    SIM_PASSIVE = 32     /* needs a context, but does not report its sticky error */
};

struct sim_entry {
    const char *symbol;
    void *address;
    uint32_t calls; /* so far; sim_lock */
    uint32_t is_stub;
    uint32_t drains; /* SIMCUDA_DRAIN names it: waits for the context first */
    uint32_t faults; /* rules of SIMCUDA_FAULT that name it; written once at start */
};

enum { SIM_STACK = 64 };

/* Per thread. */
struct sim_tls {
    bool known;
    int number; /* 1, 2, ... in order of the first call */
    bool per_thread;
    CUstreamCaptureMode capture_mode;
    struct sim_context *stack[SIM_STACK]; /* counted */
    int depth;
    uint64_t now_ns;                    /* virtual host time */
    struct sim_entry *entry;            /* being executed */
    struct sim_stream *own_streams[16]; /* per-thread default streams, by device slot; counted */
    bool in_callback;                   /* a host function of a stream runs on this thread */
};

extern pthread_mutex_t sim_lock;
struct sim_tls *sim_self(void);

struct sim_call {
    struct sim_entry *entry;
    int flags;
};

CUresult sim_call_begin(struct sim_call *call, struct sim_entry *entry, uint64_t cost_ns,
                        int flags);
CUresult sim_call_end(struct sim_call *call, CUresult ret);

/* Rows live in a section of pointers; sim_call.c and sim_proc.c walk them. */
#define SIM_ROW(name)                                                                              \
    static struct sim_entry sim_entry_##name = {.symbol = #name, .address = (void *)name};         \
    __attribute__((used,                                                                           \
                   section("sim_entries"))) static struct sim_entry *const sim_entry_row_##name =  \
        &sim_entry_##name;

#define SIM_EXPORT(name, cost_ns, flags, params, body, args)                                       \
    SIM_ROW(name)                                                                                  \
    CUresult name params                                                                           \
    {                                                                                              \
        struct sim_call call;                                                                      \
        CUresult ret = sim_call_begin(&call, &sim_entry_##name, (cost_ns), (flags));               \
        return sim_call_end(&call, ret ? ret : body args);                                         \
    }

/* SIM_API(cuX, cost, flags, (parameters), (names)) { body } */
#define SIM_API(name, cost_ns, flags, params, args)                                                \
    static CUresult do_##name params;                                                              \
    SIM_EXPORT(name, cost_ns, flags, params, do_##name, args)                                      \
    static CUresult do_##name params

/* The same, with the twin whose stream 0 is the thread's own. */
#define SIM_API_PTSZ(name, cost_ns, flags, params, args)                                           \
    static CUresult do_##name params;                                                              \
    SIM_EXPORT(name, cost_ns, flags, params, do_##name, args)                                      \
    SIM_EXPORT(name##_ptsz, cost_ns, (flags) | SIM_PER_THREAD, params, do_##name, args)            \
    static CUresult do_##name params

#define SIM_API_PTDS(name, cost_ns, flags, params, args)                                           \
    static CUresult do_##name params;                                                              \
    SIM_EXPORT(name, cost_ns, flags, params, do_##name, args)                                      \
    SIM_EXPORT(name##_ptds, cost_ns, (flags) | SIM_PER_THREAD, params, do_##name, args)            \
    static CUresult do_##name params

struct sim_entry *const *sim_entry_rows(size_t *out_count);

/* ---- the process: what the environment asked for; written once ---- */
struct sim_process {
    bool inited; /* cuInit succeeded */
    bool forked; /* in a child of a process that had; written there before it can call us */
    int driver_version;
    int devices;
    uint64_t memory;
    bool strict;
    bool log_calls, log_ends;
    bool guard_freed; /* SIMCUDA_FREE=guard: freed memory is not mapped */
    bool managed_concurrent;
    uint64_t delay_us; /* real time before each op */
    uint64_t seed;
};
enum { SIM_MAX_DEVICES = 8 };
extern struct sim_process sim;

/* ---- sim_fault.c ---- */
void sim_fault_parse(const char *rules);
/* The code that this call is to fail with; *out_sticky: and the context with it. */
CUresult sim_fault_of(struct sim_entry *entry, bool *out_sticky);
/* An error of the caller that a real driver leaves undefined: aborts in strict mode. */
CUresult sim_misuse(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
