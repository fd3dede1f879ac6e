// AUTOGRAPH_VERIFY against a scripted driver: what a graph would do wrong is found before it is launched, what the
// driver says of one wrongly before it is made; and off it asks for nothing.
#include "capture/graph.h"
#include "capture/verify.h"
#include "tests/capture/scripted_driver.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

namespace
{
constexpr CUdeviceptr A = 0x700000000;

CUevent Event(uintptr_t i)
{
    return reinterpret_cast<CUevent>(0xe0000 + 0x100 * i);
}

std::string Text(const std::string &name, unsigned grid, const void *bytes, size_t n,
                 const char *more = "")
{
    std::string text = name + " <<<" + std::to_string(grid) + ",32>>>" + more;
    for (size_t i = 0; i < n; i++) {
        char hex[4];
        snprintf(hex, sizeof hex, " %02x", static_cast<const unsigned char *>(bytes)[i]);
        text += hex;
    }
    return text;
}

// A loop of everything that a graph may hold. What the device is to see of it is in `asked`.
struct Loop {
    explicit Loop(unsigned verify = 1) : f(d.Function("f", {8})), g(d.Function("g", {4, 8}))
    {
        d.options.verify = verify;
        d.cap.limits.first_segment = d.cap.limits.min_segment = 64; // an iteration is one segment
        ag_memory_came(&d.cap, A, 4096);
        for (uintptr_t i = 0; i < 8; i++)
            ag_event_came(&d.cap, Event(i), CU_EVENT_DISABLE_TIMING);
        cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster.value.clusterDim = {2, 1, 1};
        d.dynamic[f] = 65536;
    }

    void LaunchF(unsigned long long value, unsigned grid)
    {
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, value, grid));
        asked.push_back(Text("f", grid, &value, 8));
    }
    // Holds one iteration; `seed` is in every argument, place and event.
    void Call(unsigned seed)
    {
        for (unsigned i = 0; i < 3; i++) {
            unsigned char bytes[12];
            unsigned word = seed + i;
            unsigned long long wide = ~0ull - seed, ex = seed + 50;
            void *params[] = {&word, &wide};
            memcpy(bytes, &word, 4);
            memcpy(bytes + 4, &wide, 8);
            const ag_fill fill = {A + 4 * (seed % 8), 0, 16 + i, 1, seed, 4};
            const CUdeviceptr to = A + 8 * (seed % 16), from = A + 2048 + 64 * i;
            char copy[80];
            snprintf(copy, sizeof copy, "copy %llx from %llx, 32 bytes", to, from);
            const CUevent event = Event((seed + 2 * i) % 8), next = Event((seed + 2 * i + 1) % 8);
            LaunchF(seed + i, 1 + i);
            EXPECT_EQ(CUDA_SUCCESS, d.LaunchEx8(f, ex, &cluster, 1));
            EXPECT_EQ(CUDA_SUCCESS, d.Record(event));
            EXPECT_EQ(CUDA_SUCCESS, d.Copy(to, from, 32));
            EXPECT_EQ(CUDA_SUCCESS, d.Launch(g, params, 2));
            EXPECT_EQ(CUDA_SUCCESS, d.Record(next));
            EXPECT_EQ(CUDA_SUCCESS, d.Fill(AG_ROW_cuMemsetD32Async, fill));
            asked.insert(asked.end(),
                         {Text("f", 8, &ex, 8, " cluster 2"), ScriptedDriver::RecordText(event),
                          copy, Text("g", 2, bytes, 12), ScriptedDriver::RecordText(next),
                          ScriptedDriver::FillText(fill)});
        }
    }
    void Iterate(unsigned seed)
    {
        Call(seed);
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    void Learn(unsigned seed)
    {
        d.Loaded();
        for (int k = 0; k < 10; k++)
            Iterate(seed);
    }
    uint64_t Read(const ag_counter &c) const
    {
        return ag_count_read(&c);
    }
    bool RanAsAsked() const
    {
        std::vector<std::string> ran;
        for (const auto &e : d.executed)
            ran.push_back(e.op);
        return ran == asked;
    }
    // The graph that stands for what is held.
    ag_graph *Graph()
    {
        const ag_oplog *log = d.cap.logs[0];
        for (uint32_t i = 0; log->cur && i < log->entries; i++) {
            ag_graph *graph = log->by_entry[i];
            uint32_t same = 0;
            while (graph && graph->n == log->n && same < log->n &&
                   graph->node[same].sig == log->ops[same].sig)
                same++;
            if (same && same == log->n)
                return graph;
        }
        ADD_FAILURE() << "what is held, " << log->n << " ops, is in no graph";
        return nullptr;
    }
    // What is held is not replayed, runs right, and the program hears of nothing.
    void ExpectCaught(const char *what)
    {
        const uint64_t mismatched = Read(d.counters.graphs_mismatched);
        const uint64_t eager = Read(d.counters.eager[AG_REFUSAL_MISMATCH]);
        const int in_graphs = d.Count("graph");
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize()) << what;
        EXPECT_TRUE(RanAsAsked()) << what;
        EXPECT_EQ(in_graphs, d.Count("graph")) << what;
        EXPECT_EQ(mismatched + 1, Read(d.counters.graphs_mismatched)) << what;
        EXPECT_LT(eager, Read(d.counters.eager[AG_REFUSAL_MISMATCH])) << what;
        EXPECT_FALSE(d.turned_off);
    }

    ScriptedDriver d;
    CUfunction f, g;
    CUlaunchAttribute cluster = {};
    std::vector<std::string> asked;
};

