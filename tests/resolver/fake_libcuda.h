/* tests/resolver/fake_libcuda.h - a driver that does nothing, and remembers exactly how it was
 * called.
 * Called by  the case programs (through dlsym of fake_api), tests       Calls  libc
 * Threads    any; the log is filled with an atomic counter
 * Promise    every exported cu* symbol has its own row; a call is recorded with all registers that
 * can carry            arguments and the first five stack words, then answered with a number that
 * belongs to the row alone
 * Start at   fake_dispatch() in fake_libcuda.c */
#ifndef AG_TESTS_RESOLVER_FAKE_LIBCUDA_H
#define AG_TESTS_RESOLVER_FAKE_LIBCUDA_H

#include <stdint.h>

enum {
    FAKE_STACK_ARGS = 5,
    FAKE_ARGS = 6 + FAKE_STACK_ARGS,
    FAKE_LOG = 1 << 17,
    FAKE_FIRST_RESULT = 100000, /* the answer of row r is FAKE_FIRST_RESULT + r */
};

enum fake_row {
#define FAKE_ROW(symbol) FAKE_##symbol,
#include "known_rows.def"
    FAKE_KNOWN, /* rows from here on are names that no header has: cuFutureOp, cuFutureOp2 ... */
    FAKE_BEFORE_FUTURE = FAKE_KNOWN - 1,
#include "future_rows.def"
#undef FAKE_ROW
    FAKE_ROWS
};

/* Laid out by fake_stubs.S: keep the order. */
struct fake_registers {
    uint64_t args[FAKE_ARGS];
    double floats[8];
    uint64_t rax;
};

struct fake_call {
    int row;
    struct fake_registers with;
};

/* What the driver does next; filled from the environment at the first use (FAKE_VERSION,
 * FAKE_RESULT, ...). */
struct fake_config {
    int version; /* FAKE_VERSION: answer of cuDriverGetVersion */
    int result;  /* FAKE_RESULT: answer of every call; -1 (default): the row's number */
    int touches_when_failing; /* FAKE_TOUCHES=0: a failed look-up leaves its out-parameters alone */
    int missing_is_success;   /* FAKE_MISSING_IS_SUCCESS=1: unknown names are status 0 and NULL */
    int sets_errno;           /* FAKE_ERRNO: errno after a call, 0 (default): not touched */
    int launches;             /* FAKE_LAUNCHES=1: what launching and graphs need succeeds */
};

/* The one symbol that the case programs look up; its name is of no interest to a hook of cu[A-Z]*.
 * */
struct fake_api {
    struct fake_config *config;
    const char *const *names; /* [FAKE_ROWS] */
    unsigned (*calls)(void);
    const struct fake_call *(*call)(unsigned index);
    void (*forget)(void);
    /* Kernels that the calls [0, end) have executed, alone or as nodes of graphs. */
    unsigned (*executed)(unsigned end);
};
const struct fake_api *fake_api(void);

#endif
