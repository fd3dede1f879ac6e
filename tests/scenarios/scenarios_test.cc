/* tests/scenarios/scenarios_test.cc - patterns from public bug reports, run without and with the shim.
 * Called by  bazel                       Calls  play.h, the scene programs
 * Threads    none
 * Promise    the run without the shim is the golden record; a pass that never replayed is not a pass. Numbers O-..
 *            name the scenario, C1 to C7 the promise of docs/ARCHITECTURE.md
 * Start at   play.h, same_as_native() */
#include "tests/scenarios/play.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace ag_scene;

namespace
{

// Time of the program's calls by the driver's clock, which runs by the cost of each call it received.
double host_us(const Played &p)
{
    const std::string key = "\"host_us\": ";
    size_t at = p.totals.find(key);
    return at == std::string::npos ? -1 : strtod(p.totals.c_str() + at + key.size(), nullptr);
}

const Env LENIENT = {{"SIMCUDA_STRICT", "off"}}; // a mistake of the program is a code, no abort

} // namespace

TEST(O01, C1ArgumentMemoryIsReadDuringTheCallOnly)
{
    same_as_native("O-01-arguments-die");
}

TEST(O02, C1EveryFieldOfEveryNodeFollowsTheCall)
{
    same_as_native("O-02-every-field");
}

TEST(O07, C3ACaptureOfABusyStreamHoldsWhatTheProgramCapturedAndNothingElse)
{
    same_as_native("O-07-busy-stream", {}, OWN_GRAPHS_TOO);
}

TEST(O07, C1ACaptureAndLaunchesOfAnotherThreadDoNotDisturbEachOther)
{
    same_as_native("O-07-beside", {}, OWN_GRAPHS_TOO);
}

// Whoever submits holds the log's lock, and a submission may block for as long as the device takes.
TEST(Promise, C3ACallThatAsksIsNotBlockedByALaunchThatHasNoRoom)
{
    Played native = play("C3-ask-beside-launch", false), shim = play("C3-ask-beside-launch", true);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
}

TEST(Promise, C3TheHostFindsItsWorkDoneAfterEveryCallThatWaits)
{
    same_as_native("C3-waiting");
}

TEST(O11, C1ThreadsOrderedByTheHostAloneKeepTheirOrderOnOneStream)
{
    Pair p{play("O-11-host-order", false), play("O-11-host-order", true)};
    expect_played(p.native, "without the shim");
    expect_played(p.shim, "with the shim");
    EXPECT_EQ(p.native.run.out, p.shim.run.out);
    EXPECT_GT(p.shim.log.in_graphs(), 0u);
}

TEST(O12, C3AProgramThatOnlyPollsSeesItsWorkDone)
{
    same_as_native("O-12-polling");
}

TEST(O19, C4AHostThatOnlyWatchesMemorySeesTheKernelsStore)
{
    same_as_native("O-19-watching", {{"AUTOGRAPH_FLUSH_US", "100"}});
}

TEST(O19, C4AKernelThatFindsTheHostsMemoryInADeviceStructReachesTheDeviceAsWell)
{
    same_as_native("O-19-struct", {{"AUTOGRAPH_FLUSH_US", "100"}});
}

// At every pace: what is held reaches the device although the program calls nothing and hardly anybody may run.
struct ShortOfProcessor : testing::TestWithParam<const char *> {
};

TEST_P(ShortOfProcessor, C4OneProcessorThatAnotherThreadKeepsBusy)
{
    same_as_native("C4-one-processor",
                   {{"AUTOGRAPH_FLUSH_US", "100"}, {"AUTOGRAPH_PACE", GetParam()}});
}

TEST_P(ShortOfProcessor, C4AQuotaThatStopsTheProcessMostOfTheTime)
{
    same_as_native("C4-quota", {{"AUTOGRAPH_FLUSH_US", "100"}, {"AUTOGRAPH_PACE", GetParam()}});
}

INSTANTIATE_TEST_SUITE_P(O19, ShortOfProcessor, testing::Values("prompt", "patient", "auto"));

TEST(O24, C3AFreeFindsTheHeldLaunchesSubmitted)
{
    same_as_native("O-24-free");
}

TEST(O24, C3AFreeOfHostMemoryFindsTheHeldLaunchesSubmitted)
{
    same_as_native("O-24-free-host");
}

