/* tools/simcuda/sim_proc.c - how programs find entry points without the linker.
 * Called by  programs, cudart           Calls  sim_entry_rows()
 * Threads    bodies hold sim_lock
 * Promise    a name and a version give the variant that the real driver gives; no dlsym is used
 * Start at   choose()                                                                       */
#define _GNU_SOURCE
#include <string.h>

#include "tools/simcuda/sim_call.h"

struct proc {
    const char *name;
    int version;
    const char *symbol, *twin;
    int twin_version;
};

#define SIM_PROC(name, version, symbol) {#name, version, #symbol, NULL, 0},
#define SIM_PROC_TWIN(name, version, symbol, twin, twin_version)                                   \
    {#name, version, #symbol, #twin, twin_version},
static const struct proc procs[] = {
#include "tools/simcuda/proc.def"
};

static void *address_of(const char *symbol)
{
    size_t n;
    struct sim_entry *const *rows = sim_entry_rows(&n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rows[i]->symbol, symbol))
            return rows[i]->address;
    return NULL;
}

static void *choose(const char *name, int version, bool per_thread,
                    CUdriverProcAddressQueryResult *out_status)
{
    const struct proc *best = NULL;
    *out_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof procs / sizeof *procs; i++) {
        const struct proc *p = &procs[i];
        if (strcmp(p->name, name) || p->version > sim.driver_version)
            continue;
        if (!best)
            *out_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (p->version <= version && (!best || p->version > best->version))
            best = p;
    }
    if (!best)
        return NULL;
    *out_status = CU_GET_PROC_ADDRESS_SUCCESS;
    bool twin = per_thread && best->twin && best->twin_version <= version;
    return address_of(twin ? best->twin : best->symbol);
}

static CUresult get(const char *name, void **out, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *out_status)
{
    CUdriverProcAddressQueryResult status;
    if (!name || !out || version > sim.driver_version ||
        flags > (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    *out = choose(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0,
                  &status);
    /* No error, whether the reason was asked for or not. */
    if (out_status)
        *out_status = status;
    return CUDA_SUCCESS;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress_v2(const char *, void **, int, cuuint64_t,
                             CUdriverProcAddressQueryResult *);

SIM_API(cuGetProcAddress_v2, SIM_NS_SMALL, SIM_ANY,
        (const char *name, void **out, int version, cuuint64_t flags,
         CUdriverProcAddressQueryResult *out_status),
        (name, out, version, flags, out_status))
{
    return get(name, out, version, flags, out_status);
}

SIM_API(cuGetProcAddress, SIM_NS_SMALL, SIM_ANY,
        (const char *name, void **out, int version, cuuint64_t flags), (name, out, version, flags))
{
    return get(name, out, version, flags, NULL);
}

SIM_API(cuGetExportTable, SIM_NS_SMALL, SIM_ANY, (const void **out, const CUuuid *id), (out, id))
{
    if (!out || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
