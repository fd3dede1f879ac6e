/* tests/scenarios/process_scenes.c - O-26, O-37, O-38: how processes begin and end, and contexts in between.
 * Called by  scene.c                     Calls  scene.h
 * Threads    O-37 makes some
 * Promise    where the end of a process loses work, nothing of that work is printed
 * Start at   scene_process */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct {
    CUmodule varying;
    CUfunction vary[3];
    CUstream stream;
    CUdeviceptr x;
} made;

/* Learns a loop and leaves one round of it unsynchronised. */
static void learn(unsigned sync_every)
{
    made.varying = scene_load("varying");
    scene_functions(made.varying, made.vary);
    made.stream = scene_stream(CU_STREAM_NON_BLOCKING);
    made.x = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        scene_work_with(made.vary, made.stream, made.x, round == ODD_ROUND ? 11 : 12, round);
        if (round % sync_every == 0)
            NEED(cuStreamSynchronize(made.stream));
    }
    NEED(cuStreamSynchronize(made.stream));
    scene_work_with(made.vary, made.stream, made.x, 12, 1);
}

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void wait_for(pid_t pid)
{
    int status = 0;
    fflush(stdout);
    waitpid(pid, &status, 0);
    printf("child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

/* O-26 a: this process makes no CUDA call; its child makes them all. */
static void fork_before_cuda(void)
{
    printf("threads before: %d\n", threads_now());
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        scene_open();
        learn(2);
        scene_show("child's x", 0, made.stream, made.x);
        exit(7);
    }
    wait_for(pid);
    printf("threads after: %d\n", threads_now());
}

/* O-26 c: with work held or queued another CUDA program is started; its log would mix with ours. */
static void exec_beside_held_work(void)
{
    char *argv[] = {(char *)"scene", (char *)"O-04-download-once", NULL};
    scene_open();
    learn(2);
    unsetenv("SIMCUDA_LOG");
    unsetenv("AUTOGRAPH_STATS");
    fflush(stdout);
    for (unsigned turn = 0; turn < 4; turn++) {
        pid_t pid = 0;
        scene_work_with(made.vary, made.stream, made.x, 12, turn);
        if (turn % 2)
            posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
        else if ((pid = fork()) == 0) {
            execve("/proc/self/exe", argv, environ);
            _exit(127);
        }
        scene_work_with(made.vary, made.stream, made.x, 12, turn);
        wait_for(pid);
        scene_show("x", turn, made.stream, made.x);
    }
}

/* O-37 a: what a static object's destructor does, after main, with work of that stream still queued or held. */
static void after_main(void)
{
    uint32_t word = 0;
    printf("wait %d, ", cuStreamSynchronize(made.stream));
    printf("copy %d, ", cuMemcpyDtoH(&word, made.x, 4));
    printf("%08x, ", word);
    scene_work_with(made.vary, made.stream, made.x, 12, 2);
    printf("destroy %d, ", cuStreamDestroy(made.stream));
    printf("free %d, ", cuMemFree(made.x));
    printf("unload %d\n", cuModuleUnload(made.varying));
}

static void destructors(void)
{
    scene_open(); /* first: what the driver registers for the end comes after ours */
    atexit(after_main);
    learn(2);
}

/* O-37 b: nothing is called after the launch; what it writes is memory that the parent sees. */
static void killed_before_a_sync(void)
{
    unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr device;
        unsigned value = 4711;
        alarm(60);
        scene_open();
        NEED(cuMemHostRegister(shared, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
        NEED(cuMemHostGetDevicePointer(&device, shared, 0));
        CUfunction tell = scene_function(scene_load("flag"), "set_flag");
        learn(2);
        for (unsigned round = 0; round < ROUNDS; round++) {
            unsigned v = round == ROUNDS - 1 ? value : round;
            scene_work_with(made.vary, made.stream, made.x, 12, round);
            NEED(scene_launch(tell, made.stream, 1, 1, 0, ARGS(&device, &v)));
            if (round % 4 == 0)
                NEED(cuStreamSynchronize(made.stream));
        }
        usleep(500000);
        _exit(0);
    }
    wait_for(pid);
    printf("found %u\n", *shared);
}

static void ends_without_sync(void)
{
    scene_open();
    learn(2);
}

static void quick(void)
{
    printf("on the way out\n");
}

static void ends_quickly(void)
{
    scene_open();
    at_quick_exit(quick);
    learn(2);
    quick_exit(5);
}

static void aborts(void)
{
    scene_open();
    learn(2);
    abort();
}

static atomic_uint launched;

static void *exits(void *unused)
{
    while (atomic_load(&launched) < 4000)
        usleep(100);
    exit(6);
    return unused;
}

/* The process ends under the feet of a thread that launches; what its calls answer then is its own affair. */
static void ends_elsewhere(void)
{
    pthread_t thread;
    scene_open();
    learn(2);
    pthread_create(&thread, NULL, exits, NULL);
    for (unsigned i = 0;; i++) {
        unsigned v = i % 12;
        (void)scene_launch(made.vary[i % 3], made.stream, 1, 64, 0, ARGS(&made.x, &v));
        atomic_fetch_add(&launched, 1);
    }
}

static void *launches_and_goes(void *ctx)
{
    NEED(cuCtxSetCurrent(ctx));
    for (unsigned round = 0; round < ROUNDS; round++)
        scene_work_with(made.vary, made.stream, made.x, 12, round);
    pthread_exit(NULL);
}

static void thread_goes(void)
{
    CUcontext ctx;
    scene_open();
    NEED(cuCtxGetCurrent(&ctx));
    learn(2);
    for (unsigned turn = 0; turn < 8; turn++) {
        pthread_t thread;
        pthread_create(&thread, NULL, launches_and_goes, ctx);
        pthread_join(thread, NULL);
        if (turn % 2)
            scene_work_with(made.vary, made.stream, made.x, 5, turn);
        scene_show("x", turn, made.stream, made.x);
    }
}

/* O-38: everything is made again after each reset, and gets the handles that it had. */
static void lives(int primary)
{
    CUdevice device;
    CUcontext last = NULL;
    CUfunction last_function = NULL;
    int same = 0, same_function = 0;
    NEED(cuDeviceGet(&device, 0));
    for (unsigned life = 0; life < 4; life++) {
        CUcontext ctx;
        if (primary) {
            NEED(cuDevicePrimaryCtxRetain(&ctx, device));
            NEED(cuCtxSetCurrent(ctx));
        } else {
            NEED(cuCtxCreate(&ctx, NULL, 0, device));
        }
        learn(2); /* its last round is held or queued as the context goes */
        if (life % 2)
            scene_show(primary ? "primary" : "created", life, made.stream, made.x);
        same += ctx == last;
        same_function += made.vary[0] == last_function;
        last = ctx;
        last_function = made.vary[0];
        printf("goes: %d\n", primary ? cuDevicePrimaryCtxReset(device) : cuCtxDestroy(ctx));
    }
    printf("contexts that came back: %d\n", same);
    /* Whatever else has functions in the process has a say in this. */
    fprintf(stderr, "measured: functions that came back: %d\n", same_function);
}

static void reset_and_again(void)
{
    NEED(cuInit(0));
    lives(1);
    NEED(cuCtxSetCurrent(NULL));
    lives(0);
}

const struct scene_case scene_process[] = {{"O-26-fork-before-cuda", fork_before_cuda},
                                           {"O-26-exec", exec_beside_held_work},
                                           {"O-37-destructors", destructors},
                                           {"O-37-killed-before-a-sync", killed_before_a_sync},
                                           {"O-37-no-sync", ends_without_sync},
                                           {"O-37-quick-exit", ends_quickly},
                                           {"O-37-abort", aborts},
                                           {"O-37-exit-elsewhere", ends_elsewhere},
                                           {"O-37-thread-goes", thread_goes},
                                           {"O-38-reset", reset_and_again},
                                           {NULL, NULL}};
