/* tests/resolver/harness.h - runs a case in a fresh process, without the shim and with it, and
 * compares.
 * Called by  *_test.cc       Calls  fork, exec
 * Threads    one
 * Promise    a case that hangs is killed after its limit and fails; nothing of the test's own
 * environment that starts            with AUTOGRAPH, FAKE or LD_ reaches a case
 * Start at   same_as_native() */
#ifndef AG_TESTS_RESOLVER_HARNESS_H
#define AG_TESTS_RESOLVER_HARNESS_H

#include <gtest/gtest.h>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESOLVER_SANITIZED 1
#else
#define RESOLVER_SANITIZED 0
#endif

namespace resolver
{

struct Case {
    std::vector<std::string>
        command; // program and arguments; a program without '/' is one of the fixtures
    std::string driver = "driver"; // which fake driver LD_LIBRARY_PATH leads to; "" for none
    std::vector<std::string> environment = {}; // NAME=VALUE
    unsigned limit_s = 60;
};

struct Outcome {
    int exit = -1;                 // status, or 1000 + signal
    std::string out;               // lines without the "shim: " ones, the errors behind them
    std::vector<std::string> shim; // lines "shim: ..." without the prefix
};

// The path of a fixture as the test's processes see it.
std::string fixture(const std::string &name);
std::string library();
// Runs the case; `preloaded`: with libautograph.so.
Outcome run(const Case &c, bool preloaded);
// Output of a command of the shell; the test fails when the command does.
std::string shell(const std::string &command);
std::vector<std::string> lines(const std::string &text);

// Runs the case both ways. Failure when status or output differ, or when even the native run did
// not end with `exit`. Returns the run with the shim.
Outcome same_as_native(const Case &c, int exit = 0);
// Every "shim: " line that starts with `about` ends with `home`, and there is one at least.
void expect_home(const Outcome &o, const std::string &about, const std::string &home);

} // namespace resolver

#endif
