/* tests/scenarios/entry.c - O-46: calls that the shim has no body for, and the variants that a look-up hands out.
 * Called by  scene.c                     Calls  scene.h, cuGetProcAddress
 * Threads    one
 * Promise    prints codes and data, never an address
 * Start at   scene_entry. Every route to a function that the table lacks: tests/resolver. */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <dlfcn.h>
#include <string.h>

/* An operation on a stream through an entry point that only drains: before it the launches, after it the rest. */
typedef CUresult (*write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

static void barrier_between_launches(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction read = scene_function(scene_load("flag"), "read_flag");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), flag = scene_buffer(), seen = scene_buffer();
    CUdriverProcAddressQueryResult how;
    void *found = NULL;
    NEED(cuGetProcAddress("cuStreamWriteValue32", &found, 12000, 0, &how));
    write_value by_name;
    memcpy(&by_name, &found, sizeof by_name);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr before = seen + 8 * round, after = before + 4;
        scene_work(varying, s, x, round == ODD_ROUND ? 5 : 6, round);
        NEED(scene_launch(read, s, 1, 1, 0, ARGS(&flag, &before)));
        if (round % 2)
            NEED(by_name(s, flag, round + 1000, 0));
        else
            NEED(cuStreamWriteValue32(s, flag, round + 1000, 0));
        NEED(scene_launch(read, s, 1, 1, 0, ARGS(&flag, &after)));
        scene_work(varying, s, x, 6, round);
    }
    scene_show("x", 0, s, x);
    scene_show("seen", 0, s, seen);
}

/* Functions of tools/simcuda/sim_future.c, which no header and no table names. */
typedef CUresult (*future_join)(CUstream);
typedef CUresult (*future_write)(CUstream, CUdeviceptr, cuuint32_t);

static void *from_the_future(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, name) : NULL;
    if (!found)
        scene_need(CUDA_ERROR_NOT_FOUND, name);
    return found;
}

struct future {
    CUmodule varying;
    CUfunction tell, read;
    CUstream stream;
    CUdeviceptr x, word, flag, seen;
};

/* The host looks at mapped memory after a call of which only the driver knows that it waits. */
static int look_after(struct future *f, future_join join, const volatile uint32_t *word,
                      unsigned round)
{
    unsigned value = round + 1;
    scene_work(f->varying, f->stream, f->x, round == ODD_ROUND ? 5 : 6, round);
    NEED(scene_launch(f->tell, f->stream, 1, 1, 0, ARGS(&f->word, &value)));
    NEED(join(f->stream));
    return *word != value;
}

static void write_between(struct future *f, future_write write, unsigned round)
{
    CUdeviceptr before = f->seen + 8 * round, after = before + 4;
    scene_work(f->varying, f->stream, f->x, round == ODD_ROUND + 1 ? 5 : 6, round);
    NEED(scene_launch(f->read, f->stream, 1, 1, 0, ARGS(&f->flag, &before)));
    NEED(write(f->stream, f->flag, round + 1000));
    NEED(scene_launch(f->read, f->stream, 1, 1, 0, ARGS(&f->flag, &after)));
}

static void unknown_calls(void)
{
    future_join join;
    future_write write;
    struct future f;
    scene_open();
    void *found = from_the_future("cuFutureStreamJoin");
    memcpy(&join, &found, sizeof join);
    found = from_the_future("cuFutureStreamWrite");
    memcpy(&write, &found, sizeof write);
    CUmodule flags = scene_load("flag");
    f = (struct future){.varying = scene_load("varying"),
                        .tell = scene_function(flags, "set_flag"),
                        .read = scene_function(flags, "read_flag"),
                        .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                        .x = scene_buffer(),
                        .flag = scene_buffer(),
                        .seen = scene_buffer()};
    const volatile uint32_t *word = scene_mapped(&f.word);
    int unseen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unseen += look_after(&f, join, word, round);
        write_between(&f, write, round);
    }
    printf("not seen after the call that waits: %d\n", unseen);
    scene_show("x", 0, f.stream, f.x);
    scene_show("seen", 0, f.stream, f.seen);
}

static void variants(void)
{
    static const char *const names[] = {"cuLaunchKernel",
                                        "cuLaunchKernelEx",
                                        "cuGraphExecUpdate",
                                        "cuCtxCreate",
                                        "cuMemAlloc",
                                        "cuMemcpyHtoD",
                                        "cuStreamGetCaptureInfo",
                                        "cuGetProcAddress",
                                        "cuEventElapsedTime",
                                        "cuGraphKernelNodeSetParams",
                                        "cuStreamSynchronize",
                                        "cuNoSuchCall"};
    static const int versions[] = {2000,  3020,  4000,  7000,  10010, 11040,
                                   11060, 12000, 12040, 12080, 13000};
    scene_open();
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            for (unsigned flags = 0; flags < 3; flags++) {
                CUdriverProcAddressQueryResult how = 99;
                void *found = NULL;
                CUresult ret = cuGetProcAddress(names[n], &found, versions[v], flags, &how);
                printf("%s %d %u: %d %d %s\n", names[n], versions[v], flags, ret, (int)how,
                       found ? "found" : "none");
            }
}

const struct scene_case scene_entry[] = {{"O-46-barrier", barrier_between_launches},
                                         {"O-46-unknown", unknown_calls},
                                         {"O-46-variants", variants},
                                         {NULL, NULL}};
