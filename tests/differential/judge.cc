/* tests/differential/judge.cc - did the device do what the program asked, and did the program see the same?
 * Called by  batch.cc                    Calls  precede.h, tests/support/simlog.h
 * Threads    none
 * Promise    see judge.h
 * Start at   judge() */
#include "tests/differential/judge.h"

#include "tests/differential/precede.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <tuple>

namespace ag_diff
{

namespace
{

using ag_test::Executed;

std::string shorten(const std::string &s)
{
    return s.size() > 160 ? s.substr(0, 160) + "..." : s;
}

std::string field(const std::string &args, const std::string &name)
{
    for (size_t at = 0; at < args.size();) {
        size_t end = std::min(args.find(',', at), args.size());
        if (args.compare(at, name.size(), name) == 0)
            return args.substr(at + name.size(), end - at - name.size());
        at = end + 1;
    }
    return "";
}

bool is_kernel(const Executed &e)
{
    return e.grid != "-";
}

// The shim's own kernel.
bool is_own(const Executed &e)
{
    return is_kernel(e) && e.name == "ag_fill" && e.args.size() == 80;
}

// What no X line stands for: records and waits are judged by the order they make, empty ones do nothing.
bool is_silent(const Executed &e)
{
    return e.name == "eventRecord" || e.name == "waitEvent" || e.name == "empty";
}

// Of a memset the bytes: rows, and what is in them, whatever its elements.
std::string describe_memset(const Executed &e)
{
    const std::string n = field(e.args, "n=");
    unsigned long long width = 0, height = 0;
    sscanf(n.c_str(), "%llux%llu", &width, &height);
    const unsigned long long element = strtoull(e.name.c_str() + 7, nullptr, 10) / 8;
    return "memset - - - dst=" + field(e.args, "dst=") + ",n=" + std::to_string(width * element) +
           "x" + std::to_string(height) + ",pitch=" + field(e.args, "pitch=") +
           ",h=" + field(e.args, "h=");
}

// The bytes at `at` of a kernel's arguments, as the number that they are.
uint64_t number_at(const std::string &hex, size_t at, size_t bytes)
{
    uint64_t n = 0;
    for (size_t i = bytes; i > 0; i--)
        n = n << 8 | strtoull(hex.substr(2 * (at + i - 1), 2).c_str(), nullptr, 16);
    return n;
}

// The kernel that stands for a memset (kernels/fill.cu): to, pitch, columns, height, value, element.
std::string describe_fill(const Executed &e)
{
    const uint64_t columns = number_at(e.args, 16, 8), height = number_at(e.args, 24, 8),
                   value = number_at(e.args, 32, 4), element = number_at(e.args, 36, 4);
    uint64_t h = 14695981039346656037u; // FNV-1a of what is written
    for (uint64_t i = 0; i < columns * height; i++)
        for (uint64_t b = 0; b < element; b++)
            h = (h ^ (value >> 8 * b & 0xff)) * 1099511628211u;
    char text[160];
    snprintf(text, sizeof text, "memset - - - dst=%#llx,n=%llux%llu,pitch=%llu,h=%016llx",
             (unsigned long long)number_at(e.args, 0, 8), (unsigned long long)(columns * element),
             (unsigned long long)height,
             (unsigned long long)(height > 1 ? number_at(e.args, 8, 8) : 0), (unsigned long long)h);
    return text;
}

// In the words of an X line.
std::string describe(const Executed &e)
{
    if (is_own(e))
        return describe_fill(e);
    if (e.name.compare(0, 7, "memsetD") == 0)
        return describe_memset(e);
    std::string name = e.name;
    if (name.compare(0, 6, "memcpy") == 0)
        name = "memcpy";
    else if (name == "callback")
        name = "hostFunc";
    return name + " " + e.grid + " " + e.block + " " + e.shared + " " + e.args;
}

// Equal, but for fields of the expectation that are `*`.
bool is_what(const std::string &expected, const std::string &got)
{
    if (expected == got)
        return true;
    size_t a = 0, b = 0;
    while (a < expected.size() && b < got.size()) {
        if (expected[a] == '*') {
            a++;
            b = std::min(got.find(',', b), got.size());
        } else if (expected[a++] != got[b++]) {
            return false;
        }
    }
    return a == expected.size() && b == got.size();
}

// The calls of one thread on one stream, in their order.
struct Queue {
    std::vector<Accepted *> calls;
    size_t next = 0;
};

struct Match {
    std::map<std::pair<std::string, int>, Queue> queues; // by stream and track
    std::map<std::string, std::string> contexts;         // of the streams, as the log names them
    bool may_lose;
    size_t lost = 0;

