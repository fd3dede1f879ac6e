/* tests/simcuda/case_main.c - runs one case by name.
 * Called by  simcuda_test.cc            Calls  case_basic.c, case_limits.c, case_ops.c
 * Threads    any
 * Promise    see case.h
 * Start at   main()                                                                         */
#include "tests/simcuda/case.h"

#include <string.h>

void case_open(int device)
{
    CUcontext ctx;
    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&ctx, device));
    NEED(cuCtxSetCurrent(ctx));
}

CUfunction case_function(const unsigned char *image, const char *name)
{
    CUmodule m;
    CUfunction f;
    NEED(cuModuleLoadData(&m, image));
    NEED(cuModuleGetFunction(&f, m, name));
    return f;
}

CUdeviceptr case_buffer(size_t bytes)
{
    CUdeviceptr p;
    NEED(cuMemAlloc(&p, bytes));
    NEED(cuMemsetD8(p, 0, bytes));
    NEED(cuCtxSynchronize());
    return p;
}

CUstream case_stream(void)
{
    CUstream s;
    NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

CUresult case_launch(CUfunction f, CUstream s, unsigned grid, unsigned block, void **args)
{
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, args, NULL);
}

int case_read(CUdeviceptr at)
{
    int v;
    NEED(cuCtxSynchronize());
    NEED(cuMemcpyDtoH(&v, at, sizeof v));
    return v;
}

unsigned *case_flag(void)
{
    void *p;
    NEED(cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(p, 0, 64);
    return p;
}

static int run(const struct sim_case *list, const char *name)
{
    for (; list->name; list++)
        if (!strcmp(list->name, name)) {
            list->run();
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 ||
        (!run(case_basic, argv[1]) && !run(case_limits, argv[1]) && !run(case_ops, argv[1]))) {
        fputs("usage: sim_case NAME\n", stderr);
        return 64;
    }
    return 0;
}
