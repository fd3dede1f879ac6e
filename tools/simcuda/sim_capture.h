/* tools/simcuda/sim_capture.h - stream capture by the program.
 * Called by  sim_op.c, sim_stream.c, sim_event.c, sim_copy.c, sim_call.c   Calls  sim_capture.c
 * Threads    caller holds sim_lock
 * Promise    the codes 900-908 where CUDA has them; a forbidden call invalidates the capture
 * Start at   struct sim_capture                                                             */
#ifndef SIMCUDA_SIM_CAPTURE_H
#define SIMCUDA_SIM_CAPTURE_H

#include "tools/simcuda/sim_call.h"
#include "tools/simcuda/sim_object.h"

struct sim_event;
struct sim_graph;
struct sim_node;
struct sim_stream;
struct sim_work;

struct sim_capture {
    struct sim_object object;
    uint64_t id;
    struct sim_graph *graph; /* counted */
    CUstreamCaptureMode mode;
    struct sim_stream *origin; /* not counted */
    int thread;
    bool invalid, over;
    bool to_graph; /* cuStreamBeginCaptureToGraph: the graph is the program's */
    struct sim_capture *next;
};

CUresult sim_capture_add(struct sim_stream *stream, struct sim_work *work);
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, unsigned flags);
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, unsigned flags);
/* Invalidates the capture; returns the code. */
CUresult sim_capture_break(struct sim_capture *capture, CUresult code);
CUresult sim_capture_forbids_unsafe(void);
CUresult sim_capture_forbids_legacy(struct sim_context *ctx);
/* Waiting for the whole context waits for what is being captured in it: whatever the modes. */
CUresult sim_capture_forbids_context_wait(struct sim_context *ctx);
void sim_capture_stream_destroyed(struct sim_stream *stream);
void sim_capture_forget_heads(struct sim_node ***heads, size_t *n);

#endif
