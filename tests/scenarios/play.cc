/* tests/scenarios/play.cc - plays a scene without and with the shim, and compares. See play.h.
 * Start at   same_as_native() */
#include "tests/scenarios/play.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sstream>

namespace ag_scene
{

namespace
{

void expect_replayed_then_left(const SimLog &log)
{
    size_t first = log.executed.size(), last_eager = 0;
    for (size_t i = 0; i < log.executed.size(); i++) {
        if (log.executed[i].in_graph)
            first = std::min(first, i);
        else
            last_eager = i;
    }
    EXPECT_GT(log.in_graphs(), 0u) << "nothing was replayed: this proves nothing";
    EXPECT_GT(last_eager, first) << "the replay was never left again";
}

// Takes the lines out of a text that tell a measurement.
std::string take_measured(std::string *text)
{
    std::string measured, rest, line;
    std::istringstream in(*text);
    while (std::getline(in, line))
        (line.rfind("measured: ", 0) == 0 ? measured : rest) += line + "\n";
    *text = rest;
    return measured;
}

} // namespace

Played play_program(const std::string &program, const std::vector<std::string> &arguments,
                    bool with_shim, const Env &more)
{
    Played p;
    std::string dir = ag_test::make_dir("ag-scene");
    std::vector<std::string> argv = {ag_test::runfile("tests/scenarios/" + program)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Env env = ag_test::simcuda_env(ag_test::runfile("tools/simcuda"),
                                   with_shim ? ag_test::runfile("libautograph.so") : "");
    env["SIMCUDA_LOG"] = dir + "/log";
    env["SIMCUDA_STATS"] = dir + "/totals";
    env["AUTOGRAPH_STATS"] = dir + "/stats";
    env["AUTOGRAPH_LOG"] = dir + "/messages";
    env["AUTOGRAPH_FLUSH_US"] = "20000";                 // a slow or loaded machine replays too
    if (const char *verify = getenv("AUTOGRAPH_VERIFY")) // the whole suite with it: see BUILD
        env["AUTOGRAPH_VERIFY"] = verify;
    for (const auto &[key, value] : more)
        env[key] = value;
    p.faulty = env.count("SIMCUDA_FAULT");
    p.run = ag_test::run(argv, env, LIMIT);
    p.measured = take_measured(&p.run.err);
    p.log = ag_test::read_simlog(dir + "/log");
    p.stats = ag_test::read_file(dir + "/stats");
    p.messages = ag_test::read_file(dir + "/messages");
    p.totals = ag_test::read_file(dir + "/totals");
    ag_test::remove_dir(dir);
    return p;
}

Played play(const std::string &scene, bool with_shim, const Env &more)
{
    return play_program("scene", {scene}, with_shim, more);
}

void expect_played(const Played &p, const char *how, int status)
{
    EXPECT_FALSE(p.run.timed_out) << how;
    EXPECT_EQ(status, p.run.status) << how << "\n" << p.run.out << p.run.err;
    EXPECT_EQ("", p.log.bad_line) << how;
    if (!p.faulty) { // a graph that cannot be read back counts as a mismatch
        EXPECT_LE(number_after(p.stats, "\"graphs_mismatched\": "), 0) << how << p.messages;
    }
}

std::map<std::string, std::vector<std::string>> shapes(const SimLog &log)
{
    std::map<std::string, std::vector<std::string>> by_stream;
    for (const ag_test::Executed &e : log.executed) {
        // The shim's kernel may stand for a memset.
        const bool memset = e.name == "ag_fill" || e.name.compare(0, 7, "memsetD") == 0;
        by_stream[e.stream].push_back(
            memset ? "memset" : e.name + " " + e.grid + " " + e.block + " " + e.shared);
    }
    return by_stream;
}

Pair same_as_native(const std::string &scene, const Env &more, Replays replays, int status)
{
    Pair p{play(scene, false, more), play(scene, true, more)};
    expect_played(p.native, "without the shim", status);
    expect_played(p.shim, "with the shim", status);
    EXPECT_EQ("", p.native.log.cut_line);
    EXPECT_EQ("", p.shim.log.cut_line);
    EXPECT_EQ(p.native.run.out, p.shim.run.out);
    EXPECT_EQ(p.native.run.err, p.shim.run.err);
    EXPECT_TRUE(shapes(p.native.log) == shapes(p.shim.log)) << "other operations ran";
    if (replays != OWN_GRAPHS_TOO) {
        EXPECT_EQ(0u, p.native.log.in_graphs());
    }
    if (replays == ANYHOW)
        return p;
    EXPECT_GT(p.shim.log.in_graphs(), p.native.log.in_graphs()) << "nothing was replayed";
    if (replays != REPLAYED)
        expect_replayed_then_left(p.shim.log);
    return p;
}

size_t in_graphs(const SimLog &log, const std::string &name)
{
    return static_cast<size_t>(
        std::count_if(log.executed.begin(), log.executed.end(),
                      [&](const ag_test::Executed &e) { return e.in_graph && e.name == name; }));
}

long number_after(const std::string &text, const std::string &word)
{
    size_t at = text.find(word);
    return at == std::string::npos ? -1 : strtol(text.c_str() + at + word.size(), nullptr, 10);
}

} // namespace ag_scene
