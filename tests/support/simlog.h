/* tests/support/simlog.h - the execution log of the simulated driver, read back.
 * Called by  tests/differential, tests/scenarios      Calls  nothing
 * Threads    none
 * Promise    a line that cannot be read is reported, never skipped
 * Start at   read_simlog(); the grammar is in tools/simcuda/README.md */
#ifndef AG_TESTS_SUPPORT_SIMLOG_H
#define AG_TESTS_SUPPORT_SIMLOG_H

#include <cstdint>
#include <string>
#include <vector>

namespace ag_test
{

// An operation that the simulated device ran.
struct Executed {
    uint64_t seq = 0; // order of execution
    uint64_t sub = 0; // order in which the driver received it; the nodes of a graph launch share it
    std::string ctx, stream; // names of the log; a stream is its cuStreamGetId
    bool in_graph = false;
    std::string how;                             // "launch" or "graph:EXEC:NODE"
    std::string name, grid, block, shared, args; // no kernel: grid is "-", args are operands
    std::string state; // of a kernel: the function's and the launch's attributes in force
};

// A call that the simulated driver received (SIMCUDA_LOG_CALLS=1).
struct Called {
    uint64_t seq = 0;
    std::string thread, symbol;
    int status = 0;
};

struct SimLog {
    std::vector<Executed> executed;
    std::vector<Called> called;
    std::string bad_line; // the first that could not be read
    // What stands behind the last line: the process was ended by another of its threads inside write(), which
    // the kernel then leaves at the end of a page.
    std::string cut_line;

    size_t in_graphs() const;
    size_t calls(const std::string &symbol) const;
};

SimLog read_simlog(const std::string &path);

} // namespace ag_test
#endif