TEST(O24, C3AFreeFindsTheHeldLaunchesOfEveryStreamSubmitted)
{
    same_as_native("O-24-free-two-streams");
}

TEST(O25, C3AnUnloadFindsTheLaunchesOfItsModuleSubmitted)
{
    Pair p{play("O-25-unload", false), play("O-25-unload", true)};
    expect_played(p.native, "without the shim");
    expect_played(p.shim, "with the shim");
    EXPECT_EQ(p.native.run.out, p.shim.run.out);
    EXPECT_EQ(p.native.log.executed.size(), p.shim.log.executed.size());
    EXPECT_GT(p.shim.log.in_graphs(), 0u);
}

TEST(O25, C2AFunctionOfAnUnloadedModuleIsRefusedByThatVeryCall)
{
    same_as_native("O-25-launch-after", LENIENT);
}

TEST(O32, C2ADestroyedStreamIsRefusedByThatVeryCall)
{
    Pair p = same_as_native("O-32-destroyed-stream", LENIENT, ANYHOW);
    EXPECT_GT(p.shim.log.in_graphs(), 0u);
}

TEST(O32, C2ABadLaunchIsRefusedByThatVeryCall)
{
    same_as_native("O-32-refused", LENIENT);
}

TEST(O33, C2AFaultBeforeLearningReachesAPollingProgram)
{
    same_as_native("O-33-fault-early", {}, ANYHOW);
}

TEST(O33, C2AFaultAfterAReplayReachesAPollingProgram)
{
    same_as_native("O-33-fault-late");
}

TEST(O33, C2AFaultInsideAReplayReachesAPollingProgram)
{
    Played native = play("O-33-fault-late", false);
    for (const char *fault : {"cuGraphLaunch:1:700:sticky", "cuGraphLaunch:4:700:sticky"}) {
        Played shim = play("O-33-fault-in-graph", true, {{"SIMCUDA_FAULT", fault}});
        expect_played(shim, fault);
        EXPECT_EQ(native.run.out, shim.run.out) << fault;
    }
}

TEST(O33, C2AFaultOfAReplayedKernelReachesTheProgramAndEveryCallAfterIt)
{
    Pair p = same_as_native("O-33-fault-learned", {}, ANYHOW);
    ASSERT_FALSE(p.shim.log.executed.empty());
    const ag_test::Executed &last = p.shim.log.executed.back();
    EXPECT_EQ("fault_when", last.name);
    EXPECT_TRUE(last.in_graph) << "the kernel that faulted was not part of a replay";
}

// Calls that only the shim makes: whatever becomes of them, the program must not notice.
struct InternalFailure : testing::TestWithParam<const char *> {
};

TEST_P(InternalFailure, C6LeavesNoTraceInTheProgram)
{
    std::string symbol = GetParam();
    Env count = {{"SIMCUDA_LOG_CALLS", "1"}};
    size_t calls = play("O-34-plain-loop", true, count).log.calls(symbol);
    ASSERT_GT(calls, 0u) << "the shim does not call " << symbol;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const std::vector<size_t> nth = {1, calls / 2};
#else
    const std::vector<size_t> nth = {1, 2, 5, calls / 2, calls};
#endif
    for (size_t n : nth) {
        if (n < 1 || n > calls)
            continue;
        for (const char *code : {"1", "2", "999"}) {
            // 1 is how this call says that there are no more parameters: no failure to recover from.
            if (symbol.find("GetParamInfo") != std::string::npos && !strcmp(code, "1"))
                continue;
            std::string fault = symbol + ":" + std::to_string(n) + ":" + code;
            SCOPED_TRACE(fault);
            same_as_native("O-34-plain-loop", {{"SIMCUDA_FAULT", fault}}, ANYHOW);
        }
    }
}

const char *const internal_calls[] = {"cuGraphCreate",
                                      "cuGraphAddKernelNode_v2",
                                      "cuGraphInstantiateWithFlags",
                                      "cuGraphUpload",
                                      "cuGraphLaunch",
                                      "cuGraphExecKernelNodeSetParams_v2",
                                      "cuFuncGetParamInfo",
                                      "cuStreamGetId"};

INSTANTIATE_TEST_SUITE_P(O34, InternalFailure, testing::ValuesIn(internal_calls));

