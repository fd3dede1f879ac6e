/* tests/shim/options_test.cc - the environment as the user may have left it. */
#include <cerrno>
#include <cinttypes>
#include <string>

#include "tests/shim/observe_case.h"

using namespace ag_test;

namespace
{

const ag_option_row *row_named(const std::string &name)
{
    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (name == rows[i].env) {
            return &rows[i];
        }
    }
    return nullptr;
}

std::string in_force(const ag_options &o, const std::string &name)
{
    char text[AG_OPTION_PATH];
    return ag_options_value(&o, row_named(name), text, sizeof text);
}

TEST(Options, EveryDefaultStandsInAnEmptyEnvironment)
{
    ag_options o;
    ag_options_load(&o, nullptr);
    EXPECT_EQ(o.mode, (uint32_t)AG_MODE_ON);
    EXPECT_EQ(o.log_level, (uint32_t)AG_LEVEL_WARN);
    EXPECT_STREQ(o.log, "");
    EXPECT_STREQ(o.stats, "");
    EXPECT_STREQ(o.dump, "");
    EXPECT_EQ(o.flush_us, 100u);
    EXPECT_EQ(o.min_seen, 3u);
    EXPECT_EQ(o.max_segment, 256u);
    EXPECT_EQ(o.max_bytes, 256u << 20);
    EXPECT_EQ(o.verify, 0u);
    EXPECT_EQ(o.given, 0u);
    EXPECT_EQ(o.problem_count, 0u);
}

TEST(Options, EveryDefaultOfTheTableIsAValueThatAUserMayWrite)
{
    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    ASSERT_GT(count, 0u);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].value[0] == '\0') {
            continue;
        }
        ag_options o = options_of({std::string(rows[i].env) + "=" + rows[i].value});
        EXPECT_EQ(o.problem_count, 0u) << o.problems[0];
        EXPECT_EQ(o.given, 1u << i) << rows[i].env;
        EXPECT_EQ(in_force(o, rows[i].env), rows[i].value);
    }
}

TEST(Options, WordsStandInTheOrderOfTheirEnum)
{
    EXPECT_EQ(options_of({"AUTOGRAPH=on"}).mode, (uint32_t)AG_MODE_ON);
    EXPECT_EQ(options_of({"AUTOGRAPH=off"}).mode, (uint32_t)AG_MODE_OFF);
    EXPECT_EQ(options_of({"AUTOGRAPH=observe"}).mode, (uint32_t)AG_MODE_OBSERVE);
    EXPECT_EQ(options_of({"AUTOGRAPH=0"}).mode, (uint32_t)AG_MODE_OFF) << "what people try first";
    EXPECT_EQ(options_of({"AUTOGRAPH=1"}).mode, (uint32_t)AG_MODE_ON);
    const char *levels[] = {"error", "warn", "info", "debug"};
    for (uint32_t i = 0; i < 4; i++) {
        ag_options o = options_of({std::string("AUTOGRAPH_LOG_LEVEL=") + levels[i]});
        EXPECT_EQ(o.log_level, i);
        EXPECT_EQ(in_force(o, "AUTOGRAPH_LOG_LEVEL"), levels[i]);
    }
}

TEST(Options, AWordThatIsOnlyPartOfAnotherIsRefused)
{
    for (const char *bad : {"o", "of", "offf", "on|off", "|", "ON", " on", "2", "on,1", ","}) {
        ag_options o = options_of({std::string("AUTOGRAPH=") + bad});
        EXPECT_EQ(o.mode, (uint32_t)AG_MODE_ON) << bad;
        EXPECT_EQ(o.problem_count, 1u) << bad;
        EXPECT_EQ(o.given, 0u) << bad;
    }
}

TEST(Options, NumbersAreTakenAtTheirBoundsAndNotBeyond)
{
    size_t count, numbers = 0;
    const ag_option_row *rows = ag_options_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const ag_option_row &r = rows[i];
        if (r.kind != AG_OPTION_NUMBER && r.kind != AG_OPTION_BYTES) {
            continue;
        }
        numbers++;
        auto field_of = [&](uint64_t written, uint32_t *problems) {
            ag_options o = options_of({std::string(r.env) + "=" + std::to_string(written)});
            *problems = o.problem_count;
            return *(const uint64_t *)((const char *)&o + r.offset);
        };
        uint32_t problems;
        uint64_t usual = field_of(r.least - 1, &problems);
        EXPECT_EQ(problems, 1u) << r.env;
        EXPECT_EQ(field_of(r.least, &problems), r.least);
        EXPECT_EQ(problems, 0u) << r.env;
        EXPECT_EQ(field_of(r.most, &problems), r.most);
        EXPECT_EQ(problems, 0u) << r.env;
        EXPECT_EQ(field_of(r.most + 1, &problems), usual);
        EXPECT_EQ(problems, 1u) << r.env;
    }
    EXPECT_EQ(numbers, 5u);
}

