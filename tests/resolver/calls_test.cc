// tests/resolver/calls_test.cc - a call through the shim carries what a call without it carries:
// every argument, the vector registers, the driver's answer, errno. Each function is called in a
// process of its own, so that the first call of the process (which initialises the shim) is tested
// 674 times.
#include "tests/resolver/harness.h"
#include "tests/resolver/signatures.h"

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace resolver
{
namespace
{

std::map<std::string, std::string> classes()
{
    std::ifstream in("shim/hooks.def");
    std::map<std::string, std::string> all;
    const std::regex row("^AG_HOOK\\((\\w+), (\\w+)\\).*");
    std::smatch m;
    for (std::string line; std::getline(in, line);)
        if (std::regex_match(line, m, row))
            all[m[1]] = m[2];
    return all;
}

std::vector<std::string> names()
{
    std::ifstream in("tests/resolver/data/driver-580.159-exports.txt");
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);)
        all.push_back(line);
    return all;
}

// One line of marked_call_report, taken apart.
struct Report {
    std::string name, answer;
    int arrivals = 0;                // calls that came to the row of the name
    std::string ints, floats;        // of the last marked one; empty when none carried the marks
    std::vector<std::string> others; // rows of other calls made meanwhile
};

Report parse(const std::string &line)
{
    Report r;
    std::istringstream in(line);
    std::string word;
    in >> r.name >> word >> r.answer;
    while (in >> word) {
        if (word == "|") {
            in >> word;
            if (word == r.name)
                r.arrivals++;
            else
                r.others.push_back(word);
        } else if (word == "ints") {
            in >> r.ints;
        } else if (word == "floats") {
            in >> r.floats;
        }
    }
    return r;
}

// A thunk forwards everything. A hook in C forwards what the function is declared to take.
void expect_arrived(const Report &r, const std::string &hook_class)
{
    const Signature &s = signature_of(r.name);
    const bool whole = hook_class == "PURE" || hook_class == "DRAIN_ALL" || !s.declared;
    if (whole) {
        EXPECT_EQ("88888888888", r.ints) << r.name << ", " << hook_class;
        EXPECT_EQ("11111111", r.floats) << r.name << ", " << hook_class;
        return;
    }
    if (!s.bytes.empty()) {
        ASSERT_GE(r.ints.size(), s.bytes.size()) << r.name << ": the first argument did not arrive";
    }
    for (size_t i = 0; i < s.bytes.size(); i++)
        EXPECT_GE(r.ints[i] - '0', s.bytes[i])
            << r.name << ", argument word " << i << ", " << hook_class;
    for (int i = 0; i < s.floats; i++)
        EXPECT_EQ('1', r.floats[static_cast<size_t>(i)]) << r.name << ", vector register " << i;
}

// Calls that the program did not make: only those that read.
void expect_only_getters(const Report &r, const std::map<std::string, std::string> &classes)
{
    for (const std::string &other : r.others) {
        const std::string &c = classes.at(other);
        EXPECT_TRUE(c == "PURE" || c == "LOOKUP")
            << r.name << " made the shim call " << other << ", " << c;
    }
}

bool asked_by_the_shim(const std::string &name)
{
    return name == "cuDriverGetVersion" || name.compare(0, 16, "cuGetProcAddress") == 0;
}

void expect_calls_carry_everything(const std::string &program)
{
    const std::map<std::string, std::string> known = classes();
    const std::vector<std::string> native = lines(run({{program, "rows", "0", "674"}}, false).out);
    ASSERT_EQ(674u, native.size());
    ASSERT_EQ(674u, known.size());
    const size_t chunk = RESOLVER_SANITIZED ? 32 : 1;
    for (size_t row = 0; row < 674; row += chunk) {
        const Outcome o =
            run({{program, "rows", std::to_string(row), std::to_string(chunk)}}, true);
        ASSERT_EQ(0, o.exit) << names()[row] << "\n" << o.out;
        const std::vector<std::string> with = lines(o.out);
        ASSERT_EQ(std::min(chunk, 674 - row), with.size()) << o.out;
        for (size_t i = 0; i < with.size(); i++) {
            const Report golden = parse(native[row + i]), r = parse(with[i]);
            EXPECT_EQ(golden.name, r.name);
            EXPECT_EQ("88888888888", golden.ints);
            EXPECT_EQ(golden.answer, r.answer) << with[i];
            if (!asked_by_the_shim(r.name)) {
                EXPECT_EQ(1, r.arrivals) << with[i];
            }
            expect_arrived(r, known.at(r.name));
            expect_only_getters(r, known);
        }
    }
}

