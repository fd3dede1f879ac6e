/* tools/simcuda/sim_stream.h - streams and events.
 * Called by  every file that enqueues   Calls  sim_stream.c, sim_event.c
 * Threads    caller holds sim_lock
 * Promise    an id is never used twice; a closed stream finishes its work
 * Start at   struct sim_stream                                                              */
#ifndef SIMCUDA_SIM_STREAM_H
#define SIMCUDA_SIM_STREAM_H

#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_capture;
struct sim_node;
struct sim_op;

enum sim_stream_kind { SIM_STREAM_USER, SIM_STREAM_LEGACY, SIM_STREAM_PER_THREAD };
enum { SIM_PRIORITY_LEAST = 0, SIM_PRIORITY_GREATEST = -5 };
enum { SIM_STREAM_ATTRIBUTES = 16 };

struct sim_stream {
    struct sim_object object;
    enum sim_stream_kind kind;
    uint64_t id;
    unsigned flags;
    int priority;
    bool closed;                /* destroyed by the program */
    struct sim_stream *next;    /* in the context's list */
    struct sim_op *head, *tail; /* queue; head is the one running */
    struct sim_op *last;        /* last submitted; counted */
    uint64_t clock_ns;          /* end of the last op that finished */
    unsigned in_flight;         /* launches */
    uint64_t launches;
    uint64_t *ends; /* of the last SIM_DEPTH launches, a ring */
    bool has_worker;
    pthread_cond_t wake;
    CUstreamAttrValue attributes[SIM_STREAM_ATTRIBUTES];
    /* capture, if any */
    struct sim_capture *capture; /* counted */
    struct sim_node **heads;     /* what the next captured node depends on; counted */
    size_t nheads;
};

struct sim_event {
    struct sim_object object;
    CUevent name;  /* its handle, or what that was */
    unsigned life; /* sim_handle_lives of it then */
    unsigned flags;
    struct sim_op *record;       /* the last one; counted; NULL: never recorded */
    struct sim_capture *capture; /* recorded in a capture; counted */
    struct sim_node **heads;     /* counted */
    size_t nheads;
};

struct sim_stream *sim_stream_make(struct sim_context *ctx, enum sim_stream_kind kind,
                                   unsigned flags, int priority);
/* Forgets the handle; the object goes when its work is done. */
void sim_stream_close(struct sim_stream *stream);
bool sim_stream_is_blocking(const struct sim_stream *stream);
/* The stream a call names, or NULL with *out_ret: handle dead, no context. */
struct sim_stream *sim_stream_of(CUstream handle, CUresult *out_ret);
/* The same for a call that puts work in it: legacy-stream rules of captures apply. */
struct sim_stream *sim_stream_for_work(CUstream handle, CUresult *out_ret);
struct sim_event *sim_event_of(CUevent handle, CUresult *out_ret);

#endif
