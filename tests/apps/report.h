/* tests/apps/report.h - what an example prints, and the numbers it takes.
 * Called by  the examples                 Calls  libc
 * Promise    standard output holds the result only, so that two runs can be compared; time goes
 *            to standard error
 * Start at   report_result()                                                    */
#ifndef TESTS_APPS_REPORT_H
#define TESTS_APPS_REPORT_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a over the bytes, going on from hash; begin with REPORT_HASH. */
#define REPORT_HASH 14695981039346656037ull
uint64_t report_hash(uint64_t hash, const void *bytes, size_t n);

/* The number in text, from low to high; otherwise a line on standard error and exit 2. */
long report_number(const char *option, const char *text, long low, long high);

/* Wall clock in seconds, for differences. */
double report_clock(void);

/* "NAME: checksum HEX, N launches" on standard output, "NAME: S seconds" on standard error. */
void report_result(const char *name, uint64_t checksum, unsigned long launches, double seconds);

#endif
