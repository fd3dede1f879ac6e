/* tests/shim/log_test.cc - messages reach the user who asked, and nothing else is touched. */
#include "shim/observe/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/shim/observe_case.h"

using namespace ag_test;

namespace
{

class Log : public InOwnDirectory
{
  protected:
    void SetUp() override
    {
        InOwnDirectory::SetUp();
        ag_identity_read(&id);
    }
    void TearDown() override
    {
        ag_log_close();
        InOwnDirectory::TearDown();
    }
    bool open_log(const std::string &where, const std::string &level = "warn")
    {
        ag_options o = options_of({"AUTOGRAPH_LOG=" + where, "AUTOGRAPH_LOG_LEVEL=" + level});
        return ag_log_open(&o, &id);
    }
    // Sends the child's standard error to a file.
    void catch_stderr()
    {
        int fd = open(path("stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 2);
        close(fd);
    }
    ag_identity id;
};

TEST_F(Log, NothingIsEverPrintedWithoutALog)
{
    EXPECT_EQ(
        in_child([&] {
            catch_stderr();
            ag_log(AG_LEVEL_ERROR, "before");
            ag_options o = options_of({"AUTOGRAPH_FLUSH_US=bad", "AUTOGRAPH_LOG_LEVEL=debug"});
            EXPECT_TRUE(ag_log_open(&o, &id));
            ag_log(AG_LEVEL_ERROR, "after");
            EXPECT_FALSE(ag_log_wants(AG_LEVEL_ERROR));
            EXPECT_EQ(ag_log_trouble(), nullptr);
        }),
        0);
    EXPECT_TRUE(exists(path("stderr")));
    EXPECT_EQ(read_file(path("stderr")), "");
}

TEST_F(Log, AMessageIsOneLineWithItsLevel)
{
    ASSERT_TRUE(open_log(path("log")));
    ag_log(AG_LEVEL_WARN, "graph %u refused, code %d", 7u, 700);
    ag_log(AG_LEVEL_ERROR, "off");
    EXPECT_EQ(read_file(path("log")),
              "autograph: warn: graph 7 refused, code 700\nautograph: error: off\n");
}

TEST_F(Log, LessImportantMessagesAreDropped)
{
    const char *levels[] = {"error", "warn", "info", "debug"};
    for (size_t asked = 0; asked < 4; asked++) {
        std::string file = path(levels[asked]);
        ASSERT_TRUE(open_log(file, levels[asked]));
        for (int level = 0; level < 4; level++) {
            ag_log((ag_level)level, "x");
            EXPECT_EQ(ag_log_wants((ag_level)level), level <= (int)asked);
        }
        ag_log_close();
        std::string text = read_file(file);
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), (long)asked + 1);
    }
}

TEST_F(Log, TheWordStderrMeansStandardError)
{
    EXPECT_EQ(in_child([&] {
                  catch_stderr();
                  EXPECT_TRUE(open_log("stderr"));
                  ag_log(AG_LEVEL_WARN, "hello");
              }),
              0);
    EXPECT_EQ(read_file(path("stderr")), "autograph: warn: hello\n");
}

TEST_F(Log, ProblemsWithOptionsAreToldWhenTheLogOpens)
{
    ag_options o =
        options_of({"AUTOGRAPH_LOG=" + path("log"), "AUTOGRAPH_FLUSH_US=5",
                    "AUTOGRAPH_A=", "AUTOGRAPH_B=", "AUTOGRAPH_C=", "AUTOGRAPH_D=", "AUTOGRAPH_E=",
                    "AUTOGRAPH_F=", "AUTOGRAPH_G=", "AUTOGRAPH_H=", "AUTOGRAPH_I="});
    ASSERT_TRUE(ag_log_open(&o, &id));
    std::string text = read_file(path("log"));
    EXPECT_EQ(text.find("autograph: warn: AUTOGRAPH_FLUSH_US: '5' is not"), 0u) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
    EXPECT_NE(text.find("autograph: warn: 2 more problems with options\n"), std::string::npos);
}

TEST_F(Log, TheNameOfTheFileIsExpanded)
{
    ASSERT_TRUE(open_log(path("log.%p")));
    ag_log(AG_LEVEL_WARN, "x");
    EXPECT_TRUE(exists(path("log." + std::to_string(getpid()))));
}

TEST_F(Log, AFileIsAppendedToAndANewOneIsForTheUserAlone)
{
    mode_t before = umask(0);
    ASSERT_TRUE(open_log(path("log")));
    umask(before);
    ag_log(AG_LEVEL_WARN, "one");
    ag_log_close();
    ASSERT_TRUE(open_log(path("log")));
    ag_log(AG_LEVEL_WARN, "two");
    EXPECT_EQ(read_file(path("log")), "autograph: warn: one\nautograph: warn: two\n");
    EXPECT_EQ(mode_of(path("log")), 0600u);
}

TEST_F(Log, ALongMessageIsCutAndStillOneLine)
{
    ASSERT_TRUE(open_log(path("log")));
    for (size_t size : {900, 1004, 1005, 1006, 1007, 1008, 1009, 5000}) {
        ag_log_close();
        unlink(path("log").c_str());
        ASSERT_TRUE(open_log(path("log")));
        ag_log(AG_LEVEL_WARN, "%s", std::string(size, 'x').c_str());
        std::string text = read_file(path("log"));
        EXPECT_LE(text.size(), (size_t)AG_LOG_LINE);
        EXPECT_EQ(text.find('\n'), text.size() - 1);
        bool whole = text == "autograph: warn: " + std::string(size, 'x') + "\n";
        bool cut =
            text.size() == (size_t)AG_LOG_LINE - 1 && text.substr(text.size() - 4) == "...\n";
        EXPECT_TRUE(whole || cut) << size << " " << text.size();
        EXPECT_EQ(whole, size <= AG_LOG_LINE - 19) << size;
    }
}

TEST_F(Log, AValueCannotForgeALine)
{
    ASSERT_TRUE(open_log(path("log")));
    ag_log(AG_LEVEL_WARN, "kernel %s", "a\nautograph: error: b\x1b[2J\r\x7f");
    EXPECT_EQ(read_file(path("log")), "autograph: warn: kernel a?autograph: error: b?[2J??\n");
}

TEST_F(Log, ASymbolicLinkIsRefusedAndTheTroubleIsNamed)
{
    write_text(path("victim"), "precious");
    ASSERT_EQ(symlink(path("victim").c_str(), path("log").c_str()), 0);
    EXPECT_FALSE(open_log(path("log")));
    ag_log(AG_LEVEL_ERROR, "x");
    EXPECT_EQ(read_file(path("victim")), "precious");
    ASSERT_NE(ag_log_trouble(), nullptr);
    EXPECT_NE(std::string(ag_log_trouble()).find("the name is a symbolic link"), std::string::npos);
}

TEST_F(Log, AMissingDirectoryIsTroubleAndNothingElse)
{
    EXPECT_EQ(in_child([&] {
                  catch_stderr();
                  EXPECT_FALSE(open_log(path("no/log")));
                  ag_log(AG_LEVEL_ERROR, "x");
                  EXPECT_NE(ag_log_trouble(), nullptr);
              }),
              0);
    EXPECT_EQ(read_file(path("stderr")), "");
}

TEST_F(Log, AFifoThatNobodyReadsDoesNotHoldTheProgram)
{
    ASSERT_EQ(mkfifo(path("log").c_str(), 0600), 0);
    EXPECT_EQ(in_child([&] {
                  EXPECT_FALSE(open_log(path("log")));
                  ag_log(AG_LEVEL_ERROR, "x");
              }),
              0);
}

TEST_F(Log, AFullDiskLosesTheMessageOnly)
{
    ASSERT_TRUE(open_log("/dev/full"));
    errno = 77;
    for (int i = 0; i < 100; i++) {
        ag_log(AG_LEVEL_WARN, "x");
    }
    EXPECT_EQ(errno, 77);
}

TEST_F(Log, AClosedPipeDoesNotKillTheProgram)
{
    EXPECT_EQ(in_child([&] {
                  int ends[2];
                  ASSERT_EQ(pipe(ends), 0);
                  int screen = dup(2);
                  dup2(ends[1], 2);
                  close(ends[0]);
                  signal(SIGPIPE, SIG_DFL);
                  EXPECT_TRUE(open_log("stderr"));
                  ag_log(AG_LEVEL_WARN, "x");
                  sigset_t pending, mask;
                  sigpending(&pending);
                  EXPECT_FALSE(sigismember(&pending, SIGPIPE)) << "a signal was left behind";
                  sigprocmask(SIG_BLOCK, nullptr, &mask);
                  EXPECT_FALSE(sigismember(&mask, SIGPIPE)) << "the mask was changed";
                  dup2(screen, 2);
              }),
              0);
}

TEST_F(Log, ASignalThatWasPendingBeforeStaysPending)
{
    EXPECT_EQ(in_child([&] {
                  int ends[2];
                  ASSERT_EQ(pipe(ends), 0);
                  int screen = dup(2);
                  dup2(ends[1], 2);
                  close(ends[0]);
                  sigset_t set, pending;
                  sigemptyset(&set);
                  sigaddset(&set, SIGPIPE);
                  sigprocmask(SIG_BLOCK, &set, nullptr);
                  raise(SIGPIPE);
                  EXPECT_TRUE(open_log("stderr"));
                  ag_log(AG_LEVEL_WARN, "x");
                  sigpending(&pending);
                  EXPECT_TRUE(sigismember(&pending, SIGPIPE));
                  dup2(screen, 2);
              }),
              0);
}

TEST_F(Log, ASizeLimitDoesNotKillTheProgram)
{
    EXPECT_EQ(in_child([&] {
                  signal(SIGXFSZ, SIG_DFL);
                  rlimit limit = {50, 50};
                  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
                  EXPECT_TRUE(open_log(path("log")));
                  for (int i = 0; i < 20; i++) {
                      ag_log(AG_LEVEL_WARN, "number %d", i);
                  }
              }),
              0);
    EXPECT_LE(read_file(path("log")).size(), 50u);
}

TEST_F(Log, AFileThatTookOurDescriptorIsNotWrittenTo)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_TRUE(open_log(path("log")));
                  ag_log(AG_LEVEL_WARN, "one");
                  /* As a daemon does, before it opens its own files. */
                  int data = open(path("data").c_str(), O_WRONLY | O_CREAT, 0600);
                  int replaced = 0;
                  for (int fd = 3; fd < 1024; fd++) {
                      if (fd != data && close(fd) == 0) {
                          dup2(data, fd);
                          replaced++;
                      }
                  }
                  EXPECT_GE(replaced, 1);
                  ag_log(AG_LEVEL_WARN, "two");
                  ag_log(AG_LEVEL_WARN, "three");
              }),
              0);
    EXPECT_EQ(read_file(path("data")), "");
    EXPECT_EQ(read_file(path("log")),
              "autograph: warn: one\nautograph: warn: two\nautograph: warn: three\n");
}

