/* tests/scenarios/host_scenes.c - O-08, O-09, O-18, O-20: callbacks, graphs of the program's own, a stream that stands.
 * Called by  scene.c                     Calls  scene.h
 * Threads    host functions run on the driver's
 * Promise    a callback checks what it finds; codes and node contents are printed
 * Start at   scene_host */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* O-18: what one call of the host is given, and what it found. */
enum { CALLS = 256 };

struct desk {
    pthread_mutex_t lock;
    pthread_t program;
    volatile uint32_t *pin, *inside; /* a callback stands in `inside` while it runs */
    unsigned entries, bad, in_program, digest;
};

struct box {
    struct desk *desk;
    unsigned number, which;
    CUresult status;
};

static void write_down(struct box *b, unsigned which)
{
    struct desk *d = b->desk;
    __atomic_store_n(d->inside, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&d->lock);
    d->bad += b->number != d->entries || b->which != which || b->status != CUDA_SUCCESS;
    d->in_program += pthread_equal(pthread_self(), d->program) != 0;
    d->digest = d->digest * 31 + *d->pin;
    d->entries++;
    pthread_mutex_unlock(&d->lock);
    __atomic_store_n(d->inside, 0, __ATOMIC_RELEASE);
    memset(b, 0xEE, sizeof *b);
    free(b);
}

static void even_call(void *data)
{
    write_down(data, 0);
}

static void odd_call(void *data)
{
    write_down(data, 1);
}

static void CUDA_CB old_call(CUstream s, CUresult status, void *data)
{
    struct box *b = data;
    (void)s;
    b->status = status;
    write_down(b, b->which);
}

static void call_back(struct desk *d, CUstream s, unsigned number, int old_way)
{
    struct box *b = malloc(sizeof *b);
    *b = (struct box){d, number, number % 2, CUDA_SUCCESS};
    pthread_mutex_lock(&d->lock);
    if (old_way)
        NEED(cuStreamAddCallback(s, old_call, b, 0));
    else
        NEED(cuLaunchHostFunc(s, number % 2 ? odd_call : even_call, b));
    pthread_mutex_unlock(&d->lock);
}

static void callbacks(int old_way)
{
    struct desk desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .program = pthread_self()};
    CUmodule varying = scene_load("varying");
    CUfunction copy = scene_function(scene_load("basic"), "copy"),
               look = scene_function(scene_load("flag"), "read_flag");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), out = scene_buffer(), inside_device, ignored;
    desk.inside = scene_mapped(&inside_device);
    uint32_t *pin = scene_mapped(&ignored);
    desk.pin = pin;
    for (unsigned i = 0; i < CALLS; i++) {
        int n = 1;
        CUdeviceptr from = x + 4 * (i % 32), to = out + 4 * (512 + i), found = out + 4 * i;
        NEED(scene_launch(look, s, 1, 1, 0, ARGS(&inside_device, &found)));
        scene_work(varying, s, x, i % ROUNDS == ODD_ROUND ? 6 : 7, i);
        NEED(scene_launch(copy, s, 1, 32, 0, ARGS(&from, &to, &n)));
        NEED(cuMemcpyDtoHAsync(pin, x, 4, s));
        call_back(&desk, s, i, old_way);
    }
    NEED(cuStreamSynchronize(s));
    printf("%s: %u calls, %u wrong, %u in the program's thread, %08x\n",
           old_way ? "callback" : "host function", desk.entries, desk.bad, desk.in_program,
           desk.digest);
    scene_show("found inside", 0, s, out);
    scene_show("x", 0, s, x);
}

static void one_call_each(void)
{
    scene_open();
    callbacks(0);
    callbacks(1);
}

/* O-08: the program's own graph between its launches. */
static CUgraph captured(CUmodule varying, CUstream s, CUdeviceptr x, unsigned launches, unsigned v)
{
    CUgraph graph;
    NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    scene_work(varying, s, x, launches, v);
    NEED(cuStreamEndCapture(s, &graph));
    return graph;
}

static void own_graph_in_line(void)
{
    CUgraphExec exec;
    unsigned rounds = ROUNDS * scene_times();
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    CUgraph graph = captured(varying, s, x, 5, 77);
    NEED(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned round = 0; round < rounds; round++) {
        scene_work(varying, s, x, round % ROUNDS == ODD_ROUND ? 7 : 8, round);
        NEED(cuGraphLaunch(exec, s));
        NEED(cuGraphLaunch(exec, s));
        scene_work(varying, s, x, 8, round);
        if (round % 16 == 15)
            NEED(cuStreamSynchronize(s));
    }
    scene_show("x", 0, s, x);
    NEED(cuGraphExecDestroy(exec));
    NEED(cuGraphDestroy(graph));
}

/* O-09: the program reads its captured nodes, changes them, and launches again. */
enum { OWN_NODES = 5 };

