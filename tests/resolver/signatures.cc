// tests/resolver/signatures.cc - see signatures.h. Names that cuda.h does not declare fall back to
// a type of ours: a qualified name is looked for in the global namespace first, then in the
// namespaces that it uses.
#include "tests/resolver/signatures.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <map>
#include <type_traits>

namespace undeclared
{
struct Nothing {
};
#define FAKE_ROW(symbol) extern const Nothing symbol;
#include "known_rows.def"
#undef FAKE_ROW
} // namespace undeclared
using namespace undeclared;

namespace resolver
{
namespace
{

// System V: eight bytes or less go into a register, more than sixteen are copied to the stack word
// by word.
template <class T> void pass(Signature *s, std::vector<int> *stack)
{
    static_assert(sizeof(T) <= 8 || sizeof(T) > 16, "two registers: not met so far");
    if (std::is_floating_point<T>::value)
        s->floats++;
    else if (sizeof(T) > 16)
        stack->insert(stack->end(), (sizeof(T) + 7) / 8, 8);
    else if (s->bytes.size() < 6)
        s->bytes.push_back(static_cast<int>(sizeof(T)));
    else
        stack->push_back(static_cast<int>(sizeof(T)));
}

template <class R, class... A> Signature of(R (*)(A...))
{
    Signature s;
    std::vector<int> stack;
    s.declared = true;
    (pass<A>(&s, &stack), ...);
    if (!stack.empty())
        s.bytes.resize(6, 0); // registers that carry nothing
    s.bytes.insert(s.bytes.end(), stack.begin(), stack.end());
    return s;
}

template <class T> struct Of {
    static Signature get()
    {
        return of(static_cast<T *>(nullptr));
    }
};
template <> struct Of<const undeclared::Nothing> {
    static Signature get()
    {
        return Signature();
    }
};

} // namespace

const Signature &signature_of(const std::string &symbol)
{
    static const std::map<std::string, Signature> all = {
#define FAKE_ROW(symbol) {#symbol, Of<decltype(::symbol)>::get()},
#include "known_rows.def"
#undef FAKE_ROW
    };
    return all.at(symbol);
}

} // namespace resolver
