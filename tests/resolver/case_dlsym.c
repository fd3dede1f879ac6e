/* tests/resolver/case_dlsym.c - the ways a program asks dlsym for a driver function; see cases.h.
 * */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include "tests/resolver/plugin.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Both versions that glibc gives dlsym on x86-64: programs from before and after 2.34. */
void *dlsym_old(void *handle, const char *name);
void *dlsym_new(void *handle, const char *name);
__asm__(".symver dlsym_old, dlsym@GLIBC_2.2.5");
__asm__(".symver dlsym_new, dlsym@GLIBC_2.34");

static const char *const some[] = {
    "cuInit",
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuMemAlloc",
    "cuMemAlloc_v2",
    "cuCtxGetDevice",
    "cuStreamSynchronize_ptsz",
    "cuGetProcAddress_v2",
    "cuGetProcAddress",
    "cuGraphExecUpdate",
    "cuGraphExecUpdate_v2",
};
enum { SOME = sizeof some / sizeof *some };

static int by_handle(int argc, char **argv)
{
    const struct driver d = driver_open(argc > 1 ? argv[1] : NULL, RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < SOME; i++) {
        say_found(some[i], d.fake, dlsym(d.handle, some[i]));
        say_dlerror(some[i]);
    }
    return 0;
}

static int every_name(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (int row = 0; row < FAKE_KNOWN; row++)
        say_found(known_name(row), d.fake, dlsym(d.handle, known_name(row)));
    return 0;
}

/* The same through the global scope: a name that this driver lacks is not there. */
static int every_default(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    void *const self = dlopen(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (int row = 0; row < FAKE_KNOWN; row++) {
        void *const found = dlsym(RTLD_DEFAULT, known_name(row));
        say_found(known_name(row), d.fake, found);
        say("dlerror %s", dlerror() ? "set" : "none");
        say_found(known_name(row), d.fake, dlsym(self, known_name(row)));
        say("dlerror %s", dlerror() ? "set" : "none");
    }
    return 0;
}

/* Before libcuda is mapped a driver name is nobody's. */
static int before_mapped(int argc, char **argv)
{
    void *const self = dlopen(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (int i = 0; i < SOME; i++) {
        dlerror();
        say("%s by default: %s", some[i], home_of(dlsym(RTLD_DEFAULT, some[i])));
        say("%s by default: dlerror %s", some[i], dlerror() ? "set" : "none");
        say("%s by dlopen(NULL): %s", some[i], home_of(dlsym(self, some[i])));
        say("%s by dlopen(NULL): dlerror %s", some[i], dlerror() ? "set" : "none");
    }
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    for (int i = 0; i < SOME; i++) {
        say_found(some[i], d.fake, dlsym(RTLD_DEFAULT, some[i]));
        say_dlerror(some[i]);
        say_found(some[i], d.fake, dlsym(self, some[i]));
        say_dlerror(some[i]);
    }
    return 0;
}

/* libcuda mapped where the global scope does not see it: without the shim RTLD_DEFAULT finds
 * nothing. */
static int default_local(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_LOCAL);
    (void)argc, (void)argv;
    void *const found = dlsym(RTLD_DEFAULT, "cuInit");
    say_shim("cuInit %s", home_of(found));
    if (found)
        say_shim("cuInit reaches %s", reached(d.fake, found));
    return 0;
}

/* What dlerror says before, between and after look-ups of every kind. */
static int errors(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    say_dlerror("at start");
    say("missing: %s", home_of(dlsym(d.handle, "cuNoSuchFunction")));
    say_dlerror("after a missing name");
    say_dlerror("the second time");
    dlsym(d.handle, "cuNoSuchFunction");
    void *const init = dlsym(d.handle, "cuInit");
    say_dlerror("a success clears it");
    dlsym(d.handle, "cuNoSuchFunction");
    call_eleven(init);
    say_dlerror("the first driver call keeps it");
    dlsym(d.handle, "no_such_function");
    dlvsym(RTLD_DEFAULT, "malloc", "NO_SUCH_VERSION");
    say_dlerror("a failed dlvsym replaces it");
    int (*ask)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(d.handle,
                                                                    "cuGetProcAddress_v2");
    void *out;
    int status;
    dlsym(d.handle, "cuNoSuchFunction");
    ask("cuInit", &out, 12000, 0, &status);
    ask("cuNoSuchFunction", &out, 12000, 0, &status);
    ask("cuFutureOp", &out, 13000, 0, &status);
    say_dlerror("cuGetProcAddress keeps it");
    dlopen("libnosuch.so.9", RTLD_NOW);
    dlsym(RTLD_DEFAULT, "cuNoSuchFunction");
    say_dlerror("by default, missing");
    dlsym(RTLD_NEXT, "cuNoSuchFunction");
    say_dlerror("next, missing");
    dlsym(d.handle, "cuFutureOp");
    say_dlerror("a name that the shim lacks");
    return 0;
}

static void say_symbol(const char *label, const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info))
        say("%s: %s", label, address ? "nowhere" : "null");
    else
        say("%s: %s %s+%ld", label, home_of(address), info.dli_sname ? info.dli_sname : "?",
            (long)((const char *)address - (const char *)info.dli_fbase));
}

