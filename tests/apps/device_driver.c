/* tests/apps/device_driver.c - device_layer.h on the driver API.
 * Called by  the examples                 Calls  libcuda.so.1
 * Threads    one
 * Start at   device_open()                                                      */
#include "tests/apps/device_layer.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    CUdevice device;
    CUmodule module;
    CUstream stream;
    unsigned long launches;
} self;

static void check(CUresult ret, const char *what)
{
    const char *text = NULL;
    if (ret == CUDA_SUCCESS)
        return;
    if (cuGetErrorString(ret, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    fprintf(stderr, "%s: %s (%d)\n", what, text, (int)ret);
    exit(1);
}

void device_open(const void *image, enum device_stream stream)
{
    CUcontext ctx;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&self.device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&ctx, self.device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
    check(cuModuleLoadData(&self.module, image), "cuModuleLoadData");
    if (stream == DEVICE_STREAM_OWN)
        check(cuStreamCreate(&self.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

void device_close(void)
{
    if (self.stream)
        check(cuStreamDestroy(self.stream), "cuStreamDestroy");
    check(cuModuleUnload(self.module), "cuModuleUnload");
    check(cuDevicePrimaryCtxRelease(self.device), "cuDevicePrimaryCtxRelease");
}

const void *device_find(const char *name)
{
    CUfunction f;
    check(cuModuleGetFunction(&f, self.module, name), name);
    return f;
}

void *device_alloc(size_t bytes)
{
    CUdeviceptr p;
    check(cuMemAlloc(&p, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)p;
}

void device_free(void *p)
{
    check(cuMemFree((CUdeviceptr)(uintptr_t)p), "cuMemFree");
}

void device_put(void *dst, const void *src, size_t bytes)
{
    /* A copy that has returned is not yet in order with a non-blocking stream's work. */
    device_sync();
    check(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)dst, src, bytes), "cuMemcpyHtoD");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
}

void device_get(void *dst, const void *src, size_t bytes)
{
    check(cuMemcpyDtoHAsync(dst, (CUdeviceptr)(uintptr_t)src, bytes, self.stream),
          "cuMemcpyDtoHAsync");
    device_sync();
}

void device_launch(const void *kernel, unsigned grid, unsigned block, void **args)
{
    self.launches++;
    check(cuLaunchKernel((CUfunction)kernel, grid, 1, 1, block, 1, 1, 0, self.stream, args, NULL),
          "cuLaunchKernel");
}

void device_sync(void)
{
    check(cuStreamSynchronize(self.stream), "cuStreamSynchronize");
}

unsigned long device_launches(void)
{
    return self.launches;
}
