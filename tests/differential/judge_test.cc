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

namespace
{

ag_test::Executed moved(uint64_t seq, const std::string &stream, const std::string &name,
                        const std::string &args, bool graph = false)
{
    ag_test::Executed e = executed(seq, stream, name, args, graph);
    e.grid = e.block = e.shared = "-";
    return e;
}

// A copy and a memset on stream 7, a launch on stream 8 that an event orders behind the copy alone.
struct JudgeOps : Judge {
    void SetUp() override
    {
        Judge::SetUp();
        native.expected = "track 0\nS 7 free 0\nS 8 free 0\n"
                          "X 0 1 1.0 7 memcpy - - - dst=0x10,src=*,n=4x1x1,h=00aa\n"
                          "R 2 3 2.0 7 e1\n"
                          "X 4 5 3.0 7 memset - - - dst=0x20,n=8x1,pitch=0,h=00bb\n"
                          "W 6 7 4.0 8 e1\n"
                          "X 8 9 5.0 8 step 1,1,1 1,1,1 0 cc\nops 5\n";
        native.log.executed = {
            moved(1, "7", "memcpyHtoD", "dst=0x10,src=pageable,n=4x1x1,h=00aa"),
            moved(3, "7", "memsetD32", "dst=0x20,value=0x1,n=2x1,pitch=0,h=00bb"),
            executed(4, "8", "step", "cc")};
        native.ends = {{1, 1}, {3, 3}, {4, 4}};
        shim = native;
    }
};

} // namespace

TEST_F(JudgeOps, FindsNothingWrongWithEqualTraces)
{
    EXPECT_EQ("", why());
    EXPECT_EQ("", judge_reference(native, Rule::strict));
}

TEST_F(JudgeOps, SeesAStaleSourceByTheBytesThatMoved)
{
    shim.log.executed[0].args = "dst=0x10,src=pageable,n=4x1x1,h=00ab";
    EXPECT_NE("", why());
}

TEST_F(JudgeOps, AllowsASnapshotOfAPageableSource)
{
    shim.log.executed[0].args = "dst=0x10,src=0x7ed000000000,n=4x1x1,h=00aa";
    EXPECT_EQ("", why());
    shim.log.executed[0].args = "dst=0x18,src=0x7ed000000000,n=4x1x1,h=00aa";
    EXPECT_NE("", why()) << "to another place";
}

TEST_F(JudgeOps, SeesCopiesFromTheDeviceThatMovedOtherBytesThanNatively)
{
    for (Trace *t : {&native, &shim})
        t->expected.replace(t->expected.find("h=00aa"), 6, "h=*");
    EXPECT_EQ("", why());
    shim.log.executed[0].args = "dst=0x10,src=pageable,n=4x1x1,h=00ab";
    EXPECT_NE("", why());
}

TEST_F(JudgeOps, AllowsAMemsetWithOtherElementsThatWritesTheSameBytes)
{
    shim.log.executed[1] = moved(3, "7", "memsetD8", "dst=0x20,value=0x1,n=8x1,pitch=0,h=00bb");
    EXPECT_EQ("", why());
    shim.log.executed[1] = moved(3, "7", "memsetD8", "dst=0x20,value=0x1,n=2x1,pitch=0,h=00bb");
    EXPECT_NE("", why()) << "fewer bytes";
}

TEST_F(JudgeOps, AllowsAKernelOfTheShimsOwnInThePlaceOfAMemset)
{
    // Two words of 01 02 03 04, whose hash is that of the eight bytes.
    const std::string args = "20000000000000000000000000000000"
                             "02000000000000000100000000000000"
                             "0102030404000000";
    const std::string before = "h=00bb", after = "h=dbec38ac7bb5dd15";
    for (Trace *t : {&native, &shim})
        t->expected.replace(t->expected.find(before), before.size(), after);
    native.log.executed[1].args.replace(native.log.executed[1].args.find(before), before.size(),
                                        after);
    shim.log.executed[1] = executed(3, "7", "ag_fill", args, true);
    EXPECT_EQ("", why());
    shim.log.executed[1] = executed(3, "7", "fill", args, true);
    EXPECT_NE("", why()) << "a kernel of the program's";
    for (size_t at : {0, 32, 48, 64, 72}) {
        std::string other = args;
        other[at + 1] ^= 4; // a digit, before and after
        shim.log.executed[1] = executed(3, "7", "ag_fill", other, true);
        EXPECT_NE("", why()) << "another argument at byte " << at / 2;
    }
}

