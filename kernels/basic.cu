// Small kernels that tests combine: store, copy, scale, and two that fault.
#include "kernels/device.h"

extern "C" __global__ void store(int *dst, int value)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *dst = value;
}

extern "C" __global__ void copy(const int *src, int *dst, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        dst[i] = src[i];
}

extern "C" __global__ void scale(float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= a;
}

extern "C" __global__ void fault()
{
    ag_fault();
}

// A kernel of a loop that one day faults.
extern "C" __global__ void fault_when(const unsigned *when, unsigned now)
{
    if (ag_load(when) == now)
        ag_fault();
}
