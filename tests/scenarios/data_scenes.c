/* tests/scenarios/data_scenes.c - O-03, O-04, O-05, O-52: copies whose places are used again.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    each pattern runs unlearned, learned, and with one odd round
 * Start at   scene_data */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int one = 1;

/* One word from device memory to where it is read later. */
static void keep_word(CUfunction copy, CUstream s, CUdeviceptr from, CUdeviceptr to)
{
    int n = one;
    NEED(scene_launch(copy, s, 1, 32, 0, ARGS(&from, &to, &n)));
}

enum { BIGGEST = 1024 * 1024 };

/* O-03: the source lies in this frame, is overwritten at once, and is gone when this has returned. */
static __attribute__((noinline)) void upload_from_the_stack(CUdeviceptr to, size_t bytes,
                                                            uint32_t value, CUstream s)
{
    uint32_t words[BIGGEST / 4];
    for (size_t i = 0; i < bytes / 4; i++)
        words[i] = value + (uint32_t)i;
    NEED(cuMemcpyHtoDAsync(to, words, bytes, s));
    memset(words, 0xA5, bytes);
    __asm__ volatile("" : : "r"(words) : "memory");
}

static void pageable_source(void)
{
    static const size_t sizes[] = {4, 64 * 1024, 64 * 1024 + 4, BIGGEST};
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
        CUdeviceptr to, x = scene_buffer(), out = scene_buffer();
        NEED(cuMemAlloc(&to, BIGGEST));
        for (unsigned round = 0; round < ROUNDS; round++) {
            upload_from_the_stack(to, sizes[k], round * 1000 + 7, s);
            scene_work(varying, s, x, round == ODD_ROUND ? 5 : 6, round);
            keep_word(copy, s, to, out + 8 * round);
            keep_word(copy, s, to + sizes[k] - 4, out + 8 * round + 4);
        }
        scene_show("first and last", (unsigned)sizes[k], s, out);
        scene_show("x", 0, s, x);
    }
}

/* A staging block is handed out again as soon as its event says so. */
struct block {
    uint32_t *host;
    CUevent read;
    int used;
};

enum { BLOCKS = 4 };

static struct block *a_free_block(struct block *blocks)
{
    for (;;) {
        for (int i = 0; i < BLOCKS; i++) {
            CUresult ret = blocks[i].used ? cuEventQuery(blocks[i].read) : CUDA_SUCCESS;
            if (ret == CUDA_SUCCESS)
                return &blocks[i];
            if (ret != CUDA_ERROR_NOT_READY)
                NEED(ret);
        }
        usleep(50);
    }
}

static void pinned_pool(void)
{
    struct block blocks[BLOCKS] = {{0}};
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy"),
               wait = scene_function(scene_load("flag"), "wait_flag");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr to = scene_buffer(), x = scene_buffer(), out = scene_buffer(), gate_device;
    unsigned *gate = scene_mapped(&gate_device);
    for (int i = 0; i < BLOCKS; i++) {
        NEED(cuMemHostAlloc((void **)&blocks[i].host, 4096, 0));
        NEED(cuEventCreate(&blocks[i].read, CU_EVENT_DISABLE_TIMING));
    }
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        struct block *b = a_free_block(blocks);
        unsigned opened = round / BLOCKS + 1;
        if (round % BLOCKS ==
            0) /* until all blocks are in use the stream stands: nothing may wait for it */
            NEED(scene_launch(wait, s, 1, 1, 0, ARGS(&gate_device, &opened)));
        b->host[0] = round * 3 + 1;
        NEED(cuMemcpyHtoDAsync(to, b->host, 4, s));
        NEED(cuEventRecord(b->read, s));
        b->used = 1;
        scene_work(varying, s, x, round % ROUNDS == ODD_ROUND ? 6 : 7, round);
        keep_word(copy, s, to, out + 4 * round);
        if (round % BLOCKS == BLOCKS - 1)
            __atomic_store_n(gate, opened, __ATOMIC_RELEASE);
    }
    scene_show("read", 0, s, out);
    scene_show("x", 0, s, x);
}

