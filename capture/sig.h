/* capture/sig.h - signatures: what of a launch a graph node cannot change.
 * Called by  capture/submit.c            Calls  nothing
 * Threads    caller holds the log's lock
 * Promise    two launches get the same number only when every field of the key is equal; numbers
 * start at 1
 * Start at   ag_sigs_intern() */
#ifndef AG_CAPTURE_SIG_H
#define AG_CAPTURE_SIG_H

#include "capture/func.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AG_SIGS_MAX                                                                                \
    16384 /* a program with more distinct launches has no use for graphs: everything is forgotten  \
           */

/* Units as cuLaunchKernel has them: blocks, threads, bytes. */
struct ag_config {
    uint32_t grid[3], block[3], shared_bytes;
};

/* Hashed and compared as bytes: no padding. */
struct ag_sig_key {
    CUfunction handle;
    struct ag_config config;
    uint32_t state; /* ag_func.state_id in force at the call */
    uint32_t attrs; /* the launch's attributes (attr.h), 0: none */
    uint32_t lane;  /* which stream of its track the op is for */
};

struct ag_sig {
    struct ag_sig_key key;
    uint32_t id;
    bool proven; /* a launch of this signature has succeeded eagerly (C2) */
    struct ag_func *func;
    UT_hash_handle hh;
};

struct ag_sigs {
    struct ag_sig *table;
    struct ag_sig **by_id; /* [room]; by_id[0] unused */
    uint32_t count, room;
};

static inline struct ag_sig *ag_sigs_at(const struct ag_sigs *sigs, uint32_t id)
{
    return sigs->by_id[id];
}

/* NULL: out of memory or AG_SIGS_MAX reached. */
struct ag_sig *ag_sigs_intern(struct ag_sigs *sigs, struct ag_func *func,
                              const struct ag_config *config, uint32_t attrs, uint32_t lane);
void ag_sigs_clear(struct ag_sigs *sigs);

#ifdef __cplusplus
}
#endif

#endif
