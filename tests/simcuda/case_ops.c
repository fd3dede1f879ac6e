/* tests/simcuda/case_ops.c - copies, memsets, events, host functions, values, pools: alone and as nodes.
 * Called by  case_main.c                Calls  the driver API
 * Threads    stated in each case
 * Promise    what a case prints does not depend on speed
 * Start at   case_ops[]                                                                     */
#define _GNU_SOURCE
#include "tests/simcuda/case.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernels/images.h"

static CUgraph graph;
static CUgraphExec exec;

static CUDA_MEMCPY3D copy_of(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = src,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = dst,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
}

static void CUDA_CB count_up(void *data)
{
    ++*(int *)data;
}

static CUcontext context(void)
{
    CUcontext ctx;
    NEED(cuCtxGetCurrent(&ctx));
    return ctx;
}

static void launch_graph(CUstream s)
{
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuGraphLaunch(exec, s));
    NEED(cuStreamSynchronize(s));
}

/* memset, copy, record, host function, write of a value, empty: one after the other. */
static void every_node(void)
{
    int calls = 0;
    CUgraphNode n[6];
    CUevent e;
    case_open(0);
    CUcontext ctx = context();
    CUdeviceptr x = case_buffer(64), y = case_buffer(64), flag = case_buffer(4);
    CUDA_MEMSET_NODE_PARAMS set = {x, 0, 7, 4, 16, 1};
    CUDA_MEMCPY3D copy = copy_of(y, x, 64);
    CUDA_HOST_NODE_PARAMS host = {count_up, &calls};
    CUstreamBatchMemOpParams write = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, flag, {9}, 0, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {ctx, 1, &write, 0};
    NEED(cuEventCreate(&e, 0));
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemsetNode(&n[0], graph, NULL, 0, &set, ctx));
    NEED(cuGraphAddMemcpyNode(&n[1], graph, &n[0], 1, &copy, ctx));
    NEED(cuGraphAddEventRecordNode(&n[2], graph, &n[1], 1, e));
    NEED(cuGraphAddHostNode(&n[3], graph, &n[2], 1, &host));
    NEED(cuGraphAddBatchMemOpNode(&n[4], graph, &n[3], 1, &batch));
    NEED(cuGraphAddEmptyNode(&n[5], graph, &n[4], 1));
    CUstream s = case_stream();
    launch_graph(s);
    NEED(cuGraphLaunch(exec, s));
    NEED(cuStreamSynchronize(s));
    int a = case_read(y + 60), b = case_read(flag);
    printf("copied %d, called %d, written %d, event %d\n", a, calls, b, (int)cuEventQuery(e));
}

/* x is set, copied by two branches, and both copies are copied into one place each. */
static void diamond(void)
{
    CUgraphNode n[4];
    case_open(0);
    CUcontext ctx = context();
    CUdeviceptr x = case_buffer(8), y = case_buffer(8), z = case_buffer(8);
    CUDA_MEMSET_NODE_PARAMS set = {x, 0, 5, 4, 2, 1};
    CUDA_MEMCPY3D left = copy_of(y, x, 4), right = copy_of(y + 4, x + 4, 4);
    CUDA_MEMCPY3D all = copy_of(z, y, 8);
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemsetNode(&n[0], graph, NULL, 0, &set, ctx));
    NEED(cuGraphAddMemcpyNode(&n[1], graph, &n[0], 1, &left, ctx));
    NEED(cuGraphAddMemcpyNode(&n[2], graph, &n[0], 1, &right, ctx));
    NEED(cuGraphAddMemcpyNode(&n[3], graph, &n[1], 2, &all, ctx));
    launch_graph(case_stream());
    printf("%d %d\n", case_read(z), case_read(z + 4));
}

/* A branch that waits for an event lets the other go, which the host needs to see first. */
static void waiting_branch(void)
{
    CUgraphNode wait, set, after;
    CUevent e;
    unsigned one = 1;
    case_open(0);
    CUcontext ctx = context();
    unsigned *flag = case_flag();
    CUdeviceptr x = case_buffer(8);
    CUfunction spin = case_function(ag_image_flag, "wait_flag");
    CUstream held = case_stream(), s = case_stream();
    NEED(cuEventCreate(&e, 0));
    NEED(case_launch(spin, held, 1, 1, ARGS(&flag, &one)));
    NEED(cuEventRecord(e, held));
    CUDA_MEMSET_NODE_PARAMS first = {(CUdeviceptr)(flag + 1), 0, 3, 4, 1, 1};
    CUDA_MEMSET_NODE_PARAMS last = {x, 0, 4, 4, 1, 1};
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, e));
    NEED(cuGraphAddMemsetNode(&after, graph, &wait, 1, &last, ctx));
    NEED(cuGraphAddMemsetNode(&set, graph, NULL, 0, &first, ctx));
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuGraphLaunch(exec, s));
    while (__atomic_load_n(flag + 1, __ATOMIC_ACQUIRE) != 3)
        usleep(100);
    printf("held %d", (int)cuStreamQuery(s));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    NEED(cuStreamSynchronize(s));
    printf(", then %d\n", case_read(x));
}

