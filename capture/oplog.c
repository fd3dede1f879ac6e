/* capture/oplog.c - see oplog.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/oplog.h"
#include "capture/event.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/progress.h"
#include "capture/track.h"
#include "shim/observe/log.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Thread_local struct ag_thread ag_thread __attribute__((tls_model("initial-exec")));
__attribute__((visibility("hidden"))) _Atomic uint32_t ag_open_logs;
__attribute__((visibility("hidden"))) _Atomic uint32_t ag_unseen_calls;

uint64_t ag_thread_id(void)
{
    static AG_ATOMIC(uint64_t) given;
    if (!ag_thread.id)
        ag_thread.id = atomic_fetch_add(&given, 1) + 1;
    return ag_thread.id;
}

uint64_t ag_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct ag_oplog *find_log(struct ag_capture *cap, CUcontext ctx)
{
    const uint32_t n = atomic_load_explicit(&cap->contexts, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        struct ag_oplog *log = atomic_load_explicit(&cap->logs[i], memory_order_relaxed);
        if (log->ctx == ctx)
            return log;
    }
    return NULL;
}

static struct ag_oplog *make_log(struct ag_capture *cap, CUcontext ctx)
{
    struct ag_oplog *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->cap = cap;
    log->ctx = ctx;
    log->funcs.allowed = cap->options->kernels[0] ? cap->options->kernels : NULL;
    log->room = cap->limits.max_segment;
    ag_ring_open(&log->ring, (uintptr_t)ctx);
    log->ops = calloc(log->room, sizeof *log->ops);
    log->entries = 4096;
    log->by_entry = calloc(log->entries + 1, sizeof *log->by_entry);
    log->budget = ag_budget_create(cap->options->max_bytes, log->entries);
    log->seen_calls = atomic_load(&ag_unseen_calls);
    if (log->ops && log->by_entry && log->budget)
        return log;
    if (log->budget)
        ag_budget_destroy(log->budget);
    free(log->by_entry);
    free(log->ops);
    free(log);
    return NULL;
}

struct ag_oplog *ag_oplog_of(struct ag_capture *cap, CUcontext ctx)
{
    struct ag_oplog *log = find_log(cap, ctx);
    if (log)
        return log;
    ag_lock_take(&cap->contexts_lock);
    const uint32_t n = atomic_load(&cap->contexts);
    log = find_log(cap, ctx);
    if (!log && n < AG_CONTEXTS_MAX && (log = make_log(cap, ctx))) {
        atomic_store(&cap->logs[n], log);
        atomic_store_explicit(&cap->contexts, n + 1, memory_order_release);
    }
    ag_lock_give(&cap->contexts_lock);
    return log;
}

/* The legacy stream belongs to the current context; any other must say that it does. */
static bool belongs(struct ag_oplog *log, CUstream handle, uint64_t *out_id)
{
    const struct ag_driver *drv = log->cap->drv;
    CUcontext ctx = NULL;
    unsigned long long id = 0;
    if (handle != CU_STREAM_LEGACY &&
        (ag_real(drv, cuStreamGetCtx)(handle, &ctx) != CUDA_SUCCESS || ctx != log->ctx))
        return false;
    if (ag_real(drv, cuStreamGetId)(handle, &id) != CUDA_SUCCESS)
        return false;
    *out_id = id;
    return true;
}

/* Does the legacy stream neither wait for it nor it for the legacy stream? */
static bool is_apart(struct ag_capture *cap, CUstream handle)
{
    unsigned flags = 0;
    return handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD &&
           ag_real(cap->drv, cuStreamGetFlags)(handle, &flags) == CUDA_SUCCESS &&
           flags & CU_STREAM_NON_BLOCKING;
}

