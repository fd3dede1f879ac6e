/* policy/pace.c - are graphs worth while on this stream, and how long may ops be held for them?
 * Called by  policy/decide.c             Calls  nothing
 * Threads    none: the caller serialises
 * Promise    see pace.h
 * Start at   ag_pace_segment() */
#include "policy/pace.h"

#include <stddef.h>
#include <string.h>

void ag_pace_init(struct ag_pace *y, enum ag_pace_kind fixed)
{
    *y = (struct ag_pace){
        .now = fixed == AG_PACE_KINDS ? AG_PACE_PROMPT : fixed,
        .measured = fixed == AG_PACE_KINDS,
        .rest_next = AG_PACE_REST_FIRST,
        .interval = UINT32_MAX,
    };
}

static void begin_block(struct ag_pace *y, uint64_t now_ns)
{
    y->began_ns = now_ns;
    y->idle_ns = 0;
    y->ops = y->replayed = 0;
    y->due = y->spoilt = false;
}

static void ask(struct ag_pace *y)
{
    y->phase = AG_PACE_TRIAL;
    begin_block(y, 0);
    y->due = true;
}

void ag_pace_host_is_slow(struct ag_pace *y)
{
    const bool news = !y->slow;
    y->slow = true;
    if (news && y->measured && y->phase != AG_PACE_UNASKED) {
        y->round = 0;
        ask(y);
    }
}

void ag_pace_host_is_fast(struct ag_pace *y)
{
    if (y->now == AG_PACE_PROMPT)
        y->slow = false;
}

void ag_pace_doubt(struct ag_pace *y)
{
    const uint64_t soon = y->rest_next / AG_PACE_DOUBT;
    if (y->phase == AG_PACE_RESTING && y->rest > soon)
        y->rest = soon;
}

/* A place that a block may end at, by how long it is. */
static bool ends_block(struct ag_pace *y, enum ag_pace_place place)
{
    if (y->spoilt && place != AG_PACE_ANYWHERE)
        return true;
    if (place == AG_PACE_AT_SYNC)
        return y->ops >= AG_PACE_BLOCK;
    if (place == AG_PACE_AT_ANCHOR)
        return y->ops >= (y->interval <= AG_PACE_NEAR ? AG_PACE_LONGEST : AG_PACE_BLOCK);
    return y->ops >= 2 * AG_PACE_LONGEST;
}

bool ag_pace_segment(struct ag_pace *y, uint32_t ops, uint32_t replayed, enum ag_pace_place place)
{
    if (!y->measured)
        return false;
    y->ops += ops;
    y->replayed += replayed;
    y->since_sync += ops;
    if (place == AG_PACE_AT_SYNC) {
        y->interval = y->since_sync;
        y->since_sync = 0;
    }
    if (y->phase == AG_PACE_UNASKED) {
        if (y->replayed >= AG_PACE_RIPE)
            ask(y);
    } else if (y->phase == AG_PACE_RESTING) {
        y->rest -= ops < y->rest ? ops : y->rest;
        if (!y->rest)
            ask(y);
    } else if (ends_block(y, place)) {
        y->due = true;
    }
    return y->due;
}

static bool tried(const struct ag_pace *y, int kind)
{
    return !y->out[kind] && (kind != AG_PACE_PATIENT || y->slow);
}

static void sort(uint32_t *value, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t v = value[i];
        uint32_t k = i;
        for (; k > 0 && value[k - 1] > v; k--)
            value[k] = value[k - 1];
        value[k] = v;
    }
}

/* The first pace from `from` on that is still in the trial; AG_PACE_KINDS: none. */
static int next_tried(const struct ag_pace *y, int from)
{
    while (from < AG_PACE_KINDS && !tried(y, from))
        from++;
    return from;
}

static enum ag_pace_news turn_to(struct ag_pace *y, int kind)
{
    const bool turned = (int)y->now != kind;
    y->now = (enum ag_pace_kind)kind;
    return turned ? AG_PACE_TURNED : AG_PACE_NOTHING;
}

static enum ag_pace_news begin_round(struct ag_pace *y, uint64_t now_ns)
{
    if (!y->round)
        memset(y->out, 0, sizeof y->out);
    y->skipped = 0;
    begin_block(y, now_ns);
    return turn_to(y, next_tried(y, 0));
}

static bool beats(uint32_t cost, uint32_t other, uint32_t percent)
{
    return (uint64_t)cost * 100 < (uint64_t)other * (100 - percent);
}

/* Rounds are compared each for itself. Of the most rounds one may have been lost. */
static bool beats_in_nearly_all(const struct ag_pace *y, int kind, int other)
{
    uint32_t won = 0;
    for (int r = 0; r < y->round; r++)
        won += beats(y->cost[kind][r], y->cost[other][r], AG_PACE_GAIN);
    return won + (y->round == AG_PACE_ROUNDS) >= y->round;
}

static bool beats_in_the_median(const struct ag_pace *y, int kind, int other)
{
    enum { SAME = 1 << 20 };
    uint32_t ratio[AG_PACE_ROUNDS];
    for (int r = 0; r < y->round; r++) {
        const uint64_t q = (uint64_t)y->cost[kind][r] * SAME / y->cost[other][r];
        ratio[r] = q < UINT32_MAX ? (uint32_t)q : UINT32_MAX;
    }
    sort(ratio, y->round);
    return beats(ratio[y->round / 2], SAME, other == AG_PACE_PROMPT ? AG_PACE_GAIN : 0);
}