/* O-04: the last download of a loop is over when the next one comes to the same place. */
static void download_twice(CUmodule varying, CUfunction copy, uint64_t *sum, const char *name)
{
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), from = scene_buffer(), other = scene_buffer();
    for (unsigned turn = 0; turn < 3; turn++) {
        uint32_t seen = 0;
        for (unsigned round = 0; round < ROUNDS - turn; round++) {
            scene_work(varying, s, x, 8, round);
            keep_word(copy, s, x, from);
            NEED(cuMemcpyDtoHAsync(sum, from, sizeof *sum, s));
            NEED(cuStreamSynchronize(s));
            seen = seen * 31 + (uint32_t)*sum;
        }
        scene_work(varying, s, x, 5, turn);
        keep_word(copy, s, x + 4 * turn, other);
        NEED(cuMemcpyDtoHAsync(sum, other, sizeof *sum, s));
        NEED(cuStreamSynchronize(s));
        printf("%s: loop %08x, final %016llx, ", name, seen, (unsigned long long)*sum);
        *sum = (uint64_t)-1;
        NEED(cuStreamSynchronize(s));
        NEED(cuCtxSynchronize());
        printf("then %lld\n", (long long)*sum);
    }
}

static void download_once(void)
{
    uint64_t pageable, *pinned;
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy");
    NEED(cuMemHostAlloc((void **)&pinned, 4096, 0));
    download_twice(varying, copy, &pageable, "pageable");
    download_twice(varying, copy, pinned, "pinned");
}

/* O-05: one constant, uploaded before each launch that reads it; the same bytes twice in a row are two uploads. */
static void constants(void)
{
    static const char usual[] = "AABABB", odd[] = "ABBAAB";
    struct {
        int v[16];
    } config[2];
    CUdeviceptr symbol, out;
    size_t bytes;
    unsigned rounds = ROUNDS * scene_times();
    scene_open();
    CUmodule varying = scene_load("varying"), constant = scene_load("constant");
    CUfunction read = scene_function(constant, "reads_constant");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    NEED(cuModuleGetGlobal(&symbol, &bytes, constant, "config"));
    NEED(cuMemAlloc(&out, ROUNDS * 6 * 64));
    for (int i = 0; i < 16; i++) {
        config[0].v[i] = 100 + i;
        config[1].v[i] = -5 * i;
    }
    for (unsigned round = 0; round < rounds; round++) {
        const char *order = round % ROUNDS == ODD_ROUND ? odd : usual;
        for (unsigned k = 0; k < 6; k++) {
            CUdeviceptr at = out + 64 * (6 * (round % ROUNDS) + k);
            NEED(cuMemcpyHtoDAsync(symbol, &config[order[k] - 'A'], 64, s));
            NEED(scene_launch(read, s, 1, 32, 0, ARGS(&at)));
            scene_work(varying, s, x, 6, k);
        }
        if (round % 8 == 7)
            NEED(cuStreamSynchronize(s));
    }
    for (unsigned k = 0; k < 6; k++)
        scene_show("constants", k, s, out + 64 * ROUNDS * k);
    scene_show("x", 0, s, x);
}

/* O-52: what a learned copy writes to is freed and allocated again, each time in another way. */
enum { LIVES = 6 };

static CUdeviceptr allocate(unsigned life)
{
    CUdeviceptr p;
    if (life % 3 == 2)
        NEED(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    else
        NEED(cuMemAlloc(&p, 4096));
    NEED(cuMemsetD32(p, life, WORDS));
    NEED(
        cuCtxSynchronize()); /* the stream that is used afterwards does not wait for the legacy one */
    return p;
}

static void another_allocation(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), last = 0;
    int same = 0;
    for (unsigned life = 0; life < LIVES; life++) {
        CUdeviceptr to = allocate(life);
        same += to == last;
        last = to;
        for (unsigned round = 0; round < ROUNDS; round++) {
            scene_work(varying, s, x, round == ODD_ROUND ? 3 : 4, round);
            NEED(cuMemcpyDtoDAsync(to + 64 * (round % 8), x, 64, s));
            scene_work(varying, s, x, 4, round);
            if (round % 8 == 7 && life % 2)
                NEED(cuStreamSynchronize(s));
        }
        if (life % 2)
            scene_show("copied", life, s, to);
        NEED(cuMemFree(to)); /* every other time with the last rounds still queued or held */
    }
    printf("addresses that came back: %d\n", same);
    scene_show("x", 0, s, x);
}

const struct scene_case scene_data[] = {
    {"O-03-pageable-source", pageable_source},       {"O-03-pinned-pool", pinned_pool},
    {"O-04-download-once", download_once},           {"O-05-constants", constants},
    {"O-52-another-allocation", another_allocation}, {NULL, NULL}};
