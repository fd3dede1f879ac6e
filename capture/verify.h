/* capture/verify.h - AUTOGRAPH_VERIFY: is what a graph would do what the program asked for?
 * Called by  capture/graph.c (what the driver was told; a graph as it is built), capture/replay.c (before a launch)
 * Calls      getters of the driver
 * Threads    caller holds the lock of the log
 * Promise    the checks change nothing but their own scratch. They do not use what decides whether a node is patched
 *            (ag_graph.args), nor the functions that make a node's parameters: a mistake there is what they are for
 * Start at   ag_verify_replay()
 *
 * What can be known. The driver tells the nodes of a CUgraph, never those of a CUgraphExec: CUDA 12 and 13 have getters
 * for its flags and for whether a node is enabled, none for parameters. So
 *   - a graph is read back from the driver when its nodes were made, before it is instantiated: nodes, edges, and each
 *     parameter, attribute and argument byte, compared with the ops it is made of;
 *   - of an exec the last parameters that the driver accepted for each node are kept here, field by field, where they
 *     were handed over. Before a launch they are compared with the ops of the log; the driver is asked whether the exec
 *     has each kernel and copy node, enabled, and whether each kernel is still the one whose layout is known.
 * What cannot: whether the driver's exec does hold what the driver has accepted for it. */
#ifndef AG_CAPTURE_VERIFY_H
#define AG_CAPTURE_VERIFY_H

#include "capture/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the driver's own structures; what belongs to the kind. */
struct ag_node_params {
    enum ag_op_kind kind;
    union {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel; /* a fill too */
        CUDA_MEMCPY3D copy;
        CUevent event;
    };
};

/* What the driver has accepted for a node. */
struct ag_told {
    struct ag_node_params params; /* kernelParams NULL: the bytes are in ag_verify.args */
    CUgraphNode node;             /* NULL: the op is in no graph */
    CUgraphExec exec;             /* that was told last; NULL: made with the graph */
    uint64_t generations[2];      /* of the places of a copy; of the event */
};

/* Of a graph that is verified. The scratch has room for one more than there may be, to see that it is there. */
struct ag_verify {
    struct ag_told *told;   /* [ag_graph.n] */
    unsigned char *args;    /* [ag_graph.args_used], placed like ag_graph.args */
    CUgraphNode *from, *to; /* [ag_graph.n + 1] scratch */
    CUgraphEdgeData *edge;  /* [ag_graph.n + 1] scratch */
};

struct ag_mismatch {
    uint32_t op;      /* of the segment */
    const char *what; /* differs; NULL: nothing does */
};

/* Memory that it takes for a graph of the open segment. */
uint64_t ag_verify_bytes(const struct ag_oplog *log);
/* NULL: no memory. Owned by the graph. */
struct ag_verify *ag_verify_make(const struct ag_graph *g);
void ag_verify_free(struct ag_verify *v);
/* The driver has accepted `p` for the node of an op. `exec` NULL: as part of the graph. `args`: of the op. */
void ag_verify_told(struct ag_graph *g, uint32_t op, CUgraphExec exec,
                    const struct ag_node_params *p, const unsigned char *args);

/* `g` is about to be launched in place of the open segment. */
struct ag_mismatch ag_verify_replay(const struct ag_graph *g, struct ag_oplog *log);
/* What of it is about one op. `pointers`: to the arguments of a kernel's node. NULL: nothing differs. */
const char *ag_verify_node(const struct ag_oplog *log, uint32_t op, const struct ag_node_params *p,
                           void *const *pointers);
/* Is its kernel the one that was asked about when it was first launched, in the same state? Same return. */
const char *ag_verify_function(const struct ag_oplog *log, uint32_t op);

/* The checks, counted and logged. False: the graph must not be used. A piece as it was built: */
bool ag_verify_passes_built(const struct ag_graph *g, const struct ag_piece *p,
                            const struct ag_oplog *log);
/* Before a launch. True as well where this replay is not one of those that are looked at: of each AUTOGRAPH_VERIFY
 * replays of a context that follow each other one is, any of them, so that no loop keeps in step with it. */
bool ag_verify_passes(const struct ag_graph *g, struct ag_oplog *log);

#ifdef __cplusplus
}
#endif

#endif
