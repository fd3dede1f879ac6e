/* Memory: none on the learned path, bounded in all, and running out of it changes no verdict for
 * the worse. Links with --wrap for malloc, calloc and realloc. */
#include "tests/policy/player.h"

#include "policy/budget.h"

#include <cstdlib>

namespace
{
long allocations = 0;
long left = -1; /* allocations that still work; -1: all */

bool Refuse()
{
    allocations++;
    if (left < 0)
        return false;
    if (left == 0)
        return true;
    left--;
    return false;
}
} // namespace

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size)
{
    return Refuse() ? nullptr : __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size)
{
    return Refuse() ? nullptr : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size)
{
    return Refuse() ? nullptr : __real_realloc(p, size);
}
}

namespace
{

TEST(Memory, ALearnedLoopAllocatesNothing)
{
    Player p;
    Ops body = Body(400);
    for (int i = 0; i < 20; i++)
        p.Run(body);
    long before = allocations;
    for (int i = 0; i < 20; i++)
        for (uint32_t sig : body)
            ag_policy_op(p.policy(), sig);
    EXPECT_EQ(allocations, before);
}

TEST(Memory, TheWrapsAreInPlace)
{
    long before = allocations;
    ag_policy_limits limits = Limits();
    ag_policy_destroy(ag_policy_create(&limits));
    EXPECT_GT(allocations, before);
}

TEST(Memory, CreationFailsCleanlyAtEachAllocation)
{
    ag_policy_limits limits = Limits();
    for (left = 0; left < 3; left++) {
        long works = left;
        EXPECT_EQ(ag_policy_create(&limits), nullptr) << works;
        left = works;
    }
    for (left = 0; left < 2; left++) {
        long works = left;
        EXPECT_EQ(ag_budget_create(100, 10), nullptr) << works;
        left = works;
    }
    left = -1;
}

TEST(Memory, WithoutMemoryWhatIsLearnedStaysAndTheRestIsSent)
{
    Player p;
    for (int i = 0; i < 5; i++) {
        p.Run(Body(120));
        p.Drain(AG_DRAIN_SYNC);
    }
    left = 0;
    for (uint32_t sig = 1000; sig < 3000; sig++)
        p.Op(sig);
    p.Drain(AG_DRAIN_SYNC);
    left = -1;
    EXPECT_LE(p.Look().nodes, 256u);
    p.Mark();
    left = 0;
    p.Run(Body(120));
    p.Drain(AG_DRAIN_SYNC);
    left = -1;
    EXPECT_EQ(p.Share(), 1.0);
    p.ExpectSound();
}

TEST(Memory, HalfAGrowthIsNoGrowth)
{
    for (long works = 0; works < 6; works++) {
        Player p;
        left = works;
        for (uint32_t sig = 1; sig < 5000; sig++)
            ag_policy_op(p.policy(), sig);
        left = -1;
        const char *why = "";
        EXPECT_TRUE(ag_policy_check(p.policy(), &why)) << why;
    }
}

TEST(Memory, LearnsOnceMemoryIsBack)
{
    Player p;
    left = 0;
    for (int i = 0; i < 5; i++) {
        p.Run(Body(400));
        p.Drain(AG_DRAIN_SYNC);
    }
    left = -1;
    for (int i = 0; i < 5; i++) {
        p.Run(Body(400));
        p.Drain(AG_DRAIN_SYNC);
    }
    p.Mark();
    p.Run(Body(400));
    p.Drain(AG_DRAIN_SYNC);
    EXPECT_EQ(p.Share(), 1.0);
}

TEST(Memory, NodesStayWithinTheLimitAndALoopAmongNewOpsIsStillLearned)
{
    ag_policy_limits limits = Limits();
    limits.max_nodes = 1000;
    Player p(limits);
    uint32_t news = 100000;
    for (int i = 0; i < 200; i++) {
        p.Run(Body(60));
        p.Drain(AG_DRAIN_SYNC);
        p.Run(Body(60, news += 60));
        p.Drain(AG_DRAIN_SYNC);
        ASSERT_LE(p.Look().nodes, 1000u);
    }
    p.Mark();
    p.Run(Body(60));
    p.Drain(AG_DRAIN_SYNC);
    EXPECT_EQ(p.Share(), 1.0);
    p.ExpectSound();
}

/* Each round only the drop makes room for something new. */
TEST(Memory, AFullTrieLearnsAgainWhenGraphsAreDropped)
{
    ag_policy_limits limits = Limits();
    limits.max_nodes = 300;
    Player p(limits);
    auto learn = [&](uint32_t from) {
        for (int i = 0; i < 4; i++) {
            p.Run(Body(60, from));
            p.Drain(AG_DRAIN_SYNC);
        }
    };
    for (uint32_t k = 0; k < 5; k++)
        learn(1 + 1000 * k);
    uint64_t built = p.built_nodes;
    learn(50000);
    EXPECT_EQ(p.built_nodes, built) << "everything is needed: no room";
    for (uint32_t segment : p.GraphSegments())
        p.Drop(segment);
    learn(50000);
    p.Mark();
    p.Run(Body(60, 50000));
    p.Drain(AG_DRAIN_SYNC);
    EXPECT_EQ(p.Share(), 1.0);
    p.ExpectSound();
}

} // namespace
