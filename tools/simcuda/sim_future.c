/* tools/simcuda/sim_future.c - entry points of a driver that is newer than everybody: no header declares them.
 * Called by  programs that found them with dlsym      Calls  entry points of today that do the same
 * Threads    any; sim_lock is taken by what is called
 * Promise    exported, and in no list of names: exports.txt is what driver 580.159 has
 * Start at   cuFutureStreamJoin                                                             */
#include "tools/simcuda/sim_call.h"

#undef cuStreamWriteValue32
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult cuFutureStreamJoin(CUstream stream);
CUresult cuFutureStreamWrite(CUstream stream, CUdeviceptr where, cuuint32_t value);

/* Lets the program see whether work has run. */
CUresult cuFutureStreamJoin(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

/* Work that stands between the launches around it. */
CUresult cuFutureStreamWrite(CUstream stream, CUdeviceptr where, cuuint32_t value)
{
    return cuStreamWriteValue32_v2(stream, where, value, 0);
}
