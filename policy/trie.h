/* policy/trie.h - the learned segments of one stream: a trie of signature numbers, rooted at a cut.
 * Called by  policy/decide.c             Calls  libc
 * Threads    none: the caller serialises
 * Promise    a node number stays what it is until the node is pruned (never one that carries a
 *            graph, is being built, or lies above one) or ag_trie_clear(). Memory bounded by
 *            max_nodes. Find and add are O(1), add amortised.
 * Start at   struct ag_node */
#ifndef AG_POLICY_TRIE_H
#define AG_POLICY_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_TRIE_ROOT 0u
#define AG_TRIE_MAX_DROPS 6u

/* 32 bytes, two to a cache line; the nodes of a segment are mostly neighbours. */
struct ag_node {
    uint32_t sig;         /* the op that leads here; 0 in the root and in free slots */
    uint32_t parent;      /* the node before; the root's is the root */
    uint32_t guess;       /* the child taken last, 0: none. In a free slot: the next free slot */
    uint32_t after;       /* the root's child that began the segment after this one, last time */
    uint32_t graph;       /* number of the graph of the segment that ends here, 0: none */
    uint32_t ready_below; /* graphs strictly below */
    uint32_t stamp;       /* ag_trie.now when made or when a segment last ended here */
    uint32_t seen : 16;   /* times a segment ended here since the last graph, saturating */
    uint32_t breaks : 5;  /* times in a row that an irregular end came here, saturating */
    uint32_t drops : 3;   /* graphs lost, up to MAX_DROPS: each doubles the sightings asked for */
    uint32_t failed : 1;  /* no graph can be built */
    uint32_t pending : 1; /* a build was asked for, its outcome is not known */
    uint32_t end : 3;     /* by pace: a segment that comes here ends here */
    uint32_t skip : 1;    /* a segment that comes here does not end here by growth */
    uint32_t keep : 1;    /* mark of the prune under way */
    uint32_t used : 1;    /* not a free slot */
};

struct ag_trie {
    struct ag_node *nodes; /* capacity + 1 slots; slot 0 is the root */
    uint32_t *slots; /* open addressing by (parent, sig): node numbers, 0 empty; mask + 1 of them */
    uint32_t mask;
    uint32_t capacity;  /* node numbers go up to this */
    uint32_t limit;     /* capacity never exceeds this */
    uint32_t next;      /* numbers from here on were never used */
    uint32_t free;      /* head of the list of pruned numbers */
    uint32_t count;     /* nodes in use, the root not counted */
    uint32_t graphs;    /* nodes with a graph */
    uint32_t now;       /* advanced by the owner at each cut; the clock of stamps */
    uint32_t pruned_at; /* `now` of the last prune */
    bool full; /* the last prune found almost everything needed: no more until a graph goes */
    /* T1 count nodes are used; every used node is found in slots under (parent, sig) and its parent
     * is used.
     * T2 guess is 0 or a used child of the node; after is 0 or a used child of the root.
     * T3 ready_below is the number of nodes with a graph strictly below; graphs is the root's
     * ready_below.
     * T4 a node with a graph is neither pending nor failed; the root has no graph.
     * T5 count + free slots + never used numbers = capacity <= limit, and count is at most half of
     * mask + 1. */
};

/* False when out of memory. */
bool ag_trie_init(struct ag_trie *t, uint32_t max_nodes);
void ag_trie_fini(struct ag_trie *t);
void ag_trie_clear(struct ag_trie *t);

/* The child of `parent` over `sig`, 0: none. */
uint32_t ag_trie_find(const struct ag_trie *t, uint32_t parent, uint32_t sig);
/* Makes that child (which must not exist). 0: no room or no memory. May prune, never on the way to
 * `parent`. */
uint32_t ag_trie_add(struct ag_trie *t, uint32_t parent, uint32_t sig);
/* Ops from the root to the node. */
uint32_t ag_trie_depth(const struct ag_trie *t, uint32_t node);
bool ag_trie_has(const struct ag_trie *t, uint32_t node);

void ag_trie_set_graph(struct ag_trie *t, uint32_t node, uint32_t graph);
/* The graph, or the build under way, is no more: seen starts anew and drops rises. */
void ag_trie_clear_graph(struct ag_trie *t, uint32_t node);
/* Takes these bits out of `end` of all nodes. Looks at each: not for every day. */
void ag_trie_unmark(struct ag_trie *t, uint32_t ends);

/* Checks T1 to T5. `why` may be NULL. */
bool ag_trie_check(const struct ag_trie *t, const char **why);

#ifdef __cplusplus
}
#endif
#endif
