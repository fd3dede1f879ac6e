/* tools/bench/streams_bench.c - kernels in several streams: in turn, or forked and joined by events. How long does an
 * iteration take: call by call, as one graph of branches written by hand, as graphs of each stream's chains with
 * events between them?
 * Calls      rig.h, tests/apps/mirror.h
 * Usage      streams_bench --help
 * Promise    each stream has an array; what a fork passes on and a join brings back goes into it. All are computed
 *            again on the host and compared, bit for bit; a wrong result prints no number and exits with 1
 * Start at   main(), then iteration()                                                      */
#include "tests/apps/mirror.h"
#include "tools/bench/rig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, GRID = 4, CELLS = BLOCK * GRID, STREAMS_MOST = 8, ROUNDS_MOST = 64 };

enum pattern { PATTERN_TURNS, PATTERN_FORK, PATTERNS };
static const char *const pattern_names[PATTERNS] = {"turns", "fork"};
enum mode { MODE_EAGER, MODE_GRAPH, MODE_SPLIT, MODES };
static const char *const mode_names[MODES] = {"eager", "graph", "split"};

struct settings {
    enum pattern pattern;
    enum mode mode;
    unsigned streams;
    unsigned rounds; /* in an iteration: each stream has a turn, or there is a fork and a join */
    unsigned run;    /* kernels of a stream in each */
    int sync;
    struct rig_plan plan;
};

struct bench {
    struct settings set;
    struct rig rig;
    CUstream stream[STREAMS_MOST];
    CUdeviceptr array[STREAMS_MOST];
    CUevent out, back[STREAMS_MOST];
    CUgraphExec exec;
    CUgraphExec chain[ROUNDS_MOST + 1][STREAMS_MOST]; /* split */
    unsigned long done;
};

static int forks(const struct bench *b)
{
    return b->set.pattern == PATTERN_FORK;
}

static unsigned word(unsigned stream, unsigned k)
{
    return mirror_word(stream, k);
}

static void run(struct bench *b, unsigned stream, unsigned round)
{
    for (unsigned k = round * b->set.run; k < (round + 1) * b->set.run; k++) {
        unsigned a = word(stream, k);
        void *args[] = {&b->array[stream], &a};
        RIG(cuLaunchKernel(b->rig.kernel[k % MIRROR_KERNELS], GRID, 1, 1, BLOCK, 1, 1, 0,
                           b->stream[stream], args, NULL));
    }
}

/* The stream mixes what another one has made into its own. */
static void take(struct bench *b, unsigned to, unsigned from)
{
    unsigned shift = from, n = CELLS;
    void *args[] = {&b->array[to], &b->array[from], &shift, &n};
    RIG(cuLaunchKernel(b->rig.kernel[RIG_PAIR], GRID, 1, 1, BLOCK, 1, 1, 0, b->stream[to], args,
                       NULL));
}

/* What a stream does without looking at any other: in a round of a fork, behind its last one for the first stream; in
 * turns all that it does in an iteration. */
static void chain_calls(struct bench *b, unsigned stream, unsigned round)
{
    if (!forks(b)) {
        for (unsigned r = 0; r < b->set.rounds; r++)
            run(b, stream, r);
        return;
    }
    if (stream)
        take(b, stream, 0);
    for (unsigned other = 1; !stream && round && other < b->set.streams; other++)
        take(b, 0, other);
    if (round < b->set.rounds)
        run(b, stream, round);
}

static void chain(struct bench *b, unsigned stream, unsigned round)
{
    if (b->set.mode == MODE_SPLIT)
        RIG(cuGraphLaunch(b->chain[round][stream], b->stream[stream]));
    else
        chain_calls(b, stream, round);
}

static void join(struct bench *b)
{
    for (unsigned i = 1; i < b->set.streams; i++) {
        RIG(cuEventRecord(b->back[i], b->stream[i]));
        RIG(cuStreamWaitEvent(b->stream[0], b->back[i], 0));
    }
}

static void fork_to_all(struct bench *b)
{
    RIG(cuEventRecord(b->out, b->stream[0]));
    for (unsigned i = 1; i < b->set.streams; i++)
        RIG(cuStreamWaitEvent(b->stream[i], b->out, 0));
}

static void fork_and_join(struct bench *b)
{
    for (unsigned round = 0; round < b->set.rounds; round++) {
        chain(b, 0, round);
        fork_to_all(b);
        for (unsigned i = 1; i < b->set.streams; i++)
            chain(b, i, round);
        join(b);
    }
    chain(b, 0, b->set.rounds);
}

static void in_turn(struct bench *b)
{
    for (unsigned i = 0; b->set.mode == MODE_SPLIT && i < b->set.streams; i++)
        chain(b, i, 0);
    for (unsigned r = 0; b->set.mode != MODE_SPLIT && r < b->set.rounds; r++)
        for (unsigned i = 0; i < b->set.streams; i++)
            run(b, i, r);
}

static CUgraphExec end_capture(struct bench *b, unsigned stream)
{
    CUgraph graph;
    CUgraphExec exec;
    RIG(cuStreamEndCapture(b->stream[stream], &graph));
    RIG(cuGraphInstantiate(&exec, graph, 0));
    RIG(cuGraphDestroy(graph));
    RIG(cuGraphUpload(exec, b->stream[stream]));
    return exec;
}

