/* policy/refusal.c - names and sentences of the refusals.
 * Called by  capture/, shim/stats.c      Calls  nothing
 * Threads    any: constants
 * Promise    see refusal.h
 * Start at   refusal.def */
#include "policy/refusal.h"

static const char *const names[AG_REFUSALS] = {
    "NONE",
#define AG_REFUSAL(name, sentence) #name,
#include "policy/refusal.def"
#undef AG_REFUSAL
};

static const char *const sentences[AG_REFUSALS] = {
    "nothing was refused",
#define AG_REFUSAL(name, sentence) sentence,
#include "policy/refusal.def"
#undef AG_REFUSAL
};

const char *ag_refusal_name(enum ag_refusal refusal)
{
    return (unsigned)refusal < AG_REFUSALS ? names[refusal] : "UNKNOWN";
}

const char *ag_refusal_sentence(enum ag_refusal refusal)
{
    return (unsigned)refusal < AG_REFUSALS ? sentences[refusal] : "unknown reason";
}
