/* tests/differential/judge.h - did the device do what the program asked, and did the program see the same?
 * Called by  batch.cc                    Calls  tests/support/simlog.h
 * Threads    none
 * Promise    judges by what the simulated device executed, never by anything the shim says
 * Start at   judge() */
#ifndef AG_TESTS_DIFFERENTIAL_JUDGE_H
#define AG_TESTS_DIFFERENTIAL_JUDGE_H

#include "tests/support/simlog.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ag_diff
{

// What one run of one seed left behind.
struct Trace {
    int status = -1;      // of the child; 0 is good
    std::string said;     // observables
    std::string expected; // launches that were accepted, with the clock before and after each call
    ag_test::SimLog log;
};

enum class Rule {
    strict, // same observables; executed == accepted, in order, each once
    lossy, // a launch call of the driver fails once: at most that one is lost, and then it was reported
    sticky, // the context dies: what ran is a beginning of what was accepted, later launches are refused
};

struct Verdict {
    std::string why;       // empty: good
    uint64_t ops = 0;      // operations enqueued by the program
    size_t launches = 0;   // accepted
    size_t in_graphs = 0;  // executed inside a graph
    bool replayed = false; // any
    bool diverged = false; // a loop changed after some of its launches had been executed in a graph
};

Verdict judge(const Trace &native, const Trace &shim, Rule rule);

// The native run against its own expectation: a fault of the simulated driver or of the harness itself.
std::string judge_reference(const Trace &native, Rule rule);

} // namespace ag_diff
#endif
