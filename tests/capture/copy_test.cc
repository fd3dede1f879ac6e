// Copies of device memory against a scripted driver: nodes of the graph where the places are known to be live,
// calls where they are not.
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>
#include <set>

namespace
{
constexpr CUdeviceptr A = 0x700000000, B = 0x710000000;
const CUcontext CTX = reinterpret_cast<CUcontext>(0x1000);

std::string Line(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    char text[80];
    snprintf(text, sizeof text, "copy %llx from %llx, %zu bytes", to, from, n);
    return text;
}

class Copies : public ::testing::Test
{
  protected:
    Copies() : f(d.Function("f", {8}))
    {
        ag_memory_came(&d.cap, A, 4096);
        ag_memory_came(&d.cap, B, 4096);
    }

    // Launches with a copy after every second one; `step` moves the places.
    void Iterate(int n, unsigned step)
    {
        for (int i = 0; i < n; i++) {
            EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i));
            if (i % 2) {
                asked.push_back(Line(A + step, B + 64 * i, 32));
                EXPECT_EQ(CUDA_SUCCESS, d.Copy(A + step, B + 64 * i, 32));
            }
        }
        EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
    }
    std::vector<std::string> Ran(const char *how = nullptr)
    {
        std::vector<std::string> ran;
        for (const auto &e : d.executed)
            if (e.op.compare(0, 4, "copy") == 0 && (!how || e.how == how))
                ran.push_back(e.op);
        return ran;
    }

    ScriptedDriver d;
    CUfunction f;
    std::vector<std::string> asked;
};

// C1
TEST_F(Copies, OfALearnedLoopAreNodesAndGoWhereEachCallSaid)
{
    for (unsigned k = 0; k < 12; k++)
        Iterate(20, 8 * k);
    EXPECT_EQ(asked, Ran());
    EXPECT_GT(Ran("graph").size(), 60u);
    EXPECT_EQ(120u, ag_count_read(&d.counters.copies_seen));
    EXPECT_EQ(Ran("graph").size(), ag_count_read(&d.counters.copies_replayed));
}

// C2: what is not one live allocation of the context is the driver's to judge, at once.
TEST_F(Copies, OutsideLiveMemoryAreMadeAtOnce)
{
    for (unsigned k = 0; k < 8; k++)
        Iterate(20, 0);
    const size_t before = d.executed.size();
    const struct {
        CUdeviceptr to, from;
        size_t n;
    } bad[] = {{A + 4095, B, 2}, {A - 1, B, 1},    {A, B + 4000, 97}, {A, 0x1234, 1},
               {A + 4096, B, 1}, {A, B, SIZE_MAX}, {A, B, 0}};
    for (const auto &b : bad)
        d.Copy(b.to, b.from, b.n);
    ASSERT_EQ(before + 7, d.executed.size());
    for (size_t i = 0; i < 7; i++)
        EXPECT_EQ("eager", d.executed[before + i].how);
    EXPECT_EQ(7u, ag_count_read(&d.counters.copies_unproven));
}

// C2
TEST_F(Copies, AreNotHeldBeforeOneHasSucceeded)
{
    d.FailCall("cuMemcpyDtoDAsync_v2", 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, d.Copy(A, B, 8));
    EXPECT_EQ(CUDA_SUCCESS, d.Copy(A, B, 8));
    EXPECT_EQ(2, d.calls["cuMemcpyDtoDAsync_v2"]);
}

// O-52, C1: the same bytes mean another place after a free.
TEST_F(Copies, IntoMemoryThatWasAllocatedAgainAreToldToTheGraph)
{
    for (unsigned k = 0; k < 8; k++)
        Iterate(20, 0);
    const int before = d.calls["cuGraphExecMemcpyNodeSetParams"];
    Iterate(20, 0);
    EXPECT_EQ(before, d.calls["cuGraphExecMemcpyNodeSetParams"]);
    ag_memory_goes(&d.cap, A, AG_ROW_cuMemFree_v2);
    ag_memory_came(&d.cap, A, 4096);
    Iterate(20, 0);
    EXPECT_EQ(before + 10, d.calls["cuGraphExecMemcpyNodeSetParams"]);
    EXPECT_EQ(asked, Ran());
}

