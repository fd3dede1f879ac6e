/* tools/simcuda/sim_object.h - objects behind handles, and handles that are re-used on purpose.
 * Called by  every sim_*.c              Calls  sim_object.c
 * Threads    caller holds sim_lock
 * Promise    an object lives while somebody refers to it; its handle dies at destruction and is
 *            the very next one given out for its kind
 * Start at   struct sim_object                                                              */
#ifndef SIMCUDA_SIM_OBJECT_H
#define SIMCUDA_SIM_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_kind {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_FUNCTION,
    SIM_KERNEL,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_POOL,
    SIM_KINDS
};

struct sim_context;

/* First member of whatever has a handle or is shared. */
struct sim_object {
    int refs;
    enum sim_kind kind;
    void *handle;            /* NULL: none, or destroyed */
    struct sim_context *ctx; /* owner, not counted; NULL: none */
    void (*free)(struct sim_object *self);
};

/* Zeroed memory; aborts when there is none: the simulator does not test its own machine. */
void *sim_new(size_t bytes);
void *sim_object_new(size_t bytes, enum sim_kind kind, struct sim_context *ctx,
                     void (*free_object)(struct sim_object *));
void *sim_ref(void *object);
void sim_unref(void *object);

/* The handle holds a reference of its own until sim_handle_drop. */
void *sim_handle_make(void *object);
void sim_handle_drop(void *object);
/* The live object of that kind, or NULL. */
void *sim_handle_find(const void *handle, enum sim_kind kind);
/* True if the value was once a handle of that kind and is dead now. */
bool sim_handle_is_dead(const void *handle, enum sim_kind kind);
/* How many objects have had the handle, the one it stands for included. */
unsigned sim_handle_lives(const void *handle);
/* Calls back for every live handle of the kind that belongs to ctx (NULL: to any). */
void sim_handle_each(enum sim_kind kind, struct sim_context *ctx,
                     void (*visit)(void *object, void *data), void *data);

#endif
