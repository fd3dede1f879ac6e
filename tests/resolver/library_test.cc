// tests/resolver/library_test.cc - what can be read off libautograph.so without running it.
#include "tests/resolver/harness.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace resolver
{
namespace
{

std::set<std::string> read_lines(const std::string &path)
{
    std::ifstream in(path);
    std::set<std::string> all;
    for (std::string line; std::getline(in, line);)
        all.insert(line);
    EXPECT_FALSE(all.empty()) << path;
    return all;
}

std::set<std::string> table()
{
    std::set<std::string> all;
    const std::regex row("^AG_HOOK\\((\\w+), (\\w+)\\).*");
    std::smatch m;
    for (const std::string &line : read_lines("shim/hooks.def"))
        if (std::regex_match(line, m, row)) {
            EXPECT_TRUE(all.insert(m[1]).second) << m[1] << " stands there twice";
        }
    return all;
}

// Names of nm's output, without the version. Types in lower case are local: they are nobody
// else's, except "w", an import that may stay open.
std::set<std::string> symbols(const std::string &options, const std::string &file)
{
    std::set<std::string> all;
    std::smatch m;
    for (const std::string &line : lines(shell("nm -D " + options + " " + file)))
        if (std::regex_search(line, m, std::regex("([A-Zw]) ([A-Za-z_][A-Za-z0-9_]*)(@|$)")))
            all.insert(m[2]);
    return all;
}

bool driver_name(const std::string &s)
{
    return s.size() > 2 && s[0] == 'c' && s[1] == 'u' && s[2] >= 'A' && s[2] <= 'Z';
}

std::vector<std::string> missing(const std::set<std::string> &from, const std::set<std::string> &in)
{
    std::vector<std::string> all;
    std::set_difference(from.begin(), from.end(), in.begin(), in.end(), std::back_inserter(all));
    return all;
}

// O-44: a preload with a missing NEEDED kills every child process.
TEST(Library, NeedsLibcAndTheLoaderOnly)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "a sanitized library needs its runtime";
    int needed = 0;
    for (const std::string &line : lines(shell("readelf -dW " + library()))) {
        if (line.find("(NEEDED)") == std::string::npos)
            continue;
        if (line.find("[libubsan.so") != std::string::npos)
            GTEST_SKIP() << "a sanitized library needs its runtime";
        needed++;
        EXPECT_TRUE(line.find("[libc.so.6]") != std::string::npos ||
                    line.find("[ld-linux-x86-64.so.2]") != std::string::npos)
            << line;
    }
    EXPECT_GE(needed, 1);
}

// C7, O-26: nothing runs before the first driver call.
TEST(Library, HasNoConstructor)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "a sanitizer adds its own";
    const std::string sections = shell("readelf -SW " + library());
    std::smatch m;
    EXPECT_EQ(std::string::npos, sections.find(".ctors"));
    EXPECT_EQ(std::string::npos, sections.find(".preinit_array"));
    if (!std::regex_search(
            sections, m,
            std::regex("\\.init_array +INIT_ARRAY +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)")))
        return; // no constructor at all
    ASSERT_EQ(8u, std::stoul(m[2], nullptr, 16)) << "more than the compiler's one entry";
    const unsigned long at = std::stoul(m[1], nullptr, 16);
    const std::string relocations = shell("readelf -rW " + library());
    std::ostringstream address;
    address << std::hex << at;
    ASSERT_TRUE(std::regex_search(
        relocations, m,
        std::regex("0*" + address.str() + " +[0-9a-f]+ R_X86_64_RELATIVE +([0-9a-f]+)")))
        << relocations;
    const std::string entry = shell("nm " + library() + " | grep -i '0*" + m[1].str() + " '");
    EXPECT_NE(std::string::npos, entry.find("frame_dummy")) << entry;
}

// The oldest glibc to support is 2.28.
TEST(Library, AsksForNoSymbolNewerThanGlibc228)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "what instrumentation adds is not shipped";
    int newest = 0;
    std::string which;
    const std::regex version("GLIBC_2\\.(\\d+)");
    for (const std::string &line : lines(shell("nm -D " + library()))) {
        std::smatch m;
        if (std::regex_search(line, m, version) && std::stoi(m[1]) > newest) {
            newest = std::stoi(m[1]);
            which = line;
        }
    }
    EXPECT_GT(newest, 0);
    EXPECT_LE(newest, 28) << which;
    for (const std::string &line : lines(shell("readelf -VW " + library()))) {
        std::smatch m;
        if (std::regex_search(line, m, version)) {
            EXPECT_LE(std::stoi(m[1]), 28) << line;
        }
    }
}

// O-46: exports and table are one list.
TEST(Library, ExportsTheTableDlsymAndItsOwnNamesOnly)
{
    const std::set<std::string> exported = symbols("--defined-only", library()), rows = table();
    for (const std::string &row : missing(rows, exported))
        ADD_FAILURE() << row << " is in the table, not exported";
    for (const std::string &name : missing(exported, rows))
        EXPECT_TRUE(name == "dlsym" || name.compare(0, 10, "autograph_") == 0)
            << name << " is exported";
    EXPECT_EQ(1u, exported.count("dlsym"));
}

