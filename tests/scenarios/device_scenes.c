/* tests/scenarios/device_scenes.c - O-30, O-50: two devices, each with a context and streams of its own.
 * Called by  scene.c (SIMCUDA_DEVICES=2)      Calls  scene.h
 * Threads    O-50 has one for each device
 * Promise    see scene.h
 * Start at   scene_devices */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

struct place {
    CUcontext ctx;
    CUfunction vary[3];
    CUstream stream;
    CUdeviceptr buffer;
    CUevent event;
};

static struct place open_place(int number, unsigned stream_flags)
{
    struct place p;
    CUdevice device;
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, number));
    NEED(cuDevicePrimaryCtxRetain(&p.ctx, device));
    NEED(cuCtxSetCurrent(p.ctx));
    scene_functions(scene_load("varying"), p.vary);
    p.stream = scene_stream(stream_flags);
    p.buffer = scene_buffer();
    NEED(cuEventCreate(&p.event, CU_EVENT_DISABLE_TIMING));
    return p;
}

static void work_at(struct place *p, unsigned launches, unsigned value)
{
    NEED(cuCtxSetCurrent(p->ctx));
    scene_work_with(p->vary, p->stream, p->buffer, launches, value);
}

enum { COPIED = 512 };

/* O-30: the copy stands behind an event of the other device, and the other device behind the copy. */
static void copy_behind_events(void)
{
    struct place a = open_place(0, CU_STREAM_NON_BLOCKING),
                 b = open_place(1, CU_STREAM_NON_BLOCKING);
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        work_at(&a, round % ROUNDS == ODD_ROUND ? 7 : 8, round);
        NEED(cuEventRecord(a.event, a.stream));
        NEED(cuCtxSetCurrent(b.ctx));
        NEED(cuStreamWaitEvent(b.stream, a.event, 0));
        NEED(cuMemcpyPeerAsync(b.buffer + 128, b.ctx, a.buffer, a.ctx, COPIED, b.stream));
        work_at(&b, 8, round);
        NEED(cuEventRecord(b.event, b.stream));
        NEED(cuCtxSetCurrent(a.ctx));
        NEED(cuStreamWaitEvent(a.stream, b.event, 0));
    }
    scene_show("a", 0, a.stream, a.buffer);
    NEED(cuCtxSetCurrent(b.ctx));
    scene_show("b", 0, b.stream, b.buffer);
}

/* O-30: no events; the copy is ordered against both devices by itself, whichever is current. */
static void copy_between_contexts(void)
{
    struct place a = open_place(0, CU_STREAM_DEFAULT), b = open_place(1, CU_STREAM_DEFAULT);
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        work_at(&b, 8, round);
        work_at(&a, round % ROUNDS == ODD_ROUND ? 7 : 8, round); /* held while b is current */
        NEED(cuCtxSetCurrent(round % 2 ? a.ctx : b.ctx));
        NEED(cuMemcpyPeer(b.buffer + 128, b.ctx, a.buffer, a.ctx, COPIED));
        NEED(cuCtxSynchronize());
    }
    NEED(cuCtxSetCurrent(a.ctx));
    scene_show("a", 0, a.stream, a.buffer);
    NEED(cuCtxSetCurrent(b.ctx));
    scene_show("b", 0, b.stream, b.buffer);
}

/* O-50: a collective is a kernel that tells the other rank and one that waits for it; on s1, then on s2. */
enum { RANKS = 2, COLLECTIVES = 2, ROUNDS_OF_RANKS = 4 * ROUNDS };

struct rank {
    pthread_t handle;
    int number;
    CUdeviceptr flags; /* of all: [rank][collective], far apart */
    struct place place;
    CUfunction tell, wait;
    CUstream s[COLLECTIVES];
    CUdeviceptr x[COLLECTIVES];
};

/* Made one after the other, so that streams have the same names in every run. */
static void open_rank(struct rank *r, int number, CUdeviceptr flags)
{
    *r = (struct rank){
        .number = number, .flags = flags, .place = open_place(number, CU_STREAM_NON_BLOCKING)};
    CUmodule flag = scene_load("flag");
    r->tell = scene_function(flag, "set_flag");
    r->wait = scene_function(flag, "wait_flag");
    r->s[0] = r->place.stream;
    r->s[1] = scene_stream(CU_STREAM_NON_BLOCKING);
    r->x[0] = r->place.buffer;
    r->x[1] = scene_buffer();
}

static CUdeviceptr flag_of(const struct rank *r, int rank, int collective)
{
    return r->flags + 64u * (unsigned)(rank * COLLECTIVES + collective);
}

