/* shim/observe/sys.c - see sys.h. */
#define _GNU_SOURCE
#include "shim/observe/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* syscall() and not the named functions: most of those are cancellation points. */
static long call(long number, long a, long b, long c, long d)
{
    int saved = errno;
    long ret = syscall(number, a, b, c, d);
    if (ret < 0) {
        ret = -errno;
    }
    errno = saved;
    return ret;
}

/* The kernel's own signal set: 64 bits, signal n is bit n - 1. */
static uint64_t bit_of(int signal_number)
{
    return 1ull << (signal_number - 1);
}

static void take_pending(int signal_number)
{
    static const struct timespec now;
    uint64_t set = bit_of(signal_number);
    call(SYS_rt_sigtimedwait, (long)&set, 0, (long)&now, sizeof set);
}

int ag_sys_open(int directory, const char *path, int flags, mode_t mode)
{
    long fd = call(SYS_openat, directory, (long)path, flags | O_CLOEXEC, (long)mode);
    if (fd < 0 || fd > STDERR_FILENO) {
        return (int)fd;
    }
    int high = ag_sys_raise((int)fd, STDERR_FILENO + 1);
    ag_sys_close((int)fd);
    return high;
}

int ag_sys_close(int fd)
{
    return (int)call(SYS_close, fd, 0, 0, 0);
}

ssize_t ag_sys_write(int fd, const void *bytes, size_t size)
{
    uint64_t quiet = bit_of(SIGPIPE) | bit_of(SIGXFSZ) | bit_of(SIGTTOU);
    uint64_t before = 0, pending = 0;
    call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&quiet, (long)&before, sizeof quiet);
    call(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0);

    long ret;
    do {
        ret = call(SYS_write, fd, (long)bytes, (long)size, 0);
    } while (ret == -EINTR);

    if (ret == -EPIPE && !(pending & bit_of(SIGPIPE))) {
        take_pending(SIGPIPE);
    }
    if (ret == -EFBIG && !(pending & bit_of(SIGXFSZ))) {
        take_pending(SIGXFSZ);
    }
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
    return ret;
}

ssize_t ag_sys_read(int fd, void *bytes, size_t size)
{
    long ret;
    do {
        ret = call(SYS_read, fd, (long)bytes, (long)size, 0);
    } while (ret == -EINTR);
    return ret;
}

int ag_sys_rename(int directory, const char *from, const char *to)
{
    return (int)call(SYS_renameat, directory, (long)from, directory, (long)to);
}

int ag_sys_unlink(int directory, const char *name)
{
    return (int)call(SYS_unlinkat, directory, (long)name, 0, 0);
}

static void describe(const struct stat *st, struct ag_sys_file *out)
{
    out->device = st->st_dev;
    out->inode = st->st_ino;
    out->regular = S_ISREG(st->st_mode);
    out->character = S_ISCHR(st->st_mode);
    out->link = S_ISLNK(st->st_mode);
}

/* On 64-bit machines glibc's struct stat is the kernel's. */
int ag_sys_look(int directory, const char *name, struct ag_sys_file *out)
{
    struct stat st;
    long ret = call(SYS_newfstatat, directory, (long)name, (long)&st, AT_SYMLINK_NOFOLLOW);
    if (ret == 0) {
        describe(&st, out);
    }
    return (int)ret;
}

int ag_sys_look_fd(int fd, struct ag_sys_file *out)
{
    struct stat st;
    long ret = call(SYS_fstat, fd, (long)&st, 0, 0);
    if (ret == 0) {
        describe(&st, out);
    }
    return (int)ret;
}

int ag_sys_raise(int fd, int least)
{
    return (int)call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least, 0);
}

void ag_sys_sleep_us(unsigned us)
{
    struct timespec span = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    call(SYS_nanosleep, (long)&span, 0, 0, 0);
}

int32_t ag_sys_pid(void)
{
    return (int32_t)call(SYS_getpid, 0, 0, 0, 0);
}
