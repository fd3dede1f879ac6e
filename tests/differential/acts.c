/* tests/differential/acts.c - what a random program does besides launching and copying.
 * Called by  run.c                       Calls  launch.c, buffers.c, the driver API
 * Threads    see state.h
 * Promise    what is said does not depend on how fast the device is: a query says nothing but errors
 * Start at   df_act() */
#define _GNU_SOURCE
#include "tests/differential/state.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

CUresult df_say(struct df_step *step, const char *what, CUresult ret)
{
    df_text_add(&step->run->said[step->track], "%u.%u@%u %s=%d\n", step->action->id,
                step->iteration, step->lane->index, what, ret);
    return ret;
}

CUresult df_say_drained(struct df_step *step, const char *what, uint64_t before, CUresult ret)
{
    df_expect_drain(step, before);
    return df_say(step, what, ret);
}

uint32_t df_value(const struct df_step *step, int pick)
{
    uint32_t base = step->action->pick[pick];
    uint64_t mixed = base + ((uint64_t)step->iteration << 32);
    switch (step->action->motion) {
    case DF_COUNT:
        return base + step->iteration;
    case DF_JUMP:
        return (uint32_t)df_random(&mixed);
    case DF_PARITY:
        return base + step->iteration % 2u;
    default:
        return base;
    }
}

struct df_stream *df_stream_at(struct df_step *step, int slot, int *out_slot)
{
    if (step->lane->stream[slot].kind == DF_PER_THREAD && step->thread != step->lane->home)
        slot = 1;
    struct df_stream *stream = &step->lane->stream[slot];
    unsigned long long id = 0;
    if (!stream->id && !cuStreamGetId(stream->handle, &id)) {
        stream->id = id;
        df_expect_stream(step, stream);
    }
    if (out_slot)
        *out_slot = slot;
    return stream;
}

struct df_stream *df_stream_of(struct df_step *step, int *out_slot)
{
    return df_stream_at(step, step->action->stream, out_slot);
}

int df_owned(const struct df_lane *lane, int slot, uint32_t pick)
{
    int owned[DF_BUFFERS], n = 0;
    for (int i = 0; i < DF_BUFFERS; i++)
        if (lane->buffer[i].owner == slot)
            owned[n++] = i;
    return n ? owned[pick % (uint32_t)n] : -1;
}

struct df_function *df_function_of(struct df_lane *lane, uint32_t pick)
{
    static const uint8_t likely[] = {0, 0, 0, 1, 1, 2, 2};
    int m = likely[pick % 7u];
    if (!lane->module[m].functions)
        return NULL;
    return &lane->module[m].function[pick / 7u % (uint32_t)lane->module[m].functions];
}

static void open_gate(struct df_run *run, struct df_lane *lane)
{
    if (!lane->blocked)
        return;
    __atomic_store_n(&lane->word[1], lane->gate, __ATOMIC_RELEASE);
    lane->blocked = false;
    atomic_fetch_sub(&run->closed, 1);
}

/* The next value of the lane's gate, closed until then. */
static uint32_t close_gate(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    pthread_mutex_lock(&step->run->held);
    if (!lane->blocked)
        atomic_fetch_add(&step->run->closed, 1);
    pthread_mutex_unlock(&step->run->held);
    lane->blocked = true;
    return ++lane->gate;
}

void df_hold_others(struct df_step *step)
{
    struct df_run *run = step->run;
    const bool alone = run->plan->tracks == 1 || !run->plan->shared_context;
    pthread_mutex_lock(&run->held);
    while (!alone && atomic_load(&run->closed)) {
        pthread_mutex_unlock(&run->held);
        usleep(20);
        pthread_mutex_lock(&run->held);
    }
}

void df_let_others_go(struct df_step *step)
{
    pthread_mutex_unlock(&step->run->held);
}

static CUresult load(struct df_step *step, int module, int image)
{
    df_hold_others(step);
    const CUresult ret = df_lane_load(step->lane, module, image);
    df_let_others_go(step);
    return ret;
}

void df_open_gates(struct df_step *step)
{
    if (step->run->plan->tracks > 1) {
        open_gate(step->run, step->lane);
        return;
    }
    for (uint32_t i = 0; i < step->run->plan->lanes; i++)
        open_gate(step->run, &step->run->lane[i]);
}

