/* tests/differential/batch.cc - runs seeds without and with the shim, judges them, adds up.
 * Called by  runner.cc, differential_test.cc      Calls  judge.h, plan.h, tests/support
 * Threads    see batch.h
 * Promise    see batch.h
 * Start at   run_seeds() */
#include "tests/differential/batch.h"

#include "tests/support/process.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <sstream>
#include <thread>

extern "C" {
#include "tests/differential/plan.h"
}

namespace ag_diff
{

namespace
{

// Runs the seeds once; statuses by seed.
std::map<uint64_t, int> run_once(const Setup &setup, bool with_shim, uint64_t first, uint64_t last,
                                 const std::string &dir, std::string *errors)
{
    std::vector<std::string> argv = {setup.program,
                                     "--seeds",
                                     std::to_string(first) + "-" + std::to_string(last),
                                     "--dir",
                                     dir,
                                     "--limit",
                                     std::to_string(setup.limit)};
    argv.insert(argv.end(), setup.more.begin(), setup.more.end());
    auto env = ag_test::simcuda_env(setup.driver, with_shim ? setup.shim : "");
    env.erase("AUTOGRAPH_PACE"); // each program has its own
    for (const auto &[key, value] : setup.env)
        env[key] = value;
    int limit = static_cast<int>(last - first + 2) * setup.limit;
    ag_test::Run run = ag_test::run(argv, env, limit);
    std::map<uint64_t, int> status;
    std::istringstream in(run.out);
    std::string line;
    while (std::getline(in, line)) {
        unsigned long long seed;
        int value;
        if (sscanf(line.c_str(), "seed %llu status %d", &seed, &value) == 2)
            status[seed] = value;
    }
    *errors = run.err;
    return status;
}

Trace read_trace(const std::string &dir, uint64_t seed, const std::map<uint64_t, int> &status)
{
    Trace t;
    std::string base = dir + "/" + std::to_string(seed);
    auto found = status.find(seed);
    t.status = found == status.end() ? -1 : found->second;
    t.said = ag_test::read_file(base + ".out");
    t.expected = ag_test::read_file(base + ".exp");
    t.log = ag_test::read_simlog(base + ".log");
    t.ends = read_ends(ag_test::read_file(base + ".log"));
    return t;
}

Rule rule_of(const Setup &setup, uint64_t seed)
{
    struct df_setting setting;
    df_setting_make(seed, &setting);
    for (const std::string &argument : setup.more)
        if (argument == "--no-faults")
            return Rule::strict;
    return setting.fault == DF_STICKY_FAULT   ? Rule::sticky
           : setting.fault == DF_LAUNCH_FAULT ? Rule::lossy
                                              : Rule::strict;
}

// What a child that died or hung wrote to standard error is the best hint: its own line, or else the last one.
std::string hint(const std::string &errors, uint64_t seed)
{
    size_t own = errors.find("seed " + std::to_string(seed) + " ");
    if (own != std::string::npos)
        return errors.substr(own, errors.find('\n', own) - own);
    std::string last = errors.substr(0, errors.find_last_not_of('\n') + 1);
    size_t line = last.rfind('\n');
    return line == std::string::npos ? last : last.substr(line + 1);
}

} // namespace

std::vector<Verdict> judge_seeds(const Setup &setup, uint64_t first, uint64_t last,
                                 std::vector<std::string> *broken)
{
    std::vector<Verdict> verdicts;
    std::string plain = ag_test::make_dir("ag-plain"), shimmed = ag_test::make_dir("ag-shim");
    std::string plain_errors, shim_errors;
    auto plain_status = run_once(setup, false, first, last, plain, &plain_errors);
    auto shim_status = run_once(setup, true, first, last, shimmed, &shim_errors);
    for (uint64_t seed = first; seed <= last; seed++) {
        Rule rule = rule_of(setup, seed);
        Trace native = read_trace(plain, seed, plain_status);
        Trace shim = read_trace(shimmed, seed, shim_status);
        Verdict v = judge(native, shim, rule);
        if (shim.status != 0)
            v.why += " (" + hint(shim_errors, seed) + ")";
        if (setup.check_reference) {
            std::string why = judge_reference(native, rule);
            if (native.status != 0)
                why += " (" + hint(plain_errors, seed) + ")";
            if (!why.empty())
                broken->push_back("seed " + std::to_string(seed) + " without the shim: " + why);
        }
        verdicts.push_back(std::move(v));
    }
    ag_test::remove_dir(plain);
    ag_test::remove_dir(shimmed);
    return verdicts;
}

uint64_t Summary::percentile(int percent) const
{
    std::vector<uint64_t> sorted = ops;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * static_cast<size_t>(percent) / 100];
}