// Not to be hooked: dlopen (its caller's RUNPATH is lost), and dlvsym.
TEST(Library, DoesNotExportDlopenOrDlvsym)
{
    const std::set<std::string> exported = symbols("--defined-only", library());
    for (const char *name : {"dlopen", "dlmopen", "dlvsym", "dlclose", "dlerror"})
        EXPECT_EQ(0u, exported.count(name)) << name;
}

// O-44: "no direct reference to any cu* symbol"; no bare dlsym, which would be our own.
TEST(Library, ImportsNoDriverFunctionAndNoDlsym)
{
    for (const std::string &name : symbols("--undefined-only", library())) {
        EXPECT_FALSE(driver_name(name)) << name;
        EXPECT_NE("dlsym", name);
        EXPECT_NE("dlopen", name);
    }
}

// Without it every musl program dies.
TEST(Library, RefersToDlvsymWeakly)
{
    for (const std::string &line : lines(shell("nm -D " + library())))
        if (std::regex_search(line, std::regex(" dlvsym(@|$)"))) {
            EXPECT_TRUE(std::regex_search(line, std::regex("^ +w "))) << line;
        }
}

TEST(Library, UsesInitialExecThreadLocals)
{
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "a sanitizer may reach its thread-locals otherwise";
    EXPECT_EQ(0u, symbols("--undefined-only", library()).count("__tls_get_addr"));
    const std::string relocations = shell("readelf -rW " + library());
    EXPECT_EQ(std::string::npos, relocations.find("DTPMOD"));
}

TEST(Library, HasNoTextRelocationsAndIsBoundAtStart)
{
    const std::string dynamic = shell("readelf -dW " + library());
    EXPECT_EQ(std::string::npos, dynamic.find("TEXTREL"));
    EXPECT_NE(std::string::npos, dynamic.find("NOW"));
    EXPECT_EQ(std::string::npos, dynamic.find("RUNPATH"));
    EXPECT_EQ(std::string::npos, dynamic.find("RPATH"));
    EXPECT_EQ(std::string::npos,
              shell("readelf -lW " + library() + " | grep GNU_STACK").find("RWE"));
}

// DESIGN 8: "libcuda binds none of its own cu* exports through its PLT", nor may the fake one: its
// look-ups would hand out the shim's exports by themselves, and the tests of look-ups would prove
// nothing.
TEST(FakeDriver, CannotBeTakenOverByAPreload)
{
    for (const char *name : {"driver", "driver_old", "driver_first", "driver_aliased"}) {
        const std::string text = shell("readelf -rW " + fixture(name) + "/libcuda.so.1");
        EXPECT_FALSE(std::regex_search(text, std::regex(" cu[A-Z][A-Za-z0-9_]*"))) << name;
    }
}

// DESIGN 2: "data/driver-580.159-exports.txt lists what a driver really exports".
TEST(Table, NamesExactlyWhatDriver580Exports)
{
    const std::set<std::string> rows = table();
    const std::set<std::string> driver =
        read_lines("tests/resolver/data/driver-580.159-exports.txt");
    EXPECT_EQ(674u, driver.size());
    for (const std::string &name : missing(driver, rows))
        ADD_FAILURE() << name << " is exported by the driver, and not in the table";
    for (const std::string &name : missing(rows, driver))
        ADD_FAILURE() << name << " is in the table, and not exported by the driver";
}

// Each toolkit's stub may know names that the recorded driver did not have.
TEST(Table, NamesEveryFunctionOfTheToolkitsStub)
{
    const std::string found = shell("find -L external/cuda -path '*stubs/libcuda.so' | head -1");
    if (found.empty())
        GTEST_SKIP() << "NOT CHECKED: this toolkit has no stubs/libcuda.so";
    std::set<std::string> stub;
    for (const std::string &name : symbols("--defined-only", found.substr(0, found.find('\n'))))
        if (driver_name(name))
            stub.insert(name);
    EXPECT_GT(stub.size(), 600u);
    for (const std::string &name : missing(stub, table()))
        ADD_FAILURE() << name << " is in the stub, and not in the table";
}

// Every class of the table is one that the architecture page defines.
TEST(Table, UsesKnownClassesOnly)
{
    const std::set<std::string> classes = {"PURE",    "DRAIN_ALL", "DRAIN_STREAM",
                                           "ENQUEUE", "TRACK",     "CREATE",
                                           "RETIRE",  "CAPTURE",   "LOOKUP"};
    const std::regex row("^AG_HOOK\\((\\w+), (\\w+)\\).*");
    std::smatch m;
    for (const std::string &line : read_lines("shim/hooks.def"))
        if (std::regex_match(line, m, row)) {
            EXPECT_EQ(1u, classes.count(m[2])) << line;
        }
}

} // namespace
} // namespace resolver
