#include "tests/capture/scripted_driver.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "gtest/gtest.h"
#include "policy/decide.h"

namespace
{
ScriptedDriver *self;
std::map<std::string, std::map<int, CUresult>> failures;

struct FunctionInfo {
    std::string name;
    std::vector<ag_param> params;
};
std::map<CUfunction, FunctionInfo> functions;

struct Node {
    CUfunction f;
    unsigned grid, block;
    std::string bytes;
    unsigned cluster = 0;
};
struct Graph {
    std::vector<Node> nodes;
    bool alive;
};
std::map<void *, Graph> graphs, execs;
std::map<void *, std::pair<void *, size_t>> nodes; // node handle -> graph, index
uintptr_t next_handle;
const CUcontext kContext = reinterpret_cast<CUcontext>(0x1000);

std::mutex written; // what logs of several contexts write down

void Execute(ScriptedDriver::Executed e)
{
    std::lock_guard<std::mutex> lock(written);
    self->executed.push_back(std::move(e));
}

CUresult Enter(const char *entry)
{
    std::lock_guard<std::mutex> lock(written);
    const int n = ++self->calls[entry];
    auto at = failures.find(entry);
    if (at == failures.end() || !at->second.count(n))
        return CUDA_SUCCESS;
    return at->second[n];
}

std::string Bytes(CUfunction f, void **params)
{
    std::string out;
    for (size_t i = 0; i < functions[f].params.size(); i++)
        out.append(static_cast<char *>(params[i]), functions[f].params[i].size);
    return out;
}

std::string CopyText(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    char text[80];
    snprintf(text, sizeof text, "copy %llx from %llx, %zu bytes", to, from, n);
    return text;
}

std::string Line(const Node &n)
{
    if (!n.f)
        return n.bytes;
    if (functions[n.f].name == "ag_fill") {
        ag_fill f;
        EXPECT_EQ(sizeof f, n.bytes.size());
        memcpy(&f, n.bytes.data(), sizeof f);
        EXPECT_EQ(
            std::min<uint64_t>(((f.columns * f.element + 30) / 16 * f.height + 255) / 256, 1024),
            n.grid);
        return ScriptedDriver::FillText(f);
    }
    std::string text = functions[n.f].name + " <<<" + std::to_string(n.grid) + "," +
                       std::to_string(n.block) + ">>>";
    if (n.cluster)
        text += " cluster " + std::to_string(n.cluster);
    for (unsigned char c : n.bytes) {
        char hex[4];
        snprintf(hex, sizeof hex, " %02x", c);
        text += hex;
    }
    return text;
}

void *NewHandle()
{
    return reinterpret_cast<void *>(next_handle += 16);
}

CUresult Unexpected()
{
    ADD_FAILURE() << "a driver function was called that the script does not know";
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult GetCurrent(CUcontext *c)
{
    *c = kContext;
    return CUDA_SUCCESS;
}
CUresult StreamGetCtx(CUstream, CUcontext *c)
{
    *c = kContext;
    return Enter("cuStreamGetCtx");
}
CUresult StreamGetId(CUstream s, unsigned long long *id)
{
    *id = self->stream_ids + reinterpret_cast<uintptr_t>(s);
    return Enter("cuStreamGetId");
}
CUresult StreamGetFlags(CUstream s, unsigned *flags)
{
    *flags = self->apart.count(s) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return Enter("cuStreamGetFlags");
}
CUresult ParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size)
{
    Enter("cuFuncGetParamInfo");
    if (!functions.count(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (i >= functions[f].params.size())
        return CUDA_ERROR_INVALID_VALUE;
    *offset = functions[f].params[i].offset;
    *size = functions[f].params[i].size;
    return CUDA_SUCCESS;
}
CUresult GetModule(CUmodule *m, CUfunction)
{
    *m = reinterpret_cast<CUmodule>(0x2000);
    return CUDA_SUCCESS;
}
CUresult GetName(const char **name, CUfunction f)
{
    *name = self->other_name.empty() ? functions[f].name.c_str() : self->other_name.c_str();
    return Enter("cuFuncGetName");
}
CUresult LaunchKernel(CUfunction f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned,
                      unsigned, unsigned, CUstream s, void **params, void **extra)
{
    std::vector<void *> unpacked;
    for (size_t i = 0; extra && i < functions[f].params.size(); i++)
        unpacked.push_back(static_cast<char *>(extra[1]) + functions[f].params[i].offset);
    if (extra)
        params = unpacked.data();
    const CUresult ret = Enter("cuLaunchKernel");
    if (ret == CUDA_SUCCESS)
        Execute({Line({f, gx, bx, Bytes(f, params)}), "eager", s});
    return ret;
}
unsigned Cluster(const CUlaunchAttribute *attrs, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return attrs[i].value.clusterDim.x;
    return 0;
}
CUresult LaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **)
{
    const CUresult ret = Enter("cuLaunchKernelEx");
    if (ret == CUDA_SUCCESS)
        Execute(
            {Line({f, c->gridDimX, c->blockDimX, Bytes(f, params), Cluster(c->attrs, c->numAttrs)}),
             "eager", c->hStream});
    return ret;
}
CUresult NodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
    const CUresult ret = Enter("cuGraphKernelNodeSetAttribute");
    if (ret != CUDA_SUCCESS || id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        return ret;
    graphs[nodes[node].first].nodes[nodes[node].second].cluster = v->clusterDim.x;
    if (self->described[node].deaf)
        self->doomed.insert(static_cast<CUgraph>(nodes[node].first));
    else
        self->described[node].cluster = v->clusterDim.x;
    return ret;
}
CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
CUresult ExchangeMode(CUstreamCaptureMode *mode)
{
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
}
CUresult GraphCreate(CUgraph *g, unsigned)
{
    const CUresult ret = Enter("cuGraphCreate");
    if (ret == CUDA_SUCCESS) {
        *g = static_cast<CUgraph>(NewHandle());
        graphs[*g] = {{}, true};
    }
    return ret;
}
CUresult AddKernelNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t deps,
                       const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    const CUresult ret = Enter("cuGraphAddKernelNode_v2");
    EXPECT_EQ(graphs[g].nodes.empty() ? 0u : 1u, deps) << "the nodes are a chain";
    if (ret == CUDA_SUCCESS) {
        *node = static_cast<CUgraphNode>(NewHandle());
        nodes[*node] = {g, graphs[g].nodes.size()};
        graphs[g].nodes.push_back(
            {p->func, p->gridDimX, p->blockDimX, Bytes(p->func, p->kernelParams)});
        self->Describe(*node, {g, {after, after + deps}, *p});
    }
    return ret;
}
// A copy is a line without a grid; its bytes are from, to and the number.
Node CopyNode(const CUDA_MEMCPY3D *p)
{
    EXPECT_EQ(CU_MEMORYTYPE_DEVICE, p->srcMemoryType);
    EXPECT_EQ(CU_MEMORYTYPE_DEVICE, p->dstMemoryType);
    EXPECT_EQ(1u, p->Height * p->Depth);
    return {nullptr, 0, 0, CopyText(p->dstDevice, p->srcDevice, p->WidthInBytes)};
}
CUresult AddMemcpyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t deps,
                       const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    const CUresult ret = Enter("cuGraphAddMemcpyNode");
    EXPECT_EQ(graphs[g].nodes.empty() ? 0u : 1u, deps) << "the nodes are a chain";
    EXPECT_EQ(kContext, ctx);
    if (ret == CUDA_SUCCESS) {
        *node = static_cast<CUgraphNode>(NewHandle());
        nodes[*node] = {g, graphs[g].nodes.size()};
        graphs[g].nodes.push_back(CopyNode(p));
        self->Describe(*node, {g, {after, after + deps}, {}, *p});
    }
    return ret;
}
CUresult SetMemcpyParams(CUgraphExec x, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext)
{
    const CUresult ret = Enter("cuGraphExecMemcpyNodeSetParams");
    if (ret == CUDA_SUCCESS)
        execs[x].nodes[nodes[node].second] = CopyNode(p);
    return ret;
}
CUresult CopyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    const CUresult ret = Enter("cuMemcpyDtoDAsync_v2");
    if (ret == CUDA_SUCCESS)
        Execute({Line({nullptr, 0, 0, CopyText(to, from, n)}), "eager", s});
    return ret;
}
CUresult EventRecord(CUevent event, CUstream s)
{
    const CUresult ret = Enter("cuEventRecord");
    if (ret == CUDA_SUCCESS)
        Execute({ScriptedDriver::RecordText(event), "eager", s});
    return ret;
}
CUresult StreamWaitEvent(CUstream s, CUevent event, unsigned)
{
    const CUresult ret = Enter("cuStreamWaitEvent");
    if (ret == CUDA_SUCCESS)
        Execute({ScriptedDriver::WaitText(event), "eager", s});
    return ret;
}
CUresult AddRecordNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t deps,
                       CUevent event)
{
    const CUresult ret = Enter("cuGraphAddEventRecordNode");
    EXPECT_EQ(graphs[g].nodes.empty() ? 0u : 1u, deps) << "the nodes are a chain";
    if (ret == CUDA_SUCCESS) {
        *node = static_cast<CUgraphNode>(NewHandle());
        nodes[*node] = {g, graphs[g].nodes.size()};
        graphs[g].nodes.push_back({nullptr, 0, 0, ScriptedDriver::RecordText(event)});
        self->Describe(*node, {g, {after, after + deps}, {}, {}, event});
    }
    return ret;
}
CUresult SetRecordEvent(CUgraphExec x, CUgraphNode node, CUevent event)
{
    const CUresult ret = Enter("cuGraphExecEventRecordNodeSetEvent");
    if (ret == CUDA_SUCCESS)
        execs[x].nodes[nodes[node].second] = {nullptr, 0, 0, ScriptedDriver::RecordText(event)};
    return ret;
}
CUresult LoadFunction(CUfunction)
{
    return Enter("cuFuncLoad");
}
// A memset of any kind; one row: pitch 0, height 1.
template <typename T> CUresult FillLine(CUdeviceptr to, T value, size_t n, CUstream s)
{
    const CUresult ret = Enter("memset");
    const ag_fill f = {to, 0, n, 1, value, sizeof(T)};
    if (ret == CUDA_SUCCESS)
        self->executed.push_back({ScriptedDriver::FillText(f), "eager", s});
    return ret;
}
template <typename T>
CUresult FillRows(CUdeviceptr to, size_t pitch, T value, size_t n, size_t height, CUstream s)
{
    const CUresult ret = Enter("memset");
    const ag_fill f = {to, pitch, n, height, value, sizeof(T)};
    if (ret == CUDA_SUCCESS)
        self->executed.push_back({ScriptedDriver::FillText(f), "eager", s});
    return ret;
}
CUresult ContextId(CUcontext, unsigned long long *id)
{
    *id = self->context_id;
    return CUDA_SUCCESS;
}
CUresult LoadModule(CUmodule *m, const void *)
{
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, thread_mode);
    EXPECT_TRUE(self->may_load) << "it may wait for what the program does not wait for";
    EXPECT_EQ(0u, self->cap.logs[0].load()->lock.state)
        << "others may have to go on, for this to end";
    *m = reinterpret_cast<CUmodule>(0x3000);
    if (self->during_load)
        std::exchange(self->during_load, nullptr)();
    return Enter("cuModuleLoadData");
}
CUresult FunctionOf(CUfunction *f, CUmodule, const char *name)
{
    const CUresult ret = Enter("cuModuleGetFunction");
    if (ret == CUDA_SUCCESS)
        *f = self->Function(name, {8, 8, 8, 8, 4, 4});
    return ret;
}
CUresult Instantiate(CUgraphExec *x, CUgraph g, unsigned long long)
{
    const CUresult ret = Enter("cuGraphInstantiateWithFlags");
    EXPECT_EQ(0u, self->doomed.count(g)) << "the driver described another graph";
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, thread_mode);
    if (ret == CUDA_SUCCESS) {
        *x = static_cast<CUgraphExec>(NewHandle());
        execs[*x] = graphs[g];
    }
    return ret;
}
CUresult Upload(CUgraphExec, CUstream)
{
    return Enter("cuGraphUpload");
}
CUresult SetParams(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    const CUresult ret = Enter("cuGraphExecKernelNodeSetParams_v2");
    EXPECT_TRUE(nodes.count(node)) << "the node of a graph that still exists";
    Node &in_exec = execs[x].nodes[nodes[node].second]; // an update leaves attributes as they are
    if (ret == CUDA_SUCCESS)
        in_exec = {p->func, p->gridDimX, p->blockDimX, Bytes(p->func, p->kernelParams),
                   in_exec.cluster};
    return ret;
}
CUresult GraphLaunch(CUgraphExec x, CUstream s)
{
    const CUresult ret = Enter("cuGraphLaunch");
    EXPECT_TRUE(execs.count(x)) << "an exec that exists";
    if (ret == CUDA_SUCCESS)
        for (const Node &n : execs[x].nodes)
            Execute({Line(n), "graph", s});
    return ret;
}
CUresult ExecDestroy(CUgraphExec x)
{
    // O-07: in global mode the call would end another thread's capture (measured on 580.159.04).
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, thread_mode);
    EXPECT_EQ(1u, execs.erase(x));
    return Enter("cuGraphExecDestroy");
}
CUresult GraphDestroy(CUgraph g)
{
    EXPECT_EQ(1u, graphs.erase(g));
    return Enter("cuGraphDestroy");
}
CUresult Synchronized()
{
    return Enter("cuCtxSynchronize");
}