    // Finds the call that this is the execution of; with losses, one behind others that are missing then.
    bool take(const Executed &e, bool own_stream, bool skip)
    {
        return (!skip && take_next(e, own_stream)) || (skip && take_later(e, own_stream));
    }

    // Of calls that look the same, by several threads, the one that was made first.
    bool take_next(const Executed &e, bool own_stream)
    {
        Queue *first = nullptr;
        for (auto &[key, q] : queues) {
            if (own_stream != (key.first == e.stream) || q.next == q.calls.size() ||
                (!own_stream && contexts.count(key.first) && contexts[key.first] != e.ctx) ||
                (first && first->calls[first->next]->before < q.calls[q.next]->before))
                continue;
            if (is_what(q.calls[q.next]->what, describe(e)))
                first = &q;
        }
        if (first)
            first->calls[first->next++]->done = &e;
        return first;
    }

    bool take_later(const Executed &e, bool own_stream)
    {
        for (auto &[key, q] : queues) {
            if (own_stream != (key.first == e.stream) ||
                (!own_stream && contexts.count(key.first) && contexts[key.first] != e.ctx))
                continue;
            for (size_t i = q.next; i < q.calls.size(); i++) {
                if (is_what(q.calls[i]->what, describe(e))) {
                    lost += i - q.next;
                    q.calls[i]->done = &e;
                    q.next = i + 1;
                    return true;
                }
            }
        }
        return false;
    }

