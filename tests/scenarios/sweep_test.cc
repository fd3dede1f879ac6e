// Every driver call that only the shim makes fails once: the program notices nothing, no op is lost, none runs twice.
// AG_SWEEP=N in the environment: at one in N of its calls, 1: at each, instead of at some five.
#include "tests/scenarios/play.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

namespace
{

using namespace ag_scene;

const Env::value_type DEVICES = {"SIMCUDA_DEVICES", "2"}; // some scenes need them

std::map<std::string, size_t> calls_of(const SimLog &log)
{
    std::map<std::string, size_t> calls;
    for (const ag_test::Called &c : log.called)
        calls[c.symbol]++;
    return calls;
}

// By symbol: how often the shim called what the program never calls.
std::map<std::string, size_t> own_calls(const SimLog &native, const SimLog &shim)
{
    std::map<std::string, size_t> own = calls_of(shim);
    for (const auto &[symbol, n] : calls_of(native))
        own.erase(symbol);
    return own;
}

std::set<size_t> which(size_t calls)
{
    std::set<size_t> nth;
    const char *sweep = getenv("AG_SWEEP");
    if (const size_t step = sweep ? strtoul(sweep, nullptr, 10) : 0)
        for (size_t n = 1; n <= calls; n += step)
            nth.insert(n);
    else
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        nth = {1, calls / 2 + 1};
#else
        nth = {1, 2, calls / 3 + 1, calls / 2 + 1, calls};
#endif
    while (!nth.empty() && *nth.rbegin() > calls)
        nth.erase(*nth.rbegin());
    return nth;
}

class Sweep : public ::testing::TestWithParam<const char *>
{
  protected:
    void fail(const std::string &symbol, size_t n)
    {
        // Out of memory, or something that no call answers.
        const std::string fault = symbol + ":" + std::to_string(n) + (n % 2 ? ":999" : ":2");
        SCOPED_TRACE(fault);
        const Played shim = play(GetParam(), true, {{"SIMCUDA_FAULT", fault}, DEVICES});
        expect_played(shim, "with the shim");
        EXPECT_EQ(native.run.out, shim.run.out);
        EXPECT_EQ(native.run.err, shim.run.err);
        EXPECT_TRUE(shapes(native.log) == shapes(shim.log)) << "other operations ran";
        faults++;
    }
    Played native;
    size_t faults = 0;
};

TEST_P(Sweep, C6AFailureOfAnyCallOfTheShimsOwnLeavesNoTraceInTheProgram)
{
    const Env calls = {{"SIMCUDA_LOG_CALLS", "1"}, DEVICES};
    native = play(GetParam(), false, calls);
    const Played sound = play(GetParam(), true, calls);
    expect_played(native, "without the shim");
    const std::map<std::string, size_t> own = own_calls(native.log, sound.log);
    EXPECT_GT(own.count("cuGraphLaunch"), 0u) << "nothing was replayed: this proves little";
    for (const auto &[symbol, n] : own)
        for (size_t nth : which(n))
            fail(symbol, nth);
    printf("%zu failures of %zu entry points\n", faults, own.size());
}

std::string name_of(const ::testing::TestParamInfo<const char *> &info)
{
    std::string name;
    for (const char *c = info.param; *c; c++)
        if (*c != '-')
            name += *c;
    return name;
}

INSTANTIATE_TEST_SUITE_P(Scenes, Sweep,
                         ::testing::Values("O-02-every-field", "O-30-copy-behind-events",
                                           "O-38-reset", "O-48-layout-changes", "memset-loop",
                                           "memset-contexts", "records-waited-for",
                                           "records-come-back", "turns-round-robin", "turns-fork",
                                           "turns-recorded-again"),
                         name_of);

} // namespace