ag_fn slots[AG_ROWS];

void FillSlots()
{
    for (ag_fn &slot : slots)
        slot = reinterpret_cast<ag_fn>(Unexpected);
#define SLOT(symbol, fn) slots[AG_ROW_##symbol] = reinterpret_cast<ag_fn>(fn)
    SLOT(cuCtxGetCurrent, GetCurrent);
    SLOT(cuStreamGetCtx, StreamGetCtx);
    SLOT(cuStreamGetId, StreamGetId);
    SLOT(cuStreamGetFlags, StreamGetFlags);
    SLOT(cuFuncGetParamInfo, ParamInfo);
    SLOT(cuFuncGetModule, GetModule);
    SLOT(cuFuncGetName, GetName);
    SLOT(cuLaunchKernel, LaunchKernel);
    SLOT(cuLaunchKernelEx, LaunchKernelEx);
    SLOT(cuGraphKernelNodeSetAttribute, NodeSetAttribute);
    SLOT(cuThreadExchangeStreamCaptureMode, ExchangeMode);
    SLOT(cuGraphCreate, GraphCreate);
    SLOT(cuGraphAddKernelNode_v2, AddKernelNode);
    SLOT(cuGraphAddMemcpyNode, AddMemcpyNode);
    SLOT(cuGraphExecMemcpyNodeSetParams, SetMemcpyParams);
    SLOT(cuMemcpyDtoDAsync_v2, CopyAsync);
    SLOT(cuEventRecord, EventRecord);
    SLOT(cuStreamWaitEvent, StreamWaitEvent);
    SLOT(cuGraphAddEventRecordNode, AddRecordNode);
    SLOT(cuGraphExecEventRecordNodeSetEvent, SetRecordEvent);
#define LINE(symbol, type) SLOT(symbol, (FillLine<type>));
#define RECTANGLE(symbol, type) SLOT(symbol, (FillRows<type>));
    AG_FILLS(LINE, RECTANGLE)
#undef RECTANGLE
#undef LINE
    SLOT(cuCtxGetId, ContextId);
    SLOT(cuModuleLoadData, LoadModule);
    SLOT(cuModuleGetFunction, FunctionOf);
    SLOT(cuFuncLoad, LoadFunction);
    SLOT(cuGraphInstantiateWithFlags, Instantiate);
    SLOT(cuGraphUpload, Upload);
    SLOT(cuGraphExecKernelNodeSetParams_v2, SetParams);
    SLOT(cuGraphLaunch, GraphLaunch);
    SLOT(cuGraphExecDestroy, ExecDestroy);
    SLOT(cuGraphDestroy, GraphDestroy);
    SLOT(cuCtxSynchronize, Synchronized);
#undef SLOT
    self->FillGetters(slots);
}
} // namespace

