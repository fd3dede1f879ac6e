// Reads a constant that the host uploads through cuModuleGetGlobal.
#include "kernels/device.h"

struct config64 {
    int v[16];
};
extern "C" {
__constant__ config64 config;
}

extern "C" __global__ void reads_constant(int *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = config.v[threadIdx.x];
}
