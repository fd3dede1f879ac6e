/* tests/resolver/fake_cudart.h - a CUDA runtime that only does what one does to get hold of its
 * driver.
 * Called by  case_lookup.c (by dlopen, or linked)      Calls  dlopen, dlsym, cuGetProcAddress_v2
 * Threads    one
 * Start at   fakecudart_start() */
#ifndef AG_TESTS_RESOLVER_FAKE_CUDART_H
#define AG_TESTS_RESOLVER_FAKE_CUDART_H

enum { FAKECUDART_ASKS = 440 };

struct fakecudart {
    int by_name; /* 1: no cuGetProcAddress_v2, everything was asked for through dlsym */
    const char *name[FAKECUDART_ASKS];
    int version[FAKECUDART_ASKS];
    int flags[FAKECUDART_ASKS];
    int status[FAKECUDART_ASKS]; /* what the look-up returned */
    void *address[FAKECUDART_ASKS];
};

/* Opens the driver and asks for everything. 0, or 1 when there is no driver. */
int fakecudart_start(struct fakecudart *out);

#endif
