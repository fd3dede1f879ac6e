/* capture/record.c - see record.h. */
#include "capture/record.h"
#include "capture/graph.h"
#include "capture/track.h"
#include "shim/observe/dump.h"
#include <stdlib.h>

static void describe_node(const struct ag_graph *g, const struct ag_node *node,
                          struct ag_dump_node *out, struct ag_dump_param *params)
{
    const struct ag_func *f = node->sig->func;
    const struct ag_config *c = &node->sig->key.config;
    for (uint32_t i = 0; i < f->params; i++)
        params[i] = (struct ag_dump_param){f->param[i].offset, f->param[i].size,
                                           g->changed ? g->changed[node->first_param + i] : 0};
    *out = (struct ag_dump_node){
        .name = f->name,
        .grid = {c->grid[0], c->grid[1], c->grid[2]},
        .block = {c->block[0], c->block[1], c->block[2]},
        .shared_bytes = c->shared_bytes,
        .param_count = f->params,
        .params = params,
        .patches = node->patched,
    };
}

/* Host and device bytes as ag_graph_estimate() adds them up. */
static void record_piece(struct ag_capture *cap, const struct ag_graph *g, const struct ag_piece *p,
                         struct ag_dump_node *nodes, struct ag_dump_param *params)
{
    const uint64_t bytes = g->bytes / g->n * p->ops;
    uint32_t n = 0;
    for (uint32_t i = p->first; i != AG_NO_OP; i = g->place[i].next)
        if (g->node[i].node)
            describe_node(g, &g->node[i], &nodes[n++], params + g->node[i].first_param);
    const struct ag_dump_graph graph = {
        .number = p->serial,
        .node_count = n,
        .nodes = nodes,
        .stream = p->stream->id,
        .context = (uint64_t)(uintptr_t)p->stream->log->ctx,
        .origin = "launches of one stream between two cuts",
        .replays = g->replays,
        .device_bytes = bytes / 14 * 6,
        .host_bytes = bytes - bytes / 14 * 6,
    };
    ag_dump_graph(cap->options, &graph);
}

void ag_record_graph(struct ag_capture *cap, struct ag_graph *g)
{
    uint32_t params = 0;
    if (!cap->options->dump[0])
        return;
    for (uint32_t i = 0; i < g->n; i++)
        params += g->node[i].sig->func->params;
    struct ag_dump_node *nodes = calloc(g->n, sizeof *nodes);
    struct ag_dump_param *param = calloc(params + 1, sizeof *param);
    for (uint32_t k = 0; k < g->pieces && nodes && param; k++)
        if (g->piece[k].is_graph)
            record_piece(cap, g, &g->piece[k], nodes, param);
    free(nodes);
    free(param);
}

void ag_record_all(struct ag_capture *cap)
{
    if (!cap->options->dump[0])
        return;
    for (uint32_t i = 0; i < atomic_load(&cap->contexts); i++) {
        struct ag_oplog *log = atomic_load(&cap->logs[i]);
        if (!ag_oplog_enter_current_for(log,
                                        AG_ABOUT_NO_STREAM)) /* its graphs stay as first written */
            continue;
        for (const struct ag_stream *s = log->streams; s; s = s->hh.next)
            for (uint32_t k = 1; ag_track_first(s->track) == s && k < s->track->graphs; k++)
                if (s->track->graph[k])
                    ag_record_graph(cap, s->track->graph[k]);
        ag_oplog_leave(log);
    }
}
