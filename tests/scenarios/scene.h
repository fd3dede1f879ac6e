/* tests/scenarios/scene.h - what the scenario programs share: one device, one context, images, a watchdog.
 * Called by  the scene files             Calls  the driver API through -lcuda
 * Threads    any
 * Promise    a scene knows nothing of the shim; it prints what it observed and nothing that depends on speed
 * Start at   struct scene_case, in each scene file */
#ifndef AG_TESTS_SCENARIOS_SCENE_H
#define AG_TESTS_SCENARIOS_SCENE_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>

enum {
    ROUNDS = 64,    /* of each loop: the first ones are seen, the later ones may be replayed */
    ODD_ROUND = 56, /* the one whose body differs */
    WORDS = 1024,
    SCENE_TIMED_OPS =
        16 /* after a timed record these are left to run as they are (capture/event.h) */
};

struct scene_case {
    const char *name;
    void (*play)(void);
};
extern const struct scene_case scene_replay[], scene_order[], scene_lifetime[], scene_errors[],
    scene_limits[], scene_entry[], scene_captures[], scene_data[], scene_events[], scene_host[],
    scene_memory[], scene_process[], scene_devices[], scene_fills[], scene_records[], scene_turns[],
    scene_operations[];

/* A setup call that fails ends the program: the scene could not be played. */
#define NEED(call) scene_need(call, #call)
void scene_need(CUresult ret, const char *what);

/* Cases call this first: driver, context, nothing else. */
void scene_open(void);
CUmodule scene_load(const char *image);
CUfunction scene_function(CUmodule module, const char *name);
CUdeviceptr scene_buffer(void); /* WORDS words: 0, 1, 2, ... */
CUstream scene_stream(unsigned flags);
void *scene_mapped(CUdeviceptr *out_device); /* a zeroed page that kernels and the host both see */
long scene_resident(
    void); /* KB of memory in use now; the peak would be that of the process it was forked from */

#define ARGS(...) ((void *[]){__VA_ARGS__})
CUresult scene_launch(CUfunction f, CUstream stream, unsigned grid, unsigned block, unsigned shared,
                      void **args);
/* vary_mix, vary_xor, vary_rot in turn on the buffer: a stretch of launches whose order shows. */
void scene_functions(CUmodule varying, CUfunction out_f[3]);
void scene_work_with(CUfunction const f[3], CUstream stream, CUdeviceptr buffer, unsigned launches,
                     unsigned value);
void scene_work(CUmodule varying, CUstream stream, CUdeviceptr buffer, unsigned launches,
                unsigned value);
/* SCENE_TIMES of the environment, 1 without: how many times as long a scene lasts. */
unsigned scene_times(void);
uint32_t scene_digest(const void *bytes, size_t n);
/* Waits for the stream, prints the code and the digest of the buffer. */
void scene_show(const char *what, unsigned round, CUstream stream, CUdeviceptr buffer);

#endif
