/* capture/memory.c - see memory.h. */
#include "capture/memory.h"
#include <stdlib.h>
#include <string.h>

/* Index of the first range above `at`. */
static uint32_t above(const struct ag_memory *m, CUdeviceptr at)
{
    uint32_t low = 0, high = m->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (m->range[middle].base > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool reserve(struct ag_memory *m)
{
    if (m->n < m->room)
        return true;
    const uint32_t room = m->room ? m->room * 2 : 256;
    struct ag_memory_range *grown =
        m->n < AG_MEMORY_RANGES ? realloc(m->range, room * sizeof *grown) : NULL;
    if (!grown)
        return false;
    m->range = grown;
    m->room = room;
    return true;
}

static void drop(struct ag_memory *m, uint32_t i)
{
    m->n--;
    memmove(&m->range[i], &m->range[i + 1], (m->n - i) * sizeof *m->range);
}

void ag_memory_add(struct ag_memory *m, CUdeviceptr base, size_t bytes, CUcontext ctx)
{
    if (!base || !bytes)
        return;
    ag_lock_take(&m->lock);
    uint32_t i = above(m, base);
    /* What the driver gives out anew has been freed in a way that was not seen. */
    while (i > 0 && m->range[i - 1].base + m->range[i - 1].bytes > base)
        drop(m, --i);
    while (i < m->n && m->range[i].base < base + bytes)
        drop(m, i);
    if (reserve(m)) {
        memmove(&m->range[i + 1], &m->range[i], (m->n - i) * sizeof *m->range);
        m->range[i] = (struct ag_memory_range){base, bytes, ctx, ++m->generations};
        m->n++;
    }
    ag_lock_give(&m->lock);
}

CUcontext ag_memory_remove(struct ag_memory *m, CUdeviceptr base)
{
    CUcontext ctx = NULL;
    ag_lock_take(&m->lock);
    const uint32_t i = above(m, base);
    if (i > 0 && m->range[i - 1].base == base) {
        ctx = m->range[i - 1].ctx;
        drop(m, i - 1);
    }
    ag_lock_give(&m->lock);
    return ctx;
}

void ag_memory_forget(struct ag_memory *m, CUcontext ctx)
{
    uint32_t kept = 0;
    ag_lock_take(&m->lock);
    for (uint32_t i = 0; i < m->n; i++)
        if (ctx && m->range[i].ctx != ctx)
            m->range[kept++] = m->range[i];
    m->n = kept;
    ag_lock_give(&m->lock);
}

void ag_memory_clear(struct ag_memory *m)
{
    ag_lock_take(&m->lock);
    free(m->range);
    m->range = NULL;
    m->n = m->room = 0;
    ag_lock_give(&m->lock);
}

uint64_t ag_memory_generation(struct ag_memory *m, CUdeviceptr at, size_t bytes, CUcontext ctx)
{
    uint64_t generation = 0;
    ag_lock_take(&m->lock);
    const uint32_t i = above(m, at);
    const struct ag_memory_range *r = i > 0 ? &m->range[i - 1] : NULL;
    if (r && bytes && r->ctx == ctx && at - r->base < r->bytes &&
        bytes <= r->bytes - (at - r->base))
        generation = r->generation;
    ag_lock_give(&m->lock);
    return generation;
}
