/* tests/scenarios/operation_scenes.c - a loop that somebody wants to run without graphs from some moment on.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    the loop is the same before and after; a set_flag launch stands between
 * Start at   scene_operations */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <fcntl.h>
#include <unistd.h>

enum { AFTERWARDS_MS = 2500 };

struct loop {
    CUmodule varying;
    CUstream s;
    CUdeviceptr x;
};

static void rounds(const struct loop *l, unsigned n)
{
    for (unsigned round = 0; round < n; round++) {
        scene_work(l->varying, l->s, l->x, 12, round);
        NEED(cuStreamSynchronize(l->s));
    }
}

/* The file whose name stands in SCENE_STOP_FILE comes into being while the program runs; where it is %p, ours. */
static void stopped_meanwhile(void)
{
    scene_open();
    struct loop l = {scene_load("varying"), scene_stream(CU_STREAM_NON_BLOCKING), scene_buffer()};
    const char *path = getenv("SCENE_STOP_FILE");
    unsigned one = 1;
    CUdeviceptr told;
    scene_mapped(&told);
    rounds(&l, ROUNDS);
    if (path)
        close(open(path, O_WRONLY | O_CREAT, 0600));
    for (unsigned ms = 0; ms < AFTERWARDS_MS; ms += 10) {
        rounds(&l, 1);
        usleep(10000);
    }
    NEED(scene_launch(scene_function(scene_load("flag"), "set_flag"), l.s, 1, 1, 0,
                      ARGS(&told, &one)));
    rounds(&l, ROUNDS);
    scene_show("x", 0, l.s, l.x);
    if (path)
        unlink(path);
}

/* Two kernels in turn, in runs long enough for a graph of either. */
static void two_kernels(void)
{
    scene_open();
    struct loop l = {scene_load("varying"), scene_stream(CU_STREAM_NON_BLOCKING), scene_buffer()};
    CUfunction mix = scene_function(l.varying, "vary_mix"),
               rot = scene_function(l.varying, "vary_rot");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 24; i++) {
            unsigned v = round + i;
            NEED(scene_launch(i < 12 ? mix : rot, l.s, 1, 64, 0, ARGS(&l.x, &v)));
        }
        NEED(cuStreamSynchronize(l.s));
    }
    scene_show("x", 0, l.s, l.x);
}

/* Many sequences, some of them often, for as long as SCENE_TIMES says: in steps of 100,000 launches. */
enum { SEQUENCES = 10000, OFTEN = 64, STEP = 100000 };

static unsigned sequence(const struct loop *l, CUfunction const f[3], unsigned number)
{
    const unsigned launches = 12 + number % 13;
    for (unsigned i = 0; i < launches; i++) {
        unsigned v = number + i, grid = 1 + (number >> i % 7 * 2) % 4;
        CUdeviceptr x = l->x;
        NEED(scene_launch(f[(number + i * i) % 3], l->s, grid, 64, 0, ARGS(&x, &v)));
    }
    NEED(cuStreamSynchronize(l->s));
    return launches;
}

static void soak(void)
{
    scene_open();
    alarm(0);
    const struct loop l = {scene_load("varying"), scene_stream(CU_STREAM_NON_BLOCKING),
                           scene_buffer()};
    CUfunction f[3];
    unsigned state = 1;
    unsigned long launches = 0;
    scene_functions(l.varying, f);
    for (unsigned step = 0; step < scene_times(); step++) {
        for (const unsigned long end = launches + STEP; launches < end;) {
            state = state * 1664525u + 1013904223u;
            const unsigned any = state >> 8, number = any % 2 ? any / 2 % OFTEN : any % SEQUENCES;
            for (int again = 0; again < 4; again++)
                launches += sequence(&l, f, number);
        }
        fprintf(stderr, "measured: launches %lu resident %ld KB\n", launches, scene_resident());
    }
    scene_show("x", 0, l.s, l.x);
}

const struct scene_case scene_operations[] = {{"operations-stopped-meanwhile", stopped_meanwhile},
                                              {"operations-two-kernels", two_kernels},
                                              {"C6-soak", soak},
                                              {NULL, NULL}};
