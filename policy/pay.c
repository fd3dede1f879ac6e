/* policy/pay.c - do graphs pay on this stream?
 * Called by  policy/decide.c             Calls  nothing
 * Threads    none: the caller serialises
 * Promise    see pay.h
 * Start at   ag_pay_segment() */
#include "policy/pay.h"

#include <stddef.h>

void ag_pay_init(struct ag_pay *y)
{
    *y = (struct ag_pay){
        .credit = AG_PAY_GRANT,
        .patience = AG_PAY_PATIENCE,
        .aside_next = AG_PAY_ASIDE_FIRST,
    };
}

bool ag_pay_spend(struct ag_pay *y, uint32_t nodes)
{
#ifdef AG_MUTANT_NO_STEP_ASIDE /* builds whatever is seen often enough, and never looks away */
    return true;
#endif
    int64_t cost = (int64_t)nodes * AG_PAY_NODE;
    if (y->credit < cost)
        return false;
    y->credit -= cost;
    return true;
}

static void earn(struct ag_pay *y, uint32_t ops, uint32_t each)
{
    y->credit += (int64_t)ops * each;
    if (y->credit > AG_PAY_MOST)
        y->credit = AG_PAY_MOST;
}

static void judge(struct ag_pay *y)
{
    bool good = y->replayed >= y->ops / 8;
    uint32_t cost = y->known >= y->ops / 2 ? AG_PAY_COST_KNOWN : AG_PAY_COST_NOVEL;
    y->ops = y->replayed = y->known = 0;
    if (good) {
        y->patience = AG_PAY_PATIENCE;
        y->aside_next = AG_PAY_ASIDE_FIRST;
        return;
    }
    if (y->patience > cost) {
        y->patience -= cost;
        return;
    }
#ifdef AG_MUTANT_NO_STEP_ASIDE
    return;
#endif
    y->asides++;
    y->aside_left = y->aside_next;
    y->aside_next = y->aside_next < AG_PAY_ASIDE_MOST ? y->aside_next * 2 : AG_PAY_ASIDE_MOST;
    y->patience = AG_PAY_SECOND_LOOK;
}

void ag_pay_segment(struct ag_pay *y, uint32_t ops, bool known, bool replayed)
{
    earn(y, ops, AG_PAY_OP + (replayed ? AG_PAY_REPLAYED : 0));
    y->ops += ops;
    y->known += known ? ops : 0;
    y->replayed += replayed ? ops : 0;
    if (y->ops >= AG_PAY_WINDOW)
        judge(y);
}

void ag_pay_pause(struct ag_pay *y, uint64_t ops)
{
    y->asides++;
    y->aside_left = ops < AG_PAY_ASIDE_MOST ? (uint32_t)ops : AG_PAY_ASIDE_MOST;
}

bool ag_pay_pass(struct ag_pay *y, uint32_t ops)
{
    if (!y->aside_left)
        return false;
    earn(y, ops, AG_PAY_OP);
    y->aside_left -= ops < y->aside_left ? ops : y->aside_left;
    return !y->aside_left;
}

static const char *check(const struct ag_pay *y)
{
    if (y->credit < 0 || y->credit > AG_PAY_MOST)
        return "Y1: credit is out of bounds";
    if (y->replayed > y->ops || y->known > y->ops)
        return "Y2: more ops replayed or known than there were";
    if (y->patience < 1 || y->patience > AG_PAY_PATIENCE)
        return "Y3: patience is out of bounds";
    return NULL;
}

bool ag_pay_check(const struct ag_pay *y, const char **why)
{
    const char *bad = check(y);
    if (bad && why)
        *why = bad;
    return !bad;
}
