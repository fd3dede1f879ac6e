/* shim/hooks_enqueue.c - launches. Called by the exports; calls capture/submit.c. */
#include "shim/hooks.h"

#define LAUNCH(symbol)                                                                             \
    CUresult ag_hook_##symbol(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
                              unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,    \
                              void **params, void **extra)                                         \
    {                                                                                              \
        const struct ag_launch l = {                                                               \
            AG_ROW_##symbol, f,   {{gx, gy, gz}, {bx, by, bz}, shared_bytes}, stream, params,      \
            extra,           NULL};                                                                \
        return ag_submit_launch(AG_CAP, &l);                                                       \
    }

#define LAUNCH_EX(symbol)                                                                          \
    CUresult ag_hook_##symbol(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)  \
    {                                                                                              \
        if (!c)                                                                                    \
            return AG_DRIVER(symbol)(c, f, params, extra);                                         \
        const struct ag_launch l = {AG_ROW_##symbol,                                               \
                                    f,                                                             \
                                    {{c->gridDimX, c->gridDimY, c->gridDimZ},                      \
                                     {c->blockDimX, c->blockDimY, c->blockDimZ},                   \
                                     c->sharedMemBytes},                                           \
                                    c->hStream,                                                    \
                                    params,                                                        \
                                    extra,                                                         \
                                    c};                                                            \
        return ag_submit_launch(AG_CAP, &l);                                                       \
    }

LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)
