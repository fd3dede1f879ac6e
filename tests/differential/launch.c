/* tests/differential/launch.c - launches of a random program: arguments, forms, and refused ones.
 * Called by  acts.c                      Calls  the driver API
 * Threads    see state.h
 * Promise    the memory that holds a launch's arguments is overwritten as soon as the call has returned
 * Start at   df_launch() */
#include "tests/differential/state.h"

#include <string.h>

struct packed {
    unsigned char bytes[33 * 1024];
    size_t used;
    size_t at[12];
    void *where[12];
    uint32_t count;
};

static void put(struct packed *p, const void *value, size_t size, size_t align)
{
    size_t at = (p->used + align - 1) & ~(align - 1);
    memset(p->bytes + p->used, 0, at - p->used);
    memcpy(p->bytes + at, value, size);
    p->at[p->count++] = at;
    p->used = at + size;
}

static void put_words(struct packed *p, uint32_t value, uint32_t words, uint32_t modulo)
{
    static _Thread_local uint32_t w[8184];
    for (uint32_t i = 0; i < words; i++)
        w[i] = (value * (i * 2u + 1u) + i) % modulo;
    put(p, w, words * 4u, 4);
}

static void put_pointer(struct df_step *step, struct packed *p, char kind, int slot)
{
    struct df_lane *lane = step->lane;
    int buffer = df_owned(lane, slot, df_value(step, 1));
    int other = df_owned(lane, slot, df_value(step, 1) + 1u);
    CUdeviceptr address = lane->buffer[buffer].address;
    if (kind == 'R')
        address = other == buffer ? lane->fixed : lane->buffer[other].address;
    else if (kind == 'r')
        address = lane->fixed;
    put(p, &address, sizeof address, 8);
}

static void put_small(struct packed *p, char kind, uint32_t v)
{
    uint32_t word = kind == 'n'   ? 1u + v % DF_WORDS
                    : kind == 'x' ? 16u
                    : kind == 'y' ? 1u + v % 32u
                                  : v;
    int32_t i = (int32_t)(v % 1000u);
    int16_t s = (int16_t)(v % 1000u);
    uint8_t b = (uint8_t)(v % 100u);
    float f = (float)(v % 1000u) / 512.0f;
    double d = (double)(v % 1000u) / 512.0;
    switch (kind) {
    case 'i':
        put(p, &i, 4, 4);
        break;
    case 's':
        put(p, &s, 2, 2);
        break;
    case 'c':
    case 'b':
        put(p, &b, 1, 1);
        break;
    case 'f':
        put(p, &f, 4, 4);
        break;
    case 'd':
        put(p, &d, 8, 8);
        break;
    default:
        put(p, &word, 4, 4);
        break;
    }
}

static void put_param(struct df_step *step, struct packed *p, char kind, int slot, uint32_t nth)
{
    uint32_t v = df_value(step, 2) + nth * 77u + step->twist_argument;
    double eight[8];
    switch (kind) {
    case 'W':
    case 'R':
    case 'r':
        put_pointer(step, p, kind, slot);
        break;
    case 'S':
        put_words(p, v, 16, 1000);
        break;
    case 'A':
        put_words(p, v, 1022, UINT32_MAX);
        break;
    case 'B':
        put_words(p, v, 8184, UINT32_MAX);
        break;
    case 'D':
        for (uint32_t i = 0; i < 8; i++)
            eight[i] = (double)(v % 1000u + i) / 16.0;
        put(p, eight, sizeof eight, 8);
        break;
    default:
        put_small(p, kind, v);
        break;
    }
}

/* The caller's memory: it holds the arguments while the call lasts, and rubbish afterwards. */
static void lend(struct packed *mine, const struct packed *p)
{
    memcpy(mine->bytes, p->bytes, p->used);
    mine->used = p->used;
    for (uint32_t i = 0; i < p->count; i++)
        mine->where[i] = mine->bytes + p->at[i];
}

static void spoil(struct packed *mine)
{
    memset(mine->bytes, 0xa5, mine->used);
    memset(mine->where, 0xa5, sizeof mine->where);
    mine->used = 0;
}

struct shape {
    uint32_t grid, block, shared;
};

static struct shape pick_shape(const struct df_step *step, const struct df_function *f)
{
    static const struct shape table[] = {{1, 32, 0}, {2, 32, 0},  {1, 64, 0},  {4, 32, 0},
                                         {3, 17, 0}, {2, 64, 0},  {1, 128, 0}, {8, 16, 0},
                                         {1, 1, 0},  {5, 8, 512}, {2, 48, 64}, {1, 96, 4096}};
    uint32_t pick = step->action->pick[3];
    struct shape s = table[pick % 12u];
    if (step->action->motion == DF_PARITY && pick % 7u == 0)
        s = table[(pick + step->iteration % 2u) % 12u];
    s.grid += step->twist_grid;
    if (pick >> 8 & 1 && pick >> 9 & 1)
        s.shared = 1024u * (uint32_t)(f->limit / 1024); /* all that is allowed at the moment */
    else if (pick >> 10 & 1 && pick >> 11 & 1 && f->limit > DF_DEFAULT_SHARED)
        s.shared = DF_DEFAULT_SHARED + 1024u;
    if (step->twist_shared)
        s.shared = s.shared < 8192u ? s.shared + 256u : s.shared - 1024u;
    return s;
}

