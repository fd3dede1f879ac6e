/* tests/conformance/batch_facts.cc - copies that come in batches: when a source is read, what is refused.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases what a test holds
 * Promise    no call that may wait for a stream is made before its release is under way
 * Start at   class Batches                                                                  */
#include "tests/conformance/facts.h"

// Two sources, pinned, and two places for them.
class Batches : public Facts
{
  protected:
    void SetUp() override
    {
        Facts::SetUp();
        s = stream();
        dst[0] = buffer();
        dst[1] = dst[0] + 4;
        pinned = reinterpret_cast<int *>(flag) + 8;
        src[0] = (CUdeviceptr)(uintptr_t)pinned;
        src[1] = src[0] + 4;
    }
    CUresult copy(CUstream where)
    {
        return drv.cuMemcpyBatchAsync(dst, src, bytes, 2, how, first, 2, where);
    }
    // The sources are written again as soon as the call is back; the stream stands still until 300 ms after it began.
    int waits(CUmemcpySrcAccessOrder one, CUmemcpySrcAccessOrder two)
    {
        how[0].srcAccessOrder = one;
        how[1].srcAccessOrder = two;
        pinned[0] = pinned[1] = 1;
        return blocks(s, [&] {
            result = copy(s);
            pinned[0] = pinned[1] = 2;
        });
    }
    CUstream s = nullptr;
    int *pinned = nullptr;
    CUdeviceptr dst[2] = {}, src[2] = {};
    size_t bytes[2] = {4, 4}, first[2] = {0, 1};
    CUmemcpyAttributes how[2] = {};
    CUresult result = CUDA_ERROR_UNKNOWN;
};

TEST_F(Batches, ReadInStreamOrder)
{
    NOTE("blocks.batch_in_stream_order",
         waits(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM));
    FACT("batch.copies", result, CUDA_SUCCESS);
    NOTE("batch.source_in_stream_order", read(dst[0]));
}

TEST_F(Batches, ReadDuringTheCall)
{
    NOTE("blocks.batch_during_the_call", waits(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
                                               CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL));
    FACT("batch.copies_during_the_call", result, CUDA_SUCCESS);
    FACT("batch.source_during_the_call", read(dst[1]), 1);
}

TEST_F(Batches, ReadInBothOrders)
{
    FACT("blocks.batch_in_both_orders",
         waits(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL), 1);
    FACT("batch.copies_in_both_orders", result, CUDA_SUCCESS);
    FACT("batch.source_during_a_call_of_both_orders", read(dst[1]), 1);
}

TEST_F(Batches, ReadInAnyOrder)
{
    NOTE("blocks.batch_in_any_order",
         waits(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, CU_MEMCPY_SRC_ACCESS_ORDER_ANY));
    FACT("batch.copies_in_any_order", result, CUDA_SUCCESS);
}

TEST_F(Batches, AreCheckedAsAWhole)
{
    how[0].srcAccessOrder = how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    NOTE("batch.legacy_stream", copy(nullptr));
    how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    FACT("batch.no_order", copy(s), CUDA_ERROR_INVALID_VALUE);
    how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    first[0] = 1;
    FACT("batch.first_index_not_0", copy(s), CUDA_ERROR_INVALID_VALUE);
    first[0] = 0;
    bytes[1] = 0;
    NOTE("batch.zero_bytes", copy(s));
}
