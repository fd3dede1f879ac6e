/* tools/bench/aside_cost.c - how much CPU does a launch cost where nothing ever repeats?
 * Calls      rig.h
 * Usage      aside_cost [--launches N] [--rounds N] [--grids N] [--new]
 *            Run with and without the shim, interleaved; the difference is what stepping aside
 *            costs. --new gives every launch a shape never seen before in the process.
 * Promise    kernel, grid, block and argument come from a generator with a period of 2^64, made
 *            before the clock starts; each round ends with a synchronisation, not counted
 * Start at   aside_loop()                                                       */
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

struct item {
    CUfunction f;
    unsigned a, grid, block, shared;
};

struct bench {
    struct rig rig;
    struct item *items;
    CUdeviceptr x;
    long launches, rounds, grids;
    int always_new;
    uint64_t random;
    unsigned long made;
};

static unsigned draw(struct bench *b)
{
    uint64_t v = b->random += 0x9e3779b97f4a7c15ull;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return (unsigned)((v ^ (v >> 31)) >> 16);
}

static void make_items(struct bench *b)
{
    for (long i = 0; i < b->launches; i++, b->made++) {
        struct item *it = &b->items[i];
        it->f = b->rig.kernel[RIG_NULL];
        it->a = draw(b);
        it->grid = 1 + draw(b) % (unsigned)b->grids;
        it->block = 32 * (1 + draw(b) % 4);
        if (b->always_new) {
            it->grid = 1 + (unsigned)(b->made % 64);
            it->block = 1 + (unsigned)(b->made / 64 % 32);
            it->shared = (unsigned)(b->made / 2048 % 49153); /* bytes; what any kernel may have */
        }
    }
}

/* Not inlined: callgrind counts what happens below it. */
__attribute__((noinline)) static void aside_loop(struct bench *b)
{
    for (long i = 0; i < b->launches; i++) {
        struct item *it = &b->items[i];
        void *args[] = {&b->x, &it->a};
        if (cuLaunchKernel(it->f, it->grid, 1, 1, it->block, 1, 1, it->shared, b->rig.stream, args,
                           NULL) != CUDA_SUCCESS)
            exit(1);
    }
}

static double round_of(struct bench *b)
{
    make_items(b);
    uint64_t began = rig_cpu_ns();
    aside_loop(b);
    uint64_t spent = rig_cpu_ns() - began;
    RIG(cuStreamSynchronize(b->rig.stream));
    return (double)spent / (double)b->launches;
}

static void read_options(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"launches", 1, 0, 'l'}, {"rounds", 1, 0, 'r'}, {"grids", 1, 0, 'g'},
        {"new", 0, 0, 'n'},      {0, 0, 0, 0},
    };
    int c;
    b->launches = 500; /* half of what the driver queues before a launch blocks */
    b->rounds = 1000;
    b->grids = 16;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'l')
            b->launches = rig_number("--launches", optarg, 1, 10000000);
        else if (c == 'r')
            b->rounds = rig_number("--rounds", optarg, 1, 10000000);
        else if (c == 'g')
            b->grids = rig_number("--grids", optarg, 1, 4096);
        else if (c == 'n')
            b->always_new = 1;
        else
            exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    char what[256];
    read_options(&b, argc, argv);
    double *samples = calloc((size_t)b.rounds, sizeof *samples);
    b.items = calloc((size_t)b.launches, sizeof *b.items);
    if (!samples || !b.items)
        return 1;
    rig_open(&b.rig);
    b.x = rig_alloc(4096);
    for (int warm = 0; warm < 100; warm++)
        round_of(&b);
    for (long i = 0; i < b.rounds; i++)
        samples[i] = round_of(&b);
    snprintf(what, sizeof what, "\"shapes\": \"%s\", \"launches_per_round\": %ld, \"grids\": %ld",
             b.always_new ? "new" : "random", b.launches, b.grids);
    rig_print(&b.rig, "aside_cost", what, "ns of thread CPU per launch",
              rig_summarize(samples, (size_t)b.rounds));
    free(samples);
    free(b.items);
    return 0;
}
