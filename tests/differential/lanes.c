/* tests/differential/lanes.c - what each lane of a random program owns: made, filled, shown, given back.
 * Called by  run.c, acts.c               Calls  the driver API
 * Threads    a lane is made and closed by the main thread
 * Promise    a lane starts from the same contents every time; df_lane_close shows all of its memory
 * Start at   df_lane_open() */
#include "kernels/images.h"
#include "tests/differential/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void df_text_add(struct df_text *text, const char *format, ...)
{
    if (text->size - text->used < 256) {
        text->size = text->size ? text->size * 2 : 65536;
        text->data = realloc(text->data, text->size);
        if (!text->data)
            abort();
    }
    va_list args;
    va_start(args, format);
    text->used += (size_t)vsnprintf(text->data + text->used, 256, format, args);
    va_end(args);
}

void df_text_add_hex(struct df_text *text, const void *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    while (text->size - text->used < 2 * n + 256) {
        text->size = text->size ? text->size * 2 : 65536;
        text->data = realloc(text->data, text->size);
        if (!text->data)
            abort();
    }
    const unsigned char *b = bytes;
    char *out = text->data + text->used;
    for (size_t i = 0; i < n; i++) {
        *out++ = digit[b[i] >> 4];
        *out++ = digit[b[i] & 15];
    }
    text->used += 2 * n;
    if (!n)
        df_text_add(text, "-");
}

uint32_t df_digest(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 16777619u;
    return h;
}

/* chain, reuse_a, reuse_b and flag stand first: the lanes refer to them by position. */
const struct df_image df_images[] = {{"flag", ag_image_flag},       {"chain", ag_image_chain},
                                     {"reuse_a", ag_image_reuse_a}, {"reuse_b", ag_image_reuse_b},
                                     {"varying", ag_image_varying}, {"stencil", ag_image_stencil},
                                     {"basic", ag_image_basic},     {"smem", ag_image_smem},
                                     {"args", ag_image_args},       {"red", ag_image_red}};
const struct df_kernel df_kernels[] = {
    {"flag", "set_flag", "Wu"},
    {"flag", "wait_flag", "Wu"},
    {"chain", "step", "Wuun"},
    {"chain", "chain", "Wfn"},
    {"chain", "null", ""},
    {"reuse_a", "reuse_a", "Wf"},
    {"reuse_b", "reuse_b", "WriS"},
    {"varying", "vary_mix", "Wu"},
    {"varying", "vary_xor", "Wu"},
    {"varying", "vary_rot", "Wu"},
    {"varying", "vary_pair", "WRun"},
    {"stencil", "stencil_step", "WRxy"},
    {"basic", "copy", "RWn"},
    {"basic", "scale", "Wfn"},
    {"basic", "store", "Wi"},
    {"smem", "uses_dynamic_smem", "W"},
    {"args", "big_args", "WA"},
    {"args", "mixed_args", "WcsidfDb"},
    {"args", "args32k", "WB"},
    {"red", "red", "RWn"},
};

int df_images_count(void)
{
    return (int)(sizeof df_images / sizeof *df_images);
}

const struct df_kernel *df_kernel_of(int image, int i)
{
    for (size_t k = 0; k < sizeof df_kernels / sizeof *df_kernels; k++)
        if (!strcmp(df_kernels[k].image, df_images[image].name) && i-- == 0)
            return &df_kernels[k];
    return NULL;
}

static CUresult find_functions(struct df_lane *lane, int module)
{
    const struct df_kernel *k;
    lane->module[module].functions = 0;
    for (int i = 0; (k = df_kernel_of(lane->module[module].image, i)) != NULL; i++) {
        struct df_function f = {NULL, k, DF_DEFAULT_SHARED};
        CUresult ret = cuModuleGetFunction(&f.handle, lane->module[module].handle, k->name);
        if (ret)
            return ret;
        lane->module[module].function[lane->module[module].functions++] = f;
    }
    return CUDA_SUCCESS;
}

CUresult df_lane_load(struct df_lane *lane, int module, int image)
{
    CUresult ret = cuModuleLoadData(&lane->module[module].handle, df_images[image].bytes);
    lane->module[module].image = image;
    return ret ? ret : find_functions(lane, module);
}

/* How many events of this process have had the handle. */
static unsigned count_life(CUevent event)
{
    enum { HANDLES = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        CUevent event;
        unsigned lives;
    } known[HANDLES];
    unsigned i = 0, life = 0;
    pthread_mutex_lock(&lock);
    while (i < HANDLES && known[i].event && known[i].event != event)
        i++;
    if (i < HANDLES) {
        known[i].event = event;
        life = ++known[i].lives;
    }
    pthread_mutex_unlock(&lock);
    return life;
}

static CUresult make_event(CUevent *out, unsigned flags, unsigned *out_life)
{
    CUresult ret = cuEventCreate(out, flags);
    *out_life = ret ? 0 : count_life(*out);
    return ret;
}

