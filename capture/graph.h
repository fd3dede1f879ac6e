/* capture/graph.h - a segment as executable CUDA graphs, one or several: build, patch, launch, destroy.
 * Called by  capture/replay.c            Calls  the driver
 * Threads    caller holds the lock of the log the ops are in
 * Promise    chains of kernel, memcpy and event record nodes in the order of the ops, so each runs as its stream
 * would have run them (how they are divided: pieces.h). What the execs hold is mirrored byte for byte in `args`; a
 * patch that fails leaves the graph unusable.
 * Start at   ag_graph_build()
 *
 * Driver facts (CUDA 13.0 documentation, 580.159 measured): cuGraphExecKernelNodeSetParams needs
 * the node of the source graph, so the CUgraph is kept; it affects later launches only, so an exec
 * in flight may be patched; it cannot change attributes, which is why they are part of the
 * signature. Destroying an exec in flight is deferred by the driver. */
#ifndef AG_CAPTURE_GRAPH_H
#define AG_CAPTURE_GRAPH_H

#include "capture/pieces.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ag_verify;

/* NULL in place of `node`: the op is in no graph. */
struct ag_node {
    CUgraphNode node;
    struct ag_sig *sig;
    uint32_t args;        /* offset in ag_graph.args */
    uint32_t first_param; /* of the node, in ag_graph.changed */
    uint64_t patched;     /* times */
};

/* Where which records are overtaken, or stand behind a wait for their event, has changed as often as this in a track,
 * no graph relies on it any more. */
#define AG_OTHER_RECORDS 4

struct ag_graph {
    struct ag_track *track;
    uint32_t number;  /* in its track, what policy knows it by */
    uint32_t segment; /* policy's name of the segment */
    uint32_t entry;   /* in the budget */
    uint64_t bytes;   /* estimate: host and device memory (table in docs/ARCHITECTURE.md) */
    uint64_t replays, patched_launches, build_ns;
    uint32_t n;                    /* ops of the segment */
    uint32_t pieces, execs;        /* how many; how many of them are graphs */
    uint32_t tail;                 /* pieces from here on are no graphs */
    uint32_t of_kind[AG_OP_KINDS]; /* in graphs */
    uint32_t elided;               /* records in graphs that are dead (struct ag_event_record) */
    struct ag_piece *piece;        /* [pieces] */
    struct ag_place *place;        /* [n] */
    struct ag_node *node;          /* [n] */
    size_t args_used;
    unsigned char *args;      /* [args_used] what the exec's nodes hold */
    struct ag_verify *verify; /* NULL: it is not verified (verify.h) */
    uint64_t
        *changed; /* [all parameters] times patched, node after node; NULL unless dumps are on */
};

/* Memory that a graph of the open segment will take: host and device bytes together. */
uint64_t ag_graph_estimate(const struct ag_oplog *log);
/* Builds from the ops of the open segment. NULL: refused, *out_why says why and nothing is left
 * behind. */
struct ag_graph *ag_graph_build(struct ag_oplog *log, enum ag_refusal *out_why);
/* Makes the execs hold the arguments of the log's ops, which have the graph's signatures in the
 * graph's order. A refusal: of the driver, or because a record that the graph leaves out is not dead any more, or
 * one that it makes would be the one that a wait gets which stands before it; the graph must be destroyed.
 * *out_nodes, *out_bytes: what was patched. */
enum ag_refusal ag_graph_patch(struct ag_graph *g, struct ag_oplog *log, uint64_t *out_nodes,
                               uint64_t *out_bytes);
void ag_graph_destroy(struct ag_graph *g, const struct ag_driver *drv);

/* kernelParams for packed arguments: pointers into `args`, valid until the next call with this log.
 */
void **ag_op_pointers(struct ag_oplog *log, const struct ag_func *func, unsigned char *args);

#ifdef __cplusplus
}
#endif

#endif
