/* tests/differential/precede.h - what was accepted, and whether all that had to precede it did.
 * Called by  judge.cc                    Calls  nothing
 * Threads    none
 * Promise    an order is demanded only where CUDA, or the contract of the shim, promises it
 * Start at   check_precedence() */
#ifndef AG_TESTS_DIFFERENTIAL_PRECEDE_H
#define AG_TESTS_DIFFERENTIAL_PRECEDE_H

#include "tests/differential/judge.h"

namespace ag_diff
{

// A line X, R, W or B of the expectation.
struct Accepted {
    char line = 'X';
    uint64_t before = 0, after = 0;
    int track = 0;
    std::string where, stream,
        what,  // action.iteration; stream; X: what the device must be given; R, W: key
        event; // R, W: as the log names it; empty: not told
    const ag_test::Executed *done = nullptr;
};

struct Stream {
    std::string order, context;
};

struct Loop {
    int track;
    uint64_t from, change, to; // of the program's clock; change 0: it never changed
};

struct Expectation {
    std::vector<Accepted> accepted; // lines X
    std::vector<Accepted> edges;    // lines R, W
    std::vector<Accepted> drains;   // lines B
    std::map<std::string, Stream> streams;
    std::vector<Loop> loops;
    std::vector<uint64_t> kinds;
    uint64_t ops = 0;
    int tracks = 0; // highest number seen, plus one
};

Expectation read_expectation(const std::string &text);

// Stream order, event order, the legacy stream's order: what had to be over was over when something began.
std::string check_precedence(const Expectation &e, const std::map<uint64_t, uint64_t> &ends);

// What the driver received: in call order, except that graphs may regroup the streams of a context between two calls
// that drain.
std::string check_submission(const Expectation &e);

// Each record was made where it was asked for, of the event that it was asked for, unless a later one in its stream
// overtook it before anybody could have looked.
std::string check_records(const Expectation &e, const ag_test::SimLog &log);

} // namespace ag_diff
#endif
