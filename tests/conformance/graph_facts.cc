/* tests/conformance/graph_facts.cc - graphs built node by node: checked, patched, launched.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    one
 * Promise    each test is about one thing that the shim relies on
 * Start at   class Graphs                                                                   */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

#include <memory>

class Graphs : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        x = buffer();
        s = stream();
        NEED(drv.cuGraphCreate(&graph, 0));
    }
    void TearDown() override
    {
        if (exec)
            drv.cuGraphExecDestroy(exec);
        if (graph)
            drv.cuGraphDestroy(graph);
        Facts::TearDown();
    }

    // x[0] = x[0] * m + a; the arrays live as long as the test.
    CUDA_KERNEL_NODE_PARAMS params(unsigned m, unsigned a)
    {
        auto *v = new Values{x, m, a, 1, {}};
        values_.emplace_back(v);
        v->args[0] = &v->x, v->args[1] = &v->m, v->args[2] = &v->a, v->args[3] = &v->n;
        CUDA_KERNEL_NODE_PARAMS p = {};
        p.func = step;
        p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
        p.kernelParams = v->args;
        return p;
    }
    CUgraphNode add(unsigned m, unsigned a, std::vector<CUgraphNode> after = {})
    {
        CUgraphNode node = nullptr;
        CUDA_KERNEL_NODE_PARAMS p = params(m, a);
        EXPECT_EQ(drv.cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &p),
                  CUDA_SUCCESS);
        return node;
    }
    void instantiate()
    {
        NEED(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    }

    CUdeviceptr x = 0;
    CUstream s = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;

  private:
    struct Values {
        CUdeviceptr x;
        unsigned m, a;
        int n;
        void *args[4];
    };
    std::vector<std::unique_ptr<Values>> values_;
};

TEST_F(Graphs, RunTheirNodesInDependencyOrder)
{
    CUgraphNode a = add(1, 2), b = add(10, 3, {a});
    add(10, 4, {b});
    instantiate();
    FACT("graph.launch", drv.cuGraphLaunch(exec, s), CUDA_SUCCESS);
    FACT("graph.chain_value", read(x), 234);
    NEED(drv.cuGraphLaunch(exec, nullptr));
    FACT("graph.launch_in_legacy_stream", read(x), ((234 + 2) * 10 + 3) * 10 + 4);
}

TEST_F(Graphs, RefuseBadNodes)
{
    CUgraphNode node = nullptr;
    auto try_add = [&](const CUDA_KERNEL_NODE_PARAMS &p) {
        return drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p);
    };
    CUDA_KERNEL_NODE_PARAMS p = params(1, 1);
    p.blockDimX = 2048;
    FACT("graph.add_block_2048", try_add(p), CUDA_ERROR_INVALID_VALUE);
    p = params(1, 1);
    p.gridDimX = 0;
    FACT("graph.add_grid_0", try_add(p), CUDA_ERROR_INVALID_VALUE);
    p = params(1, 1);
    p.sharedMemBytes = 100000;
    FACT("graph.add_smem_over_limit", try_add(p), CUDA_ERROR_INVALID_VALUE);
    p = params(1, 1);
    p.kernelParams = nullptr;
    FACT("graph.add_without_params", try_add(p), CUDA_ERROR_INVALID_VALUE);
    p = params(1, 1);
    p.func = nullptr;
    FACT("graph.add_without_function", try_add(p), CUDA_ERROR_INVALID_HANDLE);
    FACT("graph.add_null", drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, nullptr),
         CUDA_ERROR_INVALID_VALUE);
    CUgraph other = nullptr;
    CUgraphNode foreign = nullptr;
    NEED(drv.cuGraphCreate(&other, 0));
    NEED(drv.cuGraphAddEmptyNode(&foreign, other, nullptr, 0));
    FACT("graph.dependency_of_another_graph", drv.cuGraphAddEmptyNode(&node, graph, &foreign, 1),
         CUDA_ERROR_INVALID_VALUE);
    NEED(drv.cuGraphDestroy(other));
}

