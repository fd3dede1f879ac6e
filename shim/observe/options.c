/* shim/observe/options.c - see options.h. The parser knows kinds, never single options, but for the
 * one short word that stands for a longer file name (AUTOGRAPH_STATS=1). */
#include "shim/observe/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char prefix[] = "AUTOGRAPH";
static const char stats_name[] = "autograph-stats.%h.%p.%t.json";

#define AG_WORDS(text) .words = text
#define AG_NUMBERS(low, high) .words = "", .least = low, .most = high

static const struct ag_option_row rows[] = {
#define AG_OPTION(field_, env_, kind_, value_, range_, sentence_)                                  \
    {.env = env_,                                                                                  \
     .kind = AG_OPTION_##kind_,                                                                    \
     .value = value_,                                                                              \
     .sentence = sentence_,                                                                        \
     .offset = offsetof(struct ag_options, field_),                                                \
     range_},
#include "shim/observe/options.def"
#undef AG_OPTION
};

enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(ROWS <= 32, "ag_options.given has a bit for each row");

const struct ag_option_row *ag_options_rows(size_t *out_count)
{
    *out_count = ROWS;
    return rows;
}

__attribute__((format(printf, 2, 3))) static void complain(struct ag_options *o, const char *fmt,
                                                           ...)
{
    uint32_t n = o->problem_count++;
    if (n >= AG_OPTION_PROBLEMS) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(o->problems[n], sizeof o->problems[n], fmt, args);
    va_end(args);
}

static bool parse_digits(const char *text, const char **out_end, uint64_t *out)
{
    uint64_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_end = c;
    *out = value;
    return c != text;
}

static unsigned suffix_shift(char suffix)
{
    switch (suffix) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    default:
        return 0;
    }
}

static bool parse_number(const struct ag_option_row *row, const char *text, uint64_t *field)
{
    const char *end;
    uint64_t value;
    if (!parse_digits(text, &end, &value)) {
        return false;
    }
    unsigned shift = row->kind == AG_OPTION_BYTES ? suffix_shift(*end) : 0;
    if (shift != 0) {
        end++;
    }
    if (*end != '\0' || value > UINT64_MAX >> shift) {
        return false;
    }
    value <<= shift;
#ifdef AG_MUTANT_OPTION_UNBOUNDED /* the range is not looked at */
    *field = value;
    return true;
#endif
    if (value < row->least || value > row->most) {
        return false;
    }
    *field = value;
    return true;
}

static bool parse_choice(const struct ag_option_row *row, const char *text, uint32_t *field)
{
    size_t size = strlen(text);
    uint32_t index = 0;
    for (const char *word = row->words;;) {
        size_t n = strcspn(word, ",|");
        if (n == size && memcmp(word, text, n) == 0) {
            *field = index;
            return true;
        }
        if (word[n] == '\0') {
            return false;
        }
        index += word[n] == '|';
        word += n + 1;
    }
}

/* Copies `text` behind what `path` has already; with `escape`, so that ag_file_expand() gives it
 * back unchanged. */
static bool append(char *path, const char *text, bool escape)
{
    size_t used = strlen(path);
    for (; *text != '\0'; text++) {
        size_t n = escape && *text == '%' ? 2 : 1;
        if (used + n >= AG_OPTION_PATH) {
            return false;
        }
        memset(path + used, *text, n);
        used += n;
    }
    path[used] = '\0';
    return true;
}

/* A path is fixed now: the program may change its directory before the first file is written. */
static bool make_absolute(const struct ag_option_row *row, const char *text, char *field)
{
    char cwd[AG_OPTION_PATH];
    field[0] = '\0';
    if (text[0] == '/') {
        return append(field, text, false);
    }
    int saved = errno;
    bool known = getcwd(cwd, sizeof cwd) != NULL && cwd[0] == '/';
    errno = saved;
    return known && append(field, cwd, row->kind == AG_OPTION_FILE) && append(field, "/", false) &&
           append(field, text, false);
}

static bool parse_path(const struct ag_option_row *row, const char *text, char *field)
{
    if (text[0] == '\0' || strcmp(text, row->words) != 0) {
        return make_absolute(row, text, field);
    }
    if (row->offset == offsetof(struct ag_options, stats)) {
        return make_absolute(row, stats_name, field);
    }
    return append(field, text, false);
}

static bool parse(struct ag_options *o, const struct ag_option_row *row, const char *text)
{
    void *field = (char *)o + row->offset;
    switch (row->kind) {
    case AG_OPTION_CHOICE:
        return parse_choice(row, text, field);
    case AG_OPTION_NUMBER:
    case AG_OPTION_BYTES:
        return parse_number(row, text, field);
    case AG_OPTION_FILE:
    case AG_OPTION_DIRECTORY:
        return parse_path(row, text, field);
    case AG_OPTION_LIST:
        ((char *)field)[0] = '\0';
        return append(field, text, false);
    }
    return false;
}

