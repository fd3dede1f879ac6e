/* shim/observe/allow.c - see allow.h. */
#define _GNU_SOURCE
#include "shim/observe/allow.h"
#include "shim/observe/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

/* The next pattern of the list, without the spaces around it. False: there is none. */
static bool next(const char **list, char pattern[AG_PATTERN])
{
    *list += strspn(*list, ", ");
    size_t n = strcspn(*list, ",");
    const char *from = *list;
    *list += n;
    while (n && from[n - 1] == ' ')
        n--;
    if (!n)
        return false;
    if (n >= AG_PATTERN) { /* no name is so long */
        pattern[0] = '\0';
        return true;
    }
    memcpy(pattern, from, n);
    pattern[n] = '\0';
    return true;
}

static bool fits(const char *pattern, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (names[i] && fnmatch(pattern, names[i], 0) == 0)
            return true;
    return false;
}

bool ag_allowed(const char *list, const char *const *names, size_t count)
{
    char pattern[AG_PATTERN];
    bool only_no = true;
    while (next(&list, pattern)) {
        const bool no = pattern[0] == '!';
        if (fits(pattern + no, names, count))
            return !no;
        only_no &= no;
    }
    return only_no;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool ag_program_allowed(const char *list)
{
    char file[4096] = "", command[4096] = "";
    const char *names[3] = {NULL, NULL, NULL};
    const int saved = errno;
    if (!list[0])
        return true;
    const ssize_t n = readlink("/proc/self/exe", file, sizeof file - 1);
    errno = saved;
    if (n > 0)
        names[0] = last_part(file);
    const int fd = ag_sys_open(AT_FDCWD, "/proc/self/cmdline", O_RDONLY, 0);
    const ssize_t size = fd >= 0 ? ag_sys_read(fd, command, sizeof command - 1) : 0;
    if (fd >= 0)
        ag_sys_close(fd);
    if (size > 0)
        names[1] = last_part(command);
    if (size > 0 && strlen(command) + 1 < (size_t)size)
        names[2] = last_part(command + strlen(command) + 1);
    return ag_allowed(list, names, 3);
}
