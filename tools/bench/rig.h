/* tools/bench/rig.h - what every benchmark needs: the device, clocks, medians, one JSON line.
 * Called by  the programs of tools/bench        Calls  libcuda.so.1, libc
 * Threads    one
 * Promise    a refused driver call ends the program with 1 and its name; a printed line
 *            names the driver file that was mapped: no simulated number passes for a real one
 * Start at   rig_open()                                                         */
#ifndef TOOLS_BENCH_RIG_H
#define TOOLS_BENCH_RIG_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum rig_kernel { RIG_MIX, RIG_XOR, RIG_ROT, RIG_NULL, RIG_PAIR, RIG_KERNELS };

/* The first three compute what tests/apps/mirror.h says. */
struct rig {
    CUstream stream;
    CUcontext ctx;
    CUfunction kernel[RIG_KERNELS];
    int version;
    char device[128];
    char path[512]; /* of the libcuda that is mapped, from /proc/self/maps */
};

void rig_open(struct rig *r);
void rig_check(CUresult ret, const char *what);
#define RIG(call) rig_check(call, #call)

CUdeviceptr rig_alloc(size_t bytes); /* zeroed */

uint64_t rig_wall_ns(void);
uint64_t rig_cpu_ns(void); /* of the calling thread */

/* Whole number in text, from low to high, otherwise exit 2. */
long rig_number(const char *option, const char *text, long low, long high);
/* The index of the name; if it is none of them, usage and exit 2. */
int rig_one_of(const char *const *names, int n, const char *name, void (*usage)(FILE *to));

struct rig_summary {
    size_t n;
    double median, min, max, iqr, p10;
};
/* Sorts the samples. */
struct rig_summary rig_summarize(double *samples, size_t n);

/* How much is measured: blocks of `length` iterations, some before them that do not count. */
struct rig_plan {
    unsigned long length;
    unsigned blocks, warmup;
};
#define RIG_PLAN ((struct rig_plan){.length = 50, .blocks = 21, .warmup = 5})
/* For getopt_long, and what usage says of them. */
#define RIG_PLAN_OPTIONS                                                                           \
    {"length", 1, 0, 'l'}, {"blocks", 1, 0, 'b'},                                                  \
    {                                                                                              \
        "warmup", 1, 0, 'w'                                                                        \
    }
#define RIG_PLAN_USAGE                                                                             \
    "  --length N   iterations in a block (50)   --blocks N  measured blocks (21)\n"               \
    "  --warmup N   blocks before them (5)\n"
/* Takes the option if it is one of these; exit 2 on a bad number. */
int rig_plan_option(struct rig_plan *plan, int c, const char *arg);
/* `block` runs one and returns us per iteration. */
struct rig_summary rig_measure(const struct rig_plan *plan, double (*block)(void *bench),
                               void *bench);

/* One line: {"bench": ..., what (a list of members, no braces), unit: median, spread, driver}. */
void rig_print(const struct rig *r, const char *bench, const char *what, const char *unit,
               struct rig_summary s);

#endif
