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

const struct scene_case scene_operations[] = {{"operations-stopped-meanwhile", stopped_meanwhile},
                                              {"operations-two-kernels", two_kernels},
                                              {NULL, NULL}};
