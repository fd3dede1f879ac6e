/* tests/conformance/facts.h - one driver, asked for facts; each is written down and compared.
 * Called by  the *_facts.cc files       Calls  libcuda.so.1 through dlopen
 * Threads    any for calls; facts from the test's thread
 * Promise    the same executable asks the real driver and simcuda: LD_LIBRARY_PATH decides
 * Start at   FACT                                                                           */
#ifndef AG_TESTS_CONFORMANCE_FACTS_H
#define AG_TESTS_CONFORMANCE_FACTS_H

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

// Every function that the suite calls; cuda.h's macros pick the variant.
// clang-format off
#define CONFORMANCE_CALLS(X) \
    X(cuInit) \
    X(cuDriverGetVersion) \
    X(cuDeviceGet) \
    X(cuDeviceGetAttribute) \
    X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease) \
    X(cuDevicePrimaryCtxReset) \
    X(cuDevicePrimaryCtxGetState) \
    X(cuCtxSetCurrent) \
    X(cuCtxGetCurrent) \
    X(cuCtxPushCurrent) \
    X(cuCtxPopCurrent) \
    X(cuCtxSynchronize) \
    X(cuCtxDestroy) \
    X(cuCtxGetDevice) \
    X(cuCtxGetId) \
    X(cuCtxGetStreamPriorityRange) \
    X(cuGetErrorName) \
    X(cuGetErrorString) \
    X(cuMemAlloc) \
    X(cuMemFree) \
    X(cuMemAllocHost) \
    X(cuMemHostAlloc) \
    X(cuMemFreeHost) \
    X(cuMemHostRegister) \
    X(cuMemHostUnregister) \
    X(cuMemHostGetDevicePointer) \
    X(cuMemAllocManaged) \
    X(cuMemGetInfo) \
    X(cuMemAllocAsync) \
    X(cuMemFreeAsync) \
    X(cuMemGetAddressRange) \
    X(cuPointerGetAttribute) \
    X(cuMemcpyHtoD) \
    X(cuMemcpyDtoH) \
    X(cuMemcpyDtoD) \
    X(cuMemcpyHtoDAsync) \
    X(cuMemcpyDtoHAsync) \
    X(cuMemcpyDtoDAsync) \
    X(cuMemsetD8) \
    X(cuMemsetD32) \
    X(cuMemsetD8Async) \
    X(cuMemsetD32Async) \
    X(cuModuleLoadData) \
    X(cuModuleUnload) \
    X(cuModuleGetFunction) \
    X(cuModuleGetGlobal) \
    X(cuLibraryLoadData) \
    X(cuLibraryUnload) \
    X(cuLibraryGetKernel) \
    X(cuLibraryGetModule) \
    X(cuKernelGetFunction) \
    X(cuKernelGetParamInfo) \
    X(cuKernelGetName) \
    X(cuKernelGetAttribute) \
    X(cuKernelSetAttribute) \
    X(cuFuncGetParamInfo) \
    X(cuFuncGetName) \
    X(cuFuncGetModule) \
    X(cuFuncGetAttribute) \
    X(cuFuncSetAttribute) \
    X(cuFuncSetCacheConfig) \
    X(cuStreamCreate) \
    X(cuStreamCreateWithPriority) \
    X(cuStreamDestroy) \
    X(cuStreamSynchronize) \
    X(cuStreamQuery) \
    X(cuStreamGetId) \
    X(cuStreamGetPriority) \
    X(cuStreamWaitEvent) \
    X(cuStreamBeginCapture) \
    X(cuStreamEndCapture) \
    X(cuStreamIsCapturing) \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuStreamWaitValue32) \
    X(cuStreamWriteValue32) \
    X(cuStreamAddCallback) \
    X(cuLaunchHostFunc) \
    X(cuEventCreate) \
    X(cuEventDestroy) \
    X(cuEventRecord) \
    X(cuEventQuery) \
    X(cuEventSynchronize) \
    X(cuEventElapsedTime) \
    X(cuLaunchKernel) \
    X(cuLaunchKernelEx) \
    X(cuGraphCreate) \
    X(cuGraphDestroy) \
    X(cuGraphAddKernelNode) \
    X(cuGraphAddMemsetNode) \
    X(cuGraphAddMemcpyNode) \
    X(cuGraphAddEmptyNode) \
    X(cuGraphAddEventRecordNode) \
    X(cuGraphAddDependencies) \
    X(cuGraphGetNodes) \
    X(cuGraphNodeGetType) \
    X(cuGraphKernelNodeGetParams) \
    X(cuGraphKernelNodeSetParams) \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphUpload) \
    X(cuGraphLaunch) \
    X(cuGraphExecDestroy) \
    X(cuGraphExecKernelNodeSetParams) \
    X(cuGraphExecMemsetNodeSetParams) \
    X(cuGraphExecMemcpyNodeSetParams) \
    X(cuGraphExecUpdate) \
    X(cuGraphNodeSetEnabled) \
    X(cuGraphDestroyNode) \
    X(cuGetProcAddress) \
    X(cuGetExportTable) \
    X(cuGraphKernelNodeGetAttribute) \
    X(cuGraphKernelNodeSetAttribute) \
    X(cuMemcpyAsync) \
    X(cuMemcpyPeerAsync) \
    X(cuMemcpy2DAsync) \
    X(cuMemcpy3DAsync) \
    X(cuMemcpyBatchAsync) \
    X(cuMemsetD16Async) \
    X(cuMemsetD2D8Async) \
    X(cuMemsetD2D16Async) \
    X(cuMemsetD2D32Async) \
    X(cuFuncLoad) \
    X(cuMemPrefetchAsync) \
    X(cuStreamAttachMemAsync) \
    X(cuPointerSetAttribute) \
    X(cuMemPoolCreate) \
    X(cuMemPoolDestroy) \
    X(cuMemPoolGetAttribute) \
    X(cuMemAllocFromPoolAsync) \
    X(cuEventRecordWithFlags) \
    X(cuStreamBatchMemOp) \
    X(cuStreamWaitValue64) \
    X(cuStreamWriteValue64) \
    X(cuGraphAddEventWaitNode) \
    X(cuGraphAddHostNode) \
    X(cuGraphAddBatchMemOpNode) \
    X(cuGraphExecHostNodeSetParams) \
    X(cuGraphExecEventRecordNodeSetEvent) \
    X(cuGraphExecEventWaitNodeSetEvent)
