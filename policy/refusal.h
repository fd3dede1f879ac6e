/* policy/refusal.h - the reasons why an op was not replayed in a graph, by number, name and
 * sentence. Called by  capture/, shim/stats.c      Calls  nothing
 * Threads    any: constants
 * Promise    numbers follow the rows of refusal.def, from 1; 0 is "no refusal"
 * Start at   refusal.def */
#ifndef AG_POLICY_REFUSAL_H
#define AG_POLICY_REFUSAL_H

#ifdef __cplusplus
extern "C" {
#endif

enum ag_refusal {
    AG_REFUSAL_NONE = 0,
#define AG_REFUSAL(name, sentence) AG_REFUSAL_##name,
#include "policy/refusal.def"
#undef AG_REFUSAL
    AG_REFUSALS /* how many, NONE counted: the size of an array indexed by enum ag_refusal */
};

/* "DIVERGED", and a sentence for the user. Never NULL; "UNKNOWN" outside the enum. */
const char *ag_refusal_name(enum ag_refusal refusal);
const char *ag_refusal_sentence(enum ag_refusal refusal);

#ifdef __cplusplus
}
#endif
#endif
