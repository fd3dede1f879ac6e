/* tests/differential/events.c - records, waits, forks and joins, values: what orders streams among each other.
 * Called by  acts.c                      Calls  launch.c, buffers.c, the driver API
 * Threads    see state.h
 * Promise    a buffer changes its stream only along an order that the program made, so its contents are certain
 * Start at   df_fork() */
#define _GNU_SOURCE
#include "tests/differential/state.h"

#include <stdlib.h>
#include <unistd.h>

bool df_record(struct df_step *step, const struct df_stream *stream, int event)
{
    uint64_t before = df_enter(step);
    CUresult ret = cuEventRecord(step->lane->event[event], stream->handle);
    if (df_say(step, "record", ret))
        return false;
    df_expect_event(step, stream, before, 'R', event);
    return true;
}

bool df_wait(struct df_step *step, const struct df_stream *stream, int event)
{
    uint64_t before = df_enter(step);
    CUresult ret = cuStreamWaitEvent(stream->handle, step->lane->event[event], 0);
    if (df_say(step, "wait", ret))
        return false;
    df_expect_event(step, stream, before, 'W', event);
    return true;
}

static int event_of(const struct df_step *step, int pick)
{
    return (int)(step->action->pick[pick] % DF_EVENTS);
}

static void give(struct df_lane *lane, int buffer, int slot)
{
    if (buffer >= 0)
        lane->buffer[buffer].owner = (uint8_t)slot;
}

void df_handoff(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int from, to, event = event_of(step, 1);
    struct df_stream *source = df_stream_of(step, &from);
    struct df_stream *sink = df_stream_at(step, (int)(step->action->pick[0] % DF_STREAMS), &to);
    if (!df_record(step, source, event) || !df_wait(step, sink, event))
        return;
    give(lane, df_owned(lane, from, df_value(step, 2)), to);
}

/* One of the commoner operations on the stream of the slot, with picks of its own. */
static void work_on(struct df_step *step, int slot, uint32_t salt)
{
    struct df_action other = *step->action;
    struct df_step inner = *step;
    uint64_t mix = salt + ((uint64_t)step->action->pick[3] << 8);
    inner.action = &other;
    other.stream = (uint8_t)slot;
    for (int i = 0; i < DF_PICKS; i++)
        other.pick[i] = (uint32_t)df_random(&mix);
    switch (df_random(&mix) % 6u) {
    case 0:
        df_memset(&inner);
        break;
    case 1:
        df_copy_device(&inner);
        break;
    default:
        df_launch(&inner);
        break;
    }
}

/* The pattern of every pipeline: b starts after a, both work, a goes on after b. */
void df_fork(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int a, b, first = event_of(step, 1), second = (first + 1) % DF_EVENTS;
    struct df_stream *from = df_stream_of(step, &a);
    int other = (a + 1 + (int)(step->action->pick[0] % (DF_STREAMS - 1))) % DF_STREAMS;
    struct df_stream *to = df_stream_at(step, other, &b);
    int buffer = df_owned(lane, a, df_value(step, 2));
    if (a == b || !df_record(step, from, first) || !df_wait(step, to, first))
        return;
    give(lane, buffer, b);
    uint32_t n = 1 + step->action->pick[0] / 8u % 3u;
    for (uint32_t i = 0; i < n; i++) {
        work_on(step, b, 10 + i);
        if (step->action->pick[2] >> i & 1)
            work_on(step, a, 20 + i);
    }
    if (!df_record(step, to, second) || !df_wait(step, from, second))
        return;
    give(lane, buffer, a);
    if (step->action->form & 2)
        work_on(step, a, 30);
}