/* The copy node's source is freed, and its address given to somebody else: whom the node is then told of, or not. */
static void freed_source(int told)
{
    CUgraphNode n;
    case_open(0);
    CUcontext ctx = context();
    CUdeviceptr x = case_buffer(64), y = case_buffer(64), again;
    CUDA_MEMCPY3D copy = copy_of(y, x, 64);
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemcpyNode(&n, graph, NULL, 0, &copy, ctx));
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuMemFree(x));
    NEED(cuMemAlloc(&again, 64));
    NEED(cuMemsetD32(again, 7, 16));
    printf("same address %d, ", again == x);
    if (told)
        printf("patch %d, ", (int)cuGraphExecMemcpyNodeSetParams(exec, n, &copy, ctx));
    printf("launch %d", (int)cuGraphLaunch(exec, NULL));
    printf(", copied %d\n", case_read(y + 60));
}

/* Nobody has the memory that a node copies from, or sets. */
static void gone_from_under(int set)
{
    CUgraphNode n;
    case_open(0);
    CUcontext ctx = context();
    CUdeviceptr x = case_buffer(64), y = case_buffer(64);
    CUDA_MEMCPY3D copy = copy_of(y, x, 64);
    CUDA_MEMSET_NODE_PARAMS fill = {x, 0, 5, 4, 2, 1};
    NEED(cuGraphCreate(&graph, 0));
    if (set)
        NEED(cuGraphAddMemsetNode(&n, graph, NULL, 0, &fill, ctx));
    else
        NEED(cuGraphAddMemcpyNode(&n, graph, NULL, 0, &copy, ctx));
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuMemFree(x));
    printf("launch %d", (int)cuGraphLaunch(exec, NULL));
    printf(", sync %d\n", (int)cuCtxSynchronize());
}

static void copy_from_nowhere(void)
{
    gone_from_under(0);
}

static void set_of_nowhere(void)
{
    gone_from_under(1);
}

/* A driver does not survive this. */
static void graph_of_freed_memory(void)
{
    CUgraphNode n;
    case_open(0);
    CUdeviceptr x = case_buffer(64), y = case_buffer(64);
    CUDA_MEMCPY3D copy = copy_of(y, x, 64);
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemcpyNode(&n, graph, NULL, 0, &copy, context()));
    NEED(cuMemFree(x));
    printf("instantiate %d\n", (int)cuGraphInstantiate(&exec, graph, 0));
}

static void stale_node(void)
{
    freed_source(0);
}

static void renewed_node(void)
{
    freed_source(1);
}

/* Of an exec the driver tells whether a node is enabled, where the kind of node can be otherwise; a patch is for the
 * exec alone. */
static void told_of_an_exec(void)
{
    CUgraph graph;
    CUgraphNode copy, record;
    CUgraphExec exec;
    CUevent event;
    unsigned of_copy = 9, of_record = 9;
    case_open(0);
    CUdeviceptr x = case_buffer(64), y = case_buffer(64);
    CUDA_MEMCPY3D there = copy_of(y, x, 64), back = copy_of(x, y, 64), got = {0};
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &there, context()));
    NEED(cuGraphAddEventRecordNode(&record, graph, &copy, 1, event));
    NEED(cuGraphInstantiate(&exec, graph, 0));
    NEED(cuGraphExecMemcpyNodeSetParams(exec, copy, &back, context()));
    NEED(cuGraphMemcpyNodeGetParams(copy, &got));
    printf("node unchanged %d, ", got.srcDevice == x && got.dstDevice == y);
    int ret = (int)cuGraphNodeGetEnabled(exec, copy, &of_copy);
    printf("copy %d %u, ", ret, of_copy);
    ret = (int)cuGraphNodeGetEnabled(exec, record, &of_record);
    printf("record %d %u, ", ret, of_record);
    NEED(cuGraphNodeSetEnabled(exec, copy, 0));
    NEED(cuGraphNodeGetEnabled(exec, copy, &of_copy));
    printf("disabled %u\n", of_copy);
}

static unsigned *batch_flag;

static void *release_later(void *unused)
{
    usleep(100000);
    __atomic_store_n(batch_flag, 1, __ATOMIC_RELEASE);
    return unused;
}

