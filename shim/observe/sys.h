/* shim/observe/sys.h - system calls inside somebody else's process.
 * Called by  shim/observe/{sink,file,log,stats}.c      Calls  the kernel
 * Threads    any
 * Promise    no cancellation point: a thread that is cancelled does not end in the middle of the
 *            shim, holding a lock. No SIGPIPE, SIGXFSZ or SIGTTOU reaches the program because of
 *            our write, and one that was pending before stays pending. Results are 0 or more, or a
 *            negative errno value; errno is untouched. Straight to the kernel: glibc gave stat()
 *            and friends a symbol version newer than we may ask for.
 * Start at   ag_sys_write() */
#ifndef AG_SHIM_OBSERVE_SYS_H
#define AG_SHIM_OBSERVE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ag_sys_file {
    uint64_t device, inode;
    bool regular, character, link;
};

/* Close-on-exec, and never 0, 1 or 2: what the program prints after it closed one must not land in
 * our file. */
int ag_sys_open(int directory, const char *path, int flags, mode_t mode);
int ag_sys_close(int fd);
/* One write; an interrupted one is tried again. */
ssize_t ag_sys_write(int fd, const void *bytes, size_t size);
ssize_t ag_sys_read(int fd, void *bytes, size_t size);
int ag_sys_rename(int directory, const char *from, const char *to);
int ag_sys_unlink(int directory, const char *name);
/* Of the name itself: a link is not followed. */
int ag_sys_look(int directory, const char *name, struct ag_sys_file *out);
int ag_sys_look_fd(int fd, struct ag_sys_file *out);
/* The same open file under a number of at least `least`, close-on-exec. */
int ag_sys_raise(int fd, int least);
void ag_sys_sleep_us(unsigned us);
int32_t ag_sys_pid(void);

#ifdef __cplusplus
}
#endif
#endif
