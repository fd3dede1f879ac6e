/* capture/ring.c - see ring.h. */
#include "capture/ring.h"
#include <stdatomic.h>
#include <string.h>

_Static_assert(sizeof(struct ag_decision) == 56, "the layout that tools/autograph reads");
_Static_assert(sizeof(struct ag_ring) == 48 + AG_RING_ENTRIES * 56, "no padding");

void ag_ring_open(struct ag_ring *ring, uint64_t context)
{
    /* In two parts, so that the whole stands nowhere else in the process. */
    memcpy(ring->magic, "AUTOGRAP", 8);
    memcpy(ring->magic + 8, "H-RING", 6);
    ring->version = AG_RING_VERSION;
    ring->entries = AG_RING_ENTRIES;
    ring->entry_bytes = sizeof(struct ag_decision);
    ring->context = context;
}

void ag_ring_note(struct ag_ring *ring, const struct ag_decision *d, enum ag_refusal why)
{
    struct ag_decision *e = &ring->entry[ring->count++ % AG_RING_ENTRIES];
    e->number = 0;
    atomic_signal_fence(memory_order_seq_cst);
    *e = *d;
    e->number = 0;
    strncpy(e->why, ag_refusal_name(why), sizeof e->why - 1);
    e->why[sizeof e->why - 1] = '\0';
    atomic_signal_fence(memory_order_seq_cst);
    e->number = ring->count;
}
