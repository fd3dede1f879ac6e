/* tests/scenarios/scene.c - what the scenario programs share, and their main().
 * Called by  scenarios_test.cc: scene CASE      Calls  the driver API through -lcuda
 * Threads    any
 * Promise    exit status 3: the scene could not be played; 124: the watchdog ended it
 * Start at   main() */
#define _GNU_SOURCE
#include "kernels/images.h"
#include "tests/scenarios/scene.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    const unsigned char *bytes;
} images[] = {{"basic", ag_image_basic},      {"flag", ag_image_flag},
              {"reuse_a", ag_image_reuse_a},  {"reuse_b", ag_image_reuse_b},
              {"varying", ag_image_varying},  {"smem", ag_image_smem},
              {"constant", ag_image_constant}};

void scene_need(CUresult ret, const char *what)
{
    if (ret == CUDA_SUCCESS)
        return;
    printf("scene could not be played: %s gave %d\n", what, ret);
    fflush(stdout);
    _exit(3);
}

void scene_open(void)
{
    CUdevice device;
    CUcontext ctx;
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDevicePrimaryCtxRetain(&ctx, device));
    NEED(cuCtxSetCurrent(ctx));
}

CUmodule scene_load(const char *image)
{
    CUmodule module = NULL;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        if (!strcmp(images[i].name, image))
            NEED(cuModuleLoadData(&module, images[i].bytes));
    if (!module)
        scene_need(CUDA_ERROR_NOT_FOUND, image);
    return module;
}

CUfunction scene_function(CUmodule module, const char *name)
{
    CUfunction f;
    NEED(cuModuleGetFunction(&f, module, name));
    return f;
}

CUdeviceptr scene_buffer(void)
{
    uint32_t start[WORDS];
    CUdeviceptr p;
    for (uint32_t i = 0; i < WORDS; i++)
        start[i] = i;
    NEED(cuMemAlloc(&p, sizeof start));
    NEED(cuMemcpyHtoD(p, start, sizeof start));
    NEED(cuCtxSynchronize());
    return p;
}

long scene_resident(void)
{
    long all = 0, resident = -1;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%ld %ld", &all, &resident) != 2)
        resident = -1;
    if (statm)
        fclose(statm);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

CUstream scene_stream(unsigned flags)
{
    CUstream s;
    NEED(cuStreamCreate(&s, flags));
    return s;
}

void *scene_mapped(CUdeviceptr *out_device)
{
    void *p;
    NEED(cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(p, 0, 4096);
    NEED(cuMemHostGetDevicePointer(out_device, p, 0));
    return p;
}

CUresult scene_launch(CUfunction f, CUstream stream, unsigned grid, unsigned block, unsigned shared,
                      void **args)
{
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, args, NULL);
}

void scene_functions(CUmodule varying, CUfunction out_f[3])
{
    static const char *const names[] = {"vary_mix", "vary_xor", "vary_rot"};
    for (int i = 0; i < 3; i++)
        out_f[i] = scene_function(varying, names[i]);
}

void scene_work_with(CUfunction const f[3], CUstream stream, CUdeviceptr buffer, unsigned launches,
                     unsigned value)
{
    for (unsigned i = 0; i < launches; i++) {
        unsigned v = value + i;
        NEED(scene_launch(f[i % 3], stream, 1, 64, 0, ARGS(&buffer, &v)));
    }
}

void scene_work(CUmodule varying, CUstream stream, CUdeviceptr buffer, unsigned launches,
                unsigned value)
{
    static _Thread_local CUmodule known; /* looking a function up is a call of its own: only once */
    static _Thread_local CUfunction f[3];
    if (known != varying)
        scene_functions(varying, f);
    known = varying;
    scene_work_with(f, stream, buffer, launches, value);
}

unsigned scene_times(void)
{
    const char *times = getenv("SCENE_TIMES");
    return times ? (unsigned)strtoul(times, NULL, 10) : 1;
}

uint32_t scene_digest(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 16777619u;
    return h;
}

void scene_show(const char *what, unsigned round, CUstream stream, CUdeviceptr buffer)
{
    uint32_t words[WORDS] = {0};
    CUresult wait = cuStreamSynchronize(stream);
    CUresult read = cuMemcpyDtoH(words, buffer, sizeof words);
    printf("%s %u: %d %d %08x\n", what, round, wait, read, scene_digest(words, sizeof words));
}

static void on_alarm(int signal)
{
    static const char text[] = "the watchdog ended the scene\n";
    (void)signal;
    if (write(1, text, sizeof text - 1) < 0)
        _exit(125);
    _exit(124);
}

int main(int argc, char **argv)
{
    const struct scene_case *const lists[] = {
        scene_replay,   scene_order, scene_lifetime, scene_errors, scene_limits,    scene_entry,
        scene_captures, scene_data,  scene_events,   scene_host,   scene_memory,    scene_process,
        scene_devices,  scene_fills, scene_records,  scene_turns,  scene_operations};
    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, on_alarm);
    alarm(60);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct scene_case *c = lists[i]; c->name; c++)
            if (!strcmp(c->name, argv[1])) {
                c->play();
                return 0;
            }
    fprintf(stderr, "no scene %s\n", argv[1]);
    return 2;
}
