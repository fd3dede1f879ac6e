/* capture/func.c - see func.h. */
#define HASH_NONFATAL_OOM 1
#include "capture/func.h"
#include "shim/observe/allow.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HINTS                                                                               \
    4096 /* power of two; a lost hint costs one failing probe, a stale one likewise */

static _Atomic(CUkernel) kernel_hint[KERNEL_HINTS];

static unsigned hint_slot(const void *handle)
{
    return (unsigned)((uintptr_t)handle * 0x9E3779B97F4A7C15ull >> 52) & (KERNEL_HINTS - 1);
}

void ag_func_note_kernel(CUkernel kernel)
{
    atomic_store_explicit(&kernel_hint[hint_slot(kernel)], kernel, memory_order_relaxed);
}

static bool hinted_kernel(CUfunction handle)
{
    return (void *)atomic_load_explicit(&kernel_hint[hint_slot(handle)], memory_order_relaxed) ==
           (void *)handle;
}

static CUresult param_info(const struct ag_driver *drv, const struct ag_func *f, size_t index,
                           size_t *offset, size_t *size)
{
    if (f->is_kernel)
        return ag_real(drv, cuKernelGetParamInfo)((CUkernel)f->handle, index, offset, size);
    return ag_real(drv, cuFuncGetParamInfo)(f->handle, index, offset, size);
}

/* INVALID_VALUE for an index past the end is the documented end of the list; anything else is a
 * handle of the other kind (INVALID_HANDLE; measured on 580.159) or a function that cannot be
 * described. */
static bool read_layout(const struct ag_driver *drv, struct ag_func *f)
{
    size_t offset, size;
    uint32_t room = 0;
    CUresult ret;
    for (f->params = 0, f->bytes = 0;; f->params++) {
        ret = param_info(drv, f, f->params, &offset, &size);
        if (ret != CUDA_SUCCESS)
            break;
        if (f->params == room) {
            room = room ? room * 2 : 8;
            struct ag_param *grown = realloc(f->param, room * sizeof *grown);
            if (!grown)
                return false;
            f->param = grown;
        }
        f->param[f->params] = (struct ag_param){(uint32_t)offset, (uint32_t)size};
        if (offset + size > f->bytes)
            f->bytes = (uint32_t)(offset + size);
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < f->params; i++)
        used += f->param[i].size;
    f->padded = used != f->bytes;
    return ret == CUDA_ERROR_INVALID_VALUE && f->bytes <= AG_ARGS_MAX;
}

static void read_identity(const struct ag_driver *drv, struct ag_func *f)
{
    const char *name = NULL;
    if (f->is_kernel) {
        if (ag_driver_has(drv, AG_ROW_cuKernelGetLibrary))
            ag_real(drv, cuKernelGetLibrary)(&f->library, (CUkernel)f->handle);
        ag_real(drv, cuKernelGetName)(&name, (CUkernel)f->handle);
    } else {
        ag_real(drv, cuFuncGetModule)(&f->module, f->handle);
        ag_real(drv, cuFuncGetName)(&name, f->handle);
    }
    f->name = name ? strdup(name) : NULL;
    f->barrier = name && (strstr(name, "nccl") || strstr(name, "nvshmem"));
}

static void free_func(struct ag_func *f)
{
    free(f->param);
    free(f->state);
    free(f->name);
    free(f);
}

struct ag_func *ag_funcs_find(const struct ag_funcs *funcs, CUfunction handle)
{
    struct ag_func *f;
    HASH_FIND_PTR(funcs->table, &handle, f);
    return f;
}

static struct ag_func *make_func(CUfunction handle)
{
    struct ag_func *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->state = calloc(1, sizeof *f->state);
    if (!f->state) {
        free(f);
        return NULL;
    }
    f->states = 1;
    f->handle = handle;
    return f;
}

static struct ag_func *adopt(struct ag_funcs *funcs, struct ag_func *f)
{
    const uint32_t before = HASH_COUNT(funcs->table);
    HASH_ADD_PTR(funcs->table, handle, f);
    if (HASH_COUNT(funcs->table) == before) {
        free_func(f);
        return NULL;
    }
    funcs->count++;
    if (f->params > funcs->most_params)
        funcs->most_params = f->params;
    return f;
}

char ag_op_handle[AG_OP_KINDS];

