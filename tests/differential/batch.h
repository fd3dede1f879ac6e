/* tests/differential/batch.h - runs seeds without and with the shim, judges them, adds up, shrinks what fails.
 * Called by  runner.cc, differential_test.cc      Calls  judge.h, plan.h, tests/support
 * Threads    run_seeds() uses `jobs` threads of its own
 * Promise    every seed is judged or reported as not run
 * Start at   run_seeds() */
#ifndef AG_TESTS_DIFFERENTIAL_BATCH_H
#define AG_TESTS_DIFFERENTIAL_BATCH_H

#include "tests/differential/judge.h"

#include <map>
#include <string>
#include <vector>

namespace ag_diff
{

struct Setup {
    std::string program, driver, shim; // files and folders
    int jobs = 2;
    int limit = 30;                // seconds a program may take
    uint64_t chunk = 25;           // seeds in one process
    uint64_t stop_after = 0;       // give up after that many failures; 0: never
    bool check_reference = true;   // also judge the runs without the shim
    std::vector<std::string> more; // further arguments of the program: filters
    std::map<std::string, std::string> env;
};

struct Failure {
    uint64_t seed;
    std::string why;
};

struct Summary {
    uint64_t seeds = 0;        // judged
    std::vector<uint64_t> ops; // of each
    uint64_t launches = 0, in_graphs = 0;
    uint64_t replayed = 0, diverged = 0; // programs
    uint64_t with_faults = 0;
    std::map<std::string, std::pair<size_t, size_t>> names; // operations, and those in graphs
    std::vector<uint64_t> kinds;                            // actions, by df_kind
    std::vector<Failure> failures;
    std::vector<std::string> broken; // reference runs that are wrong by themselves
    double seconds = 0;

    uint64_t percentile(int percent) const;
    std::string text() const;
};

// What AUTOGRAPH_VERIFY found, by the statistics that the programs left in a folder.
struct Verified {
    uint64_t programs = 0, launched = 0, verified = 0, read_back = 0,
             mismatched = 0; // graphs, but for the first
    std::string text() const;
};
Verified read_verified(const std::string &dir);
// Makes the programs verify 1 in `n` replays, and leave their statistics there.
void verify_in(Setup *setup, const std::string &n, const std::string &dir);

Summary run_seeds(const Setup &setup, uint64_t first, uint64_t last);

// Verdicts of seeds first..last, in order.
std::vector<Verdict> judge_seeds(const Setup &setup, uint64_t first, uint64_t last,
                                 std::vector<std::string> *broken);

// A smaller program that fails too, as arguments of runner and program.
struct Small {
    std::vector<std::string> arguments;
    std::string why;
    uint64_t ops = 0;
    int runs = 0;
};
Small shrink(const Setup &setup, uint64_t seed, int seconds);

std::string command(const Setup &setup, uint64_t seed, const std::vector<std::string> &arguments);

} // namespace ag_diff
#endif
