/* tests/apps/device_layer.h - the few device operations an example needs: one source for both APIs.
 * Called by  the examples                 Calls  device_driver.c (-lcuda) or device_runtime.c
 * Threads    one
 * Promise    each function is one plain API call; a failure prints the API's text and exits with 1
 * Start at   DEVICE_KERNEL()                                                    */
#ifndef TESTS_APPS_DEVICE_LAYER_H
#define TESTS_APPS_DEVICE_LAYER_H

#include <stddef.h>
#include <stdint.h>

#ifdef APP_RUNTIME
/* nvcc gives the host stub of an extern "C" kernel the kernel's own name. */
#define DEVICE_DECLARE(kernel) extern void kernel(void)
#define DEVICE_KERNEL(kernel) ((const void *)(kernel))
#define DEVICE_IMAGE(file) NULL
#else
#include "kernels/images.h"
#define DEVICE_DECLARE(kernel) struct device_uses_##kernel
#define DEVICE_KERNEL(kernel) device_find(#kernel)
#define DEVICE_IMAGE(file) ag_image_##file
#endif

enum device_stream { DEVICE_STREAM_OWN, DEVICE_STREAM_LEGACY };

/* image is the program's fatbin; the runtime build ignores it. */
void device_open(const void *image, enum device_stream stream);
void device_close(void);

/* The kernel of that name in the image. Only the driver build has it. */
const void *device_find(const char *name);

void *device_alloc(size_t bytes);
void device_free(void *p);
void device_put(void *dst, const void *src, size_t bytes); /* returns when done */
void device_get(void *dst, const void *src, size_t bytes); /* after all launches so far */
void device_launch(const void *kernel, unsigned grid, unsigned block, void **args);
void device_sync(void);

unsigned long device_launches(void); /* calls of device_launch() so far */

#endif
