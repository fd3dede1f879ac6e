/* shim/observe/sink.c - see sink.h. */
#include "shim/observe/sink.h"

#include <errno.h>
#include <string.h>

#include "shim/observe/sys.h"

void ag_sink_open(struct ag_sink *s, int fd)
{
    s->fd = fd;
    s->error = 0;
    s->used = 0;
}

int ag_sink_flush(struct ag_sink *s)
{
    size_t done = 0;
    while (s->error == 0 && done < s->used) {
        ssize_t n = ag_sys_write(s->fd, s->bytes + done, s->used - done);
        if (n > 0) {
            done += (size_t)n;
        } else {
            /* A write of nothing would go on for ever. */
            s->error = n < 0 ? (int)-n : ENOSPC;
        }
    }
    s->used = 0;
    return s->error;
}

void ag_sink_put(struct ag_sink *s, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size > 0 && s->error == 0) {
        size_t room = sizeof s->bytes - s->used;
        size_t n = size < room ? size : room;
        memcpy(s->bytes + s->used, next, n);
        s->used += n;
        next += n;
        size -= n;
        if (s->used == sizeof s->bytes) {
            ag_sink_flush(s);
        }
    }
}

void ag_sink_text(struct ag_sink *s, const char *text)
{
    ag_sink_put(s, text, strlen(text));
}

void ag_sink_u64(struct ag_sink *s, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    ag_sink_put(s, digits + at, sizeof digits - at);
}

static bool follows(unsigned char c, unsigned char least, unsigned char most)
{
    return c >= least && c <= most;
}

/* Table 3-7 of the Unicode standard: the second byte's range shuts out overlong forms, surrogates
 * and what lies above U+10FFFF; every later byte is 80..BF. */
size_t ag_sink_utf8(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) {
        return c[0] != 0;
    }
    unsigned char least = 0x80, most = 0xbf;
    size_t size;
    if (c[0] >= 0xc2 && c[0] <= 0xdf) {
        size = 2;
    } else if (c[0] >= 0xe0 && c[0] <= 0xef) {
        size = 3;
        least = c[0] == 0xe0 ? 0xa0 : 0x80;
        most = c[0] == 0xed ? 0x9f : 0xbf;
    } else if (c[0] >= 0xf0 && c[0] <= 0xf4) {
        size = 4;
        least = c[0] == 0xf0 ? 0x90 : 0x80;
        most = c[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
#ifdef AG_MUTANT_UTF8_SURROGATES /* any byte that goes on may be the second one */
    least = 0x80, most = 0xbf;
#endif
    if (!follows(c[1], least, most)) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if (!follows(c[i], 0x80, 0xbf)) {
            return 0;
        }
    }
    return size;
}
