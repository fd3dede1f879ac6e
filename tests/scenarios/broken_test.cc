/* tests/scenarios/broken_test.cc - AUTOGRAPH_VERIFY with whole programs: a library with a planted fault runs them
 * wrongly, and rightly when it verifies what it is about to launch.
 * Called by  bazel                       Calls  play.h, the scene programs, the mutants of tests/differential
 * Threads    none
 * Promise    that the fault does harm without the option is part of each test
 * Start at   expect_caught() */
#include "tests/scenarios/play.h"

#include <gtest/gtest.h>

using namespace ag_scene;

namespace
{

Played play_with(const std::string &mutant, const std::string &scene, const std::string &verify)
{
    const std::string library = "tests/differential/mutant_" + mutant + ".so";
    return play(scene, true,
                {{"LD_PRELOAD", ag_test::preload(ag_test::runfile(library))},
                 {"AUTOGRAPH_VERIFY", verify}});
}

long counted(const Played &p, const std::string &name)
{
    return number_after(p.stats, "\"" + name + "\": ");
}

// The program is right although the library is not, and says what it found.
void expect_caught(const std::string &mutant, const std::string &scene, const std::string &what)
{
    const Played native = play(scene, false);
    ASSERT_EQ(0, native.run.status);
    const Played off = play_with(mutant, scene, "0");
    EXPECT_TRUE(off.run.out != native.run.out || off.run.status != 0) << "the fault does no harm";
    EXPECT_EQ(0, counted(off, "graphs_verified"));
    EXPECT_EQ(0, counted(off, "graphs_read_back"));

    const Played on = play_with(mutant, scene, "1");
    EXPECT_EQ(0, on.run.status) << on.run.err;
    EXPECT_EQ(native.run.out, on.run.out);
    EXPECT_EQ(native.run.err, on.run.err);
    EXPECT_TRUE(shapes(native.log) == shapes(on.log)) << "other operations ran";
    EXPECT_GT(counted(on, "graphs_mismatched"), 0) << on.stats;
    EXPECT_GT(counted(on, "graphs_verified"), 0);
    EXPECT_NE(std::string::npos, on.stats.find("\"reason\": \"MISMATCH\"")) << on.stats;
    EXPECT_NE(std::string::npos, on.messages.find("a graph is not used")) << on.messages;
    EXPECT_NE(std::string::npos, on.messages.find(what)) << on.messages;
}

} // namespace

TEST(Verify, C1FindsAnArgumentThatWasNotPatchedBeforeTheLaunch)
{
    expect_caught("STALE_ARGUMENT", "O-02-every-field", "argument bytes");
}

TEST(Verify, C1FindsARecordOfAnEventThatIsGone)
{
    expect_caught("RECORD_STALE", "records-come-back", "another one of that address");
}

TEST(Verify, C1FindsARecordOfAnEventWhoseHandleCameBack)
{
    expect_caught("RECORD_GENERATION", "records-come-back", "another one of that address");
}

TEST(Verify, C1FindsARecordThatNoLaterOneStandsFor)
{
    expect_caught("RECORD_ELIDED", "records-waited-for", "no node has it");
}

TEST(Verify, C1FindsNothingInASoundLibrary)
{
    for (const char *scene : {"O-01-arguments-die", "O-02-every-field", "records-come-back"}) {
        const Pair p = same_as_native(scene, {{"AUTOGRAPH_VERIFY", "1"}});
        EXPECT_GT(counted(p.shim, "graphs_verified"), 0) << scene;
        EXPECT_EQ(counted(p.shim, "graph_launches"), counted(p.shim, "graphs_verified")) << scene;
        EXPECT_EQ(counted(p.shim, "graphs_built"), counted(p.shim, "graphs_read_back")) << scene;
        EXPECT_EQ(0, counted(p.shim, "graphs_mismatched")) << scene << "\n" << p.shim.messages;
    }
}

// Calls that only the verification makes: whatever becomes of them, the program must not notice.
struct Getters : testing::TestWithParam<const char *> {
};

TEST_P(Getters, C6ThatFailLeaveNoTraceInTheProgram)
{
    const std::string symbol = GetParam();
    const Env count = {{"SIMCUDA_LOG_CALLS", "1"}, {"AUTOGRAPH_VERIFY", "1"}};
    const size_t calls = play("O-02-every-field", true, count).log.calls(symbol);
    ASSERT_GT(calls, 0u) << "the verification does not call " << symbol;
    for (size_t n : {size_t{1}, calls / 2, calls}) {
        const std::string fault = symbol + ":" + std::to_string(n) + ":999";
        SCOPED_TRACE(fault);
        const Pair p = same_as_native(
            "O-02-every-field", {{"SIMCUDA_FAULT", fault}, {"AUTOGRAPH_VERIFY", "1"}}, ANYHOW);
        EXPECT_EQ(1, counted(p.shim, "graphs_mismatched"));
    }
}

const char *const getters[] = {"cuGraphGetNodes", "cuGraphGetEdges_v2",
                               "cuGraphKernelNodeGetParams_v2", "cuGraphNodeGetEnabled"};

INSTANTIATE_TEST_SUITE_P(O34, Getters, testing::ValuesIn(getters));
