/* tools/simcuda/sim_device.c - what the device says it is, and names of codes.
 * Called by  programs                   Calls  nothing
 * Threads    bodies hold sim_lock
 * Promise    the answers describe a device of compute capability 9.0
 * Start at   attributes[]                                                                   */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "tools/simcuda/sim_context.h"

#define A(name, value) [CU_DEVICE_ATTRIBUTE_##name] = value

static const int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
    A(MAX_THREADS_PER_BLOCK, 1024),
    A(MAX_BLOCK_DIM_X, 1024),
    A(MAX_BLOCK_DIM_Y, 1024),
    A(MAX_BLOCK_DIM_Z, 64),
    A(MAX_GRID_DIM_X, 2147483647),
    A(MAX_GRID_DIM_Y, 65535),
    A(MAX_GRID_DIM_Z, 65535),
    A(MAX_SHARED_MEMORY_PER_BLOCK, 49152),
    A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448),
    A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472),
    A(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024),
    A(TOTAL_CONSTANT_MEMORY, 65536),
    A(WARP_SIZE, 32),
    A(MAX_PITCH, 2147483647),
    A(MAX_REGISTERS_PER_BLOCK, 65536),
    A(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
    A(CLOCK_RATE, 1980000),
    A(MEMORY_CLOCK_RATE, 3201000),
    A(GLOBAL_MEMORY_BUS_WIDTH, 6144),
    A(L2_CACHE_SIZE, 62914560),
    A(MAX_PERSISTING_L2_CACHE_SIZE, 39321600),
    A(TEXTURE_ALIGNMENT, 512),
    A(TEXTURE_PITCH_ALIGNMENT, 32),
    A(SURFACE_ALIGNMENT, 512),
    A(MULTIPROCESSOR_COUNT, 132),
    A(MAX_THREADS_PER_MULTIPROCESSOR, 2048),
    A(MAX_BLOCKS_PER_MULTIPROCESSOR, 32),
    A(GPU_OVERLAP, 1),
    A(ASYNC_ENGINE_COUNT, 3),
    A(CAN_MAP_HOST_MEMORY, 1),
    A(CONCURRENT_KERNELS, 1),
    A(UNIFIED_ADDRESSING, 1),
    A(MANAGED_MEMORY, 1),
    A(PAGEABLE_MEMORY_ACCESS, 0),
    A(COMPUTE_CAPABILITY_MAJOR, 9),
    A(COMPUTE_CAPABILITY_MINOR, 0),
    A(STREAM_PRIORITIES_SUPPORTED, 1),
    A(GLOBAL_L1_CACHE_SUPPORTED, 1),
    A(LOCAL_L1_CACHE_SUPPORTED, 1),
    A(COMPUTE_PREEMPTION_SUPPORTED, 1),
    A(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
    A(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1),
    A(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1),
    A(CAN_USE_STREAM_MEM_OPS_V1, 1),
    A(CAN_USE_64_BIT_STREAM_MEM_OPS, 1),
    A(CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
    A(COOPERATIVE_LAUNCH, 1),
    A(MEMORY_POOLS_SUPPORTED, 1),
    A(HOST_REGISTER_SUPPORTED, 1),
    A(READ_ONLY_HOST_REGISTER_SUPPORTED, 1),
    A(HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    A(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 0),
    A(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 0),
    A(PCI_BUS_ID, 1),
    A(CLUSTER_LAUNCH, 1),
    A(UNIFIED_FUNCTION_POINTERS, 1),
    A(MEM_SYNC_DOMAIN_COUNT, 4),
};

static bool bad_device(CUdevice device)
{
    return device < 0 || device >= sim.devices;
}

SIM_API(cuDriverGetVersion, SIM_NS_GETTER, SIM_ANY, (int *out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim.driver_version;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGet, SIM_NS_GETTER, SIM_INIT, (CUdevice * out, int ordinal), (out, ordinal))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetCount, SIM_NS_GETTER, SIM_INIT, (int *out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim.devices;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, SIM_NS_GETTER, SIM_INIT, (char *name, int length, CUdevice device),
        (name, length, device))
{
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "simcuda");
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, "simcuda-device-", 15);
    out->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetUuid, SIM_NS_GETTER, SIM_INIT, (CUuuid * out, CUdevice device), (out, device))
{
    return uuid(out, device);
}

SIM_API(cuDeviceGetUuid_v2, SIM_NS_GETTER, SIM_INIT, (CUuuid * out, CUdevice device), (out, device))
{
    return uuid(out, device);
}

SIM_API(cuDeviceTotalMem_v2, SIM_NS_GETTER, SIM_INIT, (size_t * out, CUdevice device),
        (out, device))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = sim.memory;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetAttribute, SIM_NS_GETTER, SIM_INIT,
        (int *out, CUdevice_attribute attribute, CUdevice device), (out, attribute, device))
{
    if (!out || (int)attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS ? sim.managed_concurrent
           : attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID           ? (int)device
                                                                      : attributes[attribute];
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceComputeCapability, SIM_NS_GETTER, SIM_INIT,
        (int *major, int *minor, CUdevice device), (major, minor, device))
{
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetPCIBusId, SIM_NS_GETTER, SIM_INIT, (char *out, int length, CUdevice device),
        (out, length, device))
{
    if (!out || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)length, "0000:01:%02x.0", (unsigned)device);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceCanAccessPeer, SIM_NS_GETTER, SIM_INIT, (int *out, CUdevice a, CUdevice b),
        (out, a, b))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(a) || bad_device(b))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = a != b;
    return CUDA_SUCCESS;
}

