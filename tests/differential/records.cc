/* tests/differential/records.cc - was each record of an event made, where it had to be?
 * Called by  judge.cc                    Calls  nothing
 * Threads    none
 * Promise    a record may be missing only where the next one of its event is in the same stream and nothing came
 *            between the two that waits for the event or drains. Streams that several tracks use are not judged:
 *            nothing is known of the order of their calls
 * Start at   check_records() */
#include "tests/differential/precede.h"

#include <algorithm>
#include <set>

namespace ag_diff
{

namespace
{

using List = std::vector<const Accepted *>;

bool earlier(const Accepted *a, const Accepted *b)
{
    return a->before < b->before;
}

struct Records {
    std::map<std::string, List> ops;                        // of each stream, in call order
    std::map<std::pair<std::string, std::string>, List> of; // stream, event: its records
    std::map<std::string, List> by_key;                     // records and waits of an event
    std::map<int, std::vector<uint64_t>> drains;            // by track: when they were entered
    std::map<std::string, std::set<int>> tracks;            // of a stream
    std::map<std::pair<std::string, std::string>, std::vector<uint64_t>> made; // when

    Records(const Expectation &e, const ag_test::SimLog &log)
    {
        for (const Accepted &a : e.accepted) {
            ops[a.stream].push_back(&a);
            tracks[a.stream].insert(a.track);
        }
        for (const Accepted &a : e.edges) {
            tracks[a.stream].insert(a.track);
            if (a.what[0] == 'v' || a.event.empty())
                continue;
            by_key[a.what].push_back(&a);
            if (a.line == 'R')
                of[{a.stream, a.event}].push_back(&a);
        }
        for (const Accepted &a : e.drains)
            drains[a.track].push_back(a.before);
        for (auto &[key, list] : ops)
            std::stable_sort(list.begin(), list.end(), earlier);
        for (auto &[key, list] : of)
            std::stable_sort(list.begin(), list.end(), earlier);
        for (auto &[key, list] : by_key)
            std::stable_sort(list.begin(), list.end(), earlier);
        for (auto &[track, list] : drains)
            std::sort(list.begin(), list.end());
        for (const ag_test::Executed &x : log.executed)
            if (x.name == "eventRecord")
                made[{x.stream, x.args.substr(x.args.find('=') + 1)}].push_back(x.seq);
    }

    bool drained(const Accepted &from, const Accepted &to)
    {
        const std::vector<uint64_t> &list = drains[from.track];
        auto first = std::lower_bound(list.begin(), list.end(), from.after);
        return first != list.end() && *first < to.before;
    }

    bool overtaken(const Accepted &r)
    {
        const List &list = by_key[r.what];
        auto next = std::upper_bound(list.begin(), list.end(), &r, earlier);
        return next != list.end() && (*next)->line == 'R' && (*next)->stream == r.stream &&
               !drained(r, **next);
    }

    // Sequence numbers between which a record has its place: of the operations around it.
    std::pair<uint64_t, uint64_t> place(const Accepted &r)
    {
        const List &list = ops[r.stream];
        auto next = std::upper_bound(list.begin(), list.end(), &r, earlier);
        const uint64_t to = next == list.end() || !(*next)->done ? UINT64_MAX : (*next)->done->seq;
        const uint64_t from =
            next == list.begin() || !(*(next - 1))->done ? 0 : (*(next - 1))->done->seq;
        return {from, to};
    }

    std::string check(const List &asked, const std::vector<uint64_t> &list)
    {
        size_t placed = 0;
        for (size_t i = 0, end; i < asked.size(); i = end) {
            const auto where = place(*asked[i]);
            size_t may_miss = 0;
            for (end = i; end < asked.size() && place(*asked[end]) == where; end++)
                may_miss += overtaken(*asked[end]);
            const size_t here =
                static_cast<size_t>(std::upper_bound(list.begin(), list.end(), where.second) -
                                    std::upper_bound(list.begin(), list.end(), where.first));
            placed += here;
            const std::string text = "stream " + asked[i]->stream + ", record " +
                                     asked[end - 1]->where + " of event " + asked[i]->what;
            if (here + may_miss < end - i)
                return text + " was not made behind the operation before it";
            if (here > end - i)
                return text + " was made more often than asked for";
        }
        if (placed < list.size())
            return "stream " + asked[0]->stream + ": a record of event " + asked[0]->what +
                   " was made where none was asked for";
        return "";
    }
};

} // namespace

std::string check_records(const Expectation &e, const ag_test::SimLog &log)
{
    Records records(e, log);
    for (const auto &[key, made] : records.made)
        if (!records.of.count(key) && records.tracks[key.first].size() == 1)
            return "stream " + key.first + ": a record was made of an event that was never named";
    for (const auto &[key, asked] : records.of) {
        if (records.tracks[key.first].size() > 1)
            continue;
        const std::string why = records.check(asked, records.made[key]);
        if (!why.empty())
            return why;
    }
    return "";
}

} // namespace ag_diff
