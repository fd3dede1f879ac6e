/* tests/simcuda/simcuda_test.cc - the simulated driver as its users meet it: results, log, faults.
 * Called by  bazel test                 Calls  sim_case under many environments
 * Threads    none
 * Promise    what the other tests take from simcuda is shown here without them
 * Start at   run_case()                                                                     */
#include "tests/support/process.h"
#include "tests/support/simlog.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace
{

using ag_test::Executed;
using Result = ag_test::Run;
using ag_test::SimLog;

class Sim : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        dir_ = ag_test::make_dir("simcuda");
    }
    void TearDown() override
    {
        ag_test::remove_dir(dir_);
    }

    // Not strict unless the test says so: what a program gets instead of an abort is tested, too.
    Result run_case(const std::string &name, std::map<std::string, std::string> more = {})
    {
        const std::string driver = ag_test::runfile("tools/simcuda/libcuda.so.1");
        auto env = ag_test::simcuda_env(driver.substr(0, driver.rfind('/')), "");
        env.erase("SIMCUDA_STRICT");
        env["SIMCUDA_LOG"] = log_path();
        env["SIMCUDA_STATS"] = dir_ + "/stats";
        env["EXPORTS"] = ag_test::runfile("tools/simcuda/exports.txt");
        for (auto &[key, value] : more)
            env[key] = value;
        Result r = ag_test::run({ag_test::runfile("tests/simcuda/sim_case"), name}, env, 60);
        EXPECT_FALSE(r.timed_out) << name;
        return r;
    }
    std::string log_path() const
    {
        return dir_ + "/log";
    }
    SimLog log() const
    {
        SimLog l = ag_test::read_simlog(log_path());
        EXPECT_EQ(l.bad_line, "");
        EXPECT_EQ(l.cut_line, "");
        return l;
    }
    std::string stats() const
    {
        return ag_test::read_file(dir_ + "/stats");
    }
    double stat(const std::string &key) const
    {
        const std::string text = stats();
        size_t at = text.find("\"" + key + "\": ");
        return at == std::string::npos ? -1 : atof(text.c_str() + at + key.size() + 4);
    }

  private:
    std::string dir_;
};

size_t kernels(const SimLog &log, const std::string &name)
{
    size_t n = 0;
    for (const Executed &e : log.executed)
        n += e.name == name;
    return n;
}

TEST_F(Sim, CountsWhatAProgramDoes)
{
    EXPECT_EQ(run_case("replay").out, "right\n");
    EXPECT_EQ(stat("kernels_eager"), 100);
    EXPECT_EQ(stat("kernels_in_graphs"), 640);
    EXPECT_EQ(stat("graph_launches"), 10);
    EXPECT_EQ(stat("patched_nodes"), 640);
    EXPECT_EQ(stat("graphs_instantiated"), 1);
    EXPECT_EQ(stat("misuses"), 0);
}

TEST_F(Sim, KeepsATimeThatDoesNotDependOnTheMachine)
{
    run_case("replay");
    const std::string first = stats();
    run_case("replay", {{"SIMCUDA_DELAY_US", "50"}});
    EXPECT_EQ(stats(), first);
    EXPECT_GT(stat("elapsed_us"), stat("host_us") - 1);
}

TEST_F(Sim, LogsEachOperationWithWhatItRanWith)
{
    run_case("replay");
    const SimLog l = log();
    EXPECT_EQ(kernels(l, "step"), 740u);
    EXPECT_EQ(l.in_graphs(), 640u);
    uint64_t sub = 0, seq = 0;
    for (const Executed &e : l.executed) {
        EXPECT_GT(e.seq, seq);
        EXPECT_GE(e.sub, sub);
        seq = e.seq;
        sub = e.sub;
        if (e.name == "step") {
            // pointer, two words, an int: 20 bytes, no padding
            EXPECT_EQ(e.args.size(), 40u);
            EXPECT_EQ(e.args.find_first_not_of("0123456789abcdef"), std::string::npos) << e.args;
            EXPECT_EQ(e.grid, "1,1,1");
            EXPECT_NE(e.state.find("fn=49152,-1,0 prio=0"), std::string::npos) << e.state;
        }
    }
}

