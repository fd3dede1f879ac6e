/* tests/differential/verified.cc - what the programs' statistics say of AUTOGRAPH_VERIFY.
 * Called by  runner.cc, differential_test.cc      Calls  tests/support
 * Threads    none
 * Promise    see batch.h
 * Start at   read_verified() */
#include "tests/differential/batch.h"

#include "tests/support/process.h"

#include <filesystem>

namespace ag_diff
{

namespace
{

uint64_t counted(const std::string &stats, const std::string &name)
{
    const std::string key = "\"" + name + "\": ";
    const size_t at = stats.find(key);
    return at == std::string::npos ? 0 : strtoull(stats.c_str() + at + key.size(), nullptr, 10);
}

} // namespace

void verify_in(Setup *setup, const std::string &n, const std::string &dir)
{
    setup->env["AUTOGRAPH_VERIFY"] = n;
    setup->env["AUTOGRAPH_STATS"] = dir + "/%p.json";
}

Verified read_verified(const std::string &dir)
{
    Verified v;
    for (const auto &file : std::filesystem::directory_iterator(dir)) {
        const std::string stats = ag_test::read_file(file.path());
        v.programs++;
        v.launched += counted(stats, "graph_launches");
        v.verified += counted(stats, "graphs_verified");
        v.read_back += counted(stats, "graphs_read_back");
        v.mismatched += counted(stats, "graphs_mismatched");
    }
    return v;
}

std::string Verified::text() const
{
    return "statistics of " + std::to_string(programs) + " programs: graphs launched " +
           std::to_string(launched) + ", verified " + std::to_string(verified) + ", read back " +
           std::to_string(read_back) + ", mismatched " + std::to_string(mismatched) + "\n";
}

} // namespace ag_diff