ScriptedDriver::ScriptedDriver() : cap(), options(), counters(), liveness(), table()
{
    self = this;
    failures.clear();
    functions.clear();
    graphs.clear();
    execs.clear();
    nodes.clear();
    next_handle = 0x100000;
    thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    FillSlots();
    char *none[] = {nullptr};
    ag_options_load(&options, none);
    table.slot = slots;
    table.version = 13000;
    liveness.cap = &cap;
    liveness.bound_us = 100;
    cap.drv = &table;
    cap.options = &options;
    cap.counters = &counters;
    cap.limits = {4, 16, 64, 2, 3, 4096, AG_PACE_PROMPT};
    cap.liveness = &liveness;
    cap.turned_off = [](ag_capture *) { self->turned_off = true; };
    cap.start_thread = [](void *(*)(void *), void *) { return self->thread_starts; };
    cap.may_build = [](ag_capture *) { return self->may_build; };
    cap.tick = [](ag_capture *) {};
}

ScriptedDriver::~ScriptedDriver()
{
    ag_retire_contexts(&cap, nullptr, AG_ROW_cuCtxDestroy_v2);
    EXPECT_TRUE(execs.empty()) << "every exec is destroyed with its context";
    EXPECT_TRUE(graphs.empty());
    ag_capture_release(&cap);
}

