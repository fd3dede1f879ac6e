/* tests/differential/plan.c - a random CUDA program as data.
 * Called by  program.c                   Calls  nothing
 * Threads    none
 * Promise    see plan.h
 * Start at   df_plan_make() */
#include "tests/differential/plan.h"

#include <stdio.h>
#include <string.h>

uint64_t df_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(df_random(state) % n);
}

static bool chance(uint64_t *state, uint32_t percent)
{
    return below(state, 100) < percent;
}

static const char *choose(uint64_t *state, const char *const *list, uint32_t n)
{
    return list[below(state, n)];
}

/* What a native run never calls: a fault there must leave no trace at all. */
static const char *const graph_calls[] = {
    "cuGraphCreate",
    "cuGraphAddKernelNode_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
    "cuGraphLaunch",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphExecDestroy",
    "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode",
    "cuGraphAddNode_v2",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphAddDependencies_v2",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphAddEventRecordNode",
    "cuGraphAddHostNode",
    "cuGraphExecEventRecordNodeSetEvent",
};
enum { GRAPH_CALLS = sizeof graph_calls / sizeof *graph_calls };
static const char *const graph_codes[] = {"1", "2", "999", "801"};
/* What may be held and then be refused. */
static const char *const held_calls[] = {
    "cuLaunchKernel",       "cuLaunchKernel",   "cuLaunchKernel",  "cuMemcpyDtoDAsync_v2",
    "cuMemcpyHtoDAsync_v2", "cuMemsetD32Async", "cuMemsetD8Async", "cuMemcpyAsync"};
/* Codes that no other call of a program gives, so they can be counted. */
static const char *const launch_codes[] = {"46", "802"};
static const char *const sticky_codes[] = {"700", "719", "715"};

void df_setting_make(uint64_t seed, struct df_setting *out)
{
    uint64_t s = seed ^ 0x5e771465ull;
    static const char *const seen[] = {"2", "2", "3", ""};
    static const char *const flush[] = {"", "", "100", "1000", "20000", "100000"};
    static const char *const longest[] = {"", "", "8", "24", "64"};
    static const char *const bytes[] = {"", "", "", "64K", "1M"};
    static const char *const pace[] = {"auto",    "auto",   "auto", "prompt",
                                       "patient", "prompt", "auto", "eager"};
    memset(out, 0, sizeof *out);
    strcpy(out->min_seen, choose(&s, seen, 4));
    strcpy(out->flush_us, choose(&s, flush, 6));
    strcpy(out->max_segment, choose(&s, longest, 5));
    strcpy(out->max_bytes, choose(&s, bytes, 5));
    uint64_t own = seed ^ 0x9ace0000ull; /* what the seeds before it chose stays */
    strcpy(out->pace, choose(&own, pace, 8));
    out->episodes = chance(&s, 15) ? 2 : 1;
    uint32_t which = below(&s, 100);
    if (which < 12) {
        out->fault = DF_GRAPH_FAULT;
        int n = 0;
        for (uint32_t i = 0, faults = 1 + below(&s, 3); i < faults; i++)
            n += snprintf(out->fault_text + n, sizeof out->fault_text - (size_t)n, "%s%s:%u:%s",
                          i ? "," : "", choose(&s, graph_calls, GRAPH_CALLS),
                          1 + below(&s, i ? 40 : 6), choose(&s, graph_codes, 4));
    } else if (which < 22) {
        out->fault = DF_LAUNCH_FAULT;
        const char *code = choose(&s, launch_codes, 2);
        int n = 0;
        for (uint32_t i = 0, faults = 1 + below(&s, 5); i < faults; i++)
            n += snprintf(out->fault_text + n, sizeof out->fault_text - (size_t)n, "%s%s:%u:%s",
                          i ? "," : "", choose(&s, held_calls, 8), 1 + below(&s, i % 2 ? 30 : 300),
                          code);
    } else if (which < 24) {
        out->fault = DF_STICKY_FAULT;
        snprintf(out->fault_text, sizeof out->fault_text, "%s:%u:%s:sticky",
                 chance(&s, 50) ? "cuLaunchKernel" : "cuGraphLaunch", 1 + below(&s, 60),
                 choose(&s, sticky_codes, 3));
    }
}

/* Relative frequency of what is not a launch: in straight code, in the body of a loop, and in one of which a shim
 * could make graphs whole. */
