/* tests/apps/cg.c - solves the Poisson equation on a square by conjugate gradients.
 * Calls      device_layer.h, kernels/cg.cu
 * Usage      cg [-n SIZE] [-i ITERATIONS] [-r ITERATIONS_PER_CHECK] [-H] [-d]
 *            -H keeps the scalars on the host: two are read in each iteration
 * Promise    the same iterations and the same bits on every run
 * Start at   iterate_on_device()                                                */
#include "tests/apps/device_layer.h"
#include "tests/apps/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 256, REDUCE_BLOCK = 64, PARTS = 16 };

DEVICE_DECLARE(cg_apply);
DEVICE_DECLARE(cg_dot);
DEVICE_DECLARE(cg_sum);
DEVICE_DECLARE(cg_step);
DEVICE_DECLARE(cg_direction);
DEVICE_DECLARE(cg_axpy);
DEVICE_DECLARE(cg_xpay);

struct solver {
    int size, cells;
    double *x, *r, *p, *q;
    double *partial;
    double *rr, *rr_next, *pq; /* scalars on the device; rr and rr_next change places */
    const void *apply, *dot, *sum, *step, *direction, *axpy, *xpay;
};

static unsigned grid_of(const struct solver *s)
{
    return (unsigned)(s->cells + BLOCK - 1) / BLOCK;
}

static void dot(struct solver *s, double *out, const double *a, const double *b)
{
    int parts = PARTS;
    void *each[] = {&s->partial, &a, &b, &s->cells};
    void *all[] = {&out, &s->partial, &parts};
    device_launch(s->dot, PARTS, REDUCE_BLOCK, each);
    device_launch(s->sum, 1, REDUCE_BLOCK, all);
}

static double read_scalar(const double *p)
{
    double v;
    device_get(&v, p, sizeof v);
    return v;
}

static void apply(struct solver *s)
{
    void *args[] = {&s->q, &s->p, &s->size, &s->size};
    device_launch(s->apply, grid_of(s), BLOCK, args);
}

static void swap_scalars(struct solver *s)
{
    double *old = s->rr;
    s->rr = s->rr_next;
    s->rr_next = old;
}

static void iterate_on_device(struct solver *s)
{
    apply(s);
    dot(s, s->pq, s->p, s->q);
    void *step[] = {&s->x, &s->r, &s->p, &s->q, &s->rr, &s->pq, &s->cells};
    device_launch(s->step, grid_of(s), BLOCK, step);
    dot(s, s->rr_next, s->r, s->r);
    void *direction[] = {&s->p, &s->r, &s->rr_next, &s->rr, &s->cells};
    device_launch(s->direction, grid_of(s), BLOCK, direction);
    swap_scalars(s);
}

static void iterate_on_host(struct solver *s, double *rr)
{
    apply(s);
    dot(s, s->pq, s->p, s->q);
    double alpha = *rr / read_scalar(s->pq);
    double minus = -alpha;
    void *to_x[] = {&s->x, &s->p, &alpha, &s->cells};
    void *to_r[] = {&s->r, &s->q, &minus, &s->cells};
    device_launch(s->axpy, grid_of(s), BLOCK, to_x);
    device_launch(s->axpy, grid_of(s), BLOCK, to_r);
    dot(s, s->rr_next, s->r, s->r);
    double next = read_scalar(s->rr_next);
    double beta = next / *rr;
    void *to_p[] = {&s->p, &s->r, &beta, &s->cells};
    device_launch(s->xpay, grid_of(s), BLOCK, to_p);
    swap_scalars(s);
    *rr = next;
}

static void solver_open(struct solver *s, int size)
{
    size_t bytes = (size_t)size * (size_t)size * sizeof(double);
    double *b = calloc(1, bytes);
    if (!b)
        exit(1);
    s->size = size;
    s->cells = size * size;
    s->x = device_alloc(bytes);
    s->r = device_alloc(bytes);
    s->p = device_alloc(bytes);
    s->q = device_alloc(bytes);
    s->partial = device_alloc(PARTS * sizeof(double));
    s->rr = device_alloc(sizeof(double));
    s->rr_next = device_alloc(sizeof(double));
    s->pq = device_alloc(sizeof(double));
    device_put(s->x, b, bytes); /* zeros */
    for (int i = 0; i < s->cells; i++)
        b[i] = 1.0 + (double)(i % 7) * 0.125;
    device_put(s->r, b, bytes);
    device_put(s->p, b, bytes);
    free(b);
    s->apply = DEVICE_KERNEL(cg_apply);
    s->dot = DEVICE_KERNEL(cg_dot);
    s->sum = DEVICE_KERNEL(cg_sum);
    s->step = DEVICE_KERNEL(cg_step);
    s->direction = DEVICE_KERNEL(cg_direction);
    s->axpy = DEVICE_KERNEL(cg_axpy);
    s->xpay = DEVICE_KERNEL(cg_xpay);
    dot(s, s->rr, s->r, s->r);
}

static void solver_close(struct solver *s)
{
    double *all[] = {s->x, s->r, s->p, s->q, s->partial, s->rr, s->rr_next, s->pq};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device_free(all[i]);
}

static uint64_t checksum(const struct solver *s, double rr)
{
    size_t bytes = (size_t)s->cells * sizeof(double);
    double *x = malloc(bytes);
    if (!x)
        exit(1);
    device_get(x, s->x, bytes);
    uint64_t hash = report_hash(REPORT_HASH, x, bytes);
    free(x);
    return report_hash(hash, &rr, sizeof rr);
}

int main(int argc, char **argv)
{
    int size = 64, iterations = 200, every = 20, on_host = 0, c;
    enum device_stream stream = DEVICE_STREAM_OWN;
    while ((c = getopt(argc, argv, "n:i:r:Hd")) != -1) {
        if (c == 'n')
            size = (int)report_number("-n", optarg, 2, 16384);
        else if (c == 'i')
            iterations = (int)report_number("-i", optarg, 1, 100000000);
        else if (c == 'r')
            every = (int)report_number("-r", optarg, 1, 100000000);
        else if (c == 'H')
            on_host = 1;
        else if (c == 'd')
            stream = DEVICE_STREAM_LEGACY;
        else
            return 2;
    }
    struct solver s;
    device_open(DEVICE_IMAGE(cg), stream);
    solver_open(&s, size);
    double rr = read_scalar(s.rr);
    double first = rr, began = report_clock();
    for (int i = 1; i <= iterations && rr > 0.0; i++) {
        if (on_host)
            iterate_on_host(&s, &rr);
        else
            iterate_on_device(&s);
        if (!on_host && i % every == 0)
            rr = read_scalar(s.rr);
    }
    device_sync();
    double seconds = report_clock() - began;
    rr = read_scalar(s.rr);
    report_result("cg", checksum(&s, rr), device_launches(), seconds);
    printf("cg: squared residual %a of %a\n", rr, first);
    solver_close(&s);
    device_close();
    return 0;
}
