/* capture/first.c - see first.h. */
#include "capture/first.h"
#include "capture/guard.h"
#include "capture/oplog.h"

void ag_first_watch(struct ag_first *first)
{
    ag_lock_take(&first->lock);
    first->watched = !atomic_load(&first->enqueued);
    atomic_fetch_add(&ag_open_logs, first->watched);
    ag_lock_give(&first->lock);
}

void ag_first_come(struct ag_first *first)
{
    if (ag_thread.busy) /* of the driver's own, inside a call of ours */
        return;
    ag_lock_take(&first->lock);
    if (first->watched)
        atomic_fetch_sub(&ag_open_logs, 1);
    first->watched = false;
    atomic_store(&first->enqueued, true);
    ag_lock_give(&first->lock);
}

bool ag_first_take(struct ag_first *first)
{
    if (ag_thread.busy || atomic_load_explicit(&first->enqueued, memory_order_relaxed))
        return false;
    ag_thread.busy++;
    ag_lock_take(&first->lock);
    if (!atomic_load(&first->enqueued))
        return true;
    ag_first_give(first);
    return false;
}

void ag_first_give(struct ag_first *first)
{
    ag_lock_give(&first->lock);
    ag_thread.busy--;
}

enum ag_first_kind ag_first_kind_of(enum ag_row row)
{
    switch ((int)row) {
    case AG_ROW_cuFuncLoad:
    case AG_ROW_cuLibraryGetModule:
    case AG_ROW_cuLibraryLoadData:
    case AG_ROW_cuLibraryLoadFromFile:
    case AG_ROW_cuModuleGetFunction:
        return AG_FIRST_LOADS;
    case AG_ROW_cuInit:
    case AG_ROW_cuCtxCreate:
    case AG_ROW_cuCtxCreate_v2:
    case AG_ROW_cuCtxCreate_v3:
    case AG_ROW_cuCtxCreate_v4:
    case AG_ROW_cuCtxEnablePeerAccess:
    case AG_ROW_cuCtxFromGreenCtx:
    case AG_ROW_cuDeviceGetDefaultMemPool:
    case AG_ROW_cuDeviceGetMemPool:
    case AG_ROW_cuDeviceSetMemPool:
    case AG_ROW_cuDevicePrimaryCtxSetFlags:
    case AG_ROW_cuDevicePrimaryCtxSetFlags_v2:
    case AG_ROW_cuDevResourceGenerateDesc:
    case AG_ROW_cuDevSmResourceSplitByCount:
    case AG_ROW_cuGreenCtxCreate:
    case AG_ROW_cuGreenCtxStreamCreate:
    case AG_ROW_cuStreamCreate:
    case AG_ROW_cuStreamCreateWithPriority:
    case AG_ROW_cuMemAllocHost:
    case AG_ROW_cuMemAllocHost_v2:
    case AG_ROW_cuMemAllocManaged:
    case AG_ROW_cuMemHostAlloc:
    case AG_ROW_cuMemHostRegister:
    case AG_ROW_cuMemHostRegister_v2:
    case AG_ROW_cuMemAddressReserve:
    case AG_ROW_cuMemCreate:
    case AG_ROW_cuMemMap:
    case AG_ROW_cuMemSetAccess:
    case AG_ROW_cuMemGetInfo:
    case AG_ROW_cuMemGetInfo_v2:
    case AG_ROW_cuMemPoolCreate:
    case AG_ROW_cuMemPoolGetAccess:
    case AG_ROW_cuMemPoolGetAttribute:
    case AG_ROW_cuMemPoolSetAccess:
    case AG_ROW_cuMemPoolSetAttribute:
    case AG_ROW_cuLibraryEnumerateKernels:
    case AG_ROW_cuLibraryGetGlobal:
    case AG_ROW_cuLibraryGetKernelCount:
    case AG_ROW_cuLibraryGetManaged:
    case AG_ROW_cuLibraryGetUnifiedFunction:
    case AG_ROW_cuModuleEnumerateFunctions:
    case AG_ROW_cuModuleGetFunctionCount:
    case AG_ROW_cuModuleGetGlobal:
    case AG_ROW_cuModuleGetGlobal_v2:
    case AG_ROW_cuLinkAddData:
    case AG_ROW_cuLinkAddData_v2:
    case AG_ROW_cuLinkAddFile:
    case AG_ROW_cuLinkAddFile_v2:
    case AG_ROW_cuLinkComplete:
    case AG_ROW_cuLinkCreate:
    case AG_ROW_cuLinkCreate_v2:
    case AG_ROW_cuLinkDestroy:
    case AG_ROW_cuLogsRegisterCallback:
    case AG_ROW_cuProfilerInitialize:
    case AG_ROW_cuProfilerStart:
    case AG_ROW_cuProfilerStop:
        return AG_FIRST_MAKES;
    default:
        return AG_FIRST_ENQUEUES;
    }
}