    const Accepted *expected_on(const std::string &stream) const
    {
        for (const auto &[key, q] : queues)
            if (key.first == stream && q.next < q.calls.size())
                return q.calls[q.next];
        return nullptr;
    }
};

// Everything that ran was asked for and stands where it may stand; everything that was asked for ran, each once.
// `lost` counts accepted ones that are missing when that is allowed. In a dying context a call that waits may answer
// with the context's error although its operation ran.
std::string match(Expectation *expectation, const ag_test::SimLog &log, bool may_lose, size_t *lost,
                  bool dying = false)
{
    Match m{{}, {}, may_lose, 0};
    for (Accepted &a : expectation->accepted)
        m.queues[{a.stream, a.track}].calls.push_back(&a);
    for (auto &[key, q] : m.queues)
        std::stable_sort(q.calls.begin(), q.calls.end(), [](const Accepted *a, const Accepted *b) {
            return a->before < b->before;
        });
    for (const Executed &e : log.executed)
        if (!e.in_graph)
            m.contexts[e.stream] = e.ctx;
    for (const Executed &e : log.executed) {
        if (is_silent(e))
            continue;
        if (m.take(e, true, false) || (e.in_graph && m.take(e, false, false)) ||
            (may_lose && m.take(e, true, true)) ||
            (may_lose && e.in_graph && m.take(e, false, true)))
            continue;
        if (dying && !is_kernel(e))
            continue;
        const Accepted *a = m.expected_on(e.stream);
        return "stream " + e.stream + (a ? ", operation " + a->where : "") + ": asked for " +
               (a ? shorten(a->what) : "nothing") + ", ran " + shorten(describe(e)) + " (" + e.how +
               ")";
    }
    *lost = m.lost;
    for (auto &[key, q] : m.queues) {
        if (!may_lose && q.next < q.calls.size())
            return "stream " + key.first + ", operation " + q.calls[q.next]->where +
                   ": asked for " + shorten(q.calls[q.next]->what) + ", ran nothing";
        *lost += q.calls.size() - q.next;
    }
    return "";
}

// Which of several calls that look the same was lost nobody knows: where they ran is then told of none of them.
void forget_the_likes_of_lost(Expectation *expectation)
{
    std::set<std::tuple<std::string, int, std::string>> lost;
    for (const Accepted &a : expectation->accepted)
        if (!a.done)
            lost.insert({a.stream, a.track, a.what});
    for (Accepted &a : expectation->accepted)
        if (lost.count({a.stream, a.track, a.what}))
            a.done = nullptr;
}

// What was in force for each launch, beyond what the program knows: attributes, priority; and of what moved from
// the device, the bytes.
std::string compare_states(const Expectation &native, const Expectation &shim)
{
    if (native.accepted.size() != shim.accepted.size())
        return "another number of operations was accepted";
    for (size_t i = 0; i < native.accepted.size(); i++) {
        const Accepted &n = native.accepted[i], &s = shim.accepted[i];
        if (!n.done || !s.done || is_own(*s.done))
            continue;
        if (n.done->state != s.done->state)
            return "launch " + s.where + " (" + s.done->how + "): native ran with " +
                   n.done->state + ", shim with " + s.done->state;
        if (!is_kernel(*n.done) && field(n.done->args, "h=") != field(s.done->args, "h="))
            return "operation " + s.where + " (" + s.done->how + "): native moved " + n.done->args +
                   ", shim " + s.done->args;
    }
    return "";
}

void measure(const Expectation &expectation, const ag_test::SimLog &log, Verdict *v)
{
    auto &[records, record_nodes] = v->names["record"];
    for (const Accepted &a : expectation.edges)
        records += a.line == 'R' && a.what[0] != 'v';
    for (const Executed &e : log.executed)
        record_nodes += e.in_graph && e.name == "eventRecord";
    v->ops = expectation.ops;
    v->kinds = expectation.kinds;
    for (const Accepted &a : expectation.accepted) {
        const bool launch = a.what.find(" - - - ") == std::string::npos;
        auto &[accepted, in_graphs] =
            v->names[launch ? "kernel" : a.what.substr(0, a.what.find(' '))];
        accepted++;
        v->launches += launch;
        if (!a.done || !a.done->in_graph)
            continue;
        in_graphs++;
        if (!launch)
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
        return std::to_string(lost) + " operations lost, " + std::to_string(fired) +
               " were refused";
    if (told + (lost ? lost - 1 : 0) < fired)
        return std::to_string(fired) + " operations refused, " + std::to_string(lost) +
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

std::map<uint64_t, uint64_t> read_ends(const std::string &text)
{
    std::map<uint64_t, uint64_t> ends;
    std::istringstream in(text);
    std::string line;
    uint64_t latest = 0;
    while (std::getline(in, line)) {
        if (line.compare(0, 4, "# D ") == 0)
            ends[strtoull(line.c_str() + 4, nullptr, 10)] = latest;
        else if (line.compare(0, 4, "# G ") == 0)
            latest = strtoull(line.c_str() + 4, nullptr, 10);
        else if (line.size() > 2 && (line[0] == 'E' || line[0] == 'C'))
            latest = strtoull(line.c_str() + 2, nullptr, 10);
    }
    return ends;
}

std::string judge_reference(const Trace &native, Rule rule)
{
    if (native.status != 0)
        return "status " + std::to_string(native.status);
    if (!native.log.bad_line.empty())
        return "log line " + native.log.bad_line;
    if (!native.log.cut_line.empty())
        return "cut log line " + native.log.cut_line;
    size_t lost = 0;
    Expectation e = read_expectation(native.expected);
    std::string why = match(&e, native.log, rule == Rule::sticky, &lost, rule == Rule::sticky);
    if (why.empty())
        why = check_submission(e);
    if (why.empty() && rule == Rule::strict)
        why = check_records(e, native.log);
    return why.empty() ? check_precedence(e, native.ends) : why;
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
    v.why = match(&e, shim.log, rule != Rule::strict, &lost, rule == Rule::sticky);
    measure(e, shim.log, &v);
    if (rule != Rule::strict)
        forget_the_likes_of_lost(&e);
    if (v.why.empty())
        v.why = check_submission(e);
    if (v.why.empty() && rule == Rule::strict)
        v.why = check_records(e, shim.log);
    if (v.why.empty())
        v.why = check_precedence(e, shim.ends);
    if (!v.why.empty())
        return v;
    if (rule == Rule::strict) {
        Expectation reference = read_expectation(native.expected);
        if (match(&reference, native.log, false, &lost).empty())
            v.why = compare_states(reference, e);
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
