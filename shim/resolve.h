/* shim/resolve.h - which pointer a program gets when it asks for a driver function.
 * Called by  shim/dlsym.S, shim/hooks_lookup.c       Calls  shim/driver.c, shim/elf.c
 * Threads    any
 * Promise    the real look-up decides whether there is an answer and which variant it is; only an
 * address that is a driver function is replaced, by the export of exactly that symbol (or a
 * numbered thunk for one that the table lacks). dlerror is what the real look-up left. */
#ifndef AG_SHIM_RESOLVE_H
#define AG_SHIM_RESOLVE_H

#include "shim/driver.h"

#define AG_POOL 256

/* Returned in two registers: dlsym.S tail-jumps to the real dlsym unless `answered`. */
struct ag_resolved {
    void *pointer;
    long answered;
};
/* From dlsym.S, for a name cu[A-Z]* and a handle other than RTLD_NEXT. */
struct ag_resolved ag_resolve_dlsym(void *handle, const char *name, const void *caller);
/* From dlsym.S: finds the real dlsym, remembers and returns it. */
void *ag_resolve_find_dlsym(void);
/* A libc function by name, without dlsym: the program's dlerror is left alone. NULL when there is
 * none. */
void *ag_resolve_libc(const char *name);
/* Keeps libcuda mapped, so that the table stays true; once. May clear the program's dlerror. */
void ag_resolve_pin(void);
/* Our pointer for a driver function; `address` itself when it is none (or the pool of thunks ran
 * out). */
void *ag_resolve_address(void *address, const char *name);
/* True once a function had to be handed out bare: its calls by-pass the shim. */
bool ag_resolve_leaked(void);

extern ag_fn const ag_exports[AG_ROWS];
extern ag_fn ag_pool_real[AG_POOL];

#endif
