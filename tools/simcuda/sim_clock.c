/* tools/simcuda/sim_clock.c - virtual time, and the statistics written at exit.
 * Called by  sim_call.c, sim_op.c, sim_exec.c       Calls  libc
 * Threads    caller holds sim_lock
 * Promise    see sim_clock.h
 * Start at   sim_clock_spend()                                                              */
#define _GNU_SOURCE
#include "tools/simcuda/sim_clock.h"

#include "tools/simcuda/sim_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct sim_stats sim_stats;

static void latest(uint64_t ns)
{
    if (ns > sim_stats.latest_ns)
        sim_stats.latest_ns = ns;
}

void sim_clock_spend(uint64_t ns)
{
    struct sim_tls *tls = sim_self();
    tls->now_ns += ns;
    sim_stats.host_ns += ns;
    latest(tls->now_ns);
}

void sim_clock_reach(uint64_t at_ns)
{
    struct sim_tls *tls = sim_self();
    if (at_ns > tls->now_ns)
        tls->now_ns = at_ns;
    latest(tls->now_ns);
}

uint64_t sim_clock_now(void)
{
    return sim_self()->now_ns;
}

void sim_clock_device(uint64_t start_ns, uint64_t end_ns)
{
    sim_stats.device_ns += end_ns - start_ns;
    latest(end_ns);
}

void sim_clock_write_stats(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    const struct sim_stats *s = &sim_stats;
    dprintf(
        fd,
        "{\"schema\": \"simcuda-stats/1\", \"kernels_eager\": %llu, \"kernels_in_graphs\": %llu, "
        "\"graph_launches\": %llu, \"patched_nodes\": %llu, \"graphs_instantiated\": %llu, "
        "\"copies\": %llu, \"memsets\": %llu, \"host_functions\": %llu, \"calls\": %llu, "
        "\"misuses\": %llu, \"host_us\": %.3f, \"device_us\": %.3f, \"elapsed_us\": %.3f}\n",
        (unsigned long long)s->kernels_eager, (unsigned long long)s->kernels_in_graphs,
        (unsigned long long)s->graph_launches, (unsigned long long)s->patched_nodes,
        (unsigned long long)s->graphs_instantiated, (unsigned long long)s->copies,
        (unsigned long long)s->memsets, (unsigned long long)s->host_functions,
        (unsigned long long)s->calls, (unsigned long long)s->misuses, (double)s->host_ns / 1e3,
        (double)s->device_ns / 1e3, (double)s->latest_ns / 1e3);
    close(fd);
}
