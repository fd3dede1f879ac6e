/* tests/fuzz/fuzz.h - one fuzzer: a corpus, its mutations, and a function that judges one input.
 * Called by  *_fuzz.cc of this folder, each of which is a program with fuzz.cc
 * Calls      tests/support/process.h
 * Threads    one
 * Promise    the same seed and corpus give the same inputs, on every machine. The input under test
 *            lies in a mapped file, so it is still there after a crash, a hang or a sanitizer's exit
 * Start at   ag_fuzz::one() of a fuzzer; README.md says how to start one for longer */
#ifndef AG_TESTS_FUZZ_FUZZ_H
#define AG_TESTS_FUZZ_FUZZ_H

#include "gtest/gtest.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ag_fuzz
{

using Bytes = std::string;

/* What a fuzzer says of itself. */
struct Target {
    const char *name;         // its corpus is tests/fuzz/corpus/NAME
    unsigned runs;            // mutations that an ordinary test tries
    size_t longest;           // bytes of an input
    std::vector<Bytes> words; // what mutation likes to insert
};

// The four that a fuzzer defines.
extern const Target target;
// Before anything else; may start the program again in another environment.
void start(int argc, char **argv);
// Judges one input, by gtest expectations.
void one(const Bytes &input);
// After the last one: judges what was put off. `enough`: the ordinary number of mutations was tried,
// so what the fuzzer is there for has been met.
void finish(bool enough);

// Reads bytes from the front of an input; zeros behind its end.
class Reader
{
  public:
    explicit Reader(const Bytes &input) : input_(input)
    {
    }
    bool empty() const
    {
        return at_ >= input_.size();
    }
    uint8_t byte()
    {
        return empty() ? 0 : static_cast<uint8_t>(input_[at_++]);
    }
    Bytes bytes(size_t size)
    {
        const Bytes part = empty() ? Bytes() : input_.substr(at_, size);
        at_ += part.size();
        return part;
    }

  private:
    const Bytes &input_;
    size_t at_ = 0;
};

// `text` as a C string literal would show it.
std::string shown(const Bytes &text);

} // namespace ag_fuzz
#endif
