/* shim/hooks.h - helpers of the hook bodies in shim/hooks_*.c.
 * A body is named ag_hook_<exported symbol> and found by its row's class in hooks.def. It packs,
 * calls capture/, calls the driver at most once, returns. It holds no lock and decides nothing. */
#ifndef AG_SHIM_HOOKS_H
#define AG_SHIM_HOOKS_H

#include "shim/runtime.h"

#define AG_CAP (ag_runtime_capture())
/* First of all, where a call that is not an op enqueues work. */
#define AG_ENQUEUES() ag_first_note(&AG_CAP->first)
#define AG_DRIVER(symbol) ag_real(AG_CAP->drv, symbol)

#endif
