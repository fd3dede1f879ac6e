/* tests/scenarios/record_scenes.c - loops with a record of an event after every kernel.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    where an event must be over although later work stands, a gate that only this thread opens stands there
 * Start at   scene_records */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <unistd.h>

enum { PAIRS = 12, EARLY = 5 };

struct chain {
    CUstream s, other;
    CUfunction f[3], copy, wait;
    CUdeviceptr x, told_device, gate_device;
    const volatile uint32_t *told;
    unsigned *gate;
    CUevent event[PAIRS];
};

static struct chain open_chain(unsigned flags)
{
    struct chain c;
    scene_open();
    c.s = scene_stream(CU_STREAM_NON_BLOCKING);
    c.other = scene_stream(CU_STREAM_NON_BLOCKING);
    scene_functions(scene_load("varying"), c.f);
    c.copy = scene_function(scene_load("basic"), "copy");
    c.wait = scene_function(scene_load("flag"), "wait_flag");
    c.x = scene_buffer();
    c.told = scene_mapped(&c.told_device);
    c.gate = scene_mapped(&c.gate_device);
    for (int i = 0; i < PAIRS; i++)
        NEED(cuEventCreate(&c.event[i], flags));
    return c;
}

static unsigned pairs_of(unsigned round)
{
    return round % ROUNDS == ODD_ROUND ? PAIRS - 1 : PAIRS;
}

/* The first launch of a pair writes the word that the copies tell of. */
static void pair(struct chain *c, unsigned i, unsigned round, CUevent e)
{
    scene_work_with(c->f, c->s, c->x, 1 + i % 2, round + i);
    NEED(cuEventRecord(e, c->s));
}

static void tell(struct chain *c, CUstream s, unsigned word)
{
    CUdeviceptr to = c->told_device + 4 * word;
    int n = 1;
    NEED(scene_launch(c->copy, s, 1, 32, 0, ARGS(&c->x, &to, &n)));
}

static void show(const struct chain *c, uint32_t seen)
{
    printf("seen %08x\n", seen);
    scene_show("x", 0, c->s, c->x);
}

/* Another stream goes on after the early event, and the host sees what it saw, while the chain stands at a gate. */
static void waited_for(void)
{
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    uint32_t seen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        for (unsigned i = 0; i <= EARLY; i++)
            pair(&c, i, round, c.event[i]);
        NEED(scene_launch(c.wait, c.s, 1, 1, 0, ARGS(&c.gate_device, &value)));
        for (unsigned i = EARLY + 1; i < pairs_of(round); i++)
            pair(&c, i, round, c.event[i]);
        NEED(cuStreamWaitEvent(c.other, c.event[EARLY], 0));
        tell(&c, c.other, round);
        NEED(cuStreamSynchronize(c.other));
        seen = seen * 31 + c.told[round];
        seen = seen * 31 + (uint32_t)cuEventQuery(c.event[EARLY + 1]);
        __atomic_store_n(c.gate, value, __ATOMIC_RELEASE);
        NEED(cuStreamSynchronize(c.s));
    }
    show(&c, seen);
}

/* A program that polls makes no other call. */
static void polled(void)
{
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    uint32_t seen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUresult ret;
        const unsigned last = pairs_of(round) - 1;
        for (unsigned i = 0; i <= last; i++)
            pair(&c, i, round, c.event[i]);
        while ((ret = cuEventQuery(c.event[round % PAIRS % (last + 1)])) == CUDA_ERROR_NOT_READY)
            usleep(20);
        seen = seen * 31 + (uint32_t)ret;
        tell(&c, c.s, round);
        NEED(cuEventRecord(c.event[0], c.s));
        while (cuEventQuery(c.event[0]) == CUDA_ERROR_NOT_READY)
            usleep(20);
        seen = seen * 31 + c.told[round];
    }
    show(&c, seen);
}

/* A program that watches memory makes no call at all. */
static void watched(void)
{
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    CUevent last;
    CUfunction set = scene_function(scene_load("flag"), "set_flag");
    NEED(cuEventCreate(&last, CU_EVENT_DISABLE_TIMING));
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        for (unsigned i = 0; i < pairs_of(round); i++)
            pair(&c, i, round, c.event[i]);
        NEED(scene_launch(set, c.s, 1, 1, 0, ARGS(&c.told_device, &value)));
        NEED(cuEventRecord(last, c.s));
        while (__atomic_load_n(&c.told[0], __ATOMIC_ACQUIRE) != value)
            usleep(20);
    }
    scene_show("x", 0, c.s, c.x);
}

