/* tests/shim/stats_test.cc - the statistics file, read back. Each case writes from a process of its
 * own. */
#include "shim/observe/stats.h"

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "shim/observe/log.h"
#include "tests/shim/observe_case.h"

using namespace ag_test;

namespace
{

const char *const names[] = {"cuInit", "cuLaunchKernel", "cuStreamSynchronize", "cuMemFree_v2"};

/* Everything one write needs, in the process that makes it. */
struct Writer {
    explicit Writer(std::vector<std::string> environment) : options(options_of(environment))
    {
        ag_identity_read(&id);
        counters.rows = 4;
        counters.names = names;
        counters.calls = calls;
        counters.drains = drains;
        in = {&options, &id, &counters, "1.2.3", 13000, "on", nullptr, false};
    }
    int write(bool last = false)
    {
        in.last = last;
        return ag_stats_write(&in);
    }
    ag_options options;
    ag_identity id;
    ag_counters counters = {};
    ag_counter calls[4] = {}, drains[4] = {};
    ag_stats_input in;
};

class Stats : public InOwnDirectory
{
  protected:
    std::string file() const
    {
        return path("stats.json");
    }
    std::string asked() const
    {
        return "AUTOGRAPH_STATS=" + file();
    }
};

TEST_F(Stats, NobodyAskedNothingIsWritten)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_EQ(chdir(dir.c_str()), 0);
                  Writer w({});
                  EXPECT_EQ(w.write(true), 0);
              }),
              0);
    EXPECT_TRUE(names_in(dir).empty());
}

TEST_F(Stats, EveryMemberOfTheSchemaIsThere)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked(), "AUTOGRAPH_FLUSH_US=5", "AUTOGRAPH_MAX_BYTES=1G"});
                  EXPECT_EQ(w.write(), 0);
              }),
              0);
    EXPECT_TRUE(accepted_by_json_tool(file()));
    EXPECT_EQ(ask_json(file(), "' '.join(d)"),
              "schema version program pid host start written seconds complete driver_version mode "
              "off_reason log_trouble options options_given option_problems counters shares eager "
              "calls drains");
    EXPECT_EQ(ask_json(file(), "d['schema'],d['version'],d['driver_version'],d['mode']"),
              "('autograph-stats/1', '1.2.3', 13000, 'on')");
    EXPECT_EQ(ask_json(file(), "d['off_reason'],d['log_trouble'],d['complete']"),
              "(None, None, False)");
    EXPECT_EQ(ask_json(file(), "d['pid']>0 and d['host']!='' and 0<=d['seconds']<60 and "
                               "d['written']>=d['start']>1.7e9"),
              "True");
    EXPECT_EQ(ask_json(file(), "'stats_test' in d['program']"), "True");
    EXPECT_EQ(ask_json(file(), "d['options']['AUTOGRAPH'],d['options']['AUTOGRAPH_MAX_BYTES'],"
                               "d['options']['AUTOGRAPH_FLUSH_US'],len(d['options'])"),
              "('on', '1G', '100', 14)");
    EXPECT_EQ(ask_json(file(), "d['options_given']"), "['AUTOGRAPH_STATS', 'AUTOGRAPH_MAX_BYTES']");
    EXPECT_EQ(ask_json(file(), "len(d['option_problems'])"), "1");
    EXPECT_EQ(ask_json(file(), "d['eager'],d['calls'],d['drains']"), "([], {}, {})");
    EXPECT_EQ(ask_json(file(), "set(d['counters'].values()),set(d['shares'].values())"),
              "({0}, {0})");
    EXPECT_EQ(mode_of(file()), 0600u);
}

/* Gives each counter a value of its own, from 1000 on. */
void count_each(ag_counters *c)
{
    uint64_t n = 1000;
#define AG_COUNTER(name, sentence) ag_count(&c->name, n++);
    AG_COUNTERS(AG_COUNTER)
#undef AG_COUNTER
}

TEST_F(Stats, EachCounterIsWrittenUnderItsOwnName)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  count_each(&w.counters);
                  EXPECT_EQ(w.write(), 0);
              }),
              0);
    std::string expected;
    uint64_t n = 1000;
#define AG_COUNTER(name, sentence) expected += "'" #name "': " + std::to_string(n++) + ", ";
    AG_COUNTERS(AG_COUNTER)
#undef AG_COUNTER
    expected.resize(expected.size() - 2);
    EXPECT_EQ(ask_json(file(), "d['counters']"), "{" + expected + "}");
}