struct code {
    CUresult code;
    const char *name, *text;
};

#define C(name, text)                                                                              \
    {                                                                                              \
        CUDA_ERROR_##name, "CUDA_ERROR_" #name, text                                               \
    }

static const struct code codes[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    C(INVALID_VALUE, "invalid argument"),
    C(OUT_OF_MEMORY, "out of memory"),
    C(NOT_INITIALIZED, "initialization error"),
    C(DEINITIALIZED, "driver shutting down"),
    C(NO_DEVICE, "no CUDA-capable device is detected"),
    C(INVALID_DEVICE, "invalid device ordinal"),
    C(INVALID_IMAGE, "device kernel image is invalid"),
    C(INVALID_CONTEXT, "invalid device context"),
    C(NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    C(FILE_NOT_FOUND, "file not found"),
    C(INVALID_HANDLE, "invalid resource handle"),
    C(NOT_FOUND, "named symbol not found"),
    C(NOT_READY, "device not ready"),
    C(ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    C(LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    C(LAUNCH_FAILED, "unspecified launch failure"),
    C(CONTEXT_IS_DESTROYED, "context is destroyed"),
    C(NOT_PERMITTED, "operation not permitted"),
    C(NOT_SUPPORTED, "operation not supported"),
    C(STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    C(STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    C(STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    C(STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    C(STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    C(STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    C(STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing "
                               "blocking stream"),
    C(CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
    C(STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from "
                                   "another thread"),
    C(GRAPH_EXEC_UPDATE_FAILURE,
      "the graph update was not performed because it included changes "
      "which violated constraints specific to instantiated graph update"),
    C(UNKNOWN, "unknown error"),
};

static const struct code *find_code(CUresult code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return &codes[i];
    return NULL;
}

SIM_API(cuGetErrorName, SIM_NS_GETTER, SIM_ANY, (CUresult code, const char **out), (code, out))
{
    const struct code *c = find_code(code);
    *out = c ? c->name : NULL;
    return c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGetErrorString, SIM_NS_GETTER, SIM_ANY, (CUresult code, const char **out), (code, out))
{
    const struct code *c = find_code(code);
    *out = c ? c->text : NULL;
    return c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