static CUresult call(const struct df_step *step, CUfunction f, CUstream stream,
                     const struct shape *s, struct packed *p, uint32_t form)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, p->bytes, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &p->used, CU_LAUNCH_PARAM_END};
    CUlaunchAttribute attribute[2];
    CUlaunchConfig config = {.gridDimX = s->grid,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = s->block,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = s->shared,
                             .hStream = stream,
                             .attrs = attribute,
                             .numAttrs = 0};
    memset(attribute, 0, sizeof attribute);
    switch (form) {
    case 0:
        return cuLaunchKernel(f, s->grid, 1, 1, s->block, 1, 1, s->shared, stream, NULL, extra);
    case 1:
        return cuLaunchKernelEx(&config, f, p->where, NULL);
    case 2:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
        attribute[0].value.priority = step->action->pick[3] >> 12 & 1 ? -1 : 0;
        config.numAttrs = 1;
        return cuLaunchKernelEx(&config, f, p->where, NULL);
    case 3:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute[0].value.cooperative = 1;
        config.numAttrs = 1;
        return cuLaunchKernelEx(&config, f, p->where, NULL);
    case 4:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute[0].value.programmaticStreamSerializationAllowed = 1;
        attribute[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        attribute[1].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
        config.numAttrs = 1 + (step->action->pick[3] >> 13 & 1);
        return cuLaunchKernelEx(&config, f, p->where, NULL);
    default:
        return cuLaunchKernel(f, s->grid, 1, 1, s->block, 1, 1, s->shared, stream, p->where, NULL);
    }
}

/* In: the clock before and after the call, the stream, and everything the device must be given. */
static void expect_launch(struct df_step *step, const struct df_stream *stream, const char *name,
                          const struct shape *s, const struct packed *p, uint64_t before)
{
    struct df_text *text = &step->run->expected[step->track];
    uint64_t after = atomic_fetch_add(&step->run->clock, 1);
    df_text_add(text, "X %llu %llu %u.%u %llu %s %u,1,1 %u,1,1 %u ", (unsigned long long)before,
                (unsigned long long)after, step->action->id, step->iteration,
                (unsigned long long)stream->id, name, s->grid, s->block, s->shared);
    df_text_add_hex(text, p->bytes, p->used);
    df_text_add(text, "\n");
    atomic_fetch_add(&step->run->ops, 1);
}

static CUresult issue(struct df_step *step, struct df_stream *stream, const struct df_function *f,
                      const struct shape *s, const struct packed *p, uint32_t form)
{
    static _Thread_local struct packed mine;
    uint64_t before = df_enter(step);
    lend(&mine, p);
    CUresult ret = call(step, f->handle, stream->handle, s, &mine, form);
    spoil(&mine);
    if (df_say(step, f->kernel->name, ret) == CUDA_SUCCESS)
        expect_launch(step, stream, f->kernel->name, s, p, before);
    return ret;
}

/* A function of the lane that is not kept for flags, and its arguments. NULL: nothing to launch it on. */
static struct df_function *prepare(struct df_step *step, int slot, struct packed *p)
{
    struct df_lane *lane = step->lane;
    p->used = 0;
    p->count = 0;
    struct df_function *f = df_function_of(lane, step->action->pick[0]);
    if (!f || df_owned(lane, slot, 0) < 0)
        return NULL;
    for (uint32_t i = 0; f->kernel->params[i]; i++)
        put_param(step, p, f->kernel->params[i], slot, i);
    return f;
}

void df_launch(struct df_step *step)
{
    static _Thread_local struct packed p;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    struct df_function *f = prepare(step, slot, &p);
    if (!f)
        return;
    struct shape s = pick_shape(step, f);
    issue(step, stream, f, &s, &p, step->action->form);
}

CUresult df_launch_flag(struct df_step *step, struct df_function *f, uint32_t word, uint32_t value)
{
    static _Thread_local struct packed p;
    p.used = 0;
    p.count = 0;
    CUdeviceptr address = step->lane->word_device + 4u * word;
    put(&p, &address, sizeof address, 8);
    put(&p, &value, sizeof value, 4);
    struct shape s = {1, 1, 0};
    return issue(step, df_stream_of(step, NULL), f, &s, &p, 4);
}

void df_launch_bad(struct df_step *step)
{
    static _Thread_local struct packed p, mine;
    int slot;
    struct df_stream *stream = df_stream_of(step, &slot);
    struct df_function *f = prepare(step, slot, &p);
    if (!f)
        return;
    struct shape s = {1, 32, 0};
    CUfunction handle = f->handle;
    switch (step->action->pick[1] % 5u) {
    case 0:
        s.block = 2048;
        break;
    case 1:
        s.grid = 0;
        break;
    case 2:
        s.shared = (uint32_t)f->limit + 1024u;
        break;
    case 3:
        handle = NULL;
        break;
    default:
        s.shared = 1u << 20;
        break;
    }
    lend(&mine, &p);
    df_say(step, "refused", call(step, handle, stream->handle, &s, &mine, step->action->form));
}
