/* policy/decide.c - hold, cut, replay or build? The whole policy of one stream.
 * Called by  capture/submit.c            Calls  policy/trie.c
 * Threads    none: the caller serialises
 * Promise    counts only: no clock, no I/O. An op that follows a learned path allocates nothing.
 * Start at   ag_policy_op()
 *
 * Where segments end. `run` counts ops since the last end that is a place of the program, in two
 * phases:
 *   growing   after a synchronising drain the device is idle and wants work early: ends at
 *             first_segment, then twice that, and so on below max_segment. They fall on the same
 *             ops after every such drain.
 *   free      ends wherever, min_segment ops or more after the last end, the window (the last 8
 *             signatures) is that of the last end or of the anchor; else at max_segment. The last
 *             end finds short loops. The anchor is one place of the program (the first end of this
 *             phase, or a drain), given up when not met again for LOOP_SPAN segments of full
 *             length; it ties the ends in a loop of any length up to that to one place of it. After
 *             an end at max_segment, which is no place of the loop, it is obeyed at any distance.
 *             Once no anchor was met for as long, ends are also put where the window's hash has its
 *             top bits zero: the same places in every pass of a loop of any length. This stays so:
 *             switching back would move ends that are learned, and it costs but one launch in
 *             max_segment ops. Where the caller tells contents, a window recurs only if they do
 *             too, unless they are found not to (judge_contents).
 * In both, max_segment is what the host makes within the liveness bound, if that is less
 * (mind_the_host), or within the patience that it is granted (policy/pace.h).
 * Both leave tails too short for a graph. After one, the end by count before it moves: in the
 * growing phase it is left out (`skip`), at max_segment a node min_graph ops earlier becomes one
 * (`end`).
 *
 * Drains end a segment in both phases. A synchronising one starts growing anew; an asynchronous one
 * leaves the step alone, and the step only rises, so a loop with drains settles.
 * A break ends a segment without being a place of the program: `run` goes on, so that the next end
 * falls where it would have, and what lies between (torn) is remembered but not counted. Where the
 * host has no time for more than SHORT_SEGMENT ops, breaks are all over: there the next end is
 * counted from the break, and a loop has segments from each of its ops on, no more. A break that
 * comes to the same node again within BREAK_SPAN ends is a place after all and counts as a drain; at
 * the min_seen-th time the node is marked as an end, and later passes end there by themselves. */
#include "policy/decide.h"
#include "policy/decide_state.h"

#include <stdlib.h>

#define LOOP_SPAN 64u
#define BREAK_SPAN 64u
#define MOST_BREAKS 31u
#define MOST_SEEN 65535u
#define CONTENT_TRIES 2u
#define SHORT_SEGMENT 8u
#define HOST_WINDOW 16u    /* held segments; */
#define MANY_BREAKS 5u     /* so many of them broken: the host is slower than the bound; */
#define QUIET_WINDOWS 512u /* so many more windows without than breaks: perhaps it is faster */
#define MOST_TURNS 3u

_Static_assert(AG_PACE_KINDS <= 3, "ag_node.end has a bit for each pace");

enum end { END_RULE, END_DRAIN, END_SYNC, END_BREAK };

static struct ag_policy_limits sane(const struct ag_policy_limits *given)
{
    struct ag_policy_limits l = *given;
    l.max_segment = l.max_segment < 1 ? 1 : l.max_segment;
    l.first_segment = l.first_segment < 1 ? 1 : l.first_segment;
    l.min_segment = l.min_segment < 1 ? 1 : l.min_segment;
    l.min_segment = l.min_segment > l.max_segment ? l.max_segment : l.min_segment;
    l.min_graph = l.min_graph < 1 ? 1 : l.min_graph;
    l.min_seen = l.min_seen < 1 ? 1 : l.min_seen;
    return l;
}

static bool growing(const struct ag_policy *p)
{
    return p->step < p->steps;
}

