/* policy/decide.c - hold, cut, replay or build? The whole policy of one stream.
 * Called by  capture/submit.c            Calls  policy/trie.c
 * Threads    none: the caller serialises
 * Promise    counts only: no clock, no I/O. An op that follows a learned path allocates nothing.
 * Start at   ag_policy_op()
 *
 * Where segments end. `run` counts ops since the last end that is a place of the program, in two phases:
 *   growing   after a synchronising drain the device is idle and wants work early: ends at first_segment, then twice
 *             that, and so on below max_segment. Ends fall on the same ops after every such drain.
 *   free      an end wherever, min_segment ops or more after the last one, the window (the last 8 signatures) is that of
 *             the last end or of the anchor; else at max_segment. The anchor is one place of the program: the first end
 *             of this phase or a drain, given up when not met again for LOOP_SPAN segments of full length. The last end
 *             finds short loops, the anchor ties the ends of a loop of any length up to that span to one place of it
 *             (after an end at max_segment, which is no place of the loop, it is obeyed at any distance).
 *             Once no anchor was met for as long, ends are also put where the window's hash has its top bits zero: that
 *             place is the same in every pass of a loop of any length. This stays so: switching back would move ends
 *             that are learned, and the price is one launch in max_segment ops.
 * Both leave tails too short for a graph. After one, the end by count before it moves: in the growing phase it is left
 * out (`skip`), at max_segment a node min_graph ops earlier becomes an end (`end`).
 * Drains end a segment in both phases. A synchronising one starts growing anew; an asynchronous one does not touch the
 * step, which only rises, so a loop with drains settles. A break ends a segment without being a place of the program:
 * `run` goes on, so that the next end falls where it would have, and what lies between (torn) is neither learned nor
 * counted. A break that comes to the same node again within BREAK_SPAN ends is a place after all, and counts as a drain;
 * at the min_seen-th time the node is marked as an end, and later passes end there without waiting for the break.
 *
 * When to stop looking (C5). Judged over windows of JUDGE_OPS: good, when 1/8 of the ops were replayed, else bad. Bad
 * windows use up patience: little, when half of the ops were in segments long enough for a graph and seen before (a long
 * loop is being learned), much otherwise. Without patience the stream goes aside for a number of ops that doubles each
 * time; then a shorter patience is granted. A good window restores everything. */
#include "policy/decide.h"

#include "policy/trie.h"

#include <stdlib.h>

#define LOST UINT32_MAX /* cursor of a segment that is not remembered */

#define LOOP_SPAN 64u
#define BREAK_SPAN 64u
#define MOST_BREAKS 63u
#define MOST_SEEN 65535u

/* A built node costs about 6 us, a replayed op saves about 3. In 1/256 node: what a program may spend before anything
 * was gained, what each replayed op earns (half of its gain), what each op earns (under 1% of an eager launch, so that
 * a program that changes its ways is not locked out), and the most that can be saved up. */
#define CREDIT_NODE 256
#define CREDIT_GRANT (8192 * CREDIT_NODE)
#define CREDIT_REPLAYED 64
#define CREDIT_OP 1
#define CREDIT_MOST (4 * CREDIT_GRANT)

#define JUDGE_OPS 4096u
#define PATIENCE 24u
#define PATIENCE_SECOND_LOOK 8u
#define COST_RECURRING 1u
#define COST_NOVEL 4u
#define ASIDE_FIRST 8192u
#define ASIDE_MOST (1u << 20)

enum end { END_RULE, END_DRAIN, END_BREAK };

/* Why the segment before ended. Only the first is a place that the program itself makes. */
enum before { BEFORE_PLACE, BEFORE_GROWTH, BEFORE_LENGTH, BEFORE_MARK };

struct ag_policy {
    struct ag_trie trie;

