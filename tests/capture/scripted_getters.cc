// The scripted driver's answers about the nodes of graphs: what `described` says, true or not; and how it writes
// ops down.
#include "tests/capture/scripted_driver.h"

#include <algorithm>
#include <cstring>

#include "gtest/gtest.h"

namespace
{
ScriptedDriver *asked;

ScriptedDriver::Described &Of(CUgraphNode node)
{
    EXPECT_EQ(1u, asked->described.count(node)) << "a node that exists";
    return asked->described[node];
}

// In an order that nobody promised: the last one first.
CUresult GetNodes(CUgraph g, CUgraphNode *out, size_t *n)
{
    size_t have = 0;
    for (auto d = asked->described.rbegin(); d != asked->described.rend(); ++d)
        if (d->second.graph == g && have++ < *n)
            out[have - 1] = d->first;
    *n = std::min(have, *n);
    return asked->Asked("cuGraphGetNodes");
}

CUresult GetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n)
{
    size_t have = 0;
    for (auto d = asked->described.rbegin(); d != asked->described.rend(); ++d)
        for (const CUgraphNode before : d->second.after)
            if (d->second.graph == g && have++ < *n) {
                from[have - 1] = before;
                to[have - 1] = d->first;
                data[have - 1] = {};
                data[have - 1].from_port = static_cast<unsigned char>(d->second.edge_port);
            }
    *n = std::min(have, *n);
    return asked->Asked("cuGraphGetEdges_v2");
}

CUresult KernelParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    ScriptedDriver::Described &d = Of(node);
    d.pointers.clear();
    for (std::string &a : d.arguments)
        d.pointers.push_back(&a[0]);
    *out = d.kernel;
    out->kernelParams = d.pointers.data();
    return asked->Asked("cuGraphKernelNodeGetParams_v2");
}

CUresult KernelAttribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *out)
{
    memset(out, 0xff, sizeof *out); // what does not belong to the value is anything
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        out->clusterDim = {Of(node).cluster, 1, 1};
    return asked->Asked("cuGraphKernelNodeGetAttribute");
}

CUresult MemcpyParams(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    *out = Of(node).copy;
    return asked->Asked("cuGraphMemcpyNodeGetParams");
}

CUresult RecordedEvent(CUgraphNode node, CUevent *out)
{
    *out = Of(node).event;
    return asked->Asked("cuGraphEventRecordNodeGetEvent");
}

CUresult Enabled(CUgraphExec, CUgraphNode node, unsigned *out)
{
    EXPECT_EQ(nullptr, Of(node).event)
        << "the driver tells this of kernels, copies and memsets only";
    *out = Of(node).enabled;
    return asked->Asked("cuGraphNodeGetEnabled");
}

CUresult FunctionAttribute(int *out, CUfunction_attribute which, CUfunction f)
{
    EXPECT_EQ(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, which);
    *out = asked->dynamic[f];
    return asked->Asked("cuFuncGetAttribute");
}
} // namespace

void ScriptedDriver::Describe(CUgraphNode node, Described what)
{
    for (size_t i = 0; what.kernel.func && i < ParametersOf(what.kernel.func).size(); i++)
        what.arguments.emplace_back(static_cast<char *>(what.kernel.kernelParams[i]),
                                    ParametersOf(what.kernel.func)[i].size);
    if (lie)
        lie(what);
    described[node] = std::move(what);
}

void ScriptedDriver::FillGetters(ag_fn *slots)
{
    asked = this;
#define SLOT(symbol, fn) slots[AG_ROW_##symbol] = reinterpret_cast<ag_fn>(fn)
    SLOT(cuGraphGetNodes, GetNodes);
    SLOT(cuGraphGetEdges_v2, GetEdges);
    SLOT(cuGraphKernelNodeGetParams_v2, KernelParams);
    SLOT(cuGraphKernelNodeGetAttribute, KernelAttribute);
    SLOT(cuGraphMemcpyNodeGetParams, MemcpyParams);
    SLOT(cuGraphEventRecordNodeGetEvent, RecordedEvent);
    SLOT(cuGraphNodeGetEnabled, Enabled);
    SLOT(cuFuncGetAttribute, FunctionAttribute);
#undef SLOT
}

std::string ScriptedDriver::WaitText(CUevent event)
{
    char text[40];
    snprintf(text, sizeof text, "wait %zx", reinterpret_cast<size_t>(event));
    return text;
}

std::string ScriptedDriver::RecordText(CUevent event)
{
    char text[40];
    snprintf(text, sizeof text, "record %zx", reinterpret_cast<size_t>(event));
    return text;
}

std::string ScriptedDriver::FillText(const ag_fill &f)
{
    char text[160];
    snprintf(text, sizeof text, "fill %llx: %llu x %llu of %u bytes, %llu apart, with %x",
             static_cast<unsigned long long>(f.to), static_cast<unsigned long long>(f.columns),
             static_cast<unsigned long long>(f.height), f.element,
             static_cast<unsigned long long>(f.pitch), f.value);
    return text;
}