static struct ag_stream *make_stream(struct ag_oplog *log, CUstream handle)
{
    struct ag_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->handle = handle;
    s->log = log;
    const unsigned before = HASH_COUNT(log->streams);
    if (ag_track_make(log, s))
        HASH_ADD_PTR(log->streams, handle, s);
    if (s->track && HASH_COUNT(log->streams) > before)
        return s;
    if (s->track)
        ag_track_leave(s);
    free(s);
    return NULL;
}

struct ag_stream *ag_stream_of(struct ag_oplog *log, CUstream handle)
{
    const uint32_t epoch = atomic_load(&log->cap->epoch);
    struct ag_stream *s;
    uint64_t id;
    HASH_FIND_PTR(log->streams, &handle, s);
    if (s && s->epoch == epoch)
        return s;
    if (!belongs(log, handle, &id) || (!s && !(s = make_stream(log, handle))))
        return NULL;
    if (s->id != id) {
        if (!ag_track_renew(s))
            return NULL;
        s->apart = is_apart(log->cap, handle);
    }
    s->id = id;
    s->epoch = epoch;
    atomic_store(&log->used, true);
    return s;
}

void ag_stream_free(struct ag_stream *s)
{
    struct ag_oplog *log = s->log;
    ag_track_leave(s);
    HASH_DEL(log->streams, s);
    ag_idle_forget(log, s);
    atomic_fetch_add(&log->cap->epoch, 1);
    free(s);
}

void ag_oplog_forget(struct ag_oplog *log)
{
    for (struct ag_stream *s = log->streams; s; s = s->hh.next)
        ag_track_forget(s->track);
    log->generation++;
    for (unsigned i = 0; i < AG_MADE_SLOTS; i++)
        atomic_store_explicit(&log->made[i], NULL, memory_order_relaxed);
    ag_sigs_clear(&log->sigs);
    ag_attrs_clear(&log->attrs);
    ag_funcs_clear(&log->funcs);
}

void ag_capture_release(struct ag_capture *cap)
{
    for (uint32_t i = 0; i < atomic_load(&cap->contexts); i++) {
        struct ag_oplog *log = atomic_load(&cap->logs[i]);
        struct ag_stream *s, *next;
        ag_oplog_forget(log);
        HASH_ITER (hh, log->streams, s, next)
            ag_stream_free(s);
        ag_budget_destroy(log->budget);
        free(log->by_entry);
        free(log->pointers);
        free(log->args);
        free(log->ops);
        free(log);
    }
    atomic_store(&cap->contexts, 0);
    ag_memory_clear(&cap->memory);
    ag_events_clear(&cap->events);
    ag_thread.stream = NULL;
}

bool ag_oplog_check(const struct ag_oplog *log, int *broken)
{
    size_t end = 0;
    *broken = 0;
    if (log->sent > log->n || log->n > log->room)
        *broken = 1;
    else if ((log->n > 0) != (log->cur != NULL) || (log->n > 0) != (atomic_load(&log->open) == 1))
        *broken = 2;
    else if (log->sent != 0 && log->sent != log->n)
        *broken = 6;
    for (uint32_t i = 0; i < log->n && !*broken; i++) {
        if (i >= log->sent && !log->ops[i].sig->proven)
            *broken = 3;
        if (i >= log->sent && !ag_event_counts(log, &log->ops[i]))
            *broken = 7;
        if (log->ops[i].args < end)
            *broken = 4;
        end = log->ops[i].args + log->ops[i].sig->func->bytes;
    }
    if (end > log->args_used || log->args_used > log->args_room)
        *broken = 4;
    return !*broken;
}

void ag_oplog_enter_current(struct ag_oplog *log)
{
    ag_thread.busy++;
    ag_lock_take(&log->lock);
}

/* Somebody who waits for a log's lock. */
struct wait {
    CUstream about;
    bool asked, elsewhere, apart; /* about the stream: is the rest known, is it another context's */
    uint32_t submission;       /* seen at the last look, 0: none that the call need not wait for */
    struct ag_progress holder; /* of that submission */
    uint64_t had_ns;           /* by all holders inside such submissions */
};

