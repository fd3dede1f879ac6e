/* tests/scenarios/turn_scenes.c - loops that give work to streams in turn, with waits for events between them.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    each stream has a buffer of its own; what passes between them passes along an event
 * Start at   scene_turns */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <unistd.h>

enum { FORKS = 6, STREAMS = 3 };

struct turns {
    CUstream s[STREAMS];
    CUfunction f[3], copy, wait, set;
    CUdeviceptr x[STREAMS], own, told_device, gate_device;
    const unsigned *told;
    unsigned *gate;
    CUevent out, back;
};

static struct turns open_turns(void)
{
    struct turns t;
    scene_open();
    scene_functions(scene_load("varying"), t.f);
    t.copy = scene_function(scene_load("basic"), "copy");
    const CUmodule flag = scene_load("flag");
    t.wait = scene_function(flag, "wait_flag");
    t.set = scene_function(flag, "set_flag");
    for (int i = 0; i < STREAMS; i++) {
        t.s[i] = scene_stream(CU_STREAM_NON_BLOCKING);
        t.x[i] = scene_buffer();
    }
    t.own = scene_buffer();
    t.told = scene_mapped(&t.told_device);
    t.gate = scene_mapped(&t.gate_device);
    NEED(cuEventCreate(&t.out, CU_EVENT_DISABLE_TIMING));
    NEED(cuEventCreate(&t.back, CU_EVENT_DISABLE_TIMING));
    return t;
}

static void work(const struct turns *t, int stream, unsigned launches, unsigned value)
{
    scene_work_with(t->f, t->s[stream], t->x[stream], launches, value);
}

static void pass_on(struct turns *t, int stream, int from, int to)
{
    int n = WORDS;
    NEED(scene_launch(t->copy, t->s[stream], 4, 256, 0, ARGS(&t->x[from], &t->x[to], &n)));
}

static void show_all(const struct turns *t)
{
    for (int i = 0; i < STREAMS; i++)
        scene_show("x", (unsigned)i, t->s[i], t->x[i]);
}

/* One launch each. */
static void round_robin(void)
{
    struct turns t = open_turns();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < (round == ODD_ROUND ? 13u : 24u); i++)
            work(&t, (int)(i % STREAMS), 1, round + i);
        if (round % 8 == 0)
            show_all(&t);
        NEED(cuCtxSynchronize());
    }
    show_all(&t);
}

/* A stream lets another one go on with what it has made, and takes back what that makes of it. */
static void fork_and_join(void)
{
    struct turns t = open_turns();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < (round == ODD_ROUND ? FORKS - 1 : FORKS); i++) {
            work(&t, 0, 2, round + i);
            NEED(cuEventRecord(t.out, t.s[0]));
            NEED(cuStreamWaitEvent(t.s[1], t.out, 0));
            pass_on(&t, 1, 0, 1);
            work(&t, 1, 2, round + i);
            work(&t, 2, 2, i);
            scene_work_with(t.f, t.s[0], t.own, 1, i);
            NEED(cuEventRecord(t.back, t.s[1]));
            NEED(cuStreamWaitEvent(t.s[0], t.back, 0));
            pass_on(&t, 0, 1, 0);
        }
        NEED(cuCtxSynchronize());
    }
    show_all(&t);
    scene_show("own", 0, t.s[0], t.own);
}

/* The second stream goes on behind the first record, while the other one stands at a gate before the second; only
 * what the second stream tells opens it. The second record is of the same event every so many rounds, else of
 * another one. */
static void recorded_again_every(unsigned rounds)
{
    struct turns t = open_turns();
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned value = round + 1;
        const CUevent again = value % rounds ? t.back : t.out;
        for (unsigned i = 0; i < 12; i++)
            work(&t, 1 + (int)(i % 2), 1, round + i);
        work(&t, 0, 2, round);
        NEED(cuEventRecord(t.out, t.s[0]));
        work(&t, 0, 1, round);
        NEED(cuStreamWaitEvent(t.s[1], t.out, 0));
        work(&t, 1, round == ODD_ROUND ? 3 : 2, round);
        NEED(scene_launch(t.set, t.s[1], 1, 1, 0, ARGS(&t.told_device, &value)));
        NEED(scene_launch(t.wait, t.s[0], 1, 1, 0, ARGS(&t.gate_device, &value)));
        NEED(cuEventRecord(again, t.s[0]));
        work(&t, 0, 2, round);
        while (__atomic_load_n(t.told, __ATOMIC_ACQUIRE) != value)
            usleep(20);
        __atomic_store_n(t.gate, value, __ATOMIC_RELEASE);
        NEED(cuCtxSynchronize());
    }
    show_all(&t);
}

static void recorded_again(void)
{
    recorded_again_every(1);
}

static void recorded_again_at_times(void)
{
    recorded_again_every(8);
}

const struct scene_case scene_turns[] = {{"turns-round-robin", round_robin},
                                         {"turns-fork", fork_and_join},
                                         {"turns-recorded-again", recorded_again},
                                         {"turns-recorded-again-at-times", recorded_again_at_times},
                                         {NULL, NULL}};
