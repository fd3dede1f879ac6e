/* tools/simcuda/sim_function.c - functions and kernels: what they are asked, what they are told.
 * Called by  programs                   Calls  sim_module.c
 * Threads    bodies hold sim_lock
 * Promise    a CUkernel and a CUfunction are different kinds of handle: each query takes its own
 * Start at   sim_function_of()                                                              */
#define _GNU_SOURCE
#include <string.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_module.h"

struct sim_function *sim_function_of(CUfunction handle, struct sim_context *ctx, bool *out_kernel,
                                     CUresult *out_ret)
{
    struct sim_function *f = sim_handle_find(handle, SIM_FUNCTION);
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    *out_ret = CUDA_SUCCESS;
    *out_kernel = k != NULL;
    if (k)
        return sim_kernel_function(k, ctx, out_ret);
    if (!f)
        *out_ret =
            sim_handle_is_dead(handle, SIM_FUNCTION) || sim_handle_is_dead(handle, SIM_KERNEL)
                ? sim_misuse(CUDA_ERROR_INVALID_HANDLE, "function %p: its module is unloaded",
                             (void *)handle)
                : CUDA_ERROR_INVALID_HANDLE;
    return f;
}

/* For the queries that take CUfunction only. */
static struct sim_function *function_only(CUfunction handle, CUresult *out_ret)
{
    struct sim_function *f = sim_handle_find(handle, SIM_FUNCTION);
    *out_ret = f ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_FUNCTION)
                   ? sim_misuse(CUDA_ERROR_INVALID_HANDLE, "function %p: its module is unloaded",
                                (void *)handle)
                   : CUDA_ERROR_INVALID_HANDLE;
    return f;
}

static CUresult param_info(const struct sim_kernel *host, size_t index, size_t *out_offset,
                           size_t *out_bytes)
{
    if (!out_offset || index >= host->nparams)
        return CUDA_ERROR_INVALID_VALUE;
    *out_offset = host->params[index].offset;
    if (out_bytes)
        *out_bytes = host->params[index].size;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo, SIM_NS_GETTER, SIM_CTX,
        (CUfunction handle, size_t index, size_t *out_offset, size_t *out_bytes),
        (handle, index, out_offset, out_bytes))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    return f ? param_info(f->host, index, out_offset, out_bytes) : ret;
}

SIM_API(cuKernelGetParamInfo, SIM_NS_GETTER, SIM_CTX,
        (CUkernel handle, size_t index, size_t *out_offset, size_t *out_bytes),
        (handle, index, out_offset, out_bytes))
{
    CUresult ret;
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    struct sim_function *f = k ? sim_kernel_function(k, sim_context_current(), &ret) : NULL;
    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;
    return f ? param_info(f->host, index, out_offset, out_bytes) : ret;
}

SIM_API(cuFuncGetName, SIM_NS_GETTER, SIM_CTX, (const char **out, CUfunction handle), (out, handle))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (f)
        *out = f->name;
    return ret;
}

SIM_API(cuKernelGetName, SIM_NS_GETTER, SIM_CTX, (const char **out, CUkernel handle), (out, handle))
{
    CUresult ret = CUDA_ERROR_INVALID_HANDLE;
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    struct sim_function *f = k ? sim_kernel_function(k, sim_context_current(), &ret) : NULL;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (f)
        *out = f->name;
    return ret;
}

SIM_API(cuFuncGetModule, SIM_NS_GETTER, SIM_CTX, (CUmodule * out, CUfunction handle), (out, handle))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (f)
        *out = f->module->object.handle;
    return ret;
}

SIM_API(cuFuncIsLoaded, SIM_NS_GETTER, SIM_CTX, (CUfunctionLoadingState * out, CUfunction handle),
        (out, handle))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (f)
        *out = CU_FUNCTION_LOADING_STATE_LOADED;
    return ret;
}

SIM_API(cuFuncLoad, SIM_NS_SMALL, SIM_CTX, (CUfunction handle), (handle))
{
    CUresult ret;
    function_only(handle, &ret);
    return ret;
}