TEST(Verify, FindsNothingWrongWithWhatTheShimDoes)
{
    Loop v;
    v.Learn(0);
    for (unsigned seed = 0; seed < 40; seed++)
        v.Iterate(seed % 5 ? seed : 3);
    EXPECT_TRUE(v.RanAsAsked());
    EXPECT_GT(v.d.Count("graph"), 500);
    EXPECT_EQ(0u, v.Read(v.d.counters.graphs_mismatched));
    EXPECT_EQ(v.Read(v.d.counters.graph_launches), v.Read(v.d.counters.graphs_verified));
    EXPECT_EQ(v.Read(v.d.counters.graphs_built), v.Read(v.d.counters.graphs_read_back));
    EXPECT_GT(v.Read(v.d.counters.nodes_patched), 100u);
    EXPECT_GT(v.Read(v.d.counters.memsets_replayed), 30u);
    EXPECT_GT(v.Read(v.d.counters.copies_replayed), 30u);
    EXPECT_GT(v.Read(v.d.counters.records_replayed), 30u);
}

// Every call of the driver but those that a replay is made of.
TEST(Verify, ThatIsOffAsksTheDriverNothing)
{
    Loop v(0);
    v.Learn(0);
    for (const char *getter :
         {"cuGraphGetNodes", "cuGraphGetEdges_v2", "cuGraphKernelNodeGetParams_v2",
          "cuGraphKernelNodeGetAttribute", "cuGraphMemcpyNodeGetParams",
          "cuGraphEventRecordNodeGetEvent", "cuGraphNodeGetEnabled", "cuFuncGetAttribute"})
        EXPECT_EQ(0, v.d.calls[getter]) << getter;
    EXPECT_GT(v.Read(v.d.counters.graphs_built), 0u);
    const auto before = v.d.calls;
    const uint64_t launches = v.Read(v.d.counters.graph_launches);
    v.Iterate(0);
    EXPECT_GT(v.Read(v.d.counters.graph_launches), launches);
    std::map<std::string, int> more;
    for (const auto &[entry, n] : v.d.calls)
        if (n != before.at(entry))
            more[entry] = n - before.at(entry);
    const int replays = static_cast<int>(v.Read(v.d.counters.graph_launches) - launches);
    EXPECT_EQ((std::map<std::string, int>{{"cuCtxSynchronize", 1}, {"cuGraphLaunch", replays}}),
              more);
    EXPECT_EQ(0u, v.Read(v.d.counters.graphs_verified));
    EXPECT_EQ(0u, v.Read(v.d.counters.graphs_read_back));
    v.Call(0);
    EXPECT_EQ(nullptr, v.Graph()->verify) << "nothing is kept for it either";
    EXPECT_EQ(CUDA_SUCCESS, v.d.Synchronize());
}

