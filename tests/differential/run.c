/* tests/differential/run.c - carries out a plan: loops, their change, threads that take turns or run free.
 * Called by  program.c                   Calls  acts.c, lanes.c
 * Threads    one per track; with a single track, workers that run one action at a time, handed over by the host
 * Promise    with one track the order of all calls is the plan's, whatever thread makes them
 * Start at   df_run_plan() */
#include "tests/differential/state.h"

#include <pthread.h>
#include <string.h>

/* The context that is current in this thread, as far as this file set it. */
static _Thread_local CUcontext current;

static void act_here(struct df_step *step)
{
    if (current != step->lane->ctx) {
        CUresult ret = cuCtxSetCurrent(step->lane->ctx);
        if (ret)
            df_say(step, "current", ret);
        current = step->lane->ctx;
    }
    df_act(step);
}

/* Threads that take turns: one slot for a step, a turn number says whose it is. */
struct turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct df_step *step; /* to be carried out by step->thread */
    bool over;
    uint32_t started;
};

struct worker {
    struct turns *turns;
    uint32_t thread;
    pthread_t handle;
};

static void *work(void *data)
{
    struct worker *w = data;
    struct turns *t = w->turns;
    pthread_mutex_lock(&t->lock);
    while (!t->over) {
        if (t->step && t->step->thread == w->thread) {
            pthread_mutex_unlock(&t->lock);
            act_here(t->step); /* nobody touches the slot until it is empty again */
            pthread_mutex_lock(&t->lock);
            t->step = NULL;
            pthread_cond_broadcast(&t->changed);
        } else {
            pthread_cond_wait(&t->changed, &t->lock);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void act_in_turn(struct turns *turns, struct df_step *step)
{
    if (!turns || step->thread == 0) {
        act_here(step);
        return;
    }
    pthread_mutex_lock(&turns->lock);
    turns->step = step;
    pthread_cond_broadcast(&turns->changed);
    while (turns->step)
        pthread_cond_wait(&turns->changed, &turns->lock);
    pthread_mutex_unlock(&turns->lock);
}

struct context {
    struct df_run *run;
    uint32_t track;
    struct turns *turns;
    pthread_t handle;
};

static void act(struct context *c, const struct df_action *action, uint32_t iteration,
                enum df_change twist)
{
    struct df_step step = {.run = c->run,
                           .lane = &c->run->lane[action->lane],
                           .action = action,
                           .track = c->track,
                           .thread = action->thread,
                           .iteration = iteration,
                           .twist_grid = twist == DF_NEW_GRID,
                           .twist_argument = twist == DF_NEW_ARGUMENT ? 1000003u : 0,
                           .twist_shared = twist == DF_NEW_SHARED};
    c->run->at[c->track] = action->id * 1000u + iteration;
    act_in_turn(c->turns, &step);
}

/* One action of a body that has changed at place b->where. */
static void act_changed(struct context *c, const struct df_block *b, uint32_t i, uint32_t iteration)
{
    const struct df_action *a = &c->run->plan->action[b->first + i];
    const struct df_action *extra = &c->run->plan->action[b->extra];
    bool here = i == b->where, last = b->where + 1u >= b->count;
    switch ((enum df_change)b->change) {
    case DF_INSERT:
        if (here)
            act(c, extra, iteration, DF_SAME);
        act(c, a, iteration, DF_SAME);
        break;
    case DF_DELETE:
        if (!here)
            act(c, a, iteration, DF_SAME);
        break;
    case DF_REPLACE:
        act(c, here ? extra : a, iteration, DF_SAME);
        break;
    case DF_REORDER:
        if (here && !last)
            a++;
        else if (i == b->where + 1u)
            a--;
        act(c, a, iteration, DF_SAME);
        break;
    default:
        act(c, a, iteration, here ? (enum df_change)b->change : DF_SAME);
        break;
    }
}

static void note(struct context *c, const char *what)
{
    df_text_add(&c->run->expected[c->track], "%s %llu\n", what,
                (unsigned long long)atomic_load(&c->run->clock));
}

static void run_block(struct context *c, const struct df_block *b)
{
    struct df_step gates = {.run = c->run, .lane = &c->run->lane[c->track]};
    if (b->iterations > 1)
        note(c, "loop");
    for (uint32_t it = 0; it < b->iterations; it++) {
        bool changed = it == b->at || (b->for_good && it > b->at);
        if (changed && it == b->at && b->change != DF_SAME && b->iterations > 1)
            note(c, "change");
        for (uint32_t i = 0; i < b->count; i++) {
            if (changed)
                act_changed(c, b, i, it);
            else
                act(c, &c->run->plan->action[b->first + i], it, DF_SAME);
        }
        df_open_gates(&gates);
    }
    if (b->iterations > 1)
        note(c, "end");
}

static void *run_track(void *data)
{
    struct context *c = data;
    const struct df_track *t = &c->run->plan->track[c->track];
    for (uint32_t i = 0; i < t->blocks; i++)
        run_block(c, &t->block[i]);
    return NULL;
}

static void run_free(struct df_run *run)
{
    struct context c[DF_MAX_TRACKS];
    for (uint32_t t = 0; t < run->plan->tracks; t++) {
        c[t] = (struct context){run, t, NULL, 0};
        pthread_create(&c[t].handle, NULL, run_track, &c[t]);
    }
    for (uint32_t t = 0; t < run->plan->tracks; t++)
        pthread_join(c[t].handle, NULL);
}

static void run_in_turn(struct df_run *run)
{
    struct turns turns = {.step = NULL};
    struct worker worker[DF_MAX_THREADS];
    struct context c = {run, 0, &turns, 0};
    pthread_mutex_init(&turns.lock, NULL);
    pthread_cond_init(&turns.changed, NULL);
    for (uint32_t t = 1; t < run->plan->threads; t++) {
        worker[t] = (struct worker){&turns, t, 0};
        pthread_create(&worker[t].handle, NULL, work, &worker[t]);
    }
    run_track(&c);
    pthread_mutex_lock(&turns.lock);
    turns.over = true;
    pthread_cond_broadcast(&turns.changed);
    pthread_mutex_unlock(&turns.lock);
    for (uint32_t t = 1; t < run->plan->threads; t++)
        pthread_join(worker[t].handle, NULL);
}

int df_run_plan(struct df_run *run)
{
    CUdevice device = 0;
    pthread_mutex_init(&run->held, NULL);
    CUresult ret = cuInit(0);
    if (!ret)
        ret = cuDeviceGet(&device, 0);
    uint32_t open = 0;
    while (!ret && open < run->plan->lanes) {
        ret = df_lane_open(run, open, device);
        open++;
    }
    df_text_add(&run->said[0], "episode %u open %d\n", run->episode, ret);
    current = NULL;
    if (!ret && run->plan->tracks > 1)
        run_free(run);
    else if (!ret)
        run_in_turn(run);
    while (open-- > 0) /* lane 0 owns the context that others may share */
        df_lane_close(run, open, device);
    return (int)ret;
}
