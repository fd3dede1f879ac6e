/* capture/func.h - kernels by handle: parameter layout, module, attributes in force.
 * Called by  capture/submit.c, capture/oplog.c       Calls  shim/driver.h
 * Threads    caller holds the log's lock
 * Promise    an entry lives until the module or library of its handle is unloaded, or its context
 * ends; the caller clears the table then (handles are re-used). Layout: offsets and sizes in bytes
 * as the driver reports them (cuFuncGetParamInfo, CUDA 12.4), probed once up to the first failing
 * index.
 * Start at   ag_funcs_get() */
#ifndef AG_CAPTURE_FUNC_H
#define AG_CAPTURE_FUNC_H

#include "shim/driver.h"
#include <uthash.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_ARGS_MAX                                                                                \
    32764 /* bytes of arguments a launch may have (CUDA 12.1 on sm_70 and later)   \
                           */
#define AG_FUNC_CACHE_CONFIG                                                                       \
    CU_FUNC_ATTRIBUTE_MAX /* set by calls of their own, tracked like attributes */
#define AG_FUNC_SHARED_CONFIG (CU_FUNC_ATTRIBUTE_MAX + 1)
#define AG_FUNC_ATTRIBUTES (CU_FUNC_ATTRIBUTE_MAX + 2)
#define AG_FUNC_STATES 64 /* distinct states of one function that are told apart */

struct ag_param {
    uint32_t offset, size;
};

/* The attributes a program has set, and those it has not: the values that a launch reads. */
struct ag_func_state {
    int32_t value[AG_FUNC_ATTRIBUTES];
    uint32_t known; /* bit a: attribute a was set to value[a] by the program */
};

/* What an op is. A copy, a memset (fill), the record of an event or a wait for one is kept like a launch: of a function
 * whose arguments are a struct ag_copy, ag_fill, ag_event_record or ag_event_wait. */
enum ag_op_kind { AG_OP_KERNEL, AG_OP_COPY, AG_OP_FILL, AG_OP_RECORD, AG_OP_WAIT, AG_OP_KINDS };

/* Units: bytes. The generations are those of the allocations, not the driver's business. */
struct ag_copy {
    uint64_t to, from, bytes;
    uint64_t to_generation, from_generation;
};

/* `height` rows, `pitch` bytes apart, of `columns` elements of `element` (1, 2 or 4) bytes: the lowest of
 * `value`. One row: pitch 0, height 1. In the order of the parameters of the kernel ag_fill. */
struct ag_fill {
    uint64_t to, pitch, columns, height;
    uint32_t value, element;
};

/* `entry`: the event's struct ag_event, of its generation. Both 0 where it is not known. `dead`, `covers`: there is
 * a later record of the event in the segment, an earlier one, and no wait for it in between. `behind`: there is an
 * earlier wait for it. */
struct ag_event_record {
    uint64_t event, entry, generation;
    uint32_t flags; /* of cuEventRecordWithFlags */
    uint8_t dead, covers;
    uint16_t behind;
};

/* `entry`, `generation`: as above. */
struct ag_event_wait {
    uint64_t event, entry, generation;
    uint32_t flags; /* of cuStreamWaitEvent */
    uint32_t unused;
};

/* In place of the handle of a function, for ops that are no launch; no function has it. */
extern char ag_op_handle[AG_OP_KINDS];
#define AG_OP_HANDLE(kind) ((CUfunction)&ag_op_handle[kind])

struct ag_func {
    enum ag_op_kind kind;
    CUfunction handle;           /* key; a CUkernel cast to CUfunction is launched the same way */
    bool is_kernel;              /* the handle is a CUkernel */
    bool usable;                 /* the layout is known and fits */
    bool padded;                 /* there are bytes between the parameters */
    bool barrier;                /* a communication kernel: order barrier */
    bool excluded;               /* by AUTOGRAPH_KERNELS */
    CUmodule module;             /* NULL: unknown */
    CUlibrary library;           /* NULL: unknown or none */
    char *name;                  /* mangled, owned; NULL: unknown */
    uint32_t params, bytes;      /* number of parameters; size of the packed arguments */
    struct ag_param *param;      /* [params], owned */
    uint32_t state_id, states;   /* index of the state in force; number of states seen */
    struct ag_func_state *state; /* [states], owned; state 0 has nothing set */
    UT_hash_handle hh;
};

struct ag_funcs {
    struct ag_func *table;
    uint32_t count, most_params;
    const char *allowed; /* list of names, see shim/observe/allow.h; NULL: all */
};

/* The entry of a handle, made at first sight (asks the driver). NULL: out of memory. */
struct ag_func *ag_funcs_get(struct ag_funcs *funcs, const struct ag_driver *drv,
                             CUfunction handle);
/* The entry of all ops of a kind that is no launch. Same return. */
struct ag_func *ag_funcs_of_kind(struct ag_funcs *funcs, enum ag_op_kind kind);
struct ag_func *ag_funcs_find(const struct ag_funcs *funcs, CUfunction handle);
void ag_funcs_clear(struct ag_funcs *funcs);
/* True when an entry belongs to the module (or may: its module is unknown). */
bool ag_funcs_touch_module(const struct ag_funcs *funcs, CUmodule module);
/* Would setting the attribute change what a launch reads? True when the value in force is unknown.
 */
bool ag_func_changes(const struct ag_func *f, int attribute, int value);
/* The attribute has been set: another state id, an old one if the state has been in force before.
 * False: no room or no memory; the caller forgets everything that knows state ids. */
bool ag_func_set(struct ag_func *f, int attribute, int value);
/* The attribute may have been set: another state id, but the value in force is unknown. Same
 * return. */
bool ag_func_doubt(struct ag_func *f, int attribute, int value);
/* A handle that the program was given as a CUkernel: spares the probe that the driver would log as
 * an error. */
void ag_func_note_kernel(CUkernel kernel);

#ifdef __cplusplus
}
#endif

#endif
