/* tools/bench/chain_bench.c - how long does an iteration of many small kernels take: one by one,
 * as a graph written by hand, as graphs whose every node an expert patches?
 * Calls      rig.h, tests/apps/mirror.h
 * Usage      chain_bench --help
 * Promise    every launch of every iteration is computed again on the host and the result compared,
 *            bit for bit; a wrong result prints no number and exits with 1
 * Start at   main(), then iteration_eager() and iteration_patched()                      */
#include "tests/apps/mirror.h"
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, MAX_GRID = 8, CELLS = BLOCK * MAX_GRID, SLICES = 8, MAX_EXECS = 16 };

enum mode { MODE_EAGER, MODE_GRAPH, MODE_PATCH };

struct settings {
    enum mode mode;
    unsigned kernels;
    unsigned unroll; /* graph: iterations in one graph */
    unsigned parts;  /* patch: graphs that make one iteration, launched as they are patched */
    unsigned execs;  /* patch: whole sets of them, used in rotation */
    unsigned grid;   /* blocks of a launch, unless random */
    int sync, vary, random;
    unsigned long host_ns; /* host work before each launch */
    struct rig_plan plan;
};

/* One launch, as the plan says; x is a slice of the array. */
struct launch {
    unsigned kernel, grid, slice, a;
};

/* A graph of consecutive launches of one iteration (or of several, unrolled). */
struct part {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode *nodes;
    unsigned first, count;
};

struct bench {
    struct settings set;
    struct rig rig;
    CUdeviceptr array;
    struct part *part;  /* execs * parts of them; mode graph has one */
    unsigned long done; /* iterations so far */
};

static struct launch plan(const struct settings *s, unsigned long i, unsigned k)
{
    unsigned w = mirror_word(s->vary || s->random ? i : 0, k);
    struct launch l = {k % MIRROR_KERNELS, s->grid, 0, w};
    if (s->vary || s->random)
        l.slice = (unsigned)(i % SLICES);
    if (s->random) {
        unsigned shape = mirror_word(i ^ 0x5bd1e995u, k);
        l.kernel = shape % MIRROR_KERNELS;
        l.grid = 1 + (shape >> 8) % MAX_GRID;
    }
    return l;
}

static CUdeviceptr slice_of(const struct bench *b, const struct launch *l)
{
    return b->array + (CUdeviceptr)l->slice * CELLS * sizeof(unsigned);
}

static void work(unsigned long ns)
{
    uint64_t until = rig_wall_ns() + ns;
    while (ns && rig_wall_ns() < until)
        ;
}

static void iteration_eager(struct bench *b, unsigned long i)
{
    for (unsigned k = 0; k < b->set.kernels; k++) {
        struct launch l = plan(&b->set, i, k);
        CUdeviceptr x = slice_of(b, &l);
        void *args[] = {&x, &l.a};
        work(b->set.host_ns);
        RIG(cuLaunchKernel(b->rig.kernel[l.kernel], l.grid, 1, 1, BLOCK, 1, 1, 0, b->rig.stream,
                           args, NULL));
    }
}

static void fill(const struct bench *b, const struct launch *l, CUDA_KERNEL_NODE_PARAMS *p)
{
    memset(p, 0, sizeof *p);
    p->func = b->rig.kernel[l->kernel];
    p->gridDimX = l->grid;
    p->blockDimX = BLOCK;
    p->gridDimY = p->gridDimZ = p->blockDimY = p->blockDimZ = 1;
}

/* A chain of count launches, those of iteration i from its launch first on; past the end of the
 * iteration the next one begins. */
static void build(struct bench *b, struct part *p, unsigned long i, unsigned first, unsigned count)
{
    p->first = first;
    p->count = count;
    p->nodes = calloc(count, sizeof *p->nodes);
    if (!p->nodes)
        exit(1);
    RIG(cuGraphCreate(&p->graph, 0));
    for (unsigned n = 0; n < count; n++) {
        unsigned k = first + n;
        struct launch l = plan(&b->set, i + k / b->set.kernels, k % b->set.kernels);
        CUdeviceptr x = slice_of(b, &l);
        void *args[] = {&x, &l.a};
        CUDA_KERNEL_NODE_PARAMS params;
        fill(b, &l, &params);
        params.kernelParams = args;
        RIG(cuGraphAddKernelNode(&p->nodes[n], p->graph, n ? &p->nodes[n - 1] : NULL, n != 0,
                                 &params));
    }
    RIG(cuGraphInstantiate(&p->exec, p->graph, 0));
    RIG(cuGraphUpload(p->exec, b->rig.stream));
}

