/* tests/support/process.h - run a program under a chosen environment and keep what it said.
 * Called by  tests/differential, tests/scenarios, any test that runs whole programs
 * Calls      posix only
 * Threads    none of its own; several runs may go on from several threads
 * Promise    a run never outlives its time limit: the whole process group is killed and timed_out is set
 * Start at   run() */
#ifndef AG_TESTS_SUPPORT_PROCESS_H
#define AG_TESTS_SUPPORT_PROCESS_H

#include <map>
#include <string>
#include <vector>

namespace ag_test
{

struct Run {
    int status = -1;        // exit status, or 128 + signal
    bool timed_out = false; // the watchdog ended it
    std::string out;        // standard output
    std::string err;        // standard error
};

// `env` is the whole environment of the child, apart from PATH, HOME and the TEST_ variables.
Run run(const std::vector<std::string> &argv, const std::map<std::string, std::string> &env,
        int limit_seconds);

// A data dependency by its path in the workspace, wherever the test was started from.
std::string runfile(const std::string &path);

// Value for LD_PRELOAD: a sanitizer runtime must be first in line or the child refuses to start.
std::string preload(const std::string &library);

// A fresh directory below TEST_TMPDIR or /tmp; removed with its files by remove_dir().
std::string make_dir(const std::string &prefix);
void remove_dir(const std::string &dir);

std::string read_file(const std::string &path); // "" when there is none
bool exists(const std::string &path);

// The environment that makes a -lcuda program meet simcuda, with or without the shim.
std::map<std::string, std::string> simcuda_env(const std::string &driver_dir,
                                               const std::string &shim);

} // namespace ag_test
#endif
