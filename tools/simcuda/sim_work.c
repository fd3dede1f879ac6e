/* tools/simcuda/sim_work.c - what an operation does when its turn comes.
 * Called by  sim_op.c (workers), sim_exec.c (nodes of a graph)   Calls  kernels/host.cc, libc
 * Threads    lock held on entry and return; released while memory is touched or a kernel runs
 * Promise    the log line stands before the operation begins
 * Start at   sim_work_run()                                                                 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/host.h"
#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_copy.h"
#include "tools/simcuda/sim_graph.h"
#include "tools/simcuda/sim_log.h"
#include "tools/simcuda/sim_memory.h"
#include "tools/simcuda/sim_module.h"
#include "tools/simcuda/sim_op.h"
#include "tools/simcuda/sim_stream.h"

static void free_work(struct sim_object *self)
{
    struct sim_work *w = (struct sim_work *)self;
    switch (w->kind) {
    case SIM_WORK_KERNEL:
        sim_unref(w->kernel.function);
        free(w->kernel.args);
        break;
    case SIM_WORK_COPY:
        free(w->copy.staged);
        break;
    case SIM_WORK_RECORD:
    case SIM_WORK_WAIT:
        sim_unref(w->event.event);
        break;
    case SIM_WORK_BATCH:
        for (size_t i = 0; i < w->batch.n; i++)
            sim_unref(w->batch.list[i]);
        free(w->batch.list);
        break;
    case SIM_WORK_GRAPH:
        sim_program_free_ops(w);
        sim_unref(w->graph.program);
        break;
    default:
        break;
    }
}

struct sim_work *sim_work_new(enum sim_work_kind kind, struct sim_context *ctx)
{
    struct sim_work *w = sim_object_new(sizeof *w, 0, ctx, free_work);
    w->kind = kind;
    return w;
}

/* ---- the log line ---- */

static const uint64_t fnv_start = 14695981039346656037ull, fnv_prime = 1099511628211ull;

static uint64_t hash_rows(const struct sim_copy_work *c)
{
    uint64_t h = fnv_start;
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++) {
            const unsigned char *row =
                (const unsigned char *)c->src + z * c->src_slice + y * c->src_pitch;
            for (size_t x = 0; x < c->width; x++)
                h = (h ^ row[x]) * fnv_prime;
        }
    return h;
}

/* Of the bytes that a memset writes. */
static uint64_t hash_of_set(const struct sim_set_work *s)
{
    const unsigned char *value = (const unsigned char *)&s->value;
    uint64_t h = fnv_start;
    for (size_t i = 0; i < s->height * s->width; i++)
        for (uint32_t b = 0; b < s->element; b++)
            h = (h ^ value[b]) * fnv_prime;
    return h;
}

