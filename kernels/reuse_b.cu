// The other one: f(ptr, ptr, int, 64-byte struct).
#include "kernels/device.h"

struct pack64 {
    int v[16];
};

extern "C" __global__ void reuse_b(int *out, const int *in, int add, pack64 p)
{
    unsigned sum = (unsigned)*in + (unsigned)add; // any bits may come: no signed overflow
    for (int i = 0; i < 16; i++)
        sum += (unsigned)p.v[i];
    *out = (int)sum;
}
