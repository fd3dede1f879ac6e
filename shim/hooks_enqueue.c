/* shim/hooks_enqueue.c - launches, copies, memsets, records. Called by the exports; calls
 * capture/{submit,transfer,event}.c. */
#include "shim/hooks.h"
#include "capture/event.h"
#include "capture/transfer.h"

#define LAUNCH(symbol)                                                                             \
    CUresult ag_hook_##symbol(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
                              unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,    \
                              void **params, void **extra)                                         \
    {                                                                                              \
        const struct ag_launch l = {                                                               \
            .row = AG_ROW_##symbol,                                                                \
            .handle = f,                                                                           \
            .config = {{gx, gy, gz}, {bx, by, bz}, shared_bytes},                                  \
            .stream = stream,                                                                      \
            .params = params,                                                                      \
            .extra = extra,                                                                        \
        };                                                                                         \
        return ag_submit_launch(AG_CAP, &l);                                                       \
    }

#define LAUNCH_EX(symbol)                                                                          \
    CUresult ag_hook_##symbol(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)  \
    {                                                                                              \
        if (!c)                                                                                    \
            return AG_DRIVER(symbol)(c, f, params, extra);                                         \
        const struct ag_launch l = {                                                               \
            .row = AG_ROW_##symbol,                                                                \
            .handle = f,                                                                           \
            .config = {{c->gridDimX, c->gridDimY, c->gridDimZ},                                    \
                       {c->blockDimX, c->blockDimY, c->blockDimZ},                                 \
                       c->sharedMemBytes},                                                         \
            .stream = c->hStream,                                                                  \
            .params = params,                                                                      \
            .extra = extra,                                                                        \
            .full = c,                                                                             \
        };                                                                                         \
        return ag_submit_launch(AG_CAP, &l);                                                       \
    }

LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

#define COPY(symbol)                                                                               \
    CUresult ag_hook_##symbol(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)         \
    {                                                                                              \
        return ag_submit_copy(AG_CAP, AG_ROW_##symbol, to, from, n, stream);                       \
    }

COPY(cuMemcpyDtoDAsync_v2)
COPY(cuMemcpyDtoDAsync_v2_ptsz)
COPY(cuMemcpyAsync)
COPY(cuMemcpyAsync_ptsz)

#define LINE(symbol, type)                                                                         \
    CUresult ag_hook_##symbol(CUdeviceptr to, type value, size_t n, CUstream stream)               \
    {                                                                                              \
        const struct ag_fill f = {to, 0, n, 1, value, sizeof value};                               \
        return ag_submit_fill(AG_CAP, AG_ROW_##symbol, &f, stream);                                \
    }
#define RECTANGLE(symbol, type)                                                                    \
    CUresult ag_hook_##symbol(CUdeviceptr to, size_t pitch, type value, size_t columns,            \
                              size_t height, CUstream stream)                                      \
    {                                                                                              \
        const struct ag_fill f = {to, pitch, columns, height, value, sizeof value};                \
        return ag_submit_fill(AG_CAP, AG_ROW_##symbol, &f, stream);                                \
    }
AG_FILLS(LINE, RECTANGLE)

#define RECORD(symbol)                                                                             \
    CUresult ag_hook_##symbol(CUevent event, CUstream stream)                                      \
    {                                                                                              \
        return ag_submit_record(AG_CAP, AG_ROW_##symbol, event, stream, 0);                        \
    }
RECORD(cuEventRecord)
RECORD(cuEventRecord_ptsz)

#define RECORD_WITH_FLAGS(symbol)                                                                  \
    CUresult ag_hook_##symbol(CUevent event, CUstream stream, unsigned flags)                      \
    {                                                                                              \
        return ag_submit_record(AG_CAP, AG_ROW_##symbol, event, stream, flags);                    \
    }
RECORD_WITH_FLAGS(cuEventRecordWithFlags)
RECORD_WITH_FLAGS(cuEventRecordWithFlags_ptsz)

#define WAIT(symbol)                                                                               \
    CUresult ag_hook_##symbol(CUstream stream, CUevent event, unsigned flags)                      \
    {                                                                                              \
        return ag_submit_wait(AG_CAP, AG_ROW_##symbol, stream, event, flags);                      \
    }
WAIT(cuStreamWaitEvent)
WAIT(cuStreamWaitEvent_ptsz)