TEST_F(Sim, LogsCallsWhenAsked)
{
    run_case("three", {{"SIMCUDA_LOG_CALLS", "1"}});
    const SimLog l = log();
    EXPECT_EQ(l.calls("cuLaunchKernel"), 3u);
    EXPECT_EQ(l.calls("cuInit"), 1u);
}

TEST_F(Sim, LeavesACompleteLogHoweverTheProgramEnds)
{
    for (const char *name : {"three", "three_then_exit_now", "three_then_abort"}) {
        EXPECT_EQ(run_case(name).out, "3\n") << name;
        EXPECT_EQ(kernels(log(), "store"), 3u) << name;
    }
}

TEST_F(Sim, RunsKernelsWithBarriers)
{
    EXPECT_EQ(run_case("barrier").out, "right\nright\nright\nright\n");
}

TEST_F(Sim, ShowsAMissingEdge)
{
    std::set<std::string> seen;
    for (int seed = 1; seed <= 16; seed++)
        seen.insert(run_case("unordered", {{"SIMCUDA_SEED", std::to_string(seed)}}).out);
    EXPECT_EQ(seen, (std::set<std::string>{"12\n", "21\n"}));
}

TEST_F(Sim, GivesDeadHandlesAndAddressesOutAgain)
{
    EXPECT_EQ(run_case("new_handles").out, "module 1 function 1 event 1 memory 1\n");
    EXPECT_EQ(run_case("new_handles", {{"SIMCUDA_FREE", "guard"}}).out,
              "module 1 function 1 event 1 memory 0\n");
}

TEST_F(Sim, DoesNotCallItselfThroughTheProgram)
{
    EXPECT_EQ(run_case("interposition").out, "0 0\n");
}

TEST_F(Sim, WorksInAChildOnlyIfTheParentDidNotUseIt)
{
    EXPECT_EQ(run_case("forks").out, "before 0\nafter 3\n");
}

TEST_F(Sim, KeepsPerThreadStreamsApart)
{
    EXPECT_EQ(run_case("per_thread").out, "both ended\n");
}

TEST_F(Sim, HasSeveralDevices)
{
    EXPECT_EQ(run_case("two_devices", {{"SIMCUDA_DEVICES", "2"}}).out,
              "17, other context's stream 400\n");
    EXPECT_EQ(run_case("two_devices").status, 2);
}

TEST_F(Sim, FailsTheCallThatItIsToldTo)
{
    EXPECT_EQ(run_case("three_allocations", {{"SIMCUDA_FAULT", "cuMemAlloc_v2:2:2"}}).out,
              "0\n2\n0\n");
    EXPECT_EQ(run_case("three_launches", {{"SIMCUDA_FAULT", "cuLaunchKernel:2:719"}}).out,
              "0\n719\n0\n0\n");
    EXPECT_EQ(run_case("three_launches", {{"SIMCUDA_FAULT", "cuLaunchKernel:2:700:sticky"}}).out,
              "0\n700\n700\n700\n");
    EXPECT_EQ(
        run_case("three_allocations", {{"SIMCUDA_FAULT", "cuMemAlloc_v2:1:2,cuMemAlloc_v2:3:1"}})
            .out,
        "2\n0\n1\n");
}

TEST_F(Sim, RefusesFaultsThatItCannotRead)
{
    for (const char *rule : {"cuNobody:1:2", "cuMemAlloc_v2", "cuMemAlloc_v2:1:2:often"}) {
        Result r = run_case("three_allocations", {{"SIMCUDA_FAULT", rule}});
        EXPECT_EQ(r.status, 128 + 6) << rule;
        EXPECT_NE(r.err.find("SIMCUDA_FAULT"), std::string::npos) << rule;
    }
}

TEST_F(Sim, HasAsMuchMemoryAsItIsTold)
{
    EXPECT_EQ(run_case("memory_limit", {{"SIMCUDA_MEMORY", "2097152"}}).out, "1048576 2097152 2\n");
}

TEST_F(Sim, IsAsOldAsItIsTold)
{
    EXPECT_EQ(run_case("old_driver", {{"SIMCUDA_DRIVER", "12020"}}).out,
              "12020: 0 1, too new a version: 1\n");
    EXPECT_EQ(run_case("old_driver").out, "13000: 0 0, too new a version: 0\n");
}

