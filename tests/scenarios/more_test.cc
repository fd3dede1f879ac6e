/* tests/scenarios/more_test.cc - more patterns from public bug reports, run without and with the shim.
 * Called by  bazel                       Calls  play.h, the scene program
 * Threads    none
 * Promise    as scenarios_test.cc: numbers O-.. name the scenario, C1 to C7 the promise of docs/ARCHITECTURE.md
 * Start at   play.h, same_as_native() */
#include "tests/scenarios/play.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <gtest/gtest.h>

using namespace ag_scene;

namespace
{

// Long enough for a round of a trial: what is held, and for how long, changes while the scene runs.
void same_at_a_measured_pace(const std::string &scene, const char *times)
{
    Pair p = same_as_native(scene, {{"AUTOGRAPH_PACE", "auto"}, {"SCENE_TIMES", times}});
    EXPECT_NE(std::string::npos, p.shim.stats.find("\"TRIAL\"")) << p.shim.stats;
}

} // namespace

TEST(O03, C1AnUploadReadsPageableMemoryDuringTheCallOnly)
{
    same_as_native("O-03-pageable-source");
}

TEST(O03, C3AnEventBehindAnUploadSaysWhenItsSourceMayBeUsedAgain)
{
    same_as_native("O-03-pinned-pool");
}

TEST(O04, C1EachDownloadIsDeliveredOnceAtItsPlace)
{
    Pair p = same_as_native("O-04-download-once");
    EXPECT_NE(std::string::npos, p.shim.run.out.find("then -1")) << p.shim.run.out;
}

TEST(O05, C1EveryLaunchSeesTheConstantUploadedJustBeforeIt)
{
    same_as_native("O-05-constants");
}

TEST(O05, C1EveryLaunchSeesItsConstantAtAMeasuredPaceToo)
{
    same_at_a_measured_pace("O-05-constants", "8");
}

TEST(O52, C1ALearnedCopyGoesToTheAllocationThatTheProgramMeans)
{
    Pair p = same_as_native("O-52-another-allocation");
    EXPECT_GT(number_after(p.native.run.out, "addresses that came back: "), 0)
        << "the simulated driver did not use an address again: this proves nothing";
    EXPECT_GT(in_graphs(p.shim.log, "memcpyDtoD"), 0u) << "no copy was replayed";
}

TEST(O10, C3AnEventOfTheLegacyStreamCoversAllBlockingStreamsAndNoOther)
{
    same_as_native("O-10-legacy-event");
}

TEST(O10, C3ACopyOfTheLegacyStreamCoversAllBlockingStreamsAndNoOther)
{
    same_as_native("O-10-legacy-copy");
}

TEST(O13, C2ElapsedTimeAnswersForEachPairOfEventsAsTheDriverDoes)
{
    same_as_native("O-13-elapsed-codes");
}

TEST(O14, C1AWaitMeansTheRecordThatWasTheLastAtItsCall)
{
    same_as_native("O-14-event-again");
}

TEST(O14, C1AWaitMeansTheLastRecordAtAMeasuredPaceToo)
{
    same_at_a_measured_pace("O-14-event-again", "32");
}

// A handle of a stream or an event that does not come back in the simulated driver proves nothing.
void expect_came_back(const Pair &p)
{
    EXPECT_GT(number_after(p.native.run.out, "handles that came back: "), 0) << p.native.run.out;
}

TEST(O15, C1ADestroyedStreamsWorkRunsAndTheNextStreamIsANewOne)
{
    expect_came_back(same_as_native("O-15-stream-comes-back"));
}

TEST(O16, C1AWaitOutlivesItsEvent)
{
    expect_came_back(same_as_native("O-16-event-comes-back"));
}

TEST(O17, C3WaitingForAnEarlyEventDoesNotPullInLaterWork)
{
    same_as_native("O-17-early-event");
}

TEST(O21, C3ValuesWrittenAndWaitedForInStreamsKeepTheirPlace)
{
    same_as_native("O-21-values", {{"AUTOGRAPH_FLUSH_US", "1000"}});
}

TEST(O08, C1TheProgramsOwnGraphStaysInLineWithItsLaunches)
{
    same_as_native("O-08-own-graph-in-line", {}, OWN_GRAPHS_TOO);
}

TEST(O09, C6TheProgramsOwnNodesHoldWhatItLaunchedAndTakeWhatItSets)
{
    same_as_native("O-09-own-nodes-patched", {}, OWN_GRAPHS_TOO);
}