static void synchronise(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    struct df_stream *stream = df_stream_of(step, NULL);
    df_open_gates(step);
    uint64_t before = df_enter(step);
    switch (step->action->pick[0] % 4u) {
    case 0:
        df_say_drained(step, "context", before, cuCtxSynchronize());
        for (int i = 0; i < DF_STREAMS; i++)
            df_show(step, &lane->stream[i]);
        break;
    case 1:
        df_say_drained(step, "event", before,
                       cuEventSynchronize(lane->event[step->action->pick[1] % DF_EVENTS]));
        break;
    default:
        df_say_drained(step, "stream", before, cuStreamSynchronize(stream->handle));
        df_show(step, stream);
        break;
    }
}

static CUresult poll_once(struct df_step *step, struct df_stream *stream, CUevent event)
{
    return step->action->pick[0] % 2u ? cuStreamQuery(stream->handle) : cuEventQuery(event);
}

static void query(struct df_step *step)
{
    struct df_stream *stream = df_stream_of(step, NULL);
    int number = (int)(step->action->pick[1] % DF_EVENTS);
    CUevent event = step->lane->event[number];
    uint64_t before = df_enter(step);
    if (step->action->pick[2] % 3u) { /* a glance */
        CUresult ret = poll_once(step, stream, event);
        df_say_drained(step, "query", before, ret == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : ret);
        return;
    }
    df_open_gates(step);
    CUresult ret;
    if (step->action->pick[0] % 2u == 0)
        df_record(step, stream, number);
    before = df_enter(step);
    while ((ret = poll_once(step, stream, event)) == CUDA_ERROR_NOT_READY)
        usleep(20);
    df_say_drained(step, "polled", before, ret);
    df_show(step, stream);
}

static void set_limit(struct df_step *step, struct df_function *f, int limit)
{
    CUresult ret =
        cuFuncSetAttribute(f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit);
    if (!df_say(step, "limit", ret))
        f->limit = limit;
}

/* Raise the limit, use it, lower it, launch again: what libraries do around one kernel. */
static void raise_and_lower(struct df_step *step, struct df_function *f)
{
    struct df_action greedy = *step->action;
    struct df_step inner = *step;
    inner.action = &greedy;
    greedy.pick[3] |= 3u << 8; /* all the shared memory that is allowed */
    greedy.form = 4;
    set_limit(step, f, 96 * 1024);
    df_launch(&inner);
    set_limit(step, f, (step->action->pick[2] % 2u ? 48 : 32) * 1024);
    df_launch(&inner);
}

static void attribute(struct df_step *step)
{
    static const int limits[] = {64, 96, 80, 48, 16, 32};
    struct df_function *f = df_function_of(step->lane, step->action->pick[0]);
    if (!f)
        return;
    uint32_t way = step->action->pick[1] % 8u;
    if (way < 3)
        set_limit(step, f, f->limit);
    else if (way < 6)
        raise_and_lower(step, f);
    else
        set_limit(step, f, 1024 * limits[df_value(step, 2) % 6u]);
}

static void module(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    uint32_t pick = df_value(step, 0);
    int m = pick % 4u < 2 ? 2 : pick % 4u == 2 ? 1 : 0;
    int image = m == 0   ? 1
                : m == 1 ? 4 + (int)(df_value(step, 1) % (uint32_t)(df_images_count() - 4))
                         : 5 - lane->module[2].image;
    df_open_gates(step);
    uint64_t before = df_enter(step);
    if (df_say_drained(step, "unload", before, cuModuleUnload(lane->module[m].handle)))
        return;
    lane->module[m].functions = 0;
    df_say(step, "load", load(step, m, image));
}

static void spin(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    uint32_t value = ++lane->spins;
    struct timespec start, now;
    df_open_gates(step);
    if (df_launch_flag(step, &lane->module[DF_MODULES - 1].function[0], 0, value))
        return;
    clock_gettime(CLOCK_MONOTONIC, &start);
    long limit = step->run->patience;
    do {
        if (__atomic_load_n(&lane->word[0], __ATOMIC_ACQUIRE) == value) {
            df_say(step, "seen", CUDA_SUCCESS);
            return;
        }
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < limit);
    df_say(step, "never seen", CUDA_ERROR_TIMEOUT);
}

struct waiter {
    const volatile uint32_t *word;
    uint32_t value;
    struct df_stream *stream;
};

static void CUDA_CB stand_at_gate(void *data)
{
    struct waiter *w = data;
    while (__atomic_load_n(w->word, __ATOMIC_ACQUIRE) < w->value)
        usleep(20);
    free(w);
}

static void CUDA_CB called(void *data)
{
    struct waiter *w = data;
    atomic_store(&w->stream->called, atomic_load(&w->stream->called) * 31u + w->value);
    free(w);
}

