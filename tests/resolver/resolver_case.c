/* tests/resolver/resolver_case.c - the case program: `case NAME [ARGUMENT...]`; see cases.h. */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char argument_page[FAKE_ARGS][4096];

static const char *const known[] = {
#define FAKE_ROW(symbol) #symbol,
#include "known_rows.def"
#undef FAKE_ROW
};

const char *known_name(int row)
{
    return known[row];
}

struct driver driver_open(const char *path, int mode)
{
    struct driver d = {dlopen(path ? path : "libcuda.so.1", mode), NULL};
    const struct fake_api *(*api)(void);
    if (!d.handle) {
        say("no driver: %s", dlerror());
        exit(3);
    }
    api = (const struct fake_api *(*)(void))dlsym(d.handle, "fake_api");
    if (!api) {
        say("not the fake driver: %s", dlerror());
        exit(3);
    }
    d.fake = api();
    return d;
}

typedef int (*eleven_fn)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                         void *, void *);

int call_eleven(void *function)
{
    char(*const p)[4096] = argument_page;
    return ((eleven_fn)function)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]);
}

/* The answer names the row; look-ups and the like answer something else, and are known by their
 * first argument. */
const char *reached(const struct fake_api *fake, void *function)
{
    const unsigned before = fake->calls();
    const char *name = "nowhere";
    const int answer = call_eleven(function);
    if (answer >= FAKE_FIRST_RESULT && answer < FAKE_FIRST_RESULT + FAKE_ROWS)
        return fake->names[answer - FAKE_FIRST_RESULT];
    for (unsigned i = before; i < fake->calls(); i++)
        if (fake->call(i)->with.args[0] == (uint64_t)(uintptr_t)argument_page[0])
            name = fake->names[fake->call(i)->row];
    return name;
}

const char *home_of(const void *address)
{
    Dl_info info;
    if (!address)
        return "none";
    if (!dladdr(address, &info) || !info.dli_fname)
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    if (strcmp(name, "libcuda.so.1") == 0)
        return "driver";
    return strcmp(name, "libautograph.so") == 0 ? "shim" : name;
}

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

void say_shim(const char *format, ...)
{
    va_list list;
    fputs("shim: ", stdout);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

void say_found(const char *label, const struct fake_api *fake, void *address)
{
    say_shim("%s %s", label, home_of(address));
    say("%s: %s", label, address ? reached(fake, address) : "null");
}

void say_dlerror(const char *label)
{
    const char *error = dlerror();
    say("%s: dlerror %s", label, error ? error : "none");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 1 << 16); /* a case that crashes has said what it saw before */
    const struct test_case *const all[] = {dlsym_cases, lookup_cases, process_cases, call_cases,
                                           drain_cases};
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
        for (const struct test_case *c = all[i]; c->name; c++)
            if (strcmp(c->name, argv[1]) == 0) {
                const int result = c->run(argc - 1, argv + 1);
                fflush(stdout);
                return result;
            }
    fprintf(stderr, "usage: case NAME [ARGUMENT...]\n");
    return 2;
}
