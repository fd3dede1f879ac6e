/* tools/simcuda/sim_call.c - prologue and epilogue of every entry point; start and end.
 * Called by  the exports (SIM_API)      Calls  sim_fault.c, sim_log.c, sim_context.c, sim_capture.c
 * Threads    takes sim_lock in begin, gives it back in end
 * Promise    after fork() the child of a process that used the driver gets NOT_INITIALIZED, at once
 * Start at   sim_call_begin()                                                               */
#define _GNU_SOURCE
#include "tools/simcuda/sim_call.h"

#include <stdlib.h>
#include <string.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_log.h"
#include "tools/simcuda/sim_stream.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
struct sim_process sim;

static __thread struct sim_tls tls;
static pthread_key_t tls_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int threads;

extern struct sim_entry *const __start_sim_entries[], *const __stop_sim_entries[];

struct sim_entry *const *sim_entry_rows(size_t *out_count)
{
    *out_count = (size_t)(__stop_sim_entries - __start_sim_entries);
    return __start_sim_entries;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void forget_thread(void *p)
{
    struct sim_tls *t = p;
    pthread_mutex_lock(&sim_lock);
    for (size_t i = 0; i < sizeof t->own_streams / sizeof *t->own_streams; i++)
        if (t->own_streams[i]) {
            sim_stream_close(t->own_streams[i]);
            sim_unref(t->own_streams[i]);
            t->own_streams[i] = NULL;
        }
    while (t->depth > 0)
        sim_unref(t->stack[--t->depth]);
    pthread_mutex_unlock(&sim_lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&sim_lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&sim_lock);
}

static void after_fork_child(void)
{
    pthread_mutex_unlock(&sim_lock);
    sim.forked |= sim.inited;
    sim_log_forget();
}

static void mark_drains(const char *list)
{
    size_t n;
    struct sim_entry *const *rows = sim_entry_rows(&n);
    char *copy = strdup(list), *rest = copy;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        for (size_t i = 0; i < n; i++)
            if (!strcmp(rows[i]->symbol, name))
                rows[i]->drains = 1;
    free(copy);
}

static void start(void)
{
    sim.driver_version = (int)number_of("SIMCUDA_DRIVER", 13000);
    sim.devices = (int)number_of("SIMCUDA_DEVICES", 1);
    if (sim.devices > SIM_MAX_DEVICES)
        sim.devices = SIM_MAX_DEVICES;
    sim.memory = number_of("SIMCUDA_MEMORY", 8ull << 30);
    const char *strict = getenv("SIMCUDA_STRICT"), *freed = getenv("SIMCUDA_FREE");
    sim.strict = strict && !strcmp(strict, "abort");
    sim.guard_freed = freed && !strcmp(freed, "guard");
    sim.log_calls = number_of("SIMCUDA_LOG_CALLS", 0) != 0;
    sim.log_ends = number_of("SIMCUDA_LOG_ENDS", 0) != 0;
    sim.managed_concurrent = number_of("SIMCUDA_CONCURRENT_MANAGED", 1) != 0;
    sim.delay_us = number_of("SIMCUDA_DELAY_US", 0);
    sim.seed = number_of("SIMCUDA_SEED", 1);
    if (getenv("SIMCUDA_DRAIN"))
        mark_drains(getenv("SIMCUDA_DRAIN"));
    sim_fault_parse(getenv("SIMCUDA_FAULT"));
    pthread_key_create(&tls_key, forget_thread);
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

__attribute__((destructor)) static void finish(void)
{
    const char *path = getenv("SIMCUDA_STATS");
    if (!path || !*path || sim.forked)
        return;
    pthread_mutex_lock(&sim_lock);
    if (sim_stats.calls)
        sim_clock_write_stats(path);
    pthread_mutex_unlock(&sim_lock);
}

struct sim_tls *sim_self(void)
{
    if (!tls.known) {
        tls.known = true;
        tls.number = ++threads;
        tls.now_ns = sim_stats.latest_ns;
        pthread_setspecific(tls_key, &tls);
    }
    return &tls;
}

/* Context, sticky error, somebody's capture: what most entries look at first. */
static CUresult check_context(int flags)
{
    struct sim_context *ctx = sim_context_current();
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->destroyed)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (ctx->sticky && !(flags & SIM_PASSIVE))
        return ctx->sticky;
    return CUDA_SUCCESS;
}

CUresult sim_call_begin(struct sim_call *call, struct sim_entry *entry, uint64_t cost_ns, int flags)
{
    call->entry = NULL;
    if (__builtin_expect(sim.forked, 0) && flags & SIM_INIT)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_once(&once, start);
    pthread_mutex_lock(&sim_lock);
    call->entry = entry;
    call->flags = flags;
    struct sim_tls *self = sim_self();
    self->entry = entry;
    self->per_thread = (flags & SIM_PER_THREAD) != 0;
    entry->calls++;
    sim_stats.calls++;
    sim_clock_spend(cost_ns);
    if ((flags & SIM_INIT) && !sim.inited)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (entry->faults) {
        bool sticky = false;
        CUresult code = sim_fault_of(entry, &sticky);
        if (code && sticky && sim_context_current())
            sim_context_break(sim_context_current(), code);
        if (code)
            return code;
    }
    if ((flags & SIM_CTX) != SIM_CTX)
        return CUDA_SUCCESS;
    if (self->in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult ret = check_context(flags);
    if (ret)
        return ret;
    if (flags & SIM_UNSAFE)
        ret = sim_capture_forbids_unsafe();
    if (!ret && entry->drains)
        sim_context_drain(sim_context_current());
    return ret;
}

CUresult sim_call_end(struct sim_call *call, CUresult ret)
{
    if (!call->entry)
        return ret;
    if (sim.log_calls)
        sim_log_call(sim_self(), call->entry->symbol, ret);
    pthread_mutex_unlock(&sim_lock);
    return ret;
}
