/* tests/scenarios/replay_cases.c - O-01, O-02, O-47, O-48: a replay must follow the call in every field.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    each pattern runs unlearned, learned, and with one odd round
 * Start at   scene_replay */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* O-01: the page that holds the arguments is locked as soon as the call has returned. */
struct page {
    CUdeviceptr dst;
    int value;
    void *params[2];
    size_t size;
    void *extra[5];
};

static void launch_from_page(CUfunction store, CUstream s, CUdeviceptr dst, int value, int packed)
{
    struct page *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    p->dst = dst;
    p->value = value;
    p->params[0] = &p->dst;
    p->params[1] = &p->value;
    p->size = 12;
    void *extra[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p->dst, CU_LAUNCH_PARAM_BUFFER_SIZE,
                      &p->size, CU_LAUNCH_PARAM_END};
    memcpy(p->extra, extra, sizeof extra);
    NEED(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, s, packed ? NULL : p->params,
                        packed ? p->extra : NULL));
    mprotect(p, 4096, PROT_NONE);
}

static void arguments_die(void)
{
    scene_open();
    CUfunction store = scene_function(scene_load("basic"), "store");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    for (int packed = 0; packed < 2; packed++) {
        CUdeviceptr out = scene_buffer();
        for (int round = 0; round < ROUNDS; round++) {
            int launches = round == ODD_ROUND ? 13 : 16;
            for (int i = 0; i < launches; i++)
                launch_from_page(store, s, out + 4u * (unsigned)(16 * round + i), round * 100 + i,
                                 packed);
            if (round % 2)
                NEED(cuStreamSynchronize(s));
        }
        scene_show("stored", (unsigned)packed, s, out);
    }
}

static void every_field(void)
{
    static const unsigned shared[] = {0, 4096, 40000};
    scene_open();
    CUmodule varying = scene_load("varying"), smem = scene_load("smem");
    CUfunction a = scene_function(varying, "vary_mix"), b = scene_function(varying, "vary_xor");
    CUfunction size = scene_function(smem, "uses_dynamic_smem");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), y = scene_buffer(), z = scene_buffer(), sizes = scene_buffer();
    for (unsigned i = 0; i < 3 * ROUNDS; i++) {
        CUdeviceptr xa = x + 128 * (i % 4), yb = y + 64 * (i % 3), out = sizes + 8 * i;
        unsigned va = i * 3, vb = i * 5 + 1;
        NEED(scene_launch(a, s, 1, 32, 0, ARGS(&xa, &va)));
        NEED(scene_launch(b, s, 1, 32, 0, ARGS(&yb, &vb)));
        if (i == 3 * ODD_ROUND)
            NEED(scene_launch(b, s, 1, 32, 0, ARGS(&xa, &vb)));
        NEED(scene_launch(a, s, 1 + i % 3, 32, 0, ARGS(&y, &va)));
        NEED(scene_launch(size, s, 1, 128, shared[i % 3], ARGS(&out)));
        NEED(scene_launch(b, s, 1 + i % 3, 64, 0, ARGS(&x, &va)));
        NEED(scene_launch(a, s, 2, 64, 0, ARGS(&x, &vb)));
        NEED(cuMemcpyDtoDAsync(z + (i % 64) * 64, x, 64, s));
        NEED(cuMemsetD32Async(x + 4 * (i % WORDS), i, 1, s));
    }
    scene_show("x", 0, s, x);
    scene_show("y", 0, s, y);
    scene_show("z", 0, s, z);
    scene_show("sizes", 0, s, sizes);
}

static void set_limit(CUfunction f, int kilobytes)
{
    NEED(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kilobytes * 1024));
}

static void attribute_changes(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction f = scene_function(scene_load("smem"), "uses_dynamic_smem");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr big = out + 16 * round, small = big + 8;
        scene_work(varying, s, x, 6, round);
        set_limit(f, round == ODD_ROUND ? 64 : 100);
        NEED(scene_launch(f, s, 1, 32, (round == ODD_ROUND ? 60 : 96) * 1024, ARGS(&big)));
        scene_work(varying, s, x, 3, round);
        set_limit(f, 48);
        NEED(scene_launch(f, s, 1, 32, 32 * 1024, ARGS(&small)));
    }
    scene_show("work", 0, s, x);
    scene_show("sizes", 0, s, out);
}

