/* Which graph goes when memory is short. */
#include "policy/budget.h"

#include "gtest/gtest.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace
{

class Budget : public testing::Test
{
  protected:
    Budget() : b(ag_budget_create(1000, 64))
    {
    }
    ~Budget() override
    {
        ag_budget_destroy(b);
    }
    uint32_t Admit(uint64_t bytes)
    {
        uint32_t entry = ag_budget_admit(b, bytes);
        for (uint32_t victim; (victim = ag_budget_victim(b));) {
            EXPECT_NE(victim, entry) << "the newest is never the victim";
            victims.push_back(victim);
            ag_budget_release(b, victim);
        }
        return entry;
    }
    ag_budget *b;
    std::vector<uint32_t> victims;
};

TEST_F(Budget, AdmitsUpToTheCapAndNamesEntriesFrom1)
{
    for (uint32_t i = 1; i <= 10; i++)
        EXPECT_EQ(Admit(100), i);
    EXPECT_EQ(ag_budget_bytes(b), 1000u);
    EXPECT_EQ(ag_budget_victim(b), 0u);
}

TEST_F(Budget, RefusesWhatCanNeverFit)
{
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(Admit(1001), 0u);
    EXPECT_EQ(ag_budget_bytes(b), 0u);
}

TEST_F(Budget, AStaleGraphGoesFirst)
{
    uint32_t stale = Admit(400), used = Admit(400);
    for (int i = 0; i < 20; i++)
        ag_budget_use(b, used);
    EXPECT_NE(Admit(400), 0u);
    EXPECT_EQ(victims, std::vector<uint32_t>{stale});
}

TEST_F(Budget, EquallyUsefulGraphsAreNotDisplacedByANewcomer)
{
    std::vector<uint32_t> all;
    for (int i = 0; i < 10; i++)
        all.push_back(Admit(100));
    for (int round = 0; round < 200; round++) {
        for (uint32_t entry : all)
            ag_budget_use(b, entry);
        EXPECT_EQ(Admit(100), 0u);
    }
    EXPECT_TRUE(victims.empty());
}

TEST_F(Budget, AfterTheProgramMovedOnNewGraphsGetIn)
{
    for (int i = 0; i < 10; i++)
        ag_budget_use(b, Admit(100));
    int refused = 0;
    uint32_t entry = 0;
    while (!(entry = Admit(100)) && refused < 100)
        refused++;
    EXPECT_NE(entry, 0u);
    EXPECT_LE(refused, 8);
}

TEST_F(Budget, TheNewestIsNoVictimThoughNothingWasUsedSince)
{
    uint32_t first = Admit(500), second = Admit(500);
    ag_budget_release(b, first);
    uint32_t entry = 0;
    for (int i = 0; i < 20 && !entry; i++)
        entry = Admit(900);
    EXPECT_EQ(entry, first) << "the number is used again";
    EXPECT_EQ(victims, std::vector<uint32_t>{second});
}

TEST_F(Budget, ALargeNewcomerDisplacesSeveralOnlyWhenAllAreStale)
{
    uint32_t a = Admit(300), c = Admit(300), d = Admit(300);
    for (int i = 0; i < 30; i++) {
        ag_budget_use(b, d);
        if (i % 5 == 0)
            ag_budget_use(b, c);
    }
    EXPECT_EQ(Admit(600), 0u) << "one of two is in use";
    for (int i = 0; i < 30; i++)
        ag_budget_use(b, d);
    EXPECT_NE(Admit(600), 0u);
    EXPECT_EQ(victims, (std::vector<uint32_t>{a, c}));
}

TEST_F(Budget, ReusesEntryNumbers)
{
    uint32_t a = Admit(10);
    Admit(10);
    ag_budget_release(b, a);
    EXPECT_EQ(ag_budget_bytes(b), 10u);
    EXPECT_EQ(Admit(10), a);
}

TEST_F(Budget, EntriesAreShortToo)
{
    for (int i = 0; i < 64; i++)
        ASSERT_NE(Admit(1), 0u);
    EXPECT_EQ(Admit(1), 0u);
    for (int i = 0; i < 300; i++)
        ag_budget_use(b, 64);
    EXPECT_NE(Admit(1), 0u);
    EXPECT_EQ(victims.size(), 1u);
}

TEST_F(Budget, UsesFromOtherThreadsNeedNoLock)
{
    std::atomic<bool> stop{false};
    std::vector<std::thread> users;
    for (uint32_t t = 0; t < 2; t++)
        users.emplace_back([&, t] {
            for (uint32_t i = t; !stop; i++)
                ag_budget_use(b, 1 + i % 65);
        });
    for (int i = 0; i < 3000; i++) {
        uint32_t entry = Admit(90);
        if (entry && i % 3 == 0)
            ag_budget_release(b, entry);
        ASSERT_LE(ag_budget_bytes(b), 1000u);
    }
    stop = true;
    for (std::thread &user : users)
        user.join();
}

TEST_F(Budget, IgnoresEntriesThatDoNotExist)
{
    ag_budget_use(b, 0);
    ag_budget_use(b, 12345);
    ag_budget_release(b, 0);
    ag_budget_release(b, 3);
    ag_budget_release(b, 12345);
    EXPECT_EQ(ag_budget_bytes(b), 0u);
}

TEST_F(Budget, NoEntriesMeansNoGraphs)
{
    ag_budget *none = ag_budget_create(1000, 0);
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(ag_budget_admit(none, 1), 0u);
    ag_budget_destroy(none);
    ag_budget_destroy(nullptr);
}

TEST_F(Budget, KeepsItsSumsThroughARandomLife)
{
    std::mt19937 random(3);
    std::map<uint32_t, uint64_t> live;
    for (int i = 0; i < 20000; i++) {
        if (random() % 4 == 0) {
            uint64_t bytes = 1 + random() % 300;
            victims.clear();
            uint32_t entry = Admit(bytes);
            for (uint32_t victim : victims)
                ASSERT_EQ(live.erase(victim), 1u);
            if (entry) {
                ASSERT_EQ(live.count(entry), 0u);
                live[entry] = bytes;
            }
        } else if (!live.empty()) {
            auto it = std::next(live.begin(), random() % live.size());
            if (random() % 30) {
                ag_budget_use(b, it->first);
            } else {
                ag_budget_release(b, it->first);
                live.erase(it);
            }
        }
        uint64_t sum = 0;
        for (auto &e : live)
            sum += e.second;
        ASSERT_EQ(ag_budget_bytes(b), sum);
        ASSERT_LE(sum, 1000u);
    }
}

} // namespace
