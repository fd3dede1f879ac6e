/* shim/observe/file.h - a file that is either there and complete, or not there.
 * Called by  shim/observe/{log,stats,dump}.c      Calls  shim/observe/sys.h
 * Threads    any; a struct ag_file belongs to one thread
 * Promise    the final name is never seen half-written: bytes go to a new file (0600) in the same
 *            directory, which then takes the name. Nothing is written through a symbolic link, and
 *            nothing but a regular file is replaced. Whatever fails, no temporary file stays; only
 *            a kill in the middle leaves one (.autograph.PID.N.tmp). No allocation, no signal,
 *            errno untouched.
 * Start at   ag_file_create() */
#ifndef AG_SHIM_OBSERVE_FILE_H
#define AG_SHIM_OBSERVE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/observe/sink.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_FILE_NAME = 256 }; /* longest last part of a path, with its zero */

/* Who we are, in file names and statistics. */
struct ag_identity {
    char host[65];       /* never with a '/' */
    int32_t pid;         /* of the process that init ran in: a forked child writes no file */
    uint64_t start;      /* seconds since 1970 at init */
    uint64_t start_nsec; /* the part below a second */
};

void ag_identity_read(struct ag_identity *out);
/* False in a forked child of the process that read the identity. */
bool ag_identity_is_ours(const struct ag_identity *id);

/* Replaces %h, %p, %t and %% in `pattern`; any other % stands for itself. 0, or ENAMETOOLONG. */
int ag_file_expand(char *out, size_t size, const char *pattern, const struct ag_identity *id);

struct ag_file {
    struct ag_sink sink; /* write here; a failure is remembered until ag_file_commit() */
    int directory;
    char name[AG_FILE_NAME];
    char temporary[64];
};

/* 0, or the errno value that says why not (ELOOP: a symbolic link; EEXIST: there is something that
 * is no file). The directory of `path` must exist. After a failure there is nothing to undo. */
int ag_file_create(struct ag_file *f, const char *path);
/* Gives the file its name if every byte arrived, else removes it. 0 or an errno value; the file is
 * closed anyway. */
int ag_file_commit(struct ag_file *f);
/* Removes what was written. */
void ag_file_discard(struct ag_file *f);

/* A sentence for an errno value that needs no locale and no lock ("no space left on device"). */
const char *ag_file_reason(int error);

#ifdef __cplusplus
}
#endif
#endif
