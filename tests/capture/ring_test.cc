// The last decisions of a context, as they lie in memory.
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace
{

class Ring : public ::testing::Test
{
  protected:
    Ring() : f(d.Function("f", {8}))
    {
    }
    void Loop(int rounds, unsigned ops)
    {
        for (int k = 0; k < rounds; k++) {
            for (unsigned i = 0; i < ops; i++)
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, 1, kStream));
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
        }
    }
    const ag_ring &ring()
    {
        return d.cap.logs[0].load()->ring;
    }
    const CUstream kStream = reinterpret_cast<CUstream>(0x71000);
    ScriptedDriver d;
    CUfunction f;
};

TEST_F(Ring, BeginsWithWhatItIsFoundBy)
{
    Loop(1, 1);
    EXPECT_EQ(0, memcmp("AUTOGRAPH-RING\0", ring().magic, 16));
    EXPECT_EQ(AG_RING_ENTRIES, ring().entries);
    EXPECT_EQ(sizeof(ag_decision), ring().entry_bytes);
}

TEST_F(Ring, SaysOfEachSegmentWhatBecameOfIt)
{
    Loop(20, 12);
    std::set<uint32_t> deeds;
    uint64_t ops = 0;
    ASSERT_LE(ring().count, AG_RING_ENTRIES);
    for (uint64_t i = 0; i < ring().count; i++) {
        const ag_decision &e = ring().entry[i];
        EXPECT_EQ(i + 1, e.number);
        EXPECT_EQ(uint64_t(0x71000), e.stream);
        EXPECT_EQ(e.deed == AG_DEED_SENT, e.graph == 0);
        EXPECT_EQ(e.deed == AG_DEED_REPLAYED, std::string("NONE") == e.why) << e.why;
        deeds.insert(e.deed);
        ops += e.ops;
    }
    EXPECT_EQ((std::set<uint32_t>{AG_DEED_SENT, AG_DEED_REPLAYED, AG_DEED_BUILT}), deeds);
    EXPECT_EQ(20u * 12, ops) << "no op without a decision";
}

TEST_F(Ring, KeepsTheLastOnes)
{
    Loop(int(AG_RING_ENTRIES) + 50, 5);
    EXPECT_GT(ring().count, AG_RING_ENTRIES);
    for (const ag_decision &e : ring().entry) {
        EXPECT_GT(e.number, ring().count - AG_RING_ENTRIES);
        EXPECT_EQ((e.number - 1) % AG_RING_ENTRIES, uint64_t(&e - ring().entry));
    }
}

TEST_F(Ring, SaysThatAGraphWasRefused)
{
    Loop(20, 12);
    const uint64_t before = ring().count;
    d.FailCall("cuGraphLaunch", d.calls["cuGraphLaunch"] + 1, CUDA_ERROR_UNKNOWN);
    Loop(1, 12);
    bool said = false;
    for (uint64_t i = before; i < ring().count; i++) {
        const ag_decision &e = ring().entry[i % AG_RING_ENTRIES];
        said |= e.deed == AG_DEED_SENT && std::string("LAUNCH_FAILED") == e.why;
    }
    EXPECT_TRUE(said);
}

} // namespace
