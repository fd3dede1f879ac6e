/* tests/differential/precede.cc - what was accepted, and whether all that had to precede it did.
 * Called by  judge.cc                    Calls  nothing
 * Threads    none
 * Promise    see precede.h
 * Start at   check_precedence() */
#include "tests/differential/precede.h"

#include <algorithm>
#include <sstream>

namespace ag_diff
{

namespace
{

bool read_accepted(std::istream &in, Accepted *a)
{
    in >> a->before >> a->after >> a->where;
    if (a->line == 'B')
        return true;
    in >> a->stream;
    if (a->line != 'X') {
        std::string rest;
        in >> a->what;
        std::getline(in, rest);
        std::istringstream(rest) >> a->event;
        return true;
    }
    std::string name, grid, block, shared, args;
    in >> name >> grid >> block >> shared >> args;
    a->what = name + " " + grid + " " + block + " " + shared + " " + args;
    return true;
}

} // namespace

Expectation read_expectation(const std::string &text)
{
    Expectation e;
    std::istringstream in(text);
    std::string word, line;
    int track = 0;
    while (in >> word) {
        uint64_t n = 0;
        if (word == "X" || word == "R" || word == "W" || word == "B") {
            Accepted a;
            a.line = word[0];
            a.track = track;
            read_accepted(in, &a);
            (word == "X" ? e.accepted : word == "B" ? e.drains : e.edges).push_back(std::move(a));
        } else if (word == "S") {
            std::string id;
            Stream s;
            in >> id >> s.order >> s.context;
            e.streams[id] = s;
        } else if (word == "track") {
            in >> track;
            e.tracks = std::max(e.tracks, track + 1);
        } else if (word == "loop") {
            in >> n;
            e.loops.push_back({track, n, 0, UINT64_MAX});
        } else if (word == "change" && !e.loops.empty()) {
            in >> n;
            if (!e.loops.back().change)
                e.loops.back().change = n + 1;
        } else if (word == "end" && !e.loops.empty()) {
            in >> e.loops.back().to;
        } else if (word == "ops") {
            in >> n;
            e.ops += n;
        } else if (word == "kinds") {
            std::getline(in, line);
            std::istringstream list(line);
            for (size_t i = 0; list >> n; i++) {
                e.kinds.resize(std::max(e.kinds.size(), i + 1));
                e.kinds[i] += n;
            }
        } else {
            std::getline(in, line);
        }
    }
    return e;
}

namespace
{

// What the next operation has to follow, since the call that made it so returned.
struct Frontier {
    std::vector<const Accepted *> last;
    uint64_t since = 0;
};

struct Precedence {
    const Expectation &e;
    const std::map<uint64_t, uint64_t> &ends;
    std::map<std::string, Frontier> at; // of each stream
    std::map<std::string, Frontier> events;
    std::string why;

    // Nothing is known of calls that two threads make at the same time.
    static void add(std::vector<const Accepted *> *to, const Frontier &from, const Accepted &call)
    {
        if (from.since >= call.before)
            return;
        for (const Accepted *a : from.last)
            if (std::find(to->begin(), to->end(), a) == to->end())
                to->push_back(a);
    }

    // What a call on the stream follows by itself: the stream, and what the legacy stream's rule adds.
    std::vector<const Accepted *> before(const Accepted &call)
    {
        std::vector<const Accepted *> f;
        auto own = e.streams.find(call.stream);
        add(&f, at[call.stream], call);
        // A wait for a value is written down after the operation that waits, which reached the driver before: what
        // another thread called in between is not before it.
        const bool value = call.line == 'W' && call.what[0] == 'v';
        if (value || own == e.streams.end() || own->second.order == "free")
            return f;
        for (const auto &[other, frontier] : at) {
            auto s = e.streams.find(other);
            if (other == call.stream || s == e.streams.end() ||
                s->second.context != own->second.context)
                continue;
            if (own->second.order == "legacy" ? s->second.order == "blocking"
                                              : s->second.order == "legacy")
                add(&f, frontier, call);
        }
        return f;
    }

    // Number of the last line before the end.
    uint64_t end_of(const Accepted *a) const
    {
        auto found = ends.find(a->done->seq);
        return found != ends.end() ? found->second : ends.empty() ? a->done->seq : UINT64_MAX;
    }

