/* shim/observe/dump.c - see dump.h. */
#include "shim/observe/dump.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "shim/observe/file.h"
#include "shim/observe/json.h"
#include "shim/observe/log.h"
#include "shim/observe/sys.h"

/* The dumps of the process. */
static struct {
    atomic_int owner; /* process id of the first call; 0 before it */
    atomic_bool off;  /* after a failure: nothing more is written */
    atomic_bool full; /* the log has been told that graphs are left out */
} the_dump;

static bool is_ours(void)
{
    int nobody = 0, pid = ag_sys_pid();
    return atomic_compare_exchange_strong(&the_dump.owner, &nobody, pid) || nobody == pid;
}

static uint64_t patches_of(const struct ag_dump_graph *g)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        sum += g->nodes[i].patches;
    }
    return sum;
}

static void json_triple(struct ag_json *j, const char *key, const uint32_t triple[3])
{
    ag_json_array(j, key);
    for (int i = 0; i < 3; i++) {
        ag_json_u64(j, NULL, triple[i]);
    }
    ag_json_end(j);
}

static void json_node(struct ag_json *j, const struct ag_dump_node *n)
{
    ag_json_object(j, NULL);
    ag_json_text(j, "name", n->name);
    json_triple(j, "grid", n->grid);
    json_triple(j, "block", n->block);
    ag_json_u64(j, "shared_bytes", n->shared_bytes);
    ag_json_u64(j, "patches", n->patches);
    ag_json_array(j, "parameters");
    for (uint32_t i = 0; i < n->param_count; i++) {
        ag_json_object(j, NULL);
        ag_json_u64(j, "offset", n->params[i].offset);
        ag_json_u64(j, "size", n->params[i].size);
        ag_json_u64(j, "patched", n->params[i].patched);
        ag_json_end(j);
    }
    ag_json_end(j);
    ag_json_end(j);
}

static void put_json(struct ag_sink *sink, const struct ag_dump_graph *g)
{
    struct ag_json j;
    ag_json_open(&j, sink);
    ag_json_object(&j, NULL);
    ag_json_text(&j, "schema", "autograph-graph/1");
    ag_json_u64(&j, "pid", (uint64_t)ag_sys_pid());
    ag_json_u64(&j, "number", g->number);
    ag_json_u64(&j, "stream", g->stream);
    ag_json_u64(&j, "context", g->context);
    ag_json_text(&j, "origin", g->origin);
    ag_json_u64(&j, "replays", g->replays);
    ag_json_u64(&j, "patches", patches_of(g));
    ag_json_u64(&j, "device_bytes", g->device_bytes);
    ag_json_u64(&j, "host_bytes", g->host_bytes);
    ag_json_array(&j, "nodes");
    for (uint32_t i = 0; i < g->node_count; i++) {
        json_node(&j, &g->nodes[i]);
    }
    ag_json_end(&j);
    ag_json_array(&j, "edges");
    for (uint32_t i = 1; i < g->node_count; i++) {
        ag_json_array(&j, NULL);
        ag_json_u64(&j, NULL, i - 1);
        ag_json_u64(&j, NULL, i);
        ag_json_end(&j);
    }
    ag_json_end(&j);
    ag_json_end(&j);
    ag_json_close(&j);
}

/* Inside a quoted label: a backslash would start an escape of dot's, '&' an entity. */
static void dot_escaped(struct ag_sink *s, const char *text)
{
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        size_t n = ag_sink_utf8(text);
        if (n == 0) {
            ag_sink_text(s, "\xef\xbf\xbd");
            n = 1;
        } else if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            ag_sink_put(s, escaped, sizeof escaped);
        } else if (c == '&') {
            ag_sink_text(s, "&amp;");
        } else if (c < 0x20 || c == 0x7f) {
            ag_sink_text(s, "?");
        } else {
            ag_sink_put(s, text, n);
        }
        text += n;
    }
}

static void dot_number(struct ag_sink *s, const char *before, uint64_t number)
{
    ag_sink_text(s, before);
    ag_sink_u64(s, number);
}

static void dot_triple(struct ag_sink *s, const char *before, const uint32_t triple[3])
{
    dot_number(s, before, triple[0]);
    dot_number(s, "x", triple[1]);
    dot_number(s, "x", triple[2]);
}

