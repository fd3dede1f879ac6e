/* tests/resolver/fake_libcuda.c - the C half of the fake driver: the log, and the five calls that
 * mean something.
 * Called by  fake_stubs.S (every exported cu* symbol)       Calls  libc
 * Threads    any; the configuration is written by one thread before the calls it concerns
 * Promise    see fake_libcuda.h; nothing else is simulated, every other row only answers its
 * number */
#define _GNU_SOURCE
#include "tests/resolver/fake_libcuda.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, NOT_FOUND = 500 };
enum { STATUS_FOUND = 0, STATUS_NO_SYMBOL = 1, STATUS_TOO_OLD = 2 };
enum { PER_THREAD = 2 };

/* The addresses of the stubs, declared as what they are to us: code. */
#define FAKE_ROW(symbol) void symbol(void);
#include "known_rows.def"
#include "future_rows.def"
#undef FAKE_ROW

static const char *const names[] = {
#define FAKE_ROW(symbol) #symbol,
#include "known_rows.def"
#include "future_rows.def"
#undef FAKE_ROW
};

/* What this variant of the driver does not have (an empty list for the newest). */
static const char *const lacks[] = {
#define FAKE_LACKS(symbol) #symbol,
#ifdef FAKE_LACKS_ROWS
#include FAKE_LACKS_ROWS
#endif
#undef FAKE_LACKS
    NULL,
};

struct answer {
    const char *asked;
    int since;
    const char *symbol;
    void (*address)(void);
    int twin; /* 1: given to callers with a per-thread default stream */
};

static const struct answer answers[] = {
#define FAKE_VERSION(asked, since, symbol, twin) {#asked, since, #symbol, symbol, twin},
#include "tests/resolver/fake_versions.def"
#undef FAKE_VERSION
#define FAKE_ROW(symbol) {#symbol, 13000, #symbol, symbol, 0},
#include "future_rows.def"
#undef FAKE_ROW
};

static struct fake_config config;
static pthread_once_t configured = PTHREAD_ONCE_INIT;
static struct fake_call calls[FAKE_LOG];
static atomic_uint called;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void configure(void)
{
    config.version = number("FAKE_VERSION", FAKE_DEFAULT_VERSION);
    config.result = number("FAKE_RESULT", -1);
    config.touches_when_failing = number("FAKE_TOUCHES", 1);
    config.missing_is_success = number("FAKE_MISSING_IS_SUCCESS", 0);
    config.sets_errno = number("FAKE_ERRNO", 0);
    config.launches = number("FAKE_LAUNCHES", 0);
}

static bool lacking(const char *symbol)
{
    for (size_t i = 0; lacks[i]; i++)
        if (strcmp(lacks[i], symbol) == 0)
            return true;
    return false;
}

/* The newest generation that the version allows; for per-thread callers a twin goes before a plain
 * one. */
static void (*find(const char *name, int version, uint64_t flags, int *status))(void)
{
    const struct answer *best = NULL;
    *status = STATUS_NO_SYMBOL;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct answer *a = &answers[i];
        if (strcmp(a->asked, name) != 0 || lacking(a->symbol))
            continue;
        if (*status == STATUS_NO_SYMBOL)
            *status = STATUS_TOO_OLD;
        if (a->since <= version && (!a->twin || flags == PER_THREAD))
            best = a;
    }
    if (!best)
        return NULL;
    *status = STATUS_FOUND;
    return best->address;
}

static int look_up(const struct fake_registers *with, bool has_status)
{
    const char *name = (const char *)with->args[0];
    void (**out)(void) = (void (**)(void))with->args[1];
    int *out_status = has_status ? (int *)with->args[4] : NULL;
    int status;
    if (!name || !out || with->args[3] > PER_THREAD)
        return INVALID_VALUE;
    void (*address)(void) = find(name, (int)with->args[2], with->args[3], &status);
    if (address || config.touches_when_failing || config.missing_is_success) {
        *out = address;
        if (out_status)
            *out_status = status;
    }
    return address || config.missing_is_success ? OK : NOT_FOUND;
}

static void exported_function(void)
{
}

static int export_table(const struct fake_registers *with)
{
    static void *table[2] = {(void *)sizeof(void *[2]), (void *)exported_function};
    if (!with->args[0] || !with->args[1])
        return INVALID_VALUE;
    *(void **)with->args[0] = table;
    return OK;
}

static int driver_version(const struct fake_registers *with)
{
    if (!with->args[0])
        return INVALID_VALUE;
    *(int *)with->args[0] = config.version;
    return OK;
}

