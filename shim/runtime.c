/* shim/runtime.c - see runtime.h. */
#define _GNU_SOURCE
#include "shim/runtime.h"
#include "capture/guard.h"
#include "capture/liveness.h"
#include "capture/record.h"
#include "capture/transfer.h"
#include "shim/elf.h"
#include "shim/fork_lock.h"
#include "shim/observe/allow.h"
#include "shim/observe/log.h"
#include "shim/observe/stats.h"
#include "shim/observe/sys.h"
#include "shim/resolve.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLDEST_DRIVER 12040 /* cuFuncGetParamInfo */
#define NEWEST_DRIVER 13999
#ifndef FIRST_SEGMENT /* -D for experiments */
#define FIRST_SEGMENT 8
#endif
#define MIN_SEGMENT 64

extern char **environ;
extern ag_fn const ag_drain_stubs[AG_ROWS], ag_count_stubs[AG_ROWS];
extern ag_fn
    ag_entry[AG_ROWS]; /* written by publish() only; read by every call, so one store a row */
__attribute__((visibility("hidden"))) ag_fn ag_counted[AG_ROWS];
__attribute__((visibility("hidden"))) ag_counter ag_calls[AG_ROWS];

/* Everything the process has one of. Written in init under `lock`, read-only afterwards unless it
 * says so. */
static struct ag_runtime {
    struct ag_fork_lock lock; /* rank 0: initialisation */
    _Atomic bool built; /* everything below may be read; set before the entries are published */
    _Atomic bool ready; /* the entries are published */
    _Atomic bool forked, leaving;
    struct ag_options options;
    struct ag_identity identity;
    struct ag_counters counters;
    ag_counter drains[AG_ROWS];
    struct ag_driver driver;
    struct ag_liveness liveness;
    struct ag_capture capture;
    unsigned long long loads_seen; /* under the lock of whoever builds */
} runtime;

/* The hook bodies come here through a jump in assembly: the load pairs with the store that init()
 * makes before it publishes them. */
struct ag_capture *ag_runtime_capture(void)
{
    atomic_load_explicit(&runtime.built, memory_order_acquire);
    return &runtime.capture;
}

static CUresult no_driver(void)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

#define AG_BODY(symbol) extern void ag_hook_##symbol(void);
#define AG_DECLARE_PURE(symbol)
#define AG_DECLARE_DRAIN_ALL(symbol)
#define AG_DECLARE_DRAIN_STREAM AG_BODY
#define AG_DECLARE_ENQUEUE AG_BODY
#define AG_DECLARE_TRACK AG_BODY
#define AG_DECLARE_CREATE AG_BODY
#define AG_DECLARE_RETIRE AG_BODY
#define AG_DECLARE_CAPTURE AG_BODY
#define AG_DECLARE_LOOKUP AG_BODY
#define AG_HOOK(symbol, class) AG_DECLARE_##class(symbol)
#include "shim/hooks.def"
#undef AG_HOOK
#undef AG_BODY

#define AG_BODY(symbol) ag_hook_##symbol,
#undef AG_DECLARE_PURE
#undef AG_DECLARE_DRAIN_ALL
#define AG_DECLARE_PURE(symbol) NULL,
#define AG_DECLARE_DRAIN_ALL(symbol) NULL,
#define AG_HOOK(symbol, class) AG_DECLARE_##class(symbol)
ag_fn const ag_body[AG_ROWS] = {
#include "shim/hooks.def"
};
#undef AG_HOOK

static ag_fn target(unsigned row, bool bare)
{
    if (!ag_body[row])
        return bare || ag_row_class[row] == AG_CLASS_PURE ? ag_real_slot[row] : ag_drain_stubs[row];
    /* Calls can only be counted where functions are handed out by us. */
    if (bare && !(ag_row_class[row] == AG_CLASS_LOOKUP && runtime.options.stats[0]))
        return ag_real_slot[row];
    return ag_driver_has(&runtime.driver, row) ? ag_body[row] : ag_real_slot[row];
}

/* Sends every export where it belongs. `bare`: to the driver, for good. */
static void publish(bool bare)
{
    const bool counted = runtime.options.stats[0] != 0;
    for (unsigned row = 0; row < AG_ROWS; row++) {
        const ag_fn to = target(row, bare);
        __atomic_store_n(&ag_counted[row], to, __ATOMIC_RELEASE);
        __atomic_store_n(&ag_entry[row], counted ? ag_count_stubs[row] : to, __ATOMIC_RELEASE);
    }
}

static void turned_off(struct ag_capture *cap)
{
    if (!atomic_load(&runtime.leaving))
        ag_log(AG_LEVEL_WARN, "holding is off: %s", atomic_load(&cap->off_reason));
    publish(true);
}

/* A name the table lacks matters only when the mapped driver is what defines it. */
static bool known(const char *name)
{
    return ag_driver_row_of_name(name) != AG_ROWS || !ag_driver_defines(name);
}

