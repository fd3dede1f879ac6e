/* tests/support/simlog.cc - the execution log of the simulated driver, read back.
 * Called by  tests/differential, tests/scenarios      Calls  process.h for the file
 * Threads    none
 * Promise    see simlog.h
 * Start at   read_simlog() */
#include "tests/support/simlog.h"

#include "tests/support/process.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ag_test
{

namespace
{

// Words of a line, separated by one space.
size_t split(std::string_view line, std::string_view *words, size_t limit)
{
    size_t n = 0;
    while (n < limit) {
        size_t end = line.find(' ');
        words[n++] = line.substr(0, end);
        if (end == std::string_view::npos)
            break;
        line.remove_prefix(end + 1);
    }
    return n;
}

uint64_t number(std::string_view word)
{
    return strtoull(std::string(word).c_str(), nullptr, 10);
}

void read_extras(const std::string_view *words, size_t n, Executed *e)
{
    for (size_t i = 0; i < n; i++) {
        if (words[i].substr(0, 4) == "sub=")
            e->sub = number(words[i].substr(4));
        else if (words[i].substr(0, 2) != "t=")
            e->state += std::string(words[i]) + " ";
    }
}

bool read_line(std::string_view line, SimLog *log)
{
    std::string_view w[16];
    size_t n = split(line, w, 16);
    if (n >= 10 && w[0] == "E") {
        Executed e;
        e.seq = number(w[1]);
        e.sub = e.seq;
        e.ctx = w[2];
        e.stream = w[3];
        e.how = w[4];
        e.in_graph = w[4].substr(0, 6) == "graph:";
        e.name = w[5];
        e.grid = w[6];
        e.block = w[7];
        e.shared = w[8];
        e.args = w[9];
        read_extras(w + 10, n - 10, &e);
        log->executed.push_back(std::move(e));
        return true;
    }
    if (n >= 5 && w[0] == "C") {
        Called c;
        c.seq = number(w[1]);
        c.thread = w[2];
        c.symbol = w[3];
        c.status = static_cast<int>(number(w[4]));
        log->called.push_back(std::move(c));
        return true;
    }
    return line.empty() || line[0] == '#';
}

} // namespace

size_t SimLog::in_graphs() const
{
    return static_cast<size_t>(std::count_if(executed.begin(), executed.end(),
                                             [](const Executed &e) { return e.in_graph; }));
}

size_t SimLog::calls(const std::string &symbol) const
{
    return static_cast<size_t>(std::count_if(called.begin(), called.end(),
                                             [&](const Called &c) { return c.symbol == symbol; }));
}

SimLog read_simlog(const std::string &path)
{
    SimLog log;
    std::string text = read_file(path);
    std::string_view rest = text;
    while (!rest.empty()) {
        size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        if (end == std::string_view::npos) {
            log.cut_line = std::string(line);
            break;
        }
        if (!read_line(line, &log) && log.bad_line.empty())
            log.bad_line = std::string(line);
        rest.remove_prefix(end + 1);
    }
    return log;
}

} // namespace ag_test