// C6: a driver that refuses the node, the update or the copy loses nothing.
TEST_F(Copies, SurviveEveryRefusal)
{
    for (const char *entry : {"cuGraphAddMemcpyNode", "cuGraphExecMemcpyNodeSetParams"}) {
        for (int n = 1; n < 12; n++) {
            ScriptedDriver fresh;
            fresh.FailCall(entry, n, CUDA_ERROR_INVALID_VALUE);
            const CUfunction g = fresh.Function("g", {8});
            ag_memory_came(&fresh.cap, A, 4096);
            std::vector<std::string> wanted, ran;
            for (unsigned k = 0; k < 12; k++) {
                for (int i = 0; i < 10; i++) {
                    EXPECT_EQ(CUDA_SUCCESS, fresh.Launch8(g, i));
                    EXPECT_EQ(CUDA_SUCCESS, fresh.Copy(A + k, A + 64 * i, 8));
                    wanted.push_back(Line(A + k, A + 64 * i, 8));
                }
                fresh.Synchronize();
            }
            for (const auto &e : fresh.executed)
                if (e.op.compare(0, 4, "copy") == 0)
                    ran.push_back(e.op);
            EXPECT_EQ(wanted, ran) << entry << " " << n;
        }
    }
}

// A gigabyte gains nothing from a graph.
TEST_F(Copies, ThatAreHugeAreMadeAtOnce)
{
    const CUdeviceptr big = 0x800000000;
    ag_memory_came(&d.cap, big, size_t{8} << 30);
    for (int k = 0; k < 12; k++) {
        for (int i = 0; i < 6; i++)
            d.Copy(big, big + (size_t{4} << 30), (size_t{1} << 30) + 1);
        d.Synchronize();
    }
    EXPECT_EQ(0, d.Count("graph"));
    EXPECT_EQ(72, d.Count("eager"));
}

// A program may end one context while it works in others.
TEST(Memory, ForgetsOneContextAlone)
{
    const CUcontext other = reinterpret_cast<CUcontext>(0x2000);
    ag_memory m = {};
    for (CUdeviceptr i = 0; i < 10; i++)
        ag_memory_add(&m, 0x1000000 + i * 0x1000, 0x800, i % 3 ? CTX : other);
    ag_memory_forget(&m, other);
    EXPECT_EQ(6u, m.n);
    for (CUdeviceptr i = 0; i < 10; i++) {
        const CUdeviceptr at = 0x1000000 + i * 0x1000;
        EXPECT_EQ(i % 3 != 0, ag_memory_generation(&m, at, 1, CTX) != 0);
        EXPECT_EQ(0u, ag_memory_generation(&m, at, 1, other));
    }
    ag_memory_forget(&m, nullptr);
    EXPECT_EQ(0u, m.n);
    ag_memory_clear(&m);
}

TEST(Memory, KnowsEachRangeForAsLongAsItLives)
{
    ag_memory m = {};
    for (CUdeviceptr i = 0; i < 1000; i++)
        ag_memory_add(&m, 0x1000000 + (i * 7919 % 1000) * 0x1000, 0x800, CTX);
    EXPECT_EQ(1000u, m.n);
    std::set<uint64_t> generations;
    for (CUdeviceptr i = 0; i < 1000; i++) {
        const CUdeviceptr base = 0x1000000 + i * 0x1000;
        generations.insert(ag_memory_generation(&m, base + 0x7ff, 1, CTX));
        EXPECT_EQ(0u, ag_memory_generation(&m, base + 0x7ff, 2, CTX));
        EXPECT_EQ(0u, ag_memory_generation(&m, base - 1, 1, CTX));
        EXPECT_EQ(0u, ag_memory_generation(&m, base, 1, reinterpret_cast<CUcontext>(0x2000)));
    }
    EXPECT_EQ(1000u, generations.size());
    EXPECT_EQ(0u, generations.count(0));
    ag_memory_remove(&m, 0x1000000 + 0x800); // no base: nothing
    ag_memory_remove(&m, 0x1000000);
    EXPECT_EQ(0u, ag_memory_generation(&m, 0x1000000, 1, CTX));
    // A range over others: those were freed unseen.
    ag_memory_add(&m, 0x1000400, 0x2000, CTX);
    EXPECT_EQ(998u, m.n);
    EXPECT_NE(0u, ag_memory_generation(&m, 0x1001fff, 0x400, CTX));
    ag_memory_clear(&m);
    EXPECT_EQ(0u, ag_memory_generation(&m, 0x1003000, 1, CTX));
}
} // namespace
