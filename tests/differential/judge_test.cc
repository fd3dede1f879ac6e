/* tests/differential/judge_test.cc - the judge must see what it is there to see.
 * Called by  bazel                       Calls  judge.h, plan.h
 * Threads    none
 * Promise    each kind of wrong execution, planted by hand in a trace, is found
 * Start at   struct Judge */
#include "tests/differential/judge.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

extern "C" {
#include "tests/differential/plan.h"
}

using namespace ag_diff;

namespace
{

ag_test::Executed executed(uint64_t seq, const std::string &stream, const std::string &name,
                           const std::string &args, bool graph = false)
{
    ag_test::Executed e;
    e.seq = e.sub = seq;
    e.ctx = "1";
    e.stream = stream;
    e.in_graph = graph;
    e.how = graph ? "graph:1:0" : "launch";
    e.name = name;
    e.grid = e.block = "1,1,1";
    e.shared = "0";
    e.args = args;
    return e;
}

// Two launches on stream 7, one on stream 8, in this order of calls.
struct Judge : testing::Test {
    Trace native, shim;

    void SetUp() override
    {
        native.status = 0;
        native.said = "1.0 step=0\n2.0 step=0\n3.0 step=0\n";
        native.expected = "track 0\nloop 0\nX 0 1 1.0 7 step 1,1,1 1,1,1 0 aa\n"
                          "X 2 3 2.0 7 step 1,1,1 1,1,1 0 bb\nchange 4\n"
                          "X 4 5 3.0 8 step 1,1,1 1,1,1 0 cc\nend 6\nops 3\n";
        native.log.executed = {executed(1, "7", "step", "aa"), executed(2, "7", "step", "bb"),
                               executed(3, "8", "step", "cc")};
        shim = native;
    }

    std::string why(Rule rule = Rule::strict)
    {
        return judge(native, shim, rule).why;
    }
};

} // namespace

TEST_F(Judge, FindsNothingWrongWithEqualTraces)
{
    EXPECT_EQ("", why());
    EXPECT_EQ("", judge_reference(native, Rule::strict));
}

TEST_F(Judge, SeesALostLaunch)
{
    shim.log.executed.erase(shim.log.executed.begin());
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesADoubledLaunch)
{
    shim.log.executed.push_back(executed(4, "8", "step", "cc"));
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesAStaleArgument)
{
    shim.log.executed[1].args = "aa";
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesTwoLaunchesOfAStreamSwapped)
{
    std::swap(shim.log.executed[0].args, shim.log.executed[1].args);
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesASubmissionThatOvertakesAnEarlierCallOnAnotherStream)
{
    shim.log.executed[2].sub = 0;
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesAnOperationOnAStreamThatNobodyUsed)
{
    shim.log.executed.push_back(executed(4, "9", "step", "cc"));
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesAnAttributeThatWasNotInForceAtTheCall)
{
    shim.log.executed[1].state = "fn=49152,-1,0 ";
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesACopyThatChangedItsPlace)
{
    ag_test::Executed copy = executed(9, "7", "memcpyDtoD", "dst=0x1,n=4");
    copy.grid = copy.block = copy.shared = "-";
    native.log.executed.insert(native.log.executed.begin() + 1, copy);
    shim.log.executed.push_back(copy);
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesAnObservableThatDiffers)
{
    shim.said = "1.0 step=0\n2.0 step=0\n3.0 step=1\n";
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesADeadOrHangingProgram)
{
    shim.status = 139;
    EXPECT_NE("", why());
    shim.status = 124;
    EXPECT_NE("", why());
}

TEST_F(Judge, SeesALaunchLostInSilenceWhereOneMayFail)
{
    ag_test::Called refused;
    refused.symbol = "cuLaunchKernel";
    refused.status = 46;
    shim.log.called.push_back(refused);
    shim.log.executed.erase(shim.log.executed.begin());
    EXPECT_NE("", why(Rule::lossy));
    shim.said = "1.0 step=0\n2.0 step=0\n3.0 context=46\n";
    EXPECT_EQ("", why(Rule::lossy));
    shim.said = "1.0 step=0\n2.0 step=46\n3.0 context=46\n";
    EXPECT_NE("", why(Rule::lossy)) << "told twice";
    shim.log.executed.erase(shim.log.executed.begin());
    EXPECT_NE("", why(Rule::lossy)) << "two lost, one refused";
}

TEST_F(Judge, SeesALaunchThatSucceedsAfterAStickyError)
{
    shim.said = "1.0@0 step=0\n2.0@0 step=700\n3.0@0 step=0\n";
    EXPECT_NE("", why(Rule::sticky));
    shim.said = "1.0@0 step=0\n2.0@0 step=700\n3.0@0 step=700\n4.0@1 step=0\n";
    EXPECT_EQ("", why(Rule::sticky)) << "lane 1 has a context of its own";
}

TEST_F(Judge, CountsADivergenceOnlyAfterAReplayInTheSameLoop)
{
    EXPECT_FALSE(judge(native, shim, Rule::strict).diverged);
    shim.log.executed[2] = executed(3, "8", "step", "cc", true);
    EXPECT_TRUE(judge(native, shim, Rule::strict).replayed);
    EXPECT_FALSE(judge(native, shim, Rule::strict).diverged);
    shim.log.executed[1] = executed(2, "7", "step", "bb", true);
    EXPECT_TRUE(judge(native, shim, Rule::strict).diverged);
}

TEST(Plan, IsTheSameForTheSameSeedAndAnotherForTheNext)
{
    auto a = std::make_unique<df_plan>(), b = std::make_unique<df_plan>();
    df_plan_make(42, a.get());
    df_plan_make(42, b.get());
    EXPECT_EQ(0, memcmp(a.get(), b.get(), sizeof *a));
    df_plan_make(43, b.get());
    EXPECT_NE(0, memcmp(a.get(), b.get(), sizeof *a));
}

TEST(Plan, StaysWithinItsTables)
{
    auto plan = std::make_unique<df_plan>();
    for (uint64_t seed = 0; seed < 20000; seed++) {
        df_plan_make(seed, plan.get());
        ASSERT_LE(plan->actions, static_cast<uint32_t>(DF_MAX_ACTIONS)) << seed;
        for (int t = 0; t < plan->tracks; t++)
            ASSERT_LE(plan->track[t].blocks, DF_MAX_BLOCKS) << seed;
    }
}
