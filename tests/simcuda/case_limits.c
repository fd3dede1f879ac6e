/* tests/simcuda/case_limits.c - programs that meet limits, faults, or do what is undefined.
 * Called by  case_main.c                Calls  the driver API
 * Threads    stated in each case
 * Promise    what a case prints does not depend on speed
 * Start at   case_limits[]                                                                  */
#define _GNU_SOURCE
#include "tests/simcuda/case.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernels/images.h"

static void three_allocations(void)
{
    case_open(0);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = 0;
        printf("%d\n", (int)cuMemAlloc(&p, 64));
    }
}

static void three_launches(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "null");
    for (int i = 0; i < 3; i++)
        printf("%d\n", (int)case_launch(f, NULL, 1, 1, NULL));
    printf("%d\n", (int)cuCtxSynchronize());
}

static void memory_limit(void)
{
    CUdeviceptr p;
    size_t left, all;
    case_open(0);
    NEED(cuMemAlloc(&p, 1 << 20));
    NEED(cuMemGetInfo(&left, &all));
    printf("%zu %zu %d\n", left, all, (int)cuMemAlloc(&p, 2 << 20));
}

static void old_driver(void)
{
    int version;
    void *p;
    CUdriverProcAddressQueryResult status;
    NEED(cuInit(0));
    NEED(cuDriverGetVersion(&version));
    CUresult ret = cuGetProcAddress("cuFuncGetParamInfo", &p, version, 0, &status);
    printf("%d: %d %d, too new a version: %d\n", version, (int)ret, (int)status,
           (int)cuGetProcAddress("cuInit", &p, 13000, 0, &status));
}

/* Launches behind a held stream until one blocks. */
static unsigned launched;
static CUcontext shared;
static CUstream held;