// C1, C2; DESIGN 2: by ELF binding.
TEST(Calls, BoundByTheLoaderCarryEveryArgumentOfEveryFunction)
{
    expect_calls_carry_everything("case_linked");
}

// C1, C2; DESIGN 2: through dlsym.
TEST(Calls, ThroughDlsymCarryEveryArgumentOfEveryFunction)
{
    expect_calls_carry_everything("case");
}

// All 674 in one process: whatever one call leaves behind does not change what the next one
// carries.
TEST(Calls, OfEveryFunctionOneAfterTheOtherArriveOnceEach)
{
    const std::map<std::string, std::string> known = classes();
    const Outcome o = run({{"case_linked", "rows", "0", "674"}, "driver", {"FAKE_RESULT=1"}}, true);
    ASSERT_EQ(0, o.exit) << o.out;
    ASSERT_EQ(674u, lines(o.out).size());
    for (const std::string &line : lines(o.out)) {
        const Report r = parse(line);
        if (!asked_by_the_shim(r.name)) {
            EXPECT_EQ(1, r.arrivals) << line;
        }
        expect_arrived(r, known.at(r.name));
        expect_only_getters(r, known);
    }
}

// AUTOGRAPH=off is a table of bare jumps; observe changes nothing either.
TEST(Calls, ArriveInTheOtherModesToo)
{
    for (const char *mode : {"AUTOGRAPH=off", "AUTOGRAPH=observe", "AUTOGRAPH=no-such-mode"}) {
        const Outcome o =
            run({{"case_linked", "rows", "0", "674"}, "driver", {"FAKE_RESULT=1", mode}}, true);
        EXPECT_EQ(0, o.exit) << mode << o.out;
        EXPECT_EQ(674u, lines(o.out).size());
        for (const std::string &line : lines(o.out)) {
            const Report r = parse(line);
            if (!asked_by_the_shim(r.name)) {
                EXPECT_EQ(1, r.arrivals) << mode << " " << line;
            }
            if (mode == std::string("AUTOGRAPH=off")) {
                EXPECT_EQ("88888888888", r.ints) << "off: a bare jump of " << r.name;
                EXPECT_EQ("11111111", r.floats) << "off: a bare jump of " << r.name;
            }
        }
    }
}

// C2: while calls are counted the counting stubs stand in front.
TEST(Calls, ArriveWhileTheyAreCounted)
{
    const std::map<std::string, std::string> known = classes();
    const std::string file = testing::TempDir() + "/counted.json";
    const Outcome o = run({{"case_linked", "rows", "0", "674"},
                           "driver",
                           {"FAKE_RESULT=1", "AUTOGRAPH_STATS=" + file}},
                          true);
    ASSERT_EQ(0, o.exit) << o.out;
    for (const std::string &line : lines(o.out)) {
        const Report r = parse(line);
        if (!asked_by_the_shim(r.name)) {
            EXPECT_EQ(1, r.arrivals) << line;
        }
        expect_arrived(r, known.at(r.name));
    }
}

// "NAME held 3": what a case said about a function.
int said(const Outcome &o, const std::string &name, const std::string &what)
{
    const std::string start = name + " " + what + " ";
    for (const std::string &line : o.shim)
        if (line.compare(0, start.size(), start) == 0)
            return std::stoi(line.substr(start.size()));
    return -1;
}

