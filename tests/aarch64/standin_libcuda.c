/* tests/aarch64/standin_libcuda.c - a libcuda.so.1 of a few functions; registers.S has those that
 * record how they were called. */
#include "tests/aarch64/registers.h"
#include <stddef.h>
#include <string.h>

struct registers standin_seen;
uint64_t standin_calls;

extern int cuLaunchKernel(void), cuCtxRecordEvent(void), cuCtxGetFlags(void), cuFutureOp(void),
    cuFutureOp2(void);

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    static const struct {
        const char *name;
        int (*function)(void);
    } all[] = {{"cuLaunchKernel", cuLaunchKernel},
               {"cuCtxRecordEvent", cuCtxRecordEvent},
               {"cuCtxGetFlags", cuCtxGetFlags},
               {"cuFutureOp", cuFutureOp}};
    (void)version, (void)flags;
    *out = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            *out = (void *)all[i].function;
    if (status)
        *status = *out ? 0 : 1;
    return *out ? 0 : 500;
}
