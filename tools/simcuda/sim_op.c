/* tools/simcuda/sim_op.c - the engine: queues, dependencies, one worker thread per stream.
 * Called by  sim_*.c through sim_enqueue()          Calls  sim_work.c, sim_capture.c
 * Threads    API threads submit, workers run; all state under sim_lock
 * Promise    stream order, event order and the legacy stream's order; nothing more, so that a
 *            missing dependency of a program shows
 * Start at   sim_op_submit() and worker()                                                   */
#define _GNU_SOURCE
#include "tools/simcuda/sim_op.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_stream.h"

static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static uint64_t submissions;

static void free_op(struct sim_object *self)
{
    struct sim_op *op = (struct sim_op *)self;
    sim_unref(op->work);
    free(op->dependents);
}

struct sim_op *sim_op_new(struct sim_work *work)
{
    struct sim_op *op = sim_object_new(sizeof *op, 0, work ? work->object.ctx : NULL, free_op);
    op->work = work;
    return op;
}

void sim_op_after(struct sim_op *op, struct sim_op *on)
{
    if (!on || on == op)
        return;
    if (on->done) {
        if (on->end_ns > op->ready_ns)
            op->ready_ns = on->end_ns;
        return;
    }
    if (on->ndependents == on->room) {
        on->room = on->room ? on->room * 2 : 4;
        on->dependents = realloc(on->dependents, on->room * sizeof(struct sim_op *));
        if (!on->dependents)
            abort();
    }
    on->dependents[on->ndependents++] = sim_ref(op);
    op->pending++;
}

void sim_op_finish(struct sim_op *op, uint64_t end_ns, CUresult status)
{
    op->done = true;
    op->status = status;
    op->end_ns = end_ns;
    for (size_t i = 0; i < op->ndependents; i++) {
        struct sim_op *d = op->dependents[i];
        if (end_ns > d->ready_ns)
            d->ready_ns = end_ns;
        if (--d->pending == 0 && d->stream)
            pthread_cond_signal(&d->stream->wake);
        sim_unref(d);
    }
    op->ndependents = 0;
    pthread_cond_broadcast(&finished);
}

void sim_op_wait_done(struct sim_op *op)
{
    while (!op->done)
        pthread_cond_wait(&finished, &sim_lock);
}

void sim_op_wait(struct sim_op *op)
{
    sim_op_wait_done(op);
    sim_clock_reach(op->end_ns);
}

static bool is_launch(const struct sim_work *work)
{
    return work->kind == SIM_WORK_KERNEL || work->kind == SIM_WORK_GRAPH;
}

/* Legacy stream: after all blocking streams. A blocking stream: after the legacy stream. */
static void order_default_stream(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_context *ctx = stream->object.ctx;
    if (stream->kind == SIM_STREAM_LEGACY) {
        for (struct sim_stream *s = ctx->streams; s; s = s->next)
            if (s != stream && sim_stream_is_blocking(s))
                sim_op_after(op, s->last);
    } else if (sim_stream_is_blocking(stream) && ctx->legacy) {
        sim_op_after(op, ctx->legacy->last);
    }
}

void sim_op_shut(struct sim_context *ctx)
{
    ctx->shut++;
}

void sim_op_reopen(struct sim_context *ctx)
{
    if (!--ctx->shut)
        pthread_cond_broadcast(&finished);
}

static void wait_until_open(const struct sim_context *ctx)
{
    while (ctx->shut)
        pthread_cond_wait(&finished, &sim_lock);
}

static void wait_for_room(struct sim_stream *stream)
{
    while (stream->in_flight >= SIM_DEPTH)
        pthread_cond_wait(&finished, &sim_lock);
    if (!stream->ends)
        stream->ends = sim_new(SIM_DEPTH * sizeof *stream->ends);
    /* FIFO: with room, the launch that stood SIM_DEPTH before has finished. */
    if (stream->launches >= SIM_DEPTH)
        sim_clock_reach(stream->ends[stream->launches % SIM_DEPTH]);
}

void sim_op_submit(struct sim_stream *stream, struct sim_op *op)
{
    if (is_launch(op->work)) {
        wait_until_open(stream->object.ctx);
        wait_for_room(stream);
        stream->in_flight++;
        stream->launches++;
    }
    order_default_stream(stream, op);
    op->stream = sim_ref(stream);
    op->sub = ++submissions;
    op->submit_ns = sim_clock_now();
    sim_ref(op); /* the queue's */
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
    sim_unref(stream->last);
    stream->last = sim_ref(op);
    if (!stream->has_worker)
        sim_op_start_worker(stream);
    else
        pthread_cond_signal(&stream->wake);
}

CUresult sim_enqueue(struct sim_stream *stream, struct sim_work *work, struct sim_op **out_op)
{
    if (out_op)
        *out_op = NULL;
    if (stream->capture) {
        CUresult ret = sim_capture_add(stream, work);
        sim_unref(work);
        return ret;
    }
    struct sim_op *op = sim_op_new(work);
    sim_op_submit(stream, op);
    if (out_op)
        *out_op = op;
    else
        sim_unref(op);
    return CUDA_SUCCESS;
}

static void leave_context(struct sim_stream *stream)
{
    struct sim_context *ctx = stream->object.ctx;
    for (struct sim_stream **at = &ctx->streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            sim_unref(stream);
            return;
        }
}

static void run_head(struct sim_stream *stream)
{
    struct sim_op *op = stream->head;
    struct sim_context *ctx = stream->object.ctx;
    uint64_t start = stream->clock_ns;
    if (op->submit_ns > start)
        start = op->submit_ns;
    if (op->ready_ns > start)
        start = op->ready_ns;
    uint64_t end = start;
    if (ctx->sticky)
        sim_work_skip(op->work, op);
    else
        end = sim_work_run(op->work, op, "launch", start);
    stream->clock_ns = end;
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    if (is_launch(op->work)) {
        stream->ends[(stream->launches - stream->in_flight) % SIM_DEPTH] = end;
        stream->in_flight--;
    }
    sim_op_finish(op, end, ctx->sticky);
    op->stream = NULL;
    sim_unref(op->work); /* the record of an event refers to the event, which keeps the op */
    op->work = NULL;
    sim_unref(op);
    sim_unref(stream);
}

static void *worker(void *data)
{
    struct sim_stream *stream = data;
    pthread_mutex_lock(&sim_lock);
    for (;;) {
        if (stream->head && !stream->head->pending)
            run_head(stream);
        else if (!stream->head && stream->closed)
            break;
        else
            pthread_cond_wait(&stream->wake, &sim_lock);
    }
    stream->has_worker = false;
    leave_context(stream);
    sim_unref(stream);
    pthread_mutex_unlock(&sim_lock);
    return NULL;
}

void sim_op_start_worker(struct sim_stream *stream)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    /* The program's signal handlers run on the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stream->has_worker = true;
    if (pthread_create(&thread, &attr, worker, sim_ref(stream))) {
        fputs("simcuda: no thread for a stream\n", stderr);
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}
