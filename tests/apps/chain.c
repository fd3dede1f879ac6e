/* tests/apps/chain.c - a long chain of tiny kernels; every argument changes in every iteration.
 * Calls      device_layer.h, kernels/varying.cu, mirror.h
 * Usage      chain [-k KERNELS] [-i ITERATIONS] [-s] [-d]       -s waits after each iteration
 * Promise    exits with 1 unless the device's result is the host's, bit for bit
 * Start at   iteration()                                                        */
#include "tests/apps/device_layer.h"
#include "tests/apps/mirror.h"
#include "tests/apps/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64, GRID = 2, CELLS = BLOCK * GRID, SLICES = 8 };

DEVICE_DECLARE(vary_mix);
DEVICE_DECLARE(vary_xor);
DEVICE_DECLARE(vary_rot);

struct chain {
    const void *kernel[MIRROR_KERNELS];
    unsigned *slices;                /* on the device */
    unsigned expect[SLICES * CELLS]; /* the host's own */
};

static void iteration(struct chain *c, unsigned long i, unsigned kernels)
{
    unsigned slice = (unsigned)(i % SLICES);
    for (unsigned k = 0; k < kernels; k++) {
        unsigned *x = c->slices + slice * CELLS;
        unsigned a = mirror_word(i, k);
        void *args[] = {&x, &a};
        device_launch(c->kernel[k % MIRROR_KERNELS], GRID, BLOCK, args);
    }
}

static void expect_iteration(struct chain *c, unsigned long i, unsigned kernels)
{
    unsigned slice = (unsigned)(i % SLICES);
    for (unsigned k = 0; k < kernels; k++)
        mirror_launch(k % MIRROR_KERNELS, c->expect + slice * CELLS, mirror_word(i, k), CELLS);
}

static int finish(struct chain *c, double seconds)
{
    static unsigned end[SLICES * CELLS];
    device_get(end, c->slices, sizeof end);
    report_result("chain", report_hash(REPORT_HASH, end, sizeof end), device_launches(), seconds);
    if (memcmp(end, c->expect, sizeof end) == 0)
        return 0;
    puts("chain: WRONG: the host computes another result");
    return 1;
}

int main(int argc, char **argv)
{
    unsigned kernels = 120;
    unsigned long iterations = 300;
    int wait = 0, c;
    enum device_stream stream = DEVICE_STREAM_OWN;
    while ((c = getopt(argc, argv, "k:i:sd")) != -1) {
        if (c == 'k')
            kernels = (unsigned)report_number("-k", optarg, 1, 1000000);
        else if (c == 'i')
            iterations = (unsigned long)report_number("-i", optarg, 1, 100000000);
        else if (c == 's')
            wait = 1;
        else if (c == 'd')
            stream = DEVICE_STREAM_LEGACY;
        else
            return 2;
    }
    static struct chain chain;
    device_open(DEVICE_IMAGE(varying), stream);
    chain.kernel[MIRROR_MIX] = DEVICE_KERNEL(vary_mix);
    chain.kernel[MIRROR_XOR] = DEVICE_KERNEL(vary_xor);
    chain.kernel[MIRROR_ROT] = DEVICE_KERNEL(vary_rot);
    chain.slices = device_alloc(sizeof chain.expect);
    device_put(chain.slices, chain.expect, sizeof chain.expect);
    double began = report_clock();
    for (unsigned long i = 0; i < iterations; i++) {
        iteration(&chain, i, kernels);
        if (wait)
            device_sync();
    }
    device_sync();
    double seconds = report_clock() - began;
    for (unsigned long i = 0; i < iterations; i++)
        expect_iteration(&chain, i, kernels);
    int rc = finish(&chain, seconds);
    device_free(chain.slices);
    device_close();
    return rc;
}
