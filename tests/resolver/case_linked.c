/* tests/resolver/case_linked.c - a program linked with libcuda: all 674 functions are bound by the
 * loader. `case_linked NAME [ARGUMENT...]`, prints as cases.h says.
 * Called by  the test       Calls  the driver, dlsym       Threads  one */
#define _GNU_SOURCE
#include "tests/resolver/marked_call.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_ROW(symbol) int symbol();
#include "known_rows.def"
#undef FAKE_ROW

static void *const bound[] = {
#define FAKE_ROW(symbol) (void *)symbol,
#include "known_rows.def"
#undef FAKE_ROW
};

static const char *const names[] = {
#define FAKE_ROW(symbol) #symbol,
#include "known_rows.def"
#undef FAKE_ROW
};

static int rows(const struct fake_api *fake, int first, int count)
{
    for (int row = first; row < first + count && row < FAKE_KNOWN; row++)
        marked_call_report(fake, names[row], bound[row]);
    return 0;
}

static int addresses(const struct fake_api *fake)
{
    int by_default = 0, next = 0, by_self = 0;
    void *const self = dlopen(NULL, RTLD_NOW);
    cuInit(0); /* whatever the shim asks the driver at its start is asked now */
    for (int row = 0; row < FAKE_KNOWN; row++) {
        by_default += dlsym(RTLD_DEFAULT, names[row]) == bound[row];
        next += dlsym(RTLD_NEXT, names[row]) == bound[row];
        by_self += dlsym(self, names[row]) == bound[row];
    }
    printf("by default %d, next %d, by dlopen(NULL) %d of %d are the bound one\n", by_default, next,
           by_self, FAKE_KNOWN);
    marked_call_report(fake, "cuInit", dlsym(RTLD_NEXT, "cuInit"));
    marked_call_report(fake, "cuInit", dlsym(RTLD_DEFAULT, "cuInit"));
    return 0;
}

/* Calls through the PLT, not through a pointer. */
static int plt(const struct fake_api *fake)
{
    printf("cuInit %d\n", cuInit(0));
    printf("cuCtxGetDevice %d\n", cuCtxGetDevice(NULL));
    printf("cuMemAlloc_v2 %d\n", cuMemAlloc_v2(NULL, (size_t)4));
    printf("cuCtxSynchronize %d\n", cuCtxSynchronize());
    printf("%u calls\n", fake->calls() > 3);
    return 0;
}

int main(int argc, char **argv)
{
    const struct fake_api *(*const api)(void) =
        (const struct fake_api *(*)(void))dlsym(RTLD_DEFAULT, "fake_api");
    if (!api || argc < 2)
        return 3;
    if (strcmp(argv[1], "rows") == 0 && argc > 3)
        return rows(api(), atoi(argv[2]), atoi(argv[3]));
    if (strcmp(argv[1], "addresses") == 0)
        return addresses(api());
    if (strcmp(argv[1], "plt") == 0)
        return plt(api());
    return 2;
}
