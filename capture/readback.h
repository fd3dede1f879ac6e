/* capture/readback.h - a graph as the driver describes it, compared with the ops it is made of.
 * Called by  capture/verify.c            Calls  capture/verify.c, getters of the driver
 * Threads    caller holds the lock of the log
 * Promise    every node, edge, parameter, attribute and argument byte is the driver's word, got through
 *            cuGraphGetNodes, cuGraphGetEdges_v2 and the getters of nodes
 * Start at   ag_readback_compare() */
#ifndef AG_CAPTURE_READBACK_H
#define AG_CAPTURE_READBACK_H

#include "capture/verify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `g` is made of the open segment; the piece is a graph of it. */
struct ag_mismatch ag_readback_compare(const struct ag_graph *g, const struct ag_piece *p,
                                       const struct ag_oplog *log);

#ifdef __cplusplus
}
#endif

#endif
