/* tools/bench/null/null_driver.c - a libcuda.so.1 whose calls do nothing and take no time, so that what a
 * launch costs *inside the shim* is the difference of two small numbers. On a GPU's driver a launch
 * varies by 400 ns, which hides 25.
 * Called by  hold_cost, aside_cost and the shim, through LD_LIBRARY_PATH      Calls  nothing
 * Threads    any: nothing is remembered
 * Promise    answers success and plausible handles; every function takes the arguments (pointer,
 *            4-byte word) of the kernels of kernels/varying.cu. Nothing is executed: for measuring
 *            the caller, never for testing it
 * Start at   cuLaunchKernel()                                                   */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define HANDLE(type, number) ((type)(uintptr_t)(0x1000 + (number)*0x100))
#define NOTHING(name, ...)                                                                         \
    EXPORT CUresult name(__VA_ARGS__)                                                              \
    {                                                                                              \
        return CUDA_SUCCESS;                                                                       \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

NOTHING(cuInit, unsigned flags)
NOTHING(cuCtxSetCurrent, CUcontext ctx)
NOTHING(cuCtxPushCurrent_v2, CUcontext ctx)
NOTHING(cuCtxPopCurrent_v2, CUcontext *ctx)
NOTHING(cuCtxSynchronize, void)
NOTHING(cuStreamSynchronize, CUstream stream)
NOTHING(cuMemsetD8_v2, CUdeviceptr p, unsigned char value, size_t n)
NOTHING(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
NOTHING(cuGraphLaunch, CUgraphExec exec, CUstream stream)
NOTHING(cuGraphUpload, CUgraphExec exec, CUstream stream)
NOTHING(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
        const CUDA_KERNEL_NODE_PARAMS_v2 *p)
NOTHING(cuGraphExecDestroy, CUgraphExec exec)
NOTHING(cuGraphDestroy, CUgraph graph)
NOTHING(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    strncpy(name, "none (null driver)", (size_t)size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = "an error";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
    *ctx = HANDLE(CUcontext, 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *ctx)
{
    *ctx = HANDLE(CUcontext, 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = HANDLE(CUmodule, 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name)
{
    *f = HANDLE(CUfunction, 2 + strlen(name) % 8);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    *module = HANDLE(CUmodule, 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction f)
{
    *name = "null";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    *value = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    if (index > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = index * 8;
    *size = index ? 4 : 8;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    *p = 0x7000000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    *stream = HANDLE(CUstream, 20);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
    *ctx = HANDLE(CUcontext, 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    *id = 7;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    *graph = HANDLE(CUgraph, 21);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                        size_t n, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    *node = HANDLE(CUgraphNode, 22);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags)
{
    *exec = HANDLE(CUgraphExec, 23);
    return CUDA_SUCCESS;
}