    /* the segment under way */
    uint32_t cursor;   /* its node, or LOST */
    uint32_t guess;    /* the node expected next, 0: none */
    uint32_t depth;    /* its ops */
    uint32_t run;      /* ops since the last end that is a place of the program */
    uint32_t cut_at;   /* run at which it ends in any case */
    uint32_t recur_at; /* run from which a recurring window ends it */
    bool sent;         /* an op of it was answered with send, or it was spoiled */
    bool fresh;        /* it left what is remembered */
    bool torn;         /* a break has happened since the last place of the program */
    bool lost;         /* no anchor was met for a long time, once */
    bool settled;      /* the anchor is a drain or was met again */

    uint64_t window; /* the last 8 signatures */
    uint64_t prev;   /* the window at the last end */
    uint64_t anchor; /* the anchor's window, 0: none */
    uint64_t anchor_at,
        met_at; /* ops when it was chosen or met last; when any anchor was met last */

    uint32_t ended; /* the node where the last segment ended, 0: none */
    enum before before;
    uint32_t step;
    uint32_t steps; /* step from which the stream runs free */
    uint32_t hash_shift;
    struct ag_policy_limits limits;

    int64_t credit;
    uint32_t judged_ops, judged_replayed, judged_known;
    uint32_t patience;
    uint32_t aside_next, aside_left;

    uint64_t ops, held, replayed, built_ops, asides; /* of ended segments */
    /* P1 depth <= run, and run < cut_at between calls, and cut_at <= max_segment.
     * P2 the cursor is LOST or the node `depth` ops below the root.
     * P3 not sent: the cursor is not LOST and, past the root, has a graph or some below it.
     * P4 guess is 0 or a used node whose parent is the cursor.
     * P5 while aside the segment is empty.
     * P6 credit is between 0 and its maximum. */
};

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

/* Follows every change of `step` or `before`. */
static void aim(struct ag_policy *p)
{
    if (growing(p)) {
        p->cut_at = p->limits.first_segment << p->step;
        p->recur_at = UINT32_MAX;
        return;
    }
    bool adrift = p->before == BEFORE_LENGTH || p->before == BEFORE_MARK;
    p->cut_at = p->limits.max_segment;
    p->recur_at = adrift ? 1 : p->limits.min_segment;
}

