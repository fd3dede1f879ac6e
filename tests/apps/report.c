/* tests/apps/report.c - see report.h.
 * Called by  the examples                 Calls  libc                                */
#include "tests/apps/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t report_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 1099511628211ull;
    return hash;
}

long report_number(const char *option, const char *text, long low, long high)
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

double report_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void report_result(const char *name, uint64_t checksum, unsigned long launches, double seconds)
{
    printf("%s: checksum %016" PRIx64 ", %lu launches\n", name, checksum, launches);
    fflush(stdout);
    fprintf(stderr, "%s: %.6f seconds\n", name, seconds);
}
