// Writes the size of its dynamic shared memory, and the last byte of it as a proof that it is there.
#include "kernels/device.h"

extern "C" __global__ void uses_dynamic_smem(unsigned *out)
{
    AG_DYNAMIC_SHARED(unsigned char, bytes);
    unsigned n = ag_dynamic_shared_bytes();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        if (n)
            bytes[n - 1] = 0x5A;
        out[0] = n;
        out[1] = n ? bytes[n - 1] : 0;
    }
}
