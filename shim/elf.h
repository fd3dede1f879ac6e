/* shim/elf.h - loaded objects, read from memory: no dlopen, no dlsym, no libc string function, no
 * allocation. Called by  shim/driver.c, shim/resolve.c, shim/runtime.c       Calls  dl_iterate_phdr
 * Threads    any; takes the loader's own (recursive) lock
 * Start at   ag_elf_find() */
#ifndef AG_SHIM_ELF_H
#define AG_SHIM_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ag_elf_object {
    uintptr_t base, low, high; /* load bias; first and one past the last mapped byte */
    const void *symtab;        /* Elf64_Sym[symbols] */
    const char *strtab;
    size_t symbols;
};

bool ag_elf_equal(const char *a, const char *b);
/* The loaded object whose DT_SONAME is `soname`. False when there is none. */
bool ag_elf_find(const char *soname, struct ag_elf_object *out);
/* Address of a defined function in the object, NULL when it has none. */
void *ag_elf_symbol(const struct ag_elf_object *object, const char *name);
/* Calls fn for every defined global function of the object. */
typedef void (*ag_elf_visit)(void *context, const char *name, void *address);
void ag_elf_each(const struct ag_elf_object *object, ag_elf_visit fn, void *context);
/* True when `address` lies in an object whose file name starts with `prefix` (after the last
 * slash). */
bool ag_elf_inside(uintptr_t address, const char *prefix);
/* The first undefined cu[A-Z]* symbol that a loaded object binds and `known` denies, or NULL. Weak
 * references are skipped. *loads_seen is the loader's count of loads at the last scan: nothing is
 * scanned while it has not changed. */
const char *ag_elf_unknown_import(bool (*known)(const char *name), unsigned long long *loads_seen);

#endif
