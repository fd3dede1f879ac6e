/* tests/differential/runner.cc - the differential test as a command.
 * Called by  people, mutants.py          Calls  batch.h
 * Threads    those of run_seeds()
 * Promise    exit status 0 only if every program behaved the same with the shim; prints what to run again
 * Start at   main()
 *
 * runner [--seeds N] [--first S] [--shim FILE] [--driver DIR] [--program FILE] [--jobs N] [--chunk N]
 *        [--limit SECONDS] [--stop-after FAILURES] [--no-shrink] [--verify N] [filters of program.c]
 * --verify N: with AUTOGRAPH_VERIFY=N; a graph that it refuses is a failure.
 * Without --first the seeds start at a number made from the time, which is printed. */
#include "tests/differential/batch.h"
#include "tests/support/process.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace ag_diff;

namespace
{

struct Options {
    Setup setup;
    uint64_t first = 0, seeds = 1000;
    bool shrink = true;
    std::string verify;
};

bool parse(int argc, char **argv, Options *o)
{
    for (int i = 1; i < argc; i++) {
        std::string name = argv[i];
        if (name == "--no-shrink") {
            o->shrink = false;
            continue;
        }
        if (name == "--no-faults" || name == "--plain-threads") {
            o->setup.more.push_back(name);
            continue;
        }
        if (++i >= argc)
            return false;
        std::string value = argv[i];
        if (name == "--seeds")
            o->seeds = strtoull(value.c_str(), nullptr, 10);
        else if (name == "--first")
            o->first = strtoull(value.c_str(), nullptr, 10);
        else if (name == "--shim")
            o->setup.shim = ag_test::runfile(value);
        else if (name == "--driver")
            o->setup.driver = ag_test::runfile(value);
        else if (name == "--program")
            o->setup.program = ag_test::runfile(value);
        else if (name == "--jobs")
            o->setup.jobs = atoi(value.c_str());
        else if (name == "--chunk")
            o->setup.chunk = strtoull(value.c_str(), nullptr, 10);
        else if (name == "--limit")
            o->setup.limit = atoi(value.c_str());
        else if (name == "--stop-after")
            o->setup.stop_after = strtoull(value.c_str(), nullptr, 10);
        else if (name == "--verify")
            o->verify = value;
        else if (name == "--drop" || name == "--drop-tracks" || name == "--cap")
            o->setup.more.insert(o->setup.more.end(), {name, value});
        else
            return false;
    }
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    Options o;
    o.setup.program = ag_test::runfile("tests/differential/program");
    o.setup.driver = ag_test::runfile("tools/simcuda");
    o.setup.shim = ag_test::runfile("libautograph.so");
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "see the head of tests/differential/runner.cc\n");
        return 2;
    }
    // The loader goes on without a library that it cannot preload; a test of nothing would pass.
    for (const std::string &file :
         {o.setup.program, o.setup.shim, o.setup.driver + "/libcuda.so.1"})
        if (!ag_test::exists(file)) {
            fprintf(stderr, "there is no %s\n", file.c_str());
            return 2;
        }
    if (!o.first)
        o.first = static_cast<uint64_t>(time(nullptr)) * 1000u;
    printf("seeds %llu-%llu\n", (unsigned long long)o.first,
           (unsigned long long)(o.first + o.seeds - 1));
    fflush(stdout);
    const std::string stats = o.verify.empty() ? "" : ag_test::make_dir("ag-verified");
    if (!stats.empty())
        verify_in(&o.setup, o.verify, stats);
    Summary sum = run_seeds(o.setup, o.first, o.first + o.seeds - 1);
    fputs(sum.text().c_str(), stdout);
    const Verified verified = stats.empty() ? Verified() : read_verified(stats);
    if (!stats.empty()) {
        fputs(verified.text().c_str(), stdout);
        ag_test::remove_dir(stats);
        verify_in(&o.setup, o.verify, "/nonexistent"); // for the runs that shrink
    }
    for (const std::string &b : sum.broken)
        printf("broken reference: %s\n", b.c_str());
    size_t shown = 0;
    for (const Failure &f : sum.failures) {
        printf("seed %llu: %s\n  %s\n", (unsigned long long)f.seed, f.why.c_str(),
               command(o.setup, f.seed, o.setup.more).c_str());
        fflush(stdout);
        if (!o.shrink || ++shown > 3)
            continue;
        Small small = shrink(o.setup, f.seed, 60);
        if (small.why.empty())
            printf("  did not fail again\n");
        else
            printf("  shrunk to %llu ops in %d runs: %s\n  %s\n", (unsigned long long)small.ops,
                   small.runs, small.why.c_str(),
                   command(o.setup, f.seed, small.arguments).c_str());
        fflush(stdout);
    }
    return sum.failures.empty() && sum.broken.empty() && !verified.mismatched ? 0 : 1;
}
