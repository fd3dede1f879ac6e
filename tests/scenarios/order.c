/* tests/scenarios/order.c - O-11, O-12, O-19: order given by the host alone, polling, watching memory.
 * Called by  scene.c                     Calls  scene.h
 * Threads    O-11 and C4 make their own
 * Promise    a host that waits without calling CUDA waits under the watchdog only
 * Start at   scene_order */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* O-11: one staging buffer in device memory goes round between threads; the stream is their only order. */
struct pool {
    pthread_mutex_t lock;
    CUdeviceptr staging;
    CUstream stream;
    CUmodule varying;
    CUfunction copy;
    uint32_t *pinned; /* source of each turn's upload, never used twice */
    CUdeviceptr out;
    int threads, turns;
};
struct member {
    struct pool *pool;
    int index, rounds;
    pthread_t handle;
};

static void take_turn(struct pool *p, int thread, int round)
{
    uint32_t *source = p->pinned + 4 * p->turns++;
    CUdeviceptr out = p->out + 4u * (unsigned)(thread * 32 + round % 32);
    int n = 1;
    source[0] = (uint32_t)(thread * 1000 + round);
    NEED(cuMemcpyHtoDAsync(p->staging, source, 4, p->stream));
    scene_work(p->varying, p->stream, p->staging, round == ODD_ROUND / 2 ? 7 : 8, 3);
    NEED(scene_launch(p->copy, p->stream, 1, 32, 0, ARGS(&p->staging, &out, &n)));
}

static void *turns(void *data)
{
    struct member *m = data;
    CUdevice device;
    CUcontext ctx;
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDevicePrimaryCtxRetain(&ctx, device));
    NEED(cuCtxSetCurrent(ctx));
    for (int round = 0; round < m->rounds; round++) {
        pthread_mutex_lock(&m->pool->lock);
        take_turn(m->pool, m->index, round);
        pthread_mutex_unlock(&m->pool->lock);
        sched_yield();
    }
    return NULL;
}

static void share_stream(int threads, CUstream stream)
{
    struct pool p = {.stream = stream, .threads = threads};
    struct member m[16];
    pthread_mutex_init(&p.lock, NULL);
    p.varying = scene_load("varying");
    p.copy = scene_function(scene_load("basic"), "copy");
    p.staging = scene_buffer();
    p.out = scene_buffer();
    NEED(cuMemHostAlloc((void **)&p.pinned, 16 * 4 * 4 * ROUNDS, 0));
    for (int i = 0; i < threads; i++) {
        m[i] = (struct member){&p, i, threads > 2 ? ROUNDS / 2 : ROUNDS, 0};
        pthread_create(&m[i].handle, NULL, turns, &m[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(m[i].handle, NULL);
    printf("%d threads, %s stream: ", threads, stream ? "one" : "legacy");
    scene_show("out", 0, stream, p.out);
}

static void host_order(void)
{
    scene_open();
    share_stream(2, NULL);
    share_stream(16, NULL);
    share_stream(2, scene_stream(CU_STREAM_DEFAULT));
    share_stream(16, scene_stream(CU_STREAM_NON_BLOCKING));
}

/* C3. What the host finds in mapped memory after each kind of call that waits for the stream. */
static void waiting(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction tell = scene_function(scene_load("flag"), "set_flag");
    CUstream s = scene_stream(CU_STREAM_DEFAULT);
    CUdeviceptr x = scene_buffer(), device;
    const volatile unsigned *word = scene_mapped(&device);
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        unsigned value = round + 1, first = 0;
        scene_work(varying, s, x, round == ODD_ROUND ? 8 : 9, round);
        NEED(scene_launch(tell, s, 1, 1, 0, ARGS(&device, &value)));
        if (round % 3 == 0)
            NEED(cuStreamSynchronize(s));
        else if (round % 3 == 1)
            NEED(cuCtxSynchronize());
        else
            NEED(cuMemcpyDtoH(&first, x, 4)); /* waits for streams that block */
        if (*word != value)
            printf("round %u: found %u\n", round, *word);
    }
    scene_show("x", 0, s, x);
}

/* O-12. The first query is asked while a kernel is known to run; then nothing but queries. */
static void poll_stream(const char *name, CUmodule varying, CUmodule flag, CUstream s,
                        int with_event)
{
    CUfunction wait = scene_function(flag, "wait_flag");
    CUdeviceptr x = scene_buffer(), gate_device;
    volatile unsigned *gate = scene_mapped(&gate_device);
    CUevent event;
    int early = 0;
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        int slow = round % 4 == 0;
        if (slow)
            NEED(scene_launch(wait, s, 1, 1, 0, ARGS(&gate_device, &value)));
        scene_work(varying, s, x, round == ODD_ROUND ? 9 : 8, round);
        if (with_event)
            NEED(cuEventRecord(event, s));
        CUresult ret = with_event ? cuEventQuery(event) : cuStreamQuery(s);
        if (slow && ret != CUDA_ERROR_NOT_READY)
            early++;
        __atomic_store_n(gate, value, __ATOMIC_RELEASE);
        while (ret == CUDA_ERROR_NOT_READY) {
            usleep(50);
            ret = with_event ? cuEventQuery(event) : cuStreamQuery(s);
        }
        if (ret)
            printf("round %u: %d\n", round, ret);
    }
    printf("%s, %s: too early %d, ", name, with_event ? "event" : "stream", early);
    scene_show("x", 0, s, x);
}

static void polling(void)
{
    scene_open();
    CUmodule varying = scene_load("varying"), flag = scene_load("flag");
    for (int with_event = 0; with_event < 2; with_event++) {
        poll_stream("legacy", varying, flag, NULL, with_event);
        poll_stream("blocking", varying, flag, scene_stream(CU_STREAM_DEFAULT), with_event);
        poll_stream("non-blocking", varying, flag, scene_stream(CU_STREAM_NON_BLOCKING),
                    with_event);
    }
}

enum { LISTENED = 10 * ROUNDS }; /* where each round stops a segment, learning takes longer */

/* O-19. Nothing is called between the launch that tells and the host that listens. */
static void listen(const char *name, volatile unsigned *word, const char *kernel, CUdeviceptr where)
{
    CUmodule varying = scene_load("varying");
    CUfunction tell = scene_function(scene_load("flag"), kernel);
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned round = 0; round < LISTENED; round++) {
        unsigned value = round + 1;
        scene_work(varying, s, x, 4, round);
        if (round % ROUNDS == ODD_ROUND)
            scene_work(varying, s, x, 1, round);
        NEED(scene_launch(tell, s, 1, 1, 0, ARGS(&where, &value)));
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
            sched_yield();
        scene_work(varying, s, x, 4, round);
    }
    printf("%s: heard %u, ", name, *word);
    scene_show("x", 0, s, x);
}