TEST(Options, WhatIsNoNumberLeavesTheDefault)
{
    for (const char *bad : {"x", "-50", "+50", "50x", "0x50", " 50", "50 ", "5 0", "1e3", "50K",
                            "K", "99999999999999999999999999", "18446744073709551666"}) {
        ag_options o = options_of({std::string("AUTOGRAPH_FLUSH_US=") + bad});
        EXPECT_EQ(o.flush_us, 100u) << bad;
        EXPECT_EQ(o.problem_count, 1u) << bad;
    }
}

TEST(Options, BytesTakeASuffixAndNoOverflow)
{
    EXPECT_EQ(options_of({"AUTOGRAPH_MAX_BYTES=100000"}).max_bytes, 100000u);
    EXPECT_EQ(options_of({"AUTOGRAPH_MAX_BYTES=100K"}).max_bytes, 100u << 10);
    EXPECT_EQ(options_of({"AUTOGRAPH_MAX_BYTES=3m"}).max_bytes, 3u << 20);
    EXPECT_EQ(options_of({"AUTOGRAPH_MAX_BYTES=2G"}).max_bytes, 2ull << 30);
    EXPECT_EQ(in_force(options_of({"AUTOGRAPH_MAX_BYTES=100000"}), "AUTOGRAPH_MAX_BYTES"),
              "100000");
    EXPECT_EQ(in_force(options_of({"AUTOGRAPH_MAX_BYTES=2048M"}), "AUTOGRAPH_MAX_BYTES"), "2G");
    for (const char *bad :
         {"1T", "1KB", "1KK", "M", "18014398509481984K", "17179869185G", "1.5G"}) {
        ag_options o = options_of({std::string("AUTOGRAPH_MAX_BYTES=") + bad});
        EXPECT_EQ(o.max_bytes, 256u << 20) << bad;
        EXPECT_EQ(o.problem_count, 1u) << bad;
    }
}

TEST(Options, AProblemNamesTheOptionTheValueAndWhatWouldDo)
{
    ag_options o = options_of({"AUTOGRAPH_FLUSH_US=5"});
    EXPECT_STREQ(o.problems[0],
                 "AUTOGRAPH_FLUSH_US: '5' is not 10..100000, the default 100 stands");
}

TEST(Options, AnUnknownNameIsAProblemButOnlyIfItIsOurs)
{
    ag_options o = options_of({"AUTOGRAPH_STAT=1", "AUTOGRAPHX=1", "AUTOGRAPHS_LOG=1", "LOG=1",
                               "XAUTOGRAPH_LOG=1", "AUTOGRAPH_NOTHING", "AUTOGRAPH", ""});
    EXPECT_EQ(o.problem_count, 1u);
    EXPECT_STREQ(o.problems[0], "AUTOGRAPH_STAT: there is no such option");
}

TEST(Options, OfANameThatIsThereTwiceTheFirstCounts)
{
    ag_options o = options_of({"AUTOGRAPH_MIN_SEEN=7", "AUTOGRAPH_MIN_SEEN=8"});
    EXPECT_EQ(o.min_seen, 7u);
    o = options_of({"AUTOGRAPH_MIN_SEEN=bad", "AUTOGRAPH_MIN_SEEN=8"});
    EXPECT_EQ(o.min_seen, 3u);
}

TEST(Options, AnEmptyValueCountsAsNotGiven)
{
    ag_options o = options_of({"AUTOGRAPH=", "AUTOGRAPH_LOG=", "AUTOGRAPH_FLUSH_US="});
    EXPECT_EQ(o.given, 0u);
    EXPECT_EQ(o.problem_count, 0u);
    EXPECT_STREQ(o.log, "");
}

TEST(Options, MoreProblemsThanFitAreCounted)
{
    std::vector<std::string> environment;
    for (int i = 0; i < 20; i++) {
        environment.push_back("AUTOGRAPH_" + std::string(500, 'A') + "=" + std::string(500, 'B'));
    }
    ag_options o = options_of(environment);
    EXPECT_EQ(o.problem_count, 20u);
    for (const auto &problem : o.problems) {
        EXPECT_LT(strnlen(problem, sizeof problem), sizeof problem);
    }
}

class OptionPaths : public InOwnDirectory
{
};