TEST(O34, EveryGraphCallOfTheShimIsAmongThoseThatAreMadeToFail)
{
    std::set<std::string> failing(std::begin(internal_calls), std::end(internal_calls));
    failing.insert({"cuGraphDestroy", "cuGraphExecDestroy"}); // their status cannot matter
    Env calls = {{"SIMCUDA_LOG_CALLS", "1"},
                 {"AUTOGRAPH_VERIFY", "0"}}; // its calls: broken_test.cc
    Played p = play("O-34-plain-loop", true, calls);
    for (const ag_test::Called &c : p.log.called)
        EXPECT_TRUE(c.symbol.rfind("cuGraph", 0) != 0 || failing.count(c.symbol)) << c.symbol;
}

// One refusal at most, told once; what was accepted and did not run is that one. (The call that tells of it may be a
// launch, which then was not accepted itself.)
void expect_told_once(const Played &p)
{
    long accepted = number_after(p.run.out, "accepted "),
         errors = number_after(p.run.out, "errors ");
    long executed = std::count_if(p.log.executed.begin(), p.log.executed.end(),
                                  [](const ag_test::Executed &e) { return e.grid != "-"; });
    EXPECT_LE(errors, 1) << p.run.out;
    EXPECT_LE(accepted - executed, errors) << p.run.out;
    EXPECT_GE(accepted - executed, 0) << p.run.out;
    EXPECT_EQ(64 * 12 - 1, accepted + number_after(p.run.out, "refused ")) << p.run.out;
}

// The driver refuses the n-th launch it receives, at once or held, for every n.
TEST(O49, C2ALaunchThatTheDriverRefusesIsReportedOnce)
{
    Env seldom = {{"AUTOGRAPH_MIN_SEEN", "2"}, {"SIMCUDA_LOG_CALLS", "1"}};
    size_t launches = play("O-34-plain-loop", true, seldom).log.calls("cuLaunchKernel");
    ASSERT_GT(launches, 10u);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const size_t step = 5;
#else
    const size_t step = 1;
#endif
    for (size_t n = 1; n <= launches && !HasFailure(); n += step) {
        std::string fault = "cuLaunchKernel:" + std::to_string(n) + ":2";
        SCOPED_TRACE(fault);
        Played p =
            play("O-34-plain-loop", true, {{"SIMCUDA_FAULT", fault}, {"AUTOGRAPH_MIN_SEEN", "2"}});
        expect_played(p, fault.c_str());
        expect_told_once(p);
    }
}

TEST(O46, C3ACallWithoutABodyInTheShimStandsBetweenTheLaunchesAroundIt)
{
    same_as_native("O-46-barrier");
}

TEST(O46, C3ACallThatTheShimDoesNotKnowFindsTheWorkBeforeItSubmitted)
{
    same_as_native("O-46-unknown");
}

TEST(O46, C3LookUpsHandOutTheVariantsThatTheDriverHandsOut)
{
    same_as_native("O-46-variants", {}, ANYHOW);
}

TEST(O47, C1EveryLaunchRunsWithTheAttributesInForceAtItsCall)
{
    same_as_native("O-47-attribute-changes");
}

TEST(O47, C1AnAttributeThatNoResultShowsIsInForceAsWell)
{
    Pair p = same_as_native("O-47-carveout-changes");
    std::map<std::string, std::vector<std::string>> native, shim;
    for (const ag_test::Executed &e : p.native.log.executed)
        native[e.stream].push_back(e.name + " " + e.state);
    for (const ag_test::Executed &e : p.shim.log.executed)
        shim[e.stream].push_back(e.name + " " + e.state);
    EXPECT_TRUE(native == shim) << "launches ran with other attributes";
}

TEST(O47, C5SettingAValueThatIsInForceAlreadyDoesNotEndAReplay)
{
    Pair p = same_as_native("O-47-attribute-repeated", {}, ANYHOW);
    EXPECT_GT(p.shim.log.in_graphs() * 2, p.shim.log.executed.size());
}

TEST(O48, C1AHandleThatComesBackIsANewFunction)
{
    Pair p = same_as_native("O-48-layout-changes");
    EXPECT_GT(number_after(p.native.run.out, "handles that came back: "), 0)
        << "the simulated driver did not use a handle again: this proves nothing";
}

TEST(O48, C1AModuleUnloadedInALearnedLoopTakesItsGraphsAlong)
{
    same_as_native("O-48-unload-in-loop");
}

