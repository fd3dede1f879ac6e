/* tests/differential/differential_test.cc - a few hundred random programs, as part of the suite.
 * Called by  bazel                       Calls  batch.h
 * Threads    those of run_seeds()
 * Promise    fixed seeds first, then fresh ones whose number is printed; a failure prints what to run again
 * Start at   TEST(Differential, ...); ten thousand are run with //tests/differential:runner */
#include "tests/differential/batch.h"
#include "tests/support/process.h"

#include <cstdio>
#include <ctime>
#include <gtest/gtest.h>

using namespace ag_diff;

namespace
{

Setup setup()
{
    Setup s;
    s.program = ag_test::runfile("tests/differential/program");
    s.driver = ag_test::runfile("tools/simcuda");
    s.shim = ag_test::runfile("libautograph.so");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    s.limit = 120;
#endif
    return s;
}

// Sanitizers slow programs down; the same promise is then shown on fewer of them.
uint64_t some(uint64_t n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return n / 8;
#else
    return n;
#endif
}

void expect_all_equal(uint64_t first, uint64_t seeds, Summary *out, const Setup &s = setup())
{
    *out = run_seeds(s, first, first + seeds - 1);
    fputs(out->text().c_str(), stdout);
    for (const std::string &b : out->broken)
        ADD_FAILURE() << "reference: " << b;
    for (const Failure &f : out->failures)
        ADD_FAILURE() << "seed " << f.seed << ": " << f.why << "\n  "
                      << command(setup(), f.seed, {});
}

} // namespace

TEST(Differential, C1ToC4RandomProgramsBehaveTheSameWithTheShim)
{
    Summary sum;
    expect_all_equal(1, some(160), &sum);
    EXPECT_GE(sum.percentile(50), 200u) << "the programs have become too small to prove much";
    EXPECT_GE(sum.diverged * 2, sum.seeds) << "too few programs reach a replay and then diverge";
}

TEST(Differential, C1ToC4FreshRandomProgramsBehaveTheSameWithTheShim)
{
    uint64_t first = static_cast<uint64_t>(time(nullptr)) * 1000u;
    printf("seeds from %llu\n", static_cast<unsigned long long>(first));
    Summary sum;
    expect_all_equal(first, some(160), &sum);
}

// Whatever such a program does, every graph is as it should be, and is found to be.
TEST(Differential, C1VerifiedRandomProgramsBehaveTheSameAndNoGraphIsFoundWrong)
{
    Summary sum;
    ag_diff::Setup s = setup();
    const std::string stats = ag_test::make_dir("ag-verified");
    verify_in(&s, "1", stats);
    expect_all_equal(1001, some(300), &sum, s);
    const Verified v = read_verified(stats);
    ag_test::remove_dir(stats);
    fputs(v.text().c_str(), stdout);
    EXPECT_EQ(0u, v.mismatched);
    EXPECT_GE(v.verified, v.launched) << "some launches are refused by a fault";
    EXPECT_GT(v.verified, some(2000));
    EXPECT_GT(v.read_back, some(300));
}
