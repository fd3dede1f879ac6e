/* shim/driver.h - the real driver: one pointer per row of hooks.def.
 * Called by  shim/, capture/              Calls  shim/elf.c
 * Threads    ag_driver_load under the loader's lock order of its callers; the table is read-only
 * afterwards Promise    a leaf: knows nothing of hooks, policy or graphs. A missing entry point is
 * a function that answers CUDA_ERROR_NOT_FOUND, never a NULL call.
 * Start at   ag_real() */
#ifndef AG_SHIM_DRIVER_H
#define AG_SHIM_DRIVER_H

/* With this, cuda.h declares every ABI version under its own symbol (cuMemFree and cuMemFree_v2,
 * _ptsz twins). */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ag_row {
#define AG_HOOK(symbol, class) AG_ROW_##symbol,
#include "shim/hooks.def"
#undef AG_HOOK
    AG_ROWS
};

enum ag_class {
    AG_CLASS_PURE,
    AG_CLASS_DRAIN_ALL,
    AG_CLASS_DRAIN_STREAM,
    AG_CLASS_ENQUEUE,
    AG_CLASS_TRACK,
    AG_CLASS_CREATE,
    AG_CLASS_RETIRE,
    AG_CLASS_CAPTURE,
    AG_CLASS_LOOKUP,
};

typedef void (*ag_fn)(void);

/* What capture/ is given: tests pass a table of their own. `slot` has AG_ROWS entries, none NULL.
 */
struct ag_driver {
    ag_fn const *slot;
    int version; /* of cuDriverGetVersion: 12040 is 12.4 */
};

/* The real cuX, typed: ag_real(drv, cuMemFree_v2)(ptr). */
#define ag_real(drv, symbol) ((__typeof__(&symbol))(drv)->slot[AG_ROW_##symbol])

/* True when the driver has the entry point. */
bool ag_driver_has(const struct ag_driver *drv, enum ag_row row);

/* Finds libcuda.so.1 among the loaded objects and fills the table. False: it is not mapped.
 * Callable any number of times; does the work again only when libcuda has moved. No libc but
 * dl_iterate_phdr: safe inside dlsym. */
bool ag_driver_load(void);
/* libcuda will not be unmapped any more: from now on ag_driver_load only remembers. */
void ag_driver_pinned(void);
bool ag_driver_is_pinned(void);
/* Row whose real entry point is `address`, AG_ROWS if none. Where a driver lets several names share
 * an address, the one that `name` (may be NULL) is a prefix of. */
unsigned ag_driver_row(const void *address, const char *name);
/* True when `address` lies in the mapped libcuda. */
bool ag_driver_owns(const void *address);
/* True when libcuda defines the function; looks at its symbol table. */
bool ag_driver_defines(const char *name);
/* Row of an exported symbol, AG_ROWS if the table lacks it. */
unsigned ag_driver_row_of_name(const char *name);

extern const char *const ag_row_names[AG_ROWS];
extern const uint8_t ag_row_class[AG_ROWS];
extern ag_fn ag_real_slot[AG_ROWS];

#ifdef __cplusplus
}
#endif
#endif
