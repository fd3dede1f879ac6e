/* shim/observe/json.c - see json.h. */
#include "shim/observe/json.h"

#include <errno.h>
#include <float.h>
#include <string.h>

void ag_json_open(struct ag_json *j, struct ag_sink *sink)
{
    j->sink = sink;
    j->depth = 0;
    j->arrays = 0;
    j->started = 0;
}

static void fail(struct ag_json *j, int error)
{
    if (j->sink->error == 0) {
        j->sink->error = error;
    }
}

static void new_line(struct ag_json *j)
{
    static const char spaces[] = "                                ";
    ag_sink_text(j->sink, "\n");
    ag_sink_put(j->sink, spaces, j->depth);
}

static void quoted(struct ag_json *j, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    ag_sink_text(j->sink, "\"");
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        size_t n = ag_sink_utf8(text);
        if (n == 0) {
            ag_sink_text(j->sink, "\xef\xbf\xbd");
            n = 1;
        } else if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            ag_sink_put(j->sink, escaped, sizeof escaped);
        } else if (c < 0x20 || c == 0x7f) {
            char escaped[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            ag_sink_put(j->sink, escaped, sizeof escaped);
        } else {
            ag_sink_put(j->sink, text, n);
        }
        text += n;
    }
    ag_sink_text(j->sink, "\"");
}

/* Everything that stands before a value: comma, line, key. */
static void lead_in(struct ag_json *j, const char *key)
{
    uint32_t here = 1u << j->depth;
    bool keyed = j->depth > 0 && (j->arrays & here) == 0;
    bool second_root = j->depth == 0 && (j->started & here) != 0;
    if (keyed != (key != NULL) || second_root) {
        fail(j, EINVAL);
        return;
    }
    if (j->started & here) {
        ag_sink_text(j->sink, ",");
    }
    j->started |= here;
    if (j->depth > 0) {
        new_line(j);
    }
    if (key != NULL) {
        quoted(j, key);
        ag_sink_text(j->sink, ": ");
    }
}

static void begin(struct ag_json *j, const char *key, bool array)
{
    lead_in(j, key);
    if (j->depth + 1 >= AG_JSON_DEPTH) {
        fail(j, EINVAL);
        return;
    }
    j->depth++;
    j->started &= ~(1u << j->depth);
    j->arrays &= ~(1u << j->depth);
    j->arrays |= (uint32_t)array << j->depth;
    ag_sink_text(j->sink, array ? "[" : "{");
}

void ag_json_object(struct ag_json *j, const char *key)
{
    begin(j, key, false);
}

void ag_json_array(struct ag_json *j, const char *key)
{
    begin(j, key, true);
}

void ag_json_end(struct ag_json *j)
{
    uint32_t here = 1u << j->depth;
    if (j->depth == 0) {
        fail(j, EINVAL);
        return;
    }
    bool array = (j->arrays & here) != 0;
    bool any = (j->started & here) != 0;
    j->depth--;
    if (any) {
        new_line(j);
    }
    ag_sink_text(j->sink, array ? "]" : "}");
}

void ag_json_text(struct ag_json *j, const char *key, const char *value)
{
    lead_in(j, key);
    if (value == NULL) {
        ag_sink_text(j->sink, "null");
    } else {
        quoted(j, value);
    }
}

void ag_json_u64(struct ag_json *j, const char *key, uint64_t value)
{
    lead_in(j, key);
    ag_sink_u64(j->sink, value);
}

void ag_json_bool(struct ag_json *j, const char *key, bool value)
{
    lead_in(j, key);
    ag_sink_text(j->sink, value ? "true" : "false");
}

void ag_json_null(struct ag_json *j, const char *key)
{
    ag_json_text(j, key, NULL);
}

enum {
    DIGITS = 15,
    PLAIN_LEAST = -5, /* smaller and larger exponents are written with an e */
    PLAIN_MOST = DIGITS - 1,
};

/* d, or d.ddd: `count` digits, the first `whole` of them before the point. */
static void put_digits(struct ag_json *j, const char *digits, size_t count, size_t whole)
{
    ag_sink_put(j->sink, digits, whole);
    if (count > whole) {
        ag_sink_text(j->sink, ".");
        ag_sink_put(j->sink, digits + whole, count - whole);
    }
}

/* The value is d.dddddddddddddd (DIGITS of them) times ten to the exponent. */
static void put_decimal(struct ag_json *j, uint64_t value, int exponent)
{
    char digits[DIGITS];
    size_t count = DIGITS;
    for (size_t i = DIGITS; i-- > 0; value /= 10) {
        digits[i] = (char)('0' + value % 10);
    }
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    if (exponent >= 0 && exponent <= PLAIN_MOST) {
        put_digits(j, digits, count, (size_t)exponent + 1);
    } else if (exponent < 0 && exponent >= PLAIN_LEAST) {
        ag_sink_put(j->sink, "0.0000", (size_t)(1 - exponent));
        ag_sink_put(j->sink, digits, count);
    } else {
        put_digits(j, digits, count, 1);
        ag_sink_text(j->sink, exponent < 0 ? "e-" : "e+");
        ag_sink_u64(j->sink, (uint64_t)(exponent < 0 ? -exponent : exponent));
    }
}

/* printf() would write the decimal point of the program's locale. */
static void put_double(struct ag_json *j, double value)
{
    int exponent = 0;
    if (value < 0) {
        ag_sink_text(j->sink, "-");
        value = -value;
    }
    for (; value >= 10; exponent++) {
        value /= 10;
    }
    for (; value != 0 && value < 1; exponent--) {
        value *= 10;
    }
    /* The largest double, rounded up, would be read as infinity. */
    double half = exponent < DBL_MAX_10_EXP ? 0.5 : 0;
    uint64_t digits = (uint64_t)(value * 1e14 + half);
    if (digits >= 1000000000000000u) {
        digits /= 10;
        exponent++;
    }
    put_decimal(j, digits, exponent);
}

void ag_json_double(struct ag_json *j, const char *key, double value)
{
    lead_in(j, key);
    if (value >= -DBL_MAX && value <= DBL_MAX) {
        put_double(j, value);
    } else {
        ag_sink_text(j->sink, "null");
    }
}

int ag_json_close(struct ag_json *j)
{
    if (j->depth != 0 || j->started == 0) {
        fail(j, EINVAL);
    }
    ag_sink_text(j->sink, "\n");
    return ag_sink_flush(j->sink);
}
