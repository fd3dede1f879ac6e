/* tools/simcuda/sim_clock.h - the virtual clock: what calls and operations cost.
 * Called by  every sim_*.c              Calls  sim_clock.c
 * Threads    caller holds sim_lock
 * Promise    nothing sleeps; a time depends on what a program did, not on this machine
 * Start at   the table. Measured on one H200, driver 580.159, unless marked "assumed"        */
#ifndef SIMCUDA_SIM_CLOCK_H
#define SIMCUDA_SIM_CLOCK_H

#include <stdint.h>

enum {
    /* host side, ns a call */
    SIM_NS_GETTER = 15,
    SIM_NS_SMALL = 100, /* assumed: handle look-ups, attributes */
    SIM_NS_LAUNCH = 3600,
    SIM_NS_QUERY = 700,
    SIM_NS_RECORD = 130,
    SIM_NS_WAIT_EVENT = 300, /* assumed */
    SIM_NS_MEMSET = 800,
    SIM_NS_COPY = 4000,
    SIM_NS_SYNC = 1500,          /* assumed: after the device has finished */
    SIM_NS_ALLOC = 3000,         /* assumed */
    SIM_NS_CREATE = 5000,        /* assumed: streams, events */
    SIM_NS_LOAD = 200000,        /* assumed */
    SIM_NS_HOST_FUNCTION = 2000, /* assumed */
    SIM_NS_ADD_NODE = 1000,
    SIM_NS_INSTANTIATE_NODE = 4000,
    SIM_NS_UPLOAD_NODE = 1000,
    SIM_NS_SET_PARAMS = 230,
    SIM_NS_SET_PARAMS_LAUNCH = 30, /* a patched node, at the next launch */
    /* a graph launch */
    SIM_NS_GRAPH_LAUNCH = 1200,
    SIM_NS_GRAPH_FREE_NODES = 64, /* nodes that cost nothing on top */
    SIM_PS_GRAPH_NODE = 1750,     /* picoseconds a node beyond those */
    SIM_NS_GRAPH_BRANCH = 700,    /* each root beyond the first */
    SIM_NS_GRAPH_MEMSET = 1440,
    SIM_NS_GRAPH_RECORD = 1630,
    SIM_NS_GRAPH_RECORD_UNTIMED = 820,
    SIM_NS_GRAPH_HOST_COPY = 1820,
    /* device side, ns an operation */
    SIM_DEVICE_KERNEL = 1600, /* assumed: eager, with its launch gap */
    SIM_DEVICE_KERNEL_IN_GRAPH = 520,
    SIM_DEVICE_COPY = 1000,
    SIM_DEVICE_COPY_IN_GRAPH = 1400,
    SIM_DEVICE_HOST_COPY = 6000,
    SIM_DEVICE_MEMSET = 1300,
    SIM_DEVICE_MEMSET_IN_GRAPH = 820,
    SIM_DEVICE_EVENT = 100,            /* assumed, but for untimed records in graphs */
    SIM_DEVICE_RECORD_IN_GRAPH = 1000, /* timed */
    SIM_DEVICE_HOST_FUNCTION = 8000,   /* assumed */
    SIM_DEVICE_BYTES_PER_US = 2000000,
    SIM_HOST_BYTES_PER_US = 50000,
    SIM_DEPTH = 1022 /* launches in flight in one stream before a launch blocks */
};

struct sim_stats {
    uint64_t kernels_eager, kernels_in_graphs, graph_launches, patched_nodes, graphs_instantiated;
    uint64_t copies, memsets, host_functions, calls, misuses;
    uint64_t host_ns, device_ns, latest_ns;
};
extern struct sim_stats sim_stats;

void sim_clock_spend(uint64_t ns);    /* host time of the calling thread */
void sim_clock_reach(uint64_t at_ns); /* the calling thread waited until then */
uint64_t sim_clock_now(void);
void sim_clock_device(uint64_t start_ns, uint64_t end_ns);
void sim_clock_write_stats(const char *path);

#endif
