/* policy/pace.h - are graphs worth while on this stream, and how long may ops be held for them?
 * Called by  policy/decide.c             Calls  nothing
 * Threads    none: the caller serialises
 * Promise    reads no clock: it says when it wants the time, and is told
 * Start at   ag_pace_segment()
 *
 * Holding saves time of the host and delays the device. Which of the two a program waits for cannot
 * be seen from its calls, so it is measured (C5): the stream runs at each pace in turns, and the
 * wall time per op decides.
 *   prompt   held for one liveness bound at most; the pace a stream begins with
 *   eager    nothing is held: better where the device would wait
 *   patient  held for AG_PACE_PATIENCE bounds while launches keep arriving (a silent program is
 *            still flushed within one, C4). Only tried on a host that is slower than the bound: one
 *            that makes a launch every 20 to 50 us would have graphs of two launches.
 * A trial begins when AG_PACE_RIPE ops were replayed, and when the host is first found slow. It has
 * up to AG_PACE_ROUNDS rounds of one turn for each pace. A turn is made of blocks: some that do not
 * count (the device's queue still holds the work of the turn before, graphs have to be built), then
 * one that does. A block ends at a synchronisation, or, where those are rare, at the anchor of the
 * stream, so that it covers whole iterations. Costs are compared within a round: a machine is faster
 * and slower for seconds by more than the paces differ. A pace whose least cost is clearly above the
 * best one's largest is out of the trial; one round is enough for a verdict that all stays as it was,
 * two for another. What is not clear is left to all rounds, with AG_PACE_SPREAD ops between two:
 * they see different moments, and a short program is not spent on them. Then graphs are given up
 * only if all rounds but one were for it. After the verdict the stream rests for a number of ops that
 * doubles with each trial.
 *
 * Idle time, between the program's having seen that the device is done and its next op, is not its
 * ops'. Nothing is held then and none of the stream's work is under way: what the program does or
 * waits for (requests, a disk, the next frame) is the same at all paces, or longer where it was done
 * sooner, and would drown what the ops cost. Every other wait counts: nothing tells one for outside
 * work from one, through memory or a host function, for what is held. */
#ifndef AG_POLICY_PACE_H
#define AG_POLICY_PACE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_PACE_PATIENCE 10u  /* bounds */
#define AG_PACE_RIPE 2048u    /* replayed ops before the first trial */
#define AG_PACE_BLOCK 256u    /* least ops of a block */
#define AG_PACE_LONGEST 4096u /* ops at which a block no longer waits for a synchronisation */
#define AG_PACE_NEAR 1024u    /* ops between synchronisations that a block waits for */
#define AG_PACE_SKIPS 12u     /* most blocks of a turn that do not count */
#define AG_PACE_ROUNDS 5u     /* most rounds of a trial; odd */
#define AG_PACE_SPREAD 16384u /* ops between two of them */
#define AG_PACE_GAIN 1u       /* percent by which another pace has to beat prompt */
#define AG_PACE_CLEARLY 8u    /* percent that put a pace out of a trial */
#define AG_PACE_REST_FIRST (1ull << 18)
#define AG_PACE_DOUBT 32u /* part of the next rest that is left after a doubt */
#define AG_PACE_REST_MOST (1ull << 24)

enum ag_pace_kind { AG_PACE_PROMPT, AG_PACE_EAGER, AG_PACE_PATIENT, AG_PACE_KINDS };
enum ag_pace_phase { AG_PACE_UNASKED, AG_PACE_TRIAL, AG_PACE_RESTING };
enum ag_pace_news { AG_PACE_NOTHING, AG_PACE_TURNED, AG_PACE_CHOSEN };

struct ag_pace {
    enum ag_pace_kind now; /* the pace in use */
    bool measured;         /* false: `now` stays as it is */
    bool slow;             /* the host does not make segments within the bound */
    uint8_t phase;
    uint8_t round, skipped;  /* rounds behind; blocks of this turn that did not count */
    bool out[AG_PACE_KINDS]; /* of this trial */
    bool due;                /* a block is complete: the time is wanted */
    bool spoilt;             /* the block under way says nothing */
    uint32_t ops, replayed;  /* of the block under way; before the first trial: of the stream */
    uint32_t since_sync, interval; /* ops since the last synchronisation, and before it */
    uint64_t began_ns; /* the block under way, 0: a round begins when the time is told */
    uint64_t idle_ns;  /* of it */
    uint64_t rest,
        rest_next; /* ops until the next round or trial; until the trial after this one */
    uint32_t cost[AG_PACE_KINDS][AG_PACE_ROUNDS]; /* 1/16 ns per op, not 0 */
    /* K1 a round that is behind is one of a trial; `due`, `spoilt` and `began_ns` belong to a turn;
     * patient is only tried on a slow host. */
};

/* `fixed`: AG_PACE_KINDS for one that is measured. */
void ag_pace_init(struct ag_pace *y, enum ag_pace_kind fixed);

/* The host does not make segments within the bound. The first call begins a trial. */
void ag_pace_host_is_slow(struct ag_pace *y);

/* It makes the longest segments within the bound, and has for a long time: patience is not tried any
 * more. Only for a stream whose pace is prompt: one that has won with patience keeps it. */
void ag_pace_host_is_fast(struct ag_pace *y);

/* What was measured holds no more: segments have another length. The next trial is soon, but ever
 * later too: a host may be tried with longer segments for ever, and fail. */
void ag_pace_doubt(struct ag_pace *y);

/* Where a segment ended. */
enum ag_pace_place { AG_PACE_ANYWHERE, AG_PACE_AT_ANCHOR, AG_PACE_AT_SYNC };

/* A segment of `ops` ended, `replayed` of them by a graph. True: call ag_pace_time. */
bool ag_pace_segment(struct ag_pace *y, uint32_t ops, uint32_t replayed, enum ag_pace_place place);

/* `now_ns`: any monotonic clock that runs while the program waits; not 0. */
enum ag_pace_news ag_pace_time(struct ag_pace *y, uint64_t now_ns);

/* So much of the block under way is not its ops': the program had seen that the device was idle, and
 * made its next op later. */
void ag_pace_idle(struct ag_pace *y, uint64_t ns);

/* Ops have passed that were not told of: the block under way begins anew. */
void ag_pace_resume(struct ag_pace *y);

/* The caller pauses in place of the stream's rest: returns how many ops that is. A trial begins after
 * the pause. */
uint64_t ag_pace_skip_rest(struct ag_pace *y);

/* Checks K1. `why` may be NULL. */
bool ag_pace_check(const struct ag_pace *y, const char **why);

#ifdef __cplusplus
}
#endif
#endif
