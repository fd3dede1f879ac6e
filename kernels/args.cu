// Large and structured parameters.
#include "kernels/device.h"

struct args4k {
    unsigned word[1022];
};
struct args32k {
    unsigned word[8184];
};
struct point64 {
    double x[8];
};

// out[0] = sum of all words, out[1] = last word.
extern "C" __global__ void big_args(unsigned *out, args4k a)
{
    unsigned sum = 0;
    for (int i = 0; i < 1022; i++)
        sum += a.word[i];
    out[0] = sum;
    out[1] = a.word[1021];
}

extern "C" __global__ void args32k(unsigned *out, struct args32k a)
{
    unsigned sum = 0;
    for (int i = 0; i < 8184; i++)
        sum += a.word[i];
    out[0] = sum;
    out[1] = a.word[8183];
}

// Parameters of every size, so that each offset matters.
extern "C" __global__ void mixed_args(double *out, char c, short s, int i, double d, float f,
                                      point64 p, unsigned char last)
{
    out[0] = c;
    out[1] = s;
    out[2] = i;
    out[3] = d;
    out[4] = f;
    out[5] = p.x[0] + p.x[7];
    out[6] = last;
}
