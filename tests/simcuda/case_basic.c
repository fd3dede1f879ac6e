/* tests/simcuda/case_basic.c - programs whose results, log and statistics are known.
 * Called by  case_main.c                Calls  the driver API
 * Threads    stated in each case
 * Promise    what a case prints does not depend on speed
 * Start at   case_basic[]                                                                   */
#define _GNU_SOURCE
#include "tests/simcuda/case.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/images.h"

enum { NODES = 64 };

static CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction f, void **args)
{
    CUDA_KERNEL_NODE_PARAMS p = {.func = f,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    return p;
}

/* 100 eager launches, then 10 launches of a graph of 64 nodes, all of them patched each time. */
static void replay(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "step");
    CUdeviceptr x = case_buffer(4);
    CUstream s = case_stream();
    unsigned m = 3, a = 1, want = 0;
    int n = 1;
    void *args[] = {&x, &m, &a, &n};
    CUDA_KERNEL_NODE_PARAMS p = one_thread(f, args);
    CUgraph g;
    CUgraphNode node[NODES];
    CUgraphExec exec;
    for (unsigned i = 0; i < 100; i++, a++) {
        NEED(case_launch(f, s, 1, 1, args));
        want = want * m + a;
    }
    NEED(cuGraphCreate(&g, 0));
    for (int i = 0; i < NODES; i++)
        NEED(cuGraphAddKernelNode(&node[i], g, i ? &node[i - 1] : NULL, i ? 1 : 0, &p));
    NEED(cuGraphInstantiate(&exec, g, 0));
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < NODES; i++, a++) {
            NEED(cuGraphExecKernelNodeSetParams(exec, node[i], &p));
            want = want * m + a;
        }
        NEED(cuGraphLaunch(exec, s));
    }
    NEED(cuStreamSynchronize(s));
    printf("%s\n", (unsigned)case_read(x) == want ? "right" : "wrong");
}

/* Two nodes without an edge between them. */
static void unordered(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "step");
    CUdeviceptr x = case_buffer(4);
    unsigned m = 10, a = 1, b = 2;
    int n = 1;
    void *first[] = {&x, &m, &a, &n}, *second[] = {&x, &m, &b, &n};
    CUDA_KERNEL_NODE_PARAMS p = one_thread(f, first), q = one_thread(f, second);
    CUgraph g;
    CUgraphNode node;
    CUgraphExec exec;
    NEED(cuGraphCreate(&g, 0));
    NEED(cuGraphAddKernelNode(&node, g, NULL, 0, &p));
    NEED(cuGraphAddKernelNode(&node, g, NULL, 0, &q));
    NEED(cuGraphInstantiate(&exec, g, 0));
    NEED(cuGraphLaunch(exec, case_stream()));
    printf("%d\n", case_read(x));
}

static void barrier(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_red, "red");
    CUdeviceptr x = case_buffer(4000), out = case_buffer(16);
    float host[1000], sum[4];
    int n = 1000;
    for (int i = 0; i < n; i++)
        host[i] = (float)(i % 7);
    NEED(cuMemcpyHtoD(x, host, sizeof host));
    NEED(case_launch(f, NULL, 4, 256, ARGS(&x, &out, &n)));
    NEED(cuMemcpyDtoH(sum, out, sizeof sum));
    for (int b = 0; b < 4; b++) {
        float want = 0;
        for (int i = 256 * b; i < 256 * (b + 1) && i < n; i++)
            want += host[i];
        printf("%s\n", sum[b] == want ? "right" : "wrong");
    }
}

static void run_three(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_basic, "store");
    CUdeviceptr x = case_buffer(4);
    for (int v = 1; v <= 3; v++)
        NEED(case_launch(f, NULL, 1, 32, ARGS(&x, &v)));
    printf("%d\n", case_read(x));
    fflush(stdout);
}

static void three_then_exit_now(void)
{
    run_three();
    _exit(0);
}

static void three_then_abort(void)
{
    run_three();
    abort();
}

static void new_handles(void)
{
    case_open(0);
    CUmodule a, b;
    CUfunction f, g;
    CUevent e, again;
    CUdeviceptr p, q;
    NEED(cuModuleLoadData(&a, ag_image_reuse_a));
    NEED(cuModuleGetFunction(&f, a, "reuse_a"));
    NEED(cuModuleUnload(a));
    NEED(cuModuleLoadData(&b, ag_image_reuse_b));
    NEED(cuModuleGetFunction(&g, b, "reuse_b"));
    NEED(cuEventCreate(&e, 0));
    NEED(cuEventDestroy(e));
    NEED(cuEventCreate(&again, 0));
    NEED(cuMemAlloc(&p, 5000));
    NEED(cuMemFree(p));
    NEED(cuMemAlloc(&q, 5000));
    printf("module %d function %d event %d memory %d\n", a == b, f == g, e == again, p == q);
}