// Calls each of the names while the program's last launches are held.
Outcome call_amid_launches(const std::vector<std::string> &names)
{
    Case c = {{"case", "amid"},
              "driver",
              {"FAKE_LAUNCHES=1", "AUTOGRAPH_FLUSH_US=100000", "AUTOGRAPH_PACE=prompt"}};
    c.command.insert(c.command.end(), names.begin(), names.end());
    const Outcome o = run(c, true);
    EXPECT_EQ(0, o.exit) << o.out.substr(0, 2000);
    EXPECT_EQ(names.size(), lines(o.out).size()) << o.out.substr(0, 2000);
    return o;
}

// C3, C1: the draining code stands between the arguments and the driver.
TEST(Calls, AmidHeldLaunchesComeAfterThemAndCarryEveryArgument)
{
    const std::map<std::string, std::string> known = classes();
    std::vector<std::string> draining;
    for (const auto &row : known)
        if (row.second == "DRAIN_ALL" || row.second == "DRAIN_STREAM")
            draining.push_back(row.first);
    const Outcome o = call_amid_launches(draining);
    size_t held = 0;
    for (const std::string &line : lines(o.out)) {
        const Report r = parse(line);
        const int late = said(o, r.name, "late");
        held += said(o, r.name, "held") > 0;
        EXPECT_EQ(0, late) << line;
        EXPECT_EQ(r.name == "cuGraphLaunch" ? 2 : 1, r.arrivals) << line; // one is the shim's own
        expect_arrived(r, known.at(r.name));
    }
    // The test is about held work, so there has to be some.
    EXPECT_GT(held, draining.size() * 3 / 4);
}

TEST(Calls, ThatOnlyReadLeaveHeldLaunchesHeld)
{
    const std::map<std::string, std::string> known = classes();
    std::vector<std::string> pure;
    for (const auto &row : known)
        if (row.second == "PURE" && !(row.first.compare(0, 12, "cuCtxGetCurr") == 0))
            pure.push_back(row.first);
    const Outcome o = call_amid_launches(pure);
    size_t late = 0;
    for (const std::string &line : lines(o.out)) {
        const Report r = parse(line);
        late += said(o, r.name, "late") > 0;
        EXPECT_GE(r.arrivals, 1) << line;
    }
    EXPECT_GT(late, pure.size() * 3 / 4) << "nothing was held, or a reading call drained";
}

// O-46: launch, cuFutureOp, launch.
TEST(Calls, OfFunctionsThatNobodyKnowsComeAfterHeldLaunches)
{
    const std::vector<std::string> names = {"cuFutureOp", "cuFutureOp2", "cuFutureOp3"};
    const Outcome o = call_amid_launches(names);
    for (const std::string &line : lines(o.out)) {
        const Report r = parse(line);
        EXPECT_EQ(0, said(o, r.name, "late")) << line;
        EXPECT_EQ(3, said(o, r.name, "held")) << line;
        EXPECT_EQ("88888888888", r.ints) << line;
        EXPECT_EQ("11111111", r.floats) << line;
    }
}

// DESIGN 5, RETIRE: what refers to the object is handed over before the object goes.
TEST(Calls, ThatRetireAnObjectComeAfterHeldLaunches)
{
    const std::map<std::string, std::string> known = classes();
    std::vector<std::string> retiring;
    for (const auto &row : known)
        if (row.second == "RETIRE" || row.first.compare(0, 20, "cuStreamBeginCapture") == 0)
            retiring.push_back(row.first);
    for (const std::string &name : retiring) {
        const Outcome o = call_amid_launches({name});
        EXPECT_EQ(3, said(o, name, "held")) << o.out;
        EXPECT_EQ(0, said(o, name, "late")) << o.out;
    }
}

// The shim's own work (first call, look-ups) leaves errno alone, and what the driver sets arrives.
TEST(Calls, LeaveErrnoAsTheDriverLeavesIt)
{
    same_as_native({{"case", "errno"}});
    same_as_native({{"case", "errno"}, "driver", {"FAKE_ERRNO=4242"}});
}

// C2: no status of the driver is dropped or changed.
TEST(Calls, ReturnTheDriversFailureOfAnyCode)
{
    same_as_native({{"case", "failures-arrive"}});
}

} // namespace
} // namespace resolver
