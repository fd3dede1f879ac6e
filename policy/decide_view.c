/* policy/decide_view.c - the policy of a stream, looked at from outside: numbers and invariants.
 * Called by  capture/, tests             Calls  policy/trie.c
 * Threads    none: the caller serialises
 * Promise    changes nothing
 * Start at   check() */
#include "policy/decide_state.h"

void ag_policy_look(const struct ag_policy *p, struct ag_policy_view *out)
{
    *out = (struct ag_policy_view){
        .nodes = p->trie.count,
        .graphs = p->trie.graphs,
        .depth = p->depth,
        .step = p->step,
        .ops = p->ops + p->depth,
        .held = p->held + (p->sent ? 0 : p->depth),
        .replayed = p->replayed,
        .built_ops = p->built_ops,
        .asides = p->pay.asides,
    };
}

static const char *check(const struct ag_policy *p)
{
    const struct ag_node *at = p->cursor == AG_POLICY_LOST ? NULL : &p->trie.nodes[p->cursor];
    if (p->depth > p->run || p->run >= p->cut_at || p->cut_at > p->cap ||
        p->cap > p->limits.max_segment)
        return "P1: depth, run and cut_at are out of order";
    if (at && ((p->cursor && !ag_trie_has(&p->trie, p->cursor)) ||
               ag_trie_depth(&p->trie, p->cursor) != p->depth))
        return "P2: the cursor is not where the segment is";
    if (!p->sent && (!at || (p->depth && !at->graph && !at->ready_below)))
        return "P3: ops are held for no graph";
    if (p->guess &&
        (!at || !ag_trie_has(&p->trie, p->guess) || p->trie.nodes[p->guess].parent != p->cursor))
        return "P4: guess is not a child of the cursor";
    if (p->pay.aside_left && p->depth)
        return "P5: a segment is under way while aside";
    return NULL;
}

bool ag_policy_check(const struct ag_policy *p, const char **why)
{
    const char *bad = check(p);
    if (bad && why)
        *why = bad;
    return !bad && ag_pay_check(&p->pay, why) && ag_pace_check(&p->pace, why) &&
           ag_trie_check(&p->trie, why);
}

bool ag_policy_wants_time(const struct ag_policy *p)
{
    return p->timing;
}

bool ag_policy_on_trial(const struct ag_policy *p)
{
    return p->pace.phase == AG_PACE_TRIAL;
}

enum ag_pace_kind ag_policy_pace(const struct ag_policy *p)
{
    return p->pace.now;
}

uint32_t ag_policy_patience(const struct ag_policy *p)
{
    return p->pace.now == AG_PACE_PATIENT ? AG_PACE_PATIENCE : 1;
}
