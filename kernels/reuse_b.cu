// The other one: f(ptr, ptr, int, 64-byte struct).
#include "kernels/device.h"

struct pack64 {
    int v[16];
};

extern "C" __global__ void reuse_b(int *out, const int *in, int add, pack64 p)
{
    int sum = 0;
    for (int i = 0; i < 16; i++)
        sum += p.v[i];
    *out = *in + add + sum;
}