TEST_F(OptionPaths, TheSpecialWordOfTheLogStaysAsItIs)
{
    EXPECT_STREQ(options_of({"AUTOGRAPH_LOG=stderr"}).log, "stderr");
    EXPECT_STREQ(options_of({"AUTOGRAPH_LOG=/stderr"}).log, "/stderr");
}

TEST_F(OptionPaths, RelativePathsAreFixedWhereTheProgramStarted)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_EQ(mkdir(path("50%p").c_str(), 0700), 0);
                  ASSERT_EQ(chdir(path("50%p").c_str()), 0);
                  ag_options o = options_of(
                      {"AUTOGRAPH_LOG=log.%p", "AUTOGRAPH_STATS=1", "AUTOGRAPH_DUMP=graphs"});
                  EXPECT_EQ(o.problem_count, 0u);
                  EXPECT_EQ(o.log, path("50%%p/log.%p"));
                  EXPECT_EQ(o.stats, path("50%%p/autograph-stats.%h.%p.%t.json"));
                  EXPECT_EQ(o.dump, path("50%p/graphs"));
              }),
              0);
}

TEST_F(OptionPaths, APathInADirectoryThatIsGoneIsAProblem)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_EQ(mkdir(path("gone").c_str(), 0700), 0);
                  ASSERT_EQ(chdir(path("gone").c_str()), 0);
                  ASSERT_EQ(rmdir(path("gone").c_str()), 0);
                  errno = 77;
                  ag_options o = options_of({"AUTOGRAPH_STATS=1", "AUTOGRAPH_LOG=/tmp/log"});
                  EXPECT_EQ(errno, 77);
                  EXPECT_EQ(o.problem_count, 1u);
                  EXPECT_STREQ(o.stats, "");
                  EXPECT_STREQ(o.log, "/tmp/log");
              }),
              0);
}

TEST_F(OptionPaths, APathThatIsTooLongIsAProblemAndNotCut)
{
    ag_options o = options_of({"AUTOGRAPH_DUMP=/" + std::string(AG_OPTION_PATH, 'a')});
    EXPECT_EQ(o.problem_count, 1u);
    EXPECT_STREQ(o.dump, "");
    o = options_of({"AUTOGRAPH_DUMP=/" + std::string(AG_OPTION_PATH - 2, 'a')});
    EXPECT_EQ(o.problem_count, 0u);
    EXPECT_EQ(strlen(o.dump), (size_t)AG_OPTION_PATH - 1);
}

TEST(Options, AListThatIsTooLongIsAProblemAndNotCut)
{
    ag_options o = options_of({"AUTOGRAPH_KERNELS=!" + std::string(AG_OPTION_PATH, 'a')});
    EXPECT_EQ(o.problem_count, 1u);
    EXPECT_STREQ(o.kernels, "");
    o = options_of({"AUTOGRAPH_KERNELS=!" + std::string(AG_OPTION_PATH - 2, 'a')});
    EXPECT_EQ(o.problem_count, 0u);
    EXPECT_EQ(strlen(o.kernels), (size_t)AG_OPTION_PATH - 1);
}

TEST(Options, AProgramWithMoreRightsThanItsUserIsLeftAlone)
{
    std::string log = "AUTOGRAPH_LOG=/tmp/log", on = "AUTOGRAPH=on";
    char *list[] = {&log[0], &on[0], nullptr};
    ag_options o;
    ag_options_load_as(&o, list, true);
    EXPECT_EQ(o.mode, (uint32_t)AG_MODE_OFF);
    EXPECT_STREQ(o.log, "");
    EXPECT_EQ(o.given, 0u);
}

TEST(Options, TheDocumentIsWhatTheTableGenerates)
{
    auto r = run({runfile("shim/observe/options_doc"), "--markdown"}, {}, 20);
    ASSERT_EQ(r.status, 0) << r.err;
    ASSERT_NE(r.out, "");
    EXPECT_EQ(read_file(runfile("docs/OPTIONS.md")), r.out)
        << "bazel run //shim/observe:options_doc -- --markdown > docs/OPTIONS.md";
}

TEST(Options, TheHelpAndTheDocumentNameEveryOption)
{
    for (const char *what : {"--help", "--markdown"}) {
        auto r = run({runfile("shim/observe/options_doc"), what}, {}, 20);
        size_t count;
        const ag_option_row *rows = ag_options_rows(&count);
        for (size_t i = 0; i < count; i++) {
            EXPECT_NE(r.out.find(rows[i].env), std::string::npos) << what << " " << rows[i].env;
        }
    }
    EXPECT_EQ(run({runfile("shim/observe/options_doc")}, {}, 20).status, 2);
}

} // namespace
