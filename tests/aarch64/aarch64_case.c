/* tests/aarch64/aarch64_case.c - the program under the shim: `aarch64_case NAME`, exit status 0 when
 * what it saw is right, else a line says what is wrong.
 * Called by  aarch64_test.py, under qemu       Calls  the stand-in driver, through the shim */
#define _GNU_SOURCE
#include "tests/aarch64/registers.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Linked: bound through the PLT, to the shim's exports. */
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned smem, void *stream, void **params, void **extra);
int cuCtxRecordEvent(void *context, void *event);
int cuCtxGetFlags(unsigned *flags);

static void *cuda;
static struct registers *seen;
static uint64_t *calls;
static int wrong;

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    printf("not so: %s\n", what);
    wrong = 1;
}

static void open_driver(void)
{
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    seen = cuda ? dlsym(cuda, "standin_seen") : NULL;
    calls = cuda ? dlsym(cuda, "standin_calls") : NULL;
    if (!seen || !calls) {
        printf("no driver: %s\n", dlerror());
        exit(3);
    }
}

static int in_shim(void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) && strstr(info.dli_fname, "libautograph.so") != NULL;
}

static const struct registers marks = {
    .x = {0x1011121314151617, 0x2021222324252627, 0x3031323334353637, 0x4041424344454647,
          0x5051525354555657, 0x6061626364656667, 0x7071727374757677, 0x8081828384858687,
          0x9091929394959697},
    .stack = {0xa0a1a2a3a4a5a6a7, 0xb0b1b2b3b4b5b6b7, 0xc0c1c2c3c4c5c6c7},
    .d = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5},
};

/* Twice: the first call of a process goes through initialisation. */
static void expect_all_kept(void *function, long answer, const char *what)
{
    for (int i = 0; i < 2; i++) {
        memset(seen, 0, sizeof *seen);
        const uint64_t before = *calls;
        expect(call_with(function, &marks) == answer, "the answer is that function's");
        expect(*calls == before + 1, "the call arrives once");
        expect(memcmp(seen, &marks, sizeof marks) == 0, what);
    }
}

static void thunk(void)
{
    expect_all_kept((void *)cuCtxRecordEvent, 1, "a draining thunk keeps every register");
}

static void bare(void)
{
    expect_all_kept((void *)cuCtxGetFlags, 2, "a bare jump keeps every register");
}

static void unknown(void)
{
    void *const found = dlsym(cuda, "cuFutureOp"), *const other = dlsym(cuda, "cuFutureOp2");
    expect(in_shim(found) && in_shim(other) && found != other, "each has a thunk of its own");
    expect(found == dlsym(cuda, "cuFutureOp"), "and keeps it");
    expect_all_kept(found, 3, "a thunk of an unknown function keeps every register");
    thunk(); /* the shim is at work by now */
    expect_all_kept(found, 3, "afterwards too");
    expect_all_kept(other, 4, "and the next one");
}

static void launch(void)
{
    void *params[1], *extra[1];
    for (int i = 0; i < 3; i++) {
        memset(seen, 0, sizeof *seen);
        const uint64_t before = *calls;
        const int ret = cuLaunchKernel(params, 11, 12, 13, 14, 15, 16, 17, extra, NULL, extra);
        expect(ret == 0 && *calls == before + 1, "the launch arrives");
        expect(seen->x[0] == (uint64_t)(uintptr_t)params, "the function");
        for (unsigned a = 1; a < 8; a++)
            expect((uint32_t)seen->x[a] == 10 + a, "grid, block and shared memory");
        expect(seen->stack[0] == (uint64_t)(uintptr_t)extra, "the stream, on the stack");
        expect(seen->stack[1] == 0, "the parameters, on the stack");
        expect(seen->stack[2] == (uint64_t)(uintptr_t)extra, "the extra ones, on the stack");
    }
}

typedef int (*ask_fn)(const char *, void **, int, uint64_t, int *);

static void lookup(void)
{
    static const char *const names[] = {"cuLaunchKernel", "cuCtxRecordEvent", "cuCtxGetFlags",
                                        "cuFutureOp"};
    const ask_fn ask = (ask_fn)dlsym(cuda, "cuGetProcAddress_v2");
    expect(in_shim((void *)ask), "the look-up itself is a hook");
    for (int i = 0; i < 4; i++) {
        void *asked = NULL;
        int status = -1;
        expect(ask(names[i], &asked, 13000, 0, &status) == 0 && status == 0, names[i]);
        expect(in_shim(asked), "cuGetProcAddress gives a hook");
        expect(asked == dlsym(cuda, names[i]), "and dlsym the same");
        expect(asked == dlsym(RTLD_DEFAULT, names[i]), "by default too");
    }
    expect(dlsym(cuda, "cuLaunchKernel") == (void *)cuLaunchKernel, "which is the export");
    void *asked = cuda;
    expect(ask("cuNoSuchFunction", &asked, 13000, 0, NULL) == 500 && !asked, "unknown: none");
    expect(!dlsym(cuda, "cuNoSuchFunction") && dlerror(), "unknown: none, and a message");
}

static void others(void)
{
    expect(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc, "libc's own names");
    expect(!in_shim(dlsym(RTLD_NEXT, "malloc")), "the next malloc");
    expect(in_shim(dlsym(RTLD_NEXT, "cuLaunchKernel")), "the export comes next after us");
    expect(!dlsym(cuda, "cuda") && dlerror(), "no name of the driver");
    expect(!in_shim(dlsym(cuda, "standin_seen")), "data of the driver");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"thunk", thunk},   {"bare", bare},     {"unknown", unknown},
                 {"launch", launch}, {"lookup", lookup}, {"others", others}};
    open_driver();
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return wrong;
        }
    return 2;
}