TEST_F(Graphs, RefuseBadEdges)
{
    CUgraphNode a = add(1, 1), b = add(1, 1, {a});
    FACT("graph.edge_twice", drv.cuGraphAddDependencies(graph, &a, &b, nullptr, 1),
         CUDA_ERROR_INVALID_VALUE);
    FACT("graph.edge_to_itself", drv.cuGraphAddDependencies(graph, &a, &a, nullptr, 1),
         CUDA_ERROR_INVALID_VALUE);
    NOTE("graph.edge_that_closes_a_cycle", drv.cuGraphAddDependencies(graph, &b, &a, nullptr, 1));
    FACT("graph.instantiate_cycle", drv.cuGraphInstantiateWithFlags(&exec, graph, 0),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, MayBeEmpty)
{
    FACT("graph.instantiate_empty", drv.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    FACT("graph.launch_empty", drv.cuGraphLaunch(exec, s), CUDA_SUCCESS);
    NEED(drv.cuStreamSynchronize(s));
}

TEST_F(Graphs, TakePatchesForLaterLaunchesOnly)
{
    CUgraphNode a = add(10, 1);
    instantiate();
    CUDA_KERNEL_NODE_PARAMS p = params(10, 2);
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("patch.in_flight", drv.cuGraphExecKernelNodeSetParams(exec, a, &p), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    p = params(10, 3);
    NEED(drv.cuGraphExecKernelNodeSetParams(exec, a, &p));
    release();
    FACT("patch.each_launch_has_its_own", read(x), 12);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("patch.last_one_stays", read(x), 123);
}

TEST_F(Graphs, TakeWhatTheArgumentsWereAtTheCall)
{
    CUDA_KERNEL_NODE_PARAMS p = params(1, 5);
    CUgraphNode node = nullptr;
    NEED(drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p));
    *static_cast<unsigned *>(p.kernelParams[2]) = 6;
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("graph.arguments_of_the_add", read(x), 5);
    p = params(1, 7);
    NEED(drv.cuGraphKernelNodeSetParams(node, &p));
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("graph.node_change_leaves_exec_alone", read(x), 10);
}

TEST_F(Graphs, AllowEverythingButTheContextToBePatched)
{
    CUgraphNode a = add(1, 1);
    instantiate();
    CUDA_KERNEL_NODE_PARAMS p = params(1, 1);
    p.gridDimX = 2;
    p.blockDimX = 64;
    p.sharedMemBytes = 1024;
    FACT("patch.shape", drv.cuGraphExecKernelNodeSetParams(exec, a, &p), CUDA_SUCCESS);
    CUdeviceptr out = buffer();
    int v = 31;
    void *args[] = {&out, &v};
    p.func = store;
    p.kernelParams = args;
    FACT("patch.function", drv.cuGraphExecKernelNodeSetParams(exec, a, &p), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("patch.function_value", read(out), 31);
    p.blockDimX = 2048;
    FACT("patch.block_2048", drv.cuGraphExecKernelNodeSetParams(exec, a, &p),
         CUDA_ERROR_INVALID_VALUE);
    p.blockDimX = 1;
    p.sharedMemBytes = 100000;
    FACT("patch.smem_over_limit", drv.cuGraphExecKernelNodeSetParams(exec, a, &p),
         CUDA_ERROR_INVALID_VALUE);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("patch.refused_leaves_the_exec", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
    FACT("patch.null_params", drv.cuGraphExecKernelNodeSetParams(exec, a, nullptr),
         CUDA_ERROR_INVALID_VALUE);
    FACT("patch.null_node", drv.cuGraphExecKernelNodeSetParams(exec, nullptr, &p),
         CUDA_ERROR_INVALID_VALUE);
    CUgraphNode late = add(1, 1, {a});
    p = params(1, 1);
    FACT("patch.node_added_after_instantiation", drv.cuGraphExecKernelNodeSetParams(exec, late, &p),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, KeepTheAttributeThatTheFunctionHad)
{
    CUdeviceptr out = buffer();
    void *args[] = {&out};
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = smem;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.sharedMemBytes = 96 * 1024;
    p.kernelParams = args;
    CUgraphNode node = nullptr;
    const CUfunction_attribute which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    NEED(drv.cuFuncSetAttribute(smem, which, 100 * 1024));
    FACT("graph.add_96k_with_100k_limit", drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p),
         CUDA_SUCCESS);
    NEED(drv.cuFuncSetAttribute(smem, which, 48 * 1024));
    FACT("graph.instantiate_after_limit_fell", drv.cuGraphInstantiateWithFlags(&exec, graph, 0),
         CUDA_SUCCESS);
    if (!exec) {
        NEED(drv.cuFuncSetAttribute(smem, which, 100 * 1024));
        instantiate();
        NEED(drv.cuFuncSetAttribute(smem, which, 48 * 1024));
    }
    FACT("graph.launch_after_limit_fell", drv.cuGraphLaunch(exec, s), CUDA_SUCCESS);
    FACT("graph.launch_after_limit_fell_value", read(out), 96 * 1024);
    FACT("patch.after_limit_fell", drv.cuGraphExecKernelNodeSetParams(exec, node, &p),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, AreUpdatedAsAWhole)
{
    CUgraphNode a = add(10, 1);
    add(10, 2, {a});
    instantiate();
    CUgraph first = graph;
    NEED(drv.cuGraphCreate(&graph, 0));
    CUgraphNode c = add(10, 3);
    add(10, 4, {c});
    CUgraphExecUpdateResultInfo info = {};
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("update.in_flight", drv.cuGraphExecUpdate(exec, graph, &info), CUDA_SUCCESS);
    FACT("update.result", info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    release();
    FACT("update.for_later_launches", read(x), 1234);
    add(1, 1);
    FACT("update.more_nodes", drv.cuGraphExecUpdate(exec, graph, &info),
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    FACT("update.more_nodes_result", info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CUDA_KERNEL_NODE_PARAMS p = params(10, 5);
    FACT("update.original_nodes_still_patch", drv.cuGraphExecKernelNodeSetParams(exec, a, &p),
         CUDA_SUCCESS);
    NEED(drv.cuGraphDestroy(first));
}

TEST_F(Graphs, SayWhatKindOfChangeStoppedAnUpdate)
{
    CUgraphNode node = nullptr;
    CUgraphExecUpdateResultInfo info = {};
    add(1, 1);
    instantiate();
    CUgraph other = nullptr;
    NEED(drv.cuGraphCreate(&other, 0));
    CUDA_MEMSET_NODE_PARAMS set = {x, 0, 7, 4, 1, 1};
    NEED(drv.cuGraphAddMemsetNode(&node, other, nullptr, 0, &set, ctx));
    FACT("update.other_type", drv.cuGraphExecUpdate(exec, other, &info),
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    FACT("update.other_type_result", info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    NEED(drv.cuGraphDestroy(other));
}

TEST_F(Graphs, PatchMemsetsWithinLimits)
{
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS set = {x, 0, 7, 4, 4, 1};
    FACT("memset_node.add", drv.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, ctx),
         CUDA_SUCCESS);
    instantiate();
    set.value = 8;
    set.dst = x + 16;
    FACT("memset_node.patch_value_and_address",
         drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("memset_node.value", read(x, 4), 8);
    set.width = 8;
    FACT("memset_node.patch_width", drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx),
         CUDA_SUCCESS);
    set.width = 0;
    FACT("memset_node.patch_width_0", drv.cuGraphExecMemsetNodeSetParams(exec, node, &set, ctx),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, PatchCopiesWithinLimits)
{
    CUgraphNode node = nullptr;
    CUdeviceptr y = buffer();
    CUDA_MEMCPY3D c = {};
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = x;
    c.dstDevice = y;
    c.WidthInBytes = 4;
    c.Height = c.Depth = 1;
    NEED(drv.cuMemsetD32(x, 41, 8));
    NEED(drv.cuCtxSynchronize());
    FACT("copy_node.add", drv.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &c, ctx),
         CUDA_SUCCESS);
    instantiate();
    c.dstDevice = y + 4;
    FACT("copy_node.patch_address", drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx),
         CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("copy_node.value", read(y, 1), 41);
    c.WidthInBytes = 16;
    FACT("copy_node.patch_width", drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx),
         CUDA_SUCCESS);
    c.WidthInBytes = 0;
    FACT("copy_node.patch_width_0", drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx),
         CUDA_ERROR_INVALID_VALUE);
    c.WidthInBytes = 4;
    c.Height = 2;
    c.srcPitch = c.dstPitch = 16;
    FACT("copy_node.patch_to_2d", drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx),
         CUDA_ERROR_INVALID_VALUE);
    c.Height = 1;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = flag + 8;
    FACT("copy_node.patch_to_host_memory", drv.cuGraphExecMemcpyNodeSetParams(exec, node, &c, ctx),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, SkipNodesThatAreOff)
{
    CUgraphNode a = add(10, 1);
    add(10, 2, {a});
    instantiate();
    FACT("enabled.off", drv.cuGraphNodeSetEnabled(exec, a, 0), CUDA_SUCCESS);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("enabled.off_value", read(x), 2);
    NEED(drv.cuGraphNodeSetEnabled(exec, a, 1));
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("enabled.on_value", read(x), 212);
}

TEST_F(Graphs, RunToTheirEndWhenDestroyed)
{
    add(1, 77);
    instantiate();
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("exec.destroy_in_flight", drv.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    exec = nullptr;
    release();
    FACT("exec.destroyed_in_flight_ran", read(x), 77);
}

TEST_F(Graphs, OneExecNeverOverlapsItself)
{
    CUstream other = stream();
    add(10, 1);
    instantiate();
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    NEED(drv.cuGraphLaunch(exec, other));
    FACT("exec.second_launch_waits_for_first", drv.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    release();
    FACT("exec.both_ran", read(x), 11);
}

TEST_F(Graphs, RecordEventsAtEachLaunch)
{
    CUevent e = event();
    CUgraphNode a = add(1, 1), node = nullptr;
    NEED(drv.cuGraphAddEventRecordNode(&node, graph, &a, 1, e));
    instantiate();
    hold(s);
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("event_node.not_ready", drv.cuEventQuery(e), CUDA_ERROR_NOT_READY);
    release();
    NEED(drv.cuStreamSynchronize(s));
    FACT("event_node.ready", drv.cuEventQuery(e), CUDA_SUCCESS);
}

TEST_F(Graphs, TakeKernelsOfLibraries)
{
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUgraphNode node = nullptr;
    CUdeviceptr out = buffer();
    int v = 55;
    void *args[] = {&out, &v};
    NEED(drv.cuLibraryLoadData(&library, ag_image_basic, nullptr, nullptr, 0, nullptr, nullptr, 0));
    NEED(drv.cuLibraryGetKernel(&kernel, library, "store"));
    CUDA_KERNEL_NODE_PARAMS p = params(1, 1);
    p.func = nullptr;
    p.kern = kernel;
    p.ctx = ctx;
    p.kernelParams = args;
    FACT("kernel_node.kern_and_context", drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p),
         CUDA_SUCCESS);
    instantiate();
    NEED(drv.cuGraphLaunch(exec, s));
    FACT("kernel_node.value", read(out), 55);
    CUDA_KERNEL_NODE_PARAMS got = {};
    NEED(drv.cuGraphKernelNodeGetParams(node, &got));
    FACT("kernel_node.params_name_kern", got.kern == kernel, 1);
    FACT("kernel_node.params_name_function", got.func != nullptr, 1);
    CUfunction of_kernel = nullptr;
    NEED(drv.cuKernelGetFunction(&of_kernel, kernel));
    NOTE("kernel_node.params_function_is_the_kernels", got.func == of_kernel);
    FACT("kernel_node.params_context", got.ctx == ctx, 1);
    FACT("kernel_node.params_argument", *static_cast<int *>(got.kernelParams[1]), 55);
    p.ctx = nullptr;
    FACT("kernel_node.kern_without_context", drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p),
         CUDA_SUCCESS);
    p.kern = nullptr;
    p.func = reinterpret_cast<CUfunction>(kernel);
    FACT("kernel_node.kernel_as_function", drv.cuGraphAddKernelNode(&node, graph, nullptr, 0, &p),
         CUDA_ERROR_INVALID_HANDLE);
    drv.cuCtxSynchronize();
    drv.cuLibraryUnload(library);
}

TEST_F(Graphs, CarryPriorities)
{
    CUgraphNode node = add(1, 1);
    CUkernelNodeAttrValue v = {};
    NEED(drv.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    FACT("priority.of_an_added_node", v.priority, 0);
    v.priority = -3;
    FACT("priority.set_on_a_node",
         drv.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v), CUDA_SUCCESS);
    CUlaunchAttributeValue programmatic = {}, domain = {};
    programmatic.programmaticStreamSerializationAllowed = 1;
    domain.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    NOTE("node.set_programmatic",
         drv.cuGraphKernelNodeSetAttribute(
             node, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &programmatic));
    FACT("node.set_default_domain",
         drv.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &domain),
         CUDA_SUCCESS);
    v = {};
    NEED(drv.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    FACT("priority.read_back", v.priority, -3);
    CUstream high = nullptr;
    CUgraph captured = nullptr;
    size_t n = 1;
    NEED(drv.cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -2));
    NEED(drv.cuStreamBeginCapture(high, CU_STREAM_CAPTURE_MODE_GLOBAL));
    NEED(launch(null_kernel, high, {}));
    NEED(drv.cuStreamEndCapture(high, &captured));
    NEED(drv.cuGraphGetNodes(captured, &node, &n));
    v = {};
    NEED(drv.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    FACT("priority.of_a_captured_node", v.priority, -2);
    NEED(drv.cuGraphInstantiateWithFlags(&exec, captured,
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    FACT("priority.launch_with_node_priority", drv.cuGraphLaunch(exec, s), CUDA_SUCCESS);
    NEED(drv.cuStreamSynchronize(s));
    NEED(drv.cuGraphDestroy(captured));
    NEED(drv.cuStreamDestroy(high));
}