enum { STRAIGHT, LOOP, HELD_LOOP };
static const uint8_t weight[3][DF_KINDS] = {
#define X(kind, straight, loop, held, name) straight,
    {DF_KIND_LIST(X)},
#undef X
#define X(kind, straight, loop, held, name) loop,
    {DF_KIND_LIST(X)},
#undef X
#define X(kind, straight, loop, held, name) loop *held,
    {DF_KIND_LIST(X)},
#undef X
};

const char *df_kind_name(int kind)
{
    static const char *const names[DF_KINDS] = {
#define X(kind, straight, loop, held, name) name,
        DF_KIND_LIST(X)
#undef X
    };
    return kind >= 0 && kind < DF_KINDS ? names[kind] : "?";
}

static uint8_t other_kind(uint64_t *s, uint32_t where)
{
    uint32_t total = 0;
    for (int k = 0; k < DF_KINDS; k++)
        total += weight[where][k];
    uint32_t at = below(s, total);
    for (int k = 0; k < DF_KINDS; k++) {
        if (at < weight[where][k])
            return (uint8_t)k;
        at -= weight[where][k];
    }
    return DF_SYNC;
}

/* Habits of one stretch of code: which stream and thread it likes, how its arguments move. */
struct style {
    uint32_t others;   /* percent of actions that are not launches */
    uint32_t wander;   /* percent of actions that are not on the favourite stream */
    uint32_t switches; /* percent of actions where another thread takes over */
    uint8_t lane, stream, thread, motion, form;
    bool mixed_motion, mixed_form;
    bool held; /* nothing in it that drains */
};

static void pick_style(uint64_t *s, const struct df_plan *plan, uint32_t track, bool loop,
                       struct style *out)
{
    static const uint32_t others_loop[] = {0, 0, 0, 8, 15, 40}, wander[] = {0, 0, 0, 10, 50};
    static const uint8_t favourite[] = {0, 0, 0, 1, 1, 1, 2, 2, 3, 4}; /* 3 is never held */
    out->others = loop ? others_loop[below(s, 6)] : 55;
    out->wander = loop ? wander[below(s, 5)] : 40;
    out->switches = plan->tracks > 1 || plan->threads == 1 ? 0 : (chance(s, 40) ? 40 : 4);
    out->lane = plan->tracks > 1 ? (uint8_t)track : (uint8_t)below(s, plan->lanes);
    out->thread = plan->tracks > 1 ? (uint8_t)track : (uint8_t)below(s, plan->threads);
    out->stream = favourite[below(s, 10)];
    out->motion = (uint8_t)below(s, DF_MOTIONS);
    out->form = (uint8_t)below(s, 8);
    out->mixed_motion = chance(s, 50);
    out->mixed_form = chance(s, 30);
    out->held = loop && chance(s, 40);
}

static uint16_t add_action(uint64_t *s, struct df_plan *plan, struct style *style, bool loop)
{
    uint16_t index = (uint16_t)plan->actions++;
    struct df_action *a = &plan->action[index];
    memset(a, 0, sizeof *a);
    a->id = index + 1u;
    a->kind = chance(s, style->others) ? other_kind(s, !loop         ? STRAIGHT
                                                       : style->held ? HELD_LOOP
                                                                     : LOOP)
                                       : DF_LAUNCH;
    bool away = chance(s, style->wander);
    a->stream = away ? (uint8_t)below(s, DF_STREAMS) : style->stream;
    a->lane = style->lane;
    if (away && plan->tracks == 1 && chance(s, 30))
        a->lane = (uint8_t)below(s, plan->lanes);
    if (chance(s, style->switches))
        style->thread = (uint8_t)below(s, plan->threads);
    a->thread = style->thread;
    a->motion = style->mixed_motion ? (uint8_t)below(s, DF_MOTIONS) : style->motion;
    a->form = style->mixed_form ? (uint8_t)below(s, 8) : style->form;
    for (int i = 0; i < DF_PICKS; i++)
        a->pick[i] = (uint32_t)df_random(s);
    return index;
}

static void add_tail_sync(uint64_t *s, struct df_plan *plan, struct style *style)
{
    uint16_t index = add_action(s, plan, style, true);
    plan->action[index].kind = chance(s, 50) ? DF_SYNC : DF_READBACK;
    plan->action[index].stream = style->stream;
}

