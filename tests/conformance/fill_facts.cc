/* tests/conformance/fill_facts.cc - does the shim's own kernel write what a memset writes?
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases what a test holds
 * Promise    every alignment, element and tail, one row and several, and no byte beside them
 * Start at   Fill.WritesWhatAMemsetWrites                                                   */
#include "kernels/images.h"
#include "tests/conformance/facts.h"

#include <functional>
#include <unistd.h>

class Fill : public Facts
{
  protected:
    enum { BYTES = 4096 };
    struct Rows {
        CUdeviceptr to;
        unsigned long long pitch, columns, height;
        unsigned value, element;
    };

    void SetUp() override
    {
        Facts::SetUp();
        s = stream();
        ag_fill = function(ag_image_fill, "ag_fill");
        memset_here = buffer(BYTES);
        fill_here = buffer(BYTES);
    }
    CUresult set(const Rows &r)
    {
        if (r.element == 4)
            return r.height > 1
                       ? drv.cuMemsetD2D32Async(r.to, r.pitch, r.value, r.columns, r.height, s)
                       : drv.cuMemsetD32Async(r.to, r.value, r.columns, s);
        const auto half = static_cast<unsigned short>(r.value);
        if (r.element == 2)
            return r.height > 1
                       ? drv.cuMemsetD2D16Async(r.to, r.pitch, half, r.columns, r.height, s)
                       : drv.cuMemsetD16Async(r.to, half, r.columns, s);
        const auto byte = static_cast<unsigned char>(r.value);
        return r.height > 1 ? drv.cuMemsetD2D8Async(r.to, r.pitch, byte, r.columns, r.height, s)
                            : drv.cuMemsetD8Async(r.to, byte, r.columns, s);
    }
    CUresult fill(Rows r, unsigned grid, unsigned block)
    {
        return launch(ag_fill, s, {&r.to, &r.pitch, &r.columns, &r.height, &r.value, &r.element},
                      grid, block);
    }
    bool same()
    {
        std::vector<unsigned char> a(BYTES), b(BYTES);
        EXPECT_EQ(drv.cuStreamSynchronize(s), CUDA_SUCCESS);
        EXPECT_EQ(drv.cuMemcpyDtoH(a.data(), memset_here, BYTES), CUDA_SUCCESS);
        EXPECT_EQ(drv.cuMemcpyDtoH(b.data(), fill_here, BYTES), CUDA_SUCCESS);
        return a == b;
    }

    CUfunction ag_fill = nullptr;
    CUdeviceptr memset_here = 0, fill_here = 0;
    CUstream s = nullptr;
};

TEST_F(Fill, WritesWhatAMemsetWrites)
{
    unsigned random = 1, cases = 0, different = 0;
    auto below = [&](unsigned n) {
        random = random * 1103515245u + 12345u;
        return (random >> 16) % n;
    };
    for (; cases < 1500; cases++) {
        Rows r;
        r.element = 1u << below(3);
        r.columns = 1 + below(cases % 2 ? 40 : 200);
        r.height = 1 + (below(2) ? below(5) : 0);
        r.pitch = r.height > 1 ? (r.columns + below(9)) * r.element : 0;
        r.value = below(0x10000) << 16 | below(0x10000);
        const unsigned offset = below(16) * r.element;
        r.to = memset_here + offset;
        NEED(set(r));
        r.to = fill_here + offset;
        NEED(fill(r, 1 + below(3), 32 << below(4)));
        different += !same();
    }
    FACT("fill.cases", cases, 1500);
    FACT("fill.different", different, 0);
}

TEST_F(Fill, LoadsBehindWorkThatStandsStill)
{
    CUmodule module = nullptr;
    CUfunction f = nullptr;
    NOTE("fill.load_waits_for_a_kernel", blocks(s, [&] {
             EXPECT_EQ(drv.cuModuleLoadData(&module, ag_image_fill), CUDA_SUCCESS);
             EXPECT_EQ(drv.cuModuleGetFunction(&f, module, "ag_fill"), CUDA_SUCCESS);
             EXPECT_EQ(drv.cuFuncLoad(f), CUDA_SUCCESS);
         }));
    NEED(drv.cuModuleUnload(module));
}

// Does a call that waits keep others from launching? If so, it must not wait where a kernel may depend on them.
TEST_F(Fill, LaunchesOfAnotherThreadBesideCallsThatWait)
{
    CUstream other = stream();
    CUmodule module = nullptr;
    CUdeviceptr p = 0;
    NEED(drv.cuMemAlloc(&p, BYTES));
    auto gets_in = [&](const std::function<CUresult()> &waits) {
        std::atomic<bool> launched{false};
        hold(s);
        std::thread waiting([&] {
            EXPECT_EQ(drv.cuCtxSetCurrent(ctx), CUDA_SUCCESS);
            EXPECT_EQ(waits(), CUDA_SUCCESS);
        });
        std::thread launching([&] {
            usleep(100000);
            EXPECT_EQ(drv.cuCtxSetCurrent(ctx), CUDA_SUCCESS);
            EXPECT_EQ(launch(null_kernel, other, {}), CUDA_SUCCESS);
            launched = true;
        });
        usleep(400000);
        const bool answer = launched;
        release();
        waiting.join();
        launching.join();
        return answer;
    };
    NOTE("fill.launch_beside_a_load_that_waits",
         gets_in([&] { return drv.cuModuleLoadData(&module, ag_image_fill); }));
    NOTE("fill.launch_beside_a_free_that_waits", gets_in([&] { return drv.cuMemFree(p); }));
    NOTE("fill.launch_beside_a_sync_that_waits", gets_in([&] { return drv.cuCtxSynchronize(); }));
    NEED(drv.cuModuleUnload(module));
}