static void show_node(CUgraphNode node, CUdeviceptr x)
{
    CUDA_KERNEL_NODE_PARAMS p;
    const char *name = "?";
    NEED(cuGraphKernelNodeGetParams(node, &p));
    NEED(cuFuncGetName(&name, p.func));
    printf(" %s(%d,%u)", name, *(CUdeviceptr *)p.kernelParams[0] == x,
           *(unsigned *)p.kernelParams[1]);
}

static void patch_node(CUgraphExec exec, CUgraphNode node, unsigned value)
{
    CUDA_KERNEL_NODE_PARAMS p;
    NEED(cuGraphKernelNodeGetParams(node, &p));
    void *mine[] = {p.kernelParams[0], &value};
    p.kernelParams = mine;
    NEED(cuGraphKernelNodeSetParams(node, &p));
    NEED(cuGraphExecKernelNodeSetParams(exec, node, &p));
}

static void show_nodes(CUgraph graph, CUdeviceptr x, CUgraphNode *nodes)
{
    size_t n = 0, most = OWN_NODES;
    NEED(cuGraphGetNodes(graph, NULL, &n));
    printf("%zu nodes:", n);
    NEED(cuGraphGetNodes(graph, nodes, &most));
    for (size_t i = 0; i < most; i++)
        show_node(nodes[i], x);
    printf("\n");
}

static void own_nodes_patched(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned turn = 0; turn < 8; turn++) {
        CUgraphNode nodes[OWN_NODES];
        CUgraphExecUpdateResultInfo info;
        CUgraphExec exec;
        for (unsigned round = 0; round < ROUNDS / 4; round++) {
            scene_work(varying, s, x, 12, round);
            if (round % 4 == 3)
                NEED(cuStreamSynchronize(s));
        }
        scene_work(varying, s, x, 12, turn); /* held as the capture begins */
        CUgraph graph = captured(varying, s, x, OWN_NODES, turn);
        scene_work(varying, s, x, 12, turn);
        show_nodes(graph, x, nodes);
        NEED(cuGraphInstantiate(&exec, graph, 0));
        NEED(cuGraphLaunch(exec, s));
        patch_node(exec, nodes[turn % OWN_NODES], 1000 + turn);
        show_nodes(graph, x, nodes);
        scene_work(varying, s, x, 12, turn);
        NEED(cuGraphLaunch(exec, s));
        CUgraph second = captured(varying, s, x, OWN_NODES, 2000 + turn);
        CUgraph other = captured(varying, s, x, OWN_NODES + 1, turn);
        CUresult ret = cuGraphExecUpdate(exec, second, &info);
        printf("update %d %d, ", ret, info.result);
        NEED(cuGraphLaunch(exec, s));
        ret = cuGraphExecUpdate(exec, other, &info);
        printf("of another shape %d %d\n", ret, info.result);
        scene_show("x", turn, s, x);
        NEED(cuGraphExecDestroy(exec));
        NEED(cuGraphDestroy(graph));
        NEED(cuGraphDestroy(second));
        NEED(cuGraphDestroy(other));
    }
}

/* O-20: the queue is filled while its stream stands; each window brings another body, learned behind the gate. */
enum { WINDOWS = 6, BODIES = 40 };

static void standing_stream(void)
{
    scene_open();
    CUmodule varying = scene_load("varying"), flag = scene_load("flag");
    CUfunction wait = scene_function(flag, "wait_flag");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer(), gate_device;
    unsigned *gate = scene_mapped(&gate_device);
    CUevent a, b;
    NEED(cuEventCreate(&a, CU_EVENT_DEFAULT));
    NEED(cuEventCreate(&b, CU_EVENT_DEFAULT));
    for (unsigned window = 0; window < WINDOWS; window++) {
        unsigned value = window + 1;
        float ms = -1;
        NEED(scene_launch(wait, s, 1, 1, 0, ARGS(&gate_device, &value)));
        NEED(cuEventRecord(a, s));
        scene_work(varying, s, x, SCENE_TIMED_OPS, 0);
        for (unsigned body = 0; body < BODIES; body++)
            scene_work(varying, s, x, 8 + window, body);
        NEED(cuEventRecord(b, s));
        CUresult early = cuStreamQuery(s);
        __atomic_store_n(gate, value, __ATOMIC_RELEASE);
        NEED(cuStreamSynchronize(s));
        NEED(cuEventElapsedTime(&ms, a, b));
        printf("window %u: %d, %s\n", window, early, ms < 0 ? "negative" : "in order");
    }
    scene_show("x", 0, s, x);
}

const struct scene_case scene_host[] = {{"O-08-own-graph-in-line", own_graph_in_line},
                                        {"O-09-own-nodes-patched", own_nodes_patched},
                                        {"O-18-one-call-each", one_call_each},
                                        {"O-20-standing-stream", standing_stream},
                                        {NULL, NULL}};
