/* tools/audit/graph_share.c - counts, from the profiler's side, how many kernels ran inside graphs.
 * The shim's own counters are not asked: CUPTI's record of a kernel says which graph node it was.
 * Called by  the driver, at cuInit, through CUDA_INJECTION64_PATH      Calls  libcupti, libc
 * Threads    CUPTI calls back on a thread of its own; the lock protects the table
 * Promise    one JSON file, named by AG_AUDIT, written when the program exits, with the number of
 *            records CUPTI dropped; a file is written even if no kernel ran
 * Start at   InitializeInjection()                                              */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 8 << 20, NAMES = 8192, TOP = 20 };

/* A kernel by the address of its name, which CUPTI shares among its records. */
struct row {
    const char *name;
    unsigned long eager, graph;
};

static struct {
    pthread_mutex_t lock; /* everything below */
    struct row rows[NAMES];
    unsigned long eager, graph, unnamed, fills;
    unsigned long long busy_ns; /* sum of the kernels' durations */
    size_t dropped;
    const char *path;
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*lost)(CUcontext, uint32_t, size_t *);
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct row *row_of(const char *name)
{
    size_t at = ((uintptr_t)name >> 4) % NAMES;
    for (size_t tried = 0; tried < NAMES; tried++, at = (at + 1) % NAMES) {
        struct row *r = &self.rows[at];
        if (!r->name)
            r->name = name;
        if (r->name == name)
            return r;
    }
    return NULL;
}

static void count(const CUpti_ActivityKernel10 *k)
{
    int in_graph = k->graphNodeId != 0;
    if (k->name && !strcmp(k->name, "ag_fill")) { /* stands for a memset of the program's */
        self.fills++;
        return;
    }
    struct row *r = k->name ? row_of(k->name) : NULL;
    *(in_graph ? &self.graph : &self.eager) += 1;
    self.busy_ns += k->end > k->start ? k->end - k->start : 0;
    if (r)
        *(in_graph ? &r->graph : &r->eager) += 1;
    else
        self.unnamed++;
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *max_records = 0;
    *size = BUFFER_BYTES;
    if (posix_memalign((void **)buffer, 64, BUFFER_BYTES) != 0) {
        *buffer = NULL;
        *size = 0;
    }
}

static void CUPTIAPI buffer_done(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)size;
    pthread_mutex_lock(&self.lock);
    while (valid > 0 && self.next(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            count((const CUpti_ActivityKernel10 *)(const void *)record);
    if (self.lost(ctx, stream, &dropped) == CUPTI_SUCCESS)
        self.dropped += dropped;
    pthread_mutex_unlock(&self.lock);
    free(buffer);
}

static unsigned long eager_of(const struct row *r)
{
    return r->eager;
}

static unsigned long graph_of(const struct row *r)
{
    return r->graph;
}

/* The TOP kernels by key, in falling order; taken[] remembers what was printed. */
static void put_top(FILE *f, const char *title, unsigned long (*key)(const struct row *))
{
    static unsigned char taken[NAMES];
    memset(taken, 0, sizeof taken);
    fprintf(f, ", \"%s\": [", title);
    for (int n = 0; n < TOP; n++) {
        int best = -1;
        for (int i = 0; i < NAMES; i++)
            if (self.rows[i].name && !taken[i] && key(&self.rows[i]) > 0 &&
                (best < 0 || key(&self.rows[i]) > key(&self.rows[best])))
                best = i;
        if (best < 0)
            break;
        taken[best] = 1;
        fprintf(f, "%s\n  {\"count\": %lu, \"name\": \"", n ? "," : "", key(&self.rows[best]));
        for (const char *c = self.rows[best].name; *c; c++)
            if (*c != '"' && *c != '\\' && (unsigned char)*c >= 32)
                fputc(*c, f);
        fputs("\"}", f);
    }
    fputs("]", f);
}

static void write_report(void)
{
    self.flush(1);
    pthread_mutex_lock(&self.lock);
    FILE *f = fopen(self.path, "w");
    if (f) {
        unsigned long all = self.eager + self.graph;
        fprintf(f, "{\"schema\": \"autograph-audit/1\", \"kernels\": %lu, \"in_graphs\": %lu, ",
                all, self.graph);
        fprintf(f,
                "\"share\": %.6f, \"busy_ns\": %llu, \"dropped_records\": %zu, \"unnamed\": %lu, "
                "\"fills\": %lu",
                all ? (double)self.graph / (double)all : 0.0, self.busy_ns, self.dropped,
                self.unnamed, self.fills);
        put_top(f, "most_eager", eager_of);
        put_top(f, "most_in_graphs", graph_of);
        fputs("}\n", f);
        fclose(f);
    }
    pthread_mutex_unlock(&self.lock);
}

static void *open_cupti(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle)
            return handle;
    }
    return NULL;
}

/* Called by the driver when it initialises. Non-zero means that the tool is in place. */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    void *cupti = open_cupti();
    self.path = getenv("AG_AUDIT");
    if (!cupti || !self.path) {
        fprintf(stderr, "graph_share: %s\n", self.path ? dlerror() : "AG_AUDIT names no file");
        return 0;
    }
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) =
        dlsym(cupti, "cuptiActivityRegisterCallbacks");
    CUptiResult (*enable)(CUpti_ActivityKind) = dlsym(cupti, "cuptiActivityEnable");
    self.next = dlsym(cupti, "cuptiActivityGetNextRecord");
    self.flush = dlsym(cupti, "cuptiActivityFlushAll");
    self.lost = dlsym(cupti, "cuptiActivityGetNumDroppedRecords");
    if (!callbacks || !enable || !self.next || !self.flush || !self.lost) {
        fprintf(stderr, "graph_share: this libcupti lacks a function\n");
        return 0;
    }
    CUptiResult ret = callbacks(buffer_wanted, buffer_done);
    if (ret == CUPTI_SUCCESS)
        ret = enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (ret != CUPTI_SUCCESS) {
        fprintf(stderr, "graph_share: CUPTI refuses (%d)\n", (int)ret);
        return 0;
    }
    atexit(write_report);
    return 1;
}

/* Where the driver does not load it by CUDA_INJECTION64_PATH, it may be preloaded instead. */
__attribute__((constructor)) static void at_load(void)
{
    const char *wanted = getenv("AG_AUDIT_AT_LOAD");
    if (wanted && strcmp(wanted, "1") == 0 && !InitializeInjection())
        fprintf(stderr, "graph_share: not in place\n");
}