static void build_all(struct bench *b)
{
    const struct settings *s = &b->set;
    if (s->mode == MODE_EAGER)
        return;
    b->part = calloc((size_t)s->execs * s->parts, sizeof *b->part);
    if (!b->part)
        exit(1);
    if (s->mode == MODE_GRAPH)
        build(b, &b->part[0], 0, 0, s->kernels * s->unroll);
    for (unsigned e = 0; s->mode == MODE_PATCH && e < s->execs; e++)
        for (unsigned p = 0; p < s->parts; p++) {
            unsigned first = s->kernels * p / s->parts;
            unsigned end = s->kernels * (p + 1) / s->parts;
            build(b, &b->part[e * s->parts + p], e, first, end - first);
        }
    RIG(cuStreamSynchronize(b->rig.stream));
}

static void patch(struct bench *b, struct part *p, unsigned long i)
{
    for (unsigned n = 0; n < p->count; n++) {
        struct launch l = plan(&b->set, i, p->first + n);
        CUdeviceptr x = slice_of(b, &l);
        void *args[] = {&x, &l.a};
        CUDA_KERNEL_NODE_PARAMS params;
        fill(b, &l, &params);
        params.kernelParams = args;
        RIG(cuGraphExecKernelNodeSetParams(p->exec, p->nodes[n], &params));
    }
}

static void iteration_patched(struct bench *b, unsigned long i)
{
    struct part *set = &b->part[(i % b->set.execs) * b->set.parts];
    for (unsigned p = 0; p < b->set.parts; p++) {
        work(b->set.host_ns);
        patch(b, &set[p], i);
        RIG(cuGraphLaunch(set[p].exec, b->rig.stream));
    }
}

/* Returns how many iterations it ran. */
static unsigned long step(struct bench *b, unsigned long i)
{
    switch (b->set.mode) {
    case MODE_EAGER:
        iteration_eager(b, i);
        return 1;
    case MODE_GRAPH:
        work(b->set.host_ns);
        RIG(cuGraphLaunch(b->part[0].exec, b->rig.stream));
        return b->set.unroll;
    case MODE_PATCH:
        iteration_patched(b, i);
        return 1;
    }
    return 1;
}

/* Microseconds of wall clock an iteration of this block took. */
static double block(void *bench)
{
    struct bench *b = bench;
    unsigned long first = b->done;
    uint64_t began = rig_wall_ns();
    while (b->done - first < b->set.plan.length) {
        b->done += step(b, b->done);
        if (b->set.sync)
            RIG(cuStreamSynchronize(b->rig.stream));
    }
    RIG(cuStreamSynchronize(b->rig.stream));
    return (double)(rig_wall_ns() - began) * 1e-3 / (double)(b->done - first);
}

static int right(struct bench *b)
{
    static unsigned expect[SLICES * CELLS], end[SLICES * CELLS];
    for (unsigned long i = 0; i < b->done; i++)
        for (unsigned k = 0; k < b->set.kernels; k++) {
            struct launch l = plan(&b->set, i, k);
            mirror_launch(l.kernel, expect + l.slice * CELLS, l.a, l.grid * BLOCK);
        }
    RIG(cuMemcpyDtoH(end, b->array, sizeof end));
    return memcmp(end, expect, sizeof end) == 0;
}

static void report(const struct bench *b, const char *name, struct rig_summary summary)
{
    const struct settings *s = &b->set;
    char what[512];
    snprintf(
        what, sizeof what,
        "\"mode\": \"%s\", \"kernels\": %u, \"sync\": %s, \"args\": \"%s\", \"shape\": \"%s\", "
        "\"unroll\": %u, \"parts\": %u, \"execs\": %u, \"grid\": %u, \"host_ns\": %lu, "
        "\"iterations_per_block\": %lu, \"verified\": true",
        name, s->kernels, s->sync ? "true" : "false",
        s->vary || s->random ? "all change" : "constant", s->random ? "random" : "fixed", s->unroll,
        s->parts, s->execs, s->grid, s->host_ns, s->plan.length);
    rig_print(&b->rig, "chain", what, "us per iteration", summary);
}

