/* tests/differential/saboteur_test.cc - would a shim be found out that breaks a promise about copies, events, values?
 * Called by  bazel                       Calls  batch.h, saboteur.so in the place of the shim
 * Threads    those of run_seeds()
 * Promise    each fault is found within a few hundred random programs, and the library without a fault passes them
 * Start at   TEST_P(Sabotaged, ...) */
#include "tests/differential/batch.h"
#include "tests/support/process.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace ag_diff;

namespace
{

ag_diff::Setup setup(const char *fault)
{
    Setup s;
    s.program = ag_test::runfile("tests/differential/program");
    s.driver = ag_test::runfile("tools/simcuda");
    s.shim = ag_test::runfile("tests/differential/saboteur.so");
    s.limit = 5;
    s.chunk = 5;
    s.env["AG_SABOTAGE"] = fault;
    s.more = {"--no-faults"};
    return s;
}

struct Sabotaged : testing::TestWithParam<const char *> {
};

} // namespace

TEST(Saboteur, WithoutAFaultIsNotSuspected)
{
    Summary sum = run_seeds(setup(""), 1, 60);
    for (const Failure &f : sum.failures)
        ADD_FAILURE() << "seed " << f.seed << ": " << f.why;
    EXPECT_EQ(60u, sum.seeds);
}

TEST(Saboteur, ThatRunsOperationsAsGraphsOfOneNodeIsNotSuspected)
{
    Summary sum = run_seeds(setup("as_graphs"), 1, 100);
    for (const Failure &f : sum.failures)
        ADD_FAILURE() << "seed " << f.seed << ": " << f.why;
    for (const char *name : {"memcpy", "memset", "hostFunc"})
        EXPECT_GT(sum.names[name].second, 100u) << name;
    fputs(sum.text().c_str(), stdout);
}

TEST_P(Sabotaged, IsFoundOutByRandomProgramsAlone)
{
    ag_diff::Setup s = ::setup(GetParam());
    s.stop_after = 1;
    Summary sum = run_seeds(s, 1, 400);
    ASSERT_FALSE(sum.failures.empty()) << "survives " << sum.seeds << " programs";
    printf("%s: seed %llu: %.200s\n", GetParam(), (unsigned long long)sum.failures[0].seed,
           sum.failures[0].why.c_str());
}

INSTANTIATE_TEST_SUITE_P(Fault, Sabotaged,
                         testing::Values("snapshot_skipped", "wait_dropped",
                                         "wait_means_later_record", "recorded_early",
                                         "done_too_soon", "legacy_order_lost", "memset_lost",
                                         "memset_twice", "stale_copy", "called_too_soon",
                                         "freed_too_soon", "value_twice"),
                         [](const auto &info) { return std::string(info.param); });
