// tests/capture/scripted_driver.h - a table of driver functions that writes down what it is asked
// to do. One context, any number of streams and functions; every launch and graph launch is a line
// of `executed` with the bytes it had. Failures are scripted by entry point and call number. Not a
// simulation: see tools/simcuda for that.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "capture/event.h"
#include "capture/liveness.h"
#include "capture/submit.h"
#include "capture/transfer.h"
#include "shim/driver.h"

struct ScriptedDriver {
    ScriptedDriver();
    ~ScriptedDriver();

    // What reached the device, one entry an op: "f1 <<<grid,block>>> bytes", and how: "eager" or
    // "graph".
    struct Executed {
        std::string op, how;
        CUstream stream;
    };
    std::vector<Executed> executed;
    std::map<std::string, int> calls; // by entry point
    // The n-th call (from 1) of the entry point answers `code`.
    void FailCall(const std::string &entry, int n, CUresult code);
    // Parameters of a function: sizes in bytes, packed with natural alignment.
    CUfunction Function(const std::string &name, std::vector<unsigned> sizes);
    const std::vector<ag_param> &ParametersOf(CUfunction f) const;
    CUresult Asked(const std::string &entry); // counts a call, answers as scripted
    void Retire(CUfunction f);

    // The capture under test, wired to this driver; the thread never looks by itself, tests call
    // ag_look().
    struct ag_capture cap;
    struct ag_options options;
    struct ag_counters counters;
    struct ag_liveness liveness;
    struct ag_driver table;
    unsigned long long context_id = 7, stream_ids = 0; // the latter: of all streams from here on
    bool turned_off = false, may_build = true, thread_starts = true;
    std::set<CUstream> apart;          // of CU_STREAM_NON_BLOCKING
    bool may_load = false;             // a module, of the shim's own
    std::function<void()> during_load; // called once, from inside the driver

    // What the driver says of a node when it is asked (scripted_getters.cc), from when it was added. Says nothing of
    // execs but whether they have the node enabled. Tests make it lie.
    struct Described {
        CUgraph graph = nullptr;
        std::vector<CUgraphNode> after;
        CUDA_KERNEL_NODE_PARAMS_v2 kernel = {};
        CUDA_MEMCPY3D copy = {};
        CUevent event = nullptr;
        std::vector<std::string> arguments = {}; // of the kernel
        std::vector<void *> pointers = {};       // to them
        unsigned cluster = 0, edge_port = 0;
        bool enabled = true, deaf = false; // the latter: to attributes
    };
    std::map<CUgraphNode, Described> described;
    std::function<void(Described &)> lie; // called for each node that is added
    std::set<CUgraph> doomed;             // it is an error to instantiate these
    std::map<CUfunction, int> dynamic; // what each function says is its most dynamic shared memory
    std::string other_name;            // that every function says it has
    void Describe(CUgraphNode node, Described what);
    void FillGetters(ag_fn *slots);

    CUresult Launch(CUfunction f, void **params, unsigned grid = 1, CUstream stream = nullptr);
    // Launches f with one 8-byte argument.
    CUresult Launch8(CUfunction f, unsigned long long value, unsigned grid = 1,
                     CUstream stream = nullptr);
    // The same through cuLaunchKernelEx, grid 8, with attributes.
    CUresult LaunchEx8(CUfunction f, unsigned long long value, CUlaunchAttribute *attrs,
                       unsigned n);
    // As the hook of cuMemcpyDtoDAsync does; the line is "copy TO from FROM, N bytes", hexadecimal.
    CUresult Copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream = nullptr);
    // As the hook of the row does; the line is that of FillText.
    CUresult Fill(enum ag_row row, const ag_fill &f, CUstream stream = nullptr);
    static std::string FillText(const ag_fill &f);
    // As the hook of cuEventRecord does; the line is "record EVENT", hexadecimal.
    CUresult Record(CUevent event, CUstream stream = nullptr);
    static std::string RecordText(CUevent event);
    // As the hook of cuStreamWaitEvent does; the line is "wait EVENT", hexadecimal.
    CUresult Wait(CUstream stream, CUevent event);
    static std::string WaitText(CUevent event);
    CUresult Synchronize(); // as the hook of cuCtxSynchronize does
    void Loaded(); // as the hook of cuModuleLoadData does, once the driver's own has succeeded
    void Rest();   // as those do that prepare where nothing is enqueued yet
    void CheckInvariants();
    int Count(const std::string &how) const;
};
