/* tests/scenarios/event_scenes.c - O-10, O-13 to O-17, O-21: what events and values in memory order, and what not.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    where something must not be waited for, a gate that only this thread opens stands before it
 * Start at   scene_events */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <unistd.h>

/* A word that holds a stream until the host says so. */
struct gate {
    unsigned *word;
    CUdeviceptr device;
    CUfunction wait;
};

static struct gate make_gate(CUmodule flag)
{
    struct gate g = {.wait = scene_function(flag, "wait_flag")};
    g.word = scene_mapped(&g.device);
    return g;
}

static void stop_at(struct gate *g, CUstream s, unsigned value)
{
    NEED(scene_launch(g->wait, s, 1, 1, 0, ARGS(&g->device, &value)));
}

static void open_gate(struct gate *g, unsigned value)
{
    __atomic_store_n(g->word, value, __ATOMIC_RELEASE);
}

static void copy_word(CUfunction copy, CUstream s, CUdeviceptr from, CUdeviceptr to)
{
    int n = 1;
    NEED(scene_launch(copy, s, 1, 32, 0, ARGS(&from, &to, &n)));
}

static unsigned launches_of(unsigned round)
{
    return round % ROUNDS == ODD_ROUND ? 7 : 8;
}

/* O-10: the legacy stream speaks for the four blocking streams, not for the one that stands at a gate. */
enum { LEGACY_STREAMS = 4 };

static void legacy_covers(int with_copy)
{
    CUstream b[LEGACY_STREAMS], apart = scene_stream(CU_STREAM_NON_BLOCKING);
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    struct gate gate = make_gate(scene_load("flag"));
    CUdeviceptr x[LEGACY_STREAMS], y = scene_buffer(), told_device;
    const volatile uint32_t *told = scene_mapped(&told_device);
    CUevent stop;
    uint32_t seen = 0, word = 0;
    NEED(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    for (int i = 0; i < LEGACY_STREAMS; i++) {
        b[i] = scene_stream(CU_STREAM_DEFAULT);
        x[i] = scene_buffer();
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LEGACY_STREAMS; i++) {
            scene_work(varying, b[i], x[i], launches_of(round), round);
            copy_word(copy, b[i], x[i], told_device + 4 * i);
        }
        stop_at(&gate, apart, round + 1);
        scene_work(varying, apart, y, 8, round);
        unsigned late = round % LEGACY_STREAMS; /* the stream whose work is held last */
        scene_work(varying, b[late], x[late], 8, round);
        copy_word(copy, b[late], x[late], told_device + 64);
        if (with_copy) {
            NEED(cuMemcpyDtoH(&word, x[0], 4));
        } else {
            NEED(cuEventRecord(stop, NULL));
            NEED(cuEventSynchronize(stop));
        }
        for (int i = 0; i < LEGACY_STREAMS; i++)
            seen = seen * 31 + told[i];
        seen = seen * 31 + told[16] + word;
        open_gate(&gate, round + 1);
    }
    printf("seen %08x\n", seen);
    scene_show("apart", 0, apart, y);
}

static void legacy_event(void)
{
    scene_open();
    legacy_covers(0);
}

static void legacy_copy(void)
{
    scene_open();
    legacy_covers(1);
}

/* O-13: each pair of events of each kind. */
enum { NEVER, OVER, RUNNING, UNTIMED, KINDS };

static void show_codes(CUevent *e, unsigned round)
{
    printf("round %u:", round);
    for (int a = 0; a < KINDS; a++)
        for (int b = 0; b < KINDS; b++) {
            float ms = 0;
            CUresult ret = cuEventElapsedTime(&ms, e[a], e[b]);
            printf(" %d%s", ret, ms < 0 ? " negative" : "");
        }
    printf("\n");
}