/* An attribute that no check refuses and no result shows: only the driver's log tells. */
static void carveout_changes(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction f = scene_function(scene_load("smem"), "uses_dynamic_smem");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            CUdeviceptr at = out + 16 * round + 8 * (unsigned)i;
            NEED(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                    round == ODD_ROUND ? 75 : 25 + 25 * i));
            NEED(scene_launch(f, s, 1, 32, 1024, ARGS(&at)));
            scene_work(varying, s, x, 4, round);
        }
        NEED(cuStreamSynchronize(s));
    }
    scene_show("work", 0, s, x);
    scene_show("sizes", 0, s, out);
}

/* The value that is in force already, set again before each launch: no reason to give up a graph. */
static void attribute_repeated(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction f = scene_function(scene_load("smem"), "uses_dynamic_smem");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 4; i++) {
            CUdeviceptr at = out + 16 * round + 4 * i;
            scene_work(varying, s, x, 3, round);
            set_limit(f, 64);
            NEED(scene_launch(f, s, 1, 32, 60 * 1024, ARGS(&at)));
        }
        NEED(cuStreamSynchronize(s));
    }
    scene_show("work", 0, s, x);
    scene_show("sizes", 0, s, out);
}

struct pack64 {
    int v[16];
};

static void launch_b(CUfunction f, CUstream s, CUdeviceptr out, CUdeviceptr in, int add)
{
    struct pack64 p;
    for (int i = 0; i < 16; i++)
        p.v[i] = add + i;
    NEED(scene_launch(f, s, 1, 1, 0, ARGS(&out, &in, &add, &p)));
}

/* O-48: the handle of an unloaded function comes back with other parameters; several times. */
static void layout_changes(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), in = scene_buffer(), out = scene_buffer();
    CUfunction last = NULL;
    int same = 0;
    for (int life = 0; life < 6; life++) {
        CUmodule m = scene_load(life % 2 ? "reuse_b" : "reuse_a");
        CUfunction f = scene_function(m, life % 2 ? "reuse_b" : "reuse_a");
        same += f == last;
        last = f;
        for (int round = 0; round < ROUNDS / 2; round++) {
            scene_work(varying, s, x, 5, (unsigned)round);
            CUdeviceptr at = out + 4u * (unsigned)(life * ROUNDS / 2 + round);
            float value = (float)round;
            if (life % 2)
                launch_b(f, s, at, in + 4u * (unsigned)round, round);
            else
                NEED(scene_launch(f, s, 1, 1, 0, ARGS(&at, &value)));
            if (round % 4 == 3)
                NEED(cuStreamSynchronize(s));
        }
        NEED(cuModuleUnload(m)); /* with the last rounds still queued */
    }
    printf("handles that came back: %d\n", same);
    scene_show("work", 0, s, x);
    scene_show("out", 0, s, out);
}

/* One of two modules goes away in the middle of a loop that used both. */
static void unload_in_loop(void)
{
    scene_open();
    CUmodule varying = scene_load("varying"), a = scene_load("reuse_a");
    CUfunction f = scene_function(a, "reuse_a");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer(), in = scene_buffer();
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr at = out + 4u * (unsigned)round;
        float value = (float)round;
        scene_work(varying, s, x, 4, (unsigned)round);
        if (round == ODD_ROUND) {
            NEED(cuModuleUnload(a));
            a = scene_load("reuse_b");
            f = scene_function(a, "reuse_b");
        }
        if (round < ODD_ROUND)
            NEED(scene_launch(f, s, 1, 1, 0, ARGS(&at, &value)));
        else
            launch_b(f, s, at, in, round);
        scene_work(varying, s, x, 4, (unsigned)round);
        NEED(cuStreamSynchronize(s));
    }
    scene_show("work", 0, s, x);
    scene_show("out", 0, s, out);
}

const struct scene_case scene_replay[] = {
    {"O-01-arguments-die", arguments_die},           {"O-02-every-field", every_field},
    {"O-47-attribute-changes", attribute_changes},   {"O-47-carveout-changes", carveout_changes},
    {"O-47-attribute-repeated", attribute_repeated}, {"O-48-layout-changes", layout_changes},
    {"O-48-unload-in-loop", unload_in_loop},         {NULL, NULL}};