/* A failed parse may have left part of a path behind, so this also undoes. */
static void set_default(struct ag_options *o, const struct ag_option_row *row)
{
    if (row->value[0] == '\0') {
        memset((char *)o + row->offset, 0, AG_OPTION_PATH);
    } else {
        parse(o, row, row->value);
    }
}

static void take(struct ag_options *o, const struct ag_option_row *row, const char *text)
{
    if (parse(o, row, text)) {
        o->given |= 1u << (row - rows);
        return;
    }
    set_default(o, row);
    if (row->kind == AG_OPTION_FILE || row->kind == AG_OPTION_DIRECTORY) {
        complain(o, "%s: path too long, or the current directory is unknown", row->env);
        return;
    }
    if (row->kind == AG_OPTION_LIST) {
        complain(o, "%s: longer than %d bytes", row->env, AG_OPTION_PATH - 1);
        return;
    }
    char grammar[64];
    complain(o, "%s: '%.40s' is not %s, the default %s stands", row->env, text,
             ag_options_grammar(row, grammar, sizeof grammar), row->value);
}

/* One "NAME=value" of the environment that starts with our prefix. */
static void look_at(struct ag_options *o, const char *entry, uint32_t *seen)
{
    const char *equals = strchr(entry, '=');
    if (equals == NULL) {
        return;
    }
    size_t size = (size_t)(equals - entry);
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].env) != size || memcmp(rows[i].env, entry, size) != 0) {
            continue;
        }
        if ((*seen & 1u << i) == 0 && equals[1] != '\0') {
            take(o, &rows[i], equals + 1);
        }
        *seen |= 1u << i;
        return;
    }
    complain(o, "%.*s: there is no such option", size < 80 ? (int)size : 80, entry);
}

void ag_options_load_as(struct ag_options *out, char **environ_list, bool privileged)
{
    uint32_t seen = 0;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < ROWS; i++) {
        set_default(out, &rows[i]);
    }
    if (privileged) {
        out->mode = AG_MODE_OFF;
        return;
    }
    for (char **e = environ_list; e != NULL && *e != NULL; e++) {
        size_t n = sizeof prefix - 1;
        if (strncmp(*e, prefix, n) == 0 && ((*e)[n] == '=' || (*e)[n] == '_')) {
            look_at(out, *e, &seen);
        }
    }
}

bool ag_options_given(const struct ag_options *o, const char *env)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].env, env) == 0)
            return o->given >> i & 1;
    return false;
}

void ag_options_load(struct ag_options *out, char **environ_list)
{
    ag_options_load_as(out, environ_list, getauxval(AT_SECURE) != 0);
}

static void format_bytes(uint64_t value, char *text, size_t size)
{
    static const char suffixes[] = "\0KMG";
    unsigned step = 0;
    while (step < 3 && value != 0 && value % 1024 == 0) {
        value /= 1024;
        step++;
    }
    snprintf(text, size, "%llu%.1s", (unsigned long long)value, suffixes + step);
}

static void format_number(const struct ag_option_row *row, uint64_t value, char *text, size_t size)
{
    if (row->kind == AG_OPTION_BYTES) {
        format_bytes(value, text, size);
    } else {
        snprintf(text, size, "%llu", (unsigned long long)value);
    }
}

const char *ag_options_grammar(const struct ag_option_row *row, char *text, size_t size)
{
    char least[24], most[24];
    format_number(row, row->least, least, sizeof least);
    format_number(row, row->most, most, sizeof most);
    switch (row->kind) {
    case AG_OPTION_CHOICE:
        snprintf(text, size, "%s", row->words);
        break;
    case AG_OPTION_NUMBER:
        snprintf(text, size, "%s..%s", least, most);
        break;
    case AG_OPTION_BYTES:
        snprintf(text, size, "%s..%s (bytes; suffix K, M, G)", least, most);
        break;
    case AG_OPTION_FILE:
        snprintf(text, size, row->words[0] ? "%s, or a file" : "%sa file", row->words);
        break;
    case AG_OPTION_DIRECTORY:
        snprintf(text, size, "a directory");
        break;
    case AG_OPTION_LIST:
        snprintf(text, size, "patterns with commas");
        break;
    }
    return text;
}

const char *ag_options_value(const struct ag_options *o, const struct ag_option_row *row,
                             char *text, size_t size)
{
    const void *field = (const char *)o + row->offset;
    const char *word = row->words;
    switch (row->kind) {
    case AG_OPTION_CHOICE:
        for (uint32_t i = *(const uint32_t *)field; i > 0; i--) {
            word += strcspn(word, "|");
            word += *word == '|';
        }
        snprintf(text, size, "%.*s", (int)strcspn(word, ",|"), word);
        break;
    case AG_OPTION_NUMBER:
    case AG_OPTION_BYTES:
        format_number(row, *(const uint64_t *)field, text, size);
        break;
    case AG_OPTION_FILE:
    case AG_OPTION_DIRECTORY:
    case AG_OPTION_LIST:
        snprintf(text, size, "%s", (const char *)field);
        break;
    }
    return text;
}
