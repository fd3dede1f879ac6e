/* tools/bench/hold_cost.c - how much CPU does one launch of a repeating sequence cost its thread?
 * Calls      rig.h
 * Usage      hold_cost [--mode loop|graph] [--period N] [--launches N] [--rounds N] [--nodes N]
 *            loop: launches one by one; under the shim they are held, and the few graph launches in
 *            between are driver time. graph: the same number of launches as graphs of --nodes,
 *            written by hand: that driver time. The difference per launch is the shim's own.
 * Promise    thread CPU time of the loop only; each round ends with a synchronisation, not counted,
 *            before the driver's queue (about 1,000 launches or graphs) can fill
 * Start at   hold_loop()                                                        */
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 };

/* Everything a launch needs, made before the clock starts. */
struct item {
    CUfunction f;
    CUdeviceptr x;
    unsigned a, grid;
    void *args[2];
};

struct bench {
    struct rig rig;
    struct item *items;
    long period, launches, rounds, nodes;
    CUgraphExec exec;
};

static void make_items(struct bench *b)
{
    CUdeviceptr x = rig_alloc(4096);
    b->items = calloc((size_t)b->period, sizeof *b->items);
    if (!b->items)
        exit(1);
    for (long i = 0; i < b->period; i++) {
        struct item *it = &b->items[i];
        it->f = b->rig.kernel[RIG_NULL];
        it->x = x;
        it->a = (unsigned)i;
        it->grid = 1 + (unsigned)(i % 4);
        it->args[0] = &it->x;
        it->args[1] = &it->a;
    }
}

/* Not inlined: callgrind counts what happens below it. */
__attribute__((noinline)) static void hold_loop(struct bench *b)
{
    const struct item *it = b->items, *end = b->items + b->period;
    for (long i = 0; i < b->launches; i++) {
        if (cuLaunchKernel(it->f, it->grid, 1, 1, BLOCK, 1, 1, 0, b->rig.stream, (void **)it->args,
                           NULL) != CUDA_SUCCESS)
            exit(1);
        if (++it == end)
            it = b->items;
    }
}

__attribute__((noinline)) static void graph_loop(struct bench *b)
{
    for (long i = 0; i < b->launches; i += b->nodes)
        if (cuGraphLaunch(b->exec, b->rig.stream) != CUDA_SUCCESS)
            exit(1);
}

static void make_graph(struct bench *b)
{
    CUgraph graph;
    CUgraphNode before = NULL, node;
    RIG(cuGraphCreate(&graph, 0));
    for (long i = 0; i < b->nodes; i++) {
        struct item *it = &b->items[i % b->period];
        CUDA_KERNEL_NODE_PARAMS p;
        memset(&p, 0, sizeof p);
        p.func = it->f;
        p.gridDimX = it->grid;
        p.blockDimX = BLOCK;
        p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
        p.kernelParams = it->args;
        RIG(cuGraphAddKernelNode(&node, graph, i ? &before : NULL, i != 0, &p));
        before = node;
    }
    RIG(cuGraphInstantiate(&b->exec, graph, 0));
    RIG(cuGraphUpload(b->exec, b->rig.stream));
    RIG(cuStreamSynchronize(b->rig.stream));
}

static double round_of(struct bench *b, int graph)
{
    uint64_t began = rig_cpu_ns();
    if (graph)
        graph_loop(b);
    else
        hold_loop(b);
    uint64_t spent = rig_cpu_ns() - began;
    RIG(cuStreamSynchronize(b->rig.stream));
    return (double)spent / (double)b->launches;
}

static int read_options(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"mode", 1, 0, 'm'},   {"period", 1, 0, 'p'}, {"launches", 1, 0, 'l'},
        {"rounds", 1, 0, 'r'}, {"nodes", 1, 0, 'n'},  {0, 0, 0, 0},
    };
    int graph = 0, c;
    b->period = 120;
    b->launches = 8192;
    b->rounds = 201;
    b->nodes = 256;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'm' && strcmp(optarg, "graph") == 0)
            graph = 1;
        else if (c == 'm' && strcmp(optarg, "loop") == 0)
            graph = 0;
        else if (c == 'p')
            b->period = rig_number("--period", optarg, 1, 100000);
        else if (c == 'l')
            b->launches = rig_number("--launches", optarg, 1, 100000000);
        else if (c == 'r')
            b->rounds = rig_number("--rounds", optarg, 1, 1000000);
        else if (c == 'n')
            b->nodes = rig_number("--nodes", optarg, 1, 100000);
        else
            exit(2);
    }
    return graph;
}

int main(int argc, char **argv)
{
    static struct bench b;
    char what[256];
    int graph = read_options(&b, argc, argv);
    double *samples = calloc((size_t)b.rounds, sizeof *samples);
    if (!samples)
        return 1;
    rig_open(&b.rig);
    make_items(&b);
    if (graph)
        make_graph(&b);
    for (int warm = 0; warm < 20; warm++)
        round_of(&b, graph);
    for (long i = 0; i < b.rounds; i++)
        samples[i] = round_of(&b, graph);
    snprintf(what, sizeof what,
             "\"mode\": \"%s\", \"period\": %ld, \"launches_per_round\": %ld, \"nodes\": %ld, "
             "\"argument_bytes\": 12",
             graph ? "graph" : "loop", b.period, b.launches, graph ? b.nodes : 0);
    rig_print(&b.rig, "hold_cost", what, "ns of thread CPU per launch",
              rig_summarize(samples, (size_t)b.rounds));
    free(samples);
    free(b.items);
    return 0;
}