TEST_F(Stats, SharesAreOfTheLaunchesSeen)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  ag_count(&w.counters.launches_seen, 1000);
                  ag_count(&w.counters.launches_held, 900);
                  ag_count(&w.counters.launches_replayed, 800);
                  ag_count(&w.counters.graph_launches, 25);
                  ag_count(&w.counters.nodes_patched, 400);
                  EXPECT_EQ(w.write(), 0);
              }),
              0);
    EXPECT_EQ(ask_json(file(), "d['shares']"),
              "{'held': 0.9, 'replayed': 0.8, 'patched': 0.5, 'launches_per_graph': 32}");
}

TEST_F(Stats, EagerReasonsComeWithASentenceTheMostFrequentFirst)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  ag_count(&w.counters.eager[AG_REFUSAL_UNSEEN], 5);
                  ag_count(&w.counters.eager[AG_REFUSAL_OFF], 7);
                  ag_count(&w.counters.eager[AG_REFUSAL_SHORT], 6);
                  EXPECT_EQ(w.write(), 0);
              }),
              0);
    EXPECT_EQ(ask_json(file(), "[(e['reason'],e['count']) for e in d['eager']]"),
              "[('OFF', 7), ('SHORT', 6), ('UNSEEN', 5)]");
    EXPECT_EQ(ask_json(file(), "d['eager'][0]['sentence']"), ag_refusal_sentence(AG_REFUSAL_OFF));
}

TEST_F(Stats, CallsAndDrainsAreListedByEntryPointWithoutTheZeros)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  ag_count(&w.calls[1], 12);
                  ag_count(&w.calls[3], 2);
                  ag_count(&w.drains[3], 1);
                  EXPECT_EQ(w.write(), 0);
              }),
              0);
    EXPECT_EQ(ask_json(file(), "d['calls'],d['drains']"),
              "({'cuLaunchKernel': 12, 'cuMemFree_v2': 2}, {'cuMemFree_v2': 1})");
}

TEST_F(Stats, AProgramWhoseTableIsNotThereYetCanStillSayWhyItIsOff)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  w.counters.rows = 0;
                  w.counters.names = nullptr;
                  w.counters.calls = w.counters.drains = nullptr;
                  w.in.mode = "off";
                  w.in.off_reason = "driver older than \"12.4\"";
                  w.in.driver_version = 0;
                  EXPECT_EQ(w.write(true), 0);
              }),
              0);
    EXPECT_EQ(ask_json(file(), "d['mode'],d['off_reason'],d['driver_version'],d['complete']"),
              "('off', 'driver older than \"12.4\"', 0, True)");
}

TEST_F(Stats, TheNumberOneMeansAFileNamedByHostProcessAndStartWhereTheProgramStarted)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_EQ(chdir(dir.c_str()), 0);
                  Writer w({"AUTOGRAPH_STATS=1"});
                  ASSERT_EQ(chdir("/"), 0);
                  EXPECT_EQ(w.write(), 0);
                  std::string name = std::string("autograph-stats.") + w.id.host + "." +
                                     std::to_string(getpid()) + "." + std::to_string(w.id.start) +
                                     ".json";
                  EXPECT_EQ(names_in(dir), std::vector<std::string>{name});
              }),
              0);
    EXPECT_EQ(names_in(dir).size(), 1u);
}

TEST_F(Stats, ALaterWriteReplacesTheFileAndTheLastIsTheLast)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  for (int i = 0; i < 5; i++) {
                      ag_count(&w.counters.launches_seen, 1);
                      EXPECT_EQ(w.write(), 0);
                  }
                  ag_count(&w.counters.launches_seen, 100);
                  EXPECT_EQ(w.write(true), 0);
                  ag_count(&w.counters.launches_seen, 1000);
                  EXPECT_EQ(w.write(), 0);
                  EXPECT_EQ(w.write(true), 0);
              }),
              0);
    EXPECT_EQ(ask_json(file(), "d['counters']['launches_seen'],d['complete']"), "(105, True)");
    EXPECT_EQ(names_in(dir), std::vector<std::string>{"stats.json"});
}

TEST_F(Stats, TheFileIsCompleteAtEveryMomentUntilAKill)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  std::thread writer([&] {
                      for (;;) {
                          w.write();
                      }
                  });
                  for (int reads = 0; reads < 500;) {
                      std::string text = read_file(file());
                      if (text == "") {
                          continue; /* the first is not there yet */
                      }
                      reads++;
                      ASSERT_EQ(text.substr(text.size() - 3), "\n}\n");
                  }
                  kill(getpid(), SIGKILL);
              }),
              128 + SIGKILL);
    EXPECT_TRUE(accepted_by_json_tool(file()));
}

