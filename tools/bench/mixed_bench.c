/* tools/bench/mixed_bench.c - a chain of kernels with something else after each: a memset, a device copy, an event
 * record. How long does an iteration take: call by call, as one graph written by hand, as graphs with the calls
 * between?
 * Calls      rig.h, tests/apps/mirror.h
 * Usage      mixed_bench --help
 * Promise    the kernels' array, what was set and what was copied are computed again on the host and compared, bit for
 *            bit; a wrong result prints no number and exits with 1
 * Start at   main(), then iteration()                                                      */
#include "tests/apps/mirror.h"
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, GRID = 4, CELLS = BLOCK * GRID, SET_BYTES = 1024, COPY_BYTES = 4096 };

enum op { OP_MEMSET, OP_COPY, OP_RECORD, OPS };
static const char *const op_names[OPS] = {"memset", "copy", "record"};
enum mode { MODE_EAGER, MODE_GRAPH, MODE_SPLIT, MODES };
static const char *const mode_names[MODES] = {"eager", "graph", "split"};

struct settings {
    enum op op;
    enum mode mode;
    unsigned pairs; /* of a kernel and an op, in an iteration */
    unsigned every; /* kernels before each op */
    int sync;
    struct rig_plan plan;
};

struct bench {
    struct settings set;
    struct rig rig;
    CUdeviceptr array, from, to, filled;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphExec *part; /* split: the kernels before each op */
    unsigned long done;
};

static unsigned value(unsigned pair)
{
    return mirror_word(7, pair);
}

static void op(struct bench *b, unsigned pair)
{
    switch (b->set.op) {
    case OP_MEMSET:
        RIG(cuMemsetD32Async(b->filled, value(pair), SET_BYTES / 4, b->rig.stream));
        break;
    case OP_COPY:
        RIG(cuMemcpyDtoDAsync(b->to, b->from + pair % 2 * COPY_BYTES, COPY_BYTES, b->rig.stream));
        break;
    default:
        RIG(cuEventRecord(b->event, b->rig.stream));
    }
}

static void launch(struct bench *b, unsigned k)
{
    unsigned a = mirror_word(0, k);
    void *args[] = {&b->array, &a};
    RIG(cuLaunchKernel(b->rig.kernel[k % MIRROR_KERNELS], GRID, 1, 1, BLOCK, 1, 1, 0, b->rig.stream,
                       args, NULL));
}

static CUgraphNode add_kernel(struct bench *b, CUgraph graph, const CUgraphNode *after, unsigned k)
{
    unsigned a = mirror_word(0, k);
    void *args[] = {&b->array, &a};
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS p = {.func = b->rig.kernel[k % MIRROR_KERNELS],
                                 .gridDimX = GRID,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = BLOCK,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    RIG(cuGraphAddKernelNode(&node, graph, after, after != NULL, &p));
    return node;
}

static CUgraphNode add_op(struct bench *b, CUgraph graph, const CUgraphNode *after, unsigned pair)
{
    CUgraphNode node = NULL;
    const CUDA_MEMSET_NODE_PARAMS set = {b->filled, 0, value(pair), 4, SET_BYTES / 4, 1};
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = b->from + pair % 2 * COPY_BYTES,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = b->to,
                                .WidthInBytes = COPY_BYTES,
                                .Height = 1,
                                .Depth = 1};
    if (b->set.op == OP_MEMSET)
        RIG(cuGraphAddMemsetNode(&node, graph, after, 1, &set, b->rig.ctx));
    else if (b->set.op == OP_COPY)
        RIG(cuGraphAddMemcpyNode(&node, graph, after, 1, &copy, b->rig.ctx));
    else
        RIG(cuGraphAddEventRecordNode(&node, graph, after, 1, b->event));
    return node;
}

static void build(struct bench *b)
{
    CUgraphNode last, *after = NULL;
    const unsigned every = b->set.every;
    RIG(cuGraphCreate(&b->graph, 0));
    b->part = calloc(b->set.pairs, sizeof *b->part);
    if (!b->part)
        exit(1);
    for (unsigned pair = 0; pair < b->set.pairs; pair++) {
        CUgraph kernels;
        CUgraphNode part_last, *part_after = NULL;
        RIG(cuGraphCreate(&kernels, 0));
        for (unsigned k = pair * every; k < (pair + 1) * every; k++) {
            last = add_kernel(b, b->graph, after, k);
            part_last = add_kernel(b, kernels, part_after, k);
            after = &last;
            part_after = &part_last;
        }
        last = add_op(b, b->graph, after, pair);
        RIG(cuGraphInstantiate(&b->part[pair], kernels, 0));
        RIG(cuGraphUpload(b->part[pair], b->rig.stream));
    }
    RIG(cuGraphInstantiate(&b->exec, b->graph, 0));
    RIG(cuGraphUpload(b->exec, b->rig.stream));
    RIG(cuStreamSynchronize(b->rig.stream));
}

