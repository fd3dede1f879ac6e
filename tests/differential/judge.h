/* tests/differential/judge.h - did the device do what the program asked, and did the program see the same?
 * Called by  batch.cc                    Calls  precede.h, tests/support/simlog.h
 * Threads    none
 * Promise    judges by what the simulated device executed, never by anything the shim says
 * Start at   judge()
 *
 * What a program writes down (expect.c), a line each; BEFORE and AFTER are the program's clock around the call:
 *   X BEFORE AFTER ACTION.ITERATION STREAM NAME GRID BLOCK SHARED ARGS    an operation was accepted
 *   R|W BEFORE AFTER ACTION.ITERATION STREAM KEY EVENT   the stream gives what it holds to KEY, or waits for that;
 *                                                     EVENT: HANDLE.N as the log has it
 *   B BEFORE AFTER ACTION.ITERATION                   the call had to hand all earlier work to the driver
 *   S STREAM blocking|free|legacy CONTEXT             the stream exists
 *   track N, loop CLOCK, change CLOCK, end CLOCK, ops N, kinds N...
 * NAME is the kernel, or memcpy, memset, hostFunc, waitValueN, writeValueN, memAlloc, memFree, memPrefetch. A field of
 * ARGS that is `*` is not judged. Events have no X: they are judged by the order they make, and records by their place
 * among the operations of their stream (records.cc).
 *
 * What an operation may become: it runs in another place of a graph, or under the number of another stream in a graph
 * (branches); a copy from pageable memory may be one from a copy of it; a memset may have other elements that write the
 * same bytes; a memset may be the shim's own kernel ag_fill in a graph, with arguments that write the same bytes.
 * Each runs exactly once, with its bytes, after all that it had to follow. */
#ifndef AG_TESTS_DIFFERENTIAL_JUDGE_H
#define AG_TESTS_DIFFERENTIAL_JUDGE_H

#include "tests/support/simlog.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ag_diff
{

// What one run of one seed left behind.
struct Trace {
    int status = -1;      // of the child; 0 is good
    std::string said;     // observables
    std::string expected; // what was accepted, with the clock before and after each call
    ag_test::SimLog log;
    std::map<uint64_t, uint64_t> ends; // sequence number of an operation -> where it had ended
};

enum class Rule {
    strict, // same observables; executed == accepted, in order, each once
    lossy, // a call of the driver fails once: at most that operation is lost, and then it was reported
    sticky, // the context dies: what ran is a beginning of what was accepted, later launches are refused
};

struct Verdict {
    std::string why;       // empty: good
    uint64_t ops = 0;      // operations enqueued by the program
    size_t launches = 0;   // accepted
    size_t in_graphs = 0;  // of those, executed inside a graph
    bool replayed = false; // any
    bool diverged = false; // a loop changed after some of its launches had been executed in a graph
    std::map<std::string, std::pair<size_t, size_t>>
        names;                   // accepted by kind of operation, and in graphs
    std::vector<uint64_t> kinds; // actions carried out, by df_kind
};

Verdict judge(const Trace &native, const Trace &shim, Rule rule);

// The native run against its own expectation: a fault of the simulated driver or of the harness itself.
std::string judge_reference(const Trace &native, Rule rule);

// Where operations ended: the "# D SEQ" lines of a log's text, each at the place of the line before it.
std::map<uint64_t, uint64_t> read_ends(const std::string &log_text);

} // namespace ag_diff
#endif