TEST(Verify, OfOneInTenLooksAtOneInTenAndKeepsNoStepWithALoop)
{
    Loop v(10);
    const CUfunction h = v.d.Function("h", {8});
    auto turn = [&] { // one replay
        for (unsigned i = 0; i < 8; i++)
            EXPECT_EQ(CUDA_SUCCESS, v.d.Launch8(h, i));
        EXPECT_EQ(CUDA_SUCCESS, v.d.Synchronize());
    };
    for (int k = 0; k < 10; k++)
        turn();
    uint64_t replays = v.Read(v.d.counters.graph_launches);
    while (replays++ % 10)
        turn();
    ASSERT_EQ(0u, v.Read(v.d.counters.graph_launches) % 10);
    std::vector<int> at(10);
    for (int k = 0; k < 3000; k++) {
        const uint64_t launches = v.Read(v.d.counters.graph_launches);
        const uint64_t verified = v.Read(v.d.counters.graphs_verified);
        turn();
        ASSERT_EQ(launches + 1, v.Read(v.d.counters.graph_launches));
        at[static_cast<size_t>(k) % 10] +=
            static_cast<int>(v.Read(v.d.counters.graphs_verified) - verified);
        if (k % 10 == 9) {
            ASSERT_EQ((launches + 1) / 10, v.Read(v.d.counters.graphs_verified));
        }
    }
    for (size_t i = 0; i < 10; i++)
        EXPECT_TRUE(at[i] > 4 && at[i] < 90) << at[i] << " of 300 at place " << i;
    EXPECT_EQ(0u, v.Read(v.d.counters.graphs_mismatched));
}

// The replay is told apart by what was asked: a graph of another state of a function is another graph.
TEST(Verify, FindsAStaleArgument)
{
    for (const unsigned on : {0u, 1u}) {
        Loop v(on);
        v.Learn(7);
        v.Call(23);
        ag_oplog *log = v.d.cap.logs[0];
        ag_graph *graph = v.Graph();
        ASSERT_EQ(graph->args_used, log->args_used);
        memcpy(graph->args, log->args, log->args_used); // so nothing is patched
        if (on) {
            v.ExpectCaught("arguments");
        } else {
            EXPECT_EQ(CUDA_SUCCESS, v.d.Synchronize());
            EXPECT_FALSE(v.RanAsAsked()) << "the fault that was planted does nothing";
        }
    }
}

// One at a time: what the driver was told last of a node differs from the call in one field.
TEST(Verify, FindsEveryFieldThatTheExecWasToldWrongly)
{
    const std::vector<std::pair<const char *, std::function<bool(ag_told *)>>> faults = {
        {"kernel",
         [](ag_told *t) {
             return t->params.kind == AG_OP_KERNEL && (t->params.kernel.func = nullptr, true);
         }},
        {"grid",
         [](ag_told *t) { return t->params.kind == AG_OP_KERNEL && ++t->params.kernel.gridDimZ; }},
        {"block",
         [](ag_told *t) { return t->params.kind == AG_OP_KERNEL && ++t->params.kernel.blockDimY; }},
        {"shared",
         [](ag_told *t) {
             return t->params.kind == AG_OP_KERNEL && ++t->params.kernel.sharedMemBytes;
         }},
        {"fill grid",
         [](ag_told *t) { return t->params.kind == AG_OP_FILL && ++t->params.kernel.gridDimX; }},
        {"fill kernel",
         [](ag_told *t) {
             return t->params.kind == AG_OP_FILL && (t->params.kernel.func = nullptr, true);
         }},
        {"copy to",
         [](ag_told *t) { return t->params.kind == AG_OP_COPY && ++t->params.copy.dstDevice; }},
        {"copy from",
         [](ag_told *t) { return t->params.kind == AG_OP_COPY && ++t->params.copy.srcDevice; }},
        {"copy bytes",
         [](ag_told *t) { return t->params.kind == AG_OP_COPY && ++t->params.copy.WidthInBytes; }},
        {"copy memory",
         [](ag_told *t) { return t->params.kind == AG_OP_COPY && ++t->generations[1]; }},
        {"event",
         [](ag_told *t) {
             return t->params.kind == AG_OP_RECORD && (t->params.event = Event(77), true);
         }},
        {"event that came back",
         [](ag_told *t) { return t->params.kind == AG_OP_RECORD && ++t->generations[0]; }},
        {"kind",
         [](ag_told *t) {
             return t->params.kind == AG_OP_COPY && (t->params.kind = AG_OP_RECORD, true);
         }},
        {"exec", [](ag_told *t) { return (t->exec = reinterpret_cast<CUgraphExec>(1), true); }},
        {"no node", [](ag_told *t) { return (t->node = nullptr, true); }},
    };
    for (const auto &[what, plant] : faults) {
        Loop v;
        v.Learn(7);
        v.Call(7);
        ag_graph *graph = v.Graph();
        uint32_t i = 0;
        while (i < graph->n && !(graph->verify->told[i].node && plant(&graph->verify->told[i])))
            i++;
        ASSERT_LT(i, graph->n) << what;
        v.ExpectCaught(what);
    }
}

