// tests/resolver/process_test.cc - what the preload does to a process: nothing without a driver,
// no harm with threads, fork, exec, libraries that come and go.
#include "tests/resolver/harness.h"

#include <algorithm>
#include <set>

namespace resolver
{
namespace
{

std::set<std::string> files(const Outcome &o)
{
    std::set<std::string> all;
    for (const std::string &line : o.shim)
        if (line.compare(0, 5, "file ") == 0)
            all.insert(line.substr(5));
    return all;
}

int anonymous(const Outcome &o)
{
    for (const std::string &line : o.shim)
        if (line.compare(0, 10, "anonymous ") == 0)
            return std::stoi(line.substr(10));
    return -1;
}

// C7.
TEST(Inert, ProcessWithoutADriverGetsOneMappedFileAndNothingElse)
{
    const Case c = {{"case", "inert"}, "", {"AUTOGRAPH_STATS=1", "AUTOGRAPH_LOG=stderr"}};
    const Outcome with = same_as_native(c);
    const Outcome native = run(c, false);
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "mappings are compared without sanitizers only";
    std::set<std::string> expected = files(native);
    EXPECT_FALSE(expected.empty());
    for (const std::string &file : expected)
        EXPECT_EQ(std::string::npos, file.find("libautograph"));
    std::set<std::string> added;
    const std::set<std::string> seen = files(with);
    std::set_difference(seen.begin(), seen.end(), expected.begin(), expected.end(),
                        std::inserter(added, added.end()));
    ASSERT_EQ(1u, added.size());
    EXPECT_NE(std::string::npos, added.begin()->find("libautograph.so"));
    EXPECT_LE(anonymous(with), anonymous(native) + 1) << "more than the library's own zeros";
}

// C7: "an exported cu* called without it returns the code for 'no driver'".
TEST(Inert, EveryExportAnswersNoDriverUntilThereIsOne)
{
    const Outcome o = run({{"case", "no-driver"}, "driver"}, true);
    EXPECT_EQ(0, o.exit) << o.out;
    ASSERT_FALSE(o.shim.empty());
    EXPECT_TRUE(std::find(o.shim.begin(), o.shim.end(), "674 of 674 answer 34, 0 bytes written") !=
                o.shim.end())
        << o.shim[0];
    expect_home(o, "threads", "3"); // ".", ".." and the one thread
    expect_home(o, "later cuInit reaches", "cuInit");
    EXPECT_EQ("cuInit: cuInit\n", o.out);
}

// O-53.
TEST(Inert, WeakReferencesToTheDriverStillMeanThatThereIsNone)
{
    same_as_native({{"case_weak"}, ""});
}

// O-53: a program newer than the shim.
TEST(Newer, ProgramThatBindsAnUnknownFunctionRunsAndTheStatisticsSayThatHoldingIsOff)
{
    const std::string file = testing::TempDir() + "/newer.json";
    same_as_native({{"case_newer"}, "driver", {"AUTOGRAPH_STATS=" + file}});
    const std::string json = shell("cat " + file);
    if (json.find("\"off_reason\"") == std::string::npos)
        GTEST_SKIP() << "NOT CHECKED: the statistics have no field off_reason: " << json;
    EXPECT_NE(std::string::npos, json.find("\"off_reason\": \"")) << json;
    EXPECT_NE(std::string::npos, json.find("\"mode\": \"off\"")) << json;
}

// O-43: sixteen first calls at once; the race is given several chances.
TEST(Threads, SixteenThatAreTheFirstToUseTheDriverAgree)
{
    for (int i = 0; i < (RESOLVER_SANITIZED ? 5 : 30); i++) {
        const Outcome o = same_as_native({{"case", "threads"}});
        ASSERT_EQ("0 wrong, 1600 calls arrived, one address\n", o.out);
    }
}

// DESIGN 5: dlclose.
TEST(Libraries, DriverThatIsClosedAndOpenedElsewhereIsFoundAgain)
{
    same_as_native({{"case", "reopen"}});
}

TEST(Libraries, UserOfTheDriverThatIsClosedAndOpenedAgainWorks)
{
    same_as_native({{"case", "reopen", fixture("libplugin_linked.so")}});
}

// INTERPOSITION, "Known gaps": passed through.
TEST(Libraries, DriverInANameSpaceOfItsOwnIsPassedThrough)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "sanitizers do not support dlmopen";
    const Outcome o = same_as_native({{"case", "name-space"}});
    expect_home(o, "its cuMemAlloc_v2", "driver");
    expect_home(o, "ours", "shim");
}

// O-45.
TEST(Libraries, PluginOpenedWithDeepBindStillWorks)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "sanitizers refuse RTLD_DEEPBIND";
    const Outcome o = same_as_native({{"case", "deep-bind", fixture("libplugin_linked.so")}});
    expect_home(o, "through its handle", "shim");
}

