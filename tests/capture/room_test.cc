// The memory for graphs is the process's: two contexts of one program.
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace
{
const CUcontext kFirst = reinterpret_cast<CUcontext>(0x1000);
const CUcontext kSecond = reinterpret_cast<CUcontext>(0x1100);
const CUstream kStream[] = {reinterpret_cast<CUstream>(0x71000),
                            reinterpret_cast<CUstream>(0x72000)};
CUcontext current, below;
ag_fn slots[AG_ROWS];

CUresult GetCurrent(CUcontext *ctx)
{
    *ctx = current;
    return CUDA_SUCCESS;
}
CUresult StreamGetCtx(CUstream s, CUcontext *ctx)
{
    *ctx = s == kStream[0] ? kFirst : kSecond;
    return CUDA_SUCCESS;
}
CUresult Push(CUcontext ctx)
{
    below = current;
    current = ctx;
    return CUDA_SUCCESS;
}
CUresult Pop(CUcontext *ctx)
{
    *ctx = current;
    current = below;
    return CUDA_SUCCESS;
}

class Room : public ::testing::Test
{
  protected:
    Room() : f(d.Function("f", {8}))
    {
        std::copy(d.table.slot, d.table.slot + AG_ROWS, slots);
        slots[AG_ROW_cuCtxGetCurrent] = reinterpret_cast<ag_fn>(GetCurrent);
        slots[AG_ROW_cuStreamGetCtx] = reinterpret_cast<ag_fn>(StreamGetCtx);
        slots[AG_ROW_cuCtxPushCurrent_v2] = reinterpret_cast<ag_fn>(Push);
        slots[AG_ROW_cuCtxPopCurrent_v2] = reinterpret_cast<ag_fn>(Pop);
        d.table.slot = slots;
        current = kFirst;
        d.options.max_bytes = 1 << 20;
    }
    // Launches replayed in so many rounds of a loop.
    uint64_t Loop(int context, unsigned grid, int rounds)
    {
        const uint64_t before = d.counters.launches_replayed.load();
        current = context ? kSecond : kFirst;
        for (int k = 0; k < rounds; k++) {
            for (int i = 0; i < 12; i++)
                EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, i, grid, kStream[context]));
            EXPECT_EQ(CUDA_SUCCESS, d.Synchronize());
            EXPECT_LE(d.counters.graph_bytes.load(), d.options.max_bytes);
            d.executed.clear();
        }
        EXPECT_EQ(context ? kSecond : kFirst, current);
        return d.counters.launches_replayed.load() - before;
    }
    // The first context takes all that there is; returns a loop that has graphs.
    unsigned FillUp()
    {
        unsigned grid = 1;
        Loop(0, grid, 8);
        const uint64_t each = d.counters.graph_bytes.load();
        while (each > 0 && d.counters.graph_bytes.load() + each <= d.options.max_bytes)
            Loop(0, ++grid, 8);
        EXPECT_GT(grid, 4u);
        EXPECT_EQ(0u, d.counters.graphs_evicted.load());
        return grid;
    }

    ScriptedDriver d;
    CUfunction f;
};

// C5: a program that has moved to another context, and keeps the first one.
TEST_F(Room, GraphsOfAContextThatIsNotUsedGiveRoomToAnother)
{
    FillUp();
    Loop(1, 1, 200);
    EXPECT_GT(Loop(1, 1, 10), 100u);
}

// ... and one that works in both keeps what is in use.
TEST_F(Room, GraphsThatAreUsedMeanwhileStay)
{
    const unsigned used = FillUp();
    for (int k = 0; k < 400; k++) {
        Loop(1, 1, 1);
        EXPECT_EQ(12u, Loop(0, used, 1)) << k;
    }
    EXPECT_EQ(0u, d.counters.graphs_evicted.load());
}
} // namespace
