/* tests/resolver/plugin_foreign.c - a library that has nothing to do with libcuda but names that
 * look like it.
 * Called by  case programs       Calls  dlsym       Threads  one
 * Promise    its own cuInit stays its own when it is asked for through the library's handle */
#define _GNU_SOURCE
#include "tests/resolver/plugin.h"
#include <dlfcn.h>

int cuInit(unsigned flags);
int cudnnCreate(void *out);
int cuteThing(void);
int cuPluginOnly(void);

int cuInit(unsigned flags)
{
    return FOREIGN_CUINIT + 0 * (int)flags;
}

int cudnnCreate(void *out)
{
    return out ? FOREIGN_CUDNN : -1;
}

int cuteThing(void)
{
    return FOREIGN_CUTE;
}

/* cu[A-Z]*, in no driver: must be found as without the shim. */
int cuPluginOnly(void)
{
    return FOREIGN_CUTE;
}

/* Not a tail call: dlsym must see this library as its caller. */
void *plugin_dlsym(void *handle, const char *name)
{
    void *volatile found = dlsym(handle, name);
    return found;
}