static void *launch_on(void *data)
{
    CUfunction f = data;
    for (int i = 0; i < 1500; i++) {
        NEED(case_launch(f, held, 1, 1, NULL));
        __atomic_add_fetch(&launched, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void *launch_many(void *data)
{
    NEED(cuCtxSetCurrent(shared));
    return launch_on(data);
}

static void depth(void)
{
    pthread_t t;
    unsigned one = 1, before = 1, now = 0;
    case_open(0);
    NEED(cuCtxGetCurrent(&shared));
    unsigned *flag = case_flag();
    held = case_stream();
    CUfunction f = case_function(ag_image_chain, "null"); /* loading would wait for the flag */
    NEED(case_launch(case_function(ag_image_flag, "wait_flag"), held, 1, 1, ARGS(&flag, &one)));
    pthread_create(&t, NULL, launch_many, f);
    while (before != now || now == 0) { /* until it stands still */
        before = __atomic_load_n(&launched, __ATOMIC_SEQ_CST);
        usleep(300000);
        now = __atomic_load_n(&launched, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    NEED(cuCtxSynchronize());
    printf("blocked after %u, in the end %u\n", now + 1, launched + 1);
}

static void query_once(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "null");
    CUstream s = case_stream();
    NEED(case_launch(f, s, 1, 1, NULL));
    printf("%d", (int)cuStreamQuery(s));
    NEED(cuStreamSynchronize(s));
    printf(" %d\n", (int)cuStreamQuery(s));
}

static void drain_by_name(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "null");
    CUstream s = case_stream();
    CUevent e;
    NEED(case_launch(f, s, 1, 1, NULL));
    NEED(cuEventCreate(&e, 0));
    printf("%d\n", (int)cuStreamQuery(s));
}

static void all_names(void)
{
    char name[128];
    unsigned missing = 0, seen = 0;
    void *self = dlopen("libcuda.so.1", RTLD_NOW);
    FILE *f = fopen(getenv("EXPORTS"), "r");
    while (f && fscanf(f, "%127s", name) == 1) {
        seen++;
        if (!dlsym(self, name)) {
            missing++;
            printf("%s\n", name);
        }
    }
    NEED(cuInit(0));
    CUdevResourceDesc description;
    printf("%u names, %u missing, not implemented: %d\n", seen, missing,
           (int)cuDevResourceGenerateDesc(&description, NULL, 0));
}

static void strange_images(void)
{
    static const char unknown[] = ".version 8.0\n.target sm_80\n.visible .entry nobody()\n{ ret; }";
    static const char known[] = ".version 8.0\n.target sm_80\n.visible .entry null()\n{ ret; }";
    unsigned char cut[64];
    CUmodule m;
    CUfunction f = NULL;
    case_open(0);
    memcpy(cut, ag_image_chain, sizeof cut);
    cut[24] = 0xff; /* the size of the first part */
    cut[30] = 0xff;
    printf("unknown kernel %d, ", (int)cuModuleLoadData(&m, unknown));
    printf("damaged %d, ", (int)cuModuleLoadData(&m, cut));
    printf("ptx %d", (int)cuModuleLoadData(&m, known));
    NEED(cuModuleGetFunction(&f, m, "null"));
    printf(", launch %d\n", (int)case_launch(f, NULL, 1, 1, NULL));
}

/* ---- undefined, for a real driver ---- */

static void freed_argument(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_basic, "store");
    CUdeviceptr p = case_buffer(64);
    int v = 1;
    NEED(cuMemFree(p));
    printf("launch %d", (int)case_launch(f, NULL, 1, 1, ARGS(&p, &v)));
    printf(", sync %d\n", (int)cuCtxSynchronize());
}

static void freed_copy(void)
{
    case_open(0);
    CUdeviceptr p = case_buffer(64);
    int v = 1;
    NEED(cuMemFree(p));
    printf("%d\n", (int)cuMemcpyHtoD(p, &v, 4));
}

static void freed_twice(void)
{
    case_open(0);
    CUdeviceptr p = case_buffer(64);
    NEED(cuMemFree(p));
    printf("%d\n", (int)cuMemFree(p));
}

static void dead_stream(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_chain, "null");
    CUstream s = case_stream();
    NEED(cuStreamDestroy(s));
    printf("%d\n", (int)case_launch(f, s, 1, 1, NULL));
}

static void dead_function(void)
{
    CUmodule m;
    CUfunction f;
    case_open(0);
    NEED(cuModuleLoadData(&m, ag_image_chain));
    NEED(cuModuleGetFunction(&f, m, "null"));
    NEED(cuModuleUnload(m));
    printf("%d\n", (int)case_launch(f, NULL, 1, 1, NULL));
}

/* Freed in one stream, used in another without an edge: shows when the free has run. */
static void freed_in_another_stream(void)
{
    case_open(0);
    CUfunction f = case_function(ag_image_basic, "store");
    CUstream s = case_stream(), t = case_stream();
    CUdeviceptr p;
    int v = 1;
    NEED(cuMemAllocAsync(&p, 64, s));
    NEED(cuMemFreeAsync(p, s));
    NEED(cuStreamSynchronize(s));
    printf("launch %d", (int)case_launch(f, t, 1, 1, ARGS(&p, &v)));
    printf(", sync %d\n", (int)cuCtxSynchronize());
}

static void host_reads_freed(void)
{
    case_open(0);
    CUdeviceptr p = case_buffer(64);
    NEED(cuMemFree(p));
    printf("%d\n", *(volatile int *)(uintptr_t)p); /* device memory is host memory here */
}

const struct sim_case case_limits[] = {
    {"three_allocations", three_allocations},
    {"three_launches", three_launches},
    {"memory_limit", memory_limit},
    {"old_driver", old_driver},
    {"depth", depth},
    {"query_once", query_once},
    {"drain_by_name", drain_by_name},
    {"all_names", all_names},
    {"strange_images", strange_images},
    {"freed_argument", freed_argument},
    {"freed_copy", freed_copy},
    {"freed_twice", freed_twice},
    {"dead_stream", dead_stream},
    {"dead_function", dead_function},
    {"freed_in_another_stream", freed_in_another_stream},
    {"host_reads_freed", host_reads_freed},
    {NULL, NULL},
};
