/* tests/shim/observe_memory_test.cc - the shim tells without allocating, so also when there is
 * nothing left. */
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "shim/observe/dump.h"
#include "shim/observe/log.h"
#include "shim/observe/stats.h"
#include "tests/shim/observe_case.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_IS_OURS 0 /* the sanitizer brings its own */
#else
#define ALLOCATOR_IS_OURS 1
#endif

namespace
{
std::atomic<bool> refuse{false};
std::atomic<int> asked{0};
} // namespace

#if ALLOCATOR_IS_OURS
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static bool refused()
{
    if (refuse) {
        asked++;
        errno = ENOMEM;
    }
    return refuse;
}
void *malloc(size_t size)
{
    return refused() ? nullptr : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return refused() ? nullptr : __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    return refused() ? nullptr : __libc_realloc(p, size);
}
}
#endif

using namespace ag_test;

namespace
{

class WithoutMemory : public InOwnDirectory
{
};

/* Loads options, opens the log, writes statistics and a dump, refuses a second dump directory. */
struct Work {
    explicit Work(const std::string &dir)
        : log("AUTOGRAPH_LOG=" + dir + "/log"), stats("AUTOGRAPH_STATS=" + dir + "/stats"),
          dump("AUTOGRAPH_DUMP=" + dir), bad("AUTOGRAPH_FLUSH_US=x")
    {
    }
    void run()
    {
        char *environment[] = {&log[0], &stats[0], &dump[0], &bad[0], nullptr};
        ag_options_load_as(&options, environment, false);
        ag_identity_read(&id);
        opened = ag_log_open(&options, &id);
        ag_log(AG_LEVEL_WARN, "%s %d %5.2f", "text", 7, 1.5);
        ag_stats_input in = {&options, &id, &counters, "1", 13000, "on", nullptr, true};
        written = ag_stats_write(&in);
        ag_dump_param param = {0, 8, 1};
        ag_dump_node node = {"k", {1, 1, 1}, {1, 1, 1}, 0, 1, &param, 1};
        struct ag_dump_graph g = {1, 1, &node, 1, 1, nullptr, 1, 1, 1};
        dumped = ag_dump_graph(&options, &g);
    }
    std::string log, stats, dump, bad;
    ag_options options;
    ag_identity id;
    ag_counters counters = {};
    bool opened = false;
    int written = -1, dumped = -1;
};

TEST_F(WithoutMemory, EverythingIsWrittenAndNobodyAllocates)
{
    if (!ALLOCATOR_IS_OURS) {
        GTEST_SKIP() << "NOT CHECKED: the sanitizer's allocator cannot be replaced";
    }
    Work work(dir);
    refuse = true;
    void *none = malloc(1); /* proves that refusing works at all */
    int before = asked;
    work.run();
    refuse = false;
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(before, 1);
    EXPECT_EQ(asked, 1) << "something allocated";
    EXPECT_TRUE(work.opened);
    EXPECT_EQ(work.written, 0);
    EXPECT_EQ(work.dumped, 0);
    EXPECT_EQ(names_in(dir).size(), 4u) << "log, statistics, two files of the graph";
    EXPECT_NE(read_file(path("log")).find("text 7  1.50"), std::string::npos);
}

TEST_F(WithoutMemory, AThreadWithASmallStackIsEnough)
{
    EXPECT_EQ(in_child([&] {
                  static Work *work;
                  work = new Work(dir);
                  pthread_attr_t attributes;
                  pthread_attr_init(&attributes);
                  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
                  pthread_t thread;
                  ASSERT_EQ(pthread_create(
                                &thread, &attributes,
                                [](void *) -> void * {
                                    work->run();
                                    return nullptr;
                                },
                                nullptr),
                            0);
                  pthread_join(thread, nullptr);
                  EXPECT_EQ(work->written, 0);
                  EXPECT_EQ(work->dumped, 0);
              }),
              0);
}

} // namespace
