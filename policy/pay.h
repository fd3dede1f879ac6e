/* policy/pay.h - do graphs pay on this stream? What it may spend on builds, and when it should not
 * be looked at. Called by  policy/decide.c             Calls  nothing
 * Threads    none: the caller serialises
 * Promise    counts only: no clock
 * Start at   ag_pay_segment()
 *
 * Credit. A built node costs about 6 us, a replayed op saves about 3. A stream starts with a grant;
 * each replayed op earns half of what it gained, each op at all a trifle (under 1% of an eager
 * launch), so that a program that changes its ways is not locked out.
 * Pauses. Judged over windows of ops: good, when 1/8 of them were replayed, else bad. Bad windows
 * use up patience: little, when half of the ops were in segments that are long enough for a graph
 * and known (a long loop is being learned), much otherwise. Without patience the stream goes aside
 * for a number of ops that doubles each time; then a shorter patience is granted. A good window
 * restores everything. */
#ifndef AG_POLICY_PAY_H
#define AG_POLICY_PAY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In 1/256 node, but for the first. */
#define AG_PAY_NODE 256
#define AG_PAY_GRANT (8192 * AG_PAY_NODE)
#define AG_PAY_REPLAYED 64
#define AG_PAY_OP 1
#define AG_PAY_MOST (4 * AG_PAY_GRANT)

#define AG_PAY_WINDOW 4096u
#define AG_PAY_PATIENCE 24u
#define AG_PAY_SECOND_LOOK 8u
#define AG_PAY_COST_KNOWN 1u
#define AG_PAY_COST_NOVEL 4u
#define AG_PAY_ASIDE_FIRST 8192u
#define AG_PAY_ASIDE_MOST (1u << 20)

struct ag_pay {
    int64_t credit;
    uint32_t ops, replayed, known; /* of the window under way */
    uint32_t patience;
    uint32_t aside_next; /* ops of the next pause */
    uint32_t aside_left; /* ops of this pause still to come; 0: looking */
    uint64_t asides;
    /* Y1 credit is between 0 and AG_PAY_MOST.
     * Y2 replayed and known are each at most ops.
     * Y3 patience is at least 1 and at most AG_PAY_PATIENCE. */
};

void ag_pay_init(struct ag_pay *y);

/* Spends on a graph of `nodes`, if there is credit for it. */
bool ag_pay_spend(struct ag_pay *y, uint32_t nodes);

/* A segment of `ops` ended. May begin a pause. */
void ag_pay_segment(struct ag_pay *y, uint32_t ops, bool known, bool replayed);

/* Begins a pause of `ops`, AG_PAY_ASIDE_MOST at most, for a reason of the caller's. */
void ag_pay_pause(struct ag_pay *y, uint64_t ops);

/* `ops` passed in the pause. True when it is over with them. */
bool ag_pay_pass(struct ag_pay *y, uint32_t ops);

/* Checks Y1 to Y3. `why` may be NULL. */
bool ag_pay_check(const struct ag_pay *y, const char **why);

#ifdef __cplusplus
}
#endif
#endif
