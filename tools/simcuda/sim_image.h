/* tools/simcuda/sim_image.h - what a module image made by nvcc contains.
 * Called by  sim_module.c               Calls  sim_image.c
 * Threads    any
 * Promise    only names and sizes are read; a damaged image is refused, not trusted
 * Start at   sim_image_read()                                                               */
#ifndef SIMCUDA_SIM_IMAGE_H
#define SIMCUDA_SIM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_IMAGE_NAMES = 64, SIM_IMAGE_NAME = 96 };

struct sim_image_kernel {
    char name[SIM_IMAGE_NAME];
    uint32_t static_shared;
};

struct sim_image {
    struct sim_image_kernel kernels[SIM_IMAGE_NAMES];
    size_t nkernels;
    char globals[SIM_IMAGE_NAMES][SIM_IMAGE_NAME];
    size_t nglobals;
};

/* A fat binary, a cubin or PTX text. 0, or a CUresult. */
int sim_image_read(const void *bytes, struct sim_image *out);

#endif