/* The best pace of graphs that is still in the trial, unless eager has won or is alone. One that is
 * out was not measured in every round: what the others cost meanwhile says nothing about it. */
static int best_of(const struct ag_pace *y)
{
    const bool prompt = tried(y, AG_PACE_PROMPT), patient = tried(y, AG_PACE_PATIENT);
    int best = prompt ? AG_PACE_PROMPT : patient ? AG_PACE_PATIENT : AG_PACE_EAGER;
    if (prompt && patient && beats_in_the_median(y, AG_PACE_PATIENT, AG_PACE_PROMPT))
        best = AG_PACE_PATIENT;
    if (tried(y, AG_PACE_EAGER) && beats_in_nearly_all(y, AG_PACE_EAGER, best))
        best = AG_PACE_EAGER;
    return best;
}

static bool clearly_better(const struct ag_pace *y, int kind, int other)
{
    uint32_t largest = 0, least = UINT32_MAX;
    for (int r = 0; r < y->round; r++) {
        largest = y->cost[kind][r] > largest ? y->cost[kind][r] : largest;
        least = y->cost[other][r] < least ? y->cost[other][r] : least;
    }
    return beats(largest, least, AG_PACE_CLEARLY);
}

/* Puts out the paces that are clearly worse than `best`, if that is sure. Returns whether all others
 * are clearly worse. */
static bool put_out(struct ag_pace *y, int best, bool sure)
{
    bool alone = true;
    for (int k = 0; k < AG_PACE_KINDS; k++) {
        if (k == best || !tried(y, k))
            continue;
        const bool out = clearly_better(y, best, k);
        y->out[k] = out && sure;
        alone &= out;
    }
    return alone;
}

/* Another round is needed, later. Until then graphs are not given up for a little. */
static enum ag_pace_news spread(struct ag_pace *y, int best, bool clear)
{
    if (best == AG_PACE_EAGER && !clear)
        best = tried(y, AG_PACE_PROMPT) ? AG_PACE_PROMPT : AG_PACE_PATIENT;
    y->phase = AG_PACE_RESTING;
    y->rest = AG_PACE_SPREAD;
    begin_block(y, 0);
    return turn_to(y, best);
}

/* A round is over. */
static enum ag_pace_news judge(struct ag_pace *y)
{
    y->round++;
    const int best = best_of(y);
    const bool sure = best == AG_PACE_PROMPT || y->round > 1;
    const bool clear = put_out(y, best, sure);
    if (y->round < AG_PACE_ROUNDS && !(clear && sure))
        return spread(y, best, clear);
    y->now = (enum ag_pace_kind)best;
    y->phase = AG_PACE_RESTING;
    y->round = 0;
    y->rest = y->rest_next;
    y->rest_next = y->rest_next < AG_PACE_REST_MOST ? y->rest_next * 2 : AG_PACE_REST_MOST;
    begin_block(y, 0);
    return AG_PACE_CHOSEN;
}

/* The block under way is over; does it say what the pace costs? */
static bool counts(const struct ag_pace *y)
{
    const bool at_pace = y->now == AG_PACE_EAGER || y->replayed >= y->ops / 2;
    return y->skipped >= AG_PACE_SKIPS || (y->skipped > 0 && at_pace);
}

void ag_pace_resume(struct ag_pace *y)
{
    y->spoilt = y->phase == AG_PACE_TRIAL;
}

void ag_pace_idle(struct ag_pace *y, uint64_t ns)
{
    if (y->phase == AG_PACE_TRIAL && y->began_ns)
        y->idle_ns += ns;
}

/* What the block's ops took until now. Idle time that its own time does not contain is not believed:
 * threads of the program may have told it twice. */
static uint64_t took(const struct ag_pace *y, uint64_t now_ns)
{
    const uint64_t ns = now_ns - y->began_ns;
    return ns > y->idle_ns ? ns - y->idle_ns : ns;
}

enum ag_pace_news ag_pace_time(struct ag_pace *y, uint64_t now_ns)
{
    if (!y->due)
        return AG_PACE_NOTHING;
    if (!y->began_ns)
        return begin_round(y, now_ns);
    if (y->spoilt || !counts(y)) {
        y->skipped += !y->spoilt;
        begin_block(y, now_ns);
        return AG_PACE_NOTHING;
    }
    const uint64_t cost = took(y, now_ns) * 16 / (y->ops ? y->ops : 1);
    y->cost[y->now][y->round] = cost > UINT32_MAX ? UINT32_MAX : cost ? (uint32_t)cost : 1;
    y->skipped = 0;
    begin_block(y, now_ns);
    const int next = next_tried(y, y->now + 1);
    return next == AG_PACE_KINDS ? judge(y) : turn_to(y, next);
}

uint64_t ag_pace_skip_rest(struct ag_pace *y)
{
    const uint64_t rest = y->rest;
    y->rest = 0;
    return rest;
}

bool ag_pace_check(const struct ag_pace *y, const char **why)
{
    bool bad = y->phase != AG_PACE_TRIAL && (y->due || y->spoilt || y->began_ns);
    bad |= y->round >= AG_PACE_ROUNDS || (y->round && y->phase == AG_PACE_UNASKED);
    bad |= y->now == AG_PACE_PATIENT && !y->slow && y->measured;
    if (bad && why)
        *why = "K1: a pace, rounds or times that do not belong to the phase";
    return !bad;
}