/* Free running: no end below so many ops. */
static inline uint32_t least(const struct ag_policy *p)
{
    return p->limits.min_segment < p->cap ? p->limits.min_segment : p->cap;
}

/* Follows every change of `step`, `before` or `cap`. */
static void aim(struct ag_policy *p)
{
    if (growing(p)) {
        p->cut_at = p->limits.first_segment << p->step;
        p->cut_at = p->cut_at > p->cap ? p->cap : p->cut_at;
        p->recur_at = UINT32_MAX;
        return;
    }
    bool adrift = p->before == BEFORE_LENGTH || p->before == BEFORE_MARK;
    p->cut_at = p->cap;
    p->recur_at = adrift ? 1 : least(p);
}

struct ag_policy *ag_policy_create(const struct ag_policy_limits *limits)
{
    struct ag_policy *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->limits = sane(limits);
    p->cap = p->limits.max_segment;
    for (int k = 0; k < AG_PACE_KINDS; k++)
        p->caps[k] = p->cap;
    if (!ag_trie_init(&p->trie, p->limits.max_nodes)) {
        free(p);
        return NULL;
    }
    while (((uint64_t)p->limits.first_segment << p->steps) < p->limits.max_segment)
        p->steps++;
    p->hash_shift = 63;
    for (uint32_t n = p->limits.max_segment; n > 2; n /= 2)
        p->hash_shift--;
    ag_pay_init(&p->pay);
    ag_pace_init(&p->pace, p->limits.pace);
    p->sent = p->pace.now == AG_PACE_EAGER;
    p->end_bit = 1u << p->pace.now;
    aim(p);
    return p;
}

void ag_policy_destroy(struct ag_policy *p)
{
    if (!p)
        return;
    ag_trie_fini(&p->trie);
    free(p);
}

uint32_t ag_policy_expect(const struct ag_policy *p)
{
    return p->trie.nodes[p->guess].sig; /* the root's is 0 */
}

/* Each shift moves 8 bits out, so 8 ops later nothing of an op is left: equal values mean, but for
 * an accident that only misplaces an end, equal last 8 signatures. */
static inline uint64_t roll(uint64_t window, uint32_t sig)
{
    uint64_t mixed = sig * 0x9E3779B97F4A7C15u;
    return (window << 8) + (mixed ^ mixed >> 32);
}

void ag_policy_content(struct ag_policy *p, uint32_t content)
{
    p->bytes = roll(p->bytes, content);
}

/* From recur_at on: whether this is a place to end at. */
static inline bool recurs(const struct ag_policy *p)
{
    if (p->window == p->anchor && (p->loose || p->bytes == p->anchor_bytes))
        return true;
    return p->run >= least(p) &&
           ((p->window == p->prev && (p->loose || p->bytes == p->prev_bytes)) ||
            (p->lost && p->window >> p->hash_shift == 0));
}

/* Would it be one if contents did not matter? */
static inline bool nearly_recurs(const struct ag_policy *p)
{
    return p->run >= least(p) && (p->window == p->anchor || p->window == p->prev);
}

/* Whether contents recur is found out, from the guess that they do. `misses` counts segments that
 * ran to max_segment past places that only differ in contents; then places are known loosely.
 * `matches` counts loose ends whose contents were the anchor's all the same; then strictly again.
 * After MOST_TURNS changes of mind it stays as it is. */
static void judge_contents(struct ag_policy *p, enum before why)
{
    if (p->turns >= MOST_TURNS)
        return;
    if (p->loose)
        p->matches += p->window == p->anchor && p->bytes == p->anchor_bytes;
    else
        p->misses = why != BEFORE_LENGTH ? 0 : p->misses + (p->near != 0);
    if (p->loose ? p->matches >= CONTENT_TRIES : p->misses >= CONTENT_TRIES) {
        p->loose = !p->loose;
        p->misses = p->matches = 0;
        p->turns++;
    }
}

static inline bool ready(const struct ag_node *n)
{
    return n->graph | n->ready_below;
}