    void step(const Accepted &a)
    {
        std::vector<const Accepted *> f = before(a);
        if (a.line == 'W')
            add(&f, events[a.what], a);
        if (a.line == 'R')
            events[a.what] = {f, a.after};
        if (a.line != 'X') {
            at[a.stream] = {f, a.after};
            return;
        }
        for (const Accepted *p : f)
            if (p->done && a.done && end_of(p) >= a.done->seq && why.empty())
                why = "operation " + a.where + " (" + a.what.substr(0, 60) + ", " + a.done->how +
                      ", stream " + a.stream + ") began before operation " + p->where + " (" +
                      p->what.substr(0, 60) + ", " + p->done->how + ", stream " + p->stream +
                      ") had ended, which it had to follow";
        Frontier &now = at[a.stream];
        if (now.last.empty() || now.last[0]->before != a.before) // not of the same batch
            now.last.clear();
        now.last.push_back(&a);
        now.since = a.after;
    }
};

} // namespace

std::string check_precedence(const Expectation &e, const std::map<uint64_t, uint64_t> &ends)
{
    std::vector<const Accepted *> calls;
    for (const Accepted &a : e.accepted)
        calls.push_back(&a);
    for (const Accepted &a : e.edges)
        calls.push_back(&a);
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Accepted *a, const Accepted *b) { return a->before < b->before; });
    Precedence p{e, ends, {}, {}, ""};
    for (const Accepted *a : calls)
        p.step(*a);
    return p.why;
}

namespace
{

using List = std::vector<const Accepted *>;

// A call that had returned before another was entered reached the driver before it, whatever thread and stream.
std::string check_call_order(List list)
{
    std::sort(list.begin(), list.end(), [](const Accepted *a, const Accepted *b) {
        return std::make_pair(a->done->sub, a->done->seq) <
               std::make_pair(b->done->sub, b->done->seq);
    });
    std::map<std::string, const Accepted *>
        last; // latest call of each stream, and of all that ran eagerly
    for (const Accepted *a : list)
        for (const std::string &key : {a->stream, std::string("eager")}) {
            if (key == "eager" && a->done->in_graph)
                continue;
            const Accepted *&latest = last[key];
            if (latest && latest->before > a->after)
                return "operation " + latest->where + " reached the driver before operation " +
                       a->where + ", which was called earlier";
            if (!latest || a->before > latest->before)
                latest = a;
        }
    return "";
}

// What was called before a call that drains reached the driver before what was called after it.
std::string check_drains(const List &list, const std::vector<Accepted> &drains)
{
    List by_after = list, by_before = list;
    std::sort(by_after.begin(), by_after.end(),
              [](const Accepted *a, const Accepted *b) { return a->after < b->after; });
    std::sort(by_before.begin(), by_before.end(),
              [](const Accepted *a, const Accepted *b) { return a->before < b->before; });
    List first(list.size()), latest(list.size()); // of the rest, of the beginning
    for (size_t i = list.size(); i-- > 0;)
        first[i] = i + 1 < list.size() && first[i + 1]->done->sub < by_before[i]->done->sub
                       ? first[i + 1]
                       : by_before[i];
    for (size_t i = 0; i < list.size(); i++)
        latest[i] =
            i && latest[i - 1]->done->sub > by_after[i]->done->sub ? latest[i - 1] : by_after[i];
    for (const Accepted &d : drains) {
        auto earlier =
            std::lower_bound(by_after.begin(), by_after.end(), d.before,
                             [](const Accepted *a, uint64_t clock) { return a->after < clock; });
        auto later =
            std::upper_bound(by_before.begin(), by_before.end(), d.after,
                             [](uint64_t clock, const Accepted *a) { return clock < a->before; });
        if (earlier == by_after.begin() || later == by_before.end())
            continue;
        const Accepted *a = latest[static_cast<size_t>(earlier - by_after.begin()) - 1];
        const Accepted *b = first[static_cast<size_t>(later - by_before.begin())];
        if (a->done->sub > b->done->sub)
            return "call " + d.where + " drains, but operation " + a->where +
                   " before it reached the driver after operation " + b->where + " behind it";
    }
    return "";
}

} // namespace

std::string check_submission(const Expectation &e)
{
    std::map<std::string, List> by_context;
    for (const Accepted &a : e.accepted)
        if (a.done)
            by_context[a.done->ctx].push_back(&a);
    for (auto &[ctx, list] : by_context) {
        std::string why = check_call_order(list);
        if (why.empty())
            why = check_drains(list, e.drains);
        if (!why.empty())
            return why;
    }
    return "";
}

} // namespace ag_diff
