/* tests/scenarios/memory_scenes.c - O-22, O-23, O-31, O-40: memory in stream order, managed memory, many shapes.
 * Called by  scene.c                     Calls  scene.h
 * Threads    O-23 makes one
 * Promise    nothing waits before it frees, as real programs do not
 * Start at   scene_memory */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL = 4096 };

static void copy_word(CUfunction copy, CUstream s, CUdeviceptr from, CUdeviceptr to)
{
    int n = 1;
    NEED(scene_launch(copy, s, 1, 32, 0, ARGS(&from, &to, &n)));
}

/* One life of an allocation: set, worked on, one word kept. */
static void use(CUmodule varying, CUfunction copy, CUstream s, CUdeviceptr p, CUdeviceptr to,
                unsigned round)
{
    NEED(cuMemsetD32Async(p, round * 7 + 1, SMALL / 4, s));
    scene_work(varying, s, p, round == ODD_ROUND ? 7 : 8, round);
    copy_word(copy, s, p, to);
}

/* O-22: freed in its stream, in another stream behind an event, and in the legacy stream. */
static void freed_in_order(void)
{
    unsigned same = 0;
    CUevent e;
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    CUstream s1 = scene_stream(CU_STREAM_DEFAULT), s2 = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr out = scene_buffer();
    NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p, q, r;
        NEED(cuMemAllocAsync(&p, SMALL, s1));
        use(varying, copy, s1, p, out + 12 * round, round);
        NEED(cuMemFreeAsync(p, s1));
        NEED(cuMemAllocAsync(&q, SMALL, s1));
        same += p == q;
        use(varying, copy, s1, q, out + 12 * round + 4, round + 1000);
        NEED(cuEventRecord(e, s1));
        NEED(cuStreamWaitEvent(s2, e, 0));
        NEED(cuMemFreeAsync(q, s2));
        NEED(cuMemAllocAsync(&r, 2 * SMALL, s1));
        use(varying, copy, s1, r, out + 12 * round + 8, round + 2000);
        NEED(cuMemFreeAsync(r, NULL)); /* the legacy stream waits for s1, which blocks */
        if (round % 4 == 3)
            NEED(cuCtxSynchronize()); /* before s1 may get back what s2 freed */
    }
    printf("given back at once: %u\n", same);
    scene_show("out", 0, s1, out);
}

static void show_pool(CUdevice device, unsigned round)
{
    static const CUmemPool_attribute of_pool[] = {
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH};
    CUmemoryPool pool;
    NEED(cuDeviceGetDefaultMemPool(&pool, device));
    printf("round %u:", round);
    for (int i = 0; i < 4; i++) {
        cuuint64_t value = 0;
        NEED(cuMemPoolGetAttribute(pool, of_pool[i], &value));
        printf(" %llu", (unsigned long long)value);
    }
    for (int i = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT; i <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
         i++) {
        cuuint64_t value = 0;
        CUresult ret = cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)i, &value);
        printf(" %d:%llu", ret, (unsigned long long)value);
    }
    printf("\n");
}

struct kept {
    CUcontext ctx;
    CUdeviceptr p;
};

static void *free_elsewhere(void *data)
{
    struct kept *k = data;
    NEED(cuCtxSetCurrent(k->ctx));
    printf("freed by another thread: %d\n", cuMemFree(k->p));
    return NULL;
}

/* O-23: allocated, worked on, freed, very often; one allocation stays and goes by a plain free. */
static void no_growth(void)
{
    struct kept kept;
    pthread_t thread;
    CUdevice device;
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr out = scene_buffer();
    NEED(cuCtxGetDevice(&device));
    NEED(cuCtxGetCurrent(&kept.ctx));
    for (unsigned round = 0; round < 16 * ROUNDS; round++) {
        CUdeviceptr p;
        NEED(cuMemAllocAsync(&p, SMALL, s));
        use(varying, copy, s, p, out + 4 * (round % WORDS), round);
        if (round == ODD_ROUND)
            kept.p = p;
        else
            NEED(cuMemFreeAsync(p, s));
        if (round % (2 * ROUNDS) == 2 * ROUNDS - 1) {
            NEED(cuStreamSynchronize(s));
            show_pool(device, round);
        }
        if (round == 8 * ROUNDS) {
            pthread_create(&thread, NULL, free_elsewhere, &kept);
            pthread_join(thread, NULL);
        }
    }
    scene_show("out", 0, s, out);
}

/* O-31: the host works on managed memory after each synchronisation; the marker call ends that time. */
static void idle_until_the_next_call(void)
{
    CUdeviceptr managed;
    int version;
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuMemAllocManaged(&managed, SMALL, CU_MEM_ATTACH_GLOBAL));
    volatile uint32_t *m = (void *)managed;
    const CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    for (unsigned i = 0; i < WORDS; i++)
        m[i] = i;
    for (unsigned round = 0; round < ROUNDS; round++) {
        scene_work(varying, s, managed, 8, round);
        NEED(cuMemPrefetchAsync(managed, SMALL, there, 0, s));
        scene_work(varying, s, managed, round == ODD_ROUND ? 7 : 8, round);
        if (round % 2)
            NEED(cuStreamSynchronize(s));
        else
            NEED(cuCtxSynchronize());
        for (unsigned i = 0; i < 64; i++)
            m[i] = m[i] + 1;
        usleep(2000); /* longer than the shim holds anything in this scene */
        for (unsigned i = 0; i < 64; i++)
            m[i] = m[i] * 3;
        NEED(cuDriverGetVersion(&version));
    }
    scene_show("managed", 0, s, managed);
}

/* O-40: many bodies in turns, each long enough and often enough for a graph; then one of them for a long time. */
enum { SHAPES = 60, SHAPE_LAUNCHES = 96, TURNS = 8 };

static void one_shape(const CUfunction f[3], CUstream s, CUdeviceptr x, uint32_t shape)
{
    uint32_t state = shape * 2654435761u + 7;
    for (unsigned i = 0; i < SHAPE_LAUNCHES; i++) {
        unsigned v = i, block;
        state = state * 1664525u + 1013904223u;
        block = 1 + (state >> 8) % 64;
        NEED(scene_launch(f[(state >> 20) % 3], s, 1, block, 0, ARGS(&x, &v)));
    }
    NEED(cuStreamSynchronize(s));
}

static void many_shapes(void)
{
    long half_way = 0;
    scene_open();
    CUmodule varying = scene_load("varying");
    const CUfunction f[3] = {scene_function(varying, "vary_mix"),
                             scene_function(varying, "vary_xor"),
                             scene_function(varying, "vary_rot")};
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (uint32_t shape = 0; shape < SHAPES; shape++)
            one_shape(f, s, x, shape);
        if (turn == TURNS / 2)
            half_way = scene_resident();
        scene_show("x", turn, s, x);
    }
    for (unsigned again = 0; again < 4 * ROUNDS; again++)
        one_shape(f, s, x, again == 4 * ROUNDS - 8 ? 9 : 3);
    fprintf(stderr, "measured: grown late %ld KB\n", scene_resident() - half_way);
    scene_show("x", TURNS, s, x);
}

const struct scene_case scene_memory[] = {{"O-22-freed-in-order", freed_in_order},
                                          {"O-23-no-growth", no_growth},
                                          {"O-31-idle", idle_until_the_next_call},
                                          {"O-40-many-shapes", many_shapes},
                                          {NULL, NULL}};
