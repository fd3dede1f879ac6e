/* tools/simcuda/sim_object.c - objects, reference counts, handle slabs.
 * Called by  every sim_*.c              Calls  mmap
 * Threads    caller holds sim_lock
 * Promise    see sim_object.h. A slab sits at a fixed address where it can, so that two runs of a
 *            program see the same handles
 * Start at   sim_handle_make()                                                              */
#include "tools/simcuda/sim_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SLOTS = 1 << 18, SLOT_BYTES = 64 };

struct slot {
    struct sim_object *object; /* NULL: free */
    struct slot *next_free;
    size_t lives; /* objects that have had it */
    char pad[SLOT_BYTES - 3 * sizeof(void *)];
};

static struct {
    struct slot *base;
    size_t used; /* slots ever given out */
    struct slot *free;
} slab[SIM_KINDS];

void *sim_new(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) {
        fputs("simcuda: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *sim_object_new(size_t bytes, enum sim_kind kind, struct sim_context *ctx,
                     void (*free_object)(struct sim_object *))
{
    struct sim_object *o = sim_new(bytes);
    o->refs = 1;
    o->kind = kind;
    o->ctx = ctx;
    o->free = free_object;
    return o;
}

void *sim_ref(void *object)
{
    if (object)
        ((struct sim_object *)object)->refs++;
    return object;
}

void sim_unref(void *object)
{
    struct sim_object *o = object;
    if (!o || --o->refs)
        return;
    if (o->free)
        o->free(o);
    free(o);
}

/* Present in a program built with LeakSanitizer: what a handle refers to is not leaked. */
__attribute__((weak)) void __lsan_register_root_region(const void *base, size_t bytes);

static void open_slab(enum sim_kind kind)
{
    const size_t bytes = (size_t)SLOTS * SLOT_BYTES;
    void *hint = (void *)(0x7e8800000000ull + (uint64_t)kind * bytes);
    void *p = mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        fputs("simcuda: no address space for handles\n", stderr);
        abort();
    }
    slab[kind].base = p;
    if (__lsan_register_root_region)
        __lsan_register_root_region(p, bytes);
}

void *sim_handle_make(void *object)
{
    struct sim_object *o = object;
    enum sim_kind kind = o->kind;
    if (!slab[kind].base)
        open_slab(kind);
    struct slot *s = slab[kind].free;
    if (s) {
        slab[kind].free = s->next_free;
    } else if (slab[kind].used < SLOTS) {
        s = &slab[kind].base[slab[kind].used++];
    } else {
        fputs("simcuda: too many handles\n", stderr);
        abort();
    }
    s->object = sim_ref(o);
    s->lives++;
    o->handle = s;
    return s;
}

void sim_handle_drop(void *object)
{
    struct sim_object *o = object;
    struct slot *s = o->handle;
    if (!s)
        return;
    s->object = NULL;
    s->next_free = slab[o->kind].free;
    slab[o->kind].free = s;
    o->handle = NULL;
    sim_unref(o);
}

static struct slot *slot_of(const void *handle, enum sim_kind kind)
{
    const char *base = (const char *)slab[kind].base, *h = handle;
    if (!base || h < base || h >= base + slab[kind].used * SLOT_BYTES || (h - base) % SLOT_BYTES)
        return NULL;
    return (struct slot *)(uintptr_t)h;
}

void *sim_handle_find(const void *handle, enum sim_kind kind)
{
    struct slot *s = slot_of(handle, kind);
    return s ? s->object : NULL;
}

bool sim_handle_is_dead(const void *handle, enum sim_kind kind)
{
    struct slot *s = slot_of(handle, kind);
    return s && !s->object;
}

unsigned sim_handle_lives(const void *handle)
{
    return (unsigned)((const struct slot *)handle)->lives;
}

void sim_handle_each(enum sim_kind kind, struct sim_context *ctx,
                     void (*visit)(void *object, void *data), void *data)
{
    for (size_t i = 0; i < slab[kind].used; i++) {
        struct sim_object *o = slab[kind].base[i].object;
        if (o && (!ctx || o->ctx == ctx))
            visit(o, data);
    }
}
