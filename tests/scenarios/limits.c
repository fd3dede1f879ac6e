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
static void body_of(const CUfunction f[3], CUstream s, CUdeviceptr x, uint32_t number)
{
    uint32_t state = number * 2654435761u + 7;
    for (unsigned i = 0; i < 16; i++) {
        unsigned v = i, block = 1 + mix(&state) % 64;
        NEED(scene_launch(f[mix(&state) % 3], s, 1, block, 0, ARGS(&x, &v)));
    }
    NEED(cuStreamSynchronize(s));
}

static void one_body(CUmodule varying, CUstream s, CUdeviceptr x, uint32_t number)
{
    const CUfunction f[3] = {some_function(varying, 0), some_function(varying, 1),
                             some_function(varying, 2)};
    body_of(f, s, x, number);
}

/* More different sequences than the memory for graphs holds, each often enough to be worth a graph. */
static void many_sequences(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    one_body(varying, s, x, 0);
    long before = scene_resident();
    for (unsigned number = 0; number < 2000; number++)
        for (int again = 0; again < 6; again++)
            one_body(varying, s, x, number);
    for (int again = 0; again < 20; again++) /* an old one once more, and for longer */
        one_body(varying, s, x, 3);
    fprintf(stderr, "measured: grown %ld KB\n", scene_resident() - before);
    scene_show("x", 0, s, x);
}

/* The same in four contexts: the memory for graphs is that of the process. */
static void many_contexts(void)
{
    scene_open();
    CUdevice device;
    NEED(cuDeviceGet(&device, 0));
    for (uint32_t c = 0; c < 4; c++) {
        CUcontext ctx;
        NEED(cuCtxCreate(&ctx, NULL, 0, device));
        CUmodule varying = scene_load("varying");
        CUfunction f[3] = {scene_function(varying, "vary_mix"), scene_function(varying, "vary_xor"),
                           scene_function(varying, "vary_rot")};
        CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
        CUdeviceptr x = scene_buffer();
        for (uint32_t number = 0; number < 200; number++)
            for (int again = 0; again < 6; again++)
                body_of(f, s, x, number);
        scene_show("x", c, s, x);
    }
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

/* The launch of thread `t` has no room: nothing was accepted for 200 ms. */
static void until_blocked(struct stuck *t)
{
    for (unsigned before = 0, still = 0; still < 20;) {
        usleep(10000);
        unsigned now = atomic_load(&t->launched);
        still = now && now == before ? still + 1 : 0;
        before = now;
    }
}

static struct stuck stuck_thread(unsigned **gate)
{
    struct stuck t = {.varying = scene_load("varying"),
                      .stream = scene_stream(CU_STREAM_NON_BLOCKING),
                      .x = scene_buffer(),
                      .wait = scene_function(scene_load("flag"), "wait_flag")};
    *gate = scene_mapped(&t.gate);
    NEED(cuCtxGetCurrent(&t.ctx));
    return t;
}

static void open_gate(struct stuck *t, unsigned *gate, pthread_t thread)
{
    atomic_store(&t->over, 1);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("parent: %d\n", cuStreamSynchronize(t->stream));
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
    unsigned *gate;
    pthread_t thread;
    scene_open();
    struct stuck t = stuck_thread(&gate);
    pthread_create(&thread, NULL, fill_the_queue, &t);
    until_blocked(&t);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child_of_a_stuck_parent(&t);
    int status = 0;
    waitpid(pid, &status, 0);
    printf("child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    open_gate(&t, gate, thread);
}

/* The thread that will open the gate asks about another stream first. */
static void ask_beside_a_blocked_launch(void)
{
    unsigned *gate;
    pthread_t thread;
    scene_open();
    CUstream other = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr y = scene_buffer();
    CUevent event, before;
    unsigned value = 0, copied = 0;
    float ms;
    NEED(cuEventCreate(&event, CU_EVENT_DEFAULT));
    NEED(cuEventCreate(&before, CU_EVENT_DEFAULT));
    NEED(cuEventRecord(before, other));
    struct stuck t = stuck_thread(&gate);
    CUfunction work = scene_function(t.varying, "vary_mix");
    pthread_create(&thread, NULL, fill_the_queue, &t);
    until_blocked(&t);
    printf("query %d, ", cuStreamQuery(other));
    printf("wait %d, ", cuStreamSynchronize(other));
    for (; value < 3; value++)
        printf("launch %d, ", scene_launch(work, other, 1, 32, 0, ARGS(&y, &value)));
    printf("record %d, ", cuEventRecord(event, other));
    printf("wait %d, ", cuEventSynchronize(event));
    printf("query %d, ", cuEventQuery(event));
    printf("elapsed %d, ", cuEventElapsedTime(&ms, before, event));
    printf("destroy %d, ", cuEventDestroy(before));
    printf("memset %d, ", cuMemsetD32Async(y, 77, 1, other));
    printf("copy %d, ", cuMemcpyDtoHAsync(&copied, y, sizeof copied, other));
    printf("wait %d: %u\n", cuStreamSynchronize(other), copied);
    open_gate(&t, gate, thread);
}

/* The program ends while a thread of it is inside a launch that blocks, and nobody opens the gate. */
static void exit_beside_a_blocked_launch(void)
{
    static struct stuck t; /* the thread outlives this function */
    unsigned *gate;
    pthread_t thread;
    scene_open();
    t = stuck_thread(&gate);
    pthread_create(&thread, NULL, fill_the_queue, &t);
    until_blocked(&t);
    printf("leaves\n");
    exit(0);
}

const struct scene_case scene_limits[] = {{"C5-never-repeating", never_repeating},
                                          {"C6-many-sequences", many_sequences},
                                          {"C5-short-lived", short_lived},
                                          {"C7-forked-child", forked_child},
                                          {"C6-many-contexts", many_contexts},
                                          {"C3-ask-beside-launch", ask_beside_a_blocked_launch},
                                          {"C7-fork-beside-launch", fork_beside_a_blocked_launch},
                                          {"C3-exit-beside-launch", exit_beside_a_blocked_launch},
                                          {NULL, NULL}};