TEST_F(Sim, BlocksALaunchBehindAThousandOthers)
{
    EXPECT_EQ(run_case("depth").out, "blocked after 1022, in the end 1501\n");
}

TEST_F(Sim, IsReallyAsynchronous)
{
    EXPECT_EQ(run_case("query_once", {{"SIMCUDA_DELAY_US", "200000"}}).out, "600 0\n");
}

TEST_F(Sim, LetsACallDrainThatIsNamed)
{
    const std::map<std::string, std::string> slow = {{"SIMCUDA_DELAY_US", "200000"}};
    std::map<std::string, std::string> drained = slow;
    drained["SIMCUDA_DRAIN"] = "cuEventCreate";
    EXPECT_EQ(run_case("drain_by_name", slow).out, "600\n");
    EXPECT_EQ(run_case("drain_by_name", drained).out, "0\n");
}

TEST_F(Sim, ResolvesEveryNameOfTheRealDriver)
{
    EXPECT_EQ(run_case("all_names").out, "674 names, 0 missing, not implemented: 801\n");
}

TEST_F(Sim, RefusesImagesThatItCannotRun)
{
    Result r = run_case("strange_images");
    EXPECT_EQ(r.out, "unknown kernel 209, damaged 200, ptx 0, launch 0\n");
    EXPECT_NE(r.err.find("kernel nobody has no host build"), std::string::npos);
}

struct Misuse {
    const char *name, *lenient, *says;
};

TEST_F(Sim, NamesUndefinedBehaviourWhenStrict)
{
    const Misuse cases[] = {
        {"freed_argument", "launch 0, sync 0\n", "store uses"},
        {"freed_copy", "1\n", "freed memory"},
        {"freed_twice", "1\n", "freed twice"},
        {"dead_stream", "709\n", "is destroyed"},
        {"dead_function", "400\n", "module is unloaded"},
        {"freed_in_another_stream", "launch 0, sync 0\n", "store uses"},
        {"stale_node", "same address 1, launch 0, copied 7\n", "not the memory it was given"},
        {"copy_from_nowhere", "launch 0, sync 700\n", "a copy uses"},
        {"set_of_nowhere", "launch 0, sync 700\n", "a memset uses"},
        {"graph_of_freed_memory", "instantiate 1\n", "whose memory is gone"},
        {"used_before_allocated", "0\n", "has not allocated yet"},
    };
    for (const Misuse &m : cases) {
        Result lenient = run_case(m.name), strict = run_case(m.name, {{"SIMCUDA_STRICT", "abort"}});
        EXPECT_EQ(lenient.out, m.lenient) << m.name;
        EXPECT_EQ(strict.status, 128 + 6) << m.name;
        EXPECT_NE(strict.err.find(m.says), std::string::npos) << m.name << ": " << strict.err;
    }
}

TEST_F(Sim, TakesAPatchOfANodeWhoseMemoryIsGone)
{
    EXPECT_EQ(run_case("renewed_node", {{"SIMCUDA_STRICT", "abort"}}).out,
              "same address 1, patch 0, launch 0, copied 7\n");
}

TEST_F(Sim, TellsOfAnExecOnlyWhichNodesAreEnabled)
{
    EXPECT_EQ(run_case("told_of_an_exec").out,
              "node unchanged 1, copy 0 1, record 1 9, disabled 0\n");
}

TEST_F(Sim, RunsEveryKindOfNode)
{
    EXPECT_EQ(run_case("every_node", {{"SIMCUDA_STRICT", "abort"}}).out,
              "copied 7, called 2, written 9, event 0\n");
    EXPECT_EQ(log().in_graphs(), 10u) << "an empty node does nothing";
    EXPECT_EQ(kernels(log(), "memsetD32"), 2u);
    EXPECT_EQ(kernels(log(), "eventRecord"), 2u);
    EXPECT_EQ(kernels(log(), "writeValue32"), 2u);
}

