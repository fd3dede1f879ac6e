/* shim/driver.c - see driver.h. Compiled with -fno-builtin: the dlsym hook runs ag_driver_load. */
#include "shim/driver.h"
#include "shim/elf.h"
#include "shim/fork_lock.h"
#include <stdatomic.h>

#define ADDRESS_SLOTS 2048 /* power of two, at least twice AG_ROWS */
#define NAME_SLOTS 2048
_Static_assert(AG_ROWS * 2 <= ADDRESS_SLOTS, "the address table needs room");

const char *const ag_row_names[AG_ROWS] = {
#define AG_HOOK(symbol, class) #symbol,
#include "shim/hooks.def"
#undef AG_HOOK
};

const uint8_t ag_row_class[AG_ROWS] = {
#define AG_HOOK(symbol, class) AG_CLASS_##class,
#include "shim/hooks.def"
#undef AG_HOOK
};

ag_fn ag_real_slot[AG_ROWS];

static CUresult missing(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

/* Written by ag_driver_load only, under `lock`; readers come after it. */
static struct {
    struct ag_fork_lock lock;
    atomic_bool loaded;
    struct ag_elf_object object;
    uint16_t by_address[ADDRESS_SLOTS]; /* row + 1, 0 is empty; equal addresses follow each other */
    _Atomic uint16_t by_name[NAME_SLOTS]; /* the same, by name; needs no lock */
    atomic_bool names_ready, pinned;
} driver;

static unsigned hash_address(const void *address)
{
    return (unsigned)(((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15ull >> 40) &
           (ADDRESS_SLOTS - 1);
}

static unsigned hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (h ^ h >> 15) & (NAME_SLOTS - 1);
}

/* Threads that do this at once write the same: a row's slot is where its name is found later,
 * whoever put it there. */
static void index_names(void)
{
    if (atomic_load_explicit(&driver.names_ready, memory_order_acquire))
        return;
    for (unsigned row = 0; row < AG_ROWS; row++) {
        const uint16_t entry = (uint16_t)(row + 1);
        unsigned at = hash_name(ag_row_names[row]);
        for (;; at = (at + 1) & (NAME_SLOTS - 1)) {
            uint16_t there = 0;
            if (atomic_compare_exchange_strong(&driver.by_name[at], &there, entry) ||
                there == entry)
                break;
        }
    }
    atomic_store_explicit(&driver.names_ready, true, memory_order_release);
}

static unsigned find_name(const char *name)
{
    unsigned entry;
    for (unsigned at = hash_name(name); (entry = atomic_load(&driver.by_name[at]));
         at = (at + 1) & (NAME_SLOTS - 1))
        if (ag_elf_equal(ag_row_names[entry - 1], name))
            return entry - 1;
    return AG_ROWS;
}

static void take_symbol(void *context, const char *name, void *address)
{
    (void)context;
    if (name[0] != 'c' || name[1] != 'u')
        return;
    const unsigned row = find_name(name);
    if (row == AG_ROWS)
        return;
    ag_real_slot[row] = (ag_fn)address;
    unsigned at = hash_address(address);
    while (driver.by_address[at])
        at = (at + 1) & (ADDRESS_SLOTS - 1);
    driver.by_address[at] = (uint16_t)(row + 1);
}

static void fill(const struct ag_elf_object *object)
{
    driver.object = *object;
    for (unsigned row = 0; row < AG_ROWS; row++)
        ag_real_slot[row] = (ag_fn)missing;
    for (unsigned at = 0; at < ADDRESS_SLOTS; at++)
        driver.by_address[at] = 0;
    ag_elf_each(object, take_symbol, NULL);
}

static bool current(const struct ag_elf_object *object)
{
    return atomic_load_explicit(&driver.loaded, memory_order_acquire) &&
           driver.object.base == object->base && driver.object.symtab == object->symtab;
}

bool ag_driver_load(void)
{
    struct ag_elf_object object;
    /* Without the loader's lock: in a forked child a dead thread may hold it. */
    if (ag_driver_is_pinned())
        return true;
    if (!ag_elf_find("libcuda.so.1", &object))
        return false;
    index_names();
    if (current(&object))
        return true;
    ag_fork_lock_take(&driver.lock);
    if (!current(&object)) {
        atomic_store(&driver.loaded, false);
        fill(&object);
        atomic_store_explicit(&driver.loaded, true, memory_order_release);
    }
    ag_fork_lock_give(&driver.lock);
    return true;
}

void ag_driver_pinned(void)
{
    atomic_store_explicit(&driver.pinned, true, memory_order_release);
}

bool ag_driver_is_pinned(void)
{
    return atomic_load_explicit(&driver.pinned, memory_order_acquire);
}

static bool starts_with(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix)
        text++, prefix++;
    return !*prefix;
}

unsigned ag_driver_row(const void *address, const char *name)
{
    unsigned found = AG_ROWS;
    if (!atomic_load(&driver.loaded))
        return AG_ROWS;
    for (unsigned at = hash_address(address); driver.by_address[at];
         at = (at + 1) & (ADDRESS_SLOTS - 1)) {
        const unsigned row = driver.by_address[at] - 1u;
        if (ag_real_slot[row] != (ag_fn)address)
            continue;
        if (!name || starts_with(ag_row_names[row], name))
            return row;
        found = row;
    }
    return found;
}

bool ag_driver_owns(const void *address)
{
    return atomic_load(&driver.loaded) && (uintptr_t)address >= driver.object.low &&
           (uintptr_t)address < driver.object.high;
}

bool ag_driver_defines(const char *name)
{
    return atomic_load(&driver.loaded) && ag_elf_symbol(&driver.object, name) != NULL;
}

unsigned ag_driver_row_of_name(const char *name)
{
    index_names();
    return find_name(name);
}

bool ag_driver_has(const struct ag_driver *drv, enum ag_row row)
{
    return drv->slot[row] && drv->slot[row] != (ag_fn)missing;
}
