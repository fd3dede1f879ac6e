/* tests/apps/device_runtime.c - device_layer.h on the runtime API.
 * Called by  the examples                 Calls  libcudart, static or shared
 * Threads    one
 * Start at   device_open()                                                      */
#include "tests/apps/device_layer.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    cudaStream_t stream;
    unsigned long launches;
} self;

static void check(cudaError_t ret, const char *what)
{
    if (ret == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s (%d)\n", what, cudaGetErrorString(ret), (int)ret);
    exit(1);
}

void device_open(const void *image, enum device_stream stream)
{
    (void)image;
    check(cudaSetDevice(0), "cudaSetDevice");
    if (stream == DEVICE_STREAM_OWN)
        check(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking), "cudaStreamCreate");
}

void device_close(void)
{
    if (self.stream)
        check(cudaStreamDestroy(self.stream), "cudaStreamDestroy");
}

void *device_alloc(size_t bytes)
{
    void *p = NULL;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    return p;
}

void device_free(void *p)
{
    check(cudaFree(p), "cudaFree");
}

void device_put(void *dst, const void *src, size_t bytes)
{
    device_sync();
    check(cudaMemcpy(dst, src, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void device_get(void *dst, const void *src, size_t bytes)
{
    check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, self.stream), "cudaMemcpyAsync");
    device_sync();
}

void device_launch(const void *kernel, unsigned grid, unsigned block, void **args)
{
    dim3 g = {grid, 1, 1};
    dim3 b = {block, 1, 1};
    self.launches++;
    check(cudaLaunchKernel(kernel, g, b, args, 0, self.stream), "cudaLaunchKernel");
}

void device_sync(void)
{
    check(cudaStreamSynchronize(self.stream), "cudaStreamSynchronize");
}

unsigned long device_launches(void)
{
    return self.launches;
}