TEST(O51, C4PerThreadDefaultStreamsAreNeverHeldUp)
{
    Played native = play_program("per_thread", {}, false);
    Played shim = play_program("per_thread", {}, true);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
    EXPECT_EQ(0u, shim.log.in_graphs()) << "work of a per-thread stream was held";
}

TEST(Promise, C5LaunchesThatNeverRepeatReachTheDriverAsTheyAreMade)
{
    Env calls = {{"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("C5-never-repeating", calls, ANYHOW);
    EXPECT_EQ(p.native.log.calls("cuLaunchKernel"), p.shim.log.calls("cuLaunchKernel"));
    for (const ag_test::Called &c : p.shim.log.called)
        ASSERT_NE(0u, c.symbol.find("cuGraph") == 0 ? 0u : 1u) << c.symbol << " was called";
    EXPECT_GT(host_us(p.native), 0);
    EXPECT_LT(host_us(p.shim), 1.02 * host_us(p.native)) << "by the driver's clock";
}

TEST(Promise, C5SequencesThatDieYoungAreLeftAlone)
{
    Pair p = same_as_native("C5-short-lived", {}, ANYHOW);
    // 12,000 bodies of 16 launches; all graphs would be 4,000. Building all of them costs half of what the launches do.
    EXPECT_LT(number_after(p.shim.totals, "graphs_instantiated\": "), 1500) << p.shim.totals;
    EXPECT_GT(host_us(p.native), 0);
    EXPECT_LT(host_us(p.shim), 1.15 * host_us(p.native)) << "by the driver's clock";
}

// How many graphs were alive at once, as the driver saw it.
long most_graphs(const SimLog &log)
{
    long live = 0, most = 0;
    for (const ag_test::Called &c : log.called) {
        live += c.status == 0 && c.symbol == "cuGraphInstantiateWithFlags";
        live -= c.status == 0 && c.symbol == "cuGraphExecDestroy";
        most = std::max(most, live);
    }
    return most;
}

// A graph of those scenes has 8 nodes, and a node takes 11 KB or more of a real driver's memory.
constexpr long GRAPHS_IN_A_MEGABYTE = 1024 / 88;

TEST(Promise, C6ManySequencesStayWithinTheMemoryForGraphs)
{
    Env calls = {{"AUTOGRAPH_MAX_BYTES", "1M"}, {"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("C6-many-sequences", calls, ANYHOW);
    EXPECT_GT(p.shim.log.in_graphs(), 0u);
    EXPECT_LE(most_graphs(p.shim.log), GRAPHS_IN_A_MEGABYTE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they keep freed memory
    long native = number_after(p.native.measured, "grown "),
         shim = number_after(p.shim.measured, "grown ");
    EXPECT_GT(shim, 0) << p.shim.measured;
    EXPECT_LT(shim, native + 32 * 1024) << "KB";
#endif
}

TEST(Promise, C6TheMemoryForGraphsIsThatOfTheProcessNotOfEachContext)
{
    Env calls = {{"AUTOGRAPH_MAX_BYTES", "1M"}, {"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("C6-many-contexts", calls, ANYHOW);
    EXPECT_GT(p.shim.log.in_graphs(), 0u);
    EXPECT_LE(most_graphs(p.shim.log), GRAPHS_IN_A_MEGABYTE);
}

TEST(Promise, C6BadOptionsAreOneLineEachAndChangeNothing)
{
    Env bad = {{"AUTOGRAPH_MIN_SEEN", "many"}, {"AUTOGRAPH_NO_SUCH_OPTION", "1"}};
    Pair p = same_as_native("O-34-plain-loop", bad, ANYHOW);
    EXPECT_EQ(2, std::count(p.shim.messages.begin(), p.shim.messages.end(), '\n'))
        << p.shim.messages;
    EXPECT_NE(std::string::npos, p.shim.messages.find("AUTOGRAPH_MIN_SEEN")) << p.shim.messages;
    EXPECT_NE(std::string::npos, p.shim.messages.find("AUTOGRAPH_NO_SUCH_OPTION"))
        << p.shim.messages;
    EXPECT_EQ("", p.shim.run.err);
    EXPECT_GT(p.shim.log.in_graphs(), 0u) << "the defaults no longer stand";
}

TEST(Promise, C6AnUnwritableDumpDirectoryIsOneLineAndChangesNothing)
{
    Pair p = same_as_native("O-34-plain-loop", {{"AUTOGRAPH_DUMP", "/proc/no/such/place"}}, ANYHOW);
    EXPECT_EQ(1, std::count(p.shim.messages.begin(), p.shim.messages.end(), '\n'))
        << p.shim.messages;
    EXPECT_EQ("", p.shim.run.err);
}

TEST(Promise, C6WithoutALogNothingIsEverPrinted)
{
    Env quiet = {{"AUTOGRAPH_MIN_SEEN", "many"}, {"AUTOGRAPH_LOG", ""}};
    Pair p = same_as_native("O-34-plain-loop", quiet, ANYHOW);
    EXPECT_EQ("", p.shim.run.err);
}

TEST(Promise, C7AForkedChildGetsTheDriversOwnAnswers)
{
    same_as_native("C7-forked-child");
}

TEST(Promise, C7AForkedChildIsNotBlockedByWhatAnotherThreadOfItsParentHolds)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer's own locks are held across the fork";
#endif
    Played native = play("C7-fork-beside-launch", false),
           shim = play("C7-fork-beside-launch", true);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
    EXPECT_GT(shim.log.in_graphs(), 0u);
}

TEST(Promise, C3AProcessEndsThoughOneOfItsThreadsIsBlockedInALaunch)
{
    const Env dump = {{"AUTOGRAPH_DUMP", ag_test::make_dir("ag-leaves")}};
    Played native = play("C3-exit-beside-launch", false),
           shim = play("C3-exit-beside-launch", true, dump);
    EXPECT_EQ("leaves\n", native.run.out);
    EXPECT_EQ(0, native.run.status);
    EXPECT_EQ(native.run.out, shim.run.out);
    EXPECT_EQ(native.run.status, shim.run.status) << shim.run.err;
    EXPECT_GT(number_after(shim.stats, "\"graph_launches\": "), 0) << "statistics were written";
}

TEST(Promise, C7TheKillSwitchLeavesEverythingToTheDriver)
{
    Env off = {{"AUTOGRAPH", "off"}, {"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("O-34-plain-loop", off, ANYHOW);
    EXPECT_EQ(p.native.log.calls("cuLaunchKernel"), p.shim.log.calls("cuLaunchKernel"));
    EXPECT_EQ(0u, p.shim.log.in_graphs());
}

TEST(Promise, C7AProgramWithoutCudaStartsAndEndsAsEver)
{
    std::string dir = ag_test::make_dir("ag-inert");
    for (const char *program : {"/bin/true", "/bin/ls", "/bin/cat"}) {
        std::vector<std::string> argv = {program, "/dev/null"};
        ag_test::Run plain = ag_test::run(argv, {}, LIMIT);
        Env env = {{"LD_PRELOAD", ag_test::preload(ag_test::runfile("libautograph.so"))},
                   {"ASAN_OPTIONS", "detect_leaks=0"},
                   {"AUTOGRAPH_STATS", dir + "/stats"},
                   {"AUTOGRAPH_DUMP", dir},
                   {"AUTOGRAPH_LOG", dir + "/log"},
                   {"AUTOGRAPH_LOG_LEVEL", "debug"}};
        ag_test::Run shim = ag_test::run(argv, env, LIMIT);
        EXPECT_EQ(plain.status, shim.status) << program << shim.err;
        EXPECT_EQ(plain.out, shim.out) << program;
        EXPECT_EQ("", shim.err) << program;
    }
    EXPECT_TRUE(std::filesystem::is_empty(dir)) << "a file was made in a process without CUDA";
    ag_test::remove_dir(dir);
}

// As the kernel sees a process that never loads libcuda: threads and open files after it has started.
TEST(Promise, C7AProcessWithoutCudaHasNoThreadAndNoFileMore)
{
    std::vector<std::string> argv = {"/bin/sh", "-c",
                                     "grep Threads /proc/$$/status; ls /proc/$$/fd"};
    ag_test::Run plain = ag_test::run(argv, {}, LIMIT);
    Env env = {{"LD_PRELOAD", ag_test::preload(ag_test::runfile("libautograph.so"))},
               {"ASAN_OPTIONS", "detect_leaks=0"}};
    ag_test::Run shim = ag_test::run(argv, env, LIMIT);
    EXPECT_EQ(0, plain.status);
    EXPECT_EQ(plain.out, shim.out) << shim.err;
    EXPECT_EQ("", shim.err);
}