void ScriptedDriver::FailCall(const std::string &entry, int n, CUresult code)
{
    failures[entry][n] = code;
}

CUfunction ScriptedDriver::Function(const std::string &name, std::vector<unsigned> sizes)
{
    FunctionInfo info{name, {}};
    uint32_t offset = 0;
    for (unsigned size : sizes) {
        const uint32_t align = size >= 8 ? 8 : size;
        offset = (offset + align - 1) / align * align;
        info.params.push_back({offset, size});
        offset += size;
    }
    const CUfunction f = static_cast<CUfunction>(NewHandle());
    functions[f] = info;
    return f;
}

const std::vector<ag_param> &ScriptedDriver::ParametersOf(CUfunction f) const
{
    return functions[f].params;
}

CUresult ScriptedDriver::Asked(const std::string &entry)
{
    return Enter(entry.c_str());
}

void ScriptedDriver::Retire(CUfunction f)
{
    ag_retire_module(&cap, nullptr, AG_ROW_cuLibraryUnload);
    functions.erase(f);
}

CUresult ScriptedDriver::Launch(CUfunction f, void **params, unsigned grid, CUstream stream)
{
    ag_launch l = {};
    l.row = AG_ROW_cuLaunchKernel;
    l.handle = f;
    l.config = {{grid, 1, 1}, {32, 1, 1}, 0};
    l.stream = stream;
    l.params = params;
    return ag_submit_launch(&cap, &l);
}

