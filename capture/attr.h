/* capture/attr.h - launch attributes: which may be replayed, as sets that are equal or not.
 * Called by  capture/{submit,replay,graph}.c       Calls  nothing
 * Threads    a table belongs to its log's lock
 * Promise    a set holds the meaningful bytes only, everything else zero, in the order of the call.
 * Attributes that say what is so anyway are left out. An attribute that is not listed in attr.c
 * sends its launch on eagerly. */
#ifndef AG_CAPTURE_ATTR_H
#define AG_CAPTURE_ATTR_H

#include "shim/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AG_ATTRS_MAX 4  /* attributes of one launch */
#define AG_ATTR_SETS 64 /* distinct sets of a context */

struct ag_attrs {
    uint32_t n;
    CUlaunchAttribute attr[AG_ATTRS_MAX];
};

struct ag_attr_table {
    struct ag_attrs *set; /* [count], owned; ids start at 1 */
    uint32_t count;
};

/* Bytes of the value that count; 0: left out; -1: not replayed. */
int ag_attr_bytes(const CUlaunchAttribute *a);
/* False: there is an attribute that is not replayed. `config` may be NULL (cuLaunchKernel). */
bool ag_attrs_admissible(const CUlaunchConfig *config);
/* The i-th event that the launch records; NULL after the last. */
CUevent ag_attrs_event(const CUlaunchConfig *config, unsigned i);
/* False: the attribute is part of the signature and of an eager launch, but not set on a node. */
bool ag_attr_is_for_nodes(const CUlaunchAttribute *a);
/* The id of an admissible launch's attributes; 0: none. False: no room or no memory. */
bool ag_attrs_intern(struct ag_attr_table *table, const CUlaunchConfig *config, uint32_t *out_id);
const struct ag_attrs *ag_attrs_at(const struct ag_attr_table *table, uint32_t id);
void ag_attrs_clear(struct ag_attr_table *table);

#ifdef __cplusplus
}
#endif

#endif
