/* tests/scenarios/fill_scenes.c - memsets, for which the shim loads a kernel of its own.
 * Called by  scene.c                     Calls  scene.h
 * Threads    none
 * Promise    none of the calls that must not wait for the device does
 * Start at   scene_fills */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include "kernels/images.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static CUstream work_and_fill(CUmodule varying, CUdeviceptr x, unsigned rounds)
{
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    for (unsigned round = 0; round < rounds; round++) {
        scene_work(varying, s, x, round == ODD_ROUND ? 7 : 8, round);
        NEED(cuMemsetD32Async(x + 4 * round, round, 3, s));
        scene_work(varying, s, x, 4, round);
        NEED(cuCtxSynchronize());
    }
    return s;
}

/* Contexts that see a memset and nothing else, each with the handle of the one before; then one that works. */
static void contexts_one_after_another(void)
{
    CUdevice device;
    CUcontext ctx, first = NULL;
    CUdeviceptr x;
    unsigned again = 0;
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    for (unsigned life = 0; life < 8; life++) {
        NEED(cuCtxCreate(&ctx, NULL, 0, device));
        again += ctx == first;
        first = ctx;
        x = scene_buffer();
        NEED(cuMemsetD32Async(x, life, 4, life % 2 ? CU_STREAM_PER_THREAD : NULL));
        NEED(cuCtxSynchronize());
        if (life % 4 < 2)
            NEED(cuMemsetD8Async(x, 1, 5, CU_STREAM_PER_THREAD));
        NEED(cuCtxDestroy(ctx));
    }
    NEED(cuCtxCreate(&ctx, NULL, 0, device));
    x = scene_buffer();
    CUstream s = work_and_fill(scene_load("varying"), x, ROUNDS);
    scene_show("x", 0, s, x);
    printf("contexts that came back: %u\n", again);
}

/* Calls that the driver answers at once, while a kernel waits for the very thread that makes them. */
static void beside_a_waiting_kernel(void)
{
    CUdevice device;
    CUcontext ctx, other;
    CUdeviceptr x, elsewhere, flag_device;
    CUmodule none;
    static const char junk[64] = "not an image";
    scene_open();
    NEED(cuCtxGetCurrent(&ctx));
    NEED(cuCtxGetDevice(&device));
    CUmodule varying = scene_load("varying");
    CUfunction wait = scene_function(scene_load("flag"), "wait_flag");
    x = scene_buffer();
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING), t = scene_stream(CU_STREAM_NON_BLOCKING);
    unsigned *flag = scene_mapped(&flag_device);
    NEED(cuCtxCreate(&other, NULL, 0, device));
    NEED(cuMemAlloc(&elsewhere, 4096));
    NEED(cuCtxSetCurrent(ctx));
    unsigned one = 1;
    NEED(scene_launch(wait, t, 1, 1, 0, ARGS(&flag_device, &one)));
    NEED(cuMemsetD32Async(x, 1, 4, s));
    printf("free nothing: %d\n", cuMemFree(0));
    printf("free of another context: %d\n", cuMemFree(elsewhere));
    printf("load nothing: %d\n", cuModuleLoadData(&none, NULL));
    printf("load no image: %d\n", cuModuleLoadData(&none, junk));
    printf("load no file: %d\n", cuModuleLoad(&none, "/nowhere"));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    NEED(cuCtxSynchronize());
    s = work_and_fill(varying, x, ROUNDS);
    scene_show("x", 0, s, x);
}

static void freed_each_round(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    CUdeviceptr x = scene_buffer();
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p, to = x + 4 * round, last;
        int n = 1;
        NEED(cuMemAlloc(&p, 4096));
        scene_work(varying, s, x, round == ODD_ROUND ? 7 : 8, round);
        NEED(cuMemsetD16Async(p, (unsigned short)round, 1001, s));
        last = p + 2000;
        NEED(scene_launch(copy, s, 1, 32, 0, ARGS(&last, &to, &n)));
        scene_work(varying, s, x, 4, round);
        NEED(cuMemFree(p));
    }
    scene_show("x", 0, s, x);
}

/* A loop with memsets of every kind; in one round each is followed by some that the driver refuses. */
static void some_refused(void)
{
    enum { WIDTH = 40, PITCH = 128, ROWS = 3 };
    scene_open();
    CUmodule varying = scene_load("varying");
    CUdeviceptr x = scene_buffer(), y = scene_buffer();
    const CUdeviceptr end = y + WORDS * 4;
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned at = round % 8 * 4;
        scene_work(varying, s, x, 8, round);
        NEED(cuMemsetD8Async(y + at + 1, (unsigned char)round, 5 + round, s));
        NEED(cuMemsetD16Async(y + 200 + at, (unsigned short)(round * 257), 7, s));
        NEED(cuMemsetD32Async(y + 400 + at, round * 0x01020304, 9, s));
        NEED(cuMemsetD2D8Async(y + 600 + at + 3, PITCH, (unsigned char)round, WIDTH, ROWS, s));
        NEED(cuMemsetD2D16Async(y + 1200 + at, PITCH, (unsigned short)round, WIDTH / 2, ROWS, s));
        NEED(cuMemsetD2D32Async(y + 2400 + at, PITCH, round, WIDTH / 4, ROWS, s));
        if (round == ODD_ROUND) {
            printf("behind the end: %d", cuMemsetD8Async(end - 1, 1, 2, s));
            printf(" %d", cuMemsetD32Async(end - 8, 1, 3, s));
            printf(" %d", cuMemsetD2D8Async(end - PITCH, PITCH, 1, 1, 3, s));
            printf(", not aligned: %d", cuMemsetD16Async(y + 1, 1, 1, s));
            printf(" %d", cuMemsetD32Async(y + 2, 1, 1, s));
            printf(", too narrow: %d\n", cuMemsetD2D8Async(y, 8, 1, 9, 2, s));
        }
        scene_work(varying, s, x, 4, round);
        NEED(cuCtxSynchronize());
    }
    scene_show("x", 0, s, x);
    scene_show("y", 0, s, y);
}

