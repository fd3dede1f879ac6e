/* tests/resolver/case_drain.c - calls that arrive while launches are held: these must have been
 * handed to the driver before, and the code that does so stands between the program's arguments
 * and the driver; see cases.h. Needs FAKE_LAUNCHES=1. */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include "tests/resolver/marked_call.h"
#include <dlfcn.h>
#include <stddef.h>

enum { LOOP = 8, PARTIAL = 3 };

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);
static launch_fn launch;
static int (*synchronise)(void *stream);
static void *const kernel = (void *)0xf00, *const stream = (void *)0x510;

static void launch_times(int times)
{
    for (int i = 0; i < times; i++) {
        uint64_t value = (uint64_t)i;
        void *params[] = {&value};
        if (launch(kernel, 1 + (unsigned)i, 1, 1, 32, 1, 1, 0, stream, params, NULL) != 0)
            say("a launch failed");
    }
}

/* The program's loop, long enough to be known. */
static void learn(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        launch_times(LOOP);
        if (synchronise(stream) != 0)
            say("a synchronisation failed");
    }
}

/* A part of the loop, then the call. `late`: kernels that had not arrived when the call did. */
static void call_amid(const struct driver *d, const char *name, void *function)
{
    d->fake->forget();
    launch_times(PARTIAL);
    const unsigned before = d->fake->calls();
    const unsigned held = PARTIAL - d->fake->executed(before);
    marked_call_report(d->fake, name, function);
    unsigned late = PARTIAL;
    for (unsigned i = before; i < d->fake->calls(); i++)
        if (__builtin_strcmp(d->fake->names[d->fake->call(i)->row], name) == 0)
            late = PARTIAL - d->fake->executed(i);
    say_shim("%s held %u", name, held);
    say_shim("%s late %u", name, late);
}

/* amid NAME...: each of these in turn. */
static int amid(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    launch = (launch_fn)dlsym(d.handle, "cuLaunchKernel");
    synchronise = (int (*)(void *))dlsym(d.handle, "cuStreamSynchronize");
    learn(40);
    for (int i = 1; i < argc; i++) {
        void *const function = dlsym(d.handle, argv[i]);
        learn(4);
        call_amid(&d, argv[i], function);
        synchronise(stream);
    }
    return 0;
}

const struct test_case drain_cases[] = {
    {"amid", amid},
    {NULL, NULL},
};
