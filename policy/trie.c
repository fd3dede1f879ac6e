/* policy/trie.c - the learned segments of one stream.
 * Called by  policy/decide.c             Calls  libc
 * Threads    none: the caller serialises
 * Promise    see trie.h. Children are found in one table over (parent, sig), so a node with ten
 *            thousand children costs what a node with one costs; nothing is ever taken out of the
 *            table one by one, a prune makes it anew.
 * Start at   ag_trie_add(), prune() */
#include "policy/trie.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256u
#define MOST_NODES (1u << 24)

static uint32_t hash(uint32_t parent, uint32_t sig)
{
    uint64_t x = ((uint64_t)parent << 32 | sig) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(x >> 32) ^ (uint32_t)(x >> 17);
}

static void enter(struct ag_trie *t, uint32_t node)
{
    uint32_t i = hash(t->nodes[node].parent, t->nodes[node].sig) & t->mask;
    while (t->slots[i])
        i = (i + 1) & t->mask;
    t->slots[i] = node;
}

static void enter_all(struct ag_trie *t)
{
    memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof *t->slots);
    for (uint32_t i = 1; i < t->next; i++)
        if (t->nodes[i].used)
            enter(t, i);
}

/* On failure the trie stands as it was, at worst with a larger node array than `capacity` says. */
static bool grow(struct ag_trie *t, uint32_t capacity)
{
    if (capacity > t->limit)
        capacity = t->limit;
    uint32_t size = 16;
    while (size < 2 * capacity)
        size *= 2;
    struct ag_node *nodes = realloc(t->nodes, ((size_t)capacity + 1) * sizeof *nodes);
    if (!nodes)
        return false;
    t->nodes = nodes;
    uint32_t *slots = malloc((size_t)size * sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->mask = size - 1;
    t->capacity = capacity;
    enter_all(t);
    return true;
}

bool ag_trie_init(struct ag_trie *t, uint32_t max_nodes)
{
    memset(t, 0, sizeof *t);
    t->limit = max_nodes < 1 ? 1 : max_nodes > MOST_NODES ? MOST_NODES : max_nodes;
    t->next = 1;
    if (!grow(t, FIRST_CAPACITY)) {
        ag_trie_fini(t);
        return false;
    }
    t->nodes[AG_TRIE_ROOT] = (struct ag_node){.used = 1};
    return true;
}

void ag_trie_fini(struct ag_trie *t)
{
    free(t->nodes);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

void ag_trie_clear(struct ag_trie *t)
{
    t->nodes[AG_TRIE_ROOT] = (struct ag_node){.used = 1};
    t->next = 1;
    t->free = t->count = t->graphs = 0;
    t->full = false;
    enter_all(t);
}

uint32_t ag_trie_find(const struct ag_trie *t, uint32_t parent, uint32_t sig)
{
    for (uint32_t i = hash(parent, sig) & t->mask; t->slots[i]; i = (i + 1) & t->mask) {
        const struct ag_node *n = &t->nodes[t->slots[i]];
        if (n->parent == parent && n->sig == sig)
            return t->slots[i];
    }
    return 0;
}

bool ag_trie_has(const struct ag_trie *t, uint32_t node)
{
    return node > 0 && node < t->next && t->nodes[node].used;
}

uint32_t ag_trie_depth(const struct ag_trie *t, uint32_t node)
{
    uint32_t depth = 0;
    for (; node; node = t->nodes[node].parent)
        depth++;
    return depth;
}

static void keep_path(struct ag_trie *t, uint32_t node)
{
    for (; !t->nodes[node].keep; node = t->nodes[node].parent)
        t->nodes[node].keep = 1;
}

static void mark(struct ag_trie *t, uint32_t current, bool recurring_too)
{
    t->nodes[AG_TRIE_ROOT].keep = 1;
    keep_path(t, current);
    for (uint32_t i = 1; i < t->next; i++) {
        const struct ag_node *n = &t->nodes[i];
        bool recurring = n->seen >= 2 && n->stamp - t->pruned_at < UINT32_MAX / 2;
#ifdef AG_MUTANT_PENDING_PRUNED /* where a build is under way */
        if (n->used && (n->graph || (recurring_too && recurring)))
            keep_path(t, i);
        continue;
#endif
        if (n->used && (n->graph || n->pending || (recurring_too && recurring)))
            keep_path(t, i);
    }
}

/* Frees what is not marked and wipes the marks. */
static uint32_t sweep(struct ag_trie *t)
{
    uint32_t freed = 0;
    for (uint32_t i = 1; i < t->next; i++) {
        struct ag_node *n = &t->nodes[i];
        if (!n->used || n->keep)
            continue;
        *n = (struct ag_node){.guess = t->free};
        t->free = i;
        freed++;
    }
    for (uint32_t i = 0; i < t->next; i++) {
        struct ag_node *n = &t->nodes[i];
        if (!n->used)
            continue;
        n->keep = 0;
        if (!t->nodes[n->guess].used)
            n->guess = 0;
        if (!t->nodes[n->after].used)
            n->after = 0;
    }
    t->count -= freed;
    return freed;
}

/* Two chances: what has recurred since the last prune survives the first pass. A pass costs one
 * walk over all nodes, so it must free a good part of them; when it cannot, no other is tried until
 * a graph has gone. */
static void prune(struct ag_trie *t, uint32_t current)
{
    mark(t, current, true);
    uint32_t freed = sweep(t);
    if (freed < t->limit / 4) {
        mark(t, current, false);
        freed += sweep(t);
    }
    t->full = freed < t->limit / 8;
    t->pruned_at = t->now;
    enter_all(t);
}

static uint32_t take_number(struct ag_trie *t, uint32_t parent)
{
    if (!t->free && t->next > t->capacity) {
        if (t->capacity < t->limit)
            grow(t, 2 * t->capacity);
        else if (!t->full)
            prune(t, parent);
    }
    uint32_t node = t->free;
    if (node)
        t->free = t->nodes[node].guess;
    else if (t->next <= t->capacity)
        node = t->next++;
    return node;
}

uint32_t ag_trie_add(struct ag_trie *t, uint32_t parent, uint32_t sig)
{
    uint32_t node = take_number(t, parent);
    if (!node)
        return 0;
    t->nodes[node] = (struct ag_node){.sig = sig, .parent = parent, .stamp = t->now, .used = 1};
    t->count++;
    enter(t, node);
    return node;
}

void ag_trie_set_graph(struct ag_trie *t, uint32_t node, uint32_t graph)
{
    struct ag_node *n = &t->nodes[node];
    n->pending = n->failed = 0;
    if (n->graph) {
        n->graph = graph;
        return;
    }
    n->graph = graph;
    t->graphs++;
    do {
        node = t->nodes[node].parent;
        t->nodes[node].ready_below++;
    } while (node);
}

void ag_trie_unmark(struct ag_trie *t, uint32_t ends)
{
    for (uint32_t i = 0; i < t->next; i++)
        t->nodes[i].end &= ~ends;
}

void ag_trie_clear_graph(struct ag_trie *t, uint32_t node)
{
    struct ag_node *n = &t->nodes[node];
    if (!n->graph && !n->pending)
        return;
    bool had = n->graph;
    n->graph = n->seen = n->pending = 0;
    if (n->drops < AG_TRIE_MAX_DROPS)
        n->drops++;
    t->full = false;
    if (!had)
        return;
    t->graphs--;
    do {
        node = t->nodes[node].parent;
        t->nodes[node].ready_below--;
    } while (node);
}

static const char *check_node(const struct ag_trie *t, uint32_t i)
{
    const struct ag_node *n = &t->nodes[i];
    if (i && (n->parent >= t->next || !t->nodes[n->parent].used || n->sig == 0))
        return "T1: a node hangs on nothing";
    if (i && ag_trie_find(t, n->parent, n->sig) != i)
        return "T1: a node is not found under its parent and signature";
    if (n->guess && (!ag_trie_has(t, n->guess) || t->nodes[n->guess].parent != i))
        return "T2: guess is not a child";
    if (n->after && (!ag_trie_has(t, n->after) || t->nodes[n->after].parent != AG_TRIE_ROOT))
        return "T2: after is not a child of the root";
    if (n->graph && (n->pending || n->failed || i == AG_TRIE_ROOT))
        return "T4: a node with a graph is pending or failed or the root";
    return NULL;
}

/* Counts graphs below each node by walking up from each graph. */
static const char *check_ready(const struct ag_trie *t)
{
    uint32_t *below = calloc(t->next, sizeof *below);
    if (!below)
        return NULL; /* nothing can be said */
    uint32_t graphs = 0;
    for (uint32_t i = 1; i < t->next; i++) {
        if (!t->nodes[i].used || !t->nodes[i].graph)
            continue;
        graphs++;
        uint32_t up = i;
        do {
            up = t->nodes[up].parent;
            below[up]++;
        } while (up);
    }
    bool ok = graphs == t->graphs;
    for (uint32_t i = 0; i < t->next; i++)
        ok = ok && (!t->nodes[i].used || t->nodes[i].ready_below == below[i]);
    free(below);
    return ok ? NULL : "T3: ready_below or graphs is not the number of graphs below";
}

static const char *check_all(const struct ag_trie *t)
{
    uint32_t used = 0, listed = 0;
    for (uint32_t i = 0; i < t->next; i++) {
        const char *bad = t->nodes[i].used ? check_node(t, i) : NULL;
        if (bad)
            return bad;
        used += i && t->nodes[i].used;
    }
    if (used != t->count)
        return "T1: count is not the number of used nodes";
    for (uint32_t i = t->free; i && listed <= t->capacity; i = t->nodes[i].guess)
        listed++;
    if (used + listed + (t->capacity + 1 - t->next) != t->capacity || t->capacity > t->limit ||
        t->count > ((uint64_t)t->mask + 1) / 2)
        return "T5: slots do not add up";
    return check_ready(t);
}

bool ag_trie_check(const struct ag_trie *t, const char **why)
{
    const char *bad = check_all(t);
    if (bad && why)
        *why = bad;
    return !bad;
}