TEST(Verify, FindsAnOpThatIsElsewhereThanTheCallWas)
{
    ag_stream other = {};
    const std::vector<std::pair<const char *, std::function<void(ag_graph *)>>> faults = {
        {"stream", [&](ag_graph *g) { g->piece[0].stream = &other; }},
        {"left out", [](ag_graph *g) { g->place[3].next = 5; }},
        {"turned round", [](ag_graph *g) { g->place[3].next = 2; }},
        {"another piece", [](ag_graph *g) { g->place[4].piece = 1; }},
        {"beyond the end", [](ag_graph *g) { g->place[4].next = g->n; }},
        {"attributes", [](ag_graph *g) { g->node[1].sig = g->node[0].sig; }},
    };
    for (const auto &[what, plant] : faults) {
        Loop v;
        v.Learn(7);
        v.Call(7);
        ag_graph *graph = v.Graph();
        ASSERT_EQ(1u, graph->pieces);
        plant(graph);
        v.ExpectCaught(what);
    }
}

TEST(Verify, FindsASingleByteOfAnArgument)
{
    size_t bytes = 1, found = 0, padding = 0;
    for (size_t i = 0; i < bytes; i++) {
        Loop v;
        v.Learn(7);
        v.Call(7);
        bytes = v.Graph()->args_used;
        v.Graph()->verify->args[i] ^= 1;
        const uint64_t before = v.Read(v.d.counters.graphs_mismatched);
        EXPECT_EQ(CUDA_SUCCESS, v.d.Synchronize());
        const bool caught = v.Read(v.d.counters.graphs_mismatched) > before;
        found += caught;
        padding += !caught;
    }
    // f has 8 bytes of arguments, six times; g 12, thrice; a memset 40, thrice.
    EXPECT_EQ(6 * 8 + 3 * 12 + 3 * 40u, found);
    EXPECT_GE(padding, 3 * 40 + 6 * 32u) << "copies and records are compared otherwise";
}

TEST(Verify, FindsANodeThatTheExecDoesNotRun)
{
    Loop v;
    v.Learn(7);
    v.Call(7);
    for (auto &n : v.d.described)
        n.second.enabled = n.second.event;
    v.ExpectCaught("disabled");
}