/* Names that are none of the shim's business. */
static int other_names(int argc, char **argv)
{
    static const char *const names[] = {"printf",
                                        "malloc",
                                        "abs",
                                        "",
                                        "c",
                                        "cu",
                                        "cu_",
                                        "cuda",
                                        "cudaMalloc",
                                        "cublasCreate_v2",
                                        "cudnnCreate",
                                        "cuteThing",
                                        "curl_easy_init",
                                        "main",
                                        "fake_api",
                                        "no_such_function",
                                        "CuInit",
                                        "xcuInit"};
    const struct driver d = driver_open(NULL, RTLD_NOW);
    void *const self = dlopen(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        say_symbol(names[i], dlsym(d.handle, names[i]));
        say_dlerror(names[i]);
        say_symbol(names[i], dlsym(self, names[i]));
        say_dlerror(names[i]);
        say_symbol(names[i], dlsym(RTLD_DEFAULT, names[i]));
        say_dlerror(names[i]);
        say_symbol(names[i], dlsym(RTLD_NEXT, names[i]));
        say_dlerror(names[i]);
        say_symbol(names[i], dlvsym(RTLD_DEFAULT, names[i], "GLIBC_2.2.5"));
        say_dlerror(names[i]);
    }
    return 0;
}

/* A name whose last byte is the last byte of a page: reading further would fault. */
static int names_at_page_end(int argc, char **argv)
{
    static const char *const names[] = {"", "c", "cu", "cuI", "x", "cuInit", "cuNoSuchFunction"};
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    char *const two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)argc, (void)argv;
    if (two == MAP_FAILED || mprotect(two + 4096, 4096, PROT_NONE) != 0)
        return 4;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t size = strlen(names[i]) + 1;
        const char *const name = memcpy(two + 4096 - size, names[i], size);
        say("'%s' by handle: %s", name, dlsym(d.handle, name) ? "found" : "null");
        say("'%s' by default: %s", name, dlsym(RTLD_DEFAULT, name) ? "found" : "null");
        say("'%s' next: %s", name, dlsym(RTLD_NEXT, name) ? "found" : "null");
    }
    return 0;
}

/* Both symbol versions of dlsym end in the same answers. */
static int symbol_versions(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    for (int i = 0; i < SOME; i++) {
        void *const old = dlsym_old(d.handle, some[i]), *const now = dlsym_new(d.handle, some[i]);
        say("%s: %s", some[i], old == now ? "the same" : "different");
        say_found(some[i], d.fake, old);
    }
    say_symbol("malloc, old", dlsym_old(RTLD_DEFAULT, "malloc"));
    say_symbol("malloc, new", dlsym_new(RTLD_DEFAULT, "malloc"));
    say_symbol("missing, old", dlsym_old(d.handle, "cuNoSuchFunction"));
    say_dlerror("missing, old");
    say_symbol("next, old", dlsym_old(RTLD_NEXT, "malloc"));
    say("dlsym is found by name: %s", dlsym(RTLD_DEFAULT, "dlsym") ? "yes" : "no");
    return 0;
}

/* dlvsym is not interposed: nobody asks it for a driver name. */
static int by_version(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    say_symbol("versioned", dlvsym(d.handle, "cuInit", "NO_SUCH_VERSION"));
    say("dlvsym: dlerror %s", dlerror() ? "set" : "none");
    return 0;
}

static void say_answer(const char *label, void *function)
{
    say("%s: %s answers %d", label, home_of(function),
        function ? ((int (*)(void *))function)(argument_page) : -1);
}

/* A library with cu-names of its own, looked up by its handle, by itself, and after libcuda came.
 * */