static void build_graph(struct bench *b)
{
    RIG(cuStreamBeginCapture(b->stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    if (forks(b)) {
        fork_and_join(b);
    } else {
        fork_to_all(b);
        in_turn(b);
        join(b);
    }
    b->exec = end_capture(b, 0);
}

static void build_chains(struct bench *b)
{
    const unsigned rounds = forks(b) ? b->set.rounds : 0;
    for (unsigned round = 0; round <= rounds; round++) {
        const int is_end = forks(b) && round == rounds;
        for (unsigned i = 0; i < (is_end ? 1 : b->set.streams); i++) {
            RIG(cuStreamBeginCapture(b->stream[i], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            chain_calls(b, i, round);
            b->chain[round][i] = end_capture(b, i);
        }
    }
}

static void iteration(struct bench *b)
{
    if (b->set.mode == MODE_GRAPH)
        RIG(cuGraphLaunch(b->exec, b->stream[0]));
    else if (forks(b))
        fork_and_join(b);
    else
        in_turn(b);
}

static double block(void *bench)
{
    struct bench *b = bench;
    const unsigned long first = b->done;
    const uint64_t began = rig_wall_ns();
    for (; b->done - first < b->set.plan.length; b->done++) {
        iteration(b);
        if (b->set.sync)
            RIG(cuCtxSynchronize());
    }
    RIG(cuCtxSynchronize());
    return (double)(rig_wall_ns() - began) * 1e-3 / (double)(b->done - first);
}

static unsigned expect[STREAMS_MOST][CELLS];

static void mirror_run(const struct bench *b, unsigned stream, unsigned round)
{
    for (unsigned k = round * b->set.run; k < (round + 1) * b->set.run; k++)
        mirror_launch(k % MIRROR_KERNELS, expect[stream], word(stream, k), CELLS);
}

static void mirror_round(const struct bench *b, unsigned round)
{
    mirror_run(b, 0, round);
    for (unsigned i = 1; i < b->set.streams; i++) {
        if (forks(b))
            mirror_pair(expect[i], expect[0], 0, CELLS);
        mirror_run(b, i, round);
    }
    for (unsigned i = 1; forks(b) && i < b->set.streams; i++)
        mirror_pair(expect[0], expect[i], i, CELLS);
}

static int right(const struct bench *b)
{
    static unsigned end[CELLS];
    int ok = 1;
    for (unsigned long n = 0; n < b->done; n++)
        for (unsigned round = 0; round < b->set.rounds; round++)
            mirror_round(b, round);
    for (unsigned i = 0; i < b->set.streams; i++) {
        RIG(cuMemcpyDtoH(end, b->array[i], sizeof end));
        ok &= !memcmp(end, expect[i], sizeof end);
    }
    return ok;
}

static void open_bench(struct bench *b)
{
    rig_open(&b->rig);
    RIG(cuEventCreate(&b->out, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < b->set.streams; i++) {
        RIG(cuStreamCreate(&b->stream[i], CU_STREAM_NON_BLOCKING));
        RIG(cuEventCreate(&b->back[i], CU_EVENT_DISABLE_TIMING));
        b->array[i] = rig_alloc(CELLS * sizeof(unsigned));
        for (unsigned k = 0; k < CELLS; k++)
            expect[i][k] = mirror_word(i + 100, k);
        RIG(cuMemcpyHtoD(b->array[i], expect[i], sizeof expect[i]));
    }
    if (b->set.mode == MODE_GRAPH)
        build_graph(b);
    else if (b->set.mode == MODE_SPLIT)
        build_chains(b);
    RIG(cuCtxSynchronize());
}

static void usage(FILE *to)
{
    fputs("streams_bench [OPTION]...\n"
          "  --pattern turns|fork      no events; forks and joins by events (turns)\n"
          "  --mode eager|graph|split  graph: of branches; split: a graph of each chain (eager)\n"
          "  --streams N  (2)          --rounds N  turns of each, or forks, in an iteration (8)\n"
          "  --run N      kernels of a stream in each round (2)\n"
          "  --sync       wait after each iteration\n" RIG_PLAN_USAGE,
          to);
}

static const struct option long_options[] = {
    {"pattern", 1, 0, 'p'}, {"mode", 1, 0, 'm'}, {"streams", 1, 0, 'n'},
    {"rounds", 1, 0, 'r'},  {"run", 1, 0, 'k'},  {"sync", 0, 0, 's'},
    RIG_PLAN_OPTIONS,       {"help", 0, 0, 'h'}, {0, 0, 0, 0},
};

static void read_options(struct settings *s, int argc, char **argv)
{
    int c;
    *s = (struct settings){.streams = 2, .rounds = 8, .run = 2, .plan = RIG_PLAN};
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'p')
            s->pattern = (enum pattern)rig_one_of(pattern_names, PATTERNS, optarg, usage);
        else if (c == 'm')
            s->mode = (enum mode)rig_one_of(mode_names, MODES, optarg, usage);
        else if (c == 'n')
            s->streams = (unsigned)rig_number("--streams", optarg, 1, STREAMS_MOST);
        else if (c == 'r')
            s->rounds = (unsigned)rig_number("--rounds", optarg, 1, ROUNDS_MOST);
        else if (c == 'k')
            s->run = (unsigned)rig_number("--run", optarg, 1, 10000);
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
        fprintf(stderr, "streams_bench: WRONG RESULT, %s, %s\n", pattern_names[s->pattern],
                mode_names[s->mode]);
        return 1;
    }
    snprintf(what, sizeof what,
             "\"pattern\": \"%s\", \"mode\": \"%s\", \"streams\": %u, \"rounds\": %u, "
             "\"run\": %u, \"sync\": %s, \"iterations_per_block\": %lu, \"verified\": true",
             pattern_names[s->pattern], mode_names[s->mode], s->streams, s->rounds, s->run,
             s->sync ? "true" : "false", s->plan.length);
    rig_print(&b.rig, "streams", what, "us per iteration", summary);
    return 0;
}
