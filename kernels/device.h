/* kernels/device.h - what a kernel file may use, spelled once for both of its compilers.
 * Used by    every kernels/X.cu: nvcc makes the module image, gcc makes the host build for simcuda
 * Threads    device code; on the host one kernel runs on one thread (host.cc), barriers included
 * Promise    a kernel written with these names means the same in both builds
 * Start at   AG_DYNAMIC_SHARED. Kernels are extern "C"; register.awk finds their __global__     */
#pragma once
#ifdef __CUDACC__

/* Before a loop whose body is large and rarely run. */
#define AG_NO_UNROLL _Pragma("unroll 1")

/* The dynamic shared memory of the launch, and its size. */
#define AG_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

static __device__ __forceinline__ unsigned ag_dynamic_shared_bytes()
{
    unsigned bytes;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
/* Words that the host, or another kernel, changes while this one runs. */
static __device__ __forceinline__ unsigned ag_load(const unsigned *p)
{
    return *(const volatile unsigned *)p;
}
static __device__ __forceinline__ void ag_store(unsigned *p, unsigned v)
{
    __threadfence_system();
    *(volatile unsigned *)p = v;
    __threadfence_system();
}
static __device__ __forceinline__ void ag_pause()
{
    __nanosleep(200);
}
/* An illegal address: CUDA_ERROR_ILLEGAL_ADDRESS, sticky. */
static __device__ __forceinline__ void ag_fault()
{
    asm volatile("{ .reg .u64 p; mov.u64 p, 16; st.global.u32 [p], 1; }" ::: "memory");
}

#else
#include "kernels/host.h"
#endif
