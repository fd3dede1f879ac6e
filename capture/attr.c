/* capture/attr.c - see attr.h. */
#include "capture/attr.h"
#include "shim/observe/log.h"
#include <stdlib.h>
#include <string.h>

/* Cooperative launches, priorities,
 * the remote memory-sync domain and events of a launch need more than a node attribute: an order
 * barrier, an instantiation flag, a record. */
int ag_attr_bytes(const CUlaunchAttribute *a)
{
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
        return 0;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return a->value.cooperative ? -1 : 0;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        return a->value.programmaticStreamSerializationAllowed ? (int)sizeof(int) : 0;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return a->value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT
                   ? (int)sizeof a->value.memSyncDomain
                   : -1;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return sizeof a->value.clusterDim;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return sizeof a->value.clusterSchedulingPolicyPreference;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return sizeof a->value.sharedMemCarveout;
    default:
        return -1;
    }
}

/* Programmatic serialization allows a kernel to begin before the one in front of it has ended; cuda.h
 * 13.0 calls that opportunistic, and the attribute valid for launches only. A full edge to the node
 * in front is the order without the overlap. */
bool ag_attr_is_for_nodes(const CUlaunchAttribute *a)
{
    return a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
}

bool ag_attrs_admissible(const CUlaunchConfig *config)
{
    unsigned kept = 0;
    for (unsigned i = 0; config && i < config->numAttrs; i++) {
        const int bytes = ag_attr_bytes(&config->attrs[i]);
        if (bytes < 0) {
            ag_log(AG_LEVEL_DEBUG, "launch attribute %d is not replayed", (int)config->attrs[i].id);
            return false;
        }
        kept += bytes > 0;
    }
    return kept <= AG_ATTRS_MAX;
}

CUevent ag_attrs_event(const CUlaunchConfig *config, unsigned i)
{
    for (unsigned k = 0; config && k < config->numAttrs; k++) {
        const CUlaunchAttribute *a = &config->attrs[k];
        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && !i--)
            return a->value.programmaticEvent.event;
        if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT && !i--)
            return a->value.launchCompletionEvent.event;
    }
    return NULL;
}

static struct ag_attrs read(const CUlaunchConfig *config)
{
    struct ag_attrs set;
    memset(&set, 0, sizeof set);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const int bytes = ag_attr_bytes(&config->attrs[i]);
        if (bytes <= 0)
            continue;
        set.attr[set.n].id = config->attrs[i].id;
        memcpy(&set.attr[set.n++].value, &config->attrs[i].value, (size_t)bytes);
    }
    return set;
}

bool ag_attrs_intern(struct ag_attr_table *table, const CUlaunchConfig *config, uint32_t *out_id)
{
    *out_id = 0;
    if (!config || !config->numAttrs)
        return true;
    const struct ag_attrs set = read(config);
    if (!set.n)
        return true;
    for (uint32_t i = 0; i < table->count; i++) {
        if (!memcmp(&table->set[i], &set, sizeof set)) {
            *out_id = i + 1;
            return true;
        }
    }
    if (!table->set)
        table->set = calloc(AG_ATTR_SETS, sizeof *table->set);
    if (!table->set || table->count == AG_ATTR_SETS)
        return false;
    table->set[table->count] = set;
    *out_id = ++table->count;
    return true;
}

const struct ag_attrs *ag_attrs_at(const struct ag_attr_table *table, uint32_t id)
{
    return &table->set[id - 1];
}

void ag_attrs_clear(struct ag_attr_table *table)
{
    free(table->set);
    *table = (struct ag_attr_table){NULL, 0};
}
