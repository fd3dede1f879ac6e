/* tests/scenarios/lifetime.c - O-24, O-25: objects that go away while their work is queued.
 * Called by  scene.c                     Calls  scene.h
 * Threads    O-25 makes its own
 * Promise    nothing waits before it destroys, as real programs do not
 * Start at   scene_lifetime */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    CUfunction copy;
    CUstream stream;
    CUmodule varying;
    CUdeviceptr work, out; /* out is mapped: readable after the free */
};

/* Work, then a kernel that reads `source` into the next word of the result. */
static void read_from(struct reader *r, CUdeviceptr source, unsigned round)
{
    CUdeviceptr to = r->out + 4 * round;
    int n = 1;
    scene_work(r->varying, r->stream, r->work, round == ODD_ROUND ? 7 : 8, round);
    NEED(scene_launch(r->copy, r->stream, 1, 32, 0, ARGS(&source, &to, &n)));
}

static void free_while_pending(void)
{
    scene_open();
    struct reader r = {.copy = scene_function(scene_load("basic"), "copy"),
                       .varying = scene_load("varying"),
                       .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                       .work = scene_buffer()};
    uint32_t *out = scene_mapped(&r.out);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p;
        unsigned value = round * 3 + 1;
        NEED(cuMemAlloc(&p, 4096));
        NEED(cuMemcpyHtoDAsync(p, &value, 4, r.stream)); /* pageable */
        value = 0;
        read_from(&r, p, round);
        NEED(cuMemFree(p));
    }
    scene_show("work", 0, r.stream, r.work);
    printf("read %08x\n", scene_digest(out, 4 * ROUNDS));
}

static void free_host_while_pending(void)
{
    scene_open();
    struct reader r = {.copy = scene_function(scene_load("basic"), "copy"),
                       .varying = scene_load("varying"),
                       .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                       .work = scene_buffer()};
    uint32_t *out = scene_mapped(&r.out);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr device;
        uint32_t *p;
        if (round % 2) {
            NEED(cuMemHostAlloc((void **)&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
        } else {
            p = aligned_alloc(4096, 4096);
            NEED(cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
        }
        NEED(cuMemHostGetDevicePointer(&device, p, 0));
        *p = round * 5 + 2;
        read_from(&r, device, round);
        if (round % 2) {
            NEED(cuMemFreeHost(p));
        } else {
            NEED(cuMemHostUnregister(p));
            free(p);
        }
    }
    scene_show("work", 0, r.stream, r.work);
    printf("read %08x\n", scene_digest(out, 4 * ROUNDS));
}

/* Frees in one thread's stream order; held work of any other stream of the context counts too. */
static void free_with_another_stream(void)
{
    scene_open();
    struct reader r = {.copy = scene_function(scene_load("basic"), "copy"),
                       .varying = scene_load("varying"),
                       .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                       .work = scene_buffer()};
    CUstream other = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr elsewhere = scene_buffer();
    uint32_t *out = scene_mapped(&r.out);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p;
        NEED(cuMemAlloc(&p, 4096));
        NEED(cuMemsetD32Async(p, round + 7, 1, r.stream));
        read_from(&r, p, round);
        scene_work(r.varying, other, elsewhere, 4, round);
        NEED(cuMemFree(p));
    }
    scene_show("work", 0, r.stream, r.work);
    scene_show("elsewhere", 0, other, elsewhere);
    printf("read %08x\n", scene_digest(out, 4 * ROUNDS));
}

/* O-25: one thread loads, launches, unloads; the other one keeps to its own module. */
struct loader {
    CUdeviceptr out;
    CUcontext ctx;
    _Atomic int *over; /* set when the loading thread is through */
};

static void *load_and_unload(void *data)
{
    struct loader *l = data;
    CUstream s;
    NEED(cuCtxSetCurrent(l->ctx));
    NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUmodule m = scene_load("reuse_a");
        CUfunction f = scene_function(m, "reuse_a");
        for (unsigned i = 0; i < (round == ODD_ROUND ? 11u : 12u); i++) {
            CUdeviceptr at = l->out + 4 * (12 * round + i);
            float value = (float)(round * 12 + i);
            NEED(scene_launch(f, s, 1, 1, 0, ARGS(&at, &value)));
        }
        if (round % 4)
            NEED(cuModuleUnload(m));
    }
    scene_show("loaded", 0, s, l->out);
    atomic_store(l->over, 1);
    return NULL;
}

static void *keep_launching(void *data)
{
    struct loader *l = data;
    CUstream s;
    NEED(cuCtxSetCurrent(l->ctx));
    NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUmodule varying = scene_load("varying");
    for (unsigned round = 0; round < 3 * ROUNDS; round++) {
        scene_work(varying, s, l->out, 12, round);
        if (round % 8 == 7)
            NEED(cuStreamSynchronize(s));
        while (round == 2 * ROUNDS && !atomic_load(l->over)) /* the rest alone: it can be learned */
            sched_yield();
    }
    NEED(cuStreamSynchronize(s));
    return NULL;
}

static void unload_while_pending(void)
{
    scene_open();
    _Atomic int over = 0;
    struct loader a = {.out = scene_buffer(), .over = &over},
                  b = {.out = scene_buffer(), .over = &over};
    NEED(cuCtxGetCurrent(&a.ctx));
    b.ctx = a.ctx;
    pthread_t loads, launches;
    pthread_create(&loads, NULL, load_and_unload, &a);
    pthread_create(&launches, NULL, keep_launching, &b);
    pthread_join(loads, NULL);
    pthread_join(launches, NULL);
    scene_show("kept", 0, NULL, b.out);
}

/* Launches of a function whose module has just been unloaded, in the place of the loop where they stood. */
static void launch_after_unload(void)
{
    scene_open();
    CUmodule varying = scene_load("varying"), m = scene_load("reuse_a");
    CUfunction f = scene_function(m, "reuse_a");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned launches = round == ODD_ROUND ? 6 : 8;
        if (round == ODD_ROUND + 4)
            NEED(cuModuleUnload(m)); /* behind work that is queued or held */
        for (unsigned i = 0; i < launches; i++) {
            CUdeviceptr at = out + 4 * (8 * (round % 8) + i);
            float value = (float)(round + i);
            CUresult ret = scene_launch(f, s, 1, 1, 0, ARGS(&at, &value));
            if (ret != CUDA_SUCCESS)
                printf("round %u launch %u: %d\n", round, i, ret);
        }
        scene_work(varying, s, x, 8, round);
        if (round % 4 == 1)
            printf("round %u: %d\n", round, cuStreamSynchronize(s));
    }
    scene_show("x", 0, s, x);
    scene_show("out", 0, s, out);
}

const struct scene_case scene_lifetime[] = {{"O-24-free", free_while_pending},
                                            {"O-24-free-host", free_host_while_pending},
                                            {"O-24-free-two-streams", free_with_another_stream},
                                            {"O-25-unload", unload_while_pending},
                                            {"O-25-launch-after", launch_after_unload},
                                            {NULL, NULL}};
