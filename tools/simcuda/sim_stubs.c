/* tools/simcuda/sim_stubs.c - every name that the real driver exports and we do not implement.
 * Called by  programs                   Calls  sim_call.c
 * Threads    any
 * Promise    each of them resolves, is counted and logged, and answers NOT_SUPPORTED
 * Start at   SIM_STUB. stub_list.inc is made of exports.txt; a definition elsewhere wins over the
 *            weak one here. cuda.h is not included: it would insist on the real signatures       */
#include <stdint.h>

struct sim_entry {
    const char *symbol;
    void *address;
    uint32_t calls, is_stub, drains, faults;
};
struct sim_call {
    struct sim_entry *entry;
    int flags;
};
enum { NEEDS_INIT = 1, NOT_SUPPORTED = 801 };

int sim_call_begin(struct sim_call *call, struct sim_entry *entry, uint64_t cost_ns, int flags);
int sim_call_end(struct sim_call *call, int ret);

#define SIM_STUB(name)                                                                             \
    __attribute__((weak)) int name(void);                                                          \
    static struct sim_entry sim_entry_##name = {                                                   \
        .symbol = #name, .address = (void *)name, .is_stub = 1};                                   \
    __attribute__((used,                                                                           \
                   section("sim_entries"))) static struct sim_entry *const sim_entry_row_##name =  \
        &sim_entry_##name;                                                                         \
    __attribute__((weak)) int name(void)                                                           \
    {                                                                                              \
        struct sim_call call;                                                                      \
        int ret = sim_call_begin(&call, &sim_entry_##name, 100, NEEDS_INIT);                       \
        return sim_call_end(&call, ret ? ret : NOT_SUPPORTED);                                     \
    }

#include "tools/simcuda/stub_list.inc"
