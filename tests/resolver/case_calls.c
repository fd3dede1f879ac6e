/* tests/resolver/case_calls.c - what a call carries: arguments, vector registers, answer, errno;
 * see cases.h. Where nothing but a call is wanted the function is taken from the driver's handle;
 * case_linked.c does the same by ELF. */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include "tests/resolver/marked_call.h"
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void *by_dlsym(void *driver, const char *name)
{
    return dlsym(driver, name);
}

/* rows FIRST COUNT: calls these rows, one after the other. */
static int rows(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const struct driver d = driver_open(NULL, RTLD_NOW);
    const int first = atoi(argv[1]), end = first + atoi(argv[2]);
    for (int row = first; row < end && row < FAKE_KNOWN; row++)
        marked_call_report(d.fake, known_name(row), by_dlsym(d.handle, known_name(row)));
    return 0;
}

/* errno is the program's: kept where the driver keeps it, changed where the driver changes it
 * (FAKE_ERRNO). */
static int errno_kept(int argc, char **argv)
{
    static const char *const names[] = {
        "cuInit",         "cuCtxGetDevice", "cuMemAlloc_v2",       "cuStreamSynchronize",
        "cuLaunchKernel", "cuModuleUnload", "cuGetProcAddress_v2", "cuFutureOp"};
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        errno = 77;
        void *const function = dlsym(d.handle, names[i]);
        say("%s: errno %d after the look-up", names[i], errno);
        errno = 78;
        call_eleven(function);
        say("%s: errno %d after the call", names[i], errno);
    }
    errno = 79;
    dlsym(RTLD_DEFAULT, "cuInit");
    say("by default: errno %d", errno);
    return 0;
}

/* The driver's failure of any code arrives as it is; no later call turns it into a success. */
static int failures_arrive(int argc, char **argv)
{
    static const int codes[] = {1,   2,   3,   4,   34,  100, 200, 201, 400,
                                500, 600, 800, 801, 900, 999, 700, 719};
    static const char *const names[] = {
        "cuInit",         "cuCtxGetDevice",       "cuMemAlloc_v2", "cuStreamSynchronize",
        "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuModuleUnload"};
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        d.fake->config->result = codes[c];
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            say("%s with %d: %d", names[i], codes[c], call_eleven(dlsym(d.handle, names[i])));
    }
    return 0;
}

const struct test_case call_cases[] = {
    {"rows", rows},
    {"errno", errno_kept},
    {"failures-arrive", failures_arrive},
    {NULL, NULL},
};
