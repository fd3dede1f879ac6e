/* kernels/varying.cu - tiny integer kernels whose every step depends on the one before.
 * Used by    tests/apps/chain.c, tests/apps/phases.c, tools/bench, and the simulated driver
 * Promise    a lost, doubled, reordered or stale launch changes the result: no two of them commute
 *            for all values, and all arithmetic is exact (32 bits, wrapping)
 * Start at   vary_mix(): a pointer and a word, 12 bytes of arguments                     */
#include "kernels/device.h"

extern "C" __global__ void vary_mix(unsigned *x, unsigned a)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 1664525u + a;
}

extern "C" __global__ void vary_xor(unsigned *x, unsigned a)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] ^= (a + i) * 2654435761u;
}

extern "C" __global__ void vary_rot(unsigned *x, unsigned a)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned r = a & 31u;
    unsigned v = x[i];
    x[i] = ((v << r) | (v >> ((32u - r) & 31u))) + a;
}

/* Reads a second array at a moving offset: the order of launches on both arrays shows. */
extern "C" __global__ void vary_pair(unsigned *x, const unsigned *y, unsigned shift, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * 22695477u + y[(i + shift) % n];
}

/* Does nothing: what is left of a launch is the launch. */
extern "C" __global__ void vary_null(unsigned *x, unsigned a)
{
    (void)x;
    (void)a;
}