void df_chain(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int a, b, event = step->action->record - 1;
    if (step->action->record == DF_MOVING_RECORD)
        event = df_value(step, 3) % 2u ? 2 : 0;
    struct df_stream *stream = df_stream_of(step, &a);
    int other = (a + 1 + (int)(step->action->pick[0] % (DF_STREAMS - 1))) % DF_STREAMS;
    struct df_stream *elsewhere = df_stream_at(step, other, &b);
    uint64_t before;
    CUresult ret;
    if (!df_record(step, stream, event))
        return;
    switch ((enum df_look)step->action->look) {
    case DF_NO_LOOK:
    case DF_LOOKS:
        break;
    case DF_LOOK_AGAIN:
        if (!df_wait(step, elsewhere, event))
            break;
        df_say(step, "gone", cuEventDestroy(lane->event[event]));
        df_say(step, "new", df_lane_make_event(lane, event));
        work_on(step, b, 90);
        break;
    case DF_LOOK_WAIT:
        if (df_wait(step, elsewhere, event))
            work_on(step, b, 80);
        break;
    case DF_LOOK_GLANCE:
        before = df_enter(step);
        ret = cuEventQuery(lane->event[event]);
        df_say_drained(step, "glance", before, ret == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : ret);
        break;
    case DF_LOOK_SYNC:
        df_open_gates(step);
        before = df_enter(step);
        df_say_drained(step, "chain", before, cuEventSynchronize(lane->event[event]));
        break;
    case DF_LOOK_ELSEWHERE:
        df_record(step, elsewhere, event);
        break;
    }
}

/* The wait means the first record, whose stream is free; the second one's stands still until the host says so. */
void df_record_again(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int a, b, c, event = event_of(step, 1);
    struct df_stream *from = df_stream_of(step, &a);
    struct df_stream *to = df_stream_at(step, 1, &b), *held = df_stream_at(step, 4, &c);
    if (to->kind != DF_NON_BLOCKING || a == b || a == c)
        return;
    df_open_gates(step);
    int buffer = df_owned(lane, a, df_value(step, 2));
    if (!df_record(step, from, event) || !df_wait(step, to, event))
        return;
    struct df_action other = *step->action;
    struct df_step inner = *step;
    inner.action = &other;
    other.stream = 4;
    df_gate(&inner);
    bool again = df_record(step, held, event);
    give(lane, buffer, b);
    work_on(step, b, 40);
    uint64_t before = df_enter(step);
    CUresult ret;
    while ((ret = cuStreamQuery(to->handle)) == CUDA_ERROR_NOT_READY)
        usleep(20);
    df_say_drained(step, "went on", before, ret);
    if (again && !ret)
        df_say(step, "held", cuEventQuery(lane->event[event]));
    df_open_gates(step);
}

/* Destroyed while a stream waits for it; the next object has the same handle. */
void df_event_again(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int a, b, event = event_of(step, 1);
    struct df_stream *from = df_stream_of(step, &a);
    struct df_stream *to = df_stream_at(step, (int)(step->action->pick[0] % DF_STREAMS), &b);
    int buffer = df_owned(lane, a, df_value(step, 2));
    if (!df_record(step, from, event) || !df_wait(step, to, event))
        return;
    df_say(step, "destroy", cuEventDestroy(lane->event[event]));
    df_say(step, "create", df_lane_make_event(lane, event));
    if (step->action->form & 1)
        df_record(step, df_stream_at(step, 4, NULL), event);
    give(lane, buffer, b);
    work_on(step, b, 50);
}

static void say_elapsed(struct df_step *step, int first, int second)
{
    float ms = -1;
    CUresult ret = cuEventElapsedTime(&ms, step->lane->event[first], step->lane->event[second]);
    df_text_add(&step->run->said[step->track], "%u.%u elapsed %d %d %d\n", step->action->id,
                step->iteration, ret, ret || ms >= 0, ret || ms > 0);
}

/* Events 1 and 3 are timed, 0 and 2 are not. */
void df_elapsed(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    uint32_t way = step->action->pick[0] % 4u;
    if (way == 1) {
        say_elapsed(step, 0, (int)(step->action->pick[2] % DF_EVENTS));
        return;
    }
    df_open_gates(step);
    if (!df_record(step, stream, 1))
        return;
    if (way == 0)
        df_gate(step);
    else
        work_on(step, slot, 60);
    if (way != 0) /* so that some time has passed, whatever the above did */
        df_memset(step);
    if (!df_record(step, stream, 3))
        return;
    if (way == 0)
        say_elapsed(step, 1, 3); /* behind the gate */
    df_open_gates(step);
    uint64_t before = df_enter(step);
    CUresult ret = cuEventSynchronize(lane->event[3]);
    if (!df_say_drained(step, "event", before, ret) && df_owned(lane, slot, 0) >= 0) {
        say_elapsed(step, 1, 3);
        say_elapsed(step, 3, 3);
    }
}

/* ---- values ---- */