TEST_F(JudgeOps, AllowsABranchToRunUnderTheStreamThatItsGraphWasLaunchedIn)
{
    shim.log.executed[2].stream = "7";
    EXPECT_NE("", why()) << "eagerly";
    shim.log.executed[2].in_graph = true;
    EXPECT_EQ("", why());
    shim.log.executed[2].ctx = "2";
    shim.log.executed[0].in_graph = false; // stream 8's context is known from elsewhere
    shim.log.executed.insert(shim.log.executed.begin(), moved(0, "8", "empty", "-"));
    EXPECT_NE("", why()) << "in another context";
}

TEST_F(JudgeOps, SeesALostWait)
{
    shim.ends[1] = 4; // the copy ended after the launch had begun
    EXPECT_NE("", why());
    shim.ends = native.ends;
    shim.ends[3] = 4; // the memset may: the record stands before it
    EXPECT_EQ("", why());
}

TEST_F(JudgeOps, SeesLostOrderOfTheLegacyStream)
{
    for (Trace *t : {&native, &shim}) {
        t->expected.replace(t->expected.find("S 7 free"), 8, "S 7 legacy");
        t->ends[3] = 4;
    }
    EXPECT_EQ("", why()) << "stream 8 is non-blocking";
    for (Trace *t : {&native, &shim})
        t->expected.replace(t->expected.find("S 8 free"), 8, "S 8 blocking");
    EXPECT_NE("", why());
}

// A legacy stream waits for a value; before that is written down another thread's free is called, on a blocking
// stream. The launch that the wait holds up need not follow the free.
TEST_F(Judge, TakesAWaitForAValueToStandWhereItsOperationStands)
{
    native.expected = "track 0\nS 1 legacy 0\nS 7 blocking 0\nS 8 blocking 0\n"
                      "X 0 1 1.0 1 waitValue32 - - - at=0x10,value=0x1,flags=0\n"
                      "W 4 5 1.0 1 v1\nops 1\n"
                      "track 1\nX 2 3 2.0 7 memFree - - - at=0x20,n=4\n"
                      "X 6 7 3.0 8 step 1,1,1 1,1,1 0 cc\nops 2\n";
    native.log.executed = {moved(1, "1", "waitValue32", "at=0x10,value=0x1,flags=0"),
                           executed(2, "8", "step", "cc"), moved(3, "7", "memFree", "at=0x20,n=4")};
    native.log.executed[1].sub = 3; // the launch came last, and ran while the free still waited
    native.log.executed[2].sub = 2;
    native.ends = {{1, 1}, {2, 2}, {3, 3}};
    shim = native;
    EXPECT_EQ("", why());
    shim.ends[1] = 2; // the wait itself has to be over
    EXPECT_NE("", why());
}