/* `held` ops of the segment had been answered with hold until now. */
static void stop_holding(struct ag_policy *p, uint32_t held)
{
    if (p->sent)
        return;
    p->sent = true;
    p->held += held;
}

static void lose(struct ag_policy *p, uint32_t held)
{
    p->cursor = AG_POLICY_LOST;
    p->guess = 0;
    p->fresh = true;
    stop_holding(p, held);
}

/* The op is not the one that was guessed. Returns its node, the root when it is not remembered. */
static __attribute__((noinline)) struct ag_node *stray(struct ag_policy *p, uint32_t sig)
{
    uint32_t from = p->cursor, to = 0;
    if (from != AG_POLICY_LOST) {
        to = ag_trie_find(&p->trie, from, sig);
        if (!to) {
            to = ag_trie_add(&p->trie, from, sig);
            p->fresh = true;
        }
    }
    struct ag_node *nodes = p->trie.nodes;
    if (!to) {
        lose(p, p->depth - 1);
        return &nodes[AG_TRIE_ROOT];
    }
    nodes[from].guess = to;
    if (from == AG_TRIE_ROOT && p->ended && ag_trie_has(&p->trie, p->ended))
        nodes[p->ended].after = to;
    p->cursor = to;
    p->guess = nodes[to].guess;
    return &nodes[to];
}

static bool worth_building(const struct ag_policy *p, const struct ag_node *n)
{
    return !n->failed && !n->pending && p->depth >= p->limits.min_graph &&
           n->seen >= (uint64_t)p->limits.min_seen << n->drops;
}

/* The segment that ends at the cursor's node counts. */
static enum ag_use sight(struct ag_policy *p, struct ag_node *n)
{
    n->stamp = p->trie.now;
    if (n->graph)
        return p->sent ? AG_USE_NONE : AG_USE_REPLAY;
    if (n->seen < MOST_SEEN)
        n->seen++;
    if (!worth_building(p, n) || !ag_pay_spend(&p->pay, p->depth))
        return AG_USE_NONE;
    n->pending = 1;
    return AG_USE_BUILD;
}

/* Whether breaks come here so regularly that this one is a place of the program. */
static bool regular_break(struct ag_policy *p, struct ag_node *n)
{
    bool again = n->breaks && p->trie.now - n->stamp <= BREAK_SPAN;
    if (!again)
        n->breaks = 1;
    else if (n->breaks < MOST_BREAKS)
        n->breaks++;
    n->stamp = p->trie.now;
    if (!again)
        return false;
    if (n->seen + 1u < n->breaks)
        n->seen = n->breaks - 1u; /* the first one was a sighting too */
    if (n->breaks >= p->limits.min_seen && p->depth >= p->limits.min_graph)
        n->end |= p->end_bit;
    return true;
}

static void account(struct ag_policy *p, enum ag_use use)
{
    bool known = !p->fresh && p->depth >= p->limits.min_graph;
    p->ops += p->depth;
    if (!p->sent)
        p->held += p->depth;
    if (use == AG_USE_REPLAY)
        p->replayed += p->depth;
    ag_pay_segment(&p->pay, p->depth, known, use == AG_USE_REPLAY);
}

/* Returns whether the end is at the anchor. */
static bool choose_anchor(struct ag_policy *p, bool drain)
{
    uint64_t span = (uint64_t)LOOP_SPAN * p->limits.max_segment;
    const bool met = p->window == p->anchor;
    if (met) {
        p->anchor_at = p->met_at = p->ops;
        p->settled = true;
    } else if (!p->anchor || p->ops - p->anchor_at > span || (drain && !p->settled)) {
        p->anchor = p->window;
        p->anchor_bytes = p->bytes;
        p->anchor_at = p->ops;
        p->settled = drain;
    }
    if (p->ops - p->met_at > span)
        p->lost = true;
    return met;
}