TEST(O18, C1EachCallbackRunsOnceAtItsPlaceWithItsOwnData)
{
    same_as_native("O-18-one-call-each");
}

TEST(O20, C3NothingWaitsForAStreamThatOnlyTheHostCanRelease)
{
    same_as_native("O-20-standing-stream");
}

TEST(O22, C3AFreeInAnyStreamFindsTheHeldLaunchesSubmitted)
{
    Pair p = same_as_native("O-22-freed-in-order");
    EXPECT_GT(number_after(p.native.run.out, "given back at once: "), 0) << p.native.run.out;
}

TEST(O23, C6AllocationsInStreamOrderStayTheProgramsOwn)
{
    same_as_native("O-23-no-growth");
}

// Between a synchronisation and the program's next call the driver receives no work and runs nothing. A thread of the
// shim's that had begun to look after what was held may still ask for its own context, or take it off its stack.
TEST(O31, C4NothingReachesTheDeviceBetweenASynchronisationAndTheNextCall)
{
    Pair p =
        same_as_native("O-31-idle", {{"SIMCUDA_LOG_CALLS", "1"}, {"AUTOGRAPH_FLUSH_US", "1000"}});
    std::vector<std::pair<uint64_t, std::string>> events;
    for (const ag_test::Called &c : p.shim.log.called)
        if (c.symbol != "cuCtxPushCurrent_v2" && c.symbol != "cuCtxPopCurrent_v2" &&
            c.symbol != "cuCtxGetCurrent")
            events.emplace_back(c.seq, c.symbol);
    for (const ag_test::Executed &e : p.shim.log.executed)
        events.emplace_back(e.seq, e.name);
    std::sort(events.begin(), events.end());
    size_t markers = 0;
    for (size_t i = 1; i < events.size(); i++) {
        if (events[i].second != "cuDriverGetVersion")
            continue;
        const std::string &before = events[i - 1].second;
        const bool idle = before == "cuStreamSynchronize" || before == "cuCtxSynchronize";
        EXPECT_TRUE(idle) << "came in between: " << before << " after " << events[i - 2].second;
        markers += idle;
    }
    EXPECT_EQ(64u, markers);
}

// How many nodes of graphs were alive at once, at least, as the driver saw it: which graph an ExecDestroy means is not
// in the log, so each is taken for the largest there was.
long most_nodes(const SimLog &log)
{
    long live = 0, most = 0, adding = 0, largest = 0;
    for (const ag_test::Called &c : log.called) {
        adding += c.status == 0 && c.symbol == "cuGraphAddKernelNode_v2";
        if (c.status == 0 && c.symbol == "cuGraphInstantiateWithFlags") {
            live += adding;
            largest = std::max(largest, adding);
            adding = 0;
        }
        live -= c.status == 0 && c.symbol == "cuGraphExecDestroy" ? largest : 0;
        most = std::max(most, live);
    }
    return most;
}

