/* tools/simcuda/sim_log.c - the log file.
 * Called by  see sim_log.h              Calls  write()
 * Threads    caller holds sim_lock
 * Promise    one write() a line: complete after exit, _exit and crash, but for the last one where
 *            another thread ends the process inside that write()
 * Start at   sim_log_line()                                                                 */
#define _GNU_SOURCE
#include "tools/simcuda/sim_log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/simcuda/sim_call.h"

static int fd = -2; /* -2: not opened yet, -1: no log */
static uint64_t sequence;

bool sim_log_wanted(void)
{
    if (fd == -2) {
        const char *path = getenv("SIMCUDA_LOG");
        fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)
                           : -1;
    }
    return fd >= 0;
}

void sim_log_forget(void)
{
    /* The parent's log stays the parent's; a child that uses the driver itself writes none. */
    fd = sim.inited || fd >= 0 ? -1 : fd;
}

uint64_t sim_log_next(void)
{
    return ++sequence;
}

static void reserve(struct sim_text *t, size_t more)
{
    if (t->length + more <= t->room)
        return;
    t->room = (t->length + more) * 2;
    t->bytes = realloc(t->bytes, t->room);
    if (!t->bytes)
        abort();
}

void sim_text_add(struct sim_text *t, const char *format, ...)
{
    va_list ap;
    reserve(t, 256);
    va_start(ap, format);
    int n = vsnprintf(t->bytes + t->length, 256, format, ap);
    va_end(ap);
    if (n > 0)
        t->length += n < 256 ? (size_t)n : 255;
}

void sim_text_hex(struct sim_text *t, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = bytes;
    reserve(t, 2 * n + 1);
    if (!n)
        t->bytes[t->length++] = '-';
    for (size_t i = 0; i < n; i++) {
        t->bytes[t->length++] = digits[b[i] >> 4];
        t->bytes[t->length++] = digits[b[i] & 15];
    }
}

void sim_log_line(struct sim_text *t)
{
    reserve(t, 1);
    t->bytes[t->length++] = '\n';
    if (sim_log_wanted())
        for (size_t done = 0; done < t->length;) {
            ssize_t n = write(fd, t->bytes + done, t->length - done);
            if (n <= 0)
                break;
            done += (size_t)n;
        }
    t->length = 0;
}

void sim_log_call(struct sim_tls *tls, const char *symbol, int status)
{
    static struct sim_text text;
    if (!sim_log_wanted())
        return;
    sim_text_add(&text, "C %llu %d %s %d t=%llu", (unsigned long long)sim_log_next(), tls->number,
                 symbol, status, (unsigned long long)tls->now_ns);
    sim_log_line(&text);
}