static void iteration(struct bench *b)
{
    if (b->set.mode == MODE_GRAPH) {
        RIG(cuGraphLaunch(b->exec, b->rig.stream));
        return;
    }
    for (unsigned pair = 0; pair < b->set.pairs; pair++) {
        if (b->set.mode == MODE_SPLIT)
            RIG(cuGraphLaunch(b->part[pair], b->rig.stream));
        for (unsigned k = 0; b->set.mode == MODE_EAGER && k < b->set.every; k++)
            launch(b, pair * b->set.every + k);
        op(b, pair);
    }
}

static double block(void *bench)
{
    struct bench *b = bench;
    unsigned long first = b->done;
    uint64_t began = rig_wall_ns();
    for (; b->done - first < b->set.plan.length; b->done++) {
        iteration(b);
        if (b->set.sync)
            RIG(cuStreamSynchronize(b->rig.stream));
    }
    RIG(cuCtxSynchronize());
    return (double)(rig_wall_ns() - began) * 1e-3 / (double)(b->done - first);
}

static int right(struct bench *b)
{
    static unsigned expect[CELLS], end[CELLS], words[COPY_BYTES / 4];
    const unsigned last = b->set.pairs - 1;
    for (unsigned long i = 0; i < b->done; i++)
        for (unsigned k = 0; k < b->set.pairs * b->set.every; k++)
            mirror_launch(k % MIRROR_KERNELS, expect, mirror_word(0, k), CELLS);
    RIG(cuMemcpyDtoH(end, b->array, sizeof end));
    int ok = !memcmp(end, expect, sizeof end);
    RIG(cuMemcpyDtoH(words, b->set.op == OP_COPY ? b->to : b->filled, sizeof words));
    for (unsigned i = 0; i < COPY_BYTES / 4; i++) {
        unsigned want = b->set.op == OP_COPY ? mirror_word(last % 2, i) : value(last);
        if (b->set.op == OP_RECORD || (b->set.op == OP_MEMSET && i >= SET_BYTES / 4))
            want = 0;
        ok &= words[i] == want;
    }
    return ok && cuEventQuery(b->event) == CUDA_SUCCESS;
}

static void open_bench(struct bench *b)
{
    static unsigned source[2 * COPY_BYTES / 4];
    rig_open(&b->rig);
    b->array = rig_alloc(CELLS * sizeof(unsigned));
    b->from = rig_alloc(sizeof source);
    b->to = rig_alloc(COPY_BYTES);
    b->filled = rig_alloc(COPY_BYTES);
    for (unsigned i = 0; i < 2 * COPY_BYTES / 4; i++)
        source[i] = mirror_word(i / (COPY_BYTES / 4), i % (COPY_BYTES / 4));
    RIG(cuMemcpyHtoD(b->from, source, sizeof source));
    RIG(cuEventCreate(&b->event, CU_EVENT_DISABLE_TIMING));
    if (b->set.mode != MODE_EAGER)
        build(b);
}

static void usage(FILE *to)
{
    fputs("mixed_bench [OPTION]...\n"
          "  --op memset|copy|record   1 KB, 4 KB, an event without timing (memset)\n"
          "  --mode eager|graph|split  split: graphs of the kernels, the ops between them (eager)\n"
          "  --pairs N    ops in an iteration (32)     --every N   kernels before each (1)\n"
          "  --sync       wait after each iteration\n" RIG_PLAN_USAGE,
          to);
}

static const struct option long_options[] = {
    {"op", 1, 0, 'o'},   {"mode", 1, 0, 'm'}, {"pairs", 1, 0, 'p'}, {"every", 1, 0, 'e'},
    {"sync", 0, 0, 's'}, RIG_PLAN_OPTIONS,    {"help", 0, 0, 'h'},  {0, 0, 0, 0},
};

static void read_options(struct settings *s, int argc, char **argv)
{
    int c;
    *s = (struct settings){.pairs = 32, .every = 1, .plan = RIG_PLAN};
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'o')
            s->op = (enum op)rig_one_of(op_names, OPS, optarg, usage);
        else if (c == 'm')
            s->mode = (enum mode)rig_one_of(mode_names, MODES, optarg, usage);
        else if (c == 'p')
            s->pairs = (unsigned)rig_number("--pairs", optarg, 1, 10000);
        else if (c == 'e')
            s->every = (unsigned)rig_number("--every", optarg, 1, 10000);
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
        fprintf(stderr, "mixed_bench: WRONG RESULT, %s, %s\n", op_names[s->op],
                mode_names[s->mode]);
        return 1;
    }
    snprintf(what, sizeof what,
             "\"op\": \"%s\", \"mode\": \"%s\", \"pairs\": %u, \"every\": %u, \"sync\": %s, "
             "\"iterations_per_block\": %lu, \"verified\": true",
             op_names[s->op], mode_names[s->mode], s->pairs, s->every, s->sync ? "true" : "false",
             s->plan.length);
    rig_print(&b.rig, "mixed", what, "us per iteration", summary);
    return 0;
}
