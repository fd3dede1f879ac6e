/* tests/apps/mirror.c - see mirror.h.
 * Called by  chain.c, phases.c, tools/bench     Calls  nothing                         */
#include "tests/apps/mirror.h"

static void mix(unsigned *x, unsigned a, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        x[i] = x[i] * 1664525u + a;
}

static void flip(unsigned *x, unsigned a, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        x[i] ^= (a + i) * 2654435761u;
}

static void rot(unsigned *x, unsigned a, unsigned threads)
{
    unsigned r = a & 31u;
    for (unsigned i = 0; i < threads; i++)
        x[i] = ((x[i] << r) | (x[i] >> ((32u - r) & 31u))) + a;
}

void mirror_launch(enum mirror_kernel kernel, unsigned *x, unsigned a, unsigned threads)
{
    switch (kernel) {
    case MIRROR_MIX:
        mix(x, a, threads);
        return;
    case MIRROR_XOR:
        flip(x, a, threads);
        return;
    case MIRROR_ROT:
        rot(x, a, threads);
        return;
    case MIRROR_KERNELS:
        return;
    }
}

void mirror_pair(unsigned *x, const unsigned *y, unsigned shift, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        x[i] = x[i] * 22695477u + y[(i + shift) % n];
}

unsigned mirror_word(unsigned long i, unsigned k)
{
    unsigned long long v = (unsigned long long)i * 0x9e3779b97f4a7c15ull + k;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return (unsigned)(v >> 32);
}
