// The shim's own kernel, in the place of memset nodes: those take the near-constant launch from a graph.
#include "kernels/device.h"

// Writes what a memset writes: `height` rows, `pitch` bytes apart, of `columns` elements of `element` (1, 2 or 4)
// bytes, each the lowest bytes of `value`. Fewer than 2^31 bytes in all; any alignment, any grid. A thread writes 16
// aligned bytes at a time.
extern "C" __global__ void ag_fill(unsigned char *to, unsigned long long pitch,
                                   unsigned long long columns, unsigned long long height,
                                   unsigned value, unsigned element)
{
    const unsigned width = (unsigned)columns * element;
    // Of 16 bytes each; as many as a row can touch, wherever it starts.
    const unsigned pieces = (width + 30) / 16, all = pieces * (unsigned)height;
    const unsigned pattern = element == 1   ? (value & 0xff) * 0x01010101u
                             : element == 2 ? (value & 0xffff) * 0x00010001u
                                            : value;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const unsigned y = i / pieces;
        const unsigned long long start = (unsigned long long)to + y * pitch, end = start + width;
        const unsigned long long at = start / 16 * 16 + (i - y * pieces) * 16;
        const unsigned phase = (unsigned)(at - start) % 4 * 8;
        const unsigned word = phase ? pattern >> phase | pattern << (32 - phase) : pattern;
        if (at >= start && at + 16 <= end) {
            *(uint4 *)at = make_uint4(word, word, word, word);
            continue;
        }
        AG_NO_UNROLL
        for (unsigned b = 0; b < 16; b++)
            if (at + b >= start && at + b < end)
                *(unsigned char *)(at + b) = (unsigned char)(word >> b % 4 * 8);
    }
}
