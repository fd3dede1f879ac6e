/* tests/policy/policy_cost.c - what does one op cost in the policy? A program for callgrind, not a
 * test. Usage      policy_cost [matched|novel] [OPS]
 *            valgrind --tool=callgrind --toggle-collect=measure policy_cost matched 1000000
 * Prints     ops and replayed ops; divide callgrind's instruction count by the ops
 * Start at   measure() */
#include "policy/decide.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD 120u

static uint32_t graphs;

static void settle(struct ag_policy *p, struct ag_verdict v)
{
    if (v.use == AG_USE_BUILD)
        ag_policy_built(p, v.segment, ++graphs);
}

/* The calls of capture for each op; inlined nowhere, so that callgrind can collect inside it alone.
 * */
__attribute__((noinline)) void measure(struct ag_policy *p, uint32_t ops, int novel)
{
    for (uint32_t i = 0; i < ops; i++) {
        uint32_t sig = novel ? 1000u + i : 1u + i % PERIOD;
        if (ag_policy_aside(p)) {
            ag_policy_passed(p, 1);
            continue;
        }
        (void)ag_policy_expect(p);
        settle(p, ag_policy_op(p, sig));
    }
}

int main(int argc, char **argv)
{
    int novel = argc > 1 && !strcmp(argv[1], "novel");
    uint32_t ops = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) / PERIOD * PERIOD : 1200000;
    struct ag_policy_limits limits = {.first_segment = 4,
                                      .min_segment = 16,
                                      .max_segment = 256,
                                      .min_graph = 4,
                                      .min_seen = 3,
                                      .max_nodes = 65536};
    struct ag_policy *p = ag_policy_create(&limits);
    if (!p)
        return 1;
    for (uint32_t i = 0; !novel && i < 20 * PERIOD; i++)
        settle(p, ag_policy_op(p, 1 + i % PERIOD));
    struct ag_policy_view before, after;
    ag_policy_look(p, &before);
    measure(p, ops, novel);
    ag_policy_look(p, &after);
    printf("%u ops, %llu of them replayed, %llu looked at\n", ops,
           (unsigned long long)(after.replayed - before.replayed),
           (unsigned long long)(after.ops - before.ops));
    ag_policy_destroy(p);
    return 0;
}