TEST_F(Stats, ManyWritersAtOnceEndWithTheLast)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  std::atomic<bool> stop{false};
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 6; i++) {
                      threads.emplace_back([&, in = w.in] {
                          while (!stop) {
                              ag_count(&w.counters.launches_seen, 1);
                              EXPECT_EQ(ag_stats_write(&in), 0);
                          }
                      });
                  }
                  usleep(50000);
                  EXPECT_EQ(w.write(true), 0);
                  usleep(20000);
                  stop = true;
                  for (auto &t : threads) {
                      t.join();
                  }
              }),
              0);
    EXPECT_EQ(ask_json(file(), "d['complete']"), "True");
    EXPECT_EQ(names_in(dir), std::vector<std::string>{"stats.json"});
}

TEST_F(Stats, AForkedChildWritesNothing)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  EXPECT_EQ(in_child([&] { EXPECT_EQ(w.write(true), 0); }), 0);
                  EXPECT_FALSE(exists(file()));
                  EXPECT_EQ(w.write(true), 0);
              }),
              0);
    EXPECT_TRUE(exists(file()));
}

TEST_F(Stats, AFailureIsOneLineInTheLogOnce)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({"AUTOGRAPH_STATS=" + path("no/stats"), "AUTOGRAPH_LOG=" + path("log")});
                  ASSERT_TRUE(ag_log_open(&w.options, &w.id));
                  errno = 77;
                  for (int i = 0; i < 3; i++) {
                      EXPECT_EQ(w.write(), ENOENT);
                  }
                  EXPECT_EQ(w.write(true), ENOENT);
                  EXPECT_EQ(errno, 77);
              }),
              0);
    EXPECT_EQ(read_file(path("log")), "autograph: warn: statistics: " + path("no/stats") +
                                          ": no such directory (errno 2)\n");
}

TEST_F(Stats, AFullDiskKeepsTheOldFileAndSaysSo)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked(), "AUTOGRAPH_LOG=" + path("log")});
                  ASSERT_TRUE(ag_log_open(&w.options, &w.id));
                  EXPECT_EQ(w.write(), 0);
                  rlimit limit = {500, 500};
                  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
                  EXPECT_EQ(w.write(true), EFBIG);
              }),
              0);
    EXPECT_NE(read_file(path("log")).find("file size limit reached"), std::string::npos);
    EXPECT_EQ(ask_json(file(), "d['complete']"), "False");
    EXPECT_EQ(names_in(dir), (std::vector<std::string>{"log", "stats.json"}));
}

TEST_F(Stats, ASymbolicLinkIsNotWrittenThrough)
{
    write_text(path("victim"), "precious");
    ASSERT_EQ(symlink(path("victim").c_str(), file().c_str()), 0);
    EXPECT_EQ(in_child([&] {
                  Writer w({asked()});
                  EXPECT_EQ(w.write(true), ELOOP);
              }),
              0);
    EXPECT_EQ(read_file(path("victim")), "precious");
}

TEST_F(Stats, ALogThatCouldNotBeOpenedIsNamedHere)
{
    EXPECT_EQ(in_child([&] {
                  Writer w({asked(), "AUTOGRAPH_LOG=" + path("no/log")});
                  EXPECT_FALSE(ag_log_open(&w.options, &w.id));
                  EXPECT_EQ(w.write(true), 0);
              }),
              0);
    EXPECT_NE(ask_json(file(), "d['log_trouble']").find("no such directory"), std::string::npos);
}

TEST(Counters, TheLargestValueStays)
{
    ag_counter c{5};
    ag_count_max(&c, 3);
    EXPECT_EQ(ag_count_read(&c), 5u);
    ag_count_max(&c, 9);
    EXPECT_EQ(ag_count_read(&c), 9u);
    ag_count_down(&c, 2);
    EXPECT_EQ(ag_count_read(&c), 7u);
}

TEST(Counters, ManyThreadsLoseNoCount)
{
    ag_counter sum{0}, most{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            for (uint64_t i = 0; i < 20000; i++) {
                ag_count(&sum, 1);
                ag_count_max(&most, i * 8 + t);
            }
        });
    }
    for (auto &t : threads) {
        t.join();
    }
    EXPECT_EQ(ag_count_read(&sum), 160000u);
    EXPECT_EQ(ag_count_read(&most), 19999u * 8 + 7);
}

} // namespace
