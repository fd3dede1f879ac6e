/* tools/bench/stub_launch.c - what is left of a program when launching costs nothing? Preloaded,
 * it answers every kernel launch with success and launches nothing: the results are garbage, the
 * time is the bound for any tool that only makes launches cheaper.
 * Called by  any program, through LD_PRELOAD     Calls  the real dlsym and driver
 * Threads    any; the pointers are written with the same value by whoever comes first
 * Promise    for measurements of the bound only. Never together with the shim.
 * Start at   dlsym(): hands out cuLaunchKernel and cuGetProcAddress of our own           */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int result; /* CUresult */
typedef void *(*dlsym_fn)(void *, const char *);
typedef result (*proc4_fn)(const char *, void **, int, uint64_t);
typedef result (*proc5_fn)(const char *, void **, int, uint64_t, void *);

static dlsym_fn real_dlsym;
static proc4_fn real_proc4;
static proc5_fn real_proc5;
static unsigned long stubbed;

static dlsym_fn find_dlsym(void)
{
    if (!real_dlsym)
        real_dlsym = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real_dlsym;
}

EXPORT result cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned smem, void *stream, void **args,
                             void **extra)
{
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)smem, (void)stream, (void)args, (void)extra;
    stubbed++;
    return 0;
}

EXPORT result cuLaunchKernelEx(const void *config, void *f, void **args, void **extra)
{
    (void)config, (void)f, (void)args, (void)extra;
    stubbed++;
    return 0;
}

EXPORT unsigned long ag_stub_launches(void)
{
    return stubbed;
}

static void *stub_for(const char *name)
{
    if (strncmp(name, "cuLaunchKernelEx", 16) == 0)
        return (void *)cuLaunchKernelEx;
    if (strcmp(name, "cuLaunchKernel") == 0 || strcmp(name, "cuLaunchKernel_ptsz") == 0)
        return (void *)cuLaunchKernel;
    return NULL;
}

static result get_proc4(const char *name, void **pfn, int version, uint64_t flags)
{
    result ret = real_proc4(name, pfn, version, flags);
    if (ret == 0 && name && pfn && stub_for(name))
        *pfn = stub_for(name);
    return ret;
}

static result get_proc5(const char *name, void **pfn, int version, uint64_t flags, void *status)
{
    result ret = real_proc5(name, pfn, version, flags, status);
    if (ret == 0 && name && pfn && stub_for(name))
        *pfn = stub_for(name);
    else if (ret == 0 && name && pfn && strcmp(name, "cuGetProcAddress") == 0)
        *pfn = version >= 12000 ? (void *)get_proc5 : (void *)get_proc4;
    return ret;
}

/* The last call is a jump: the real dlsym finds its caller by the return address. */
EXPORT void *dlsym(void *handle, const char *name)
{
    dlsym_fn real = find_dlsym();
    if (name[0] != 'c' || name[1] != 'u')
        return real(handle, name);
    if (stub_for(name))
        return stub_for(name);
    if (strcmp(name, "cuGetProcAddress_v2") == 0) {
        proc5_fn found = (proc5_fn)real(handle, name);
        real_proc5 = found ? found : real_proc5;
        real_proc4 = (proc4_fn)real(handle, "cuGetProcAddress");
        return found ? (void *)get_proc5 : NULL;
    }
    if (strcmp(name, "cuGetProcAddress") == 0) {
        proc4_fn found = (proc4_fn)real(handle, name);
        real_proc4 = found ? found : real_proc4;
        return found ? (void *)get_proc4 : NULL;
    }
    return real(handle, name);
}