/* Calls the driver without a lock: if it blocked here, so would the program's own call. */
static void ask(const struct ag_oplog *log, struct wait *w)
{
    const struct ag_driver *drv = log->cap->drv;
    const bool own = w->about != CU_STREAM_LEGACY && w->about != CU_STREAM_PER_THREAD;
    CUcontext ctx = NULL;
    const CUresult ret =
        own ? ag_real(drv, cuStreamGetCtx)(w->about, &ctx) : ag_real(drv, cuCtxGetCurrent)(&ctx);
    w->asked = true;
    w->elsewhere = ret == CUDA_SUCCESS && ctx && ctx != log->ctx;
    w->apart = is_apart(log->cap, w->about);
}

/* Is the call in order with the work of this stream? The legacy stream of a context and its other streams wait for
 * each other's work, unless they are apart. */
static bool is_in_order(const struct ag_oplog *log, struct wait *w, CUstream stream, bool apart)
{
    if (stream != CU_STREAM_LEGACY && w->about != CU_STREAM_LEGACY)
        return stream == w->about;
    if (!w->asked)
        ask(log, w);
    return !w->elsewhere && !(stream == CU_STREAM_LEGACY ? w->apart : apart);
}

static bool is_held_for(const struct ag_oplog *log, struct wait *w)
{
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++) {
        const CUstream stream = atomic_load(&log->owed[i].stream);
        if (stream && is_in_order(log, w, stream, atomic_load(&log->owed[i].apart)))
            return true;
    }
    return false;
}

/* The lock is taken. Is the holder inside a submission that the caller need not wait for? A call that submits
 * nothing is behind none. */
static bool may_leave_alone(struct ag_oplog *log, struct wait *w)
{
    const CUstream to = atomic_load(&log->submitting);
    const bool apart = atomic_load(&log->submitting_apart);
    if (!to || w->about == AG_ABOUT_NO_STREAM)
        return to != NULL;
    return !is_in_order(log, w, to, apart) && !is_held_for(log, w);
}

/* How long a holder may be at it, on a processor or asleep in the driver: all that the longest segment takes
 * on a fast host several times. The time for which it waits for a processor does not count: to give up then
 * would let the driver see calls in another order than the program made them. */
#define GIVE_UP_NS 100000000u
#define LOOK_US 10000

/* True: left alone. */
static bool look(struct ag_oplog *log, struct wait *w)
{
    const uint32_t now = atomic_load(&log->submission);
    const int thread = atomic_load(&log->submitter);
    if (!may_leave_alone(log, w) || atomic_load(&log->submission) != now) {
        w->submission = 0;
        return false;
    }
    if (atomic_load(&log->given_up) == now)
        return true;
    if (w->submission != now)
        w->holder = (struct ag_progress){0};
    w->submission = now;
    w->had_ns += ag_progress_since(&w->holder, thread, 2000ull * LOOK_US);
    if (w->had_ns < GIVE_UP_NS)
        return false;
    atomic_store(&log->given_up, now);
    return true;
}

static bool wait_for(struct ag_oplog *log, CUstream about)
{
    struct wait w = {.about = about ? about : CU_STREAM_LEGACY};
    if (about == AG_ABOUT_ALL) {
        ag_lock_wait(&log->lock);
        return true;
    }
    while (!look(log, &w))
        if (ag_lock_wait_for(&log->lock, LOOK_US))
            return true;
    return false;
}

bool ag_oplog_enter_current_for(struct ag_oplog *log, CUstream about)
{
    ag_thread.busy++;
    if (ag_lock_try(&log->lock) || wait_for(log, about))
        return true;
    ag_thread.busy--;
    return false;
}

