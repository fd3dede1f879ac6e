/* capture/pieces.h - how a segment is divided into what the driver is given: CUDA graphs, each a chain of ops of one
 * stream, and ops by themselves.
 * Called by  capture/graph.c             Calls  nothing
 * Threads    caller holds the log's lock
 * Promise    given to the driver in the order of their first ops, the pieces leave the order of each stream as it was,
 *            a wait for an event behind the records before it and in front of the records behind it, and before each
 *            piece stands all that was called before its first op: where the driver has no room for it, the program
 *            would not have come past that op either (C1, C4)
 * Start at   ag_pieces_choose() */
#ifndef AG_CAPTURE_PIECES_H
#define AG_CAPTURE_PIECES_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AG_NO_OP UINT32_MAX

struct ag_piece {
    struct ag_stream *stream;
    uint32_t first; /* op of the segment that it begins with */
    uint32_t last, ops;
    bool is_graph;   /* else its ops are given to the driver one by one */
    uint32_t serial; /* of a graph, in the process, from 1: the N of dump files */
    CUgraph graph;   /* NULL until it is made */
    CUgraphExec exec;
};

/* Where an op is. */
struct ag_place {
    uint32_t piece;
    uint32_t next; /* op of the piece, AG_NO_OP: none */
};

/* Divides the open segment. `place` and `piece` have room for as many as it has ops. Returns how many pieces there are,
 * in the order of their first ops; 0: none would be a graph. */
uint32_t ag_pieces_choose(const struct ag_oplog *log, struct ag_place *place,
                          struct ag_piece *piece);

#ifdef __cplusplus
}
#endif

#endif