static void begin_segment(struct ag_policy *p)
{
    p->depth = 0;
    p->cursor = AG_TRIE_ROOT;
    p->sent = p->pace.now == AG_PACE_EAGER;
    p->fresh = false;
    uint32_t after = p->ended ? p->trie.nodes[p->ended].after : 0;
    p->guess = after ? after : p->trie.nodes[AG_TRIE_ROOT].guess;
    p->trie.now++;
}

/* The segment before ended by count, and what follows it until a place of the program is too short
 * for a graph. */
static void avoid_short_tail(struct ag_policy *p)
{
    struct ag_node *nodes = p->trie.nodes;
    uint32_t node = p->ended;
    if (p->depth >= p->limits.min_graph || !ag_trie_has(&p->trie, node))
        return;
    if (p->before == BEFORE_GROWTH)
        nodes[node].skip = 1;
    if (p->before != BEFORE_LENGTH)
        return;
    for (uint32_t i = 0; i < p->limits.min_graph; i++)
        node = nodes[node].parent;
    if (ag_trie_depth(&p->trie, node) >= p->limits.min_graph)
        nodes[node].end |= p->end_bit;
}

static enum before reason(const struct ag_policy *p, const struct ag_node *n, enum end how)
{
    if (how != END_RULE || (!growing(p) && recurs(p)))
        return BEFORE_PLACE;
    if (p->run >= p->cut_at)
        return growing(p) ? BEFORE_GROWTH : BEFORE_LENGTH;
    return n->end & p->end_bit ? BEFORE_MARK : BEFORE_PLACE;
}

/* The end counts: what follows is counted and compared from here. Returns whether it is at the
 * anchor. */
static bool settle(struct ag_policy *p, enum before why, bool drain)
{
    bool met = false;
    p->torn = false;
    if (!drain && !growing(p))
        judge_contents(p, why);
    p->near = 0;
    p->prev = p->window;
    p->prev_bytes = p->bytes;
    if (drain || !growing(p))
        met = choose_anchor(p, drain);
    if (why == BEFORE_GROWTH)
        p->step++;
    p->before = why;
    p->run = 0;
    aim(p);
    return met;
}

/* A break that is no place of the program. */
static void tear(struct ag_policy *p)
{
    p->before = BEFORE_PLACE;
    p->torn = p->cap > SHORT_SEGMENT;
    p->run = p->torn ? p->run : 0;
    aim(p);
}

static void take_cap(struct ag_policy *p)
{
    p->cap = p->caps[p->pace.now];
    p->run = 0;
    aim(p);
}

/* A length that a segment may be limited to: not below that of a graph, not above the longest. */
static uint32_t between(const struct ag_policy *p, uint32_t ops)
{
    const uint32_t most = p->limits.max_segment;
    ops = ops < p->limits.min_graph ? p->limits.min_graph : ops;
    return ops < most ? ops : most;
}

/* The longest segment, in steps of two, that has at most so many ops. */
static uint32_t fitting(const struct ag_policy *p, uint32_t ops)
{
    uint32_t cap = p->limits.max_segment;
    while (cap > p->limits.min_graph && cap > ops)
        cap /= 2;
    return between(p, cap);
}

/* A host that takes longer for a segment than it may be held has it broken again and again, at ever
 * other places; then segments must be shorter. Judged by windows of segments that were held to
 * their end or to a break; a break now and then is not worth shorter graphs, nor a reason to keep
 * them short: it takes one quiet window back. Each pace has its own length. */