static void describe_kernel(struct sim_text *t, const struct sim_kernel_work *k, int priority)
{
    sim_text_add(t, "%s %u,%u,%u %u,%u,%u %u ", k->function->name, k->grid[0], k->grid[1],
                 k->grid[2], k->block[0], k->block[1], k->block[2], k->shared);
    sim_text_hex(t, k->args, k->function->host->args_bytes);
    sim_text_add(t, " fn=%d,%d,%d prio=%d", k->max_dynamic, k->carveout, k->cache, priority);
    const char *lead = " attr=";
    for (unsigned i = 0; i < k->nattributes; i++) {
        /* A permission to overlap, which is not made use of here: nothing that was executed. */
        if (k->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            continue;
        sim_text_add(t, "%s%d:", lead, (int)k->attributes[i].id);
        sim_text_hex(t, &k->attributes[i].value, sizeof k->attributes[i].value);
        lead = ",";
    }
}

/* What it runs with: a node's own priority counts only where the instantiation asked for it. */
static int priority_of(const struct sim_work *w, const struct sim_op *op)
{
    if (w == op->work ||
        op->work->graph.program->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
        return w->kernel.priority;
    return op->stream->priority;
}

static void describe(struct sim_text *t, const struct sim_work *w, const struct sim_op *op)
{
    switch (w->kind) {
    case SIM_WORK_KERNEL:
        describe_kernel(t, &w->kernel, priority_of(w, op));
        break;
    case SIM_WORK_COPY:
        sim_text_add(t, "memcpy%cto%c - - - dst=", w->copy.src_host ? 'H' : 'D',
                     w->copy.dst_host ? 'H' : 'D');
        if (w->copy.dst_host && !sim_memory_at(w->copy.dst))
            sim_text_add(t, "pageable");
        else
            sim_text_add(t, "%#llx", (unsigned long long)w->copy.dst);
        if (w->copy.staged)
            sim_text_add(t, ",src=pageable");
        else
            sim_text_add(t, ",src=%#llx", (unsigned long long)w->copy.src);
        sim_text_add(t, ",n=%zux%zux%zu,h=%016llx", w->copy.width, w->copy.height, w->copy.depth,
                     (unsigned long long)hash_rows(&w->copy));
        break;
    case SIM_WORK_SET:
        sim_text_add(t, "memsetD%u - - - dst=%#llx,value=%#x,n=%zux%zu,pitch=%zu,h=%016llx",
                     w->set.element * 8, (unsigned long long)w->set.dst, w->set.value, w->set.width,
                     w->set.height, w->set.height > 1 ? w->set.pitch : 0,
                     (unsigned long long)hash_of_set(&w->set));
        break;
    case SIM_WORK_RECORD:
    case SIM_WORK_WAIT:
        sim_text_add(t, "%s - - - event=%#llx.%u",
                     w->kind == SIM_WORK_RECORD ? "eventRecord" : "waitEvent",
                     (unsigned long long)(uintptr_t)w->event.event->name, w->event.event->life);
        break;
    case SIM_WORK_HOST:
        sim_text_add(t, "hostFunc - - - -");
        break;
    case SIM_WORK_CALLBACK:
        sim_text_add(t, "callback - - - -");
        break;
    case SIM_WORK_WAIT_VALUE:
    case SIM_WORK_WRITE_VALUE:
        sim_text_add(t, "%s%u - - - at=%#llx,value=%#llx,flags=%u",
                     w->kind == SIM_WORK_WAIT_VALUE ? "waitValue" : "writeValue",
                     w->value.bytes * 8, (unsigned long long)w->value.at,
                     (unsigned long long)w->value.value, w->value.flags);
        break;
    case SIM_WORK_ALLOC:
    case SIM_WORK_FREE:
    case SIM_WORK_PREFETCH:
        sim_text_add(t, "%s - - - at=%#llx,n=%zu",
                     w->kind == SIM_WORK_ALLOC  ? "memAlloc"
                     : w->kind == SIM_WORK_FREE ? "memFree"
                                                : "memPrefetch",
                     (unsigned long long)w->memory.at, w->memory.bytes);
        break;
    case SIM_WORK_EMPTY:
        sim_text_add(t, "empty - - - -");
        break;
    case SIM_WORK_BATCH: /* its parts have lines of their own */
    case SIM_WORK_GRAPH:
        break;
    }
}

static uint64_t log_work(const struct sim_work *w, const struct sim_op *op, const char *how,
                         uint64_t start_ns)
{
    static struct sim_text text;
    if (!sim_log_wanted() || w->kind == SIM_WORK_BATCH)
        return 0;
    const unsigned long long seq = (unsigned long long)sim_log_next();
    if (w->kind == SIM_WORK_GRAPH)
        sim_text_add(&text, "# G %llu %llu %llu %#llx nodes=%zu", seq,
                     (unsigned long long)op->stream->object.ctx->id,
                     (unsigned long long)op->stream->id, (unsigned long long)w->graph.exec,
                     w->graph.program->n);
    else
        sim_text_add(&text, "E %llu %llu %llu %s ", seq,
                     (unsigned long long)op->stream->object.ctx->id,
                     (unsigned long long)op->stream->id, how);
    describe(&text, w, op);
    sim_text_add(&text, " sub=%llu t=%llu", (unsigned long long)op->sub,
                 (unsigned long long)start_ns);
    sim_log_line(&text);
    return seq;
}

/* "# D SEQ": the operation of that line is over. */
static void log_end(uint64_t seq)
{
    static struct sim_text text;
    if (!sim.log_ends || !seq)
        return;
    sim_text_add(&text, "# D %llu", (unsigned long long)seq);
    sim_log_line(&text);
}

/* ---- the effect; the lock is not held ---- */

static void run_copy(const struct sim_copy_work *c)
{
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            memmove((char *)c->dst + z * c->dst_slice + y * c->dst_pitch,
                    (const char *)c->src + z * c->src_slice + y * c->src_pitch, c->width);
}

/* Words whole: the host may be watching one. */
static void run_set(const struct sim_set_work *s)
{
    for (size_t y = 0; y < s->height; y++) {
        char *row = (char *)s->dst + y * s->pitch;
        for (size_t x = 0; x < s->width; x++)
            if (s->element == 4)
                __atomic_store_n((uint32_t *)(void *)(row + x * 4), (uint32_t)s->value,
                                 __ATOMIC_RELAXED);
            else
                memcpy(row + x * s->element, &s->value, s->element);
    }
}

static int run_kernel(const struct sim_kernel_work *k)
{
    sim_module_bring_constants(k->function->module);
    struct sim_host_launch launch = {k->function->host,
                                     {k->grid[0], k->grid[1], k->grid[2]},
                                     {k->block[0], k->block[1], k->block[2]},
                                     k->shared,
                                     k->args};
    return sim_host_run(&launch);
}

static bool value_reached(const struct sim_work *w)
{
    uint64_t now = w->value.bytes == 4 ? __atomic_load_n((uint32_t *)w->value.at, __ATOMIC_ACQUIRE)
                                       : __atomic_load_n((uint64_t *)w->value.at, __ATOMIC_ACQUIRE);
    uint64_t mask = w->value.bytes == 4 ? 0xffffffffu : ~0ull, want = w->value.value;
    uint64_t sign = w->value.bytes == 4 ? 1ull << 31 : 1ull << 63;
    switch (w->value.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: the difference is not negative */
        return !((now - want) & mask & sign);
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == (want & mask);
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & want) != 0;
    default:
        return ((now | want) & mask) != mask;
    }
}

bool sim_work_stands(const struct sim_work *w)
{
    if (w->kind == SIM_WORK_BATCH)
        return sim_work_stands(w->batch.list[0]);
    return w->kind == SIM_WORK_WAIT_VALUE && !value_reached(w);
}

/* A wait ends with its context, too: what would have ended it may have been dropped. */
static int run_effect(struct sim_work *w, const struct sim_context *ctx)
{
    switch (w->kind) {
    case SIM_WORK_KERNEL:
        return run_kernel(&w->kernel);
    case SIM_WORK_COPY:
        run_copy(&w->copy);
        break;
    case SIM_WORK_SET:
        run_set(&w->set);
        break;
    case SIM_WORK_HOST:
        w->host.fn(w->host.data);
        break;
    case SIM_WORK_CALLBACK:
        w->host.callback(w->host.stream, CUDA_SUCCESS, w->host.data);
        break;
    case SIM_WORK_WAIT_VALUE:
        while (!value_reached(w) && !__atomic_load_n(&ctx->sticky, __ATOMIC_RELAXED))
            usleep(20);
        break;
    case SIM_WORK_WRITE_VALUE:
        if (w->value.bytes == 4)
            __atomic_store_n((uint32_t *)w->value.at, (uint32_t)w->value.value, __ATOMIC_RELEASE);
        else
            __atomic_store_n((uint64_t *)w->value.at, w->value.value, __ATOMIC_RELEASE);
        break;
    default:
        break;
    }
    return 0;
}

/* ---- cost and strictness; the lock is held ---- */

static uint64_t cost_of(const struct sim_work *w, bool in_graph)
{
    switch (w->kind) {
    case SIM_WORK_KERNEL:
        return in_graph ? SIM_DEVICE_KERNEL_IN_GRAPH : SIM_DEVICE_KERNEL;
    case SIM_WORK_COPY: {
        uint64_t bytes = w->copy.width * w->copy.height * w->copy.depth;
        return w->copy.dst_host || w->copy.src_host
                   ? SIM_DEVICE_HOST_COPY + bytes * 1000 / SIM_HOST_BYTES_PER_US
                   : (in_graph ? SIM_DEVICE_COPY_IN_GRAPH : SIM_DEVICE_COPY) +
                         bytes * 1000 / SIM_DEVICE_BYTES_PER_US;
    }
    case SIM_WORK_SET:
        return (in_graph ? SIM_DEVICE_MEMSET_IN_GRAPH : SIM_DEVICE_MEMSET) +
               w->set.width * w->set.height * w->set.element * 1000 / SIM_DEVICE_BYTES_PER_US;
    case SIM_WORK_HOST:
    case SIM_WORK_CALLBACK:
        return SIM_DEVICE_HOST_FUNCTION;
    case SIM_WORK_RECORD:
        return in_graph && !(w->event.event->flags & CU_EVENT_DISABLE_TIMING)
                   ? SIM_DEVICE_RECORD_IN_GRAPH
                   : SIM_DEVICE_EVENT;
    default:
        return SIM_DEVICE_EVENT;
    }
}

static void count(const struct sim_work *w, bool in_graph)
{
    switch (w->kind) {
    case SIM_WORK_KERNEL:
        if (in_graph)
            sim_stats.kernels_in_graphs++;
        else
            sim_stats.kernels_eager++;
        break;
    case SIM_WORK_COPY:
        sim_stats.copies++;
        break;
    case SIM_WORK_SET:
        sim_stats.memsets++;
        break;
    case SIM_WORK_HOST:
    case SIM_WORK_CALLBACK:
        sim_stats.host_functions++;
        break;
    default:
        break;
    }
}

static void check_address(const char *what, uintptr_t at, size_t bytes)
{
    const struct sim_range *r = sim_memory_at(at);
    if (sim_memory_is_ours(at) && !sim_memory_holds(at, bytes))
        (void)sim_misuse(CUDA_ERROR_ILLEGAL_ADDRESS, "%s uses %#llx (%zu bytes), freed memory",
                         what, (unsigned long long)at, bytes);
    else if (r && r->unborn)
        (void)sim_misuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                         "%s uses %#llx, which its stream has not allocated yet", what,
                         (unsigned long long)at);
}

