/* capture/sig.c - see sig.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/sig.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct ag_sig_key) == sizeof(CUfunction) + 10 * 4, "the key has no padding");

static bool reserve(struct ag_sigs *sigs)
{
    if (sigs->count + 1 < sigs->room)
        return true;
    const uint32_t room = sigs->room ? sigs->room * 2 : 64;
    struct ag_sig **grown = realloc(sigs->by_id, room * sizeof *grown);
    if (!grown)
        return false;
    sigs->by_id = grown;
    sigs->room = room;
    return true;
}

struct ag_sig *ag_sigs_intern(struct ag_sigs *sigs, struct ag_func *func,
                              const struct ag_config *config, uint32_t attrs, uint32_t lane)
{
    const struct ag_sig_key key = {func->handle, *config, func->state_id, attrs, lane};
    struct ag_sig *sig;
    HASH_FIND(hh, sigs->table, &key, sizeof key, sig);
    if (sig || sigs->count == AG_SIGS_MAX || !reserve(sigs) || !(sig = calloc(1, sizeof *sig)))
        return sig;
    sig->key = key;
    sig->func = func;
    sig->id = sigs->count + 1;
    HASH_ADD(hh, sigs->table, key, sizeof key, sig);
    if (HASH_COUNT(sigs->table) == sigs->count) {
        free(sig);
        return NULL;
    }
    sigs->by_id[sig->id] = sig;
    sigs->count++;
    return sig;
}

void ag_sigs_clear(struct ag_sigs *sigs)
{
    struct ag_sig *sig, *next;
    HASH_ITER (hh, sigs->table, sig, next) {
        HASH_DEL(sigs->table, sig);
        free(sig);
    }
    free(sigs->by_id);
    *sigs = (struct ag_sigs){NULL, NULL, 0, 0};
}
