// tests/resolver/lookup_test.cc - cuGetProcAddress in both versions: the driver decides whether
// there is an answer and which variant it is, the shim only hands out the hook of exactly that one.
#include "tests/resolver/harness.h"

#include <algorithm>

namespace resolver
{
namespace
{

// O-46: 22 versions x 4 flag values x every name; each pointer is called, the fake driver says
// which row it came to.
TEST(Lookup, AnswersEveryNameVersionAndFlagAsTheDriverDoes)
{
    const Outcome o = same_as_native({{"case", "every-lookup"}});
    expect_home(o, "", "shim");
    EXPECT_GT(o.shim.size(), 20000u);
}

TEST(Lookup, AnswersOfAnOldDriverStayTheOldDrivers)
{
    same_as_native({{"case", "every-lookup"}, "driver_old"});
}

TEST(Lookup, OfTheFourArgumentVersionAnswersAsTheDriverDoes)
{
    const Outcome o = same_as_native({{"case", "every-old-lookup"}});
    expect_home(o, "", "shim");
    same_as_native({{"case", "every-old-lookup"}, "driver_first"});
}

// INTERPOSITION: "Self-look-ups must return our four- or five-argument hook."
TEST(Lookup, OfItselfGivesAHookWithTheRightNumberOfArguments)
{
    const Outcome o = same_as_native({{"case", "self"}});
    expect_home(o, "", "shim");
}

// C2; INTERPOSITION: "Output parameters may be NULL and are undefined when the call failed."
TEST(Lookup, ThatTheDriverRefusesIsRefusedAndItsOutParametersAreTheDrivers)
{
    same_as_native({{"case", "refused"}});
    same_as_native({{"case", "refused"}, "driver", {"FAKE_TOUCHES=0"}});
    same_as_native({{"case", "refused"}, "driver", {"FAKE_MISSING_IS_SUCCESS=1"}});
    same_as_native({{"case", "refused"}, "driver_old"});
}

// C3, O-46: names that nobody knows get a thunk that forwards everything, stack arguments included.
TEST(Lookup, OfAnUnknownNameGivesOneThunkThatForwardsAllElevenArguments)
{
    const Outcome o = same_as_native({{"case", "unknown-names"}});
    expect_home(o, "", "shim");
    EXPECT_NE(std::string::npos, o.out.find("the address is one")) << o.out;
}

// C6: 300 unknown names, 256 thunks.
TEST(Lookup, StillReachesEveryUnknownFunctionWhenTheThunksRunOut)
{
    const Outcome o = same_as_native({{"case", "pool-runs-out"}});
    const auto thunks = std::count(o.shim.begin(), o.shim.end(), "pool shim");
    const auto bare = std::count(o.shim.begin(), o.shim.end(), "pool driver");
    EXPECT_EQ(256, thunks);
    EXPECT_EQ(44, bare);
}

// DESIGN 2, route 5: that functions were handed out bare is said in the statistics.
TEST(Lookup, NotesInTheStatisticsThatHoldingIsOffWhenTheThunksRanOut)
{
    const std::string file = testing::TempDir() + "/pool-stats.json";
    const Outcome o = run({{"case", "pool-runs-out"}, "driver", {"AUTOGRAPH_STATS=" + file}}, true);
    EXPECT_EQ(0, o.exit);
    const std::string json = shell("cat " + file);
    if (json.find("\"off_reason\"") == std::string::npos)
        GTEST_SKIP() << "NOT CHECKED: the statistics have no field off_reason: " << json;
    EXPECT_NE(std::string::npos, json.find("\"off_reason\": \"")) << json;
    EXPECT_NE(std::string::npos, json.find("\"mode\": \"off\"")) << json;
}

// INTERPOSITION: the 440 questions of a real runtime, recorded.
TEST(Runtime, GetsAHookForEachOfIts440Questions)
{
    const Outcome o = same_as_native({{"case", "runtime", fixture("libfakecudart.so")}});
    EXPECT_NE(std::string::npos, o.out.find("by name: 0"));
    expect_home(o, "", "shim");
    EXPECT_GT(o.shim.size(), 430u);
}

// The record is what NVIDIA's runtime really asks, with and without the shim.
TEST(Runtime, OfTheToolkitAsksTheSameQuestionsUnderTheShim)
{
    const Outcome o = same_as_native({{"case_cudart"}});
    const std::vector<std::string> asked = lines(o.out);
    std::vector<std::string> recorded;
    for (const std::string &line : lines(shell("grep ^FAKE_ASK tests/resolver/fake_cudart.def")))
        recorded.push_back(line);
    EXPECT_EQ(440u, recorded.size());
    EXPECT_EQ(recorded, asked) << "another version of the runtime: record it again";
}

TEST(Runtime, FallsBackToDlsymOnADriverWithoutTheSecondLookup)
{
    const Outcome o =
        same_as_native({{"case", "runtime", fixture("libfakecudart.so")}, "driver_first"});
    EXPECT_NE(std::string::npos, o.out.find("by name: 1"));
    expect_home(o, "", "shim");
}

TEST(Runtime, GetsTheDriversOwnExportTable)
{
    same_as_native({{"case", "export-table"}});
}

} // namespace
} // namespace resolver
