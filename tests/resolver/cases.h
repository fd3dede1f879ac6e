/* tests/resolver/cases.h - what the case programs share. A case is one function in a fresh
 * process; it prints what it saw. The test runs it without and with the shim and compares the two
 * outputs line by line. Lines that begin with "shim: " are about the shim alone (which library a
 * pointer lies in): not compared, but asserted on.
 * Called by  case_*.c      Calls  dlopen, dlsym, dladdr, the fake driver
 * Start at   resolver_case.c */
#ifndef AG_TESTS_RESOLVER_CASES_H
#define AG_TESTS_RESOLVER_CASES_H

#include <stdint.h>
#include "tests/resolver/fake_libcuda.h"

struct driver {
    void *handle;
    const struct fake_api *fake;
};

struct test_case {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the case's name; 0: ran to its end */
};
extern const struct test_case dlsym_cases[], lookup_cases[], process_cases[], call_cases[],
    drain_cases[];

/* Opens libcuda.so.1 (by this path, NULL: by its name); the process ends with status 3 when there
 * is none. */
struct driver driver_open(const char *path, int mode);
/* The names of the driver, as tests ask for them: the 674 that are known. */
const char *known_name(int row);

/* Eleven pages of zeros, handed out as arguments: whoever follows such a pointer reads zeros. */
extern char argument_page[FAKE_ARGS][4096];
int call_eleven(void *function);
/* Calls the function and says which row of the fake driver the call came to ("nowhere" when to
 * none). */
const char *reached(const struct fake_api *fake, void *function);
/* "driver", "shim", "none" for NULL, else the file name of the object that the address lies in. */
const char *home_of(const void *address);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_shim(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line on what a look-up gave: null or where a call of it arrives; one "shim: " line with its
 * home. */
void say_found(const char *label, const struct fake_api *fake, void *address);
/* One line with the pending dlerror, and clears it. */
void say_dlerror(const char *label);

#endif