static void elapsed_codes(void)
{
    CUevent e[KINDS], begin;
    scene_open();
    CUmodule varying = scene_load("varying");
    struct gate gate = make_gate(scene_load("flag"));
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    NEED(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    for (int i = 0; i < KINDS; i++)
        NEED(cuEventCreate(&e[i], i == UNTIMED ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
    for (unsigned round = 0; round < ROUNDS; round++) {
        float ms = -1;
        NEED(cuEventRecord(begin, s));
        scene_work(varying, s, x, 8, round);
        NEED(cuEventRecord(e[OVER], s));
        NEED(cuEventRecord(e[UNTIMED], s));
        NEED(cuStreamSynchronize(s));
        scene_work(varying, s, x, 4, round);
        stop_at(&gate, s, round + 1);
        scene_work(varying, s, x, SCENE_TIMED_OPS + launches_of(round), round);
        NEED(cuEventRecord(e[RUNNING], s));
        if (round % 8 == 0 || round == ODD_ROUND)
            show_codes(e, round);
        NEED(cuEventElapsedTime(&ms, begin, e[OVER]));
        if (ms < 0)
            printf("round %u: %f ms\n", round, (double)ms);
        CUresult early = cuEventQuery(e[RUNNING]);
        if (early != CUDA_ERROR_NOT_READY)
            printf("round %u: query %d\n", round, early);
        open_gate(&gate, round + 1);
        NEED(cuEventSynchronize(e[RUNNING]));
        NEED(cuEventElapsedTime(&ms, begin, e[RUNNING]));
        if (ms < 0)
            printf("round %u: %f ms to the gate\n", round, (double)ms);
    }
    scene_show("x", 0, s, x);
}

/* O-14: s2 waits for what the event meant at the call, which is s1; then it means s3, and s3 stands. */
static void event_recorded_again(void)
{
    CUevent e, never;
    unsigned early = 0, rounds = ROUNDS * scene_times();
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    struct gate gate = make_gate(scene_load("flag"));
    CUstream s1 = scene_stream(CU_STREAM_NON_BLOCKING), s2 = scene_stream(CU_STREAM_NON_BLOCKING),
             s3 = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), y = scene_buffer(), z = scene_buffer(), out = scene_buffer();
    NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    NEED(cuEventCreate(&never, CU_EVENT_DISABLE_TIMING));
    for (unsigned round = 0; round < rounds; round++) {
        scene_work(varying, s1, x, launches_of(round), round);
        NEED(cuEventRecord(e, s1));
        NEED(cuStreamWaitEvent(s2, e, 0));
        NEED(cuStreamWaitEvent(s2, never, 0)); /* means nothing at all */
        stop_at(&gate, s3, round + 1);
        scene_work(varying, s3, z, 8, round);
        NEED(cuEventRecord(e, s3));
        copy_word(copy, s2, x, out + 4 * (round % WORDS));
        scene_work(varying, s2, y, 8, round);
        NEED(cuStreamSynchronize(s2)); /* although s3 stands */
        early += cuEventQuery(e) != CUDA_ERROR_NOT_READY;
        open_gate(&gate, round + 1);
        NEED(cuEventSynchronize(e));
    }
    printf("too early: %u\n", early);
    scene_show("out", 0, s2, out);
    scene_show("y", 0, s2, y);
    scene_show("z", 0, s3, z);
}

/* O-15: a stream goes away with a standing kernel in it, and the next one gets its handle. */
enum { STREAM_LIVES = 8 };

static void stream_comes_back(void)
{
    CUevent of_old, of_new;
    CUstream s, last = NULL;
    unsigned same = 0;
    scene_open();
    CUmodule varying = scene_load("varying");
    struct gate gate = make_gate(scene_load("flag"));
    CUdeviceptr x = scene_buffer(), y = scene_buffer();
    NEED(cuEventCreate(&of_old, CU_EVENT_DEFAULT));
    NEED(cuEventCreate(&of_new, CU_EVENT_DEFAULT));
    NEED(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    for (unsigned life = 0; life < STREAM_LIVES; life++) {
        unsigned flags;
        int priority;
        for (unsigned round = 0; round < ROUNDS / 2; round++) {
            scene_work(varying, s, x, 12, round);
            NEED(cuStreamSynchronize(s));
        }
        stop_at(&gate, s, life + 1);
        scene_work(varying, s, x, 12, life);
        NEED(cuEventRecord(of_old, s));
        scene_work(varying, s, x, 12, life); /* queued, or held */
        last = s;
        NEED(cuStreamDestroy(s));
        NEED(cuStreamCreateWithPriority(&s, life % 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING,
                                        -(int)(life % 3)));
        same += s == last;
        scene_work(varying, s, y, 12, life);
        NEED(cuEventRecord(of_new, s));
        NEED(cuEventSynchronize(of_new)); /* the old work stands still */
        NEED(cuStreamGetFlags(s, &flags));
        NEED(cuStreamGetPriority(s, &priority));
        printf("life %u: new %d, old %d, flags %u, priority %d\n", life, cuEventQuery(of_new),
               cuEventQuery(of_old), flags, priority);
        open_gate(&gate, life + 1);
        NEED(cuCtxSynchronize());
    }
    printf("handles that came back: %u\n", same);
    scene_show("x", 0, s, x);
    scene_show("y", 0, s, y);
}

/* O-16: the event that s2 waits for is destroyed, and its handle means another event at once. */
static void event_comes_back(void)
{
    unsigned early = 0, same = 0;
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    struct gate gate = make_gate(scene_load("flag"));
    CUstream s1 = scene_stream(CU_STREAM_NON_BLOCKING), s2 = scene_stream(CU_STREAM_NON_BLOCKING),
             s3 = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), y = scene_buffer(), out = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUevent first, second;
        NEED(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
        stop_at(&gate, s1, round + 1);
        scene_work(varying, s1, x, launches_of(round), round);
        NEED(cuEventRecord(first, s1));
        NEED(cuStreamWaitEvent(s2, first, 0));
        NEED(cuEventDestroy(first));
        NEED(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
        same += first == second;
        NEED(cuEventRecord(second, s3));
        copy_word(copy, s2, x, out + 4 * round);
        scene_work(varying, s2, y, 8, round);
        NEED(cuEventSynchronize(second)); /* does not stand */
        early += cuStreamQuery(s2) != CUDA_ERROR_NOT_READY;
        open_gate(&gate, round + 1);
        NEED(cuEventDestroy(second));
        NEED(cuStreamSynchronize(s2)); /* it reads x, which s1 changes in the next round */
    }
    printf("too early: %u, handles that came back: %u\n", early, same);
    scene_show("out", 0, s2, out);
    scene_show("y", 0, s2, y);
    scene_show("x", 0, s1, x);
}

/* O-17: waiting for the event between two downloads delivers the first one, and not the second. */
static void early_event(void)
{
    CUevent between;
    uint32_t *pinned, seen = 0;
    scene_open();
    CUmodule varying = scene_load("varying");
    struct gate gate = make_gate(scene_load("flag"));
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    NEED(cuMemHostAlloc((void **)&pinned, 4096, 0));
    NEED(cuEventCreate(&between, CU_EVENT_BLOCKING_SYNC));
    volatile uint32_t *first = pinned, *second = pinned + 1;
    *second = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t old = *second;
        scene_work(varying, s, x, launches_of(round), round);
        NEED(cuMemcpyDtoHAsync(pinned, x, 4, s));
        NEED(cuEventRecord(between, s));
        scene_work(varying, s, x, 4, round);
        stop_at(&gate, s, round + 1);
        scene_work(varying, s, x, 4, round);
        NEED(cuMemcpyDtoHAsync(pinned + 1, x, 4, s));
        scene_work(varying, s, x, 5, round);
        NEED(cuEventSynchronize(between));
        seen = seen * 31 + *first;
        if (*second != old)
            printf("round %u: delivered too early\n", round);
        open_gate(&gate, round + 1);
        NEED(cuStreamSynchronize(s));
        seen = seen * 31 + *second;
    }
    printf("seen %08x\n", seen);
    scene_show("x", 0, s, x);
}

/* O-21: s2 waits for a value that s1, or the host, writes; nothing else is called about s1. */
enum { WAIT_LAST, WAIT_FIRST, HOST_LISTENS, HOST_WRITES };

static void poll(CUstream s)
{
    CUresult ret;
    while ((ret = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
        usleep(50);
    NEED(ret);
}

static void write_and_wait(int way)
{
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    CUstream s1 = scene_stream(CU_STREAM_NON_BLOCKING), s2 = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), y = scene_buffer(), a, told_device;
    unsigned *word = scene_mapped(&a);
    const volatile uint32_t *told = scene_mapped(&told_device);
    uint32_t seen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (way == WAIT_FIRST)
            NEED(cuStreamWaitValue32(s2, a, round + 1, CU_STREAM_WAIT_VALUE_GEQ));
        scene_work(varying, s1, x, launches_of(round), round);
        copy_word(copy, s1, x, told_device);
        if (way == HOST_WRITES)
            __atomic_store_n(word, round + 1, __ATOMIC_RELEASE);
        else
            NEED(cuStreamWriteValue32(s1, a, round + 1, 0));
        if (way == HOST_LISTENS) {
            while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round + 1)
                usleep(20);
            seen = seen * 31 + told[0]; /* the launches before the write are over */
        }
        if (way != WAIT_FIRST)
            NEED(cuStreamWaitValue32(s2, a, round + 1, CU_STREAM_WAIT_VALUE_GEQ));
        scene_work(varying, s2, y, 8, round);
        if (way != HOST_WRITES)
            copy_word(copy, s2, told_device, y + 4 * (64 + round));
        poll(s2);
        if (way ==
            HOST_WRITES) /* nothing orders the streams there: the next round must not begin */
            poll(s1);
    }
    printf("way %d: %08x\n", way, seen);
    scene_show("y", 0, s2, y);
    scene_show("x", 0, s1, x);
}

static void values(void)
{
    scene_open();
    for (int way = WAIT_LAST; way <= HOST_WRITES; way++)
        write_and_wait(way);
}

const struct scene_case scene_events[] = {{"O-10-legacy-event", legacy_event},
                                          {"O-10-legacy-copy", legacy_copy},
                                          {"O-13-elapsed-codes", elapsed_codes},
                                          {"O-14-event-again", event_recorded_again},
                                          {"O-15-stream-comes-back", stream_comes_back},
                                          {"O-16-event-comes-back", event_comes_back},
                                          {"O-17-early-event", early_event},
                                          {"O-21-values", values},
                                          {NULL, NULL}};
