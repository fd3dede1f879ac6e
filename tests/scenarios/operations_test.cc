// Whoever runs many programs under the shim can take it out of one that runs, of some programs, of some kernels.
// Judged by what the driver saw.
#include "tests/scenarios/play.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <vector>

namespace
{

using namespace ag_scene;

class StopFile : public ::testing::Test
{
  protected:
    StopFile() : dir(ag_test::make_dir("ag-stop")), file(dir + "/stop")
    {
    }
    ~StopFile() override
    {
        ag_test::remove_dir(dir);
    }
    static size_t in_graphs_after_the_flag(const SimLog &log)
    {
        size_t n = 0;
        bool after = false;
        for (const ag_test::Executed &e : log.executed) {
            after |= e.name == "set_flag";
            n += after && e.in_graph;
        }
        return n;
    }
    std::string dir, file;
};

TEST_F(StopFile, C7EndsHoldingInAProcessThatRuns)
{
    Pair p = same_as_native("operations-stopped-meanwhile",
                            {{"AUTOGRAPH_STOP_FILE", file}, {"SCENE_STOP_FILE", file}}, REPLAYED);
    EXPECT_EQ(0u, in_graphs_after_the_flag(p.shim.log));
    EXPECT_NE(std::string::npos, p.shim.stats.find("\"mode\": \"off\"")) << p.shim.stats;
    EXPECT_NE(std::string::npos, p.shim.messages.find("AUTOGRAPH_STOP_FILE")) << p.shim.messages;
}

TEST_F(StopFile, C5ThatDoesNotComeChangesNothing)
{
    Pair p =
        same_as_native("operations-stopped-meanwhile", {{"AUTOGRAPH_STOP_FILE", file}}, REPLAYED);
    EXPECT_GT(in_graphs_after_the_flag(p.shim.log), 0u);
}

TEST_F(StopFile, C7OfAnotherProcessIsNotMeant)
{
    Pair p = same_as_native(
        "operations-stopped-meanwhile",
        {{"AUTOGRAPH_STOP_FILE", file + ".%p"}, {"SCENE_STOP_FILE", file + ".1"}}, REPLAYED);
    EXPECT_GT(in_graphs_after_the_flag(p.shim.log), 0u);
}

TEST_F(StopFile, C7ThatIsThereAtTheStartLeavesTheProgramAlone)
{
    std::ofstream(file) << "";
    Pair p = same_as_native("operations-two-kernels", {{"AUTOGRAPH_STOP_FILE", file}}, ANYHOW);
    EXPECT_EQ(0u, p.shim.log.in_graphs());
    EXPECT_NE(std::string::npos, p.shim.stats.find("AUTOGRAPH_STOP_FILE")) << p.shim.stats;
}

struct List {
    const char *name, *value;
    bool holds;
};

class Programs : public ::testing::TestWithParam<List>
{
};

TEST_P(Programs, C7AreHeldAsTheListSays)
{
    Pair p = same_as_native("operations-two-kernels", {{"AUTOGRAPH_PROGRAMS", GetParam().value}},
                            ANYHOW);
    EXPECT_EQ(GetParam().holds, p.shim.log.in_graphs() > 0) << p.shim.stats;
    EXPECT_EQ(!GetParam().holds,
              p.shim.stats.find("AUTOGRAPH_PROGRAMS says no") != std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    List, Programs,
    ::testing::Values(List{"Named", "train,scene", true}, List{"AsAPattern", "sc?n*", true},
                      List{"NotNamed", "train,scenery", false}, List{"Excluded", "!scene", false},
                      List{"NotExcluded", "!train,!scenery", true},
                      List{"TheFirstThatFitsCounts", "!sc*,scene", false},
                      List{"WithASpaceBehindTheComma", "train, scene", true}),
    [](const ::testing::TestParamInfo<List> &info) { return info.param.name; });

class Kernels : public ::testing::TestWithParam<List>
{
};

// `holds`: vary_mix. The other kernel of the scene is always held.
TEST_P(Kernels, C7AreHeldAsTheListSays)
{
    Pair p = same_as_native("operations-two-kernels", {{"AUTOGRAPH_KERNELS", GetParam().value}},
                            REPLAYED);
    EXPECT_EQ(GetParam().holds, in_graphs(p.shim.log, "vary_mix") > 0);
    EXPECT_GT(in_graphs(p.shim.log, "vary_rot"), 0u);
    EXPECT_EQ(!GetParam().holds, p.shim.stats.find("\"EXCLUDED\"") != std::string::npos)
        << p.shim.stats;
}

INSTANTIATE_TEST_SUITE_P(
    List, Kernels,
    ::testing::Values(List{"Named", "vary_mix,vary_rot", true}, List{"NotNamed", "*rot", false},
                      List{"Excluded", "!*mix", false}, List{"NotExcluded", "!nothing", true}),
    [](const ::testing::TestParamInfo<List> &info) { return info.param.name; });

// What a driver of that version sees where the user has asked for nothing, or for `mode`.
Played with_driver(const std::string &version, const std::string &mode)
{
    const Env env = {{"SIMCUDA_DRIVER", version}, {"AUTOGRAPH", mode}};
    return same_as_native("operations-two-kernels", env, ANYHOW).shim;
}

TEST(Drivers, C7ThatAreTooOldAreLeftAlone)
{
    for (const char *mode : {"", "on", "observe"}) {
        const Played p = with_driver("12030", mode);
        EXPECT_EQ(0u, p.log.in_graphs());
        EXPECT_NE(std::string::npos, p.stats.find("older than 12.4")) << p.stats;
    }
}

TEST(Drivers, C7ThatNobodyHasCheckedAreWatchedOnly)
{
    const Played p = with_driver("14000", "");
    EXPECT_EQ(0u, p.log.in_graphs());
    EXPECT_NE(std::string::npos, p.stats.find("\"mode\": \"observe\"")) << p.stats;
    EXPECT_GT(number_after(p.stats, "\"launches_seen\":"), 0);
    EXPECT_NE(std::string::npos, p.messages.find("newer than")) << p.messages;
}

TEST(Drivers, C7ThatTheUserHasCheckedAreUsed)
{
    EXPECT_GT(with_driver("14000", "on").log.in_graphs(), 0u);
    EXPECT_GT(with_driver("12040", "").log.in_graphs(), 0u);
}

// Ten thousand sequences, some often: what is kept of them is bounded. The whole run, of 10,000,000 launches, is a
// person's: SCENE_TIMES=100, see docs/BENCHMARKS.md.
TEST(Soak, C6TheMemoryStaysWhatItWasAfterTheFirstSequences)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const char *times = "2"; // they keep freed memory: only the result counts
#else
    const char *times = "12";
#endif
    const Env soak = {{"SCENE_TIMES", times}, {"SIMCUDA_LOG", ""}};
    const Played native = play("C6-soak", false, soak), shim = play("C6-soak", true, soak);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
    EXPECT_GT(number_after(shim.totals, "\"kernels_in_graphs\":"),
              number_after(shim.totals, "\"kernels_eager\":"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    std::vector<long> resident;
    std::istringstream lines(shim.measured);
    for (std::string line; std::getline(lines, line);)
        resident.push_back(number_after(line, "resident "));
    ASSERT_EQ(12u, resident.size()) << shim.measured;
    EXPECT_LT(resident.back(), resident[3] + 8 * 1024) << "KB\n" << shim.measured;
#endif
}

} // namespace
