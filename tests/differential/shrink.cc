/* tests/differential/shrink.cc - makes a failing program small enough to read.
 * Called by  runner.cc                   Calls  batch.h, plan.h
 * Threads    none
 * Promise    what it returns failed when it was last run; it stops when its time is up
 * Start at   shrink() */
#include "tests/differential/batch.h"

#include <algorithm>
#include <chrono>
#include <memory>

extern "C" {
#include "tests/differential/plan.h"
}

namespace ag_diff
{

namespace
{

struct Search {
    Setup setup;
    uint64_t seed;
    std::chrono::steady_clock::time_point end;
    Small best;

    bool time_left() const
    {
        return std::chrono::steady_clock::now() < end;
    }

    // Keeps the arguments if the program fails with them.
    bool keep_if_failing(const std::vector<std::string> &arguments)
    {
        std::vector<std::string> broken;
        setup.more = arguments;
        best.runs++;
        Verdict v = judge_seeds(setup, seed, seed, &broken)[0];
        if (v.why.empty() || !broken.empty())
            return false;
        best.arguments = arguments;
        best.why = v.why;
        best.ops = v.ops;
        return true;
    }

    bool try_also(std::initializer_list<std::string> extra)
    {
        std::vector<std::string> arguments = best.arguments;
        arguments.insert(arguments.end(), extra);
        return time_left() && keep_if_failing(arguments);
    }
};

std::string id_list(const std::vector<bool> &dropped)
{
    std::string text;
    for (size_t i = 1; i < dropped.size(); i++) {
        if (!dropped[i])
            continue;
        size_t end = i;
        while (end + 1 < dropped.size() && dropped[end + 1])
            end++;
        text += (text.empty() ? "" : ",") + std::to_string(i);
        if (end > i)
            text += "-" + std::to_string(end);
        i = end;
    }
    return text;
}

// Drops actions in ever smaller groups as long as the failure stays.
void drop_actions(Search *s, size_t actions)
{
    std::vector<bool> dropped(actions + 1, false);
    const std::vector<std::string> base = s->best.arguments;
    for (size_t group = actions / 2; group >= 1; group /= 2) {
        for (size_t from = 1; from <= actions && s->time_left(); from += group) {
            std::vector<bool> attempt = dropped;
            for (size_t i = from; i < from + group && i <= actions; i++)
                attempt[i] = true;
            if (attempt == dropped)
                continue;
            std::vector<std::string> arguments = base;
            arguments.insert(arguments.end(), {"--drop", id_list(attempt)});
            if (s->keep_if_failing(arguments))
                dropped = attempt;
        }
    }
}

} // namespace

Small shrink(const Setup &setup, uint64_t seed, int seconds)
{
    Search s{setup, seed, std::chrono::steady_clock::now() + std::chrono::seconds(seconds), {}};
    s.setup.limit = std::min(setup.limit, 10);
    auto plan = std::make_unique<struct df_plan>();
    df_plan_make(seed, plan.get());
    if (!s.keep_if_failing(setup.more))
        return s.best; // it does not fail every time
    s.try_also({"--no-faults"});
    s.try_also({"--plain-threads"});
    unsigned mask = 0;
    for (unsigned t = 0; t < plan->tracks && plan->tracks > 1; t++) {
        std::vector<std::string> before = s.best.arguments;
        if (s.try_also({"--drop-tracks", std::to_string(mask | 1u << t)}))
            mask |= 1u << t;
    }
    for (const char *cap : {"1", "2", "3", "4", "6", "9", "12"})
        if (s.try_also({"--cap", cap}))
            break;
    drop_actions(&s, plan->actions);
    return s.best;
}

} // namespace ag_diff