static void flush_by_chance(uint32_t *state, CUstream *s)
{
    *state = *state * 1664525u + 1013904223u;
    unsigned pick = (*state >> 16) % 64;
    if (pick < 2)
        NEED(cuStreamSynchronize(s[pick]));
    else if (pick < 8)
        (void)cuStreamQuery(s[pick % 2]);
    else if (pick < 10)
        sched_yield();
}

static void *take_part(void *data)
{
    struct rank *r = data;
    uint32_t chance = 77 + (uint32_t)r->number * 1000;
    unsigned rounds = ROUNDS_OF_RANKS * scene_times();
    NEED(cuCtxSetCurrent(r->place.ctx));
    for (unsigned round = 0; round < rounds; round++) {
        unsigned number = round + 1;
        for (int c = 0; c < COLLECTIVES; c++) {
            CUdeviceptr mine = flag_of(r, r->number, c), other = flag_of(r, 1 - r->number, c);
            scene_work_with(r->place.vary, r->s[c], r->x[c], round % ROUNDS == ODD_ROUND ? 4 : 3,
                            round);
            NEED(scene_launch(r->tell, r->s[c], 1, 1, 0, ARGS(&mine, &number)));
            NEED(scene_launch(r->wait, r->s[c], 1, 1, 0, ARGS(&other, &number)));
            scene_work_with(r->place.vary, r->s[c], r->x[c], 3, round);
        }
        flush_by_chance(&chance, r->s);
    }
    for (int c = 0; c < COLLECTIVES; c++)
        NEED(cuStreamSynchronize(r->s[c]));
    return NULL;
}

static void two_ranks(void)
{
    struct rank ranks[RANKS];
    CUdeviceptr flags;
    scene_open();
    (void)scene_mapped(&flags);
    for (int i = 0; i < RANKS; i++)
        open_rank(&ranks[i], i, flags);
    for (int i = 0; i < RANKS; i++)
        pthread_create(&ranks[i].handle, NULL, take_part, &ranks[i]);
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].handle, NULL);
    for (int i = 0; i < RANKS; i++)
        for (int c = 0; c < COLLECTIVES; c++)
            scene_show("rank", (unsigned)(2 * i + c), NULL, ranks[i].x[c]);
}

/* C3. One device's queue is full, its thread blocks in a launch; who can open the gate asks about the other. */
static atomic_uint accepted;
static atomic_int over;

static void *fill(void *data)
{
    struct place *p = data;
    NEED(cuCtxSetCurrent(p->ctx));
    while (!atomic_load(&over)) {
        scene_work_with(p->vary, p->stream, p->buffer, 1, 0);
        atomic_fetch_add(&accepted, 1);
    }
    return NULL;
}

static void other_device_is_full(void)
{
    struct place b = open_place(1, CU_STREAM_NON_BLOCKING);
    CUfunction wait = scene_function(scene_load("flag"), "wait_flag");
    CUdeviceptr gate;
    unsigned *word = scene_mapped(&gate), one = 1;
    pthread_t thread;
    for (unsigned round = 0; round < ROUNDS; round++)
        scene_work_with(b.vary, b.stream, b.buffer, 12, round);
    NEED(cuStreamSynchronize(b.stream));
    struct place a = open_place(0, CU_STREAM_NON_BLOCKING);
    NEED(cuCtxSetCurrent(b.ctx));
    NEED(scene_launch(wait, b.stream, 1, 1, 0, ARGS(&gate, &one)));
    pthread_create(&thread, NULL, fill, &b);
    for (unsigned before = 0, still = 0; still < 20;) { /* nothing accepted for 200 ms: it blocks */
        usleep(10000);
        unsigned now = atomic_load(&accepted);
        still = now && now == before ? still + 1 : 0;
        before = now;
    }
    work_at(&a, 12, 0);
    printf("stream %d, ", cuStreamSynchronize(a.stream));
    work_at(&a, 12, 0);
    printf("context %d\n", cuCtxSynchronize());
    atomic_store(&over, 1);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    NEED(cuCtxSetCurrent(b.ctx));
    printf("other %d\n", cuStreamSynchronize(b.stream));
}

const struct scene_case scene_devices[] = {{"O-30-copy-behind-events", copy_behind_events},
                                           {"O-30-copy-between-contexts", copy_between_contexts},
                                           {"O-50-two-ranks", two_ranks},
                                           {"C3-other-device-is-full", other_device_is_full},
                                           {NULL, NULL}};
