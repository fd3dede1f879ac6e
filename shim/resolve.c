/* shim/resolve.c - see resolve.h. Compiled with -fno-builtin, calls no libc function but the real
 * dlsym. */
#define _GNU_SOURCE
#include "shim/resolve.h"
#include "shim/elf.h"
#include "shim/fork_lock.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/types.h>

typedef void *(*dlsym_fn)(void *, const char *);

/* Weak: a libc without it (musl) must still be able to load this library. */
extern void *dlvsym(void *, const char *, const char *) __attribute__((weak));
/* The version that every glibc since 2.2.5 (aarch64: 2.17) has, not the newest that the build
 * machine knows. */
#if defined(__x86_64__)
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlvsym, dlvsym@GLIBC_2.17");
#endif

__attribute__((visibility("hidden"))) _Atomic(void *) ag_real_dlsym;
extern ag_fn const ag_pool_stubs[AG_POOL];

__attribute__((visibility("hidden"))) ag_fn ag_pool_real[AG_POOL];
static struct ag_fork_lock pool_lock;
static unsigned pool_used; /* under pool_lock */
static atomic_bool leaked;

/* dlsym has one version per glibc generation and processor; an answer of ours would be a loop. */
void *ag_resolve_find_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0"};
    static const char *const homes[] = {"libc.so.6", "libdl.so.2"};
    void *found = atomic_load(&ag_real_dlsym);
    for (unsigned i = 0; !found && dlvsym && i < sizeof versions / sizeof *versions; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    for (unsigned i = 0; !found && i < sizeof homes / sizeof *homes; i++) {
        struct ag_elf_object libc;
        if (ag_elf_find(homes[i], &libc))
            found = ag_elf_symbol(&libc, "dlsym");
    }
    atomic_store(&ag_real_dlsym, found);
    return found;
}

static dlsym_fn real_dlsym(void)
{
    void *found = atomic_load(&ag_real_dlsym);
    return (dlsym_fn)(found ? found : ag_resolve_find_dlsym());
}

void *ag_resolve_libc(const char *name)
{
    static const char *const homes[] = {"libc.so.6", "libpthread.so.0", "libdl.so.2"};
    void *found = NULL;
    for (unsigned i = 0; !found && i < sizeof homes / sizeof *homes; i++) {
        struct ag_elf_object libc;
        if (ag_elf_find(homes[i], &libc))
            found = ag_elf_symbol(&libc, name);
    }
    return found;
}

/* Programs close libcuda and open it again (cudart does when cuInit fails), and call through
 * pointers of the first time. */
void ag_resolve_pin(void)
{
    static _Atomic pid_t pinner;
    pid_t nobody = 0;
    if (ag_driver_is_pinned() ||
        !atomic_compare_exchange_strong(&pinner, &nobody, (pid_t)syscall(SYS_getpid)))
        return;
    void *(*const open)(const char *, int) =
        (void *(*)(const char *, int))ag_resolve_libc("dlopen");
    if (open && open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) && ag_driver_load())
        ag_driver_pinned();
    atomic_store(&pinner, 0);
}

/* A forked child must not take the loader's lock: a thread that the child does not have may hold
 * it. */
static bool internal_caller(const void *caller)
{
    static _Atomic pid_t first;
    pid_t pid = (pid_t)syscall(SYS_getpid), none = 0;
    if (ag_driver_owns(caller))
        return true;
    if (!atomic_compare_exchange_strong(&first, &none, pid) && none != pid)
        return false;
    return ag_elf_inside((uintptr_t)caller, "libnvidia-");
}

static void *pool_thunk(void *address)
{
    void *answer = NULL;
    ag_fork_lock_take(&pool_lock);
#ifdef AG_MUTANT_THUNK_ANEW /* a function gets another thunk each time it is asked for */
    for (unsigned i = 0; false && i < pool_used; i++)
#else
    for (unsigned i = 0; !answer && i < pool_used; i++)
#endif
        if (ag_pool_real[i] == (ag_fn)address)
            answer = (void *)ag_pool_stubs[i];
    if (!answer && pool_used < AG_POOL) {
        ag_pool_real[pool_used] = (ag_fn)address;
        answer = (void *)ag_pool_stubs[pool_used++];
    }
    ag_fork_lock_give(&pool_lock);
    if (!answer)
        atomic_store(&leaked, true);
    return answer ? answer : address;
}

bool ag_resolve_leaked(void)
{
    return atomic_load(&leaked);
}

void *ag_resolve_address(void *address, const char *name)
{
    const unsigned row = ag_driver_row(address, name);
    return row == AG_ROWS ? pool_thunk(address) : (void *)ag_exports[row];
}

/* Is this one of our own exports? Then the look-up found us, not the driver. */
static bool ours(const void *address, const char *name)
{
    const unsigned row = ag_driver_row_of_name(name);
    return row != AG_ROWS && (const void *)ag_exports[row] == address;
}

/* The answer of a look-up that finds nothing before us, with the message that such a look-up
 * leaves: what comes after this library cannot be our own export. */
static void *not_ours(const char *name)
{
    return real_dlsym()(RTLD_NEXT, name);
}

static void *replace(void *found, const char *name, const void *caller)
{
    if (!ag_driver_owns(found) && (!ag_driver_load() || !ag_driver_owns(found)))
        return found;
    if (internal_caller(caller))
        return found;
    return ag_resolve_address(found, name);
}

static struct ag_resolved by_handle(void *handle, const char *name, const void *caller)
{
    void *const found = real_dlsym()(handle, name);
    if (!found)
        return (struct ag_resolved){NULL, 1};
    if (ours(found, name))
        return (struct ag_resolved){
            ag_driver_load() && ag_driver_defines(name) ? found : not_ours(name), 1};
    return (struct ag_resolved){replace(found, name, caller), 1};
}

/* ELF order decides by itself: a definition before ours, ours, or none. Two answers are wrong and
 * replaced: ours for a name that no mapped driver has, and a driver function that the table lacks.
 * The look-up itself belongs to the caller's scope. */
static struct ag_resolved by_default(const char *name, const void *caller)
{
    const bool listed = ag_driver_row_of_name(name) != AG_ROWS;
    const bool there = ag_driver_load() && ag_driver_defines(name);
#ifdef AG_MUTANT_NAMES_ALWAYS /* our exports are found though there is no driver */
    return (struct ag_resolved){NULL, 0};
#endif
    if (listed == there)
        return (struct ag_resolved){NULL, 0};
    void *const found = real_dlsym()(RTLD_DEFAULT, name);
    if (listed)
        return ours(found, name) ? (struct ag_resolved){not_ours(name), 1}
                                 : (struct ag_resolved){NULL, 0};
    return found && ag_driver_owns(found) ? (struct ag_resolved){replace(found, name, caller), 1}
                                          : (struct ag_resolved){NULL, 0};
}

struct ag_resolved ag_resolve_dlsym(void *handle, const char *name, const void *caller)
{
    if (!real_dlsym())
        return (struct ag_resolved){NULL, 1};
    if (ag_driver_load())
        ag_resolve_pin(); /* the look-up that follows sets or clears dlerror itself */
    return handle == RTLD_DEFAULT ? by_default(name, caller) : by_handle(handle, name, caller);
}
