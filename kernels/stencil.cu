/* kernels/stencil.cu - Jacobi iteration for the heat equation on an nx by ny grid.
 * Used by    tests/apps/stencil.c, and by the simulated driver through its host build
 * Promise    the same bits on every device: no atomics, each sum in a fixed order
 * Start at   stencil_step()                                                    */
#include "kernels/device.h"

#define STENCIL_BLOCK 64

extern "C" __global__ void stencil_step(float *out, const float *in, int nx, int ny)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx * ny)
        return;
    int x = i % nx;
    int y = i / nx;
    if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1) {
        out[i] = in[i];
        return;
    }
    out[i] = 0.25f * ((in[i - 1] + in[i + 1]) + (in[i - nx] + in[i + nx]));
}

/* partial[block] = largest change between two sweeps; the block has STENCIL_BLOCK threads. */
extern "C" __global__ void stencil_change(float *partial, const float *a, const float *b, int n)
{
    __shared__ float best[STENCIL_BLOCK];
    int t = threadIdx.x;
    float m = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        float d = a[i] - b[i];
        d = d < 0.0f ? -d : d;
        m = d > m ? d : m;
    }
    best[t] = m;
    __syncthreads();
    for (int half = STENCIL_BLOCK / 2; half > 0; half /= 2) {
        if (t < half && best[t + half] > best[t])
            best[t] = best[t + half];
        __syncthreads();
    }
    if (t == 0)
        partial[blockIdx.x] = best[0];
}

/* One block of STENCIL_BLOCK threads: the largest of n partial results. */
extern "C" __global__ void stencil_largest(float *out, const float *partial, int n)
{
    __shared__ float best[STENCIL_BLOCK];
    int t = threadIdx.x;
    float m = 0.0f;
    for (int i = t; i < n; i += STENCIL_BLOCK)
        m = partial[i] > m ? partial[i] : m;
    best[t] = m;
    __syncthreads();
    for (int half = STENCIL_BLOCK / 2; half > 0; half /= 2) {
        if (t < half && best[t + half] > best[t])
            best[t] = best[t + half];
        __syncthreads();
    }
    if (t == 0)
        *out = best[0];
}
