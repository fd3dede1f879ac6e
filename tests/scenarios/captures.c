/* tests/scenarios/captures.c - O-07: the program captures a stream itself, while its other work is learned and held.
 * Called by  scene.c                     Calls  scene.h
 * Threads    the second case makes its own
 * Promise    prints codes, node counts and data; the threads meet at fixed places
 * Start at   scene_captures */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>

enum { CAPTURED = 64 };

/* Begins with work of the same stream still held or queued: that is not part of the capture. */
static CUgraph capture(CUmodule varying, CUstream s, CUdeviceptr x, unsigned value,
                       pthread_barrier_t *meet)
{
    CUgraph graph = NULL;
    size_t nodes = 0;
    printf("begin %d ", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (meet)
        pthread_barrier_wait(meet);
    scene_work(varying, s, x, CAPTURED, value);
    for (int i = 0; i < 2 && meet; i++) /* between the two the other thread may spoil it */
        pthread_barrier_wait(meet);
    printf("end %d", cuStreamEndCapture(s, &graph));
    if (graph)
        NEED(cuGraphGetNodes(graph, NULL, &nodes));
    printf(" nodes %zu\n", nodes);
    return graph;
}

static void launch_graph(CUgraph graph, CUstream s)
{
    CUgraphExec exec;
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuGraphLaunch(exec, s));
    NEED(cuGraphLaunch(exec, s));
    NEED(cuGraphExecDestroy(exec));
    NEED(cuGraphDestroy(graph));
}

/* One stream: learned, captured, learned again. The loop goes on as before after each capture. */
static void capture_of_the_busy_stream(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        scene_work(varying, s, x, round == ODD_ROUND ? 11 : 12, round);
        if (round % ROUNDS >= ROUNDS - 3)
            launch_graph(capture(varying, s, x, round, NULL), s);
        else if (round % 4 == 0)
            NEED(cuStreamSynchronize(s));
    }
    scene_show("x", 0, s, x);
}

struct other {
    CUmodule varying;
    CUcontext ctx;
    CUdeviceptr x;
    pthread_barrier_t meet;
};

/* Legal during a capture: launches into another stream. Once, something that is not. */
static void *launches_meanwhile(void *data)
{
    struct other *o = data;
    CUstream s;
    NEED(cuCtxSetCurrent(o->ctx));
    NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < ROUNDS; round++)
        scene_work(o->varying, s, o->x, 12, round);
    pthread_barrier_wait(&o->meet);
    for (int turn = 0; turn < 3; turn++) {
        pthread_barrier_wait(&o->meet); /* the other thread has begun its capture */
        for (unsigned round = 0; round < ROUNDS; round++)
            scene_work(o->varying, s, o->x, round == ODD_ROUND ? 11 : 12, round);
        pthread_barrier_wait(&o->meet); /* it has launched */
        int code = turn == 2 ? (int)cuCtxSynchronize() : -1;
        pthread_barrier_wait(&o->meet); /* it ends its capture */
        for (unsigned round = 0; round < ROUNDS; round++)
            scene_work(o->varying, s, o->x, 12, round);
        pthread_barrier_wait(&o->meet); /* it has printed what came of it */
        if (turn == 2)
            printf("forbidden call during the capture: %d\n", code);
    }
    scene_show("the other's", 0, s, o->x);
    return NULL;
}

static void capture_beside_launches(void)
{
    scene_open();
    struct other o = {.varying = scene_load("varying"), .x = scene_buffer()};
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    pthread_t thread;
    NEED(cuCtxGetCurrent(&o.ctx));
    pthread_barrier_init(&o.meet, NULL, 2);
    pthread_create(&thread, NULL, launches_meanwhile, &o);
    pthread_barrier_wait(&o.meet);
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned round = 0; round < ROUNDS; round++)
            scene_work(o.varying, s, x, 12, round);
        CUgraph graph = capture(o.varying, s, x, turn, &o.meet);
        pthread_barrier_wait(&o.meet);
        if (graph)
            launch_graph(graph, s);
    }
    pthread_join(thread, NULL);
    scene_show("x", 0, s, x);
}

const struct scene_case scene_captures[] = {{"O-07-busy-stream", capture_of_the_busy_stream},
                                            {"O-07-beside", capture_beside_launches},
                                            {NULL, NULL}};