/* On the stack of contexts, or, where the driver refuses that, in place of its top. */
static void make_current(struct ag_oplog *log)
{
    const struct ag_driver *drv = log->cap->drv;
    CUcontext now = NULL;
    if (!atomic_load(&log->used)) /* the context may be gone; there is nothing to call it for */
        return;
    if (ag_real(drv, cuCtxGetCurrent)(&now) != CUDA_SUCCESS || now == log->ctx)
        return;
    log->over = now;
    log->pushed = ag_real(drv, cuCtxPushCurrent_v2)(log->ctx) == CUDA_SUCCESS;
    log->swapped = !log->pushed && ag_real(drv, cuCtxSetCurrent)(log->ctx) == CUDA_SUCCESS;
}

/* The program's next call is for the context that it thinks is current, one entry of its stack more or less. */
static void make_program_current(struct ag_oplog *log)
{
    const struct ag_driver *drv = log->cap->drv;
    CUcontext ours;
    if (log->pushed && ag_real(drv, cuCtxPopCurrent_v2)(&ours) != CUDA_SUCCESS)
        log->swapped = true;
    if (log->swapped)
        ag_real(drv, cuCtxSetCurrent)(log->over);
    log->pushed = log->swapped = false;
}

void ag_oplog_enter(struct ag_oplog *log)
{
    ag_oplog_enter_current(log);
    make_current(log);
}

bool ag_oplog_enter_for(struct ag_oplog *log, CUstream about)
{
    const bool entered = ag_oplog_enter_current_for(log, about);
    if (entered)
        make_current(log);
    return entered;
}

bool ag_oplog_try_enter(struct ag_oplog *log)
{
    ag_thread.busy++;
    if (!ag_lock_try(&log->lock) && !ag_lock_wait_for(&log->lock, LOOK_US)) {
        ag_thread.busy--;
        return false;
    }
    make_current(log);
    return true;
}

void ag_oplog_submits(struct ag_oplog *log, const struct ag_stream *s)
{
    const uint32_t n = atomic_load_explicit(&log->submission, memory_order_relaxed) + 1;
    if (!ag_thread.number)
        ag_thread.number = ag_progress_self();
    atomic_store_explicit(&log->submission, n ? n : 1, memory_order_relaxed);
    atomic_store_explicit(&log->submitter, ag_thread.number, memory_order_relaxed);
    /* Released, as the next: who reads it reads this number or a later one afterwards. */
    atomic_store_explicit(&log->submitting_apart, s->apart, memory_order_release);
    atomic_store_explicit(&log->submitting, s->handle, memory_order_release);
}

void ag_oplog_submitted(struct ag_oplog *log)
{
    atomic_store_explicit(&log->submitting, NULL, memory_order_relaxed);
}

void ag_oplog_owes(struct ag_oplog *log, const struct ag_stream *s)
{
    if (log->owed[s->lane].ops++)
        return;
    atomic_store_explicit(&log->owed[s->lane].apart, s->apart, memory_order_relaxed);
    atomic_store_explicit(&log->owed[s->lane].stream, s->handle, memory_order_release);
}

void ag_oplog_gave(struct ag_oplog *log, const struct ag_stream *s)
{
    if (--log->owed[s->lane].ops == 0)
        atomic_store_explicit(&log->owed[s->lane].stream, NULL, memory_order_release);
}

void ag_oplog_leave(struct ag_oplog *log)
{
    struct ag_capture *cap = log->cap;
    if (__builtin_expect(log->pushed | log->swapped, 0))
        make_program_current(log);
    ag_lock_give(&log->lock);
    ag_thread.busy--;
    if (atomic_load_explicit(&cap->off_reason, memory_order_relaxed))
        ag_capture_settle(cap);
}

void ag_capture_wish_off(struct ag_capture *cap, const char *reason)
{
    const char *none = NULL;
    atomic_compare_exchange_strong(&cap->off_reason, &none, reason);
}

/* Codes after which the context answers every call with the same code (cuda.h: "the process must be
 * relaunched" or "all existing device memory allocations from this context are invalid"). */
bool ag_sticky(CUresult ret)
{
    switch ((int)ret) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        return true;
    default:
        return false;
    }
}
