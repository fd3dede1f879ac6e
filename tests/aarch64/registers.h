/* tests/aarch64/registers.h - what a call brings: every register that can carry an argument.
 * Called by  aarch64_case.c, standin_libcuda.c, registers.S (which knows the layout) */
#ifndef AG_TESTS_AARCH64_REGISTERS_H
#define AG_TESTS_AARCH64_REGISTERS_H

#include <stdint.h>

struct registers {
    uint64_t x[9];     /* x0 to x7, and x8: where a structure is to be returned */
    uint64_t stack[3]; /* the first words above the return address */
    double d[8];
};

/* registers.S, in the program: calls `function` with these. */
long call_with(void *function, const struct registers *with);
/* registers.S, in the driver: what the last recorded call came with, and how many there were. */
extern struct registers standin_seen;
extern uint64_t standin_calls;

#endif