/* The arguments of ops that are no launch, as a kernel's would be. */
static const struct kind {
    const char *name;
    uint32_t params, bytes;
    struct ag_param param[6];
} kinds[AG_OP_KINDS] = {
    [AG_OP_COPY] = {"cuMemcpyDtoDAsync",
                    5,
                    sizeof(struct ag_copy),
                    {{0, 8}, {8, 8}, {16, 8}, {24, 8}, {32, 8}}},
    [AG_OP_FILL] = {"cuMemsetAsync",
                    6,
                    sizeof(struct ag_fill),
                    {{0, 8}, {8, 8}, {16, 8}, {24, 8}, {32, 4}, {36, 4}}},
    [AG_OP_RECORD] = {"cuEventRecord",
                      6,
                      sizeof(struct ag_event_record),
                      {{0, 8}, {8, 8}, {16, 8}, {24, 4}, {28, 2}, {30, 2}}},
    [AG_OP_WAIT] = {"cuStreamWaitEvent",
                    4,
                    sizeof(struct ag_event_wait),
                    {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
};

struct ag_func *ag_funcs_of_kind(struct ag_funcs *funcs, enum ag_op_kind kind)
{
    const struct kind *k = &kinds[kind];
    struct ag_func *f = ag_funcs_find(funcs, AG_OP_HANDLE(kind));
    if (f || !(f = make_func(AG_OP_HANDLE(kind))))
        return f;
    f->kind = kind;
    f->usable = true;
    f->name = strdup(k->name);
    f->params = k->params;
    f->bytes = k->bytes;
    f->param = malloc(sizeof k->param);
    if (!f->param) {
        free_func(f);
        return NULL;
    }
    memcpy(f->param, k->param, sizeof k->param);
    return adopt(funcs, f);
}

struct ag_func *ag_funcs_get(struct ag_funcs *funcs, const struct ag_driver *drv, CUfunction handle)
{
    struct ag_func *f = ag_funcs_find(funcs, handle);
    if (f || !(f = make_func(handle)))
        return f;
    f->is_kernel = hinted_kernel(handle);
    f->usable = read_layout(drv, f);
    if (!f->usable && f->params == 0) {
        f->is_kernel = !f->is_kernel;
        f->usable = read_layout(drv, f);
    }
    read_identity(drv, f);
    const char *const name = f->name;
    f->excluded = funcs->allowed && !ag_allowed(funcs->allowed, &name, 1);
    return adopt(funcs, f);
}

void ag_funcs_clear(struct ag_funcs *funcs)
{
    struct ag_func *f, *next;
    HASH_ITER (hh, funcs->table, f, next) {
        HASH_DEL(funcs->table, f);
        free_func(f);
    }
    *funcs = (struct ag_funcs){NULL, 0, 0, funcs->allowed};
}

bool ag_funcs_touch_module(const struct ag_funcs *funcs, CUmodule module)
{
    for (const struct ag_func *f = funcs->table; f; f = f->hh.next)
        if (f->kind == AG_OP_KERNEL && (!f->module || f->module == module))
            return true;
    return false;
}

bool ag_func_changes(const struct ag_func *f, int attribute, int value)
{
    if (attribute < 0 || attribute >= AG_FUNC_ATTRIBUTES)
        return true;
    const struct ag_func_state *now = &f->state[f->state_id];
    return !(now->known >> attribute & 1) || now->value[attribute] != value;
}

static bool enter_state(struct ag_func *f, const struct ag_func_state *next)
{
    for (uint32_t i = 0; i < f->states; i++) {
        if (!memcmp(&f->state[i], next, sizeof *next)) {
            f->state_id = i;
            return true;
        }
    }
    struct ag_func_state *grown = NULL;
    if (f->states < AG_FUNC_STATES)
        grown = realloc(f->state, (f->states + 1) * sizeof *grown);
    if (!grown)
        return false;
    f->state = grown;
    f->state[f->states] = *next;
    f->state_id = f->states++;
    return true;
}

static bool set_state(struct ag_func *f, int attribute, int value, bool known)
{
    if (attribute < 0 || attribute >= AG_FUNC_ATTRIBUTES)
        return false;
    struct ag_func_state next = f->state[f->state_id];
    next.known &= ~(1u << attribute);
    next.known |= (uint32_t)known << attribute;
    next.value[attribute] = value;
    return enter_state(f, &next);
}

bool ag_func_set(struct ag_func *f, int attribute, int value)
{
    return set_state(f, attribute, value, true);
}

bool ag_func_doubt(struct ag_func *f, int attribute, int value)
{
    return set_state(f, attribute, value, false);
}
