/* shim/observe/dump.h - one detected graph as two files, for people and for tools.
 * Called by  capture/replay.c, at a build and when counts are to be refreshed
 * Calls      shim/observe/{file,json,log}.h
 * Threads    any; two calls for one graph must not overlap, and the caller keeps `g` still
 * Promise    graph-PID-N.dot and graph-PID-N.json are complete at every moment; a later call
 *            replaces them. The first failure is one line in the log and ends all dumping. At most
 *            AG_DUMP_GRAPHS graphs are dumped. A forked child writes nothing. No allocation, errno
 *            untouched.
 * Start at   ag_dump_graph()
 *
 * Schema "autograph-graph/1", one object; readers ignore members that they do not know:
 *   schema, pid, number, stream, context, origin
 *   replays, patches, device_bytes, host_bytes      patches: the sum over all nodes
 *   nodes  [{name, grid: [x, y, z], block: [x, y, z], shared_bytes, patches,
 *            parameters: [{offset, size, patched}]}]
 *   edges  [[from, to]]                             numbers of nodes, from 0
 * Names are as the driver gave them (mangled).                                                 */
#ifndef AG_SHIM_OBSERVE_DUMP_H
#define AG_SHIM_OBSERVE_DUMP_H

#include <stdint.h>

#include "shim/observe/options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_DUMP_GRAPHS = 10000 }; /* a program that builds for ever must not fill the disk */

struct ag_dump_param {
    uint32_t offset, size; /* in the packed arguments */
    uint64_t patched;      /* replays before which its bytes had changed */
};

struct ag_dump_node {
    const char *name; /* of the function; NULL if the driver does not tell */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic */
    uint32_t param_count;
    const struct ag_dump_param *params;
    uint64_t patches; /* replays before which the node was updated */
};

/* The nodes are a chain: each runs after the one before it. */
struct ag_dump_graph {
    uint32_t number; /* from 1, unique in the process */
    uint32_t node_count;
    const struct ag_dump_node *nodes;
    uint64_t stream;    /* cuStreamGetId */
    uint64_t context;   /* a number that tells contexts apart */
    const char *origin; /* where it came from, in words; may be NULL */
    uint64_t replays;
    uint64_t device_bytes, host_bytes;
};

/* 0 if written or nothing to do (not asked for, off after a failure, a child); else errno value. */
int ag_dump_graph(const struct ag_options *o, const struct ag_dump_graph *g);

#ifdef __cplusplus
}
#endif
#endif
