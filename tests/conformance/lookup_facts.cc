/* tests/conformance/lookup_facts.cc - cuGetProcAddress against the exports, and sticky errors.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    one
 * Promise    every row of simcuda's table is checked against the driver
 * Start at   anywhere                                                                       */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

class Lookup : public Facts
{
  protected:
    void *get(const char *name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM)
    {
        void *p = nullptr;
        ret = drv.cuGetProcAddress(name, &p, version, flags, &status);
        return p;
    }
    void *symbol(const char *name)
    {
        return dlsym(drv.library, name);
    }
    CUresult ret = CUDA_SUCCESS;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
};

struct Row {
    const char *name;
    int version;
    const char *symbol, *twin;
    int twin_version;
};

#define SIM_PROC(name, version, symbol) {#name, version, #symbol, nullptr, 0},
#define SIM_PROC_TWIN(name, version, symbol, twin, twin_version)                                   \
    {#name, version, #symbol, #twin, twin_version},
static const Row rows[] = {
#include "tools/simcuda/proc.def"
};

TEST_F(Lookup, GivesTheVariantOfTheVersion)
{
    int driver = 0;
    size_t rows_seen = 0, wrong = 0, wrong_twin = 0, too_early = 0;
    NEED(drv.cuDriverGetVersion(&driver));
    for (const Row &r : rows) {
        if (r.version > driver || !symbol(r.symbol))
            continue;
        rows_seen++;
        if (get(r.name, r.version) != symbol(r.symbol) && ++wrong)
            record_fact(std::string("lookup.differs.") + r.symbol, r.version);
        if (get(r.name, r.version - 10) == symbol(r.symbol) && ++too_early)
            record_fact(std::string("lookup.earlier.") + r.symbol, r.version - 10);
        if (r.twin && r.twin_version <= driver) {
            int version = r.twin_version > r.version ? r.twin_version : r.version;
            if (get(r.name, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) !=
                    symbol(r.twin) &&
                ++wrong_twin)
                record_fact(std::string("lookup.differs.") + r.twin, version);
        }
    }
    FACT("lookup.rows", rows_seen, 572);
    FACT("lookup.rows_wrong", wrong, 0);
    FACT("lookup.twins_wrong", wrong_twin, 0);
    FACT("lookup.rows_too_early", too_early, 0);
}

TEST_F(Lookup, SaysWhyItFindsNothing)
{
    get("cuNobodyKnowsThis", 13000);
    FACT("lookup.unknown", ret, CUDA_SUCCESS);
    FACT("lookup.unknown_status", status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    get("cuLaunchKernelEx", 11000);
    FACT("lookup.version_too_low", ret, CUDA_SUCCESS);
    FACT("lookup.version_too_low_status", status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    get("cuMemAlloc_v2", 13000);
    FACT("lookup.name_with_suffix", ret, CUDA_SUCCESS);
    FACT("lookup.name_with_suffix_status", status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    get("", 13000);
    FACT("lookup.empty_name", ret, CUDA_SUCCESS);
    FACT("lookup.empty_name_status", status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    get("cuMemAlloc", 99000);
    FACT("lookup.version_above_driver", ret, CUDA_ERROR_INVALID_VALUE);
    void *both = get("cuLaunchKernel", 13000, 3);
    FACT("lookup.both_flags", ret, CUDA_SUCCESS);
    NOTE("lookup.both_flags_is_per_thread", both == symbol("cuLaunchKernel_ptsz"));
    get("cuMemAlloc", 13000, 8);
    FACT("lookup.unknown_flag", ret, CUDA_ERROR_INVALID_VALUE);
    FACT("lookup.default_is_legacy", get("cuLaunchKernel", 13000, 0) == symbol("cuLaunchKernel"),
         1);
    void *p = nullptr;
    FACT("lookup.status_not_asked", drv.cuGetProcAddress("cuInit", &p, 13000, 0, nullptr),
         CUDA_SUCCESS);
    FACT("lookup.unknown_status_not_asked",
         drv.cuGetProcAddress("cuNobodyKnowsThis", &p, 13000, 0, nullptr), CUDA_SUCCESS);
}

/* Pointers that a driver may follow unasked: 580.159 crashes on the first. */
class IsolatedLookup : public Lookup
{
};

TEST_F(IsolatedLookup, NullName)
{
    get(nullptr, 13000);
    NOTE("isolated.lookup_null_name", ret);
}

TEST_F(IsolatedLookup, NullResult)
{
    NOTE("isolated.lookup_no_result", drv.cuGetProcAddress("cuInit", nullptr, 13000, 0, &status));
}

/* A context that met a fault: what each kind of call says from then on. */
class IsolatedSticky : public Facts
{
};

TEST_F(IsolatedSticky, FaultIsReportedByEveryLaterCall)
{
    CUstream s = stream(), other = stream();
    CUevent before = event(), after = event(), doomed = nullptr;
    CUdeviceptr p = buffer(), q = 0;
    CUfunction fault = function(ag_image_basic, "fault");
    static int host_ran, callback_status = -1;
    int v = 0;
    float ms = 0;
    size_t a = 0, b = 0;
    unsigned long long id = 0;
    CUdevice device = 0;
    NEED(drv.cuEventCreate(&doomed, 0));
    NEED(drv.cuEventRecord(before, s));
    NEED(drv.cuStreamSynchronize(s));
    hold(s); /* all of it is queued before the fault happens */
    FACT("sticky.launch_itself", launch(fault, s, {}), CUDA_SUCCESS);
    drv.cuEventRecord(after, s);
    drv.cuLaunchHostFunc(
        s, [](void *) { host_ran = 1; }, nullptr);
    drv.cuStreamAddCallback(
        s, [](CUstream, CUresult status, void *) { callback_status = status; }, nullptr, 0);
    release();
    const CUresult sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    FACT("sticky.sync", drv.cuStreamSynchronize(s), sticky);
    FACT("sticky.sync_again", drv.cuStreamSynchronize(s), sticky);
    FACT("sticky.other_stream", drv.cuStreamSynchronize(other), sticky);
    FACT("sticky.stream_query", drv.cuStreamQuery(other), sticky);
    FACT("sticky.event_query", drv.cuEventQuery(after), sticky);
    FACT("sticky.event_query_before", drv.cuEventQuery(before), sticky);
    FACT("sticky.elapsed", drv.cuEventElapsedTime(&ms, before, before), sticky);
    FACT("sticky.launch", launch(null_kernel, other, {}), sticky);
    FACT("sticky.ctx_sync", drv.cuCtxSynchronize(), sticky);
    FACT("sticky.memcpy", drv.cuMemcpyDtoH(&v, p, 4), sticky);
    FACT("sticky.memcpy_async", drv.cuMemcpyDtoHAsync(flag + 8, p, 4, other), sticky);
    FACT("sticky.malloc", drv.cuMemAlloc(&q, 64), sticky);
    FACT("sticky.mem_info", drv.cuMemGetInfo(&a, &b), sticky);
    FACT("sticky.host_func",
         drv.cuLaunchHostFunc(
             other, [](void *) {}, nullptr),
         sticky);
    FACT("sticky.event_record", drv.cuEventRecord(before, other), sticky);
    FACT("sticky.wait_event", drv.cuStreamWaitEvent(other, before, 0), sticky);
    CUevent e = nullptr;
    FACT("sticky.event_create", drv.cuEventCreate(&e, 0), sticky);
    CUstream made = nullptr;
    FACT("sticky.stream_create", drv.cuStreamCreate(&made, 1), sticky);
    CUmodule m = nullptr;
    FACT("sticky.module_load", drv.cuModuleLoadData(&m, ag_image_chain), sticky);
    FACT("sticky.stream_id", drv.cuStreamGetId(other, &id), sticky);
    FACT("sticky.ctx_get_device", drv.cuCtxGetDevice(&device), CUDA_SUCCESS);
    FACT("sticky.func_param_info", drv.cuFuncGetParamInfo(store, 0, &a, &b), sticky);
    FACT("sticky.device_attribute", drv.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
         CUDA_SUCCESS);
    FACT("sticky.free", drv.cuMemFree(p), sticky);
    FACT("sticky.event_destroy", drv.cuEventDestroy(doomed), sticky);
    usleep(200000);
    FACT("sticky.host_func_behind_the_fault_ran", host_ran, 0);
    FACT("sticky.callback_behind_the_fault_status", callback_status, sticky);
}

TEST_F(IsolatedSticky, GraphLaunchReportsAFaultOfItsKernel)
{
    CUstream s = stream();
    CUfunction fault = function(ag_image_basic, "fault");
    CUgraph g = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec e = nullptr;
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = fault;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    NEED(drv.cuGraphCreate(&g, 0));
    NEED(drv.cuGraphAddKernelNode(&node, g, nullptr, 0, &p));
    NEED(drv.cuGraphInstantiateWithFlags(&e, g, 0));
    FACT("sticky.graph_launch_itself", drv.cuGraphLaunch(e, s), CUDA_SUCCESS);
    FACT("sticky.graph_sync", drv.cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FACT("sticky.graph_launch_again", drv.cuGraphLaunch(e, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    NOTE("sticky.graph_set_params", drv.cuGraphExecKernelNodeSetParams(e, node, &p));
}

class IsolatedPrimary : public Facts
{
};

TEST_F(IsolatedPrimary, ResetEndsEverythingAndTheHandleComesBack)
{
    CUstream s = stream();
    CUcontext again = nullptr, current = nullptr;
    unsigned flags = 0;
    int active = -1;
    CUdeviceptr p = 0;
    unsigned long long id = 0, id_again = 0;
    NEED(drv.cuCtxGetId(ctx, &id));
    FACT("reset.returns", drv.cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    NEED(drv.cuDevicePrimaryCtxGetState(0, &flags, &active));
    FACT("reset.active_after", active, 0);
    FACT("reset.malloc_after", drv.cuMemAlloc(&p, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    NEED(drv.cuCtxGetCurrent(&current));
    FACT("reset.current_is_the_old_handle", current == ctx, 1);
    NEED(drv.cuDevicePrimaryCtxRetain(&again, 0));
    FACT("reset.same_handle_again", again == ctx, 1);
    NEED(drv.cuCtxSetCurrent(again));
    NEED(drv.cuCtxGetId(again, &id_again));
    FACT("reset.another_id", id_again != id, 1);
    FACT("reset.malloc_in_the_new_one", drv.cuMemAlloc(&p, 64), CUDA_SUCCESS);
    (void)s;
    _exit(HasFailure());
}