static void usage(FILE *to)
{
    fputs(
        "chain_bench [OPTION]...\n"
        "  --mode eager|graph|patch|pipelined  (pipelined: patch in 3 parts, or --parts, --execs)\n"
        "  --kernels N   launches in an iteration (120)    --unroll N  iterations in a graph (1)\n"
        "  --parts N     graphs an iteration is cut into   --execs N   sets used in rotation\n"
        "  --sync        wait after each iteration         --vary      every argument changes\n"
        "  --random      kernel and grid by chance: no sequence recurs\n"
        "  --grid N      blocks of 64 threads (4)          --host NS   host work before a "
        "launch\n" RIG_PLAN_USAGE,
        to);
}

static const struct option long_options[] = {
    {"mode", 1, 0, 'm'},  {"kernels", 1, 0, 'k'}, {"unroll", 1, 0, 'u'}, {"parts", 1, 0, 'p'},
    {"execs", 1, 0, 'e'}, {"sync", 0, 0, 's'},    {"vary", 0, 0, 'v'},   {"random", 0, 0, 'r'},
    {"grid", 1, 0, 'g'},  {"host", 1, 0, 'H'},    RIG_PLAN_OPTIONS,      {"help", 0, 0, 'h'},
    {0, 0, 0, 0},
};

static const char *set_mode(struct settings *s, const char *name)
{
    if (strcmp(name, "eager") == 0)
        s->mode = MODE_EAGER;
    else if (strcmp(name, "graph") == 0)
        s->mode = MODE_GRAPH;
    else if (strcmp(name, "patch") == 0)
        s->mode = MODE_PATCH;
    else if (strcmp(name, "pipelined") == 0) {
        s->mode = MODE_PATCH;
        s->parts = 3;
    } else {
        usage(stderr);
        exit(2);
    }
    return name;
}

static void set_option(struct settings *s, int c, const char *arg)
{
    if (c == 'k')
        s->kernels = (unsigned)rig_number("--kernels", arg, 1, 100000);
    else if (c == 'u')
        s->unroll = (unsigned)rig_number("--unroll", arg, 1, 1000);
    else if (c == 'p')
        s->parts = (unsigned)rig_number("--parts", arg, 1, 1000);
    else if (c == 'e')
        s->execs = (unsigned)rig_number("--execs", arg, 1, MAX_EXECS);
    else if (c == 'g')
        s->grid = (unsigned)rig_number("--grid", arg, 1, MAX_GRID);
    else if (c == 'H')
        s->host_ns = (unsigned long)rig_number("--host", arg, 0, 1000000000);
    else if (c == 's')
        s->sync = 1;
    else if (c == 'v')
        s->vary = 1;
    else if (c == 'r')
        s->random = 1;
    else if (c == 'h') {
        usage(stdout);
        exit(0);
    } else if (!rig_plan_option(&s->plan, c, arg)) {
        usage(stderr);
        exit(2);
    }
}

static const char *read_options(struct settings *s, int argc, char **argv)
{
    const char *name = "eager";
    int c;
    *s = (struct settings){
        .kernels = 120, .unroll = 1, .parts = 1, .execs = 1, .grid = 4, .plan = RIG_PLAN};
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'm')
            name = set_mode(s, optarg);
        else
            set_option(s, c, optarg);
    }
    if (s->mode == MODE_GRAPH && (s->vary || s->random)) {
        fputs("chain_bench: a frozen graph with changing arguments computes a wrong result\n",
              stderr);
        exit(2);
    }
    if (s->mode == MODE_PATCH && s->random) {
        fputs("chain_bench: --random needs --mode eager\n", stderr);
        exit(2);
    }
    if (s->parts > s->kernels)
        s->parts = s->kernels;
    return name;
}

int main(int argc, char **argv)
{
    static struct bench b;
    const char *name = read_options(&b.set, argc, argv);
    rig_open(&b.rig);
    b.array = rig_alloc(SLICES * CELLS * sizeof(unsigned));
    build_all(&b);
    const struct rig_summary summary = rig_measure(&b.set.plan, block, &b);
    if (!right(&b)) {
        fprintf(stderr, "chain_bench: WRONG RESULT in mode %s\n", name);
        return 1;
    }
    report(&b, name, summary);
    return 0;
}