std::string Summary::text() const
{
    std::ostringstream out;
    auto share = [&](uint64_t n) {
        return seeds ? 100.0 * static_cast<double>(n) / static_cast<double>(seeds) : 0;
    };
    char line[400];
    snprintf(line, sizeof line,
             "programs %llu  ops median %llu, 90%% %llu  replayed %.1f%%, replayed then diverged "
             "%.1f%%  "
             "launches %llu, in graphs %.1f%%  with faults %.1f%%  failures %zu  broken references "
             "%zu  %.0f s\n",
             (unsigned long long)seeds, (unsigned long long)percentile(50),
             (unsigned long long)percentile(90), share(replayed), share(diverged),
             (unsigned long long)launches,
             launches ? 100.0 * static_cast<double>(in_graphs) / static_cast<double>(launches)
                      : 0.0,
             share(with_faults), failures.size(), broken.size(), seconds);
    out << line << "operations (in graphs):";
    for (const auto &[name, n] : names) {
        snprintf(line, sizeof line, "  %s %zu (%.1f%%)", name.c_str(), n.first,
                 n.first ? 100.0 * static_cast<double>(n.second) / static_cast<double>(n.first)
                         : 0.0);
        out << line;
    }
    out << "\nactions:";
    for (size_t k = 0; k < kinds.size(); k++)
        out << "  " << df_kind_name(static_cast<int>(k)) << " " << kinds[k];
    out << "\n";
    return out.str();
}

Summary run_seeds(const Setup &setup, uint64_t first, uint64_t last)
{
    Summary sum;
    std::mutex lock;
    std::atomic<uint64_t> next{first};
    auto start = std::chrono::steady_clock::now();
    auto work = [&] {
        for (;;) {
            uint64_t from = next.fetch_add(setup.chunk);
            uint64_t to = std::min(last, from + setup.chunk - 1);
            if (from > last)
                return;
            std::vector<std::string> broken;
            std::vector<Verdict> verdicts = judge_seeds(setup, from, to, &broken);
            std::lock_guard<std::mutex> guard(lock);
            sum.broken.insert(sum.broken.end(), broken.begin(), broken.end());
            for (size_t i = 0; i < verdicts.size(); i++) {
                struct df_setting setting;
                df_setting_make(from + i, &setting);
                const Verdict &v = verdicts[i];
                sum.seeds++;
                sum.ops.push_back(v.ops);
                sum.launches += v.launches;
                sum.in_graphs += v.in_graphs;
                sum.replayed += v.replayed;
                sum.diverged += v.diverged;
                for (const auto &[name, n] : v.names) {
                    sum.names[name].first += n.first;
                    sum.names[name].second += n.second;
                }
                sum.kinds.resize(std::max(sum.kinds.size(), v.kinds.size()));
                for (size_t k = 0; k < v.kinds.size(); k++)
                    sum.kinds[k] += v.kinds[k];
                sum.with_faults += setting.fault != DF_NO_FAULT;
                if (!v.why.empty())
                    sum.failures.push_back({from + i, v.why});
            }
            if (setup.stop_after && sum.failures.size() >= setup.stop_after)
                next = last + 1;
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < setup.jobs; i++)
        threads.emplace_back(work);
    for (std::thread &t : threads)
        t.join();
    std::sort(sum.failures.begin(), sum.failures.end(),
              [](const Failure &a, const Failure &b) { return a.seed < b.seed; });
    sum.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return sum;
}

std::string command(const Setup &setup, uint64_t seed, const std::vector<std::string> &arguments)
{
    std::string text = "bazel-bin/tests/differential/runner --first " + std::to_string(seed) +
                       " --seeds 1 --no-shrink --shim " + setup.shim;
    for (const std::string &a : arguments)
        text += " " + a;
    return text;
}

} // namespace ag_diff
