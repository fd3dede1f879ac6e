/* tools/bench/overlap_bench.c - batches that come from pinned memory, go through kernels and back, in two streams in
 * turn: copies of one batch beside kernels of the other. How long do two batches take: call by call, as one graph of
 * two branches written by hand?
 * Calls      rig.h, tests/apps/mirror.h
 * Usage      overlap_bench --help
 * Promise    the last two batches are computed again on the host and compared, bit for bit; a wrong result prints no
 *            number and exits with 1. Batches of all iterations are the same two: nothing but order is at stake
 * Start at   main(), then iteration()                                                      */
#include "tests/apps/mirror.h"
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, BATCHES = 2 };

struct settings {
    int graph, sync;
    unsigned kernels; /* of a batch */
    unsigned cells;   /* words of a batch, a multiple of BLOCK */
    struct rig_plan plan;
};

struct batch {
    CUstream stream;
    unsigned *in, *out; /* pinned */
    CUdeviceptr cells;
};

struct bench {
    struct settings set;
    struct rig rig;
    struct batch batch[BATCHES];
    CUgraphExec exec;
};

static size_t bytes(const struct bench *b)
{
    return b->set.cells * sizeof(unsigned);
}

static void launch(struct bench *b, const struct batch *t, unsigned k)
{
    unsigned a = mirror_word(0, k);
    CUdeviceptr cells = t->cells;
    void *args[] = {&cells, &a};
    RIG(cuLaunchKernel(b->rig.kernel[k % MIRROR_KERNELS], b->set.cells / BLOCK, 1, 1, BLOCK, 1, 1,
                       0, t->stream, args, NULL));
}

static CUgraphNode add_kernel(struct bench *b, CUgraph graph, const CUgraphNode *after,
                              const struct batch *t, unsigned k)
{
    unsigned a = mirror_word(0, k);
    CUdeviceptr cells = t->cells;
    void *args[] = {&cells, &a};
    CUgraphNode node;
    const CUDA_KERNEL_NODE_PARAMS p = {.func = b->rig.kernel[k % MIRROR_KERNELS],
                                       .gridDimX = b->set.cells / BLOCK,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = BLOCK,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = args};
    RIG(cuGraphAddKernelNode(&node, graph, after, 1, &p));
    return node;
}

static void build(struct bench *b)
{
    CUgraph graph;
    RIG(cuGraphCreate(&graph, 0));
    for (int i = 0; i < BATCHES; i++) {
        const struct batch *t = &b->batch[i];
        CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = t->in,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = t->cells,
                            .WidthInBytes = bytes(b),
                            .Height = 1,
                            .Depth = 1};
        CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = t->cells,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = t->out,
                             .WidthInBytes = bytes(b),
                             .Height = 1,
                             .Depth = 1};
        CUgraphNode last;
        RIG(cuGraphAddMemcpyNode(&last, graph, NULL, 0, &in, b->rig.ctx));
        for (unsigned k = 0; k < b->set.kernels; k++)
            last = add_kernel(b, graph, &last, t, k);
        CUgraphNode end;
        RIG(cuGraphAddMemcpyNode(&end, graph, &last, 1, &out, b->rig.ctx));
    }
    RIG(cuGraphInstantiate(&b->exec, graph, 0));
    RIG(cuGraphDestroy(graph));
    RIG(cuGraphUpload(b->exec, b->rig.stream));
    RIG(cuStreamSynchronize(b->rig.stream));
}

static void iteration(struct bench *b)
{
    if (b->set.graph) {
        RIG(cuGraphLaunch(b->exec, b->rig.stream));
        return;
    }
    for (int i = 0; i < BATCHES; i++) {
        const struct batch *t = &b->batch[i];
        RIG(cuMemcpyHtoDAsync(t->cells, t->in, bytes(b), t->stream));
        for (unsigned k = 0; k < b->set.kernels; k++)
            launch(b, t, k);
        RIG(cuMemcpyDtoHAsync(t->out, t->cells, bytes(b), t->stream));
    }
}

static double block(void *bench)
{
    struct bench *b = bench;
    const uint64_t began = rig_wall_ns();
    for (unsigned long n = 0; n < b->set.plan.length; n++) {
        iteration(b);
        if (b->set.sync)
            RIG(cuCtxSynchronize());
    }
    RIG(cuCtxSynchronize());
    return (double)(rig_wall_ns() - began) * 1e-3 / (double)b->set.plan.length;
}

static int right(const struct bench *b)
{
    int ok = 1;
    for (int i = 0; i < BATCHES; i++) {
        unsigned *x = b->batch[i].in; /* no longer needed */
        for (unsigned k = 0; k < b->set.kernels; k++)
            mirror_launch(k % MIRROR_KERNELS, x, mirror_word(0, k), b->set.cells);
        ok &= !memcmp(x, b->batch[i].out, bytes(b));
    }
    return ok;
}

static void open_bench(struct bench *b)
{
    rig_open(&b->rig);
    for (int i = 0; i < BATCHES; i++) {
        struct batch *t = &b->batch[i];
        RIG(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
        RIG(cuMemHostAlloc((void **)&t->in, bytes(b), 0));
        RIG(cuMemHostAlloc((void **)&t->out, bytes(b), 0));
        memset(t->out, 0, bytes(b));
        t->cells = rig_alloc(bytes(b));
        for (unsigned k = 0; k < b->set.cells; k++)
            t->in[k] = mirror_word((unsigned long)i + 1, k);
    }
    if (b->set.graph)
        build(b);
}

static void usage(FILE *to)
{
    fputs("overlap_bench [OPTION]...\n"
          "  --graph      one graph of two branches, written by hand (call by call)\n"
          "  --kernels N  of a batch (16)              --kib N     of a batch (256)\n"
          "  --sync       wait after each two batches\n" RIG_PLAN_USAGE,
          to);
}

static const struct option long_options[] = {
    {"graph", 0, 0, 'g'}, {"kernels", 1, 0, 'k'}, {"kib", 1, 0, 'c'}, {"sync", 0, 0, 's'},
    RIG_PLAN_OPTIONS,     {"help", 0, 0, 'h'},    {0, 0, 0, 0},
};

static void read_options(struct settings *s, int argc, char **argv)
{
    int c;
    *s = (struct settings){.kernels = 16, .cells = 256 * 256, .plan = RIG_PLAN};
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'g')
            s->graph = 1;
        else if (c == 'k')
            s->kernels = (unsigned)rig_number("--kernels", optarg, 1, 10000);
        else if (c == 'c')
            s->cells = (unsigned)rig_number("--kib", optarg, 1, 65536) * 256;
        else if (c == 's')
            s->sync = 1;
        else if (!rig_plan_option(&s->plan, c, optarg)) {
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    const struct settings *s = &b.set;
    char what[256];
    read_options(&b.set, argc, argv);
    open_bench(&b);
    const struct rig_summary summary = rig_measure(&s->plan, block, &b);
    if (!right(&b)) {
        fprintf(stderr, "overlap_bench: WRONG RESULT, %s\n", s->graph ? "graph" : "eager");
        return 1;
    }
    snprintf(what, sizeof what,
             "\"mode\": \"%s\", \"kernels\": %u, \"kib\": %u, \"sync\": %s, "
             "\"iterations_per_block\": %lu, \"verified\": true",
             s->graph ? "graph" : "eager", s->kernels, s->cells / 256, s->sync ? "true" : "false",
             s->plan.length);
    rig_print(&b.rig, "overlap", what, "us per two batches", summary);
    return 0;
}
