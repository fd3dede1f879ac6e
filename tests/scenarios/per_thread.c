/* tests/scenarios/per_thread.c - O-51: a program built for per-thread default streams.
 * Called by  scenarios_test.cc           Calls  the driver API through -lcuda, the _ptsz names
 * Threads    two, each on "stream 0"
 * Promise    one thread's stream stands still until the other has synchronised its own
 * Start at   main() */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#define _GNU_SOURCE
#include <cuda.h>

#include "kernels/images.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 64, BODY = 12 };

#define NEED(call) need(call, #call)
static void need(CUresult ret, const char *what)
{
    if (!ret)
        return;
    printf("%s gave %d\n", what, ret);
    fflush(stdout);
    _exit(3);
}

static CUcontext ctx;
static CUfunction mix, wait_flag, set_flag;
static volatile unsigned
    *word; /* [0] gate of the waiting thread, [1] what it tells when it is through */
static CUdeviceptr word_device, x[2];
static volatile unsigned waiting;

static void work(int thread, unsigned round)
{
    for (unsigned i = 0; i < BODY; i++) {
        unsigned v = round + i;
        void *args[] = {&x[thread], &v};
        NEED(cuLaunchKernel(mix, 1, 1, 1, 32, 1, 1, 0, 0, args, NULL));
    }
}

/* Queues work behind the gate and watches memory; calls nothing until it has heard. */
static void *spins(void *data)
{
    (void)data;
    NEED(cuCtxSetCurrent(ctx));
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        CUdeviceptr told = word_device + 4;
        void *gate[] = {&word_device, &value}, *tell[] = {&told, &value};
        NEED(cuLaunchKernel(wait_flag, 1, 1, 1, 1, 1, 1, 0, 0, gate, NULL));
        work(0, round);
        NEED(cuLaunchKernel(set_flag, 1, 1, 1, 1, 1, 1, 0, 0, tell, NULL));
        __atomic_store_n(&waiting, value, __ATOMIC_RELEASE);
        while (__atomic_load_n(&word[1], __ATOMIC_ACQUIRE) != value)
            sched_yield();
    }
    NEED(cuStreamSynchronize(0));
    return NULL;
}

/* Its own stream must be done although the other thread's stands still. */
static void *synchronises(void *data)
{
    (void)data;
    NEED(cuCtxSetCurrent(ctx));
    for (unsigned round = 0; round < ROUNDS; round++) {
        while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) != round + 1)
            sched_yield();
        work(1, round);
        NEED(cuStreamSynchronize(0));
        __atomic_store_n(&word[0], round + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static CUfunction load(const void *image, const char *name)
{
    CUmodule m;
    CUfunction f;
    NEED(cuModuleLoadData(&m, image));
    NEED(cuModuleGetFunction(&f, m, name));
    return f;
}

int main(void)
{
    CUdevice device;
    pthread_t a, b;
    alarm(60);
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDevicePrimaryCtxRetain(&ctx, device));
    NEED(cuCtxSetCurrent(ctx));
    mix = load(ag_image_varying, "vary_mix");
    wait_flag = load(ag_image_flag, "wait_flag");
    set_flag = load(ag_image_flag, "set_flag");
    NEED(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset((void *)word, 0, 4096);
    NEED(cuMemHostGetDevicePointer(&word_device, (void *)word, 0));
    for (int i = 0; i < 2; i++) {
        NEED(cuMemAlloc(&x[i], 4096));
        NEED(cuMemsetD32(x[i], 1, 1024));
    }
    NEED(cuCtxSynchronize());
    pthread_create(&a, NULL, spins, NULL);
    pthread_create(&b, NULL, synchronises, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    for (int i = 0; i < 2; i++) {
        unsigned first = 0;
        NEED(cuMemcpyDtoH(&first, x[i], 4));
        printf("thread %d: %08x\n", i, first);
    }
    return 0;
}
