/* tools/simcuda/sim_fault.c - failures on demand, and undefined behaviour made visible.
 * Called by  sim_call.c (rules), every sim_*.c (misuse)      Calls  libc
 * Threads    caller holds sim_lock
 * Promise    a rule fires exactly once, at the n-th call since the process started
 * Start at   sim_fault_of()                                                                 */
#define _GNU_SOURCE
#include "tools/simcuda/sim_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 256 };

static struct rule {
    struct sim_entry *entry;
    uint32_t nth; /* 1 = first; 0 = every call */
    CUresult code;
    bool sticky;
} rules[MAX_RULES];
static int nrules;

static struct sim_entry *entry_named(const char *symbol, size_t length)
{
    size_t n;
    struct sim_entry *const *rows = sim_entry_rows(&n);
    struct sim_entry *stub = NULL;
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i]->symbol) == length && !memcmp(rows[i]->symbol, symbol, length)) {
            if (!rows[i]->is_stub)
                return rows[i];
            stub = rows[i];
        }
    return stub;
}

static void refuse(const char *rule)
{
    fprintf(stderr, "simcuda: SIMCUDA_FAULT: cannot read '%s' (SYMBOL:N:CODE[:sticky])\n", rule);
    abort();
}

/* SYMBOL:N:CODE[:sticky] */
static void add(const char *text)
{
    const char *colon = strchr(text, ':');
    char *end = NULL;
    if (!colon || nrules == MAX_RULES)
        refuse(text);
    struct rule *r = &rules[nrules++];
    r->entry = entry_named(text, (size_t)(colon - text));
    r->nth = (uint32_t)strtoul(colon + 1, &end, 10);
    if (!r->entry || *end != ':')
        refuse(text);
    r->code = (CUresult)strtoul(end + 1, &end, 10);
    r->sticky = !strcmp(end, ":sticky");
    if ((*end && !r->sticky) || !r->code)
        refuse(text);
    r->entry->faults++;
}

void sim_fault_parse(const char *text)
{
    if (!text || !*text)
        return;
    char *copy = strdup(text), *rest = copy;
    for (char *rule; (rule = strsep(&rest, ",")) != NULL;)
        add(rule);
    free(copy);
}

CUresult sim_fault_of(struct sim_entry *entry, bool *out_sticky)
{
    for (int i = 0; i < nrules; i++)
        if (rules[i].entry == entry && (!rules[i].nth || rules[i].nth == entry->calls)) {
            *out_sticky = rules[i].sticky;
            return rules[i].code;
        }
    return CUDA_SUCCESS;
}

CUresult sim_misuse(CUresult code, const char *format, ...)
{
    sim_stats.misuses++;
    if (!sim.strict)
        return code;
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "simcuda: %s: ", sim_self()->entry ? sim_self()->entry->symbol : "worker");
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}