/* A batch of which something must be read "during the call" waits for its stream; another does not. */
static void batch_sources(void)
{
    pthread_t thread;
    case_open(0);
    CUstream s = case_stream();
    CUdeviceptr d = case_buffer(8);
    unsigned *flag = case_flag(), one = 1;
    flag[4] = flag[5] = 1;
    CUdeviceptr dst[2] = {d, d + 4}, src[2] = {(CUdeviceptr)(flag + 4), (CUdeviceptr)(flag + 5)};
    size_t bytes[2] = {4, 4}, first[2] = {0, 1};
    CUmemcpyAttributes how[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                                 {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};
    CUfunction spin = case_function(ag_image_flag, "wait_flag");
    batch_flag = flag;
    NEED(case_launch(spin, s, 1, 1, ARGS(&flag, &one)));
    NEED(cuMemcpyBatchAsync(dst, src, bytes, 2, how, first, 1, s));
    flag[4] = flag[5] = 2;
    pthread_create(&thread, NULL, release_later, NULL);
    NEED(cuMemcpyBatchAsync(dst + 1, src + 1, bytes, 1, how + 1, first, 1, s));
    flag[5] = 3;
    printf("waited %u, ", __atomic_load_n(flag, __ATOMIC_ACQUIRE));
    pthread_join(thread, NULL);
    int later = case_read(d), at_once = case_read(d + 4);
    printf("%d %d, legacy stream %d, no order %d\n", later, at_once,
           (int)cuMemcpyBatchAsync(dst, src, bytes, 2, how, first, 2, NULL),
           (int)cuMemcpyBatchAsync(dst, src, bytes, 2, (CUmemcpyAttributes[2]){0}, first, 2, s));
}

static void value_batch(void)
{
    case_open(0);
    CUstream a = case_stream(), b = case_stream();
    CUdeviceptr x = case_buffer(16);
    CUstreamBatchMemOpParams wait[2] = {
        {.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, x, {5}, CU_STREAM_WAIT_VALUE_EQ, 0}},
        {.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_64, x + 8, {.value64 = 6}, 0, 0}}};
    NEED(cuStreamBatchMemOp(a, 2, wait, 0));
    printf("waits %d", (int)cuStreamQuery(a));
    NEED(cuStreamWriteValue32(b, x, 5, 0));
    NEED(cuStreamSynchronize(a));
    printf(", then %d, bad flags %d\n", case_read(x + 8), (int)cuStreamWaitValue32(a, x, 5, 8));
}

