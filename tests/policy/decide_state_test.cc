/* The invariants of struct ag_policy, broken one by one. */
#include "policy/decide_state.h"

#include "tests/policy/player.h"

namespace
{

class State : public testing::Test
{
  protected:
    /* In the middle of a learned segment, holding. */
    void SetUp() override
    {
        for (int i = 0; i < 3; i++) {
            player.Run(Body(12));
            player.Drain(AG_DRAIN_SYNC);
        }
        player.Run({1, 2, 3, 4, 5, 6});
        p = player.policy();
        ASSERT_FALSE(p->sent);
        ASSERT_TRUE(ag_policy_check(p, nullptr));
    }
    void ExpectBroken(const char *number)
    {
        const char *why = "";
        EXPECT_FALSE(ag_policy_check(p, &why));
        EXPECT_EQ(std::string(why).substr(0, 2), number);
        EXPECT_FALSE(ag_policy_check(p, nullptr));
    }
    Player player;
    ag_policy *p = nullptr;
};

TEST_F(State, P1DepthIsNotBeyondRun)
{
    p->run = p->depth - 1;
    ExpectBroken("P1");
}

TEST_F(State, P1RunIsBelowTheCut)
{
    p->run = p->cut_at;
    ExpectBroken("P1");
}

TEST_F(State, P1TheCutIsNotBeyondTheLimit)
{
    p->cut_at = p->limits.max_segment + 1;
    ExpectBroken("P1");
}

TEST_F(State, P2TheCursorIsAsDeepAsTheSegment)
{
    p->cursor = p->trie.nodes[p->cursor].parent;
    ExpectBroken("P2");
}

TEST_F(State, P2TheCursorIsANode)
{
    p->cursor = p->trie.capacity + 7;
    ExpectBroken("P2");
}

TEST_F(State, P3NothingIsHeldForNoGraph)
{
    p->trie.nodes[p->cursor].ready_below = 0;
    ExpectBroken("P3");
}

TEST_F(State, P3NothingIsHeldOffTheTrie)
{
    p->cursor = AG_POLICY_LOST;
    p->guess = 0;
    ExpectBroken("P3");
}

TEST_F(State, P4TheGuessIsAChildOfTheCursor)
{
    p->guess = p->cursor;
    ExpectBroken("P4");
}

TEST_F(State, P5ThereIsNoSegmentInAPause)
{
    p->pay.aside_left = 1;
    ExpectBroken("P5");
}

TEST_F(State, K1ABlockIsOnlyUnderWayInATrial)
{
    p->pace.spoilt = true;
    ExpectBroken("K1");
    p->pace.spoilt = false;
    p->pace.began_ns = 1;
    ExpectBroken("K1");
}

TEST_F(State, TheCheckGoesDown)
{
    p->pay.patience = 0;
    ExpectBroken("Y3");
    p->pay.patience = 1;
    p->trie.count++;
    ExpectBroken("T1");
}

} // namespace