static int foreign(int argc, char **argv)
{
    void *const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin)
        return 4;
    void *(*const its_dlsym)(void *, const char *) =
        (void *(*)(void *, const char *))dlsym(plugin, "plugin_dlsym");
    for (int round = 0; round < 2; round++) {
        say_answer("its cuInit", dlsym(plugin, "cuInit"));
        say_answer("cudnnCreate", dlsym(plugin, "cudnnCreate"));
        say_answer("cuteThing", dlsym(plugin, "cuteThing"));
        say_answer("cuPluginOnly", dlsym(plugin, "cuPluginOnly"));
        say_answer("cuPluginOnly, asked by itself", its_dlsym(RTLD_DEFAULT, "cuPluginOnly"));
        say_answer("cudnnCreate, asked by itself", its_dlsym(RTLD_DEFAULT, "cudnnCreate"));
        say_symbol("cuPluginOnly after it", its_dlsym(RTLD_NEXT, "cuPluginOnly"));
        say_symbol("cudnnCreate after it", its_dlsym(RTLD_NEXT, "cudnnCreate"));
        say_symbol("malloc after it", its_dlsym(RTLD_NEXT, "malloc"));
        say_symbol("a driver name that it lacks", dlsym(plugin, "cuMemAlloc_v2"));
        say_dlerror("a driver name that it lacks");
        say_symbol("cuPluginOnly by default", dlsym(RTLD_DEFAULT, "cuPluginOnly"));
        say_dlerror("cuPluginOnly by default");
        if (round == 0)
            driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    }
    return 0;
}

/* A library that is linked with libcuda, opened where only it sees the driver. */
static int linked_library(int argc, char **argv)
{
    void *const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin)
        return 4;
    const struct driver d = driver_open(NULL, RTLD_NOW);
    void *(*const its_dlsym)(void *, const char *) =
        (void *(*)(void *, const char *))dlsym(plugin, "plugin_dlsym");
    int (*const its_call)(void) = (int (*)(void))dlsym(plugin, "plugin_call");
    say("its own call: %d", its_call());
    for (int i = 0; i < SOME; i++) {
        say_found("through its handle", d.fake, dlsym(plugin, some[i]));
        say_dlerror(some[i]);
        say_found("asked by itself", d.fake, its_dlsym(RTLD_DEFAULT, some[i]));
        say_dlerror(some[i]);
        void *const next = its_dlsym(RTLD_NEXT, some[i]);
        say_shim("next %s", home_of(next));
        say("next: %s", next ? reached(d.fake, next) : "null");
        say_dlerror(some[i]);
    }
    return 0;
}

/* The constructor of a library was the first to use the driver. */
static int constructor(int argc, char **argv)
{
    void *const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin)
        return 4;
    const struct plugin_seen *(*const seen)(void) =
        (const struct plugin_seen *(*)(void))dlsym(plugin, "plugin_seen");
    const struct driver d = driver_open(NULL, RTLD_NOW);
    say("call %d, linked call %d", seen()->call, seen()->linked_call);
    say("dlerror %s", seen()->error);
    say_found("by handle", d.fake, seen()->by_handle);
    return 0;
}

/* The driver lets two names share an address: which of the two comes back shows only with the
 * shim. */
static int shared_address(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    int (*const ask)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(d.handle,
                                                                    "cuGetProcAddress_v2");
    static const char *const names[] = {"cuStreamQuery", "cuCtxGetDevice"};
    (void)argc, (void)argv;
    for (int i = 0; i < 2; i++) {
        void *const found = dlsym(d.handle, names[i]);
        void *asked = NULL;
        int status = -1;
        say("look-up: %d", ask(names[i], &asked, 12000, 0, &status));
        say_found(names[i], d.fake, found);
        say("%s", found == asked ? "both routes agree" : "the routes differ");
        say_shim("%s is %s", names[i], found == dlsym(RTLD_NEXT, names[i]) ? "itself" : "another");
    }
    return 0;
}

const struct test_case dlsym_cases[] = {
    {"by-handle", by_handle},
    {"every-name", every_name},
    {"every-default", every_default},
    {"before-mapped", before_mapped},
    {"default-local", default_local},
    {"errors", errors},
    {"other-names", other_names},
    {"names-at-page-end", names_at_page_end},
    {"symbol-versions", symbol_versions},
    {"by-version", by_version},
    {"foreign", foreign},
    {"linked-library", linked_library},
    {"constructor", constructor},
    {"shared-address", shared_address},
    {NULL, NULL},
};
