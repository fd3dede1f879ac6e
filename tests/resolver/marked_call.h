/* tests/resolver/marked_call.h - one call with a mark in every place that can carry an argument.
 * Called by  case_calls.c, case_linked.c       Calls  the function, the fake driver's log
 * Threads    one
 * Promise    prints, for each of eleven integer arguments, how many of its low bytes arrived
 * (0..8), for each of eight            vector registers whether it arrived, the answer, and every
 * other driver call that was made meanwhile */
#ifndef AG_TESTS_RESOLVER_MARKED_CALL_H
#define AG_TESTS_RESOLVER_MARKED_CALL_H

#include "tests/resolver/fake_libcuda.h"

void marked_call_report(const struct fake_api *fake, const char *name, void *function);

#endif
