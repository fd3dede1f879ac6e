/* tools/simcuda/sim_event.c - events: recorded, waited for, asked, measured.
 * Called by  programs                   Calls  sim_op.c, sim_capture.c
 * Threads    bodies hold sim_lock
 * Promise    a wait means the record as it was at the call
 * Start at   cuEventRecord                                                                  */
#define _GNU_SOURCE
#include "tools/simcuda/sim_capture.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

static void free_event(struct sim_object *self)
{
    struct sim_event *e = (struct sim_event *)self;
    sim_unref(e->record);
    sim_capture_forget_heads(&e->heads, &e->nheads);
    sim_unref(e->capture);
}

struct sim_event *sim_event_of(CUevent handle, CUresult *out_ret)
{
    struct sim_event *e = sim_handle_find(handle, SIM_EVENT);
    *out_ret = e ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_EVENT)
                   ? sim_misuse(CUDA_ERROR_INVALID_HANDLE, "event %p is destroyed", (void *)handle)
                   : CUDA_ERROR_INVALID_HANDLE;
    return e;
}

SIM_API(cuEventCreate, SIM_NS_CREATE, SIM_CTX, (CUevent * out, unsigned flags), (out, flags))
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!out || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_event *e = sim_object_new(sizeof *e, SIM_EVENT, sim_context_current(), free_event);
    e->flags = flags;
    *out = e->name = sim_handle_make(e);
    e->life = sim_handle_lives(e->name);
    sim_unref(e);
    return CUDA_SUCCESS;
}

SIM_API(cuEventDestroy_v2, SIM_NS_SMALL, SIM_CTX, (CUevent handle), (handle))
{
    CUresult ret;
    struct sim_event *e = sim_event_of(handle, &ret);
    if (e)
        sim_handle_drop(e);
    return ret;
}

static CUresult record(CUevent handle, CUstream stream, unsigned flags)
{
    CUresult ret;
    struct sim_event *e = sim_event_of(handle, &ret);
    if (!e)
        return ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags && !s->capture) /* "external" means a node; outside of a capture there is none */
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->object.ctx != e->object.ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture)
        return sim_capture_record(s, e, flags);
    sim_capture_forget_heads(&e->heads, &e->nheads);
    sim_unref(e->capture);
    e->capture = NULL;
    struct sim_work *w = sim_work_new(SIM_WORK_RECORD, s->object.ctx);
    w->event.event = sim_ref(e);
    struct sim_op *op;
    ret = sim_enqueue(s, w, &op);
    sim_unref(e->record);
    e->record = op;
    return ret;
}

SIM_API_PTSZ(cuEventRecord, SIM_NS_RECORD, SIM_CTX, (CUevent event, CUstream stream),
             (event, stream))
{
    return record(event, stream, 0);
}

SIM_API_PTSZ(cuEventRecordWithFlags, SIM_NS_RECORD, SIM_CTX,
             (CUevent event, CUstream stream, unsigned flags), (event, stream, flags))
{
    return record(event, stream, flags);
}

SIM_API_PTSZ(cuStreamWaitEvent, SIM_NS_WAIT_EVENT, SIM_CTX,
             (CUstream stream, CUevent handle, unsigned flags), (stream, handle, flags))
{
    CUresult ret;
    if (flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_event *e = sim_event_of(handle, &ret);
    if (!e)
        return ret;
    struct sim_stream *s = sim_stream_for_work(stream, &ret);
    if (!s)
        return ret;
    if (flags && !s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->capture || e->capture)
        return sim_capture_wait(s, e, flags);
    if (!e->record)
        return CUDA_SUCCESS;
    struct sim_work *w = sim_work_new(SIM_WORK_WAIT, s->object.ctx);
    w->event.event = sim_ref(e);
    struct sim_op *op = sim_op_new(w);
    sim_op_after(op, e->record);
    sim_op_submit(s, op);
    sim_unref(op);
    return CUDA_SUCCESS;
}

SIM_API(cuEventQuery, SIM_NS_QUERY, SIM_CTX, (CUevent handle), (handle))
{
    CUresult ret;
    struct sim_event *e = sim_event_of(handle, &ret);
    if (!e)
        return ret;
    if (e->capture)
        return sim_capture_break(e->capture, CUDA_ERROR_CAPTURED_EVENT);
    ret = sim_capture_forbids_unsafe();
    if (ret)
        return ret;
    return e->record && !e->record->done ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

SIM_API(cuEventSynchronize, SIM_NS_SYNC, SIM_CTX, (CUevent handle), (handle))
{
    CUresult ret;
    struct sim_event *e = sim_event_of(handle, &ret);
    if (!e)
        return ret;
    if (e->capture)
        return sim_capture_break(e->capture, CUDA_ERROR_CAPTURED_EVENT);
    ret = sim_capture_forbids_unsafe();
    if (ret)
        return ret;
    if (!e->record)
        return CUDA_SUCCESS;
    struct sim_op *op = sim_ref(e->record);
    struct sim_context *ctx = e->object.ctx;
    sim_op_wait(op);
    sim_unref(op);
    return ctx->sticky;
}

static CUresult elapsed(float *out, CUevent first, CUevent second)
{
    CUresult ret;
    if (!out)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_event *a = sim_event_of(first, &ret);
    struct sim_event *b = a ? sim_event_of(second, &ret) : NULL;
    if (!b)
        return ret;
    if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!a->record || !b->record)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!a->record->done || !b->record->done)
        return CUDA_ERROR_NOT_READY;
    *out = (float)((double)b->record->end_ns - (double)a->record->end_ns) / 1e6f;
    return CUDA_SUCCESS;
}

SIM_API(cuEventElapsedTime, SIM_NS_SMALL, SIM_CTX, (float *out, CUevent first, CUevent second),
        (out, first, second))
{
    return elapsed(out, first, second);
}

SIM_API(cuEventElapsedTime_v2, SIM_NS_SMALL, SIM_CTX, (float *out, CUevent first, CUevent second),
        (out, first, second))
{
    return elapsed(out, first, second);
}
