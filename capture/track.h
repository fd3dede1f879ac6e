/* capture/track.h - tracks: which streams of a context policy sees as one sequence of ops.
 * Called by  capture/{oplog,replay,submit}.c         Calls  policy/, capture/graph.c
 * Threads    caller holds the log's lock
 * Promise    a stream is in one track, of which it is the only one at first. Streams are joined that one thread gives
 *            work to in turn, so few ops at a time that each would end the other's segments too early for graphs; they
 *            go their own ways again where graphs do not pay that way. Then it takes eight times as many turns
 *            to join any two of the context: each time policy measures anew whether graphs pay, which costs. So it does
 *            where a stream of a track ends soon.
 *            Where nothing is built, beside collectives, they stay as they are: graphs would be lost for nothing
 *            The ops of a segment of several streams are all of one thread: where the driver has no room for one of
 *            them, that thread would not have come to the next one either (pieces.h).
 *            The legacy stream and a stream that waits for it are never joined: what one thread gives to both runs
 *            in one order
 * Start at   ag_track_turn() */
#ifndef AG_CAPTURE_TRACK_H
#define AG_CAPTURE_TRACK_H

#include "capture/oplog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns of fewer ops than this are short: a graph of so few spares little. */
#define AG_TRACK_SHORT 8
/* So many of them, at first, are enough. */
#define AG_TRACK_TURNS 64
#define AG_TRACK_TURNS_MORE 8
#define AG_TRACK_TURNS_MOST (1u << 20)
/* A track that loses a stream, and forgets all, after fewer ops than this was not worth it. */
#define AG_TRACK_LASTS 65536

/* The stream gets an op of this thread, the one before was another stream's or another thread's. May join their
 * tracks. Nothing is held for another track, and no segment of one is open. */
void ag_track_turn(struct ag_oplog *log, struct ag_stream *s);
/* Each stream gets a track of its own, if there are several and graphs may be built. Nothing is open. */
void ag_track_split(struct ag_track *t);

/* A track for the stream alone. False: no memory. */
bool ag_track_make(struct ag_oplog *log, struct ag_stream *s);
/* The stream is about to go: its track forgets everything, and goes with its last stream. Nothing is held. */
void ag_track_leave(struct ag_stream *s);
/* Another stream has its handle now: what was learned, and with which others it took turns, was of the one before.
 * False: no memory. Nothing is held. */
bool ag_track_renew(struct ag_stream *s);
/* Drops the graphs and everything learned. Nothing is held. */
void ag_track_forget(struct ag_track *t);

/* Whether policy looks at the streams, for threads that do not take the lock. */
bool ag_track_is_aside(const struct ag_track *t);
void ag_track_set_aside(struct ag_track *t, bool aside);

/* One of its streams, always the same one until another joins or leaves. */
const struct ag_stream *ag_track_first(const struct ag_track *t);

/* The stream that an op of the track is for. */
static inline struct ag_stream *ag_track_stream(const struct ag_track *t, const struct ag_sig *sig)
{
    return t->stream[sig->key.lane];
}

#ifdef __cplusplus
}
#endif

#endif