TEST_F(Log, SmallNumbersAreLeftToTheProgram)
{
    int before = open("/dev/null", O_RDONLY);
    close(before);
    ASSERT_TRUE(open_log(path("log")));
    int after = open("/dev/null", O_RDONLY);
    close(after);
    EXPECT_EQ(before, after);
    EXPECT_EQ(in_child([&] {
                  ag_log_close();
                  rlimit limit = {64, 64};
                  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
                  ASSERT_TRUE(open_log(path("few"))) << "but a process of few files still logs";
                  ag_log(AG_LEVEL_WARN, "x");
              }),
              0);
    EXPECT_EQ(read_file(path("few")), "autograph: warn: x\n");
}

TEST_F(Log, ErrnoIsNeverChanged)
{
    errno = 77;
    ASSERT_TRUE(open_log(path("log")));
    ag_log(AG_LEVEL_WARN, "x");
    ag_log(AG_LEVEL_DEBUG, "y");
    ag_log_close();
    EXPECT_FALSE(open_log(path("no/log")));
    EXPECT_EQ(errno, 77);
}

TEST_F(Log, LinesOfManyThreadsStayWhole)
{
    ASSERT_TRUE(open_log(path("log")));
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; t++) {
        threads.emplace_back([t] {
            for (int i = 0; i < 200; i++) {
                ag_log(AG_LEVEL_WARN, "thread %02d line %03d %s", t, i,
                       std::string(300, 'x').c_str());
            }
        });
    }
    for (auto &t : threads) {
        t.join();
    }
    std::istringstream lines(read_file(path("log")));
    std::vector<int> next(16, 0);
    int count = 0;
    for (std::string line; std::getline(lines, line); count++) {
        int t = -1, i = -1;
        ASSERT_EQ(sscanf(line.c_str(), "autograph: warn: thread %d line %d", &t, &i), 2) << line;
        ASSERT_EQ(line.size(), strlen("autograph: warn: thread 00 line 000 ") + 300);
        ASSERT_EQ(next.at((size_t)t)++, i) << "a line was lost";
    }
    EXPECT_EQ(count, 16 * 200);
}

TEST_F(Log, AThreadThatIsCancelledDoesNotEndInsideTheLog)
{
    ASSERT_TRUE(open_log(path("log")));
    static bool came_back;
    came_back = false;
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void *) -> void * {
                      pthread_cancel(pthread_self());
                      ag_log(AG_LEVEL_WARN, "x");
                      came_back = true;
                      pthread_testcancel();
                      return nullptr;
                  },
                  nullptr),
              0);
    void *result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(came_back);
    EXPECT_EQ(read_file(path("log")), "autograph: warn: x\n");
}

} // namespace
