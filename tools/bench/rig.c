/* tools/bench/rig.c - see rig.h.
 * Called by  the programs of tools/bench        Calls  libcuda.so.1, libc                */
#include "tools/bench/rig.h"

#include "kernels/images.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void rig_check(CUresult ret, const char *what)
{
    const char *text = NULL;
    if (ret == CUDA_SUCCESS)
        return;
    if (cuGetErrorString(ret, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    fprintf(stderr, "%s: %s (%d)\n", what, text, (int)ret);
    exit(1);
}

static void find_driver_file(char *path, size_t size)
{
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    snprintf(path, size, "unknown");
    if (!maps)
        return;
    while (fgets(line, sizeof line, maps)) {
        char *file = strchr(line, '/');
        if (!file || !strstr(file, "libcuda.so"))
            continue;
        file[strcspn(file, "\n")] = 0;
        snprintf(path, size, "%s", file);
        break;
    }
    fclose(maps);
}

void rig_open(struct rig *r)
{
    static const char *const names[RIG_KERNELS] = {"vary_mix", "vary_xor", "vary_rot", "vary_null",
                                                   "vary_pair"};
    CUdevice device;
    CUmodule module;
    memset(r, 0, sizeof *r);
    RIG(cuInit(0));
    RIG(cuDeviceGet(&device, 0));
    RIG(cuDeviceGetName(r->device, sizeof r->device, device));
    RIG(cuDriverGetVersion(&r->version));
    RIG(cuDevicePrimaryCtxRetain(&r->ctx, device));
    RIG(cuCtxSetCurrent(r->ctx));
    RIG(cuModuleLoadData(&module, ag_image_varying));
    for (int k = 0; k < RIG_KERNELS; k++)
        rig_check(cuModuleGetFunction(&r->kernel[k], module, names[k]), names[k]);
    RIG(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    find_driver_file(r->path, sizeof r->path);
}

CUdeviceptr rig_alloc(size_t bytes)
{
    CUdeviceptr p;
    RIG(cuMemAlloc(&p, bytes));
    RIG(cuMemsetD8(p, 0, bytes));
    RIG(cuCtxSynchronize());
    return p;
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rig_wall_ns(void)
{
    return now(CLOCK_MONOTONIC);
}

uint64_t rig_cpu_ns(void)
{
    return now(CLOCK_THREAD_CPUTIME_ID);
}

long rig_number(const char *option, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < low || v > high) {
        fprintf(stderr, "%s: '%s' is no number from %ld to %ld\n", option, text, low, high);
        exit(2);
    }
    return v;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

int rig_one_of(const char *const *names, int n, const char *name, void (*usage)(FILE *to))
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return i;
    usage(stderr);
    exit(2);
}

struct rig_summary rig_summarize(double *samples, size_t n)
{
    struct rig_summary s = {.n = n};
    if (n == 0)
        return s;
    qsort(samples, n, sizeof *samples, by_value);
    s.median = quantile(samples, n, 0.5);
    s.min = samples[0];
    s.max = samples[n - 1];
    s.iqr = quantile(samples, n, 0.75) - quantile(samples, n, 0.25);
    s.p10 = quantile(samples, n, 0.1);
    return s;
}

int rig_plan_option(struct rig_plan *plan, int c, const char *arg)
{
    if (c == 'l')
        plan->length = (unsigned long)rig_number("--length", arg, 1, 10000000);
    else if (c == 'b')
        plan->blocks = (unsigned)rig_number("--blocks", arg, 1, 100000);
    else if (c == 'w')
        plan->warmup = (unsigned)rig_number("--warmup", arg, 0, 100000);
    else
        return 0;
    return 1;
}

struct rig_summary rig_measure(const struct rig_plan *plan, double (*block)(void *bench),
                               void *bench)
{
    double *samples = calloc(plan->blocks, sizeof *samples);
    if (!samples)
        exit(1);
    for (unsigned n = 0; n < plan->warmup; n++)
        block(bench);
    for (unsigned n = 0; n < plan->blocks; n++)
        samples[n] = block(bench);
    const struct rig_summary s = rig_summarize(samples, plan->blocks);
    free(samples);
    return s;
}

void rig_print(const struct rig *r, const char *bench, const char *what, const char *unit,
               struct rig_summary s)
{
    printf("{\"bench\": \"%s\", %s, \"unit\": \"%s\", \"median\": %.3f, \"min\": %.3f, "
           "\"max\": %.3f, \"iqr\": %.3f, \"p10\": %.3f, \"samples\": %zu, "
           "\"driver\": \"%s\", \"driver_version\": %d, \"device\": \"%s\"}\n",
           bench, what, unit, s.median, s.min, s.max, s.iqr, s.p10, s.n, r->path, r->version,
           r->device);
    fflush(stdout);
}