static void watching(void)
{
    CUdeviceptr device;
    unsigned *plain, *registered;
    scene_open();
    unsigned *mapped = scene_mapped(&device);
    listen("mapped", mapped, "set_flag", device);
    NEED(cuMemHostAlloc((void **)&plain, 4096, 0));
    memset(plain, 0, 4096);
    listen("pinned, by its host address", plain, "set_flag", (CUdeviceptr)(uintptr_t)plain);
    registered = aligned_alloc(4096, 4096);
    memset(registered, 0, 4096);
    NEED(cuMemHostRegister(registered, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    NEED(cuMemHostGetDevicePointer(&device, registered, 0));
    listen("registered", registered, "set_flag", device);
    NEED(cuMemHostUnregister(registered));
    free(registered);
}

/* No argument is an address that the host can see: it lies in device memory, in a struct. */
static void watching_through_a_struct(void)
{
    CUdeviceptr device, box;
    scene_open();
    unsigned *mapped = scene_mapped(&device);
    NEED(cuMemAlloc(&box, sizeof device));
    NEED(cuMemcpyHtoD(box, &device, sizeof device));
    listen("mapped, in a device struct", mapped, "set_boxed_flag", box);
}

/* Whether the kernel's store came, and within a time that is a hundred turns of the scheduler. */
static int heard_in_time(const unsigned *word, unsigned value)
{
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        usleep(200);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value);
    return now.tv_sec - began.tv_sec < 2;
}

/* C4, where the processor is short. Equal launches but for what they tell, so that any of them may be held; the host
 * stops to listen at ever other places, and calls nothing meanwhile. */
static void listen_anywhere(unsigned *word, CUdeviceptr where)
{
    CUfunction tell = scene_function(scene_load("flag"), "set_flag");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    unsigned late = 0, value = 0;
    for (unsigned round = 0; round < 8 * ROUNDS; round++) {
        for (unsigned i = 0, n = 1 + (round * 2654435761u >> 27); i < n; i++) {
            value++;
            NEED(scene_launch(tell, s, 1, 1, 0, ARGS(&where, &value)));
        }
        if (round % 4 == 3)
            late += !heard_in_time(word, value);
    }
    printf("told %u, late %u, end %d\n", value, late, cuStreamSynchronize(s));
}

static atomic_int idle;

static void *keep_busy(void *unused)
{
    while (!atomic_load_explicit(&idle, memory_order_relaxed))
        ;
    return unused;
}

/* The program, the shim's thread and the driver's share one processor with a thread that never sleeps. */
static void one_processor(void)
{
    cpu_set_t mine, one;
    pthread_t busy;
    CUdeviceptr where;
    int cpu = 0;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof mine, &mine);
    while (!CPU_ISSET(cpu, &mine))
        cpu++;
    CPU_SET(cpu, &one);
    scene_need(sched_setaffinity(0, sizeof one, &one) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS,
               "one processor");
    pthread_create(&busy, NULL, keep_busy, NULL);
    scene_open();
    unsigned *word = scene_mapped(&where);
    listen_anywhere(word, where);
    atomic_store(&idle, 1);
    pthread_join(busy, NULL);
}

/* What a container's quota does: all threads stand still for most of each period. Ends by itself, never between
 * stop and go. */
static void grant_a_quota(pid_t of, const atomic_int *over)
{
    while (getppid() == of && !atomic_load(over)) {
        kill(of, SIGSTOP);
        usleep(15000);
        kill(of, SIGCONT);
        usleep(5000);
    }
    _exit(0);
}

static void under_a_quota(void)
{
    CUdeviceptr where;
    atomic_int *over =
        mmap(NULL, sizeof *over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t self = getpid(), other = fork();
    if (!other)
        grant_a_quota(self, over);
    scene_open();
    unsigned *word = scene_mapped(&where);
    listen_anywhere(word, where);
    atomic_store(over, 1);
    waitpid(other, NULL, 0);
}

const struct scene_case scene_order[] = {{"O-11-host-order", host_order},
                                         {"C3-waiting", waiting},
                                         {"O-12-polling", polling},
                                         {"O-19-watching", watching},
                                         {"O-19-struct", watching_through_a_struct},
                                         {"C4-one-processor", one_processor},
                                         {"C4-quota", under_a_quota},
                                         {NULL, NULL}};
