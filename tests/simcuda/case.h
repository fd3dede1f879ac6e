/* tests/simcuda/case.h - what the case programs share.
 * Called by  case_*.c                   Calls  the driver API through -lcuda
 * Threads    any
 * Promise    a setup call that fails ends the program with status 2
 * Start at   struct sim_case                                                                */
#ifndef AG_TESTS_SIMCUDA_CASE_H
#define AG_TESTS_SIMCUDA_CASE_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct sim_case {
    const char *name;
    void (*run)(void);
};
extern const struct sim_case case_basic[], case_limits[], case_ops[];

#define NEED(call) need((call), #call, __LINE__)
static inline void need(CUresult ret, const char *what, int line)
{
    if (ret) {
        printf("line %d: %s = %d\n", line, what, (int)ret);
        exit(2);
    }
}

#define ARGS(...) ((void *[]){__VA_ARGS__})

void case_open(int device); /* cuInit, primary context current */
CUfunction case_function(const unsigned char *image, const char *name);
CUdeviceptr case_buffer(size_t bytes); /* zeroed */
CUstream case_stream(void);            /* non-blocking */
CUresult case_launch(CUfunction f, CUstream s, unsigned grid, unsigned block, void **args);
int case_read(CUdeviceptr at); /* after the context's work */
unsigned *case_flag(void);     /* a mapped word, zero */

#endif
