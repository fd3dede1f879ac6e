/* kernels/host.h - lets a .cu file be compiled as host C++, and registers what it defines.
 * Called by  kernels/device.h (C++ side), tools/simcuda (C side: tables and sim_host_run)
 * Calls      kernels/host.cc
 * Threads    indices and shared memory are thread-local: one block runs on one thread at a time
 * Promise    parameter sizes and offsets are those of the C++ types, as nvcc lays them out
 * Start at   struct sim_kernel                                                              */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_param {
    uint32_t offset, size;
    uint32_t is_pointer;
};

struct sim_kernel {
    const char *name;
    void (*call)(const char *args); /* one thread of the kernel; args packed as params says */
    const struct sim_param *params;
    uint32_t nparams;
    uint32_t args_bytes;
    uint32_t has_barrier;
};

struct sim_constant {
    const char *name;
    size_t bytes;
    void *(*address)(void); /* of the calling thread's copy */
};

struct sim_host_launch {
    const struct sim_kernel *kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    const char *args;
};

const struct sim_kernel *sim_host_find_kernel(const char *name);
const struct sim_constant *sim_host_find_constant(const char *name);
/* Runs the whole grid on the calling thread. 0, or the CUresult of the fault that ended it. */
int sim_host_run(const struct sim_host_launch *launch);

#ifdef __cplusplus
}

#include <utility>

/* ---- CUDA C++ as the host compiler sees it ---- */
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static __thread
#define __constant__ __thread
#define AG_NO_UNROLL

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;

void __syncthreads();
void sim_host_pause();
[[noreturn]] void sim_host_fault(int code);
void *sim_host_dynamic_shared();
unsigned ag_dynamic_shared_bytes();

#define AG_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(sim_host_dynamic_shared())

static inline unsigned ag_load(const unsigned *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline void ag_store(unsigned *p, unsigned v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
static inline void ag_pause()
{
    sim_host_pause();
}
[[noreturn]] static inline void ag_fault()
{
    sim_host_fault(700); /* CUDA_ERROR_ILLEGAL_ADDRESS */
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system()
{
    __threadfence();
}
static inline void __threadfence_block()
{
    __threadfence();
}
static inline void __syncwarp()
{
}

template <typename T> static inline T atomicAdd(T *p, T v)
{
    T old, sum;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do
        sum = old + v;
    while (!__atomic_compare_exchange(p, &old, &sum, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}
template <typename T> static inline T atomicMax(T *p, T v)
{
    T old;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    while (old < v &&
           !__atomic_compare_exchange(p, &old, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    return old;
}
template <typename T> static inline T atomicMin(T *p, T v)
{
    T old;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    while (v < old &&
           !__atomic_compare_exchange(p, &old, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    return old;
}
template <typename T> static inline T atomicExch(T *p, T v)
{
    T old;
    __atomic_exchange(p, &v, &old, __ATOMIC_SEQ_CST);
    return old;
}
template <typename T> static inline T atomicCAS(T *p, T expected, T v)
{
    __atomic_compare_exchange(p, &expected, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

/* ---- registry: one entry per kernel, its parameters deduced from its type ---- */
template <typename T> struct sim_is_pointer {
    static constexpr uint32_t value = 0;
};
template <typename T> struct sim_is_pointer<T *> {
    static constexpr uint32_t value = 1;
};

template <size_t N> struct sim_layout {
    sim_param at[N ? N : 1];
    uint32_t bytes;
};

template <typename... A> constexpr sim_layout<sizeof...(A)> sim_layout_of()
{
    sim_layout<sizeof...(A)> l{};
    uint32_t end = 0, n = 0;
    auto add = [&](uint32_t size, uint32_t align, uint32_t is_pointer) {
        end = (end + align - 1) / align * align;
        l.at[n++] = sim_param{end, size, is_pointer};
        end += size;
    };
    (add(sizeof(A), alignof(A), sim_is_pointer<A>::value), ...);
    (void)add;
    l.bytes = end;
    return l;
}

template <auto F> struct sim_bind;
template <typename... A, void (*F)(A...)> struct sim_bind<F> {
    static constexpr sim_layout<sizeof...(A)> layout = sim_layout_of<A...>();
    template <size_t... I> static void spread(const char *args, std::index_sequence<I...>)
    {
        (void)args;
        F(*reinterpret_cast<const A *>(args + layout.at[I].offset)...);
    }
    static void call(const char *args)
    {
        spread(args, std::index_sequence_for<A...>{});
    }
    static constexpr uint32_t nparams = sizeof...(A);
};

/* The rows that register.awk writes after each file. Sections hold pointers, so that no padding
 * between entries can break the walk. */
#define SIM_REGISTER_KERNEL(name, barrier)                                                         \
    static const sim_kernel sim_kernel_##name = {#name,                                            \
                                                 sim_bind<name>::call,                             \
                                                 sim_bind<name>::layout.at,                        \
                                                 sim_bind<name>::nparams,                          \
                                                 sim_bind<name>::layout.bytes,                     \
                                                 barrier};                                         \
    __attribute__((used,                                                                           \
                   section("sim_kernels"))) static const sim_kernel *const sim_kernel_row_##name = \
        &sim_kernel_##name;
#define SIM_REGISTER_CONSTANT(name)                                                                \
    static void *sim_constant_at_##name()                                                          \
    {                                                                                              \
        return &name;                                                                              \
    }                                                                                              \
    static const sim_constant sim_constant_##name = {#name, sizeof(name), sim_constant_at_##name}; \
    __attribute__((                                                                                \
        used,                                                                                      \
        section("sim_constants"))) static const sim_constant *const sim_constant_row_##name =      \
        &sim_constant_##name;
#endif
