/* tests/resolver/signatures.h - what cuda.h says a driver function takes: a hook written in C
 * forwards that and no more, so that is what has to arrive.
 * Called by  calls_test.cc       Calls  nothing (computed from the declarations) */
#ifndef AG_TESTS_RESOLVER_SIGNATURES_H
#define AG_TESTS_RESOLVER_SIGNATURES_H

#include <string>
#include <vector>

namespace resolver
{

struct Signature {
    bool declared = false;  // cuda.h knows the name
    std::vector<int> bytes; // of each integer or stack word, in the order the ABI passes them
    int floats = 0;         // vector registers used
};

const Signature &signature_of(const std::string &symbol);

} // namespace resolver

#endif