static void add_straight(uint64_t *s, struct df_plan *plan, uint32_t track)
{
    struct df_track *t = &plan->track[track];
    struct df_block *b = &t->block[t->blocks++];
    struct style style;
    pick_style(s, plan, track, false, &style);
    memset(b, 0, sizeof *b);
    b->first = (uint16_t)plan->actions;
    b->count = (uint16_t)(4 + below(s, 16));
    b->iterations = 1;
    b->at = 1;
    for (int i = 0; i < b->count; i++)
        add_action(s, plan, &style, false);
}

static void add_change(uint64_t *s, struct df_plan *plan, struct df_block *b, struct style *style)
{
    b->at = (uint16_t)(b->iterations - 1 - below(s, b->iterations / 3u));
    b->where = (uint16_t)below(s, b->count);
    b->change = (uint8_t)(chance(s, 90) ? 1 + below(s, DF_CHANGES - 1) : DF_SAME);
    b->for_good = chance(s, 60);
    uint32_t others = style->others;
    style->others = chance(s, 50) ? 0 : 100;
    b->extra = add_action(s, plan, style, true);
    style->others = others;
}

static void add_loop(uint64_t *s, struct df_plan *plan, uint32_t track)
{
    struct df_track *t = &plan->track[track];
    struct df_block *b = &t->block[t->blocks++];
    struct style style;
    pick_style(s, plan, track, true, &style);
    memset(b, 0, sizeof *b);
    b->first = (uint16_t)plan->actions;
    b->count = (uint16_t)(chance(s, 20) ? 1 + below(s, 4) : 4 + below(s, 26));
    b->iterations = (uint16_t)(10 + below(s, 16));
    if (b->count < 5)
        b->iterations = (uint16_t)(b->iterations * 4);
    for (int i = 0; i < b->count; i++)
        add_action(s, plan, &style, true);
    if (chance(s, 65)) {
        add_tail_sync(s, plan, &style);
        b->count++;
    }
    add_change(s, plan, b, &style);
}

/* A loop that was left is entered again: what was learned must still hold, or be known not to. */
static void add_return(uint64_t *s, struct df_plan *plan, uint32_t track)
{
    struct df_track *t = &plan->track[track];
    for (int i = t->blocks - 1; i >= 0; i--) {
        if (t->block[i].iterations < 2)
            continue;
        struct df_block *b = &t->block[t->blocks++];
        *b = t->block[i];
        b->iterations = (uint16_t)(4 + below(s, 8));
        b->at = (uint16_t)(b->iterations - 1);
        b->where = (uint16_t)below(s, b->count);
        return;
    }
}

/* Which event each record in a chain is of. 0 and 2 do not take the time. */
enum pattern { ONE_EVENT, IN_TURN, ANY_EVENT, MOVING_EVENT, PATTERNS };

static void add_records_to(uint64_t *s, struct df_plan *plan, const struct df_block *b)
{
    const uint32_t period = 1 + below(s, 3), pattern = below(s, PATTERNS), looks = below(s, 12);
    for (uint32_t i = 0, n = 0; i < b->count; i++) {
        struct df_action *a = &plan->action[b->first + i];
        const uint32_t any = below(s, 4), look = below(s, 100);
        const bool op = a->kind == DF_LAUNCH || a->kind == DF_MEMSET || a->kind == DF_COPY_DEVICE;
        if (!op || n++ % period)
            continue;
        a->record = (uint8_t)(pattern == ONE_EVENT   ? 1
                              : pattern == IN_TURN   ? 1 + n / period % 2u * 2u
                              : pattern == ANY_EVENT ? 1 + any
                                                     : DF_MOVING_RECORD);
        a->look = look < looks ? (uint8_t)(1 + look % (DF_LOOKS - 1)) : DF_NO_LOOK;
    }
}

/* Loops with records close together, in some programs. What a seed chose without them stays. */
static void add_records(struct df_plan *plan)
{
    uint64_t own = plan->seed ^ 0xe7e47000ull;
    if (!chance(&own, 35))
        return;
    for (uint32_t t = 0; t < plan->tracks; t++)
        for (uint32_t i = 0; i < plan->track[t].blocks; i++)
            if (plan->track[t].block[i].iterations > 1)
                add_records_to(&own, plan, &plan->track[t].block[i]);
}

/* The slots that streams of a loop which take turns may have: the legacy stream with one that waits for it, and such
 * that do not, among them. */