/* Called where graphs are built, seldom: has something been loaded that binds past the table? */
static bool may_build(struct ag_capture *cap)
{
    if (!ag_elf_unknown_import(known, &runtime.loads_seen))
        return !ag_resolve_leaked();
    ag_capture_wish_off(cap, "a loaded object binds a driver function that the shim does not know");
    return false;
}

void ag_runtime_leaked(void)
{
    if (atomic_load(&runtime.capture.off))
        return;
    ag_capture_wish_off(&runtime.capture, "too many unknown driver functions were asked for");
    ag_capture_settle(&runtime.capture);
}

/* pthread_create has another symbol version since glibc 2.34, so it is looked up. Not with dlsym:
 * that would clear the program's dlerror. The thread takes no signal of the program but those glibc
 * uses itself (setuid in all threads, cancellation). */
static bool start_thread(void *(*body)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*detach)(pthread_t);
    uint64_t all = ~(3ull << 31), old;
    pthread_t thread;
#ifdef __SANITIZE_THREAD__ /* the sanitizer has to see the thread */
    create = pthread_create;
    detach = pthread_detach;
#else
    create = (__typeof__(create))ag_resolve_libc("pthread_create");
    detach = (__typeof__(detach))ag_resolve_libc("pthread_detach");
#endif
    if (!create)
        return false;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    const int failed = create(&thread, NULL, body, argument);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof old);
    if (!failed && detach)
        detach(thread);
    return !failed;
}

static void write_stats(bool last)
{
    static const char *const modes[] = {"on", "off", "observe"};
    const char *reason = atomic_load(&runtime.capture.off_reason);
    const struct ag_stats_input in = {
        .options = &runtime.options,
        .identity = &runtime.identity,
        .counters = &runtime.counters,
        .version = AG_VERSION,
        .driver_version = runtime.driver.version,
        .mode = reason ? "off" : modes[runtime.options.mode],
        .off_reason = reason,
        .last = last,
    };
    ag_stats_write(&in);
}

static const char stopped[] = "the file that AUTOGRAPH_STOP_FILE names is there";

static bool stop_file_is_there(void)
{
    char path[AG_OPTION_PATH];
    struct ag_sys_file unused;
    return runtime.options.stop_file[0] &&
           ag_file_expand(path, sizeof path, runtime.options.stop_file, &runtime.identity) == 0 &&
           ag_sys_look(AT_FDCWD, path, &unused) == 0;
}

/* Counted as a look of the liveness thread: the process does not end in the middle of it (see leave()). */
static void mind_the_stop_file(struct ag_capture *cap)
{
    if (!stop_file_is_there())
        return;
    atomic_fetch_add(&runtime.liveness.looking, 1);
    ag_capture_wish_off(cap, stopped);
    ag_capture_settle(cap);
    atomic_fetch_sub(&runtime.liveness.looking, 1);
}

static void tick(struct ag_capture *cap)
{
    mind_the_stop_file(cap);
    write_stats(false);
}

static void in_child(void)
{
    atomic_store(&runtime.forked, true);
    atomic_store(&runtime.capture.off, true);
    publish(true);
}

static void after_fork(void)
{
    ag_thread.busy = 0;
#ifndef AG_MUTANT_FORK_LOCKS /* the child goes through the hooks and their locks as before */
    in_child();
#endif
}

/* Handlers registered later than the program's first driver call have run; those that run now find
 * the driver bare. */
static void leave(void)
{
    if (atomic_load(&runtime.forked) || atomic_exchange(&runtime.leaving, true))
        return;
    const char *reason = atomic_load(&runtime.capture.off_reason);
    ag_capture_settle(&runtime.capture);
    for (unsigned i = 0; i < 100 && atomic_load(&runtime.liveness.looking); i++)
        ag_sys_sleep_us(1000);
    if (!reason)
        atomic_store(&runtime.capture.off_reason, NULL);
    ag_record_all(&runtime.capture);
    write_stats(true);
}

/* Why nothing may be held in this process, or NULL. */
static const char *off_reason(void)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    if (runtime.driver.version < OLDEST_DRIVER)
        return "the driver is older than 12.4";
    if (blocking && strcmp(blocking, "0") != 0)
        return "CUDA_LAUNCH_BLOCKING is set";
    if (!ag_program_allowed(runtime.options.programs))
        return "AUTOGRAPH_PROGRAMS says no to this program";
    if (stop_file_is_there())
        return stopped;
    if (ag_elf_unknown_import(known, &runtime.loads_seen))
        return "a loaded object binds a driver function that the shim does not know";
    if (ag_resolve_leaked())
        return "too many unknown driver functions were asked for";
    return NULL;
}

/* A driver that nobody has checked is watched only, unless the user asks for more. */
static void mind_a_new_driver(void)
{
    if (runtime.driver.version <= NEWEST_DRIVER || runtime.options.mode != AG_MODE_ON ||
        ag_options_given(&runtime.options, "AUTOGRAPH"))
        return;
    runtime.options.mode = AG_MODE_OBSERVE;
    ag_log(AG_LEVEL_WARN,
           "the driver is newer than 13.x, nothing is held: AUTOGRAPH=on asks for it");
}