// clang-format on

struct conformance_driver {
#define X(name) decltype(&::name) name;
    CONFORMANCE_CALLS(X)
#undef X
    void *library;
    std::string path;
};
extern conformance_driver drv;

// Writes "name = value" to CONFORMANCE_OUT, and expects it.
void record_fact(const std::string &name, long long value);
#define FACT(name, value, expected)                                                                \
    do {                                                                                           \
        const long long fact_value = static_cast<long long>(value);                                \
        record_fact(name, fact_value);                                                             \
        EXPECT_EQ(fact_value, static_cast<long long>(expected)) << name;                           \
    } while (0)
// Only written down: either answer is right.
#define NOTE(name, value) record_fact(name, static_cast<long long>(value))
#define NEED(call) ASSERT_EQ(call, CUDA_SUCCESS) << #call

// One primary context, a few modules, a mapped flag that kernels wait for.
class Facts : public ::testing::Test
{
  protected:
    void SetUp() override;
    void TearDown() override;

    CUfunction function(const unsigned char *image, const char *name);
    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
    CUevent event(unsigned flags = 0);
    CUdeviceptr buffer(size_t bytes = 4096); // zeroed
    CUresult launch(CUfunction f, CUstream s, std::vector<void *> args, unsigned grid = 1,
                    unsigned block = 1, unsigned shared = 0);
    int read(CUdeviceptr at, size_t index = 0); // waits for the context

    // One row of device memory to another.
    static CUDA_MEMCPY3D row(CUdeviceptr dst, CUdeviceptr src, size_t bytes);

    // The stream stands still until release().
    void hold(CUstream s);
    void release();
    // 1: the call came back only after the stream was released (300 ms later).
    // 1: the call came back only after release(), 300 ms later.
    int waits_for_release(const std::function<void()> &call);
    int blocks(CUstream s, const std::function<void()> &call);

    CUcontext ctx = nullptr;
    CUfunction store, step, chain, wait_flag, smem, null_kernel;
    unsigned *flag = nullptr;
    unsigned next_flag = 1;

  private:
    std::vector<CUmodule> modules_;
    std::vector<CUstream> streams_;
    std::vector<CUevent> events_;
    std::vector<CUdeviceptr> buffers_;
};

#endif