static void pools(void)
{
    CUmemoryPool own, now, of, first;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr p, q;
    cuuint64_t used, high;
    case_open(0);
    CUstream s = case_stream();
    NEED(cuDeviceGetDefaultMemPool(&first, 0));
    NEED(cuMemPoolCreate(&own, &props));
    NEED(cuDeviceSetMemPool(0, own));
    NEED(cuDeviceGetMemPool(&now, 0));
    NEED(cuMemAllocAsync(&p, 1024, s));
    NEED(cuMemAllocFromPoolAsync(&q, 512, own, s));
    NEED(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
    NEED(cuMemFreeAsync(p, s));
    NEED(cuStreamSynchronize(s));
    NEED(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    NEED(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
    NEED(cuMemPoolDestroy(own));
    NEED(cuDeviceGetMemPool(&of, 0));
    printf("set %d, used %llu of %llu, destroyed %d, freed after it %d\n", now == own,
           (unsigned long long)used, (unsigned long long)high, of == first, (int)cuMemFree(q));
}

/* Allocated while the free of a block of that size is running: the test slows operations down. */
static void allocated_while_freed(void)
{
    CUdeviceptr p, q;
    case_open(0);
    CUstream s = case_stream();
    NEED(cuMemAllocAsync(&p, 1024, s));
    NEED(cuMemFreeAsync(p, s));
    usleep(150000);
    int ret = (int)cuMemAllocAsync(&q, 1024, s);
    printf("%d %d", ret, (int)cuMemsetD8Async(q, 1, 1024, s));
    printf(" %d %d\n", (int)cuMemFreeAsync(q, s), (int)cuStreamSynchronize(s));
}

/* Used in a stream that nothing orders behind the allocation. */
static void used_before_allocated(void)
{
    case_open(0);
    unsigned *flag = case_flag(), one = 1;
    CUstream s = case_stream(), t = case_stream();
    CUdeviceptr p;
    NEED(case_launch(case_function(ag_image_flag, "wait_flag"), s, 1, 1, ARGS(&flag, &one)));
    NEED(cuMemAllocAsync(&p, 64, s));
    NEED(cuMemsetD32Async(p, 1, 4, t));
    NEED(cuStreamSynchronize(t));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    printf("%d\n", (int)cuCtxSynchronize());
}

static void lined_up(void)
{
    case_open(0);
    CUstream s = case_stream();
    CUdeviceptr x = case_buffer(64), y = case_buffer(64);
    CUDA_MEMCPY2D part = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = x,
                          .srcPitch = 16,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = y,
                          .dstPitch = 8,
                          .WidthInBytes = 8,
                          .Height = 4};
    NEED(cuMemsetD2D16Async(x, 16, 0x0102, 4, 4, s));
    NEED(cuMemcpy2DAsync(&part, s));
    NEED(cuMemsetD8Async(y, 3, 5, s));
    NEED(cuStreamSynchronize(s));
    part.dstPitch = 4;
    printf("narrow pitch %d\n", (int)cuMemcpy2DAsync(&part, s));
}

/* ---- what the nodes cost: LAUNCHES times a graph of 64, every second node of another kind ---- */

static void cost_of(void (*add)(CUgraphNode *out, const CUgraphNode *after))
{
    const char *launches = getenv("LAUNCHES");
    CUfunction f = case_function(ag_image_chain, "null");
    CUDA_KERNEL_NODE_PARAMS k = {f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL};
    CUgraphNode n[64];
    CUstream s = case_stream();
    NEED(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 64; i++)
        if (i % 2 && add)
            add(&n[i], &n[i - 1]);
        else
            NEED(cuGraphAddKernelNode(&n[i], graph, i ? &n[i - 1] : NULL, i ? 1 : 0, &k));
    launch_graph(s);
    for (int i = launches ? atoi(launches) : 0; i > 0; i--) {
        NEED(cuGraphLaunch(exec, s));
        NEED(cuStreamSynchronize(s));
    }
}

static CUdeviceptr area;
static CUevent mark;

static void add_copy(CUgraphNode *out, const CUgraphNode *after)
{
    CUDA_MEMCPY3D c = copy_of(area, area + 4096, 4096);
    NEED(cuGraphAddMemcpyNode(out, graph, after, 1, &c, context()));
}

static void add_memset(CUgraphNode *out, const CUgraphNode *after)
{
    CUDA_MEMSET_NODE_PARAMS set = {area, 0, 1, 4, 256, 1};
    NEED(cuGraphAddMemsetNode(out, graph, after, 1, &set, context()));
}

static void add_record(CUgraphNode *out, const CUgraphNode *after)
{
    NEED(cuGraphAddEventRecordNode(out, graph, after, 1, mark));
}

static void add_upload(CUgraphNode *out, const CUgraphNode *after)
{
    static void *pinned;
    if (!pinned)
        NEED(cuMemHostAlloc(&pinned, 4096, 0));
    CUDA_MEMCPY3D c = copy_of(area, 0, 4096);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = pinned;
    NEED(cuGraphAddMemcpyNode(out, graph, after, 1, &c, context()));
}

static void cost_kernels(void)
{
    case_open(0);
    cost_of(NULL);
}

static void cost_copies(void)
{
    case_open(0);
    area = case_buffer(8192);
    cost_of(add_copy);
}

static void cost_memsets(void)
{
    case_open(0);
    area = case_buffer(8192);
    cost_of(add_memset);
}

static void cost_records(void)
{
    case_open(0);
    NEED(cuEventCreate(&mark, 0));
    cost_of(add_record);
}

static void cost_untimed_records(void)
{
    case_open(0);
    NEED(cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING));
    cost_of(add_record);
}

static void cost_uploads(void)
{
    case_open(0);
    area = case_buffer(8192);
    cost_of(add_upload);
}

const struct sim_case case_ops[] = {
    {"cost_kernels", cost_kernels},
    {"cost_copies", cost_copies},
    {"cost_memsets", cost_memsets},
    {"cost_records", cost_records},
    {"cost_untimed_records", cost_untimed_records},
    {"cost_uploads", cost_uploads},
    {"every_node", every_node},
    {"diamond", diamond},
    {"waiting_branch", waiting_branch},
    {"copy_from_nowhere", copy_from_nowhere},
    {"set_of_nowhere", set_of_nowhere},
    {"graph_of_freed_memory", graph_of_freed_memory},
    {"stale_node", stale_node},
    {"renewed_node", renewed_node},
    {"told_of_an_exec", told_of_an_exec},
    {"batch_sources", batch_sources},
    {"value_batch", value_batch},
    {"pools", pools},
    {"allocated_while_freed", allocated_while_freed},
    {"used_before_allocated", used_before_allocated},
    {"lined_up", lined_up},
    {NULL, NULL},
};
