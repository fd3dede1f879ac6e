/* capture/pieces.c - see pieces.h. */
#include "capture/pieces.h"
#include "capture/event.h"
#include "capture/graph.h"
#include "capture/track.h"

static bool is_record(const struct ag_oplog *log, uint32_t i)
{
    return log->ops[i].sig->func->kind == AG_OP_RECORD;
}

struct division {
    const struct ag_oplog *log;
    struct ag_place *place;
    struct ag_piece *piece;
    uint32_t pieces;
    uint32_t open[AG_TRACK_STREAMS]; /* by lane: number of the chain that may go on, from 1 */
    bool waits;                      /* there was one */
};

static void append(struct division *d, uint32_t number, uint32_t op)
{
    struct ag_piece *p = &d->piece[number];
    if (p->ops++)
        d->place[p->last].next = op;
    else
        p->first = op;
    p->last = op;
    d->place[op] = (struct ag_place){number, AG_NO_OP};
}

/* Returns the number of a new piece that begins with the op. */
static uint32_t begin(struct division *d, uint32_t op, bool is_graph)
{
    const uint32_t number = d->pieces++;
    d->piece[number] = (struct ag_piece){
        .stream = ag_track_stream(d->log->cur, d->log->ops[op].sig), .is_graph = is_graph};
    append(d, number, op);
    return number;
}

/* Of the ops of the stream that follow in the segment, is any but a record no further than the next wait? */
static bool goes_on(const struct ag_oplog *log, uint32_t i)
{
    const uint32_t lane = log->ops[i].sig->key.lane;
    while (++i < log->n) {
        if (log->ops[i].sig->key.lane != lane)
            continue;
        if (log->ops[i].sig->func->kind == AG_OP_WAIT)
            return false;
        if (!is_record(log, i))
            return true;
    }
    return false;
}

/* Does a wait for the record's event stand before it? In a chain that began before the wait, which is given to the
 * driver before it, the record would be the one that is waited for. Which events those are may change from replay to
 * replay: where it does so often, each wait counts. */
static bool is_behind_wait(const struct division *d, uint32_t i)
{
#ifdef AG_MUTANT_RECORD_EARLY /* recorded again before it is waited for */
    return false;
#endif
    if (d->log->cur->other_records >= AG_OTHER_RECORDS)
        return d->waits;
    return ag_event_is_behind(d->log, &d->log->ops[i]);
}

/* Records that a chain would begin or end with stay out of it: a node costs its launch 0.8 us, a call 0.13; and a
 * record that the queue has room for must not wait for room for a graph. */
static void place_record(struct division *d, uint32_t i)
{
    uint32_t *open = &d->open[d->log->ops[i].sig->key.lane];
    if (*open && goes_on(d->log, i) && !is_behind_wait(d, i)) {
        append(d, *open - 1, i);
        return;
    }
    *open = 0;
    begin(d, i, false);
}

static void place_op(struct division *d, uint32_t i)
{
    uint32_t *open = &d->open[d->log->ops[i].sig->key.lane];
    if (*open)
        append(d, *open - 1, i);
    else
        *open = begin(d, i, true) + 1;
}

static bool is_long_enough(const struct division *d, const struct ag_piece *p)
{
    uint32_t ops = 0;
    for (uint32_t i = p->first; i != AG_NO_OP; i = d->place[i].next)
        ops += !is_record(d->log, i);
    return ops >= d->log->cap->limits.min_graph;
}

static void give_up(struct division *d, const struct ag_piece *p)
{
    for (uint32_t i = p->first, next; i != AG_NO_OP; i = next) {
        next = d->place[i].next;
        d->place[i].piece = AG_NO_OP;
    }
}

/* Each op that is in no chain any more becomes a piece. */
static void number_anew(struct division *d)
{
    struct {
        uint32_t was, is;
    } last[AG_TRACK_STREAMS]; /* chain, by lane */
    for (uint32_t lane = 0; lane < AG_TRACK_STREAMS; lane++)
        last[lane].was = AG_NO_OP;
    d->pieces = 0;
    for (uint32_t i = 0; i < d->log->n; i++) {
        const uint32_t lane = d->log->ops[i].sig->key.lane, number = d->place[i].piece;
        if (number == AG_NO_OP) {
            begin(d, i, false);
        } else if (number == last[lane].was) {
            append(d, last[lane].is, i);
        } else {
            last[lane].was = number;
            last[lane].is = begin(d, i, true);
        }
    }
}

/* Each op of a chain too short for a graph is a call where it stands: behind the first of them it would have to wait
 * for room before what was called in between. Returns whether any other chain is left: a graph of two launches costs
 * half of what they do. */
static bool dissolve_short(struct division *d)
{
    bool any = false;
    for (uint32_t k = 0; k < d->pieces; k++)
        if (d->piece[k].is_graph && is_long_enough(d, &d->piece[k]))
            any = true;
        else
            give_up(d, &d->piece[k]);
    number_anew(d);
    return any;
}

uint32_t ag_pieces_choose(const struct ag_oplog *log, struct ag_place *place,
                          struct ag_piece *piece)
{
    struct division d = {.log = log, .place = place, .piece = piece};
    for (uint32_t i = 0; i < log->n; i++) {
        switch (log->ops[i].sig->func->kind) {
        case AG_OP_WAIT:
#ifndef AG_MUTANT_WAIT_PASSED /* what stands behind a wait goes with what stands before it */
            d.open[log->ops[i].sig->key.lane] = 0;
#endif
            begin(&d, i, false);
            d.waits = true;
            break;
        case AG_OP_RECORD:
            place_record(&d, i);
            break;
        case AG_OP_KERNEL:
        case AG_OP_COPY:
        case AG_OP_FILL:
        case AG_OP_KINDS:
            place_op(&d, i);
            break;
        }
    }
    return dissolve_short(&d) ? d.pieces : 0;
}
