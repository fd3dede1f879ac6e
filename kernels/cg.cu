/* kernels/cg.cu - conjugate gradient for the 5-point Laplacian on an nx by ny grid, matrix-free.
 * Used by    tests/apps/cg.c, and by the simulated driver through its host build
 * Promise    the same bits on every device: dot products add in a fixed order, no atomics
 * Start at   cg_apply(); the scalars live on the device (cg_step, cg_direction) or on the host
 *            (cg_axpy, cg_xpay), as the program chooses                              */
#include "kernels/device.h"

#define CG_BLOCK 64

extern "C" __global__ void cg_apply(double *q, const double *p, int nx, int ny)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx * ny)
        return;
    int x = i % nx;
    int y = i / nx;
    double sum = 4.0 * p[i];
    if (x > 0)
        sum -= p[i - 1];
    if (x < nx - 1)
        sum -= p[i + 1];
    if (y > 0)
        sum -= p[i - nx];
    if (y < ny - 1)
        sum -= p[i + nx];
    q[i] = sum;
}

/* partial[block] = the block's share of a.b; the block has CG_BLOCK threads. */
extern "C" __global__ void cg_dot(double *partial, const double *a, const double *b, int n)
{
    __shared__ double part[CG_BLOCK];
    int t = threadIdx.x;
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        sum += a[i] * b[i];
    part[t] = sum;
    __syncthreads();
    for (int half = CG_BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        partial[blockIdx.x] = part[0];
}

/* One block of CG_BLOCK threads: the sum of n partial results. */
extern "C" __global__ void cg_sum(double *out, const double *partial, int n)
{
    __shared__ double part[CG_BLOCK];
    int t = threadIdx.x;
    double sum = 0.0;
    for (int i = t; i < n; i += CG_BLOCK)
        sum += partial[i];
    part[t] = sum;
    __syncthreads();
    for (int half = CG_BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        *out = part[0];
}

/* x += (rr / pq) p, r -= (rr / pq) q */
extern "C" __global__ void cg_step(double *x, double *r, const double *p, const double *q,
                                   const double *rr, const double *pq, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double alpha = *rr / *pq;
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
}

/* p = r + (rr_new / rr_old) p */
extern "C" __global__ void cg_direction(double *p, const double *r, const double *rr_new,
                                        const double *rr_old, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = r[i] + *rr_new / *rr_old * p[i];
}

/* y += a x */
extern "C" __global__ void cg_axpy(double *y, const double *x, double a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

/* y = x + a y */
extern "C" __global__ void cg_xpay(double *y, const double *x, double a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] + a * y[i];
}