TEST_F(Sim, KeepsTheEdgesBetweenNodesInEveryOrderThatTheyAllow)
{
    std::set<std::string> orders;
    for (int seed = 1; seed <= 16; seed++) {
        EXPECT_EQ(run_case("diamond", {{"SIMCUDA_SEED", std::to_string(seed)}}).out, "5 5\n");
        std::string order;
        for (const Executed &e : log().executed)
            if (e.in_graph)
                order += e.how.substr(e.how.rfind(':') + 1);
        orders.insert(order);
    }
    EXPECT_EQ(orders, (std::set<std::string>{"0123", "0213"}));
}

TEST_F(Sim, LetsABranchThatWaitsStandBehindTheOthers)
{
    for (const char *seed : {"1", "2", "3", "4"})
        EXPECT_EQ(run_case("waiting_branch", {{"SIMCUDA_SEED", seed}}).out, "held 600, then 4\n");
}

TEST_F(Sim, ReadsTheSourcesOfABatchWhenEachOfThemMustBeRead)
{
    EXPECT_EQ(run_case("batch_sources").out, "waited 1, 2 2, legacy stream 1, no order 1\n");
}

TEST_F(Sim, RunsABatchOfValuesInItsOrder)
{
    EXPECT_EQ(run_case("value_batch").out, "waits 600, then 6, bad flags 1\n");
}

TEST_F(Sim, HasPoolsOfTheProgram)
{
    EXPECT_EQ(run_case("pools", {{"SIMCUDA_STRICT", "abort"}}).out,
              "set 1, used 512 of 1536, destroyed 1, freed after it 0\n");
    EXPECT_EQ(kernels(log(), "memAlloc"), 2u);
    EXPECT_EQ(kernels(log(), "memFree"), 1u);
}

TEST_F(Sim, DoesNotGiveOutMemoryWhoseFreeIsRunning)
{
    EXPECT_EQ(run_case("allocated_while_freed",
                       {{"SIMCUDA_STRICT", "abort"}, {"SIMCUDA_DELAY_US", "100000"}})
                  .out,
              "0 0 0 0\n");
}

TEST_F(Sim, LogsTheBytesThatMovedAndWhereOperationsEnd)
{
    EXPECT_EQ(run_case("lined_up", {{"SIMCUDA_LOG_ENDS", "1"}}).out, "narrow pitch 1\n");
    std::string wide, copied;
    for (const Executed &e : log().executed)
        if (e.name == "memsetD16")
            wide = e.args.substr(e.args.rfind("h="));
        else if (e.name == "memcpyDtoD")
            copied = e.args.substr(e.args.rfind("h="));
    EXPECT_EQ(wide, copied) << "the same 32 bytes, written and then moved";
    const std::string text = ag_test::read_file(log_path());
    size_t ends = 0;
    for (size_t at = 0; (at = text.find("# D ", at)) != std::string::npos; at++)
        ends++;
    EXPECT_EQ(ends, log().executed.size());
}

struct Cost {
    const char *name;
    double launch_us, all_us; // measured: chain of 64, every second node of that kind
};

TEST_F(Sim, ChargesNodesAsTheyWereMeasured)
{
    const Cost measured[] = {
        {"cost_copies", 1.9, 62},         {"cost_memsets", 48, 91},  {"cost_records", 54, 103},
        {"cost_untimed_records", 28, 48}, {"cost_uploads", 60, 286},
    };
    for (const Cost &c : measured) {
        double host[2], all[2];
        for (int i = 0; i < 2; i++) {
            run_case(c.name, {{"LAUNCHES", i ? "20" : "10"}});
            host[i] = stat("host_us");
            all[i] = stat("elapsed_us");
        }
        const double sync_us = 1.5, launch = (host[1] - host[0]) / 10 - sync_us;
        EXPECT_NEAR(launch, c.launch_us, 2.0) << c.name;
        EXPECT_NEAR((all[1] - all[0]) / 10 - sync_us, c.all_us, c.all_us * 0.2) << c.name;
    }
}

TEST_F(Sim, UnmapsFreedMemoryWhenGuarding)
{
    EXPECT_EQ(run_case("host_reads_freed").status, 0);
    EXPECT_NE(run_case("host_reads_freed", {{"SIMCUDA_FREE", "guard"}}).status, 0);
}

} // namespace
