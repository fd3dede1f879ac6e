/* capture/track.c - see track.h. */
#include "capture/track.h"
#include "capture/graph.h"
#include "capture/guard.h"
#include "capture/idle.h"
#include "capture/record.h"
#include <stdlib.h>

bool ag_track_make(struct ag_oplog *log, struct ag_stream *s)
{
    struct ag_track *t = calloc(1, sizeof *t);
    if (!t || !(t->policy = ag_policy_create(&log->cap->limits))) {
        free(t);
        return false;
    }
    t->log = log;
    t->stream[0] = s;
    t->streams = 1;
    s->track = t;
    s->lane = 0;
    atomic_store(&s->joined, false);
    return true;
}

static void drop_graphs(struct ag_track *t)
{
    struct ag_counters *counters = t->log->cap->counters;
    for (uint32_t i = 1; i < t->graphs; i++) {
        struct ag_graph *g = t->graph[i];
        if (!g)
            continue;
        ag_record_graph(t->log->cap, g);
        ag_budget_release(t->log->budget, g->entry);
        t->log->by_entry[g->entry] = NULL;
        ag_count_down(&counters->graphs_live, g->execs);
        ag_count_down(&counters->graph_bytes, g->bytes);
        ag_graph_destroy(g, t->log->cap->drv);
    }
    free(t->graph);
    t->graph = NULL;
    t->graphs = 0;
}

void ag_track_forget(struct ag_track *t)
{
    drop_graphs(t);
    ag_policy_forget(t->policy);
    ag_track_set_aside(t, false);
}

const struct ag_stream *ag_track_first(const struct ag_track *t)
{
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++)
        if (t->stream[i])
            return t->stream[i];
    return NULL;
}

bool ag_track_is_aside(const struct ag_track *t)
{
    const struct ag_stream *s = ag_track_first(t);
    return s && atomic_load_explicit(&s->aside, memory_order_relaxed);
}

void ag_track_set_aside(struct ag_track *t, bool aside)
{
    for (uint32_t i = 0, left = t->streams; left; i++) {
        if (!t->stream[i])
            continue;
        atomic_store_explicit(&t->stream[i]->aside, aside, memory_order_relaxed);
        left--;
    }
}

static void free_track(struct ag_track *t)
{
    drop_graphs(t);
    ag_policy_destroy(t->policy);
    if (t->log->last == t)
        t->log->last = NULL;
    free(t);
}

/* What joined streams had learned is lost. */
static void be_slower(struct ag_turns *turns)
{
    turns->shorts = 0;
    turns->enough *= turns->enough < AG_TRACK_TURNS_MOST ? AG_TRACK_TURNS_MORE : 1;
}

static void leave(struct ag_track *t, uint32_t lane)
{
    struct ag_policy_view view;
    t->stream[lane] = NULL;
    if (--t->streams == 0) {
        free_track(t);
        return;
    }
    ag_policy_look(t->policy, &view);
    if (view.ops < AG_TRACK_LASTS)
        be_slower(&t->log->turns);
    ag_track_forget(t);
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++)
        if (t->stream[i])
            atomic_store(&t->stream[i]->joined, t->streams > 1);
}

void ag_track_leave(struct ag_stream *s)
{
    if (s->log->turns.of == s)
        s->log->turns.of = NULL;
    leave(s->track, s->lane);
    s->track = NULL;
}

bool ag_track_renew(struct ag_stream *s)
{
    struct ag_track *before = s->track;
    const uint32_t lane = s->lane;
    if (before->streams == 1) {
        ag_track_forget(before);
        return true;
    }
    if (!ag_track_make(s->log, s))
        return false;
    leave(before, lane);
    return true;
}

static bool has_legacy(const struct ag_track *t)
{
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++)
        if (t->stream[i] && t->stream[i]->handle == CU_STREAM_LEGACY)
            return true;
    return false;
}

static bool all_apart(const struct ag_track *t)
{
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++)
        if (t->stream[i] && !t->stream[i]->apart)
            return false;
    return true;
}

static bool may_join(const struct ag_track *t, const struct ag_track *u)
{
    if (t->log->cap->keeps_order || atomic_load(&t->log->cap->no_builds) ||
        t->streams + u->streams > AG_TRACK_STREAMS)
        return false;
#ifdef AG_MUTANT_LEGACY_JOINED /* with streams that wait for it */
    return true;
#endif
    return (!has_legacy(t) || all_apart(u)) && (!has_legacy(u) || all_apart(t));
}

static void enter(struct ag_track *t, struct ag_stream *s)
{
    uint32_t lane = 0;
    while (t->stream[lane])
        lane++;
    t->stream[lane] = s;
    t->streams++;
    s->track = t;
    s->lane = lane;
    s->recorded_at = 0;
    atomic_store(&s->aside, false);
}

/* What was learned of either is of no use. */
static void join(struct ag_track *t, struct ag_track *u)
{
    struct ag_policy *fresh = ag_policy_create(&t->log->cap->limits);
    if (!fresh)
        return;
    drop_graphs(t);
    ag_policy_destroy(t->policy);
    t->policy = fresh;
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++)
        if (u->stream[i])
            enter(t, u->stream[i]);
    free_track(u);
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++) {
        if (!t->stream[i])
            continue;
        ag_idle_forget(t->log, t->stream[i]);
        atomic_store(&t->stream[i]->aside, false);
        atomic_store(&t->stream[i]->joined, true);
    }
    ag_count(&t->log->cap->counters->tracks_joined, 1);
}

void ag_track_turn(struct ag_oplog *log, struct ag_stream *s)
{
    struct ag_turns *turns = &log->turns;
    const struct ag_stream *before = turns->of;
    const bool other = before && before->track != s->track;
    if (!turns->enough)
        turns->enough = AG_TRACK_TURNS;
    if (other && turns->thread == ag_thread_id() && turns->run < AG_TRACK_SHORT)
        turns->shorts++;
    else if (other)
        turns->shorts /= 2;
    if (other && turns->shorts >= turns->enough) {
        turns->shorts = 0;
        if (may_join(before->track, s->track))
            join(before->track, s->track);
    }
    turns->of = s;
    turns->thread = ag_thread_id();
    turns->run = 0;
}

void ag_track_split(struct ag_track *t)
{
    if (t->streams == 1 || atomic_load(&t->log->cap->no_builds))
        return;
    be_slower(&t->log->turns);
    for (uint32_t i = 0; i < AG_TRACK_STREAMS; i++) {
        struct ag_stream *s = t->stream[i];
        if (!s || !ag_track_make(t->log, s))
            continue;
        t->stream[i] = NULL;
        t->streams--;
        s->recorded_at = 0;
    }
    ag_count(&t->log->cap->counters->tracks_split, 1);
    if (t->streams)
        ag_track_forget(t);
    else
        free_track(t);
}
