/* tests/apps/stencil.c - heat spreading over a plate: Jacobi sweeps until the change is small.
 * Calls      device_layer.h, kernels/stencil.cu
 * Usage      stencil [-n SIZE] [-i SWEEPS] [-r SWEEPS_PER_CHECK] [-d]
 * Promise    the same sweeps and the same bits on every run; exits with 1 if the API refuses
 * Start at   sweep()                                                            */
#include "tests/apps/device_layer.h"
#include "tests/apps/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 256, REDUCE_BLOCK = 64, PARTS = 16 };

DEVICE_DECLARE(stencil_step);
DEVICE_DECLARE(stencil_change);
DEVICE_DECLARE(stencil_largest);

struct plate {
    int size;
    float *now, *next; /* on the device; they change places after each sweep */
    float *partial, *change;
    const void *step, *compare, *largest;
};

static void plate_open(struct plate *p, int size)
{
    size_t cells = (size_t)size * (size_t)size;
    float *start = calloc(cells, sizeof *start);
    if (!start)
        exit(1);
    for (int i = 0; i < size; i++)
        start[i] = 100.0f; /* one hot edge */
    p->size = size;
    p->now = device_alloc(cells * sizeof(float));
    p->next = device_alloc(cells * sizeof(float));
    p->partial = device_alloc(PARTS * sizeof(float));
    p->change = device_alloc(sizeof(float));
    device_put(p->now, start, cells * sizeof(float));
    device_put(p->next, start, cells * sizeof(float));
    free(start);
    p->step = DEVICE_KERNEL(stencil_step);
    p->compare = DEVICE_KERNEL(stencil_change);
    p->largest = DEVICE_KERNEL(stencil_largest);
}

static void plate_close(struct plate *p)
{
    device_free(p->now);
    device_free(p->next);
    device_free(p->partial);
    device_free(p->change);
}

static void sweep(struct plate *p)
{
    int cells = p->size * p->size;
    void *args[] = {&p->next, &p->now, &p->size, &p->size};
    device_launch(p->step, (unsigned)(cells + BLOCK - 1) / BLOCK, BLOCK, args);
    float *swap = p->now;
    p->now = p->next;
    p->next = swap;
}

static float largest_change(struct plate *p)
{
    int cells = p->size * p->size;
    int parts = PARTS;
    float change;
    void *compare[] = {&p->partial, &p->now, &p->next, &cells};
    void *largest[] = {&p->change, &p->partial, &parts};
    device_launch(p->compare, PARTS, REDUCE_BLOCK, compare);
    device_launch(p->largest, 1, REDUCE_BLOCK, largest);
    device_get(&change, p->change, sizeof change);
    return change;
}

static uint64_t checksum(const struct plate *p, float change)
{
    size_t cells = (size_t)p->size * (size_t)p->size;
    float *end = malloc(cells * sizeof *end);
    if (!end)
        exit(1);
    device_get(end, p->now, cells * sizeof *end);
    uint64_t hash = report_hash(REPORT_HASH, end, cells * sizeof *end);
    free(end);
    return report_hash(hash, &change, sizeof change);
}

int main(int argc, char **argv)
{
    int size = 96, sweeps = 1000, every = 100, c;
    enum device_stream stream = DEVICE_STREAM_OWN;
    while ((c = getopt(argc, argv, "n:i:r:d")) != -1) {
        if (c == 'n')
            size = (int)report_number("-n", optarg, 3, 16384);
        else if (c == 'i')
            sweeps = (int)report_number("-i", optarg, 1, 100000000);
        else if (c == 'r')
            every = (int)report_number("-r", optarg, 1, 100000000);
        else if (c == 'd')
            stream = DEVICE_STREAM_LEGACY;
        else
            return 2;
    }
    struct plate p;
    float change = 0.0f;
    device_open(DEVICE_IMAGE(stencil), stream);
    plate_open(&p, size);
    double began = report_clock();
    for (int i = 1; i <= sweeps; i++) {
        sweep(&p);
        if (i % every == 0)
            change = largest_change(&p);
    }
    device_sync();
    double seconds = report_clock() - began;
    report_result("stencil", checksum(&p, change), device_launches(), seconds);
    printf("stencil: last change %a\n", (double)change);
    plate_close(&p);
    device_close();
    return 0;
}