static void mind_the_host(struct ag_policy *p, enum end how)
{
    if (p->sent)
        return;
    p->held_ends++;
    p->breaks += how == END_BREAK;
    p->broken_ops += how == END_BREAK ? p->depth : 0;
    if (p->held_ends < HOST_WINDOW)
        return;
    p->quiet = p->breaks < p->quiet ? p->quiet - p->breaks + !p->breaks : !p->breaks;
    uint32_t cap = p->cap;
    if (p->breaks >= MANY_BREAKS) {
        const uint32_t fits = fitting(p, p->broken_ops / p->breaks * 3 / 4);
        cap = cap < fits ? cap : fits;
        if (cap < p->cap && p->pace.now == AG_PACE_PROMPT) {
            const uint32_t more = p->broken_ops * 3 / 4 * AG_PACE_PATIENCE / p->breaks;
            if (!p->pace.slow) /* later it has found its own length */
                p->caps[AG_PACE_PATIENT] = between(p, more);
            ag_pace_host_is_slow(&p->pace);
        }
    } else if (p->quiet >= QUIET_WINDOWS) {
        if (cap == p->limits.max_segment)
            ag_pace_host_is_fast(&p->pace);
        else /* ends that came of shorter segments would keep them short */
            ag_trie_unmark(&p->trie, p->end_bit);
        cap = cap > p->limits.max_segment / 2 ? p->limits.max_segment : cap * 2;
        p->quiet = 0;
    }
    p->held_ends = p->breaks = p->broken_ops = 0;
    if (cap == p->cap)
        return;
    p->caps[p->pace.now] = cap;
    ag_pace_doubt(&p->pace);
    take_cap(p);
}

static __attribute__((noinline)) struct ag_verdict end_segment(struct ag_policy *p, enum end how)
{
    uint32_t node = p->cursor == AG_POLICY_LOST ? 0 : p->cursor;
    struct ag_node *n = &p->trie.nodes[node];
    struct ag_verdict v = {.hold = !p->sent, .cut = true, .segment = node};
    bool torn = p->torn;
    if (how == END_BREAK)
        torn = !(node && regular_break(p, n));
    if (node && !torn)
        v.use = sight(p, n);
    else if (node && n->graph && !p->sent)
        v.use = AG_USE_REPLAY;
    v.graph = v.use == AG_USE_REPLAY ? n->graph : 0;
    account(p, v.use);
    const uint32_t ops = p->depth;
    bool met = false;
    if (how == END_BREAK && torn) {
        tear(p);
    } else {
        enum before why = reason(p, n, how);
        if (why == BEFORE_PLACE && !torn)
            avoid_short_tail(p);
        met = settle(p, why, how != END_RULE);
    }
    p->timing = ag_pace_segment(&p->pace, ops, v.use == AG_USE_REPLAY ? ops : 0,
                                how == END_SYNC ? AG_PACE_AT_SYNC
                                : met           ? AG_PACE_AT_ANCHOR
                                                : AG_PACE_ANYWHERE);
    mind_the_host(p, how);
    p->ended = node;
    begin_segment(p);
    return v;
}

/* At an end by growth that would leave a tail too short for a graph. */
static bool skip_end(struct ag_policy *p, const struct ag_node *n)
{
    if (!n->skip || !growing(p) || n->end & p->end_bit || p->run >= p->cap)
        return false;
    p->step++;
    aim(p);
    return true;
}

struct ag_verdict ag_policy_op(struct ag_policy *p, uint32_t sig)
{
    if (__builtin_expect(p->pay.aside_left != 0, 0)) {
        ag_policy_passed(p, 1);
        return (struct ag_verdict){.hold = false};
    }
    p->window = roll(p->window, sig);
    p->depth++;
    p->run++;
    struct ag_node *n = &p->trie.nodes[p->guess];
    if (__builtin_expect(n->sig == sig, 1)) {
        p->cursor = p->guess;
        p->guess = n->guess;
    } else {
        n = stray(p, sig);
    }
    if (!ready(n))
        stop_holding(p, p->depth - 1);
    if (p->run >= p->cut_at || n->end & p->end_bit || (p->run >= p->recur_at && recurs(p))) {
        if (!skip_end(p, n))
            return end_segment(p, END_RULE);
    } else if (__builtin_expect(p->run >= p->recur_at && nearly_recurs(p), 0)) {
        p->near = 1;
    }
    return (struct ag_verdict){.hold = !p->sent};
}

