// x[i] += a: order and count of launches show in the value.
#include "kernels/device.h"

extern "C" __global__ void chain(float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += a;
}

// x[i] = x[i] * m + a, on integers: any two of these in another order differ.
extern "C" __global__ void step(unsigned *x, unsigned m, unsigned a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * m + a;
}

extern "C" __global__ void null()
{
}
