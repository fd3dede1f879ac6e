/* policy/budget.h - which graph to give up when graphs take too much memory.
 * Called by  capture/replay.c            Calls  nothing
 * Threads    ag_budget_use() from any thread (relaxed); everything else under the caller's lock
 * Promise    sum of bytes of the entries never exceeds the cap after ag_budget_victim() has been
 *            obeyed until 0. Eviction is least recently used with hysteresis: a full cache of
 *            equally useful graphs does not thrash, it refuses newcomers (ag_budget_admit) that are
 *            used less than the victim they would displace.
 * Start at   ag_budget_admit() */
#ifndef AG_POLICY_BUDGET_H
#define AG_POLICY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_budget;

/* cap_bytes counts host and device bytes together. NULL when out of memory. */
struct ag_budget *ag_budget_create(uint64_t cap_bytes, uint32_t max_entries);
void ag_budget_destroy(struct ag_budget *b);
/* Another cap from now on; call ag_budget_victim() until it returns 0. */
void ag_budget_limit(struct ag_budget *b, uint64_t cap_bytes);

/* A new graph of `bytes`. Returns its entry number (from 1), or 0: refused. May leave the total
 * above the cap; then call ag_budget_victim() until it returns 0. */
uint32_t ag_budget_admit(struct ag_budget *b, uint64_t bytes);
/* The entry was replayed once. O(1), no lock. */
void ag_budget_use(struct ag_budget *b, uint32_t entry);
/* While over the cap: the entry to drop next (never the newest), else 0. The caller drops it and
 * calls release. */
uint32_t ag_budget_victim(struct ag_budget *b);
void ag_budget_release(struct ag_budget *b, uint32_t entry);
uint64_t ag_budget_bytes(const struct ag_budget *b);

#ifdef __cplusplus
}
#endif
#endif