static void dot_node(struct ag_sink *s, const struct ag_dump_node *n, uint32_t index)
{
    dot_number(s, "  n", index);
    dot_number(s, " [label=\"", index);
    ag_sink_text(s, ": ");
    dot_escaped(s, n->name == NULL ? "(no name)" : n->name);
    dot_triple(s, "\\ngrid ", n->grid);
    dot_triple(s, "  block ", n->block);
    dot_number(s, "  shared ", n->shared_bytes);
    if (n->patches == 0) {
        ag_sink_text(s, "\\nnever patched\"];\n");
        return;
    }
    dot_number(s, "\\npatched ", n->patches);
    ag_sink_text(s, " times");
    for (uint32_t i = 0; i < n->param_count; i++) {
        const struct ag_dump_param *p = &n->params[i];
        if (p->patched != 0) {
            dot_number(s, "\\nparameter ", i);
            dot_number(s, " (", p->size);
            dot_number(s, " bytes at ", p->offset);
            dot_number(s, "): ", p->patched);
        }
    }
    ag_sink_text(s, "\", fillcolor=\"#ffe0b0\"];\n");
}

static void put_dot(struct ag_sink *s, const struct ag_dump_graph *g)
{
    dot_number(s, "digraph autograph_", g->number);
    ag_sink_text(s, " {\n  node [shape=box, style=filled, fillcolor=\"#f0f0f0\", "
                    "fontname=\"monospace\"];\n");
    dot_number(s, "  label=\"graph ", g->number);
    dot_number(s, ": ", g->node_count);
    dot_number(s, " nodes, ", g->replays);
    dot_number(s, " replays, stream ", g->stream);
    dot_number(s, ", context ", g->context);
    dot_number(s, "\\ndevice ", g->device_bytes);
    dot_number(s, " bytes, host ", g->host_bytes);
    ag_sink_text(s, " bytes");
    if (g->origin != NULL) {
        ag_sink_text(s, "\\n");
        dot_escaped(s, g->origin);
    }
    ag_sink_text(s, "\";\n");
    for (uint32_t i = 0; i < g->node_count; i++) {
        dot_node(s, &g->nodes[i], i);
    }
    for (uint32_t i = 1; i < g->node_count; i++) {
        dot_number(s, "  n", i - 1);
        dot_number(s, " -> n", i);
        ag_sink_text(s, ";\n");
    }
    ag_sink_text(s, "}\n");
}

static int write_file(const struct ag_options *o, const struct ag_dump_graph *g, const char *ending,
                      void (*put)(struct ag_sink *, const struct ag_dump_graph *))
{
    char path[AG_OPTION_PATH];
    struct ag_file file;
    int n = snprintf(path, sizeof path, "%s/graph-%d-%u.%s", o->dump, (int)ag_sys_pid(), g->number,
                     ending);
    if (n < 0 || (size_t)n >= sizeof path) {
        return ENAMETOOLONG;
    }
    int error = ag_file_create(&file, path);
    if (error != 0) {
        return error;
    }
    put(&file.sink, g);
    return ag_file_commit(&file);
}

int ag_dump_graph(const struct ag_options *o, const struct ag_dump_graph *g)
{
    if (o->dump[0] == '\0' || atomic_load(&the_dump.off) || !is_ours()) {
        return 0;
    }
    /* Numbers only grow: what is dumped already may still be refreshed. */
    if (g->number > AG_DUMP_GRAPHS) {
        if (!atomic_exchange(&the_dump.full, true)) {
            ag_log(AG_LEVEL_WARN, "dump: graphs after number %d are left out", AG_DUMP_GRAPHS);
        }
        return 0;
    }
    int saved = errno;
    int error = write_file(o, g, "json", put_json);
    if (error == 0) {
        error = write_file(o, g, "dot", put_dot);
    }
    if (error != 0 && !atomic_exchange(&the_dump.off, true)) {
        ag_log(AG_LEVEL_WARN, "dump: %.200s: %s (errno %d), nothing more is dumped", o->dump,
               ag_file_reason(error), error);
    }
    errno = saved;
    return error;
}
