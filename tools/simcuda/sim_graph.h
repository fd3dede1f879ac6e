/* tools/simcuda/sim_graph.h - graphs, their nodes, and what an instantiated one runs.
 * Called by  sim_capture.c, sim_work.c, sim_op.c        Calls  sim_graph.c, sim_exec.c
 * Threads    caller holds sim_lock
 * Promise    a launch runs the parameters that the exec had at the launch
 * Start at   struct sim_program                                                             */
#ifndef SIMCUDA_SIM_GRAPH_H
#define SIMCUDA_SIM_GRAPH_H

#include "tools/simcuda/sim_op.h"

struct sim_node {
    struct sim_object object;
    struct sim_graph *graph; /* NULL: destroyed */
    uint64_t serial;         /* never used twice */
    CUgraphNodeType type;
    struct sim_work *work;  /* counted; NULL: an empty node */
    struct sim_node **deps; /* in the same graph; not counted */
    CUgraphEdgeData *edges; /* of each dependency */
    size_t ndeps;
    void **view; /* what GetParams handed out: pointers into the work's arguments */
};

struct sim_graph {
    struct sim_object object;
    struct sim_node **nodes; /* counted */
    size_t n, room;
    bool capturing; /* cuStreamEndCapture has not handed it out yet */
};

/* One node of an exec. */
struct sim_step {
    uint64_t serial;
    CUgraphNodeType type;
    struct sim_work *work; /* counted */
    size_t *children;      /* owned */
    size_t nchildren, ndeps;
    bool disabled;
};

/* Shared by an exec and its launches: copied before it is changed. */
struct sim_program {
    struct sim_object object;
    struct sim_step *steps;
    size_t n;
    unsigned flags; /* of the instantiation */
};

struct sim_exec {
    struct sim_object object;
    struct sim_program *program; /* counted */
    struct sim_op *last;         /* last launch; counted */
    size_t patched;              /* nodes, since the last launch */
    bool uploaded;
};

struct sim_graph *sim_graph_make(struct sim_context *ctx);
/* Takes over `work`. The node's reference belongs to the graph. */
struct sim_node *sim_graph_add(struct sim_graph *graph, CUgraphNodeType type, struct sim_work *work,
                               struct sim_node *const *deps, const CUgraphEdgeData *edges,
                               size_t n);
void sim_graph_link(struct sim_node *node, struct sim_node *on, const CUgraphEdgeData *edge);
/* Common end of every Add*: takes over `work`, which may be NULL with the code in ret. */
CUresult sim_graph_put(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                       const CUgraphEdgeData *edges, size_t n, CUgraphNodeType type,
                       struct sim_work *work, CUresult ret);
struct sim_graph *sim_graph_of(CUgraph handle, CUresult *out_ret);
struct sim_node *sim_node_of(CUgraphNode handle, CUresult *out_ret);
CUresult sim_nodes_of(struct sim_graph *graph, const CUgraphNode *handles, size_t n,
                      struct sim_node ***out);
/* Work for what the public structures describe; NULL with *out_ret. */
struct sim_work *sim_node_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *p, CUresult *out_ret);
struct sim_work *sim_node_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx,
                                 CUresult *out_ret);
struct sim_work *sim_node_memcpy(const CUDA_MEMCPY3D *p, CUcontext ctx, CUresult *out_ret);
CUgraphNodeType sim_node_type(const struct sim_work *work);
CUDA_KERNEL_NODE_PARAMS_v2 sim_node_widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p);

CUDA_KERNEL_NODE_PARAMS_v2 sim_node_narrow(const CUDA_KERNEL_NODE_PARAMS_v3 *p);
struct sim_work *sim_node_any(const CUgraphNodeParams *p, CUresult *out_ret);
struct sim_work *sim_node_host(const CUDA_HOST_NODE_PARAMS *p, CUresult *out_ret);
/* Waits for and writes of values, one after the other. */
struct sim_work *sim_node_batch(CUcontext ctx, unsigned n, const CUstreamBatchMemOpParams *list,
                                CUresult *out_ret);
struct sim_node *sim_node_typed(CUgraphNode handle, CUgraphNodeType type, CUresult *out_ret);
CUresult sim_nodes_give(struct sim_node *const *nodes, size_t have, CUgraphNode *out,
                        size_t *inout_n);
/* Takes over `work`. */
void sim_node_put(struct sim_node *node, struct sim_work *work);
struct sim_work *sim_node_event(enum sim_work_kind kind, CUevent event, CUresult *out_ret);

/* ---- sim_exec.c ---- */
struct sim_program *sim_program_of_graph(const struct sim_graph *graph, unsigned flags);
/* The exec's program, no longer shared with launches in flight. */
struct sim_program *sim_exec_own_program(struct sim_exec *exec);
struct sim_exec *sim_exec_of(CUgraphExec handle, CUresult *out_ret);
uint64_t sim_program_run(struct sim_work *work, struct sim_op *op, uint64_t start_ns);
void sim_program_skip(struct sim_work *work, struct sim_op *op);
void sim_program_free_ops(struct sim_work *work);

#endif