CUresult df_lane_make_event(struct df_lane *lane, int slot)
{
    lane->event_number[slot] = ++lane->events_made;
    return make_event(&lane->event[slot], slot % 2 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING,
                      &lane->event_life[slot]);
}

CUresult df_lane_make_stream(struct df_step *step, int slot, enum df_stream_kind kind)
{
    struct df_stream *s = &step->lane->stream[slot];
    CUresult ret = CUDA_SUCCESS;
    s->kind = kind;
    switch (kind) {
    case DF_BLOCKING:
        ret = cuStreamCreate(&s->handle, CU_STREAM_DEFAULT);
        break;
    case DF_NON_BLOCKING:
        ret = slot == 4 ? cuStreamCreateWithPriority(&s->handle, CU_STREAM_NON_BLOCKING, -1)
                        : cuStreamCreate(&s->handle, CU_STREAM_NON_BLOCKING);
        break;
    case DF_LEGACY:
        s->handle = NULL;
        break;
    case DF_PER_THREAD: /* its number is asked for by the thread it belongs to */
        s->handle = CU_STREAM_PER_THREAD;
        return CUDA_SUCCESS;
    }
    unsigned long long id = 0;
    ret = ret ? ret : cuStreamGetId(s->handle, &id);
    s->id = id;
    if (!ret)
        df_expect_stream(step, s);
    return ret;
}

static CUresult make_context(struct df_run *run, struct df_lane *lane, CUdevice device)
{
    const struct df_plan *plan = run->plan;
    if (lane->index && plan->shared_context) {
        lane->ctx = run->lane[0].ctx;
        return cuCtxSetCurrent(lane->ctx);
    }
    if (!lane->index && plan->primary) {
        CUresult ret = cuDevicePrimaryCtxRetain(&lane->ctx, device);
        return ret ? ret : cuCtxSetCurrent(lane->ctx);
    }
    return cuCtxCreate(&lane->ctx, NULL, 0, device);
}

static CUresult make_streams(struct df_step *step)
{
    struct df_run *run = step->run;
    struct df_lane *lane = step->lane;
    /* Two threads on one legacy stream have no order that the judge could know. */
    bool legacy = lane->index == 0 || run->plan->tracks == 1 || !run->plan->shared_context;
    enum df_stream_kind kind[DF_STREAMS] = {DF_BLOCKING, DF_NON_BLOCKING,
                                            legacy ? DF_LEGACY : DF_NON_BLOCKING, DF_PER_THREAD,
                                            DF_NON_BLOCKING};
    unsigned long long id = 0;
    CUresult ret = cuStreamGetId(NULL, &id);
    lane->plain = (struct df_stream){.kind = DF_LEGACY, .id = id};
    df_expect_stream(step, &lane->plain);
    for (int i = 0; i < DF_STREAMS && !ret; i++) {
        ret = df_lane_make_stream(step, i, kind[i]);
        if (!ret)
            ret = cuMemHostAlloc((void **)&lane->stream[i].out, DF_BYTES, 0);
        if (!ret)
            ret = cuMemHostAlloc((void **)&lane->stream[i].peek, DF_PEEK, 0);
        if (!ret) {
            memset(lane->stream[i].out, 0, DF_BYTES);
            memset(lane->stream[i].peek, 0, DF_PEEK);
        }
    }
    for (int i = 0; i < DF_EVENTS && !ret; i++)
        ret = df_lane_make_event(lane, i);
    return ret;
}

static CUresult put_word(struct df_step *step, CUdeviceptr at, const uint32_t *words, size_t bytes)
{
    uint64_t before = df_enter(step);
    CUresult ret = cuMemcpyHtoD(at, words, bytes);
    if (!ret)
        df_expect_copy(step, &step->lane->plain, before, at, 0,
                       &(struct df_area){.host_source = words, .width = bytes});
    return ret;
}

static CUresult make_buffer(struct df_step *step, int i)
{
    static _Thread_local uint32_t start[DF_LARGE / 4];
    struct df_lane *lane = step->lane;
    CUdeviceptr *p = i < DF_BUFFERS ? &lane->buffer[i].address : &lane->fixed;
    size_t bytes = i == DF_LARGE_BUFFER ? DF_LARGE : DF_BYTES;
    for (uint32_t w = 0; w < bytes / 4; w++)
        start[w] = w * 7u + lane->index;
    if (i < DF_BUFFERS)
        lane->buffer[i].owner = (uint8_t)(i % DF_STREAMS);
    CUresult ret = i == DF_MANAGED_BUFFER ? cuMemAllocManaged(p, bytes, CU_MEM_ATTACH_GLOBAL)
                                          : cuMemAlloc(p, bytes);
    return ret ? ret : put_word(step, *p, start, bytes);
}

