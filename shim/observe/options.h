/* shim/observe/options.h - what the user asked for, read from the environment once.
 * Called by  shim/runtime.c (load), everyone (read)      Calls  libc
 * Threads    written once in init, read-only afterwards
 * Promise    a bad value or an unknown AUTOGRAPH_* name never stops anything: the default stands
 *            and a line in `problems` says so. No allocation, nothing printed, errno untouched.
 * Start at   ag_options_load(); the rows are in options.def */
#ifndef AG_SHIM_OBSERVE_OPTIONS_H
#define AG_SHIM_OBSERVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ag_mode { AG_MODE_ON, AG_MODE_OFF, AG_MODE_OBSERVE };
enum ag_level { AG_LEVEL_ERROR, AG_LEVEL_WARN, AG_LEVEL_INFO, AG_LEVEL_DEBUG };

enum {
    AG_OPTION_PATH = 4096,   /* longest path kept, with its zero */
    AG_OPTION_PROBLEMS = 8,  /* problems kept; more are only counted */
    AG_OPTION_PROBLEM = 192, /* longest problem kept, with its zero */
};

#define AG_OPTION_FIELD_CHOICE(field) uint32_t field;
#define AG_OPTION_FIELD_NUMBER(field) uint64_t field;
#define AG_OPTION_FIELD_BYTES(field) uint64_t field;
#define AG_OPTION_FIELD_FILE(field) char field[AG_OPTION_PATH];
#define AG_OPTION_FIELD_DIRECTORY(field) char field[AG_OPTION_PATH];
#define AG_OPTION_FIELD_LIST(field) char field[AG_OPTION_PATH];

struct ag_options {
    /* One field per row of options.def. A CHOICE is a value of its enum (ag_mode, ag_level). A path
     * is absolute, the special word as it is, or empty. In a file name %h, %p and %t are not yet
     * replaced: ag_file_expand(). */
#define AG_OPTION(field, env, kind, value, range, sentence) AG_OPTION_FIELD_##kind(field)
#include "shim/observe/options.def"
#undef AG_OPTION

    uint32_t given;         /* bit n: row n has a valid value in the environment */
    uint32_t problem_count; /* all of them, also those that did not fit */
    char problems[AG_OPTION_PROBLEMS][AG_OPTION_PROBLEM];
};

/* `environ_list` is environ (NULL: every default). Of a name that is there twice the first counts,
 * as in getenv(); an empty value counts as not given. A program that runs with more rights than its
 * user (set-user-id and the like) gets the defaults and AG_MODE_OFF, whatever is in there. */
void ag_options_load(struct ag_options *out, char **environ_list);
/* The same with the question about rights answered by the caller. */
void ag_options_load_as(struct ag_options *out, char **environ_list, bool privileged);

/* Has the environment a valid value for the option of that name? */
bool ag_options_given(const struct ag_options *o, const char *env);

/* The table, for those that show it. */
enum ag_option_kind {
    AG_OPTION_CHOICE,
    AG_OPTION_NUMBER,
    AG_OPTION_BYTES,
    AG_OPTION_FILE,
    AG_OPTION_DIRECTORY,
    AG_OPTION_LIST,
};

struct ag_option_row {
    const char *env;
    enum ag_option_kind kind;
    const char *value; /* the default, as a user would write it; "" is none */
    const char *words; /* CHOICE: what may be said, separated by '|'; FILE: the special word */
    uint64_t least, most;
    const char *sentence;
    size_t offset; /* of the field in struct ag_options */
};

const struct ag_option_row *ag_options_rows(size_t *out_count);
/* What may be written for a row, in words: "10..100000". Always terminated; returns `text`. */
const char *ag_options_grammar(const struct ag_option_row *row, char *text, size_t size);
/* The value in force, as a user would write it; "" is none. Always terminated; returns `text`. */
const char *ag_options_value(const struct ag_options *o, const struct ag_option_row *row,
                             char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
