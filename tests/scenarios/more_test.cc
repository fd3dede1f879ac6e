/* tests/scenarios/more_test.cc - more patterns from public bug reports, run without and with the shim.
 * Called by  bazel                       Calls  play.h, the scene program
 * Threads    none
 * Promise    as scenarios_test.cc: numbers O-.. name the scenario, C1 to C7 the promise of docs/ARCHITECTURE.md
 * Start at   play.h, same_as_native() */
#include "tests/scenarios/play.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>

using namespace ag_scene;

namespace
{

// Long enough for a trial: what is held, and for how long, changes while the scene runs.
void same_at_a_measured_pace(const std::string &scene, const char *times)
{
    Pair p = same_as_native(scene, {{"AUTOGRAPH_PACE", "auto"}, {"SCENE_TIMES", times}});
    EXPECT_GT(number_after(p.shim.stats, "\"pace_trials\": "), 0) << p.shim.stats;
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