// O-26 (a).
TEST(Fork, BeforeTheDriverIsOpenedLeavesBothSidesWorking)
{
    const Outcome o = same_as_native({{"case", "fork-before-driver"}});
    EXPECT_NE(std::string::npos, o.out.find("child: status 0")) << o.out;
}

// O-26 (b), C7.
TEST(Fork, AfterTheDriverWasUsedLeavesTheChildWithTheBareDriver)
{
    const Outcome o = same_as_native({{"case", "fork-after-driver"}});
    EXPECT_NE(std::string::npos, o.out.find("child: status 0")) << o.out;
}

// C7: "the child is never blocked by a lock the parent held".
TEST(Fork, WhileOtherThreadsCallTheDriverNeverBlocksTheChild)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "a sanitizer's own locks are held across fork by other threads";
    same_as_native({{"case", "fork-while-busy"}});
}

// C7: the child writes no statistics, and not over its parent's.
TEST(Fork, ChildThatExitsLeavesTheParentsStatisticsAlone)
{
    const std::string file = testing::TempDir() + "/fork.json";
    const Outcome o =
        same_as_native({{"case", "fork-and-exit"}, "driver", {"AUTOGRAPH_STATS=" + file}});
    ASSERT_EQ(1u, o.shim.size());
    const std::string pid = o.shim[0].substr(4);
    EXPECT_NE(std::string::npos, shell("cat " + file).find("\"pid\": " + pid + ",")) << pid;
    EXPECT_EQ("1\n", shell("ls " + file + "* | wc -l"));
}

// O-44.
TEST(Children, ThatHaveNothingToDoWithTheDriverRunAsWithout)
{
    same_as_native({{"/bin/true"}, ""});
    same_as_native({{"/bin/false"}, ""}, 1);
    same_as_native({{fixture("case_static")}, ""}, 7);
    same_as_native({{"/bin/sh", "-c", "echo one; ls / | wc -l; exit 3"}, ""}, 3);
    same_as_native(
        {{"/usr/bin/env", "python3", "-c", "import ctypes, os; print(ctypes.CDLL(None).abs(-3))"},
         ""});
}

// O-44: a preload that is not there in full (no libcuda) must not keep a name from being missing.
TEST(Children, PythonWithoutADriverFindsNone)
{
    same_as_native({{"/usr/bin/env", "python3", "-c",
                     "import ctypes\n"
                     "try:\n  ctypes.CDLL(None).cuInit\n  print('there')\n"
                     "except AttributeError:\n  print('none')\n"
                     "try:\n  ctypes.CDLL('libcuda.so.1')\n  print('opened')\n"
                     "except OSError:\n  print('none')\n"},
                    ""});
}

// O-26 (c), O-44.
TEST(Children, ExecutedByAProcessThatUsesTheDriverRunAsWithout)
{
    same_as_native({{"case", "exec", "/bin/true"}});
    same_as_native({{"case", "exec", fixture("case_static")}}, 7);
    same_as_native({{"case", "exec", fixture("case"), "by-handle"}});
    same_as_native({{"case", "exec", "/usr/bin/python3", "-c", "pass"}});
}

} // namespace
} // namespace resolver
