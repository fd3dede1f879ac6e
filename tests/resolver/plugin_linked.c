/* tests/resolver/plugin_linked.c - a library that is linked with libcuda: built twice, the second
 * one's constructor (-DPLUGIN_CONSTRUCTOR) is the first to use the driver, before main and inside
 * the loader's lock.
 * Called by  case programs       Calls  dlsym, cuInit       Threads  one */
#define _GNU_SOURCE
#include "tests/resolver/plugin.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned flags);

/* Not a tail call: dlsym must see this library as its caller. */
void *plugin_dlsym(void *handle, const char *name)
{
    void *volatile found = dlsym(handle, name);
    return found;
}

int plugin_call(void)
{
    return cuInit(0);
}

#ifdef PLUGIN_CONSTRUCTOR
static struct plugin_seen seen;

__attribute__((constructor)) static void look_early(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    seen.by_default = dlsym(RTLD_DEFAULT, "cuInit");
    seen.by_handle = driver ? dlsym(driver, "cuInit") : NULL;
    seen.call = seen.by_handle ? ((int (*)(unsigned))seen.by_handle)(0) : -1;
    seen.linked_call = cuInit(0);
    dlsym(driver, "cuNoSuchFunction");
    snprintf(seen.error, sizeof seen.error, "%s", dlerror());
    dlsym(driver, "cuInit");
}

const struct plugin_seen *plugin_seen(void)
{
    return &seen;
}
#endif
