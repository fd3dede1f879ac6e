// Where segments end when the caller tells what the arguments are (ag_policy_content).
#include "policy/decide.h"

#include "gtest/gtest.h"

#include <map>
#include <vector>

namespace
{
struct Outcome {
    uint64_t replayed = 0,
             patched = 0; // ops; patched: replayed with other contents than the graph holds
};

// A loop of `period` ops whose signatures recur after `shape` of them; contents recur after `period`, or never.
Outcome Loop(uint32_t shape, uint32_t period, bool vary, uint32_t ops)
{
    const ag_policy_limits limits = {4, 64, 256, 2, 3, 65536};
    ag_policy *p = ag_policy_create(&limits);
    std::map<uint32_t, std::vector<uint32_t>> graphs;
    std::vector<uint32_t> segment;
    Outcome out;
    uint32_t next = 1;
    for (uint32_t i = 0; i < ops; i++) {
        const uint32_t content = vary ? i : i % period;
        segment.push_back(content);
        ag_policy_content(p, content * 2654435761u);
        const ag_verdict v = ag_policy_op(p, 1 + i % period % shape);
        if (!v.cut)
            continue;
        if (v.use == AG_USE_BUILD) {
            graphs[next] = segment;
            ag_policy_built(p, v.segment, next++);
        } else if (v.use == AG_USE_REPLAY && i > ops / 2) {
            out.replayed += segment.size();
            for (size_t k = 0; k < segment.size(); k++)
                out.patched += graphs[v.graph][k] != segment[k];
            graphs[v.graph] = segment;
        } else if (v.use == AG_USE_REPLAY) {
            graphs[v.graph] = segment;
        }
        segment.clear();
    }
    EXPECT_TRUE(ag_policy_check(p, nullptr));
    ag_policy_destroy(p);
    return out;
}

// C5: the graph of a whole iteration needs no patch where arguments recur with the iteration.
TEST(Content, ALoopOfEqualLaunchesIsCutWhereItsArgumentsRecur)
{
    for (uint32_t shape : {1u, 4u, 7u}) {
        for (uint32_t period : {20u, 96u, 120u, 200u}) {
            const Outcome o = Loop(shape, period, false, 100000);
            EXPECT_GT(o.replayed, 45000u) << shape << " " << period;
            EXPECT_LT(o.patched, 500u) << shape << " " << period;
        }
    }
}

// Arguments that never recur must not keep a loop from being cut at its own places.
TEST(Content, ALoopWhoseArgumentsNeverRecurIsReplayedAllTheSame)
{
    for (uint32_t shape : {1u, 4u, 120u})
        EXPECT_GT(Loop(shape, 120, true, 100000).replayed, 45000u) << shape;
}
} // namespace
