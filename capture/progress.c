/* capture/progress.c - see progress.h. */
#define _GNU_SOURCE
#include "capture/progress.h"
#include "shim/observe/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock)
{
    const int saved = errno;
    struct timespec t = {0, 0};
    clock_gettime(clock, &t);
    errno = saved;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The processor time of a thread has a clock with a number made of the thread's (clock_getcpuclockid(3) makes
 * that of a process alike). 0: not told. */
static uint64_t cpu_ns(int thread)
{
    return read_clock((clockid_t)(~(unsigned)thread << 3 | 6u));
}

/* 'R' runs or waits for a processor, others sleep; '?' is not told. proc_pid_stat(5): the letter follows the
 * name in parentheses, which may hold any others. */
static char state(int thread)
{
    char path[48], text[128];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const int fd = ag_sys_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return '?';
    const ssize_t n = ag_sys_read(fd, text, sizeof text - 1);
    ag_sys_close(fd);
    text[n < 0 ? 0 : n] = 0;
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] ? name_ends[2] : '?';
}

int ag_progress_self(void)
{
    return (int)syscall(SYS_gettid);
}

uint64_t ag_progress_since(struct ag_progress *p, int thread, uint64_t most_ns)
{
    const struct ag_progress now = {thread, read_clock(CLOCK_MONOTONIC), cpu_ns(thread)};
    uint64_t had = p->thread == thread ? now.wall_ns - p->wall_ns : 0;
    if (had && now.cpu_ns && state(thread) == 'R')
        had = now.cpu_ns - p->cpu_ns;
    *p = now;
    return had < most_ns ? had : most_ns;
}