struct ag_verdict ag_policy_drain(struct ag_policy *p, enum ag_drain_kind kind)
{
    struct ag_verdict v = {.cut = false};
    if (kind == AG_DRAIN_BREAK)
        return p->depth ? end_segment(p, END_BREAK) : v;
    if (kind == AG_DRAIN_SYNC)
        p->step = 0;
    if (p->depth)
        return end_segment(p, kind == AG_DRAIN_SYNC ? END_SYNC : END_DRAIN);
    if (p->pay.aside_left)
        return v;
    settle(p, BEFORE_PLACE, true);
    if (kind == AG_DRAIN_SYNC)
        p->timing = ag_pace_segment(&p->pace, 0, 0, AG_PACE_AT_SYNC);
    return v;
}

void ag_policy_spoil(struct ag_policy *p)
{
    stop_holding(p, p->depth);
}

void ag_policy_built(struct ag_policy *p, uint32_t segment, uint32_t graph)
{
    if (!graph || !ag_trie_has(&p->trie, segment) || !p->trie.nodes[segment].pending)
        return;
    ag_trie_set_graph(&p->trie, segment, graph);
    p->built_ops += ag_trie_depth(&p->trie, segment);
}

void ag_policy_failed(struct ag_policy *p, uint32_t segment)
{
    if (!ag_trie_has(&p->trie, segment) || !p->trie.nodes[segment].pending)
        return;
    p->trie.nodes[segment].pending = 0;
    p->trie.nodes[segment].failed = 1;
}

void ag_policy_dropped(struct ag_policy *p, uint32_t segment)
{
    if (!ag_trie_has(&p->trie, segment))
        return;
    ag_trie_clear_graph(&p->trie, segment);
    /* What is held may have been held for this graph. */
    if (p->depth && !p->sent && !ready(&p->trie.nodes[p->cursor]))
        stop_holding(p, p->depth);
}

void ag_policy_forget(struct ag_policy *p)
{
    ag_trie_clear(&p->trie);
    p->window = p->prev = p->anchor = 0;
    p->bytes = p->prev_bytes = p->anchor_bytes = 0;
    p->settled = p->lost = false;
    p->met_at = p->anchor_at = p->ops;
    p->ended = p->guess = 0;
    if (p->depth)
        lose(p, p->depth);
}

bool ag_policy_aside(const struct ag_policy *p)
{
    return p->pay.aside_left != 0;
}

void ag_policy_passed(struct ag_policy *p, uint32_t ops)
{
    if (!ag_pay_pass(&p->pay, ops))
        return;
    ag_pace_resume(&p->pace);
    p->window = p->prev = p->bytes = p->prev_bytes =
        0; /* what stood before the pause does not join what comes after it */
    p->run = p->ended = 0;
    p->torn = false;
    p->before = BEFORE_PLACE;
    aim(p);
    p->guess = p->trie.nodes[AG_TRIE_ROOT].guess;
}

enum ag_pace_news ag_policy_time(struct ag_policy *p, uint64_t now_ns)
{
    /* A host that became fast while it had patience shows it with segments as long as it has now;
     * one that did not has them broken, and short again within the blocks that do not count. */
    if (p->pace.now == AG_PACE_PATIENT && !p->pace.began_ns && !p->pace.round)
        p->caps[AG_PACE_PROMPT] = p->caps[AG_PACE_PATIENT];
    const enum ag_pace_news news = ag_pace_time(&p->pace, now_ns);
    p->timing = false;
    if (news == AG_PACE_NOTHING)
        return news;
    p->sent = p->pace.now == AG_PACE_EAGER;
    p->end_bit = 1u << p->pace.now;
    p->held_ends = p->breaks = p->broken_ops = p->quiet = 0;
    if (p->cap != p->caps[p->pace.now])
        take_cap(p);
    if (news == AG_PACE_CHOSEN && p->pace.now == AG_PACE_EAGER)
        ag_pay_pause(&p->pay, ag_pace_skip_rest(&p->pace));
    return news;
}

void ag_policy_idle(struct ag_policy *p, uint64_t ns)
{
    ag_pace_idle(&p->pace, ns);
}