static void callback(struct df_step *step, CUhostFn fn, uint32_t value)
{
    struct df_stream *stream = df_stream_of(step, NULL);
    struct waiter *w = malloc(sizeof *w);
    if (!w)
        return;
    *w = (struct waiter){&step->lane->word[1], value, stream};
    uint64_t before = df_enter(step);
    CUresult ret = df_say(step, "callback", cuLaunchHostFunc(stream->handle, fn, w));
    if (ret)
        free(w);
    else
        df_expect(step, stream, before, "hostFunc", "-");
}

void df_gate(struct df_step *step)
{
    uint32_t value = close_gate(step);
    callback(step, stand_at_gate, value);
}

static void call_back(struct df_step *step)
{
    callback(step, called, df_value(step, 2));
}

static void block(struct df_step *step)
{
    if (step->action->pick[0] % 2u) {
        df_gate(step);
        return;
    }
    uint32_t value = close_gate(step);
    df_launch_flag(step, &step->lane->module[DF_MODULES - 1].function[1], 1, value);
}

static void stream_again(struct df_step *step)
{
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    if (stream->kind != DF_BLOCKING && stream->kind != DF_NON_BLOCKING)
        return;
    int event = (int)(step->action->pick[1] % DF_EVENTS);
    df_open_gates(step);
    if (!df_record(step, stream, event))
        return;
    uint64_t before = df_enter(step);
    if (df_say_drained(step, "destroy", before, cuStreamDestroy(stream->handle)))
        return;
    bool other = step->action->pick[2] % 3u == 0 && slot != 4;
    enum df_stream_kind kind = !other                        ? stream->kind
                               : stream->kind == DF_BLOCKING ? DF_NON_BLOCKING
                                                             : DF_BLOCKING;
    df_say(step, "create", df_lane_make_stream(step, slot, kind));
    df_wait(step, stream, event);
}

static void getter(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    struct df_function *f = df_function_of(lane, step->action->pick[1]);
    struct df_stream *stream = df_stream_of(step, NULL);
    int value = -1;
    unsigned flags = 0;
    CUdevice device = -1;
    CUresult ret = CUDA_SUCCESS;
    switch (step->action->pick[0] % 5u) {
    case 0:
        ret = cuCtxGetDevice(&device);
        value = device;
        break;
    case 1:
        if (f)
            ret = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     f->handle);
        break;
    case 2:
        ret = cuStreamGetFlags(stream->handle, &flags);
        value = (int)flags;
        break;
    case 3:
        ret = cuStreamGetPriority(stream->handle, &value);
        break;
    default:
        ret = cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
        break;
    }
    df_text_add(&step->run->said[step->track], "%u.%u get %d %d\n", step->action->id,
                step->iteration, ret, value);
}

void df_act(struct df_step *step)
{
    static void (*const how[DF_KINDS])(struct df_step *) = {
        [DF_LAUNCH] = df_launch,
        [DF_BAD_LAUNCH] = df_launch_bad,
        [DF_MEMSET] = df_memset,
        [DF_MEMSET_2D] = df_memset_2d,
        [DF_COPY_DEVICE] = df_copy_device,
        [DF_COPY_2D] = df_copy_2d,
        [DF_COPY_IN] = df_copy_in,
        [DF_COPY_OUT] = df_copy_out,
        [DF_UPLOAD_LARGE] = df_upload_large,
        [DF_REUSE] = df_reuse,
        [DF_REGISTER] = df_register,
        [DF_BAD_COPY] = df_copy_bad,
        [DF_HANDOFF] = df_handoff,
        [DF_FORK] = df_fork,
        [DF_RECORD_AGAIN] = df_record_again,
        [DF_EVENT_AGAIN] = df_event_again,
        [DF_ELAPSED] = df_elapsed,
        [DF_VALUE] = df_value_pair,
        [DF_POOL] = df_pool,
        [DF_PREFETCH] = df_prefetch,
        [DF_SYNC] = synchronise,
        [DF_QUERY] = query,
        [DF_ATTRIBUTE] = attribute,
        [DF_MODULE] = module,
        [DF_BUFFER] = df_buffer,
        [DF_SPIN] = spin,
        [DF_BLOCK] = block,
        [DF_STREAM] = stream_again,
        [DF_GETTER] = getter,
        [DF_HOST_SEES] = df_host_sees,
        [DF_READBACK] = df_readback,
        [DF_CALLBACK] = call_back,
    };
    if (step->action->kind >= DF_KINDS)
        return;
    atomic_fetch_add(&step->run->kinds[step->action->kind], 1);
    how[step->action->kind](step);
    if (step->action->record)
        df_chain(step);
}