struct ag_policy *ag_policy_create(const struct ag_policy_limits *limits)
{
    struct ag_policy *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->limits = sane(limits);
    if (!ag_trie_init(&p->trie, p->limits.max_nodes)) {
        free(p);
        return NULL;
    }
    while (((uint64_t)p->limits.first_segment << p->steps) < p->limits.max_segment)
        p->steps++;
    p->hash_shift = 63;
    for (uint32_t n = p->limits.max_segment; n > 2; n /= 2)
        p->hash_shift--;
    p->credit = CREDIT_GRANT;
    p->patience = PATIENCE;
    p->aside_next = ASIDE_FIRST;
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

/* Each shift moves 8 bits out, so 8 ops later nothing of an op is left: equal values mean, but for an accident that
 * only misplaces an end, equal last 8 signatures. */
static inline uint64_t roll(uint64_t window, uint32_t sig)
{
    uint64_t mixed = sig * 0x9E3779B97F4A7C15u;
    return (window << 8) + (mixed ^ mixed >> 32);
}

/* From recur_at on: whether this is a place to end at. */
static inline bool recurs(const struct ag_policy *p)
{
    if (p->window == p->anchor)
        return true;
    return p->run >= p->limits.min_segment &&
           (p->window == p->prev || (p->lost && p->window >> p->hash_shift == 0));
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
    p->cursor = LOST;
    p->guess = 0;
    p->fresh = true;
    stop_holding(p, held);
}

/* The op is not the one that was guessed. Returns its node, the root when it is not remembered. */
static __attribute__((noinline)) struct ag_node *stray(struct ag_policy *p, uint32_t sig)
{
    uint32_t from = p->cursor, to = 0;
    if (from != LOST) {
        to = ag_trie_find(&p->trie, from, sig);
        if (!to && !p->torn) {
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
           n->seen >= (uint64_t)p->limits.min_seen << n->drops &&
           p->credit >= (int64_t)p->depth * CREDIT_NODE;
}

/* The segment that ends at the cursor's node counts. */
static enum ag_use sight(struct ag_policy *p, struct ag_node *n)
{
    n->stamp = p->trie.now;
    if (n->graph)
        return p->sent ? AG_USE_NONE : AG_USE_REPLAY;
    if (n->seen < MOST_SEEN)
        n->seen++;
    if (!worth_building(p, n))
        return AG_USE_NONE;
    n->pending = 1;
    p->credit -= (int64_t)p->depth * CREDIT_NODE;
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
    if (!again || p->torn)
        return false;
    if (n->seen + 1u < n->breaks)
        n->seen = n->breaks - 1u; /* the first one was a sighting too */
    if (n->breaks >= p->limits.min_seen && p->depth >= p->limits.min_graph)
        n->end = 1;
    return true;
}

static void judge(struct ag_policy *p)
{
    bool good = p->judged_replayed >= p->judged_ops / 8;
    uint32_t cost = p->judged_known >= p->judged_ops / 2 ? COST_RECURRING : COST_NOVEL;
    p->judged_ops = p->judged_replayed = p->judged_known = 0;
    if (good) {
        p->patience = PATIENCE;
        p->aside_next = ASIDE_FIRST;
        return;
    }
    p->patience -= cost < p->patience ? cost : p->patience;
    if (p->patience)
        return;
    p->asides++;
    p->aside_left = p->aside_next;
    p->aside_next = p->aside_next < ASIDE_MOST ? p->aside_next * 2 : ASIDE_MOST;
    p->patience = PATIENCE_SECOND_LOOK;
}

static void earn(struct ag_policy *p, uint64_t credit)
{
    p->credit += (int64_t)credit;
    if (p->credit > CREDIT_MOST)
        p->credit = CREDIT_MOST;
}

static void account(struct ag_policy *p, enum ag_use use)
{
    bool known = !p->fresh && p->depth >= p->limits.min_graph;
    p->ops += p->depth;
    p->judged_ops += p->depth;
    p->judged_known += known ? p->depth : 0;
    if (!p->sent)
        p->held += p->depth;
    earn(p, (uint64_t)p->depth * CREDIT_OP);
    if (use == AG_USE_REPLAY) {
        p->replayed += p->depth;
        p->judged_replayed += p->depth;
        earn(p, (uint64_t)p->depth * CREDIT_REPLAYED);
    }
    if (p->judged_ops >= JUDGE_OPS)
        judge(p);
}

static void choose_anchor(struct ag_policy *p, bool drain)
{
    uint64_t span = (uint64_t)LOOP_SPAN * p->limits.max_segment;
    if (p->window == p->anchor) {
        p->anchor_at = p->met_at = p->ops;
        p->settled = true;
    } else if (!p->anchor || p->ops - p->anchor_at > span || (drain && !p->settled)) {
        p->anchor = p->window;
        p->anchor_at = p->ops;
        p->settled = drain;
    }
    if (p->ops - p->met_at > span)
        p->lost = true;
}

static void begin_segment(struct ag_policy *p)
{
    p->depth = 0;
    p->cursor = AG_TRIE_ROOT;
    p->sent = p->fresh = false;
    uint32_t after = p->ended ? p->trie.nodes[p->ended].after : 0;
    p->guess = after ? after : p->trie.nodes[AG_TRIE_ROOT].guess;
    p->trie.now++;
}

/* The segment before ended by count, and what follows it until a place of the program is too short for a graph. */
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
        nodes[node].end = 1;
}

static enum before reason(const struct ag_policy *p, const struct ag_node *n, enum end how)
{
    if (how != END_RULE || (!growing(p) && recurs(p)))
        return BEFORE_PLACE;
    if (p->run >= p->cut_at)
        return growing(p) ? BEFORE_GROWTH : BEFORE_LENGTH;
    return n->end ? BEFORE_MARK : BEFORE_PLACE;
}

/* The end counts: what follows is counted and compared from here. */
static void settle(struct ag_policy *p, enum before why, bool drain)
{
    p->torn = false;
    p->prev = p->window;
    if (drain || !growing(p))
        choose_anchor(p, drain);
    if (why == BEFORE_GROWTH)
        p->step++;
    p->before = why;
    p->run = 0;
    aim(p);
}

static __attribute__((noinline)) struct ag_verdict end_segment(struct ag_policy *p, enum end how)
{
    uint32_t node = p->cursor == LOST ? 0 : p->cursor;
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
    if (how == END_BREAK && torn) {
        p->torn = true;
        p->before = BEFORE_PLACE;
    } else {
        enum before why = reason(p, n, how);
        if (why == BEFORE_PLACE && !torn)
            avoid_short_tail(p);
        settle(p, why, how != END_RULE);
    }
    p->ended = node;
    begin_segment(p);
    return v;
}

/* At an end by growth that would leave a tail too short for a graph. */
static bool skip_end(struct ag_policy *p, const struct ag_node *n)
{
    if (!n->skip || !growing(p) || n->end)
        return false;
    p->step++;
    aim(p);
    return true;
}

struct ag_verdict ag_policy_op(struct ag_policy *p, uint32_t sig)
{
    if (__builtin_expect(p->aside_left != 0, 0)) {
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
    if (!(n->graph | n->ready_below))
        stop_holding(p, p->depth - 1);
    if (p->run >= p->cut_at || n->end || (p->run >= p->recur_at && recurs(p))) {
        if (!skip_end(p, n))
            return end_segment(p, END_RULE);
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
        return end_segment(p, END_DRAIN);
    if (!p->aside_left)
        settle(p, BEFORE_PLACE, true);
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
}

void ag_policy_forget(struct ag_policy *p)
{
    ag_trie_clear(&p->trie);
    p->window = p->prev = p->anchor = 0;
    p->settled = p->lost = false;
    p->met_at = p->anchor_at = p->ops;
    p->ended = p->guess = 0;
    if (p->depth)
        lose(p, p->depth);
}

bool ag_policy_aside(const struct ag_policy *p)
{
    return p->aside_left != 0;
}

void ag_policy_passed(struct ag_policy *p, uint32_t ops)
{
    if (!p->aside_left)
        return;
    earn(p, (uint64_t)ops * CREDIT_OP);
    p->aside_left -= ops < p->aside_left ? ops : p->aside_left;
    if (p->aside_left)
        return;
    p->window = p->prev = 0; /* what stood before the pause does not join what comes after it */
    p->run = p->ended = 0;
    p->torn = false;
    p->before = BEFORE_PLACE;
    aim(p);
    p->guess = p->trie.nodes[AG_TRIE_ROOT].guess;
}

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
        .asides = p->asides,
    };
}

static const char *check(const struct ag_policy *p)
{
    const struct ag_node *at = p->cursor == LOST ? NULL : &p->trie.nodes[p->cursor];
    if (p->depth > p->run || p->run >= p->cut_at || p->cut_at > p->limits.max_segment)
        return "P1: depth, run and cut_at are out of order";
    if (at && ((p->cursor && !ag_trie_has(&p->trie, p->cursor)) ||
               ag_trie_depth(&p->trie, p->cursor) != p->depth))
        return "P2: the cursor is not where the segment is";
    if (!p->sent && (!at || (p->depth && !at->graph && !at->ready_below)))
        return "P3: ops are held for no graph";
    if (p->guess &&
        (!at || !ag_trie_has(&p->trie, p->guess) || p->trie.nodes[p->guess].parent != p->cursor))
        return "P4: guess is not a child of the cursor";
    if (p->aside_left && p->depth)
        return "P5: a segment is under way while aside";
    if (p->credit < 0 || p->credit > CREDIT_MOST)
        return "P6: credit is out of bounds";
    return NULL;
}

bool ag_policy_check(const struct ag_policy *p, const char **why)
{
    const char *bad = check(p);
    if (bad && why)
        *why = bad;
    return !bad && ag_trie_check(&p->trie, why);
}
