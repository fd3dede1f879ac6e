/* tests/differential/pooled.c - memory that is allocated and freed in stream order; managed memory that moves.
 * Called by  acts.c                      Calls  events.c, buffers.c, the driver API
 * Threads    see state.h
 * Promise    an allocation is used only where an order leads from its allocation and on to its free
 * Start at   df_pool() */
#include "tests/differential/state.h"

static void take(struct df_step *step, struct df_buffer *pooled, struct df_stream *stream, int slot)
{
    uint64_t before = df_enter(step);
    CUresult ret = cuMemAllocAsync(&pooled->address, DF_BYTES, stream->handle);
    if (df_say(step, "alloc async", ret)) {
        pooled->address = 0;
        return;
    }
    pooled->owner = (uint8_t)slot;
    df_expect(step, stream, before, "memAlloc", "at=%#llx,n=%d",
              (unsigned long long)pooled->address, DF_BYTES);
    uint32_t v = df_value(step, 2);
    before = df_enter(step);
    ret = cuMemsetD32Async(pooled->address, v, DF_WORDS, stream->handle);
    if (!df_say(step, "fill", ret))
        df_expect_memset(step, stream, before, pooled->address, v, 4, DF_WORDS, 1, 0);
}

static void use(struct df_step *step, const struct df_buffer *pooled, struct df_stream *stream,
                int slot)
{
    int buffer = df_owned(step->lane, slot, df_value(step, 1));
    if (buffer < 0)
        return;
    CUdeviceptr to = step->lane->buffer[buffer].address;
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyDtoDAsync(to, pooled->address, DF_BYTES, stream->handle);
    if (!df_say(step, "use", ret))
        df_expect_copy(step, stream, before, to, pooled->address,
                       &(struct df_area){.width = DF_BYTES});
}

static void give_back(struct df_step *step, struct df_buffer *pooled, struct df_stream *stream)
{
    uint64_t before;
    if (step->action->pick[3] % 5u == 0) { /* like any other allocation */
        df_open_gates(step);
        df_hold_others(step);
        before = df_enter(step);
        df_say_drained(step, "free", before, cuMemFree(pooled->address));
        df_let_others_go(step);
        pooled->address = 0;
        return;
    }
    before = df_enter(step);
    CUresult ret = cuMemFreeAsync(pooled->address, stream->handle);
    if (!df_say(step, "free async", ret))
        df_expect(step, stream, before, "memFree", "at=%#llx,n=%d",
                  (unsigned long long)pooled->address, DF_BYTES);
    pooled->address = 0;
}

/* Allocated, or used and freed: here, or in another stream that an event leads to. */
void df_pool(struct df_step *step)
{
    struct df_buffer *pooled = &step->lane->pooled[step->action->pick[0] % DF_POOLED];
    int slot, event = (int)(step->action->pick[1] % DF_EVENTS);
    struct df_stream *stream = df_stream_of(step, &slot);
    if (!pooled->address) {
        take(step, pooled, stream, slot);
        if (!(step->action->form & 1))
            return; /* the next time, or somebody else, frees it */
    }
    if (!pooled->address)
        return;
    if (pooled->owner != slot) {
        int owner;
        const struct df_stream *from = df_stream_at(step, pooled->owner, &owner);
        if (owner != pooled->owner) /* another thread's own stream, which it alone can record in */
            return;
        if (!df_record(step, from, event) || !df_wait(step, stream, event))
            return;
        pooled->owner = (uint8_t)slot;
    }
    use(step, pooled, stream, slot);
    give_back(step, pooled, stream);
}

void df_prefetch(struct df_step *step)
{
    struct df_lane *lane = step->lane;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    CUdeviceptr p = lane->buffer[DF_MANAGED_BUFFER].address;
    CUmemLocation where = {.type = step->action->form & 1 ? CU_MEM_LOCATION_TYPE_HOST
                                                          : CU_MEM_LOCATION_TYPE_DEVICE};
    if (lane->buffer[DF_MANAGED_BUFFER].owner != slot) { /* refused: not managed */
        df_say(step, "refused", cuMemPrefetchAsync(lane->fixed, 64, where, 0, stream->handle));
        return;
    }
    uint64_t before = df_enter(step);
    CUresult ret = cuMemPrefetchAsync(p, DF_BYTES, where, 0, stream->handle);
    if (!df_say(step, "prefetch", ret))
        df_expect(step, stream, before, "memPrefetch", "at=%#llx,n=%d", (unsigned long long)p,
                  DF_BYTES);
    if (step->action->form & 2)
        df_say(step, "attach", cuStreamAttachMemAsync(stream->handle, p, 0, CU_MEM_ATTACH_GLOBAL));
}