TEST(Verify, FindsAFunctionThatIsNotTheOneItWas)
{
    for (int fault = 0; fault < 3; fault++) {
        Loop v;
        ag_attribute_set(&v.d.cap, v.f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
        v.Learn(7);
        ag_attribute_set(&v.d.cap, v.f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
        for (int k = 0; k < 8; k++)
            v.Iterate(7);
        v.Call(7);
        EXPECT_GT(v.d.calls["cuFuncGetAttribute"], 0);
        v.Graph();
        if (fault == 0)
            v.d.other_name = "another one";
        else if (fault == 1)
            v.d.dynamic[v.f] = 49152;
        else
            const_cast<std::vector<ag_param> &>(v.d.ParametersOf(v.g))[1].offset += 4;
        const uint64_t before = v.Read(v.d.counters.graphs_mismatched);
        EXPECT_EQ(CUDA_SUCCESS, v.d.Synchronize());
        EXPECT_EQ(before + 1, v.Read(v.d.counters.graphs_mismatched)) << fault;
    }
}

// What the driver says of the nodes that were just made; each is a lie about one of them.
TEST(Verify, FindsEveryFieldThatAGraphWasBuiltWrongly)
{
    using D = ScriptedDriver::Described;
    const auto is_kernel = [](const D &n) { return n.kernel.func != nullptr; };
    const auto is_copy = [](const D &n) { return n.copy.dstDevice != 0; };
    const auto is_any = [](const D &) { return true; };
    const auto is_first = [](const D &n) { return n.after.empty(); };
    const struct {
        const char *what;
        std::function<bool(const D &)> about;
        std::function<void(D &)> lie;
    } lies[] = {
        {"kernel", is_kernel, [](D &n) { n.kernel.func = nullptr; }},
        {"grid", is_kernel, [](D &n) { n.kernel.gridDimX++; }},
        {"block", is_kernel, [](D &n) { n.kernel.blockDimZ++; }},
        {"shared", is_kernel, [](D &n) { n.kernel.sharedMemBytes++; }},
        {"argument", is_kernel, [](D &n) { n.arguments.back()[0] ^= 1; }},
        {"attribute", is_kernel, [](D &n) { n.deaf = true; }},
        {"copy", is_copy, [](D &n) { n.copy.srcDevice++; }},
        {"copy kind", is_copy, [](D &n) { n.copy.dstMemoryType = CU_MEMORYTYPE_HOST; }},
        {"event", [](const D &n) { return n.event != nullptr; }, [](D &n) { n.event = Event(77); }},
        {"lost edge", [](const D &n) { return !n.after.empty(); }, [](D &n) { n.after.clear(); }},
        {"further edge", is_any, [](D &n) { n.after.push_back(reinterpret_cast<CUgraphNode>(8)); }},
        {"kind of edge", [](const D &n) { return !n.after.empty(); },
         [](D &n) { n.edge_port = 1; }},
        {"one edge more", is_first,
         [](D &n) { n.after.push_back(reinterpret_cast<CUgraphNode>(8)); }},
        {"one node more", is_first, [](D &) {}},
        {"lost node", is_any, [](D &n) { n.graph = reinterpret_cast<CUgraph>(8); }},
    };
    for (const auto &l : lies) {
        Loop v;
        v.d.lie = [&](D &n) {
            if (!l.about(n))
                return;
            if (strcmp(l.what, "attribute")) // else once it is set
                v.d.doomed.insert(n.graph);
            if (!strcmp(l.what, "one node more")) // a handle below all others
                v.d.described[reinterpret_cast<CUgraphNode>(8)].graph = n.graph;
            l.lie(n);
        };
        v.Learn(7);
        EXPECT_GT(v.Read(v.d.counters.graphs_mismatched), 0u) << l.what;
        EXPECT_GT(v.d.doomed.size(), 0u) << l.what;
        EXPECT_TRUE(v.RanAsAsked()) << l.what;
    }
}

TEST(Verify, TakesAGetterThatFailsForAMismatch)
{
    for (const char *getter :
         {"cuGraphGetNodes", "cuGraphGetEdges_v2", "cuGraphKernelNodeGetParams_v2",
          "cuGraphKernelNodeGetAttribute", "cuGraphMemcpyNodeGetParams",
          "cuGraphEventRecordNodeGetEvent", "cuGraphNodeGetEnabled"}) {
        Loop v;
        v.d.FailCall(getter, 1, CUDA_ERROR_NOT_SUPPORTED);
        v.Learn(7);
        EXPECT_EQ(1u, v.Read(v.d.counters.graphs_mismatched)) << getter;
        EXPECT_TRUE(v.RanAsAsked()) << getter;
    }
}
} // namespace
