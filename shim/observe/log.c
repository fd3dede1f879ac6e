/* shim/observe/log.c - see log.h. */
#define _GNU_SOURCE
#include "shim/observe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/observe/sys.h"

/* Out of the way of programs that expect small numbers or close a range of them. */
enum { QUIET_FD = 200 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* The one log of the process. */
static struct {
    _Atomic int fd; /* -1: nothing is logged */
    _Atomic uint32_t level;
    _Atomic uint64_t device, inode; /* of the log file; what `fd` must still be. 0, 0 for stderr */
    atomic_flag reopening;          /* held by the thread that replaces fd */
    char path[AG_OPTION_PATH];      /* written once in init */
    char trouble[192];              /* written once in init */
} the_log = {.fd = -1, .reopening = ATOMIC_FLAG_INIT};

/* A FIFO without a reader would block here, so O_NONBLOCK; files and terminals do not care. */
static int open_path(void)
{
    struct ag_sys_file file;
    int fd = ag_sys_open(AT_FDCWD, the_log.path,
                         O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) {
        return fd;
    }
    int ret = ag_sys_look_fd(fd, &file);
    if (ret == 0 && !file.regular && !file.character) {
        ret = -EEXIST;
    }
    if (ret != 0) {
        ag_sys_close(fd);
        return ret;
    }
    int high = ag_sys_raise(fd, QUIET_FD);
    if (high >= 0) {
        ag_sys_close(fd);
        fd = high;
    }
    atomic_store(&the_log.device, file.device);
    atomic_store(&the_log.inode, file.inode);
    return fd;
}

static bool still_ours(int fd)
{
    struct ag_sys_file file;
    if (fd == STDERR_FILENO) {
        return true;
    }
    return ag_sys_look_fd(fd, &file) == 0 && file.device == atomic_load(&the_log.device) &&
           file.inode == atomic_load(&the_log.inode);
}

/* Daemons close every descriptor, and the number is then another file's. The old number is not
 * closed here: it is not ours any more. -1 while another thread is at it, or for good if the file
 * cannot be opened again. */
static int reopen(void)
{
    if (atomic_flag_test_and_set(&the_log.reopening)) {
        return -1;
    }
    int fd = open_path();
    atomic_store(&the_log.fd, fd < 0 ? -1 : fd);
    atomic_flag_clear(&the_log.reopening);
    return fd < 0 ? -1 : fd;
}

static void write_line(const char *line, size_t size)
{
    int fd = atomic_load(&the_log.fd);
    if (fd >= 0 && !still_ours(fd)) {
        fd = reopen();
    }
    if (fd >= 0) {
        ag_sys_write(fd, line, size);
    }
}

/* Values come from the environment and from the program's kernels: one must not be able to forge a
 * line. */
static void keep_one_line(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f) {
            *text = '?';
        }
    }
}

bool ag_log_wants(enum ag_level level)
{
    return atomic_load_explicit(&the_log.fd, memory_order_relaxed) >= 0 &&
           (uint32_t)level <= atomic_load_explicit(&the_log.level, memory_order_relaxed);
}

void ag_log(enum ag_level level, const char *fmt, ...)
{
    char line[AG_LOG_LINE];
    if (!ag_log_wants(level)) {
        return;
    }
    int saved = errno;
    size_t used = (size_t)snprintf(line, sizeof line, "autograph: %s: ", level_names[level]);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + used, sizeof line - used - 1, fmt, args);
    va_end(args);
    if (n < 0) {
        strcpy(line + used, "(a message that could not be formatted)");
    } else if ((size_t)n >= sizeof line - used - 1) {
        strcpy(line + sizeof line - 5, "...");
    }
    keep_one_line(line + used);
    used += strlen(line + used);
    line[used++] = '\n';
    write_line(line, used);
    errno = saved;
}

static void tell_problems(const struct ag_options *o)
{
    uint32_t kept = o->problem_count;
    if (kept > AG_OPTION_PROBLEMS) {
        kept = AG_OPTION_PROBLEMS;
    }
    for (uint32_t i = 0; i < kept; i++) {
        ag_log(AG_LEVEL_WARN, "%s", o->problems[i]);
    }
    if (o->problem_count > kept) {
        ag_log(AG_LEVEL_WARN, "%u more problems with options", o->problem_count - kept);
    }
}

bool ag_log_open(const struct ag_options *o, const struct ag_identity *id)
{
    the_log.trouble[0] = '\0';
    atomic_store(&the_log.level, o->log_level);
    if (o->log[0] == '\0') {
#ifdef AG_MUTANT_PRINTS /* messages go to stderr though nobody asked for them */
        atomic_store(&the_log.fd, STDERR_FILENO);
        tell_problems(o);
#endif
        return true;
    }
    int fd = STDERR_FILENO;
    if (strcmp(o->log, "stderr") != 0) {
        int error = ag_file_expand(the_log.path, sizeof the_log.path, o->log, id);
        fd = error == 0 ? open_path() : -error;
    }
    if (fd < 0) {
        snprintf(the_log.trouble, sizeof the_log.trouble, "AUTOGRAPH_LOG: %.100s: %s (errno %d)",
                 o->log, ag_file_reason(-fd), -fd);
        return false;
    }
    atomic_store(&the_log.fd, fd);
    tell_problems(o);
    return true;
}

void ag_log_close(void)
{
    int fd = atomic_exchange(&the_log.fd, -1);
    if (fd > STDERR_FILENO && still_ours(fd)) {
        ag_sys_close(fd);
    }
}

const char *ag_log_trouble(void)
{
    return the_log.trouble[0] == '\0' ? NULL : the_log.trouble;
}