CUresult ScriptedDriver::Launch8(CUfunction f, unsigned long long value, unsigned grid,
                                 CUstream stream)
{
    void *params[] = {&value};
    const CUresult ret = Launch(f, params, grid, stream);
    value = 0xdeadbeef; // O-01: the caller's memory is worthless once the call has returned
    return ret;
}

CUresult ScriptedDriver::LaunchEx8(CUfunction f, unsigned long long value, CUlaunchAttribute *attrs,
                                   unsigned n)
{
    void *params[] = {&value};
    CUlaunchConfig config = {};
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 32;
    config.attrs = attrs;
    config.numAttrs = n;
    ag_launch l = {};
    l.row = AG_ROW_cuLaunchKernelEx;
    l.handle = f;
    l.config = {{8, 1, 1}, {32, 1, 1}, 0};
    l.params = params;
    l.full = &config;
    return ag_submit_launch(&cap, &l);
}

CUresult ScriptedDriver::Copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
{
    return ag_submit_copy(&cap, AG_ROW_cuMemcpyDtoDAsync_v2, to, from, n, stream);
}

CUresult ScriptedDriver::Fill(enum ag_row row, const ag_fill &f, CUstream stream)
{
    return ag_submit_fill(&cap, row, &f, stream);
}

CUresult ScriptedDriver::Record(CUevent event, CUstream stream)
{
    return ag_submit_record(&cap, AG_ROW_cuEventRecord, event, stream, 0);
}

CUresult ScriptedDriver::Wait(CUstream stream, CUevent event)
{
    return ag_submit_wait(&cap, AG_ROW_cuStreamWaitEvent, stream, event, 0);
}

CUresult ScriptedDriver::Synchronize()
{
    ag_drain(&cap, AG_DRAIN_SYNC, AG_ABOUT_ALL, AG_ROW_cuCtxSynchronize);
    const CUresult done = ag_real(&table, cuCtxSynchronize)();
    const CUresult ret = ag_deliver(&cap, AG_ROW_cuCtxSynchronize, nullptr, done);
    CheckInvariants();
    return ret;
}

void ScriptedDriver::Loaded()
{
    may_load = true;
    ag_prepare_fills(&cap);
    may_load = false;
}

void ScriptedDriver::Rest()
{
    may_load = executed.empty();
    ag_prepare_fills_at_rest(&cap);
    may_load = false;
}

void ScriptedDriver::CheckInvariants()
{
    for (uint32_t i = 0; i < cap.contexts; i++) {
        int broken;
        EXPECT_TRUE(ag_oplog_check(cap.logs[i], &broken)) << "I" << broken;
    }
}

int ScriptedDriver::Count(const std::string &how) const
{
    int n = 0;
    for (const Executed &e : executed)
        n += e.how == how;
    return n;
}