/* Enough of a device that launches can be held and graphs built: one context, one module, kernels
 * of one 8-byte parameter. A graph's handle is its number + GRAPH, that of its exec the same +
 * EXEC; they remember how many kernel nodes they have. */
enum { CONTEXT = 0xc0, MODULE = 0x40, GRAPH = 0x100000, EXEC = 0x200000, GRAPHS = 1 << 14 };
static atomic_uint graphs;
static atomic_uint nodes[GRAPHS];

static void give(uint64_t place, uint64_t value)
{
    if (place)
        *(uint64_t *)place = value;
}

/* True when the row is one of those that launching needs; its answer is in *out_result. */
static bool launching(int row, const struct fake_registers *with, int *out_result)
{
    const uint64_t *const a = with->args;
    *out_result = OK;
    switch (row) {
    case FAKE_cuCtxGetCurrent:
    case FAKE_cuCtxPopCurrent_v2:
        give(a[0], CONTEXT);
        return true;
    case FAKE_cuStreamGetCtx:
        give(a[1], CONTEXT);
        return true;
    case FAKE_cuStreamGetId:
        give(a[1], 1);
        return true;
    case FAKE_cuFuncGetModule:
        give(a[0], MODULE);
        return true;
    case FAKE_cuFuncGetName:
        give(a[0], (uint64_t)(uintptr_t) "kernel");
        return true;
    case FAKE_cuFuncGetParamInfo:
        *out_result = a[1] == 0 ? OK : INVALID_VALUE;
        give(a[1] == 0 ? a[2] : 0, 0);
        give(a[1] == 0 ? a[3] : 0, 8);
        return true;
    case FAKE_cuGraphCreate:
        give(a[0], GRAPH + atomic_fetch_add(&graphs, 1) % GRAPHS);
        return true;
    case FAKE_cuGraphAddKernelNode_v2:
        give(a[0], 0x300000 + atomic_fetch_add(&nodes[(a[1] - GRAPH) % GRAPHS], 1));
        return true;
    case FAKE_cuGraphInstantiateWithFlags:
        give(a[0], a[1] - GRAPH + EXEC);
        return true;
    case FAKE_cuCtxPushCurrent_v2:
    case FAKE_cuThreadExchangeStreamCaptureMode:
    case FAKE_cuGraphUpload:
    case FAKE_cuGraphLaunch:
    case FAKE_cuGraphDestroy:
    case FAKE_cuGraphExecDestroy:
    case FAKE_cuGraphExecKernelNodeSetParams_v2:
    case FAKE_cuLaunchKernel:
    case FAKE_cuStreamSynchronize:
        return true;
    default:
        return false;
    }
}

__attribute__((visibility("hidden"))) int fake_dispatch(int row, const struct fake_registers *with);
int fake_dispatch(int row, const struct fake_registers *with)
{
    const int saved = errno;
    pthread_once(&configured, configure);
    const unsigned at = atomic_fetch_add(&called, 1);
    if (at < FAKE_LOG) {
        calls[at].row = row;
        calls[at].with = *with;
    }
    errno = config.sets_errno ? config.sets_errno : saved;
    if (row == FAKE_cuGetProcAddress)
        return look_up(with, false);
    if (row == FAKE_cuGetProcAddress_v2)
        return look_up(with, true);
    if (row == FAKE_cuDriverGetVersion)
        return driver_version(with);
    if (row == FAKE_cuGetExportTable)
        return export_table(with);
    int result;
    if (config.launches && launching(row, with, &result))
        return result;
    return config.result >= 0 ? config.result : FAKE_FIRST_RESULT + row;
}

static unsigned count(void)
{
    const unsigned n = atomic_load(&called);
    return n < FAKE_LOG ? n : FAKE_LOG;
}

static const struct fake_call *call_at(unsigned index)
{
    return &calls[index];
}

static void forget(void)
{
    atomic_store(&called, 0);
}

static unsigned executed(unsigned end)
{
    unsigned kernels = 0;
    for (unsigned i = 0; i < end && i < count(); i++) {
        if (calls[i].row == FAKE_cuLaunchKernel)
            kernels++;
        else if (calls[i].row == FAKE_cuGraphLaunch)
            kernels += atomic_load(&nodes[(calls[i].with.args[0] - EXEC) % GRAPHS]);
    }
    return kernels;
}

const struct fake_api *fake_api(void)
{
    static const struct fake_api api = {&config, names, count, call_at, forget, executed};
    pthread_once(&configured, configure);
    return &api;
}