static void plain_loop(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUdeviceptr x = scene_buffer();
    CUstream s = work_and_fill(varying, x, ROUNDS);
    scene_show("x", 0, s, x);
}

/* Three threads of which none waits for another: one synchronises; one launches a kernel that waits for a
 * later launch; one makes that launch, late. */
struct three {
    CUcontext ctx;
    CUfunction wait, set;
    CUdeviceptr first,
        second; /* what opens the first kernel, which is waited for, and the second */
};

static void *synchronises(void *data)
{
    const struct three *t = data;
    NEED(cuCtxSetCurrent(t->ctx));
    printf("synchronised: %d\n", cuCtxSynchronize());
    return NULL;
}

static void *launches_late(void *data)
{
    struct three *t = data;
    unsigned one = 1;
    NEED(cuCtxSetCurrent(t->ctx));
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    usleep(600000);
    NEED(scene_launch(t->set, s, 1, 1, 0, ARGS(&t->second, &one)));
    return NULL;
}

static void beside_a_synchronisation(void)
{
    pthread_t waits, late;
    CUdeviceptr x;
    struct three t;
    unsigned one = 1;
    scene_open();
    CUmodule varying = scene_load("varying"), flags = scene_load("flag");
    t.wait = scene_function(flags, "wait_flag");
    t.set = scene_function(flags, "set_flag");
    NEED(cuCtxGetCurrent(&t.ctx));
    x = scene_buffer();
    unsigned *word = scene_mapped(&t.first);
    t.second = t.first + 4;
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING), u = scene_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuMemsetD32Async(x, 1, 4, s));
    NEED(scene_launch(t.wait, s, 1, 1, 0, ARGS(&t.first, &one)));
    pthread_create(&waits, NULL, synchronises, &t);
    pthread_create(&late, NULL, launches_late, &t);
    usleep(200000); /* the synchronisation is under way: what comes now is none of its business */
    NEED(scene_launch(t.wait, u, 1, 1, 0, ARGS(&t.second, &one)));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    pthread_join(waits, NULL);
    pthread_join(late, NULL);
    printf("waiting kernel: %d\n", cuStreamSynchronize(u));
    s = work_and_fill(varying, x, ROUNDS);
    scene_show("x", 0, s, x);
}

enum first { MEMORY_FIRST, RECORD_FIRST, WAIT_FIRST };

/* A program that loads no module. Its memory comes before its first work, or after it. */
static void with_a_library(enum first first)
{
    CUdeviceptr x = 0, gate;
    CUlibrary varying, flags;
    CUkernel kernel;
    CUmodule module;
    CUfunction wait, f;
    CUevent event;
    unsigned one = 1;
    scene_open();
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING), u = scene_stream(CU_STREAM_NON_BLOCKING);
    unsigned *flag = scene_mapped(&gate);
    if (first == MEMORY_FIRST)
        x = scene_buffer();
    if (first == RECORD_FIRST)
        NEED(cuEventRecord(event, s));
    if (first == WAIT_FIRST)
        NEED(cuStreamWaitValue32(u, gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
    NEED(cuLibraryLoadData(&flags, ag_image_flag, NULL, NULL, 0, NULL, NULL, 0));
    NEED(cuLibraryGetKernel(&kernel, flags, "wait_flag"));
    NEED(cuKernelGetFunction(&wait, kernel));
    NEED(scene_launch(wait, s, 1, 1, 0, ARGS(&gate, &one)));
    /* While it waits for this thread: none of these calls does. */
    NEED(cuLibraryLoadData(&varying, ag_image_varying, NULL, NULL, 0, NULL, NULL, 0));
    NEED(cuLibraryGetKernel(&kernel, varying, "vary_mix"));
    NEED(cuKernelGetFunction(&f, kernel));
    NEED(cuFuncLoad(f));
    NEED(cuLibraryGetModule(&module, varying));
    NEED(cuModuleGetFunction(&f, module, "vary_xor"));
    if (first != MEMORY_FIRST)
        NEED(cuMemAlloc(&x, WORDS * 4));
    NEED(cuMemsetD32Async(x, 1, WORDS, s));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    NEED(cuCtxSynchronize());
    s = work_and_fill(module, x, ROUNDS);
    scene_show("x", 0, s, x);
}

static void memory_first(void)
{
    with_a_library(MEMORY_FIRST);
}

static void record_first(void)
{
    with_a_library(RECORD_FIRST);
}

static void wait_first(void)
{
    with_a_library(WAIT_FIRST);
}

const struct scene_case scene_fills[] = {
    {"memset-beside-a-synchronisation", beside_a_synchronisation},
    {"memset-memory-first", memory_first},
    {"memset-record-first", record_first},
    {"memset-wait-first", wait_first},
    {"memset-contexts", contexts_one_after_another},
    {"memset-beside-a-waiting-kernel", beside_a_waiting_kernel},
    {"memset-loop", plain_loop},
    {"memset-refused", some_refused},
    {"memset-and-free", freed_each_round},
    {NULL, NULL}};
