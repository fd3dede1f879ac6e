/* tests/apps/mirror.h - what kernels/varying.cu computes, computed by the host.
 * Called by  chain.c, phases.c, tools/bench     Calls  nothing
 * Promise    exact: an array that went through the same launches in the same order is equal
 * Start at   mirror_launch()                                                    */
#ifndef TESTS_APPS_MIRROR_H
#define TESTS_APPS_MIRROR_H

enum mirror_kernel { MIRROR_MIX, MIRROR_XOR, MIRROR_ROT, MIRROR_KERNELS };

/* One launch of the kernel over threads elements of x. */
void mirror_launch(enum mirror_kernel kernel, unsigned *x, unsigned a, unsigned threads);

/* One launch of vary_pair over n elements. */
void mirror_pair(unsigned *x, const unsigned *y, unsigned shift, unsigned n);

/* A well mixed word for the pair, the same on every machine. */
unsigned mirror_word(unsigned long i, unsigned k);

#endif