/* An event goes while a stream waits for it, and the next one has its handle. */
static void come_back(void)
{
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    unsigned same = 0;
    uint32_t seen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        for (unsigned i = 0; i <= EARLY; i++)
            pair(&c, i, round, c.event[i]);
        NEED(scene_launch(c.wait, c.s, 1, 1, 0, ARGS(&c.gate_device, &value)));
        for (unsigned i = EARLY + 1; i < pairs_of(round); i++)
            pair(&c, i, round, c.event[i]);
        CUevent old = c.event[EARLY];
        NEED(cuStreamWaitEvent(c.other, old, 0));
        NEED(cuEventDestroy(old));
        NEED(cuEventCreate(&c.event[EARLY], CU_EVENT_DISABLE_TIMING));
        same += c.event[EARLY] == old;
        tell(&c, c.other, round);
        NEED(cuStreamSynchronize(c.other));
        seen = seen * 31 + c.told[round];
        __atomic_store_n(c.gate, value, __ATOMIC_RELEASE);
        NEED(cuStreamSynchronize(c.s));
    }
    printf("events that came back: %u\nseen %08x\n", same, seen);
    scene_show("x", 0, c.s, c.x);
}

/* In one round each record is followed by some that the driver refuses. */
static void some_refused(void)
{
    CUcontext ctx, there;
    CUdevice device;
    CUevent far;
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    NEED(cuCtxGetCurrent(&ctx));
    NEED(cuCtxGetDevice(&device));
    NEED(cuCtxCreate(&there, NULL, 0, device));
    NEED(cuEventCreate(&far, CU_EVENT_DISABLE_TIMING));
    NEED(cuCtxSetCurrent(ctx));
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < PAIRS; i++) {
            pair(&c, i, round, c.event[i]);
            if (round != ODD_ROUND || i % 3)
                continue;
            printf("none: %d", cuEventRecord(NULL, c.s));
            printf(", of another context: %d", cuEventRecord(far, c.s));
            printf(", outside a capture: %d\n",
                   cuEventRecordWithFlags(c.event[i], c.s, CU_EVENT_RECORD_EXTERNAL));
        }
        NEED(cuStreamSynchronize(c.s));
    }
    scene_show("x", 0, c.s, c.x);
}

/* One event for the whole chain, two in one round: nobody sees any record of one but the last. */
static void overtaken(void)
{
    struct chain c = open_chain(CU_EVENT_DISABLE_TIMING);
    uint32_t seen = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < pairs_of(round); i++)
            pair(&c, i, round, c.event[round == ODD_ROUND - 8 ? i % 2 : 0]);
        NEED(cuStreamWaitEvent(c.other, c.event[0], 0));
        NEED(cuStreamWaitEvent(c.other, c.event[1], 0));
        tell(&c, c.other, round);
        NEED(cuStreamSynchronize(c.other));
        seen = seen * 31 + c.told[round];
        NEED(cuStreamSynchronize(c.s));
    }
    show(&c, seen);
}

/* Events that take the time: each pair of them is read. */
static void measured(void)
{
    struct chain c = open_chain(CU_EVENT_DEFAULT);
    unsigned backwards = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < pairs_of(round); i++)
            pair(&c, i, round, c.event[i]);
        scene_work_with(c.f, c.s, c.x, 2 * SCENE_TIMED_OPS, round);
        NEED(cuStreamSynchronize(c.s));
        for (unsigned i = 1; round % 4 == 3 && i < pairs_of(round); i++) {
            float ms = -1;
            NEED(cuEventElapsedTime(&ms, c.event[i - 1], c.event[i]));
            backwards += ms < 0;
        }
    }
    printf("backwards: %u\n", backwards);
    scene_show("x", 0, c.s, c.x);
}

const struct scene_case scene_records[] = {
    {"records-waited-for", waited_for}, {"records-polled", polled},
    {"records-watched", watched},       {"records-come-back", come_back},
    {"records-refused", some_refused},  {"records-overtaken", overtaken},
    {"records-measured", measured},     {NULL, NULL}};
