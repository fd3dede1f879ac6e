/* tests/conformance/launch_facts.cc - launches, their arguments, functions and kernels.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    one
 * Promise    each test is about one thing that the shim relies on
 * Start at   anywhere                                                                       */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

#include <cstring>

class Launch : public Facts
{
};

TEST_F(Launch, RefusesBadShapesAtOnce)
{
    CUstream s = stream();
    auto shape = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz) {
        return drv.cuLaunchKernel(null_kernel, gx, gy, gz, bx, by, bz, 0, s, nullptr, nullptr);
    };
    FACT("launch.good", shape(1, 1, 1, 1, 1, 1), CUDA_SUCCESS);
    FACT("launch.grid_x_0", shape(0, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.block_x_0", shape(1, 1, 1, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.block_x_2048", shape(1, 1, 1, 2048, 1, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.block_32x64", shape(1, 1, 1, 32, 64, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.block_z_65", shape(1, 1, 1, 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.grid_y_65536", shape(1, 65536, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("launch.sync_after_refusals", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
}

TEST_F(Launch, RefusesBadHandles)
{
    FACT("launch.function_null", launch(nullptr, nullptr, {}), CUDA_ERROR_INVALID_HANDLE);
    FACT("launch.ex_config_null", drv.cuLaunchKernelEx(nullptr, null_kernel, nullptr, nullptr),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, ChecksTheArgumentForms)
{
    CUstream s = stream();
    CUdeviceptr out = buffer();
    int v = 5;
    struct {
        CUdeviceptr p;
        int v;
    } packed = {out, 6};
    size_t bytes = 12, few = 8;
    void *params[] = {&out, &v};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    void *small[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &few,
                     CU_LAUNCH_PARAM_END};
    auto go = [&](void **p, void **e) {
        return drv.cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, s, p, e);
    };
    FACT("args.params_and_extra", go(params, extra), CUDA_ERROR_INVALID_VALUE);
    FACT("args.none_for_a_kernel_with_two", go(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    FACT("args.extra", go(nullptr, extra), CUDA_SUCCESS);
    FACT("args.extra_value", read(out), 6);
    FACT("args.extra_too_small", go(nullptr, small), CUDA_SUCCESS);
    FACT("args.params", go(params, nullptr), CUDA_SUCCESS);
    FACT("args.params_value", read(out), 5);
}

TEST_F(Launch, TakesTheArgumentsAtTheCall)
{
    CUstream s = stream();
    CUdeviceptr out = buffer();
    int v = 7;
    hold(s);
    NEED(launch(store, s, {&out, &v}));
    v = 8;
    release();
    FACT("args.as_they_were_at_the_call", read(out), 7);
}

TEST_F(Launch, CarriesLargeArguments)
{
    CUstream s = stream();
    CUdeviceptr out = buffer();
    CUfunction four = function(ag_image_args, "big_args");
    CUfunction most = function(ag_image_args, "args32k");
    std::vector<unsigned> words(8184, 1);
    words[1021] = 3;
    words[8183] = 9;
    NEED(launch(four, s, {&out, words.data()}));
    FACT("args.4k_sum", read(out), 1024);
    NEED(launch(most, s, {&out, words.data()}));
    FACT("args.32k_sum", read(out), 8184 + 2 + 8);
    FACT("args.32k_last", read(out, 1), 9);
}

TEST_F(Launch, ChecksDynamicSharedMemoryAgainstTheAttribute)
{
    CUstream s = stream();
    CUdeviceptr out = buffer();
    auto set = [&](int bytes) {
        return drv.cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    };
    auto go = [&](unsigned bytes) { return launch(smem, s, {&out}, 1, 32, bytes); };
    int value = -1;
    NEED(drv.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem));
    FACT("smem.default_limit", value, 49152);
    CUfunction red = function(ag_image_red, "red");
    NEED(drv.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, red));
    FACT("smem.static_4k", value, 4096);
    NEED(drv.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, red));
    FACT("smem.default_limit_beside_static_4k", value, 49152 - 4096);
    FACT("smem.48k", go(49152), CUDA_SUCCESS);
    FACT("smem.48k_plus_1", go(49153), CUDA_ERROR_INVALID_VALUE);
    FACT("smem.set_100k", set(100 * 1024), CUDA_SUCCESS);
    FACT("smem.96k_after_raise", go(96 * 1024), CUDA_SUCCESS);
    FACT("smem.96k_value", read(out), 96 * 1024);
    FACT("smem.lower", set(48 * 1024), CUDA_SUCCESS);
    FACT("smem.96k_after_lower", go(96 * 1024), CUDA_ERROR_INVALID_VALUE);
    FACT("smem.set_too_much", set(300 * 1024), CUDA_ERROR_INVALID_VALUE);
    FACT("smem.set_negative", set(-1), CUDA_ERROR_INVALID_VALUE);
    FACT("smem.set_unknown_attribute", drv.cuFuncSetAttribute(smem, (CUfunction_attribute)99, 1),
         CUDA_ERROR_INVALID_VALUE);
    FACT("smem.carveout_101",
         drv.cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, UsesTheAttributeInForceAtTheCall)
{
    CUstream s = stream();
    CUdeviceptr out = buffer();
    auto set = [&](int bytes) {
        return drv.cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    };
    NEED(set(100 * 1024));
    hold(s);
    NEED(launch(smem, s, {&out}, 1, 32, 96 * 1024));
    FACT("smem.lower_while_queued", set(48 * 1024), CUDA_SUCCESS);
    release();
    FACT("smem.queued_launch_ran_with", read(out), 96 * 1024);
}

TEST_F(Launch, TellsTheLayoutOfParameters)
{
    CUfunction f = function(ag_image_args, "mixed_args");
    const size_t want[8][2] = {{0, 8},  {8, 1},  {10, 2},  {12, 4},
                               {16, 8}, {24, 4}, {32, 64}, {96, 1}};
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; i < 8; i++) {
        NEED(drv.cuFuncGetParamInfo(f, i, &offset, &bytes));
        FACT("params.offset_" + std::to_string(i), offset, want[i][0]);
        FACT("params.size_" + std::to_string(i), bytes, want[i][1]);
    }
    FACT("params.end_of_list", drv.cuFuncGetParamInfo(f, 8, &offset, &bytes),
         CUDA_ERROR_INVALID_VALUE);
    FACT("params.size_not_asked", drv.cuFuncGetParamInfo(f, 1, &offset, nullptr), CUDA_SUCCESS);
    FACT("params.offset_not_asked", drv.cuFuncGetParamInfo(f, 1, nullptr, &bytes),
         CUDA_ERROR_INVALID_VALUE);
    FACT("params.none", drv.cuFuncGetParamInfo(null_kernel, 0, &offset, &bytes),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, KnowsItsAttributes)
{
    CUstream s = stream();
    auto with = [&](CUlaunchAttributeID id, int value) {
        CUlaunchAttribute a = {};
        a.id = id;
        memcpy(&a.value, &value, sizeof value);
        CUlaunchConfig c = {1, 1, 1, 1, 1, 1, 0, s, &a, 1};
        return drv.cuLaunchKernelEx(&c, null_kernel, nullptr, nullptr);
    };
    CUlaunchConfig none = {1, 1, 1, 1, 1, 1, 0, s, nullptr, 0};
    FACT("attribute.none", drv.cuLaunchKernelEx(&none, null_kernel, nullptr, nullptr),
         CUDA_SUCCESS);
    FACT("attribute.unknown", with((CUlaunchAttributeID)999, 1), CUDA_ERROR_INVALID_VALUE);
    FACT("attribute.ignore", with(CU_LAUNCH_ATTRIBUTE_IGNORE, 1), CUDA_SUCCESS);
    FACT("attribute.priority", with(CU_LAUNCH_ATTRIBUTE_PRIORITY, -1), CUDA_SUCCESS);
    FACT("attribute.priority_out_of_range", with(CU_LAUNCH_ATTRIBUTE_PRIORITY, -100), CUDA_SUCCESS);
    FACT("attribute.cooperative", with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1), CUDA_SUCCESS);
    FACT("attribute.programmatic", with(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1),
         CUDA_SUCCESS);
    FACT("attribute.sync_after", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
}

class Kernel : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        NEED(drv.cuLibraryLoadData(&library, ag_image_basic, nullptr, nullptr, 0, nullptr, nullptr,
                                   0));
        NEED(drv.cuLibraryGetKernel(&kernel, library, "store"));
        as_function = reinterpret_cast<CUfunction>(kernel);
    }
    void TearDown() override
    {
        drv.cuLibraryUnload(library);
        Facts::TearDown();
    }
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction as_function = nullptr;
};

TEST_F(Kernel, IsAnotherKindOfHandleThanAFunction)
{
    size_t offset = 0, bytes = 0;
    int value = 0;
    const char *name = nullptr;
    CUmodule module = nullptr;
    CUkernel wrong = reinterpret_cast<CUkernel>(store);
    FACT("kind.kernel_to_func_param_info", drv.cuFuncGetParamInfo(as_function, 0, &offset, &bytes),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.kernel_to_kernel_param_info", drv.cuKernelGetParamInfo(kernel, 1, &offset, &bytes),
         CUDA_SUCCESS);
    FACT("kind.kernel_param_1_offset", offset, 8);
    FACT("kind.kernel_param_end", drv.cuKernelGetParamInfo(kernel, 2, &offset, &bytes),
         CUDA_ERROR_INVALID_VALUE);
    FACT("kind.function_to_kernel_param_info", drv.cuKernelGetParamInfo(wrong, 0, &offset, &bytes),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.kernel_to_func_get_name", drv.cuFuncGetName(&name, as_function),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.function_to_kernel_get_name", drv.cuKernelGetName(&name, wrong),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.kernel_to_func_get_module", drv.cuFuncGetModule(&module, as_function),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.kernel_to_func_get_attribute",
         drv.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, as_function),
         CUDA_ERROR_INVALID_HANDLE);
    FACT("kind.kernel_to_func_set_attribute",
         drv.cuFuncSetAttribute(as_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024),
         CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Kernel, CanBeLaunchedLikeAFunction)
{
    CUdeviceptr out = buffer();
    CUfunction f = nullptr;
    CUmodule module = nullptr, of_function = nullptr;
    int v = 11;
    FACT("kernel.launch", launch(as_function, stream(), {&out, &v}), CUDA_SUCCESS);
    FACT("kernel.launch_value", read(out), 11);
    NEED(drv.cuKernelGetFunction(&f, kernel));
    FACT("kernel.function_is_the_kernel", (void *)f == (void *)kernel, 0);
    v = 12;
    FACT("kernel.launch_function", launch(f, stream(), {&out, &v}), CUDA_SUCCESS);
    FACT("kernel.launch_function_value", read(out), 12);
    NEED(drv.cuLibraryGetModule(&module, library));
    NEED(drv.cuFuncGetModule(&of_function, f));
    FACT("kernel.function_module_is_library_module", module == of_function, 1);
    FACT("kernel.library_module_unload", drv.cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Kernel, GivesItsAttributeToItsFunctionAndTakesNoneBack)
{
    CUfunction f = nullptr;
    int value = -1;
    const CUfunction_attribute which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    NEED(drv.cuKernelGetFunction(&f, kernel));
    NEED(drv.cuKernelSetAttribute(which, 64 * 1024, kernel, 0));
    NEED(drv.cuFuncGetAttribute(&value, which, f));
    FACT("kernel.attribute_seen_by_function", value, 64 * 1024);
    NEED(drv.cuFuncSetAttribute(f, which, 32 * 1024));
    NEED(drv.cuKernelGetAttribute(&value, which, kernel, 0));
    FACT("kernel.attribute_set_by_function", value, 64 * 1024);
}

class Handles : public Facts
{
};

TEST_F(Handles, AreOrAreNotReused)
{
    CUevent e1 = nullptr, e2 = nullptr;
    CUstream s1 = nullptr, s2 = nullptr;
    CUmodule m1 = nullptr, m2 = nullptr;
    CUfunction f1 = nullptr, f2 = nullptr;
    unsigned long long id1 = 0, id2 = 0;
    NEED(drv.cuEventCreate(&e1, 0));
    NEED(drv.cuEventDestroy(e1));
    NEED(drv.cuEventCreate(&e2, 0));
    NOTE("reuse.event", e1 == e2);
    NEED(drv.cuStreamCreate(&s1, 1));
    NEED(drv.cuStreamGetId(s1, &id1));
    NEED(drv.cuStreamDestroy(s1));
    NEED(drv.cuStreamCreate(&s2, 1));
    NEED(drv.cuStreamGetId(s2, &id2));
    NOTE("reuse.stream", s1 == s2);
    FACT("reuse.stream_id", id1 == id2, 0);
    NEED(drv.cuModuleLoadData(&m1, ag_image_reuse_a));
    NEED(drv.cuModuleGetFunction(&f1, m1, "reuse_a"));
    NEED(drv.cuModuleUnload(m1));
    NEED(drv.cuModuleLoadData(&m2, ag_image_reuse_b));
    NEED(drv.cuModuleGetFunction(&f2, m2, "reuse_b"));
    NOTE("reuse.module", m1 == m2);
    NOTE("reuse.function", f1 == f2);
    NEED(drv.cuModuleUnload(m2));
    NEED(drv.cuStreamDestroy(s2));
    NEED(drv.cuEventDestroy(e2));
}

class Modules : public Facts
{
};

TEST_F(Modules, AnswerLookups)
{
    CUmodule m = nullptr;
    CUfunction f = nullptr, again = nullptr;
    CUdeviceptr at = 0;
    size_t bytes = 0;
    NEED(drv.cuModuleLoadData(&m, ag_image_constant));
    FACT("module.unknown_function", drv.cuModuleGetFunction(&f, m, "nobody"), CUDA_ERROR_NOT_FOUND);
    FACT("module.unknown_global", drv.cuModuleGetGlobal(&at, &bytes, m, "nobody"),
         CUDA_ERROR_NOT_FOUND);
    FACT("module.global", drv.cuModuleGetGlobal(&at, &bytes, m, "config"), CUDA_SUCCESS);
    FACT("module.global_bytes", bytes, 64);
    NEED(drv.cuModuleGetFunction(&f, m, "reads_constant"));
    NEED(drv.cuModuleGetFunction(&again, m, "reads_constant"));
    FACT("module.same_function_twice", f == again, 1);
    CUdeviceptr out = buffer();
    int config[16];
    for (int i = 0; i < 16; i++)
        config[i] = 100 + i;
    NEED(drv.cuMemcpyHtoD(at, config, sizeof config));
    NEED(launch(f, stream(), {&out}, 1, 16));
    FACT("module.constant_seen_by_kernel", read(out, 15), 115);
    FACT("module.unload", drv.cuModuleUnload(m), CUDA_SUCCESS);
    FACT("module.load_null", drv.cuModuleLoadData(&m, nullptr), CUDA_ERROR_INVALID_VALUE);
    static const char junk[64] = "this is no module image";
    FACT("module.load_junk", drv.cuModuleLoadData(&m, junk), CUDA_ERROR_INVALID_IMAGE);
}

class IsolatedLaunch : public Facts
{
};

TEST_F(IsolatedLaunch, NullEntryInParams)
{
    CUdeviceptr out = buffer();
    FACT("isolated.null_entry", launch(store, stream(), {&out, nullptr}), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(IsolatedLaunch, DestroyedStream)
{
    CUstream s = nullptr;
    NEED(drv.cuStreamCreate(&s, 1));
    NEED(drv.cuStreamDestroy(s));
    FACT("isolated.destroyed_stream", launch(null_kernel, s, {}), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(IsolatedLaunch, FunctionOfAnUnloadedModule)
{
    CUmodule m = nullptr;
    CUfunction f = nullptr;
    NEED(drv.cuModuleLoadData(&m, ag_image_chain));
    NEED(drv.cuModuleGetFunction(&f, m, "null"));
    NEED(drv.cuModuleUnload(m));
    NOTE("isolated.unloaded_function", launch(f, stream(), {}));
}

TEST_F(IsolatedLaunch, DestroyedEvent)
{
    CUevent e = nullptr;
    NEED(drv.cuEventCreate(&e, 0));
    NEED(drv.cuEventDestroy(e));
    NOTE("isolated.destroyed_event", drv.cuEventQuery(e));
}

TEST_F(IsolatedLaunch, PatchAfterTheGraphIsGone)
{
    CUgraph g = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec e = nullptr;
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = null_kernel;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    NEED(drv.cuGraphCreate(&g, 0));
    NEED(drv.cuGraphAddKernelNode(&node, g, nullptr, 0, &p));
    NEED(drv.cuGraphInstantiateWithFlags(&e, g, 0));
    NEED(drv.cuGraphDestroy(g));
    NOTE("isolated.patch_after_graph_destroyed", drv.cuGraphExecKernelNodeSetParams(e, node, &p));
}
