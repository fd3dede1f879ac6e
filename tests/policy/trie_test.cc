/* The trie alone, and its invariants broken one by one. */
#include "policy/trie.h"

#include "gtest/gtest.h"

#include <string>
#include <vector>

namespace
{

class Trie : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_TRUE(ag_trie_init(&t, 1000));
    }
    void TearDown() override
    {
        ag_trie_fini(&t);
    }
    uint32_t Path(const std::vector<uint32_t> &sigs)
    {
        uint32_t node = AG_TRIE_ROOT;
        for (uint32_t sig : sigs) {
            uint32_t next = ag_trie_find(&t, node, sig);
            node = next ? next : ag_trie_add(&t, node, sig);
            if (!node)
                break;
        }
        return node;
    }
    void ExpectSound()
    {
        const char *why = "";
        EXPECT_TRUE(ag_trie_check(&t, &why)) << why;
    }
    void ExpectBroken(const char *number)
    {
        const char *why = "";
        EXPECT_FALSE(ag_trie_check(&t, &why));
        EXPECT_EQ(std::string(why).substr(0, 2), number);
        EXPECT_FALSE(ag_trie_check(&t, nullptr));
    }
    ag_trie t;
};

TEST_F(Trie, FindsWhatWasAddedAndNothingElse)
{
    uint32_t ab = Path({1, 2});
    EXPECT_EQ(Path({1, 2}), ab);
    EXPECT_EQ(ag_trie_depth(&t, ab), 2u);
    EXPECT_EQ(ag_trie_find(&t, AG_TRIE_ROOT, 2), 0u);
    EXPECT_EQ(ag_trie_find(&t, ab, 1), 0u);
    EXPECT_EQ(t.count, 2u);
    ExpectSound();
}

TEST_F(Trie, KeepsNumbersWhileItGrows)
{
    uint32_t ab = Path({1, 2});
    for (uint32_t i = 0; i < 900; i++)
        Path({100 + i});
    EXPECT_EQ(Path({1, 2}), ab);
    ExpectSound();
}

TEST_F(Trie, CountsGraphsBelow)
{
    uint32_t abc = Path({1, 2, 3}), ab = Path({1, 2}), a = Path({1});
    ag_trie_set_graph(&t, abc, 5);
    ag_trie_set_graph(&t, ab, 6);
    EXPECT_EQ(t.nodes[abc].ready_below, 0u);
    EXPECT_EQ(t.nodes[ab].ready_below, 1u);
    EXPECT_EQ(t.nodes[a].ready_below, 2u);
    EXPECT_EQ(t.graphs, 2u);
    ag_trie_clear_graph(&t, abc);
    EXPECT_EQ(t.nodes[ab].ready_below, 0u);
    EXPECT_EQ(t.nodes[a].ready_below, 1u);
    ag_trie_clear_graph(&t, abc);
    EXPECT_EQ(t.nodes[a].ready_below, 1u) << "there was none any more";
    ExpectSound();
}

TEST_F(Trie, PrunesWhatIsNotNeededAndKeepsGraphsBuildsAndThePath)
{
    uint32_t graph = Path({1, 2, 3}), pending = Path({4, 5}), current = Path({6, 7});
    ag_trie_set_graph(&t, graph, 1);
    t.nodes[pending].pending = 1;
    t.now = 1;
    for (uint32_t i = 0; t.count < t.limit; i++)
        Path({1000 + i});
    uint32_t child = ag_trie_add(&t, current, 8);
    ASSERT_NE(child, 0u);
    EXPECT_EQ(t.count, 8u);
    EXPECT_EQ(Path({1, 2, 3}), graph);
    EXPECT_EQ(Path({4, 5}), pending);
    EXPECT_EQ(Path({6, 7, 8}), child);
    ExpectSound();
}

TEST_F(Trie, KeepsRecurringSegmentsThroughThePrunesBetweenTheirSightings)
{
    uint32_t twice = Path({1, 2, 3});
    for (uint32_t round = 1; round < 5; round++) {
        t.now++;
        t.nodes[twice].seen = 2;
        t.nodes[twice].stamp = t.now;
        for (uint32_t i = 0; i < 990; i++)
            Path({1000 * round + i});
        EXPECT_EQ(Path({1, 2, 3}), twice) << round;
    }
    ExpectSound();
}

TEST_F(Trie, StopsLearningWhenEverythingIsNeededUntilAGraphGoes)
{
    std::vector<uint32_t> nodes;
    for (uint32_t i = 0; i < 1000; i++) {
        nodes.push_back(Path({1 + i}));
        ag_trie_set_graph(&t, nodes.back(), 1 + i);
    }
    EXPECT_EQ(ag_trie_add(&t, AG_TRIE_ROOT, 5000), 0u);
    EXPECT_TRUE(t.full);
    EXPECT_EQ(ag_trie_add(&t, AG_TRIE_ROOT, 5000), 0u);
    EXPECT_EQ(t.graphs, 1000u);
    ag_trie_clear_graph(&t, nodes[17]);
    EXPECT_NE(ag_trie_add(&t, AG_TRIE_ROOT, 5000), 0u);
    ExpectSound();
}

TEST_F(Trie, ClearIsAsNew)
{
    ag_trie_set_graph(&t, Path({1, 2}), 1);
    ag_trie_clear(&t);
    EXPECT_EQ(t.count + t.graphs, 0u);
    EXPECT_EQ(ag_trie_find(&t, AG_TRIE_ROOT, 1), 0u);
    EXPECT_EQ(Path({9}), 1u);
    ExpectSound();
}

TEST_F(Trie, T1CountIsWhatIsUsed)
{
    Path({1, 2});
    t.count++;
    ExpectBroken("T1");
}

TEST_F(Trie, T1ANodeIsFoundUnderItsParentAndSignature)
{
    uint32_t ab = Path({1, 2});
    t.nodes[ab].sig = 3;
    ExpectBroken("T1");
}

TEST_F(Trie, T1AParentIsUsed)
{
    uint32_t ab = Path({1, 2});
    t.nodes[t.nodes[ab].parent].used = 0;
    ExpectBroken("T1");
}

TEST_F(Trie, T2TheGuessIsAChild)
{
    uint32_t ab = Path({1, 2});
    t.nodes[AG_TRIE_ROOT].guess = ab;
    ExpectBroken("T2");
}

TEST_F(Trie, T2AfterIsAChildOfTheRoot)
{
    uint32_t ab = Path({1, 2});
    t.nodes[ab].after = ab;
    ExpectBroken("T2");
}

TEST_F(Trie, T3ReadyBelowCountsGraphs)
{
    uint32_t ab = Path({1, 2});
    t.nodes[ab].graph = 1;
    ExpectBroken("T3");
    t.nodes[ab].graph = 0;
    t.nodes[AG_TRIE_ROOT].ready_below = 1;
    ExpectBroken("T3");
}

TEST_F(Trie, T4AGraphIsNeitherPendingNorFailed)
{
    uint32_t ab = Path({1, 2});
    ag_trie_set_graph(&t, ab, 1);
    t.nodes[ab].pending = 1;
    ExpectBroken("T4");
}

TEST_F(Trie, T5SlotsAddUp)
{
    Path({1, 2});
    t.free = 1;
    ExpectBroken("T5");
}

} // namespace