static void init_capture(void)
{
    const uint32_t most = (uint32_t)runtime.options.max_segment;
    runtime.counters.rows = AG_ROWS;
    runtime.counters.names = ag_row_names;
    runtime.counters.calls = ag_calls;
    runtime.counters.drains = runtime.drains;
    runtime.liveness =
        (struct ag_liveness){.cap = &runtime.capture, .bound_us = runtime.options.flush_us};
    struct ag_capture *cap = &runtime.capture;
    cap->drv = &runtime.driver;
    cap->options = &runtime.options;
    cap->counters = &runtime.counters;
    cap->limits = (struct ag_policy_limits){
        .first_segment = FIRST_SEGMENT < most ? FIRST_SEGMENT : most,
        .min_segment = MIN_SEGMENT < most ? MIN_SEGMENT : most,
        .max_segment = most,
        .min_graph = 2,
        .min_seen = (uint32_t)runtime.options.min_seen,
        .max_nodes = 1 << 16,
        .pace = (enum ag_pace_kind)runtime.options.pace,
    };
    cap->keeps_order = getenv("CUDA_DEVICE_MAX_CONNECTIONS") != NULL;
    cap->turned_off = turned_off;
    cap->start_thread = start_thread;
    cap->may_build = may_build;
    cap->tick = tick;
    cap->liveness = &runtime.liveness;
}

static void init(void)
{
    int version = 0;
    ag_resolve_pin();
    ag_options_load(&runtime.options, environ);
    ag_identity_read(&runtime.identity);
    ag_log_open(&runtime.options, &runtime.identity);
    runtime.driver = (struct ag_driver){ag_real_slot, 0};
    if (ag_real(&runtime.driver, cuDriverGetVersion)(&version) == CUDA_SUCCESS)
        runtime.driver.version = version;
    mind_a_new_driver();
    init_capture();
    const char *reason = runtime.options.mode == AG_MODE_OFF ? NULL : off_reason();
    const bool off = reason || runtime.options.mode == AG_MODE_OFF;
    atomic_store(&runtime.capture.off_reason, reason);
    atomic_store(&runtime.capture.off, off);
    if (!off)
        ag_first_watch(&runtime.capture.first);
    if (reason)
        ag_log(AG_LEVEL_WARN, "holding is off: %s", reason);
    pthread_atfork(NULL, NULL, after_fork);
    atexit(leave);
    at_quick_exit(leave);
    atomic_store_explicit(&runtime.built, true, memory_order_release);
    publish(off);
}

ag_fn ag_runtime_first(unsigned row)
{
    if (ag_thread.busy)
        return ag_real_slot[row] ? ag_real_slot[row] : (ag_fn)no_driver;
    if (!atomic_load_explicit(&runtime.ready, memory_order_acquire)) {
        if (!ag_driver_load())
            return (ag_fn)no_driver;
        ag_thread.busy++;
        const bool forked_meanwhile = ag_fork_lock_take(&runtime.lock);
        if (!atomic_load(&runtime.ready))
            forked_meanwhile ? in_child() : init();
        atomic_store_explicit(&runtime.ready, true, memory_order_release);
        ag_fork_lock_give(&runtime.lock);
        ag_thread.busy--;
    }
    return __atomic_load_n(&ag_entry[row], __ATOMIC_ACQUIRE);
}

/* A thunk's call, perhaps the first that enqueues. */
static void note_call(struct ag_capture *cap, unsigned row)
{
    if (atomic_load_explicit(&cap->first.enqueued, memory_order_relaxed))
        return;
    switch (ag_first_kind_of(row)) {
    case AG_FIRST_ENQUEUES:
        ag_first_note(&cap->first);
        break;
    case AG_FIRST_LOADS:
        ag_prepare_fills_at_rest(cap);
        break;
    case AG_FIRST_MAKES:
        break;
    }
}

ag_fn ag_drain_thunk(unsigned row)
{
    note_call(ag_runtime_capture(), row);
    ag_drain(ag_runtime_capture(), AG_DRAIN_ASYNC, AG_ABOUT_ALL, row);
    return ag_real_slot[row];
}

ag_fn ag_pool_thunk(unsigned number)
{
    atomic_fetch_add(&ag_unseen_calls, 1);
    if (!atomic_load(&runtime.forked))
        ag_first_note(&runtime.capture.first);
#ifndef AG_MUTANT_UNKNOWN_PASSES /* what the table lacks does not drain */
    if (atomic_load(&runtime.ready))
        ag_drain(ag_runtime_capture(), AG_DRAIN_ASYNC, AG_ABOUT_ALL, AG_ROW_cuInit);
#endif
    return ag_pool_real[number];
}

#ifdef AG_MUTANT_EARLY_START /* a log and a thread in every process, before there is a driver */
static void *idle(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

__attribute__((constructor)) static void early_start(void)
{
    ag_options_load(&runtime.options, environ);
    ag_log_open(&runtime.options, &runtime.identity);
    start_thread(idle, NULL);
}
#endif