/* Strict: what is used must be allocated when it is used, not only when it was named, and must be
 * the allocation that was named: a node is valid for one generation of its operands. */
static void check_use(const struct sim_work *w)
{
    if (w->kind == SIM_WORK_COPY) {
        check_address("a copy", w->copy.dst, w->copy.width);
        if (!w->copy.staged)
            check_address("a copy", w->copy.src, w->copy.width);
        if (!sim_copy_is_still(&w->copy))
            (void)sim_misuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                             "a copy from %#llx to %#llx: not the memory it was given for",
                             (unsigned long long)w->copy.src, (unsigned long long)w->copy.dst);
    } else if (w->kind == SIM_WORK_SET) {
        check_address("a memset", w->set.dst, w->set.width * w->set.element);
        if (!sim_set_is_still(&w->set))
            (void)sim_misuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                             "a memset of %#llx: not the memory it was given for",
                             (unsigned long long)w->set.dst);
    } else if (w->kind == SIM_WORK_KERNEL) {
        const struct sim_kernel *host = w->kernel.function->host;
        for (uint32_t i = 0; i < host->nparams; i++) {
            uintptr_t p;
            if (!host->params[i].is_pointer)
                continue;
            memcpy(&p, (const char *)w->kernel.args + host->params[i].offset, sizeof p);
            check_address(host->name, p, 1);
        }
    }
}