static CUresult write_value(struct df_step *step, const struct df_stream *stream, CUdeviceptr at,
                            uint32_t v, uint32_t way)
{
    CUstreamBatchMemOpParams op = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, at, {v}, CU_STREAM_WRITE_VALUE_DEFAULT, 0}};
    uint64_t first = df_enter(step), before = df_enter(step);
    CUresult ret = way == 0   ? cuStreamWriteValue64(stream->handle, at, v, 0)
                   : way == 1 ? cuStreamBatchMemOp(stream->handle, 1, &op, 0)
                              : cuStreamWriteValue32(stream->handle, at, v, 0);
    if (df_say(step, "write", ret))
        return ret;
    /* Who waits may go on as soon as the word is there: after what stood before the write, then. */
    df_expect_edge(step, stream, first, 'R', "v", v, NULL, 0);
    df_expect(step, stream, before, way == 0 ? "writeValue64" : "writeValue32",
              "at=%#llx,value=%#x,flags=0", (unsigned long long)at, v);
    return ret;
}

static CUresult wait_value(struct df_step *step, const struct df_stream *stream, CUdeviceptr at,
                           uint32_t v, uint32_t way)
{
    CUstreamBatchMemOpParams op = {
        .waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, at, {v}, CU_STREAM_WAIT_VALUE_GEQ, 0}};
    uint64_t before = df_enter(step);
    CUresult ret = way == 0 ? cuStreamWaitValue64(stream->handle, at, v, CU_STREAM_WAIT_VALUE_GEQ)
                   : way == 1
                       ? cuStreamBatchMemOp(stream->handle, 1, &op, 0)
                       : cuStreamWaitValue32(stream->handle, at, v, CU_STREAM_WAIT_VALUE_GEQ);
    if (!df_say(step, "wait value", ret))
        df_expect(step, stream, before, way == 0 ? "waitValue64" : "waitValue32",
                  "at=%#llx,value=%#x,flags=0", (unsigned long long)at, v);
    return ret;
}

/* The waiter may come first where nothing that the writer waits for could stand behind it: its stream is empty, and no
 * other holds it up. */
void df_value_pair(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int a, b;
    struct df_stream *from = df_stream_of(step, &a);
    struct df_stream *to = df_stream_at(step, (int)(step->action->pick[0] % DF_STREAMS), &b);
    uint32_t v = ++lane->value, way = step->action->pick[1] % 4u;
    CUdeviceptr at = lane->values + 8u * (v % DF_VALUES);
    int buffer = df_owned(lane, a, df_value(step, 2));
    bool first = way == 3 && a != b && to->kind == DF_NON_BLOCKING && from->kind == DF_NON_BLOCKING;
    if (first) {
        df_open_gates(step);
        uint64_t before = df_enter(step);
        if (df_say_drained(step, "writer", before, cuStreamSynchronize(from->handle)) ||
            wait_value(step, to, at, v, way))
            return;
    }
    CUresult ret = write_value(step, from, at, v, way);
    if (!ret && !first)
        ret = wait_value(step, to, at, v, way);
    if (ret)
        return;
    df_expect_edge(step, to, df_enter(step), 'W', "v", v, NULL, 0);
    give(lane, buffer, b);
    work_on(step, b, 70);
}

/* ---- host functions that look ---- */

struct look {
    struct df_stream *stream;
    uint32_t salt;
};

static void CUDA_CB look(void *data)
{
    struct look *l = data;
    uint64_t seen = df_digest(l->stream->peek, DF_PEEK);
    atomic_store(&l->stream->called, atomic_load(&l->stream->called) * 31u + seen + l->salt);
    free(l);
}

static void CUDA_CB look_with_status(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    if (status)
        free(data);
    else
        look(data);
}

void df_host_sees(struct df_step *step)
{
    struct df_stream *stream;
    CUdeviceptr p = df_owned_address(step, 1, &stream);
    struct look *l = p ? malloc(sizeof *l) : NULL;
    if (!l)
        return;
    *l = (struct look){stream, df_value(step, 2)};
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyDtoHAsync(stream->peek, p, DF_PEEK, stream->handle);
    if (!df_say(step, "peek", ret))
        df_expect_copy(step, stream, before, (uintptr_t)stream->peek, p,
                       &(struct df_area){.width = DF_PEEK});
    before = df_enter(step);
    ret = step->action->form & 1 ? cuStreamAddCallback(stream->handle, look_with_status, l, 0)
                                 : cuLaunchHostFunc(stream->handle, look, l);
    if (df_say(step, "look", ret))
        free(l);
    else
        df_expect(step, stream, before, "hostFunc", "-");
}
