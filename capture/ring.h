/* capture/ring.h - the last decisions about a context's work, for whoever looks at a core or at a process that hangs.
 * Called by  capture/replay.c            Read by  tools/autograph ring
 * Threads    the writer holds the log's lock; a reader looks at a process that stands still, or takes one torn entry
 *            for granted
 * Promise    plain memory, found by its first bytes: no symbol, no debugger and no file is needed. Costs nothing per
 *            launch: an entry is a segment's end
 * Start at   ag_ring_note() */
#ifndef AG_CAPTURE_RING_H
#define AG_CAPTURE_RING_H

#include "policy/refusal.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_RING_ENTRIES 256u
#define AG_RING_VERSION 1u

enum ag_deed { AG_DEED_SENT, AG_DEED_REPLAYED, AG_DEED_BUILT, AG_DEED_DEEDS };

/* Little or big endian as the machine; the same layout on all 64-bit ones. */
struct ag_decision {
    uint64_t number; /* from 1; written last, 0 meanwhile */
    uint64_t stream; /* of the first op */
    uint32_t deed;   /* enum ag_deed */
    uint32_t ops;    /* of the segment */
    uint32_t graph;  /* its number in the track's table, 0: none */
    uint32_t thread; /* as the kernel numbers them, 0: not known */
    char why[24]; /* SENT, BUILT: the name of the refusal that the ops were sent one by one for */
};

struct ag_ring {
    char magic[16]; /* "AUTOGRAPH-RING", zeros */
    uint32_t version, entries, entry_bytes, unused;
    uint64_t context;
    uint64_t count; /* decisions, ever */
    struct ag_decision entry[AG_RING_ENTRIES];
};

void ag_ring_open(struct ag_ring *ring, uint64_t context);
/* `d->number` and `d->why` are filled in. */
void ag_ring_note(struct ag_ring *ring, const struct ag_decision *d, enum ag_refusal why);

#ifdef __cplusplus
}
#endif

#endif