/* A copy or a memset of memory that nobody has: the device faults, and nothing is moved. What a kernel
 * would touch is not known before it runs. */
static bool must_fault(const struct sim_work *w)
{
    if (w->kind == SIM_WORK_SET)
        return sim_memory_is_gone(w->set.dst);
    return w->kind == SIM_WORK_COPY && (sim_memory_is_gone(w->copy.dst) ||
                                        (!w->copy.staged && sim_memory_is_gone(w->copy.src)));
}

static void release_memory(struct sim_work *w)
{
    w->memory.begun = true;
    struct sim_range *r = sim_memory_at(w->memory.at);
    if (!w->memory.cancelled && r && r->base == w->memory.at && r->freeing)
        sim_memory_release(r);
}

static void give_memory(const struct sim_work *w)
{
    struct sim_range *r = sim_memory_at(w->memory.at);
    if (r && r->base == w->memory.at)
        r->unborn = false;
}

static uint64_t run_batch(struct sim_work *w, struct sim_op *op, const char *how, uint64_t start_ns)
{
    for (size_t i = 0; i < w->batch.n; i++)
        start_ns = sim_work_run(w->batch.list[i], op, how, start_ns);
    return start_ns;
}

uint64_t sim_work_run(struct sim_work *w, struct sim_op *op, const char *how, uint64_t start_ns)
{
    const bool in_graph = how[0] == 'g';
    if (sim.strict)
        check_use(w);
    if (must_fault(w)) {
        sim_context_break(op->stream->object.ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
        return start_ns;
    }
    const uint64_t seq = log_work(w, op, how, start_ns);
    if (w->kind == SIM_WORK_GRAPH)
        return sim_program_run(w, op, start_ns);
    if (w->kind == SIM_WORK_BATCH)
        return run_batch(w, op, how, start_ns);
    count(w, in_graph);
    if (w->kind == SIM_WORK_FREE)
        release_memory(w);
    else if (w->kind == SIM_WORK_ALLOC)
        give_memory(w);
    const bool calls_back = w->kind == SIM_WORK_HOST || w->kind == SIM_WORK_CALLBACK;
    struct sim_tls *tls = calls_back ? sim_self() : NULL;
    if (tls)
        tls->in_callback = true;
    pthread_mutex_unlock(&sim_lock);
    if (sim.delay_us)
        usleep((useconds_t)sim.delay_us);
    int fault = run_effect(w, op->stream->object.ctx);
    pthread_mutex_lock(&sim_lock);
    if (tls)
        tls->in_callback = false;
    if (fault)
        sim_context_break(op->stream->object.ctx, (CUresult)fault);
    log_end(seq);
    uint64_t end_ns = start_ns + cost_of(w, in_graph);
    sim_clock_device(start_ns, end_ns);
    return end_ns;
}

void sim_work_skip(struct sim_work *w, struct sim_op *op)
{
    if (w->kind == SIM_WORK_GRAPH) {
        sim_program_skip(w, op);
    } else if (w->kind == SIM_WORK_FREE) {
        release_memory(w);
    } else if (w->kind == SIM_WORK_CALLBACK) {
        CUresult code = op->stream->object.ctx->sticky;
        struct sim_tls *tls = sim_self();
        tls->in_callback = true;
        pthread_mutex_unlock(&sim_lock);
        w->host.callback(w->host.stream, code, w->host.data);
        pthread_mutex_lock(&sim_lock);
        tls->in_callback = false;
    }
}
