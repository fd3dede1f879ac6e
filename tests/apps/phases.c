/* tests/apps/phases.c - a program whose launch sequence changes while it runs: phases of different
 * length and shape follow each other and return, and now and then a launch more slips in.
 * Calls      device_layer.h, kernels/varying.cu, mirror.h
 * Usage      phases [-p PHASES] [-i ITERATIONS_PER_PHASE] [-e EXTRA_EVERY] [-s] [-d]
 * Promise    exits with 1 unless the device's result is the host's, bit for bit
 * Start at   iteration(): called once with launches and once with the host's mirror        */
#include "tests/apps/device_layer.h"
#include "tests/apps/mirror.h"
#include "tests/apps/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64, BLOCKS = 4, CELLS = BLOCK * BLOCKS, KINDS = 4 };

DEVICE_DECLARE(vary_mix);
DEVICE_DECLARE(vary_xor);
DEVICE_DECLARE(vary_rot);
DEVICE_DECLARE(vary_pair);

/* What a phase launches in each iteration. */
struct phase {
    unsigned kernels;
    unsigned grid;
    int pairs; /* every fourth launch reads the other array */
};

static const struct phase phase_of_kind[KINDS] = {
    {12, 1, 0},
    {40, 2, 1},
    {5, 4, 1},
    {97, 3, 0},
};

/* Where an iteration's launches go: the device or the host's mirror of it. */
struct target {
    unsigned *array[2];
    void (*single)(enum mirror_kernel kernel, unsigned *x, unsigned a, unsigned grid);
    void (*pair)(unsigned *x, const unsigned *y, unsigned shift);
};

static const void *single_kernel[MIRROR_KERNELS];
static const void *pair_kernel;

static void device_single(enum mirror_kernel kernel, unsigned *x, unsigned a, unsigned grid)
{
    void *args[] = {&x, &a};
    device_launch(single_kernel[kernel], grid, BLOCK, args);
}

static void device_pair(unsigned *x, const unsigned *y, unsigned shift)
{
    unsigned n = CELLS;
    void *args[] = {&x, &y, &shift, &n};
    device_launch(pair_kernel, BLOCKS, BLOCK, args);
}

static void host_single(enum mirror_kernel kernel, unsigned *x, unsigned a, unsigned grid)
{
    mirror_launch(kernel, x, a, grid * BLOCK);
}

static void host_pair(unsigned *x, const unsigned *y, unsigned shift)
{
    mirror_pair(x, y, shift, CELLS);
}

static void iteration(const struct target *t, const struct phase *p, unsigned long i, int extra)
{
    for (unsigned k = 0; k < p->kernels; k++) {
        unsigned a = mirror_word(i, k);
        unsigned *x = t->array[k & 1];
        if (p->pairs && k % 4 == 3)
            t->pair(x, t->array[(k & 1) ^ 1], a % CELLS);
        else
            t->single(k % MIRROR_KERNELS, x, a, p->grid);
        if (extra && k == p->kernels / 2)
            t->single(MIRROR_XOR, t->array[0], a ^ 0x5a5a5a5au, BLOCKS);
    }
}

static void run(const struct target *t, unsigned phases, unsigned length, unsigned every, int wait)
{
    unsigned long i = 0;
    for (unsigned n = 0; n < phases; n++) {
        const struct phase *p = &phase_of_kind[mirror_word(n, 7) % KINDS];
        for (unsigned j = 0; j < length; j++, i++) {
            iteration(t, p, i, i % every == every - 1);
            if (wait)
                device_sync();
        }
    }
}

static int finish(const unsigned *expect, const struct target *device, double seconds)
{
    static unsigned end[2 * CELLS];
    device_get(end, device->array[0], sizeof end);
    report_result("phases", report_hash(REPORT_HASH, end, sizeof end), device_launches(), seconds);
    if (memcmp(end, expect, sizeof end) == 0)
        return 0;
    puts("phases: WRONG: the host computes another result");
    return 1;
}

int main(int argc, char **argv)
{
    unsigned phases = 12, length = 60, every = 23;
    int wait = 0, c;
    enum device_stream stream = DEVICE_STREAM_OWN;
    while ((c = getopt(argc, argv, "p:i:e:sd")) != -1) {
        if (c == 'p')
            phases = (unsigned)report_number("-p", optarg, 1, 1000000);
        else if (c == 'i')
            length = (unsigned)report_number("-i", optarg, 1, 1000000);
        else if (c == 'e')
            every = (unsigned)report_number("-e", optarg, 1, 1000000);
        else if (c == 's')
            wait = 1;
        else if (c == 'd')
            stream = DEVICE_STREAM_LEGACY;
        else
            return 2;
    }
    static unsigned expect[2 * CELLS];
    device_open(DEVICE_IMAGE(varying), stream);
    single_kernel[MIRROR_MIX] = DEVICE_KERNEL(vary_mix);
    single_kernel[MIRROR_XOR] = DEVICE_KERNEL(vary_xor);
    single_kernel[MIRROR_ROT] = DEVICE_KERNEL(vary_rot);
    pair_kernel = DEVICE_KERNEL(vary_pair);
    unsigned *arrays = device_alloc(sizeof expect);
    device_put(arrays, expect, sizeof expect);
    struct target device = {{arrays, arrays + CELLS}, device_single, device_pair};
    struct target host = {{expect, expect + CELLS}, host_single, host_pair};
    double began = report_clock();
    run(&device, phases, length, every, wait);
    device_sync();
    double seconds = report_clock() - began;
    run(&host, phases, length, every, 0);
    int rc = finish(expect, &device, seconds);
    device_free(arrays);
    device_close();
    return rc;
}