/* Half of the blocks are pinned by the driver, half by registration. */
static CUresult make_blocks(struct df_lane *lane)
{
    CUresult ret = CUDA_SUCCESS;
    for (int i = 0; i < DF_BLOCKS && !ret; i++) {
        struct df_block_of_host *b = &lane->block[i];
        b->malloced = i % 2;
        b->pinned = true;
        if (b->malloced) {
            b->bytes = aligned_alloc(4096, DF_BYTES);
            ret = b->bytes ? cuMemHostRegister(b->bytes, DF_BYTES, 0) : CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            ret = cuMemHostAlloc((void **)&b->bytes, DF_BYTES, 0);
        }
        if (!ret)
            ret = make_event(&b->event, CU_EVENT_DISABLE_TIMING, &b->life);
    }
    return ret;
}

static CUresult make_memory(struct df_step *step)
{
    static const uint32_t zero[2 * DF_VALUES];
    struct df_lane *lane = step->lane;
    void *mapped = NULL;
    CUresult ret = cuMemHostAlloc((void **)&lane->pinned, DF_PINNED, 0);
    if (!ret)
        ret = cuMemHostAlloc(&mapped, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
    if (ret)
        return ret;
    lane->word = mapped;
    memset(mapped, 0, 4096);
    ret = cuMemHostGetDevicePointer(&lane->word_device, mapped, 0);
    for (int i = 0; i <= DF_BUFFERS && !ret; i++)
        ret = make_buffer(step, i);
    if (!ret)
        ret = cuMemAlloc(&lane->values, sizeof zero);
    if (!ret)
        ret = put_word(step, lane->values, zero, sizeof zero);
    if (!ret)
        ret = make_blocks(lane);
    return ret ? ret : cuCtxSynchronize();
}

CUresult df_lane_open(struct df_run *run, uint32_t index, CUdevice device)
{
    struct df_lane *lane = &run->lane[index];
    struct df_step step = {.run = run, .lane = lane};
    memset(lane, 0, sizeof *lane);
    lane->index = index;
    lane->home = index % run->plan->threads;
    CUresult ret = make_context(run, lane, device);
    if (!ret)
        ret = make_streams(&step);
    if (!ret)
        ret = make_memory(&step);
    static const int first_image[DF_MODULES] = {1, 4, 2, 0};
    for (int m = 0; m < DF_MODULES && !ret; m++)
        ret = df_lane_load(lane, m, first_image[m]);
    return ret;
}

static void show_memory(struct df_step *step)
{
    static _Thread_local unsigned char bytes[DF_LARGE];
    struct df_lane *lane = step->lane;
    struct df_text *said = &step->run->said[step->track];
    CUresult ret = cuCtxSynchronize();
    df_text_add(said, "lane %u end %d", lane->index, ret);
    for (int i = 0; i < DF_BUFFERS; i++) {
        size_t n = i == DF_LARGE_BUFFER ? DF_LARGE : DF_BYTES;
        memset(bytes, 0, n);
        uint64_t before = df_enter(step);
        ret = cuMemcpyDtoH(bytes, lane->buffer[i].address, n);
        if (!ret)
            df_expect_copy(step, &lane->plain, before, 0, lane->buffer[i].address,
                           &(struct df_area){.width = n});
        df_text_add(said, " %d:%08x", ret, df_digest(bytes, n));
    }
    for (int i = 0; i < DF_STREAMS; i++)
        df_text_add(said, " %llx", (unsigned long long)atomic_load(&lane->stream[i].called));
    df_text_add(said, " word:%u\n", lane->word ? lane->word[0] : 0);
}

/* Host memory of the program's own: the driver must not know it any more. */
static void free_blocks(struct df_lane *lane)
{
    for (int i = 0; i < DF_BLOCKS; i++) {
        struct df_block_of_host *b = &lane->block[i];
        if (!b->malloced)
            continue;
        if (b->pinned && b->bytes)
            cuMemHostUnregister(b->bytes);
        free(b->bytes);
        b->bytes = NULL;
    }
}

/* The context goes last and takes with it what is left; half of the lanes leave that to it. */
void df_lane_close(struct df_run *run, uint32_t index, CUdevice device)
{
    struct df_lane *lane = &run->lane[index];
    struct df_step step = {
        .run = run, .lane = lane, .track = run->plan->tracks > 1 ? lane->index : 0};
    if (cuCtxSetCurrent(lane->ctx))
        return;
    show_memory(&step);
    free_blocks(lane);
    if (run->plan->seed >> index & 1 || (run->plan->shared_context && run->plan->lanes > 1)) {
        for (int m = 0; m < DF_MODULES; m++)
            cuModuleUnload(lane->module[m].handle);
        for (int i = 0; i < DF_EVENTS; i++)
            cuEventDestroy(lane->event[i]);
        for (int i = 0; i < DF_STREAMS; i++)
            if (lane->stream[i].kind == DF_BLOCKING || lane->stream[i].kind == DF_NON_BLOCKING)
                cuStreamDestroy(lane->stream[i].handle);
        for (int i = 0; i < DF_BUFFERS; i++)
            cuMemFree(lane->buffer[i].address);
    }
    if (index && run->plan->shared_context)
        return;
    if (!index && run->plan->primary)
        cuDevicePrimaryCtxRelease(device);
    else
        cuCtxDestroy(lane->ctx);
}