static const uint8_t turn_slots[][3] = {{1, 2, 4}, {1, 2, 1}, {2, 4, 2},
                                        {0, 2, 4}, {0, 1, 0}, {0, 1, 2}};

static void take_turns(uint64_t *s, struct df_plan *plan, const struct df_block *b)
{
    const uint8_t *slot = turn_slots[below(s, 6)];
    const uint32_t run = 1 + below(s, 3), streams = 2 + below(s, 2), waits = below(s, 4) * 12;
    const struct df_action *first = &plan->action[b->first];
    for (uint32_t i = 0, n = 0; i < b->count; i++) {
        struct df_action *a = &plan->action[b->first + i];
        a->lane = first->lane;
        a->thread = first->thread;
        if (a->kind != DF_LAUNCH && a->kind != DF_MEMSET && a->kind != DF_COPY_DEVICE)
            continue;
        a->stream = slot[n++ / run % streams];
        const uint8_t other =
            slot[(n - 1) / run % streams + 1 < streams ? (n - 1) / run % streams + 1 : 0];
        if (!chance(s, waits) || other == a->stream)
            continue;
        a->record = (uint8_t)(1 + 2 * below(s, 2));
        a->look = DF_LOOK_WAIT;
        a->pick[0] =
            a->pick[0] / 4 * 4 + (uint32_t)(other + DF_STREAMS - a->stream - 1) % DF_STREAMS;
    }
}

/* Loops of streams that take turns, in some programs. What a seed chose without them stays. */
static void add_turns(struct df_plan *plan)
{
    uint64_t own = plan->seed ^ 0x7e2235ull;
    if (!chance(&own, 35))
        return;
    for (uint32_t t = 0; t < plan->tracks; t++)
        for (uint32_t i = 0; i < plan->track[t].blocks; i++)
            if (plan->track[t].block[i].iterations > 1 && chance(&own, 80))
                take_turns(&own, plan, &plan->track[t].block[i]);
}

void df_plan_make(uint64_t seed, struct df_plan *plan)
{
    uint64_t s = seed;
    memset(plan, 0, sizeof *plan);
    plan->seed = seed;
    plan->tracks = plan->threads = plan->lanes = 1;
    uint32_t shape = below(&s, 100);
    if (shape >= 80) { /* threads on their own */
        plan->tracks = plan->threads = plan->lanes = (uint8_t)(2 + below(&s, 3));
    } else if (shape >= 50) { /* threads that take turns */
        plan->threads = (uint8_t)(2 + below(&s, 3));
        plan->lanes = (uint8_t)(1 + below(&s, 2));
    } else if (shape >= 40) { /* one thread, two contexts or two sets of streams */
        plan->lanes = 2;
    }
    plan->shared_context = chance(&s, 60);
    plan->primary = chance(&s, 50);
    for (uint32_t t = 0; t < plan->tracks; t++) {
        uint32_t loops = plan->tracks > 1 ? 1 + below(&s, 2) : 1 + below(&s, 3);
        add_straight(&s, plan, t);
        for (uint32_t i = 0; i < loops; i++) {
            add_loop(&s, plan, t);
            if (chance(&s, 40))
                add_straight(&s, plan, t);
            if (chance(&s, 25))
                add_return(&s, plan, t);
        }
    }
    add_records(plan);
    add_turns(plan);
}

static void filter_block(struct df_block *b, uint32_t cap)
{
    if (!cap)
        return;
    uint32_t after = b->iterations - b->at;
    uint32_t before = b->at > cap ? cap : b->at;
    after = after > cap ? cap : after;
    b->at = (uint16_t)before;
    b->iterations = (uint16_t)(before + after);
}

void df_plan_filter(struct df_plan *plan, const struct df_filter *filter)
{
    for (uint32_t t = 0; t < plan->tracks; t++) {
        if (filter->drop_tracks >> t & 1)
            plan->track[t].blocks = 0;
        for (uint32_t i = 0; i < plan->track[t].blocks; i++)
            filter_block(&plan->track[t].block[i], filter->cap);
    }
    for (uint32_t i = 0; i < plan->actions; i++) {
        if (filter->dropped[plan->action[i].id / 32] >> (plan->action[i].id % 32) & 1)
            plan->action[i].kind = DF_KINDS; /* runs as nothing */
        if (filter->plain_threads && plan->tracks == 1)
            plan->action[i].thread = 0;
    }
}
