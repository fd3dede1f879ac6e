/* tests/scenarios/fill_scenes.c - memsets, for which the shim loads a kernel of its own.
 * Called by  scene.c                     Calls  scene.h
 * Threads    none
 * Promise    none of the calls that must not wait for the device does
 * Start at   scene_fills */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

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

const struct scene_case scene_fills[] = {
    {"memset-contexts", contexts_one_after_another},
    {"memset-beside-a-waiting-kernel", beside_a_waiting_kernel},
    {"memset-loop", plain_loop},
    {"memset-refused", some_refused},
    {"memset-and-free", freed_each_round},
    {NULL, NULL}};
