/* shim/observe/file.c - see file.h. */
#define _GNU_SOURCE
#include "shim/observe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "shim/observe/options.h"
#include "shim/observe/sys.h"

/* Another process may have left files of its own under our process id: so many are stepped over. */
enum { NAME_TRIES = 64 };

void ag_identity_read(struct ag_identity *out)
{
    struct utsname machine;
    struct timespec now = {0, 0};
    int saved = errno;
    memset(out, 0, sizeof *out);
    if (uname(&machine) != 0 || machine.nodename[0] == '\0') {
        strcpy(machine.nodename, "unknown");
    }
    clock_gettime(CLOCK_REALTIME, &now);
    errno = saved;
    snprintf(out->host, sizeof out->host, "%.64s", machine.nodename);
    for (char *c = out->host; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '_';
        }
    }
    out->pid = ag_sys_pid();
    out->start = (uint64_t)now.tv_sec;
    out->start_nsec = (uint64_t)now.tv_nsec;
}

bool ag_identity_is_ours(const struct ag_identity *id)
{
    return ag_sys_pid() == id->pid;
}

/* What one % and the letter behind it stand for; NULL if they stand for themselves. */
static const char *replacement(char letter, const struct ag_identity *id, char *text, size_t size)
{
    switch (letter) {
    case 'h':
        return id->host;
    case 'p':
        snprintf(text, size, "%d", (int)id->pid);
        return text;
    case 't':
        snprintf(text, size, "%llu", (unsigned long long)id->start);
        return text;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

int ag_file_expand(char *out, size_t size, const char *pattern, const struct ag_identity *id)
{
    size_t used = 0;
    for (const char *c = pattern; *c != '\0'; c++) {
        char number[24];
        char self[2] = {*c, '\0'};
        const char *put = *c == '%' ? replacement(c[1], id, number, sizeof number) : NULL;
        if (put != NULL) {
            c++;
        } else {
            put = self;
        }
        size_t n = strlen(put);
        if (n >= size - used) {
            return ENAMETOOLONG;
        }
        memcpy(out + used, put, n);
        used += n;
    }
    out[used] = '\0';
    return 0;
}

/* Splits `path`; opens its directory. Later the program may change its own, or be given another
 * root. */
static int enter(struct ag_file *f, const char *path)
{
    char directory[AG_OPTION_PATH];
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t size = (size_t)(name - path);
    if (name[0] == '\0') {
        return EISDIR;
    }
    if (strlen(name) >= sizeof f->name || size >= sizeof directory) {
        return ENAMETOOLONG;
    }
    strcpy(f->name, name);
    memcpy(directory, path, size);
    directory[size] = '\0';
    f->directory = ag_sys_open(AT_FDCWD, size == 0 ? "." : directory, O_PATH | O_DIRECTORY, 0);
    return f->directory < 0 ? -f->directory : 0;
}

/* Renaming would quietly replace a link or a device; neither is what the user can have meant. */
static int check_target(const struct ag_file *f)
{
    struct ag_sys_file there;
    int ret = ag_sys_look(f->directory, f->name, &there);
    if (ret == -ENOENT || (ret == 0 && there.regular)) {
        return 0;
    }
    if (ret != 0) {
        return -ret;
    }
    return there.link ? ELOOP : EEXIST;
}

static int open_temporary(struct ag_file *f)
{
    static atomic_uint serial;
    int fd = -EEXIST;
    for (int i = 0; i < NAME_TRIES && fd == -EEXIST; i++) {
        snprintf(f->temporary, sizeof f->temporary, ".autograph.%d.%u.tmp", (int)ag_sys_pid(),
                 atomic_fetch_add(&serial, 1));
        fd =
            ag_sys_open(f->directory, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    }
    return fd;
}

int ag_file_create(struct ag_file *f, const char *path)
{
    int error = enter(f, path);
    if (error != 0) {
        return error;
    }
    error = check_target(f);
    int fd = error == 0 ? open_temporary(f) : -error;
    if (fd < 0) {
        ag_sys_close(f->directory);
        return -fd;
    }
    ag_sink_open(&f->sink, fd);
    return 0;
}

int ag_file_commit(struct ag_file *f)
{
    int error = ag_sink_flush(&f->sink);
    /* Over a network, closing is where a full disk shows. */
    int ret = ag_sys_close(f->sink.fd);
    if (error == 0) {
        error = -ret;
    }
    if (error == 0) {
        error = -ag_sys_rename(f->directory, f->temporary, f->name);
    }
    if (error != 0) {
        ag_sys_unlink(f->directory, f->temporary);
    }
    ag_sys_close(f->directory);
    return error;
}

void ag_file_discard(struct ag_file *f)
{
    ag_sys_close(f->sink.fd);
    ag_sys_unlink(f->directory, f->temporary);
    ag_sys_close(f->directory);
}

const char *ag_file_reason(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "permission denied";
    case EDQUOT:
        return "disk quota reached";
    case EEXIST:
        return "there is something of that name that is not a regular file";
    case EFBIG:
        return "file size limit reached";
    case EISDIR:
        return "the name is a directory";
    case ELOOP:
        return "the name is a symbolic link";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENAMETOOLONG:
        return "name too long";
    case ENOENT:
        return "no such directory";
    case ENOSPC:
        return "no space left on device";
    case ENOTDIR:
        return "part of the path is not a directory";
    case EROFS:
        return "read-only file system";
    default:
        return "system error";
    }
}
