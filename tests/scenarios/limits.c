/* tests/scenarios/limits.c - C5, C6, C7: where graphs do not pay, where memory is short, where a process forks.
 * Called by  scene.c                     Calls  scene.h
 * Threads    the last fork makes its own
 * Promise    see scene.h
 * Start at   scene_limits */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t mix(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static CUfunction some_function(CUmodule varying, uint32_t pick)
{
    static const char *const names[] = {"vary_mix", "vary_xor", "vary_rot"};
    static CUfunction f[3];
    if (!f[pick % 3])
        f[pick % 3] = scene_function(varying, names[pick % 3]);
    return f[pick % 3];
}

/* Launches in an order that never comes back, shapes included. */
static void never_repeating(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    uint32_t state = 1;
    for (unsigned i = 0; i < 6000; i++) {
        unsigned v = mix(&state), grid = 1 + mix(&state) % 8, block = 1 + mix(&state) % 64;
        NEED(scene_launch(some_function(varying, mix(&state)), s, grid, block, 0, ARGS(&x, &v)));
        if (mix(&state) % 97 == 0)
            NEED(cuStreamSynchronize(s));
    }
    scene_show("x", 0, s, x);
}

/* One body of the many: fixed for its number, unlike all others. */
static void one_body(CUmodule varying, CUstream s, CUdeviceptr x, uint32_t number)
{
    uint32_t state = number * 2654435761u + 7;
    for (unsigned i = 0; i < 16; i++) {
        unsigned v = i, block = 1 + mix(&state) % 64;
        NEED(scene_launch(some_function(varying, mix(&state)), s, 1, block, 0, ARGS(&x, &v)));
    }
    NEED(cuStreamSynchronize(s));
}

/* More different sequences than the memory for graphs holds, each often enough to be worth a graph. */
static void many_sequences(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    struct rusage before, after;
    one_body(varying, s, x, 0);
    getrusage(RUSAGE_SELF, &before);
    for (unsigned number = 0; number < 2000; number++)
        for (int again = 0; again < 6; again++)
            one_body(varying, s, x, number);
    for (int again = 0; again < 20; again++) /* an old one once more, and for longer */
        one_body(varying, s, x, 3);
    getrusage(RUSAGE_SELF, &after);
    fprintf(stderr, "grown %ld KB\n", after.ru_maxrss - before.ru_maxrss);
    scene_show("x", 0, s, x);
}

/* Sequences that come back just often enough to be worth a graph, and then never again. */
static void short_lived(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned number = 0; number < 4000; number++)
        for (int again = 0; again < 3; again++)
            one_body(varying, s, x, number);
    scene_show("x", 0, s, x);
}

/* The parent has learned and goes on; the child gets what a forked child gets from CUDA, at once. */
static void forked_child(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        scene_work(varying, s, x, 12, round);
        if (round == ODD_ROUND) {
            fflush(stdout);
            pid_t pid = fork(); /* with launches held or queued */
            if (pid == 0) {
                CUcontext ctx = NULL;
                int version = 0;
                printf("child: init %d, ", cuInit(0));
                printf("version %d, ", cuDriverGetVersion(&version));
                printf("current %d\n", cuCtxGetCurrent(&ctx));
                fflush(stdout);
                _exit(7);
            }
            int status = 0;
            waitpid(pid, &status, 0);
            printf("child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        }
        if (round % 4 == 0)
            NEED(cuStreamSynchronize(s));
    }
    scene_show("x", 0, s, x);
}

struct stuck {
    CUcontext ctx;
    CUmodule varying;
    CUstream stream;
    CUdeviceptr x, gate;
    CUfunction wait;
    atomic_uint launched;
    atomic_int over;
};

/* Launches behind a kernel that waits, until the driver has no room for more and the call blocks. */
static void *fill_the_queue(void *data)
{
    struct stuck *t = data;
    unsigned one = 1;
    NEED(cuCtxSetCurrent(t->ctx));
    for (unsigned round = 0; round < ROUNDS; round++) /* learned first */
        scene_work(t->varying, t->stream, t->x, 12, round);
    NEED(cuStreamSynchronize(t->stream));
    NEED(scene_launch(t->wait, t->stream, 1, 1, 0, ARGS(&t->gate, &one)));
    for (unsigned i = 0; !atomic_load(&t->over); i++) {
        scene_work(t->varying, t->stream, t->x, 1, i % 12);
        atomic_fetch_add(&t->launched, 1);
    }
    return NULL;
}

static void child_of_a_stuck_parent(struct stuck *t)
{
    alarm(10); /* the parent's does not come along */
    unsigned v = 1;
    CUfunction f = t->wait;
    CUdeviceptr x = t->x;
    printf("child: launch %d, ", scene_launch(f, t->stream, 1, 1, 0, ARGS(&x, &v)));
    printf("wait %d, query %d, ", cuStreamSynchronize(t->stream), cuStreamQuery(t->stream));
    printf("free %d, unload %d\n", cuMemFree(x), cuModuleUnload(t->varying));
    fflush(stdout);
    _exit(7);
}

/* A thread of the parent is inside a launch that blocks, with whatever the way to there locks. */
static void fork_beside_a_blocked_launch(void)
{
    scene_open();
    CUmodule flag = scene_load("flag");
    struct stuck t = {.varying = scene_load("varying"),
                      .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                      .x = scene_buffer(),
                      .wait = scene_function(flag, "wait_flag")};
    unsigned *gate = scene_mapped(&t.gate);
    pthread_t thread;
    NEED(cuCtxGetCurrent(&t.ctx));
    pthread_create(&thread, NULL, fill_the_queue, &t);
    for (unsigned before = 0, still = 0; still < 20;) { /* blocked: no launch in 200 ms */
        usleep(10000);
        unsigned now = atomic_load(&t.launched);
        still = now && now == before ? still + 1 : 0;
        before = now;
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child_of_a_stuck_parent(&t);
    int status = 0;
    waitpid(pid, &status, 0);
    printf("child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    atomic_store(&t.over, 1);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("parent: %d\n", cuStreamSynchronize(t.stream));
}

const struct scene_case scene_limits[] = {{"C5-never-repeating", never_repeating},
                                          {"C6-many-sequences", many_sequences},
                                          {"C5-short-lived", short_lived},
                                          {"C7-forked-child", forked_child},
                                          {"C7-fork-beside-launch", fork_beside_a_blocked_launch},
                                          {NULL, NULL}};
