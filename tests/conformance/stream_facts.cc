/* tests/conformance/stream_facts.cc - streams, events, copies, and which calls wait for the device.
 * Called by  facts.cc                   Calls  the driver under test
 * Threads    a second one releases what a test holds
 * Promise    each test is about one thing that the shim relies on
 * Start at   anywhere                                                                       */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

class Events : public Facts
{
};

TEST_F(Events, AnswerBeforeTheyAreRecorded)
{
    CUevent e = event();
    FACT("event.query_never_recorded", drv.cuEventQuery(e), CUDA_SUCCESS);
    FACT("event.sync_never_recorded", drv.cuEventSynchronize(e), CUDA_SUCCESS);
    FACT("event.wait_never_recorded", drv.cuStreamWaitEvent(stream(), e, 0), CUDA_SUCCESS);
    FACT("event.query_null", drv.cuEventQuery(nullptr), CUDA_ERROR_INVALID_HANDLE);
    FACT("event.record_null", drv.cuEventRecord(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    CUevent bad = nullptr;
    FACT("event.create_interprocess_timed", drv.cuEventCreate(&bad, CU_EVENT_INTERPROCESS),
         CUDA_ERROR_INVALID_VALUE);
    FACT("event.create_unknown_flag", drv.cuEventCreate(&bad, 0x100), CUDA_ERROR_INVALID_VALUE);
    FACT("event.wait_unknown_flag", drv.cuStreamWaitEvent(stream(), e, 4),
         CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Events, GiveElapsedTimesOrSayWhyNot)
{
    CUstream s = stream();
    CUevent never = event(), done = event(), later = event(), running = event();
    CUevent untimed = event(CU_EVENT_DISABLE_TIMING);
    CUevent untimed_never = event(CU_EVENT_DISABLE_TIMING);
    CUevent untimed_running = event(CU_EVENT_DISABLE_TIMING);
    float ms = -1;
    NEED(drv.cuEventRecord(done, s));
    NEED(launch(null_kernel, s, {}));
    NEED(drv.cuEventRecord(later, s));
    NEED(drv.cuEventRecord(untimed, s));
    NEED(drv.cuStreamSynchronize(s));
    hold(s);
    NEED(drv.cuEventRecord(running, s));
    NEED(drv.cuEventRecord(untimed_running, s));
    auto elapsed = [&](CUevent a, CUevent b) { return drv.cuEventElapsedTime(&ms, a, b); };
    FACT("elapsed.done_later", elapsed(done, later), CUDA_SUCCESS);
    FACT("elapsed.not_negative", ms >= 0, 1);
    FACT("elapsed.same_event", elapsed(done, done), CUDA_SUCCESS);
    FACT("elapsed.same_event_is_zero", ms == 0, 1);
    FACT("elapsed.never_done", elapsed(never, done), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.done_never", elapsed(done, never), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.never_never", elapsed(never, never), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.done_running", elapsed(done, running), CUDA_ERROR_NOT_READY);
    FACT("elapsed.running_running", elapsed(running, running), CUDA_ERROR_NOT_READY);
    FACT("elapsed.running_never", elapsed(running, never), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.untimed_done", elapsed(untimed, done), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.untimed_running", elapsed(done, untimed_running), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.untimed_never", elapsed(done, untimed_never), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.null", elapsed(nullptr, done), CUDA_ERROR_INVALID_HANDLE);
    FACT("elapsed.no_result", drv.cuEventElapsedTime(nullptr, done, later),
         CUDA_ERROR_INVALID_HANDLE);
    release();
}

TEST_F(Events, AWaitMeansTheRecordAsOfTheCall)
{
    CUstream s1 = stream(), s2 = stream(), s3 = stream();
    CUdeviceptr out = buffer();
    CUevent e = event();
    int v = 3;
    NEED(drv.cuEventRecord(e, s1));
    NEED(drv.cuStreamWaitEvent(s2, e, 0));
    hold(s3);
    NEED(drv.cuEventRecord(e, s3));
    NEED(launch(store, s2, {&out, &v}));
    FACT("event.rerecord_does_not_move_a_wait", drv.cuStreamSynchronize(s2), CUDA_SUCCESS);
    FACT("event.rerecorded_is_not_ready", drv.cuEventQuery(e), CUDA_ERROR_NOT_READY);
    release();
    NEED(drv.cuStreamSynchronize(s3));
    FACT("event.rerecorded_is_ready", drv.cuEventQuery(e), CUDA_SUCCESS);
}

TEST_F(Events, AWaitOutlivesTheEvent)
{
    CUstream s1 = stream(), s2 = stream(), s3 = stream();
    CUevent e = nullptr, other = nullptr;
    NEED(drv.cuEventCreate(&e, 0));
    hold(s1);
    NEED(drv.cuEventRecord(e, s1));
    NEED(drv.cuStreamWaitEvent(s2, e, 0));
    FACT("event.destroy_while_waited_for", drv.cuEventDestroy(e), CUDA_SUCCESS);
    NEED(drv.cuEventCreate(&other, 0));
    NEED(drv.cuEventRecord(other, s3));
    NEED(launch(null_kernel, s2, {}));
    NEED(drv.cuEventSynchronize(other));
    FACT("event.waiter_still_waits", drv.cuStreamQuery(s2), CUDA_ERROR_NOT_READY);
    release();
    FACT("event.waiter_ends", drv.cuStreamSynchronize(s2), CUDA_SUCCESS);
    drv.cuEventDestroy(other);
}

TEST_F(Events, AnEarlyEventDoesNotWaitForLaterWork)
{
    CUstream s = stream();
    CUevent e = event();
    NEED(drv.cuEventRecord(e, s));
    hold(s);
    FACT("event.sync_before_later_work", drv.cuEventSynchronize(e), CUDA_SUCCESS);
    release();
}

class Streams : public Facts
{
};

TEST_F(Streams, SurviveTheirDestruction)
{
    CUstream s = nullptr, again = nullptr;
    CUdeviceptr out = buffer();
    CUevent e1 = event(), e2 = event();
    int v = 21;
    NEED(drv.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    hold(s);
    NEED(launch(store, s, {&out, &v}));
    NEED(drv.cuEventRecord(e1, s));
    FACT("stream.destroy_with_work", drv.cuStreamDestroy(s), CUDA_SUCCESS);
    NEED(drv.cuStreamCreate(&again, CU_STREAM_NON_BLOCKING));
    NEED(drv.cuEventRecord(e2, again));
    NEED(drv.cuEventSynchronize(e2));
    FACT("stream.new_stream_is_free", drv.cuEventQuery(e2), CUDA_SUCCESS);
    FACT("stream.old_work_is_pending", drv.cuEventQuery(e1), CUDA_ERROR_NOT_READY);
    release();
    FACT("stream.old_work_ran", read(out), 21);
    NEED(drv.cuStreamDestroy(again));
}

TEST_F(Streams, KnowTheLegacyStream)
{
    CUstream blocking = stream(CU_STREAM_DEFAULT), free_stream = stream();
    CUevent e = event();
    hold(blocking);
    NEED(drv.cuEventRecord(e, nullptr));
    FACT("legacy.event_waits_for_blocking", drv.cuEventQuery(e), CUDA_ERROR_NOT_READY);
    FACT("legacy.query_with_busy_blocking", drv.cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    NEED(launch(null_kernel, free_stream, {}));
    FACT("legacy.nonblocking_is_free", drv.cuStreamSynchronize(free_stream), CUDA_SUCCESS);
    CUstream second = stream(CU_STREAM_DEFAULT);
    NEED(launch(null_kernel, second, {}));
    FACT("legacy.blocking_after_legacy_waits", drv.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    release();
    FACT("legacy.all_end", drv.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    FACT("legacy.event_ready", drv.cuEventQuery(e), CUDA_SUCCESS);
}

TEST_F(Streams, TheLegacyStreamIsIdleWithoutWorkOfItsOwn)
{
    CUstream blocking = stream(CU_STREAM_DEFAULT);
    NEED(drv.cuCtxSynchronize());
    hold(blocking);
    FACT("legacy.query_without_own_work", drv.cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    FACT("legacy.query_handle_1", drv.cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    FACT("legacy.per_thread_is_free", drv.cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    release();
    NEED(drv.cuCtxSynchronize());
    CUstream nb = stream();
    hold(nb);
    FACT("legacy.not_for_nonblocking", drv.cuStreamQuery(nullptr), CUDA_SUCCESS);
    FACT("legacy.sync_ignores_nonblocking", drv.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    release();
}

TEST_F(Streams, TellPriorities)
{
    int least = 9, greatest = 9, got = 9;
    CUstream s = nullptr;
    NEED(drv.cuCtxGetStreamPriorityRange(&least, &greatest));
    FACT("priority.least", least, 0);
    FACT("priority.greatest", greatest, -5);
    NEED(drv.cuStreamCreateWithPriority(&s, 1, -100));
    NEED(drv.cuStreamGetPriority(s, &got));
    FACT("priority.clamped", got, -5);
    NEED(drv.cuStreamDestroy(s));
    FACT("stream.create_bad_flags", drv.cuStreamCreate(&s, 0x40), CUDA_ERROR_INVALID_VALUE);
    FACT("stream.destroy_null", drv.cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    FACT("stream.destroy_legacy", drv.cuStreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, RunHostFunctionsInOrder)
{
    CUstream s = stream();
    static std::vector<int> seen;
    static CUresult inside;
    seen.clear();
    for (long i = 0; i < 100; i++)
        NEED(drv.cuLaunchHostFunc(
            s, [](void *p) { seen.push_back(static_cast<int>(reinterpret_cast<long>(p))); },
            reinterpret_cast<void *>(i)));
    NEED(drv.cuLaunchHostFunc(
        s, [](void *) { inside = drv.cuStreamQuery(nullptr); }, nullptr));
    NEED(drv.cuStreamSynchronize(s));
    bool in_order = seen.size() == 100;
    for (size_t i = 0; i < seen.size(); i++)
        in_order &= seen[i] == static_cast<int>(i);
    FACT("host_function.once_each_in_order", in_order, 1);
    FACT("host_function.call_inside", inside, CUDA_ERROR_NOT_PERMITTED);
    FACT("host_function.null", drv.cuLaunchHostFunc(s, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, WaitForAndWriteValues)
{
    CUstream a = stream(), b = stream();
    CUdeviceptr at = buffer(), out = buffer();
    int v = 4;
    NEED(drv.cuStreamWaitValue32(b, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
    NEED(launch(store, b, {&out, &v}));
    FACT("value.waiter_waits", drv.cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    NEED(drv.cuStreamWriteValue32(a, at, 1, 0));
    FACT("value.waiter_ends", drv.cuStreamSynchronize(b), CUDA_SUCCESS);
    FACT("value.misaligned", drv.cuStreamWriteValue32(a, at + 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, HaveIds)
{
    unsigned long long null_id = 0, legacy = 0, own = 0, user = 0;
    NEED(drv.cuStreamGetId(nullptr, &null_id));
    NEED(drv.cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    NEED(drv.cuStreamGetId(CU_STREAM_PER_THREAD, &own));
    NEED(drv.cuStreamGetId(stream(), &user));
    FACT("id.null_is_legacy", null_id == legacy, 1);
    FACT("id.per_thread_differs", own == legacy || own == user, 0);
}

TEST_F(Streams, HoldAboutAThousandLaunches)
{
    CUstream s = stream();
    std::atomic<unsigned> launched{0};
    hold(s);
    std::thread busy([&] {
        drv.cuCtxSetCurrent(ctx);
        for (int i = 0; i < 1500; i++) {
            launch(null_kernel, s, {});
            launched++;
        }
    });
    unsigned before = 1, now = 0;
    while (before != now) {
        before = launched;
        usleep(300000);
        now = launched;
    }
    release();
    busy.join();
    NOTE("depth.launches_before_one_blocks", now);
    FACT("depth.about_a_thousand", now > 900 && now < 1100, 1);
}

class Copies : public Facts
{
};

TEST_F(Copies, TakePageableMemoryAtTheCallAndPinnedMemoryLater)
{
    CUstream s = stream();
    CUdeviceptr d = buffer();
    int pageable = 1;
    int *pinned = reinterpret_cast<int *>(flag) + 8;
    *pinned = 1;
    hold(s);
    NEED(drv.cuMemcpyHtoDAsync(d, &pageable, 4, s));
    NEED(drv.cuMemcpyHtoDAsync(d + 4, pinned, 4, s));
    pageable = 2;
    __atomic_store_n(pinned, 2, __ATOMIC_RELEASE);
    release();
    FACT("copy.pageable_as_of_the_call", read(d), 1);
    FACT("copy.pinned_as_of_the_run", read(d, 1), 2);
}

/* The call returns while the stream stands still: has it read all of its source? */
TEST_F(Copies, TakeLargePageableMemoryAtTheCall)
{
    CUstream s = stream();
    CUdeviceptr d = buffer(1 << 20);
    for (size_t n : {size_t{65540}, size_t{1} << 20}) {
        std::vector<int> pageable(n / 4, 1);
        hold(s);
        NEED(drv.cuMemcpyHtoDAsync(d, pageable.data(), n, s));
        std::fill(pageable.begin(), pageable.end(), 2);
        release();
        FACT("copy.pageable_as_of_the_call_" + std::to_string(n), read(d, n / 4 - 1), 1);
    }
}

TEST_F(Copies, CheckTheirOperands)
{
    CUdeviceptr d = buffer(4096);
    int v[4] = {0};
    CUstream s = stream();
    FACT("copy.zero_bytes", drv.cuMemcpyHtoDAsync(d, v, 0, s), CUDA_SUCCESS);
    FACT("copy.to_null", drv.cuMemcpyHtoDAsync(0, v, 16, s), CUDA_ERROR_INVALID_VALUE);
    FACT("copy.from_null", drv.cuMemcpyDtoHAsync(v, 0, 16, s), CUDA_ERROR_INVALID_VALUE);
    FACT("copy.to_unknown", drv.cuMemcpyHtoDAsync(0x10000, v, 16, s), CUDA_ERROR_INVALID_VALUE);
    FACT("copy.within_unknown", drv.cuMemcpyDtoDAsync(d, 0x10000, 16, s), CUDA_ERROR_INVALID_VALUE);
    FACT("memset.zero", drv.cuMemsetD32Async(d, 1, 0, s), CUDA_SUCCESS);
    FACT("memset.misaligned", drv.cuMemsetD32Async(d + 1, 1, 4, s), CUDA_ERROR_INVALID_VALUE);
    FACT("memset.unknown", drv.cuMemsetD8Async(0x10000, 1, 4, s), CUDA_ERROR_INVALID_VALUE);
    FACT("copy.sync_after_refusals", drv.cuStreamSynchronize(s), CUDA_SUCCESS);
}

class Memory : public Facts
{
};

TEST_F(Memory, AnswersForItsHandles)
{
    CUdeviceptr p = 0, base = 0;
    size_t bytes = 0;
    unsigned type = 0;
    FACT("memory.alloc_0", drv.cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    FACT("memory.free_null", drv.cuMemFree(0), CUDA_SUCCESS);
    NEED(drv.cuMemAlloc(&p, 1000));
    NEED(drv.cuMemGetAddressRange(&base, &bytes, p + 10));
    FACT("memory.range_base", base == p, 1);
    FACT("memory.range_bytes", bytes, 1000);
    FACT("memory.free_inside", drv.cuMemFree(p + 8), CUDA_ERROR_INVALID_VALUE);
    FACT("memory.free", drv.cuMemFree(p), CUDA_SUCCESS);
    FACT("memory.free_twice", drv.cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    FACT("memory.free_device_as_host", drv.cuMemFreeHost(&bytes), CUDA_ERROR_INVALID_VALUE);
    FACT("memory.pointer_of_host_variable",
         drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&bytes),
         CUDA_ERROR_INVALID_VALUE);
    FACT("memory.pointer_of_pinned",
         drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)flag),
         CUDA_SUCCESS);
    FACT("memory.pinned_is_host", type, CU_MEMORYTYPE_HOST);
    FACT("memory.too_much", drv.cuMemAlloc(&p, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY);
    FACT("memory.unregister_unknown", drv.cuMemHostUnregister(&bytes),
         CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    NEED(drv.cuMemAlloc(&first, 1 << 20));
    NEED(drv.cuMemFree(first));
    NEED(drv.cuMemAlloc(&second, 1 << 20));
    NEED(drv.cuMemFree(second));
    NOTE("memory.same_address_again", first == second);
    unsigned long long id = 0, id_again = 0;
    NEED(drv.cuMemAlloc(&first, 1 << 20));
    NEED(drv.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, first));
    NEED(drv.cuMemFree(first));
    NEED(drv.cuMemAlloc(&second, 1 << 20));
    NEED(drv.cuPointerGetAttribute(&id_again, CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
    NEED(drv.cuMemFree(second));
    FACT("memory.buffer_id_is_never_reused", id == id_again, 0);
}

TEST_F(Memory, IsFreedInStreamOrder)
{
    CUstream s = stream();
    CUdeviceptr p = 0, q = 0;
    NEED(drv.cuMemAllocAsync(&p, 1 << 16, s));
    NEED(drv.cuMemFreeAsync(p, s));
    NEED(drv.cuMemAllocAsync(&q, 1 << 16, s));
    FACT("pool.same_stream_gets_it_back", p == q, 1);
    NEED(drv.cuMemFreeAsync(q, s));
    FACT("pool.free_twice", drv.cuMemFreeAsync(q, s), CUDA_ERROR_INVALID_VALUE);
    NEED(drv.cuStreamSynchronize(s));
    CUdeviceptr plain = 0;
    NEED(drv.cuMemAlloc(&plain, 4096));
    FACT("pool.free_of_plain_memory", drv.cuMemFreeAsync(plain, s), CUDA_SUCCESS);
}
