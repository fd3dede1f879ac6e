/* tests/scenarios/play.h - plays a scene without and with the shim, and compares.
 * Called by  scenarios_test.cc, more_test.cc      Calls  tests/support
 * Threads    none
 * Promise    the run without the shim is the golden record; a pass that never replayed is not a pass
 * Start at   same_as_native() */
#ifndef AG_TESTS_SCENARIOS_PLAY_H
#define AG_TESTS_SCENARIOS_PLAY_H

#include "tests/support/process.h"
#include "tests/support/simlog.h"

#include <map>
#include <string>
#include <vector>

namespace ag_scene
{

using ag_test::SimLog;
using Env = std::map<std::string, std::string>;

constexpr int LIMIT = 100; // seconds; the programs have a watchdog of their own

struct Played {
    ag_test::Run run;
    std::string
        measured; // its lines "measured: ..." of standard error, which differ from run to run
    SimLog log;
    std::string stats;    // what the shim counted
    std::string messages; // what the shim logged
    std::string totals;   // what the driver says of the whole run, its virtual clock among it
    bool faulty = false;  // the driver was told to let calls fail
};

struct Pair {
    Played native, shim;
};

// What the shim has to have done. ANYHOW asks for no replay; OWN_GRAPHS_TOO: the program launches graphs itself.
enum Replays { REPLAYED_THEN_LEFT, REPLAYED, OWN_GRAPHS_TOO, ANYHOW };

Played play_program(const std::string &program, const std::vector<std::string> &arguments,
                    bool with_shim, const Env &more = {});
Played play(const std::string &scene, bool with_shim, const Env &more = {});

// Ended by itself with that status, and its log can be read.
void expect_played(const Played &p, const char *how, int status = 0);

// Per stream, in order: what ran, apart from addresses.
std::map<std::string, std::vector<std::string>> shapes(const SimLog &log);

// Same output, same status, same operations per stream; and the shim did what is asked.
Pair same_as_native(const std::string &scene, const Env &more = {},
                    Replays replays = REPLAYED_THEN_LEFT, int status = 0);

// Operations of that name that ran inside a graph.
size_t in_graphs(const SimLog &log, const std::string &name);

// The number that is printed after a word, -1 without it.
long number_after(const std::string &text, const std::string &word);

} // namespace ag_scene
#endif
