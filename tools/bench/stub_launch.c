/* tools/bench/stub_launch.c - what is left of a program when launching costs nothing? Preloaded,
 * it answers every kernel launch with success and launches nothing: the results are garbage, the
 * time is the bound for any tool that only makes launches cheaper.
 * Called by  any program, through LD_PRELOAD     Calls  the real dlsym and driver
 * Threads    any; the pointers are written with the same value by whoever comes first
 * Promise    for measurements only, never together with the shim. With AG_STUB=count it launches
 *            after all and, at exit, writes to AG_STUB_FILE how the arguments came
 * Start at   dlsym(): hands out cuLaunchKernel and cuGetProcAddress of our own           */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int result; /* CUresult */
typedef void *(*dlsym_fn)(void *, const char *);
typedef result (*proc4_fn)(const char *, void **, int, uint64_t);
typedef result (*proc5_fn)(const char *, void **, int, uint64_t, void *);

typedef result (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);
typedef result (*launch_ex_fn)(const void *, void *, void **, void **);

static dlsym_fn real_dlsym;
static proc4_fn real_proc4;
static proc5_fn real_proc5;
static launch_fn real_launch; /* set in count mode only, as is the next */
static launch_ex_fn real_launch_ex;
static int counting = -1;
static atomic_ulong with_params, with_extra;

static void write_counts(void)
{
    const char *path = getenv("AG_STUB_FILE");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "{\"launches_with_params\": %lu, \"launches_with_extra\": %lu}\n",
            atomic_load(&with_params), atomic_load(&with_extra));
    fclose(f);
}

static int is_counting(void)
{
    const char *mode;
    if (counting >= 0)
        return counting;
    mode = getenv("AG_STUB");
    counting = mode && strcmp(mode, "count") == 0;
    atexit(write_counts);
    return counting;
}

static dlsym_fn find_dlsym(void)
{
    if (!real_dlsym)
        real_dlsym = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real_dlsym;
}

static void note(void **extra)
{
    atomic_fetch_add_explicit(extra ? &with_extra : &with_params, 1, memory_order_relaxed);
}

EXPORT result cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned smem, void *stream, void **args,
                             void **extra)
{
    note(extra);
    if (is_counting() && real_launch)
        return real_launch(f, gx, gy, gz, bx, by, bz, smem, stream, args, extra);
    return 0;
}

EXPORT result cuLaunchKernelEx(const void *config, void *f, void **args, void **extra)
{
    note(extra);
    if (is_counting() && real_launch_ex)
        return real_launch_ex(config, f, args, extra);
    return 0;
}

/* Our function in place of the driver's, or NULL. In count mode only names whose driver function
 * we can call on to: the per-thread-stream twins are then left alone. */
static void *stub_for(const char *name, void *driver, int per_thread)
{
    int plain = strcmp(name, "cuLaunchKernel") == 0, ex = strcmp(name, "cuLaunchKernelEx") == 0;
    per_thread = per_thread || strcmp(name, "cuLaunchKernel_ptsz") == 0 ||
                 strcmp(name, "cuLaunchKernelEx_ptsz") == 0;
    if (!plain && !ex && strncmp(name, "cuLaunchKernel", 14) != 0)
        return NULL;
    if (is_counting()) {
        if (per_thread || !driver || !(plain || ex))
            return NULL;
        if (plain)
            real_launch = (launch_fn)driver;
        else
            real_launch_ex = (launch_ex_fn)driver;
    }
    return strncmp(name, "cuLaunchKernelEx", 16) == 0 ? (void *)cuLaunchKernelEx
                                                      : (void *)cuLaunchKernel;
}

static void answer(const char *name, void **pfn, uint64_t flags)
{
    void *stub = name && pfn ? stub_for(name, *pfn, (flags & 2) != 0) : NULL;
    if (stub)
        *pfn = stub;
}

static result get_proc4(const char *name, void **pfn, int version, uint64_t flags)
{
    result ret = real_proc4(name, pfn, version, flags);
    if (ret == 0)
        answer(name, pfn, flags);
    return ret;
}

static result get_proc5(const char *name, void **pfn, int version, uint64_t flags, void *status)
{
    result ret = real_proc5(name, pfn, version, flags, status);
    if (ret == 0)
        answer(name, pfn, flags);
    if (ret == 0 && name && pfn && strcmp(name, "cuGetProcAddress") == 0)
        *pfn = version >= 12000 ? (void *)get_proc5 : (void *)get_proc4;
    return ret;
}

/* The last call is a jump: the real dlsym finds its caller by the return address. */
EXPORT void *dlsym(void *handle, const char *name)
{
    dlsym_fn real = find_dlsym();
    if (name[0] != 'c' || name[1] != 'u')
        return real(handle, name);
    if (strncmp(name, "cuLaunchKernel", 14) == 0) {
        void *found = real(handle, name);
        void *stub = found ? stub_for(name, found, 0) : NULL;
        return stub ? stub : found;
    }
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
