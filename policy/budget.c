/* policy/budget.c - which graph to give up when graphs take too much memory.
 * Called by  capture/replay.c            Calls  nothing
 * Threads    ag_budget_use() from any thread (relaxed); everything else under the caller's lock
 * Promise    see budget.h
 * Start at   ag_budget_admit()
 *
 * Time is counted in uses of any entry. When a newcomer does not fit, the entry used least recently
 * would have to go. It is stale, and goes, when it was left out for STALE_ROUNDS times as many uses
 * as there are entries; one that is used in turn with the others is not, and the newcomer, of which
 * nobody knows more than that it is one of many, is refused. When a program has moved on altogether
 * nothing is used any more and nothing would grow stale: so after REFUSED_IN_A_ROW refusals without
 * a single use between them the oldest goes all the same. */
#include "policy/budget.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STALE_ROUNDS 4u
#define REFUSED_IN_A_ROW 8u

struct entry {
    uint64_t bytes; /* 0: a free entry */
    _Atomic uint64_t used_at;
};

struct ag_budget {
    struct entry *entries; /* 1 to max_entries + 1: a newcomer stands beside whom it displaces */
    uint64_t cap, total;
    uint32_t max_entries, count;
    uint32_t newest;  /* never a victim */
    uint32_t refused; /* in a row, without a use between them */
    uint64_t refused_at;
    _Atomic uint64_t uses; /* the clock */
};

struct ag_budget *ag_budget_create(uint64_t cap_bytes, uint32_t max_entries)
{
    if (max_entries > UINT32_MAX - 2)
        max_entries = UINT32_MAX - 2;
    struct ag_budget *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->entries = calloc((size_t)max_entries + 2, sizeof *b->entries);
    if (!b->entries) {
        free(b);
        return NULL;
    }
    b->cap = cap_bytes;
    b->max_entries = max_entries;
    return b;
}

void ag_budget_limit(struct ag_budget *b, uint64_t cap_bytes)
{
    b->cap = cap_bytes;
}

void ag_budget_destroy(struct ag_budget *b)
{
    if (!b)
        return;
    free(b->entries);
    free(b);
}

static uint64_t used_at(const struct ag_budget *b, uint32_t entry)
{
    return atomic_load_explicit(&b->entries[entry].used_at, memory_order_relaxed);
}

/* 0: there is none but `except`. */
static uint32_t oldest(const struct ag_budget *b, uint32_t except)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i <= b->max_entries + 1; i++)
        if (b->entries[i].bytes && i != except && (!found || used_at(b, i) < used_at(b, found)))
            found = i;
    return found;
}

static bool over(const struct ag_budget *b, uint64_t total, uint32_t count)
{
#ifdef AG_MUTANT_UNBOUNDED /* bytes are counted and forgotten */
    return count > b->max_entries;
#endif
    return total > b->cap || count > b->max_entries;
}

/* Whether the newcomer fits once everything stale has gone. */
static bool stale_make_room(const struct ag_budget *b, uint64_t now, uint64_t bytes)
{
    uint64_t total = b->total + bytes;
    uint32_t count = b->count + 1;
    for (uint32_t i = 1; i <= b->max_entries + 1; i++) {
        if (b->entries[i].bytes && now - used_at(b, i) > (uint64_t)STALE_ROUNDS * b->count) {
            total -= b->entries[i].bytes;
            count--;
        }
    }
    return !over(b, total, count);
}

static bool may_displace(struct ag_budget *b, uint64_t bytes)
{
    uint64_t now = atomic_load_explicit(&b->uses, memory_order_relaxed);
    if (stale_make_room(b, now, bytes))
        return true;
    b->refused = now == b->refused_at ? b->refused + 1 : 1;
    b->refused_at = now;
    return b->refused > REFUSED_IN_A_ROW;
}

static uint32_t free_entry(const struct ag_budget *b)
{
    uint32_t i = 1;
    while (b->entries[i].bytes)
        i++;
    return i;
}

uint32_t ag_budget_admit(struct ag_budget *b, uint64_t bytes)
{
    bytes = bytes ? bytes : 1;
    if (bytes > b->cap || !b->max_entries || over(b, b->total, b->count))
        return 0;
    if (over(b, b->total + bytes, b->count + 1) && !may_displace(b, bytes))
        return 0;
    uint32_t entry = free_entry(b);
    b->entries[entry].bytes = bytes;
    b->total += bytes;
    b->count++;
    b->newest = entry;
    atomic_store_explicit(&b->entries[entry].used_at,
                          atomic_load_explicit(&b->uses, memory_order_relaxed),
                          memory_order_relaxed);
    return entry;
}

void ag_budget_use(struct ag_budget *b, uint32_t entry)
{
    if (!entry || entry > b->max_entries + 1)
        return;
    uint64_t now = atomic_fetch_add_explicit(&b->uses, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&b->entries[entry].used_at, now, memory_order_relaxed);
}

uint32_t ag_budget_victim(struct ag_budget *b)
{
    return over(b, b->total, b->count) ? oldest(b, b->newest) : 0;
}

void ag_budget_release(struct ag_budget *b, uint32_t entry)
{
    if (!entry || entry > b->max_entries + 1 || !b->entries[entry].bytes)
        return;
    b->total -= b->entries[entry].bytes;
    b->entries[entry].bytes = 0;
    b->count--;
}

uint64_t ag_budget_bytes(const struct ag_budget *b)
{
    return b->total;
}