/* A driver call inside the driver must not end in the program: this would be called by it. */
CUresult cuMemGetAddressRange_v2(CUdeviceptr *out_base, size_t *out_bytes, CUdeviceptr at)
{
    (void)out_base, (void)out_bytes, (void)at;
    printf("interposed\n");
    return CUDA_ERROR_UNKNOWN;
}

static void interposition(void)
{
    void *p = NULL;
    case_open(0);
    CUdeviceptr buffer = case_buffer(64), base = 0;
    NEED(cuGetProcAddress("cuMemGetAddressRange", &p, 13000, 0, NULL));
    CUresult ret = ((CUresult(*)(CUdeviceptr *, size_t *, CUdeviceptr))p)(&base, NULL, buffer + 1);
    printf("%d %d\n", (int)ret, p == (void *)cuMemGetAddressRange_v2);
}

static void child_says(const char *what)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        CUdeviceptr p;
        CUcontext ctx;
        int ret = (int)cuInit(0);
        if (!ret)
            ret = (int)cuDevicePrimaryCtxRetain(&ctx, 0);
        if (!ret)
            ret = (int)cuCtxSetCurrent(ctx);
        if (!ret)
            ret = (int)cuMemAlloc(&p, 64);
        _exit(ret);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%s %d\n", what, WEXITSTATUS(status));
}

static void forks(void)
{
    child_says("before");
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "null");
    NEED(case_launch(f, NULL, 1, 1, NULL));
    child_says("after");
    NEED(cuCtxSynchronize());
}

/* Two threads, each with its own default stream; one waits for the other through memory. */
static unsigned *word;
static CUcontext both;

static void *own_stream(void *data)
{
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void **, void **);
    CUresult (*synchronize)(CUstream);
    unsigned one = 1;
    NEED(cuCtxSetCurrent(both));
    NEED(cuGetProcAddress("cuLaunchKernel", (void **)&launch, 13000,
                          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    NEED(cuGetProcAddress("cuStreamSynchronize", (void **)&synchronize, 13000,
                          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    NEED(launch(data, 1, 1, 1, 1, 1, 1, 0, NULL, ARGS(&word, &one), NULL));
    NEED(synchronize(NULL));
    return NULL;
}

static void per_thread(void)
{
    pthread_t a, b;
    case_open(0);
    NEED(cuCtxGetCurrent(&both));
    word = case_flag();
    CUfunction wait = case_function(ag_image_flag, "wait_flag");
    CUfunction set = case_function(ag_image_flag, "set_flag");
    pthread_create(&a, NULL, own_stream, wait);
    usleep(50000);
    pthread_create(&b, NULL, own_stream, set);
    pthread_join(b, NULL);
    pthread_join(a, NULL);
    printf("both ended\n");
}

static void two_devices(void)
{
    CUcontext a, b;
    CUdeviceptr p, q;
    CUevent e;
    int v = 17, w = 0;
    case_open(0);
    NEED(cuCtxGetCurrent(&a));
    CUfunction f = case_function(ag_image_basic, "store");
    CUstream s = case_stream();
    p = case_buffer(4);
    NEED(cuEventCreate(&e, 0));
    case_open(1);
    NEED(cuCtxGetCurrent(&b));
    CUstream t = case_stream();
    q = case_buffer(4);
    NEED(cuCtxSetCurrent(a));
    NEED(case_launch(f, s, 1, 1, ARGS(&p, &v)));
    NEED(cuEventRecord(e, s));
    NEED(cuCtxSetCurrent(b));
    NEED(cuStreamWaitEvent(t, e, 0));
    NEED(cuMemcpyPeerAsync(q, b, p, a, 4, t));
    NEED(cuStreamSynchronize(t));
    NEED(cuMemcpyDtoH(&w, q, 4));
    printf("%d, other context's stream %d\n", w, (int)case_launch(f, t, 1, 1, ARGS(&p, &v)));
}

const struct sim_case case_basic[] = {
    {"replay", replay},
    {"unordered", unordered},
    {"barrier", barrier},
    {"three", run_three},
    {"three_then_exit_now", three_then_exit_now},
    {"three_then_abort", three_then_abort},
    {"new_handles", new_handles},
    {"interposition", interposition},
    {"forks", forks},
    {"per_thread", per_thread},
    {"two_devices", two_devices},
    {NULL, NULL},
};
