/* tests/differential/expect.c - what a random program tells the judge about its accepted calls.
 * Called by  lanes.c, acts.c, buffers.c, copies.c, events.c, pooled.c, launch.c      Calls  lanes.c for texts
 * Threads    see state.h
 * Promise    a line for everything that the device must do and for what orders it; see judge.h for the grammar
 * Start at   df_expect() */
#include "tests/differential/state.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t df_enter(struct df_step *step)
{
    return atomic_fetch_add(&step->run->clock, 1);
}

static uint64_t leave(struct df_step *step)
{
    return atomic_fetch_add(&step->run->clock, 1);
}

static uint32_t id_of(const struct df_step *step)
{
    return step->action ? step->action->id : 0;
}

void df_expect(struct df_step *step, const struct df_stream *stream, uint64_t before,
               const char *name, const char *format, ...)
{
    char args[200];
    va_list list;
    va_start(list, format);
    vsnprintf(args, sizeof args, format, list);
    va_end(list);
    uint64_t after = leave(step);
    df_text_add(&step->run->expected[step->track], "X %llu %llu %u.%u %llu %s - - - %s\n",
                (unsigned long long)before, (unsigned long long)after, id_of(step), step->iteration,
                (unsigned long long)stream->id, name, args);
    atomic_fetch_add(&step->run->ops, 1);
}

void df_expect_stream(struct df_step *step, const struct df_stream *stream)
{
    static const char *const order[] = {"blocking", "free", "legacy", "blocking"};
    df_text_add(&step->run->expected[step->track], "S %llu %s %u\n", (unsigned long long)stream->id,
                order[stream->kind],
                step->run->episode * 16 +
                    (step->run->plan->shared_context ? 0 : step->lane->index));
}

void df_expect_edge(struct df_step *step, const struct df_stream *stream, uint64_t before,
                    char what, const char *key, uint32_t number, CUevent event, unsigned life)
{
    uint64_t after = leave(step);
    df_text_add(&step->run->expected[step->track], "%c %llu %llu %u.%u %llu %s%u.%u.%u %#llx.%u\n",
                what, (unsigned long long)before, (unsigned long long)after, id_of(step),
                step->iteration, (unsigned long long)stream->id, key, step->run->episode,
                step->lane->index, number, (unsigned long long)(uintptr_t)event, life);
}

void df_expect_event(struct df_step *step, const struct df_stream *stream, uint64_t before,
                     char what, int event)
{
    df_expect_edge(step, stream, before, what, "e", step->lane->event_number[event],
                   step->lane->event[event], step->lane->event_life[event]);
    atomic_fetch_add(&step->run->ops, 1);
}

void df_expect_drain(struct df_step *step, uint64_t before)
{
    uint64_t after = leave(step);
    df_text_add(&step->run->expected[step->track], "B %llu %llu %u.%u\n",
                (unsigned long long)before, (unsigned long long)after, id_of(step),
                step->iteration);
}

static uint64_t more(uint64_t h, unsigned char byte)
{
    return (h ^ byte) * 1099511628211ull;
}

static const uint64_t nothing = 14695981039346656037ull;

static uint64_t hash_of(const struct df_area *a, size_t height, size_t depth)
{
    uint64_t h = nothing;
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            const unsigned char *row =
                (const unsigned char *)a->host_source + z * a->slice + y * a->pitch;
            for (size_t x = 0; x < a->width; x++)
                h = more(h, row[x]);
        }
    return h;
}

/* An address of 0 is not told: pageable memory, which somebody may copy from or to in between. */
void df_expect_copy(struct df_step *step, const struct df_stream *stream, uint64_t before,
                    uint64_t dst, uint64_t src, const struct df_area *a)
{
    char to[32] = "*", from[32] = "*", h[32] = "*";
    size_t height = a->height ? a->height : 1, depth = a->depth ? a->depth : 1;
    if (dst)
        snprintf(to, sizeof to, "%#llx", (unsigned long long)dst);
    if (src)
        snprintf(from, sizeof from, "%#llx", (unsigned long long)src);
    if (a->host_source)
        snprintf(h, sizeof h, "%016llx", (unsigned long long)hash_of(a, height, depth));
    df_expect(step, stream, before, "memcpy", "dst=%s,src=%s,n=%zux%zux%zu,h=%s", to, from,
              a->width, height, depth, h);
}

void df_expect_memset(struct df_step *step, const struct df_stream *stream, uint64_t before,
                      CUdeviceptr dst, uint32_t value, unsigned element, size_t width,
                      size_t height, size_t pitch)
{
    uint64_t h = nothing;
    for (size_t i = 0; i < width * height; i++)
        for (unsigned b = 0; b < element; b++)
            h = more(h, (unsigned char)(value >> 8 * b));
    df_expect(step, stream, before, "memset", "dst=%#llx,n=%zux%zu,pitch=%zu,h=%016llx",
              (unsigned long long)dst, width * element, height, height > 1 ? pitch : 0,
              (unsigned long long)h);
}
