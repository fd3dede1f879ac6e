/* tests/differential/judge.cc - did the device do what the program asked, and did the program see the same?
 * Called by  batch.cc                    Calls  tests/support/simlog.h
 * Threads    none
 * Promise    see judge.h
 * Start at   judge() */
#include "tests/differential/judge.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ag_diff
{

namespace
{

using ag_test::Executed;

struct Accepted {
    uint64_t before = 0, after = 0;
    int track = 0;
    std::string where, stream, what; // action.iteration; stream; kernel, shape, argument bytes
    const Executed *done = nullptr;
};

struct Loop {
    int track;
    uint64_t from, change, to; // of the program's clock; change 0: it never changed
};

struct Expectation {
    std::vector<Accepted> accepted;
    std::vector<Loop> loops;
    uint64_t ops = 0;
    int tracks = 0; // highest number seen, plus one
};

Expectation read_expectation(const std::string &text)
{
    Expectation e;
    std::istringstream in(text);
    std::string word, line;
    int track = 0;
    while (in >> word) {
        uint64_t n = 0;
        if (word == "X") {
            Accepted a;
            std::string name, grid, block, shared, args;
            in >> a.before >> a.after >> a.where >> a.stream >> name >> grid >> block >> shared >>
                args;
            a.what = name + " " + grid + " " + block + " " + shared + " " + args;
            a.track = track;
            e.accepted.push_back(std::move(a));
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
        } else {
            std::getline(in, line);
        }
    }
    return e;
}

std::string describe(const Executed &e)
{
    return e.name + " " + e.grid + " " + e.block + " " + e.shared + " " + e.args;
}

std::string shorten(const std::string &s)
{
    return s.size() > 160 ? s.substr(0, 160) + "..." : s;
}

bool is_kernel(const Executed &e)
{
    return e.grid != "-";
}

// Per stream: executed == accepted in order; `lost` counts accepted ones that are missing when that is allowed.
std::string match(Expectation *expectation, const ag_test::SimLog &log, bool may_lose, size_t *lost)
{
    std::map<std::string, std::vector<const Executed *>> done;
    std::map<std::string, std::vector<Accepted *>> asked;
    for (const Executed &e : log.executed)
        if (is_kernel(e))
            done[e.stream].push_back(&e);
    for (Accepted &a : expectation->accepted)
        asked[a.stream].push_back(&a);
    *lost = 0;
    for (auto &[stream, list] : asked) {
        std::sort(list.begin(), list.end(),
                  [](const Accepted *a, const Accepted *b) { return a->before < b->before; });
        auto &ran = done[stream];
        size_t at = 0;
        for (Accepted *a : list) {
            if (at < ran.size() && describe(*ran[at]) == a->what) {
                a->done = ran[at++];
            } else if (may_lose) {
                ++*lost;
            } else {
                std::string got =
                    at < ran.size() ? describe(*ran[at]) + " (" + ran[at]->how + ")" : "nothing";
                return "stream " + stream + ", launch " + a->where + ": asked for " +
                       shorten(a->what) + ", ran " + shorten(got);
            }
        }
        if (at < ran.size())
            return "stream " + stream + ": ran " + shorten(describe(*ran[at])) + " (" +
                   ran[at]->how + "), which nobody asked for or not there";
        done.erase(stream);
    }
    for (auto &[stream, ran] : done)
        if (!ran.empty())
            return "stream " + stream + ": ran " + shorten(describe(*ran[0])) +
                   ", which nobody asked for";
    return "";
}

// A call that had returned before another was entered reached the driver before it, whatever thread and stream.
std::string check_order(const Expectation &expectation)
{
    std::map<std::string, std::vector<const Accepted *>> by_context;
    for (const Accepted &a : expectation.accepted)
        if (a.done)
            by_context[a.done->ctx].push_back(&a);
    for (auto &[ctx, list] : by_context) {
        std::sort(list.begin(), list.end(), [](const Accepted *a, const Accepted *b) {
            return std::make_pair(a->done->sub, a->done->seq) <
                   std::make_pair(b->done->sub, b->done->seq);
        });
        const Accepted *latest = nullptr;
        for (const Accepted *a : list) {
            if (latest && latest->before > a->after)
                return "launch " + latest->where + " reached the driver before launch " + a->where +
                       ", which was called earlier";
            if (!latest || a->before > latest->before)
                latest = a;
        }
    }
    return "";
}

// What was in force for each launch, beyond what the program knows: attributes, priority.
std::string compare_states(const Expectation &native, const Expectation &shim)
{
    if (native.accepted.size() != shim.accepted.size())
        return "another number of launches was accepted";
    for (size_t i = 0; i < native.accepted.size(); i++) {
        const Accepted &n = native.accepted[i], &s = shim.accepted[i];
        if (n.done && s.done && n.done->state != s.done->state)
            return "launch " + s.where + " (" + s.done->how + "): native ran with " +
                   n.done->state + ", shim with " + s.done->state;
    }
    return "";
}

// Copies, fills, event records and host functions too stand where they stood in their stream.
std::string compare_streams(const ag_test::SimLog &native, const ag_test::SimLog &shim)
{
    std::map<std::string, std::vector<std::string>> lists[2];
    const ag_test::SimLog *logs[2] = {&native, &shim};
    for (int i = 0; i < 2; i++)
        for (const Executed &e : logs[i]->executed) {
            size_t size = is_kernel(e) ? std::string::npos : e.args.find("n=");
            lists[i][e.stream].push_back(
                e.name + (size == std::string::npos ? "" : " " + e.args.substr(size)));
        }
    for (auto &[stream, list] : lists[0]) {
        const auto &other = lists[1][stream];
        for (size_t i = 0; i < std::max(list.size(), other.size()); i++) {
            std::string n = i < list.size() ? list[i] : "nothing";
            std::string s = i < other.size() ? other[i] : "nothing";
            if (n != s)
                return "stream " + stream + ", operation " + std::to_string(i) + ": native ran " +
                       n + ", shim ran " + s;
        }
    }
    return "";
}

void measure(const Expectation &expectation, Verdict *v)
{
    v->ops = expectation.ops;
    v->launches = expectation.accepted.size();
    for (const Accepted &a : expectation.accepted) {
        if (!a.done || !a.done->in_graph)
            continue;
        v->in_graphs++;
        for (const Loop &l : expectation.loops)
            if (l.track == a.track && l.change && a.before >= l.from && a.before + 1 < l.change)
                v->diverged = true;
    }
    v->replayed = v->in_graphs > 0;
}

std::string first_difference(const std::string &a, const std::string &b)
{
    std::istringstream left(a), right(b);
    std::string x, y;
    for (int line = 1;; line++) {
        bool l = static_cast<bool>(std::getline(left, x)),
             r = static_cast<bool>(std::getline(right, y));
        if (!l && !r)
            return "";
        if (l != r || x != y)
            return "line " + std::to_string(line) + ": native \"" + (l ? x : "(end)") +
                   "\", shim \"" + (r ? y : "(end)") + "\"";
    }
}

bool planted(int code)
{
    return code == 46 || code == 802; // see plan.c
}

// How often the program was told of a fault that was planted in a launch.
size_t count_planted(const std::string &said)
{
    size_t n = 0;
    std::istringstream in(said);
    std::string word;
    while (in >> word)
        for (const char *code : {"46", "802"}) {
            std::string text = code;
            n += word == text || word.rfind(text + ":", 0) == 0 ||
                 (word.size() > text.size() &&
                  word.compare(word.size() - text.size() - 1, std::string::npos, "=" + text) == 0 &&
                  word.rfind("called=", 0) != 0);
        }
    return n;
}

// Each refused launch was told: at once, or later for one that had been accepted. Of several that were lost between
// two chances to tell, one is told.
std::string check_told(const Trace &shim, size_t lost)
{
    size_t fired = static_cast<size_t>(
        std::count_if(shim.log.called.begin(), shim.log.called.end(),
                      [](const ag_test::Called &c) { return planted(c.status); }));
    size_t told = count_planted(shim.said);
    if (lost > fired)
        return std::to_string(lost) + " launches lost, " + std::to_string(fired) + " were refused";
    if (told + (lost ? lost - 1 : 0) < fired)
        return std::to_string(fired) + " launches refused, " + std::to_string(lost) +
               " of them later, and the program was told of " + std::to_string(told);
    if (told > fired)
        return std::to_string(fired) + " launches refused, the program was told of " +
               std::to_string(told);
    return "";
}

// The lane ("ID.ITERATION@LANE WHAT=CODE"), whose context it is about; "" for lines that are no call's answer.
std::string lane_of(const std::string &line)
{
    size_t at = line.find('@'), end = line.find(' ');
    return at == std::string::npos || end == std::string::npos || at > end
               ? ""
               : line.substr(at, end - at);
}

// After a call has answered with a sticky code no call on that lane's context may succeed.
std::string check_sticky(const std::string &said)
{
    static const char *const sticky[] = {"=700", "=719", "=715"};
    std::istringstream in(said);
    std::set<std::string> dead;
    std::string line;
    while (std::getline(in, line)) {
        std::string lane = lane_of(line);
        if (line.compare(0, 8, "episode ") == 0)
            dead.clear();
        if (lane.empty())
            continue;
        std::string code = line.substr(line.rfind('='));
        if (std::any_of(std::begin(sticky), std::end(sticky),
                        [&](const char *s) { return code == s; }))
            dead.insert(lane);
        else if (dead.count(lane) && code == "=0" && line.find(" query") == std::string::npos)
            return "after a sticky error: " + line;
    }
    return "";
}

} // namespace

std::string judge_reference(const Trace &native, Rule rule)
{
    if (native.status != 0)
        return "status " + std::to_string(native.status);
    if (!native.log.bad_line.empty())
        return "log line " + native.log.bad_line;
    size_t lost = 0;
    Expectation e = read_expectation(native.expected);
    std::string why = match(&e, native.log, rule == Rule::sticky, &lost);
    return why.empty() ? check_order(e) : why;
}

Verdict judge(const Trace &native, const Trace &shim, Rule rule)
{
    Verdict v;
    Expectation e = read_expectation(shim.expected);
    size_t lost = 0;
    if (shim.status != 0) {
        v.why = shim.status == 124 ? "hangs" : "dies with status " + std::to_string(shim.status);
        return v;
    }
    v.why = match(&e, shim.log, rule != Rule::strict, &lost);
    measure(e, &v);
    if (v.why.empty())
        v.why = check_order(e);
    if (!v.why.empty())
        return v;
    if (rule == Rule::strict) {
        Expectation reference = read_expectation(native.expected);
        if (match(&reference, native.log, false, &lost).empty())
            v.why = compare_states(reference, e);
        if (v.why.empty() && e.tracks < 2)
            v.why = compare_streams(native.log, shim.log);
    }
    if (!v.why.empty())
        return v;
    if (rule == Rule::strict)
        v.why = first_difference(native.said, shim.said);
    else if (rule == Rule::sticky)
        v.why = check_sticky(shim.said);
    else
        v.why = check_told(shim, lost);
    return v;
}

} // namespace ag_diff
