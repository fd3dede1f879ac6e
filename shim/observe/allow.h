/* shim/observe/allow.h - lists of names that are held, or are not.
 * Called by  shim/runtime.c, capture/func.c      Calls  libc (fnmatch)
 * Threads    any
 * Promise    a list is patterns with commas between them, as of a shell (* ? [..]), spaces around them are not part of
 *            them; one with ! before it says no. The first that fits a name decides. Where none fits, a list
 *            of nothing but ! says yes, any other no; an empty one always says yes
 * Start at   ag_allowed() */
#ifndef AG_SHIM_OBSERVE_ALLOW_H
#define AG_SHIM_OBSERVE_ALLOW_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_PATTERN = 256 }; /* longest pattern that can fit, with its zero */

/* Something that has all of these names; NULL ones do not count. */
bool ag_allowed(const char *list, const char *const *names, size_t count);
/* The names of this program: of its file, of how it was started, and of its first argument, which is the script where
 * the program is an interpreter; without folders. */
bool ag_program_allowed(const char *list);

#ifdef __cplusplus
}
#endif
#endif