TEST(O40, C6ManyShapesStayWithinTheMemoryForGraphsAndEvictionHarmsNone)
{
    // A node takes 11 KB or more of a real driver's memory: room for 20 of these graphs.
    Env calls = {{"AUTOGRAPH_MAX_BYTES", "24M"}, {"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("O-40-many-shapes", calls);
    EXPECT_GT(number_after(p.shim.stats, "\"graphs_evicted\": "), 0) << p.shim.stats;
    EXPECT_LE(most_nodes(p.shim.log), 24 * 1024 / 11);
    ASSERT_NE("", p.shim.measured);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they keep freed memory
    EXPECT_LT(number_after(p.shim.measured, "grown late "), 16 * 1024);
#endif
}

const Env TWO_DEVICES = {{"SIMCUDA_DEVICES", "2"}};

TEST(O30, C3ACopyBetweenDevicesStandsBehindTheEventsOfBoth)
{
    same_as_native("O-30-copy-behind-events", TWO_DEVICES);
}

TEST(O30, C3ACopyBetweenContextsFindsTheHeldLaunchesOfBothSubmitted)
{
    same_as_native("O-30-copy-between-contexts", TWO_DEVICES);
}

// The rounds of the collectives in the order in which the driver received them, streams in turn.
void expect_collectives_in_order(const SimLog &log)
{
    std::map<std::string, std::vector<const ag_test::Executed *>> by_context;
    for (const ag_test::Executed &e : log.executed)
        if (e.name == "set_flag")
            by_context[e.ctx].push_back(&e);
    EXPECT_EQ(2u, by_context.size());
    for (auto &[ctx, told] : by_context) {
        std::stable_sort(told.begin(), told.end(),
                         [](const auto *a, const auto *b) { return a->sub < b->sub; });
        for (size_t i = 0; i + 2 < told.size(); i += 2) {
            ASSERT_NE(told[i]->stream, told[i + 1]->stream) << "context " << ctx << ", " << i;
            ASSERT_EQ(told[i]->stream, told[i + 2]->stream) << "context " << ctx << ", " << i;
            ASSERT_EQ(told[i]->args.substr(16, 8), told[i + 1]->args.substr(16, 8)) << i;
        }
    }
}

TEST(O50, C1CollectivesOfEachRankReachTheDriverInProgramOrder)
{
    Pair p = same_as_native("O-50-two-ranks", TWO_DEVICES);
    expect_collectives_in_order(p.native.log);
    expect_collectives_in_order(p.shim.log);
    EXPECT_GT(in_graphs(p.shim.log, "set_flag"), 0u);
}

// Builds that wait for the device's work, which no driver is known to do: none may stand between the halves of a
// collective for ever. Hangs in one run of some forty: a query of one rank builds the graph of the other.
TEST(O50, DISABLED_C4CollectivesEndThoughBuildingAGraphWaitsForTheDevice)
{
    Env env = TWO_DEVICES;
    env["SIMCUDA_DRAIN"] = "cuGraphInstantiateWithFlags,cuGraphUpload,cuGraphExecDestroy";
    env["AUTOGRAPH_FLUSH_US"] = "1000";
    same_as_native("O-50-two-ranks", env);
}

TEST(O50, C1CollectivesKeepTheirOrderAtAMeasuredPaceToo)
{
    Env env = TWO_DEVICES;
    env["AUTOGRAPH_PACE"] = "auto";
    env["SCENE_TIMES"] = "8";
    Pair p = same_as_native("O-50-two-ranks", env);
    expect_collectives_in_order(p.shim.log);
    EXPECT_NE(std::string::npos, p.shim.stats.find("\"TRIAL\"")) << p.shim.stats;
}

// cuCtxSynchronize of one context finds the log of the other locked by a thread that has no room for its launch.
TEST(Promise, C3AContextIsSynchronisedThoughTheQueueOfAnotherDeviceIsFull)
{
    Played native = play("C3-other-device-is-full", false, TWO_DEVICES),
           shim = play("C3-other-device-is-full", true, TWO_DEVICES);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
}

TEST(O26, C7NothingHappensBeforeTheFirstCallAndAForkedChildMayMakeIt)
{
    Pair p = same_as_native("O-26-fork-before-cuda");
#ifndef __SANITIZE_THREAD__ /* it has a thread of its own */
    EXPECT_NE(std::string::npos, p.shim.run.out.find("threads before: 1\n")) << p.shim.run.out;
    EXPECT_NE(std::string::npos, p.shim.run.out.find("threads after: 1\n")) << p.shim.run.out;
#endif
    EXPECT_NE(std::string::npos, p.shim.run.out.find("ended with 7")) << p.shim.run.out;
}

TEST(O26, C7AProgramStartedBesideHeldWorkRunsAndTheWorkToo)
{
    same_as_native("O-26-exec");
}

// The end of a process may lose work of its own: what counts is how it ends.
void same_end(const std::string &scene, int status)
{
    for (int again = 0; again < 5; again++) {
        Played native = play(scene, false), shim = play(scene, true);
        expect_played(native, "without the shim", status);
        expect_played(shim, "with the shim", status);
        EXPECT_EQ(native.run.out, shim.run.out);
        EXPECT_EQ(native.run.err, shim.run.err);
        EXPECT_GT(shim.log.in_graphs(), 0u) << "nothing was replayed";
    }
}

TEST(O37, C3DestructorsAfterMainFindTheDriverAsWithoutTheShim)
{
    same_end("O-37-destructors", 0);
}

TEST(O37, C4WorkReachesTheDeviceOfAProcessThatThenEndsWithoutASync)
{
    Pair p = same_as_native("O-37-killed-before-a-sync", {{"AUTOGRAPH_FLUSH_US", "1000"}});
    EXPECT_NE(std::string::npos, p.shim.run.out.find("found 4711")) << p.shim.run.out;
}

TEST(O37, C6ProcessesEndAsTheyWould)
{
    same_end("O-37-no-sync", 0);
    same_end("O-37-quick-exit", 5);
    same_end("O-37-abort", 128 + 6);
    same_end("O-37-exit-elsewhere", 6);
}

TEST(O37, C1TheWorkOfAThreadThatHasGoneStays)
{
    same_as_native("O-37-thread-goes");
}

TEST(O38, C1AfterAResetNothingOfTheOldContextIsUsed)
{
    Pair p = same_as_native("O-38-reset", {{"SIMCUDA_LOG_CALLS", "1"}});
    EXPECT_GT(number_after(p.native.run.out, "contexts that came back: "), 0) << p.native.run.out;
    for (const Played *played : {&p.native, &p.shim}) {
        EXPECT_GT(number_after(played->measured, "functions that came back: "), 0);
    }
    for (const char *symbol :
         {"cuInit", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxReset_v2", "cuCtxCreate_v4",
          "cuCtxDestroy_v2", "cuCtxSetCurrent", "cuStreamCreate", "cuEventCreate", "cuMemAlloc_v2",
          "cuStreamSynchronize"})
        EXPECT_EQ(p.native.log.calls(symbol), p.shim.log.calls(symbol)) << symbol;
    // One of the shim's own in each of the eight contexts (capture/fill.h).
    for (const char *symbol : {"cuModuleLoadData", "cuModuleGetFunction"})
        EXPECT_EQ(p.native.log.calls(symbol) + 8, p.shim.log.calls(symbol)) << symbol;
}

// The shim's own kernel belongs to a context, not to the handle that the context has.
TEST(Memsets, C1InAContextWithTheHandleOfAnotherUseNothingOfTheOther)
{
    Pair p = same_as_native("memset-contexts");
    EXPECT_GT(number_after(p.native.run.out, "contexts that came back: "), 0) << p.native.run.out;
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

TEST(Memsets, C2ThatFailFailAtOnceInALearnedLoopToo)
{
    Pair p = same_as_native("memset-refused");
    EXPECT_EQ(std::string::npos, p.native.run.out.find(" 0,")) << p.native.run.out;
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

// What fails, or has nothing to do, does not wait for the device: nor may what the shim does inside it.
TEST(Memsets, C4MakeNoCallWaitThatWouldNotWait)
{
    Pair p = same_as_native("memset-beside-a-waiting-kernel");
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

// A load waits for what runs, and keeps who would end it from launching: not where the program only synchronises.
TEST(Memsets, C4LetASynchronisationEndThoughOthersLaunchWhatWaitsForALaterLaunch)
{
    Pair p = same_as_native("memset-beside-a-synchronisation");
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

// Calls that do not wait are a time to load the kernel as long as there is nothing to wait for, and no longer.
TEST(Memsets, C5OfAProgramWithoutModulesAreReplayedIfItsMemoryComesBeforeItsWork)
{
    Pair p = same_as_native("memset-memory-first");
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

TEST(Memsets, C4OfAProgramWithoutModulesAreLeftAloneIfItsWorkComesFirst)
{
    for (const char *scene : {"memset-record-first", "memset-wait-first"}) {
        Pair p = same_as_native(scene);
        EXPECT_EQ(0u, in_graphs(p.shim.log, "ag_fill")) << scene;
        EXPECT_EQ(65, number_after(p.shim.stats, "\"memsets_unproven\": ")) << p.shim.stats;
    }
}

TEST(Memsets, C5AreReplayedWhereTheProgramWaitsInNothingButFrees)
{
    Pair p = same_as_native("memset-and-free");
    EXPECT_GT(in_graphs(p.shim.log, "ag_fill"), 0u);
}

// AUTOGRAPH=observe changes nothing: the program's own module is the only one.
TEST(Memsets, C6ObservedLoadNoKernel)
{
    Env observe = {{"AUTOGRAPH", "observe"}, {"SIMCUDA_LOG_CALLS", "1"}};
    Pair p = same_as_native("memset-loop", observe, ANYHOW);
    EXPECT_EQ(p.native.log.calls("cuModuleLoadData"), p.shim.log.calls("cuModuleLoadData"));
    EXPECT_EQ(0, number_after(p.shim.stats, "\"memsets_unproven\": ")) << p.shim.stats;
}

TEST(Records, C1OfADenseLoopLetAnotherStreamGoOnAtTheirPlace)
{
    Pair p = same_as_native("records-waited-for");
    EXPECT_GT(in_graphs(p.shim.log, "eventRecord"), 0u);
}

TEST(Records, C1OfAnEventThatCameBackAreOfTheNewOne)
{
    Pair p = same_as_native("records-come-back");
    EXPECT_GT(number_after(p.native.run.out, "events that came back: "), 0) << p.native.run.out;
    EXPECT_GT(in_graphs(p.shim.log, "eventRecord"), 0u);
}

TEST(Records, C1ThatALaterOneOvertakesNeedNotRun)
{
    const Played native = play("records-overtaken", false), shim = play("records-overtaken", true);
    expect_played(native, "without the shim");
    expect_played(shim, "with the shim");
    EXPECT_EQ(native.run.out, shim.run.out);
    auto count = [](const SimLog &log, bool records) {
        return std::count_if(
            log.executed.begin(), log.executed.end(),
            [&](const ag_test::Executed &e) { return (e.name == "eventRecord") == records; });
    };
    EXPECT_EQ(count(native.log, false), count(shim.log, false));
    EXPECT_GT(count(native.log, true), 2 * count(shim.log, true));
}

TEST(Records, C2ThatFailFailAtOnceInALearnedLoopToo)
{
    Pair p = same_as_native("records-refused");
    EXPECT_EQ(std::string::npos, p.native.run.out.find(": 0,")) << p.native.run.out;
    EXPECT_GT(in_graphs(p.shim.log, "eventRecord"), 0u);
}

TEST(Records, C3AreSeenByAProgramThatPollsTheirEvent)
{
    Pair p = same_as_native("records-polled");
    EXPECT_GT(in_graphs(p.shim.log, "eventRecord"), 0u);
}

TEST(Records, C4AreNotWaitedForByAProgramThatMakesNoCall)
{
    Pair p = same_as_native("records-watched");
    EXPECT_GT(in_graphs(p.shim.log, "eventRecord"), 0u);
}

// The streams that launches in graphs went to.
std::set<std::string> streams_of_graphs(const SimLog &log)
{
    std::set<std::string> streams;
    for (const ag_test::Executed &e : log.executed)
        if (e.in_graph)
            streams.insert(e.stream);
    return streams;
}

TEST(Turns, C1OfSeveralStreamsAreEachInOrder)
{
    Pair p = same_as_native("turns-round-robin");
    EXPECT_EQ(3u, streams_of_graphs(p.shim.log).size());
}

TEST(Turns, C1OfStreamsThatWaitForEachOtherKeepThatOrder)
{
    Pair p = same_as_native("turns-fork");
    EXPECT_EQ(3u, streams_of_graphs(p.shim.log).size());
}

TEST(Turns, C1ThatWaitWaitForTheRecordBeforeThem)
{
    Pair p = same_as_native("turns-recorded-again");
    EXPECT_EQ(3u, streams_of_graphs(p.shim.log).size());
}

TEST(Turns, C1ThatWaitWaitForTheRecordBeforeThemThoughItIsAnotherOneThanTheGraphHas)
{
    Pair p = same_as_native("turns-recorded-again-at-times");
    EXPECT_EQ(3u, streams_of_graphs(p.shim.log).size());
}

// Order barriers: a program that asks for one order of all its work gets that.
TEST(Turns, C1AreNotRegroupedWhereTheProgramAsksForOneConnection)
{
    Played shim = play("turns-round-robin", true, {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}});
    expect_played(shim, "with the shim");
    EXPECT_EQ(0u, streams_of_graphs(shim.log).size());
}

TEST(Records, AreShownInTheGraphThatTheyAreIn)
{
    const std::string dir = ag_test::make_dir("ag-records");
    std::string text;
    expect_played(play("records-waited-for", true, {{"AUTOGRAPH_DUMP", dir}}), "with the shim");
    for (const auto &file : std::filesystem::directory_iterator(dir))
        text += ag_test::read_file(file.path());
    EXPECT_NE(std::string::npos, text.find("\"name\": \"cuEventRecord\"")) << text.substr(0, 400);
    ag_test::remove_dir(dir);
}

// What a program measures is left as it is.
TEST(Records, C5ThatTakeTheTimeAreNoNodes)
{
    Pair p = same_as_native("records-measured");
    EXPECT_EQ(0u, in_graphs(p.shim.log, "eventRecord"));
    EXPECT_GT(number_after(p.shim.stats, "\"records_timed\": "), 0) << p.shim.stats;
}