static CUresult get_attribute(const struct sim_function *f, int *out, CUfunction_attribute which)
{
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out = (int)f->static_shared;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *out = 90;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = f->max_dynamic;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *out = f->carveout;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *out = f->cluster_required;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *out = f->cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *out = f->nonportable_cluster;
        return CUDA_SUCCESS;
    default:
        *out = 0;
        return (unsigned)which < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(struct sim_function *f, CUfunction_attribute which, int value)
{
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value + (int)f->static_shared > SIM_MOST_SHARED)
            return CUDA_ERROR_INVALID_VALUE;
        f->max_dynamic = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        f->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        f->nonportable_cluster = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        f->cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuFuncGetAttribute, SIM_NS_SMALL, SIM_CTX,
        (int *out, CUfunction_attribute which, CUfunction handle), (out, which, handle))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    return f ? get_attribute(f, out, which) : ret;
}

SIM_API(cuFuncSetAttribute, SIM_NS_SMALL, SIM_CTX,
        (CUfunction handle, CUfunction_attribute which, int value), (handle, which, value))
{
    CUresult ret;
    struct sim_function *f = function_only(handle, &ret);
    return f ? set_attribute(f, which, value) : ret;
}

SIM_API(cuFuncSetCacheConfig, SIM_NS_SMALL, SIM_CTX, (CUfunction handle, CUfunc_cache cache),
        (handle, cache))
{
    CUresult ret;
    bool is_kernel;
    struct sim_function *f = sim_function_of(handle, sim_context_current(), &is_kernel, &ret);
    if (f)
        f->cache = (int)cache;
    return ret;
}

static struct sim_function *kernel_only(CUkernel handle, CUdevice device, CUresult *out_ret)
{
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    struct sim_context *ctx = sim_context_current();
    *out_ret = CUDA_ERROR_INVALID_HANDLE;
    if (k && (!ctx || ctx->device != device)) {
        *out_ret = device < 0 || device >= sim.devices ? CUDA_ERROR_INVALID_DEVICE
                                                       : CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    return k ? sim_kernel_function(k, ctx, out_ret) : NULL;
}

SIM_API(cuKernelGetAttribute, SIM_NS_SMALL, SIM_CTX,
        (int *out, CUfunction_attribute which, CUkernel handle, CUdevice device),
        (out, which, handle, device))
{
    CUresult ret;
    struct sim_function *f = kernel_only(handle, device, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!f || which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return f ? get_attribute(f, out, which) : ret;
    const struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    *out = k->told[device] ? k->max_dynamic[device]
                           : SIM_DEFAULT_DYNAMIC_SHARED - (int)f->static_shared;
    return CUDA_SUCCESS;
}

SIM_API(cuKernelSetAttribute, SIM_NS_SMALL, SIM_CTX,
        (CUfunction_attribute which, int value, CUkernel handle, CUdevice device),
        (which, value, handle, device))
{
    CUresult ret;
    struct sim_function *f = kernel_only(handle, device, &ret);
    if (f)
        ret = set_attribute(f, which, value);
    if (!ret && which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
        k->told[device] = true;
        k->max_dynamic[device] = value;
    }
    return ret;
}

SIM_API(cuKernelSetCacheConfig, SIM_NS_SMALL, SIM_CTX,
        (CUkernel handle, CUfunc_cache cache, CUdevice device), (handle, cache, device))
{
    CUresult ret;
    struct sim_function *f = kernel_only(handle, device, &ret);
    if (f)
        f->cache = (int)cache;
    return ret;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_NS_SMALL, SIM_CTX,
        (int *out, CUfunction handle, int block, size_t shared), (out, handle, block, shared))
{
    CUresult ret;
    bool is_kernel;
    struct sim_function *f = sim_function_of(handle, sim_context_current(), &is_kernel, &ret);
    if (!out || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!f)
        return ret;
    int by_threads = 2048 / (((block + 31) / 32) * 32);
    size_t each = f->static_shared + shared + 1024;
    int by_shared = (int)(233472 / each);
    *out = block > 1024 ? 0 : by_threads < by_shared ? by_threads : by_shared;
    if (*out > 32)
        *out = 32;
    return CUDA_SUCCESS;
}