TEST_F(JudgeOps, LetsGraphsRegroupStreamsButNotAcrossACallThatDrains)
{
    shim.log.executed[1].sub =
        6; // the memset comes to the driver after the launch, which was called later
    EXPECT_NE("", why()) << "eagerly";
    shim.log.executed[1].in_graph = true;
    EXPECT_EQ("", why());
    native.expected.insert(native.expected.find("X 8 9"), "B 8 8 9.0\n");
    native.expected.replace(native.expected.find("X 8 9"), 5, "X 9 10");
    shim.expected = native.expected;
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

TEST_F(Judge, DoesNotGuessWhichOfTwoLaunchesThatLookTheSameWasLost)
{
    shim.expected = "track 0\nloop 0\nX 0 1 1.0 7 step 1,1,1 1,1,1 0 aa\n"
                    "X 2 3 3.0 8 step 1,1,1 1,1,1 0 cc\nchange 4\n"
                    "X 4 5 2.0 7 step 1,1,1 1,1,1 0 aa\nend 6\nops 3\n";
    shim.log.executed = {executed(1, "8", "step", "cc"), executed(2, "7", "step", "aa")};
    ag_test::Called refused;
    refused.symbol = "cuLaunchKernel";
    refused.status = 46;
    shim.log.called.push_back(refused);
    shim.said = "1.0 step=0\n3.0 step=0\n2.0 step=0\n4.0 context=46\n";
    EXPECT_EQ("", why(Rule::lossy)) << "1.0";
    shim.log.executed[1].args = "bb";
    EXPECT_NE("", why(Rule::lossy)) << "neither";
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

namespace
{

// Launches on stream 7 with records of two events between them; event e1 is waited for at the end.
struct JudgeRecords : Judge {
    void SetUp() override
    {
        Judge::SetUp();
        native.expected = "track 0\nS 7 free 0\nS 8 free 0\n"
                          "X 0 1 1.0 7 step 1,1,1 1,1,1 0 aa\n"
                          "R 2 3 2.0 7 e1 0x10.1\n"
                          "X 4 5 3.0 7 step 1,1,1 1,1,1 0 bb\n"
                          "R 6 7 4.0 7 e1 0x10.1\n"
                          "R 8 9 5.0 7 e2 0x20.1\n"
                          "X 10 11 6.0 7 step 1,1,1 1,1,1 0 cc\n"
                          "W 12 13 7.0 8 e1 0x10.1\nops 7\n";
        native.log.executed = {executed(1, "7", "step", "aa"),
                               record(2, "0x10.1"),
                               executed(3, "7", "step", "bb"),
                               record(4, "0x10.1"),
                               record(5, "0x20.1"),
                               executed(6, "7", "step", "cc")};
        native.ends = {{1, 1}, {3, 3}, {6, 6}};
        shim = native;
    }
    static ag_test::Executed record(uint64_t seq, const std::string &event)
    {
        return moved(seq, "7", "eventRecord", "event=" + event, true);
    }
    void Drop(size_t i)
    {
        shim.log.executed.erase(shim.log.executed.begin() + static_cast<long>(i));
    }
};

} // namespace

TEST_F(JudgeRecords, FindsNothingWrongWithEqualTraces)
{
    EXPECT_EQ("", why());
    EXPECT_EQ("", judge_reference(native, Rule::strict));
}

TEST_F(JudgeRecords, AllowsTheLossOfOneThatAnotherOvertook)
{
    Drop(1);
    EXPECT_EQ("", why());
}

TEST_F(JudgeRecords, SeesTheLossOfOneThatIsWaitedFor)
{
    Drop(3);
    EXPECT_NE("", why());
}

TEST_F(JudgeRecords, SeesTheLossOfOneThatIsTheLastOfItsEvent)
{
    Drop(4);
    EXPECT_NE("", why());
}

TEST_F(JudgeRecords, SeesTheLossOfOneThatCouldHaveBeenAskedFor)
{
    const size_t at = shim.expected.find("X 4 5");
    std::string asked = shim.expected;
    shim.expected = asked.substr(0, at) + "B 3 4 8.0\n" + asked.substr(at);
    EXPECT_EQ("", why());
    Drop(1);
    EXPECT_NE("", why());
}

TEST_F(JudgeRecords, SeesOneInAnotherPlace)
{
    std::swap(shim.log.executed[4].args, shim.log.executed[1].args);
    EXPECT_NE("", why());
}

TEST_F(JudgeRecords, SeesOneOfAnEventThatHadTheHandleBefore)
{
    shim.log.executed[4].args = "event=0x20.0";
    EXPECT_NE("", why());
}

TEST_F(JudgeRecords, SeesOneThatNobodyAskedFor)
{
    shim.log.executed.push_back(record(7, "0x20.1"));
    EXPECT_NE("", why());
}
