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
    if (news && y->measured && y->phase != AG_PACE_UNASKED)
        ask(y);
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

static enum ag_pace_news begin_trial(struct ag_pace *y, uint64_t now_ns)
{
    const bool turned = y->now != AG_PACE_PROMPT;
    y->round = y->skipped = 0;
    memset(y->samples, 0, sizeof y->samples);
    memset(y->out, 0, sizeof y->out);
    y->now = AG_PACE_PROMPT;
    begin_block(y, now_ns);
    return turned ? AG_PACE_TURNED : AG_PACE_NOTHING;
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

static bool beats(uint32_t cost, uint32_t other, uint32_t percent)
{
    return (uint64_t)cost * 100 < (uint64_t)other * (100 - percent);
}

/* Puts out the paces whose best sample is clearly worse than the worst of `best`. Costs are sorted.
 * Returns whether none but `best` is left. */
static bool put_out(struct ag_pace *y, enum ag_pace_kind best)
{
    bool alone = true;
    for (int k = 0; k < AG_PACE_KINDS; k++) {
        if (k == (int)best || !tried(y, k))
            continue;
        y->out[k] = beats(y->cost[best][y->samples[best] - 1], y->cost[k][0], AG_PACE_CLEARLY);
        alone &= y->out[k];
    }
    return alone;
}

/* The first pace from `from` on that is still in the trial; AG_PACE_KINDS: none. */
static int next_tried(const struct ag_pace *y, int from)
{
    while (from < AG_PACE_KINDS && !tried(y, from))
        from++;
    return from;
}

/* The pace with the smallest median; prompt, unless it is beaten by enough. One that is out was not
 * measured in every round: what the others cost meanwhile says nothing about it. */
static enum ag_pace_kind best_of(struct ag_pace *y)
{
    uint32_t cost[AG_PACE_KINDS];
    int best = next_tried(y, 0);
    for (int k = best; k < AG_PACE_KINDS; k = next_tried(y, k + 1)) {
        sort(y->cost[k], y->samples[k]);
        cost[k] = y->cost[k][y->samples[k] / 2];
        if (cost[k] < cost[best] &&
            (!tried(y, AG_PACE_PROMPT) || beats(cost[k], cost[AG_PACE_PROMPT], AG_PACE_GAIN)))
            best = k;
    }
    return (enum ag_pace_kind)best;
}

/* A round is over. */
static enum ag_pace_news judge(struct ag_pace *y)
{
    const enum ag_pace_kind best = best_of(y);
    if (++y->round < AG_PACE_ROUNDS && !put_out(y, best)) {
        y->now = (enum ag_pace_kind)next_tried(y, 0);
        return AG_PACE_TURNED;
    }
    y->now = best;
    y->phase = AG_PACE_RESTING;
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
        return begin_trial(y, now_ns);
    if (y->spoilt || !counts(y)) {
        y->skipped += !y->spoilt;
        begin_block(y, now_ns);
        return AG_PACE_NOTHING;
    }
    const uint64_t cost = took(y, now_ns) * 16 / (y->ops ? y->ops : 1);
    y->cost[y->now][y->samples[y->now]++] = cost > UINT32_MAX ? UINT32_MAX : (uint32_t)cost;
    begin_block(y, now_ns);
    if (y->samples[y->now] % AG_PACE_SAMPLES)
        return AG_PACE_NOTHING;
    y->skipped = 0;
    const int next = next_tried(y, y->now + 1);
    if (next == AG_PACE_KINDS)
        return judge(y);
    y->now = (enum ag_pace_kind)next;
    return AG_PACE_TURNED;
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
    for (int k = 0; k < AG_PACE_KINDS; k++)
        bad |= y->samples[k] > AG_PACE_ROUNDS * AG_PACE_SAMPLES;
    bad |= y->now == AG_PACE_PATIENT && !y->slow && y->measured;
    if (bad && why)
        *why = "K1: a pace, samples or times that do not belong to the phase";
    return !bad;
}
