/* shim/observe/options_doc.c - prints the table of options for people.
 * Called by  `options_doc --markdown` (docs/OPTIONS.md), `options_doc --help` (the command's help)
 * Calls      shim/observe/options.h
 * Promise    whatever it prints comes from options.def
 * Start at   main() */
#include <stdio.h>
#include <string.h>

#include "shim/observe/options.h"

static void print_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            putchar('\\'); /* else it ends the cell */
        }
        putchar(*text);
    }
}

static void print_markdown(const struct ag_option_row *rows, size_t count)
{
    printf("# Options\n\n"
           "Environment variables, read once, when the program first calls the driver.\n"
           "*Generated from `shim/observe/options.def`:* "
           "`bazel run //shim/observe:options_doc -- --markdown > docs/OPTIONS.md`.\n\n"
           "| name | value | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        char grammar[64];
        printf("| `%s` | ", rows[i].env);
        print_cell(ag_options_grammar(&rows[i], grammar, sizeof grammar));
        printf(" | %s | ", rows[i].value[0] == '\0' ? "none" : rows[i].value);
        print_cell(rows[i].sentence);
        printf(" |\n");
    }
    printf("\n"
           "- A value that does not fit and an unknown `AUTOGRAPH_*` name are one line each in the "
           "log; the default stands. An empty value counts as not given.\n"
           "- In a file name `%%h` stands for the host, `%%p` for the process id, `%%t` for the "
           "start in seconds since 1970, `%%%%` for `%%`. A relative path starts at the directory "
           "the program was in when it first called the driver.\n"
           "- Directories are not made. Files are made for the user alone (0600), never through a "
           "symbolic link. The log is appended to; statistics and dumps replace a regular file as "
           "a whole and nothing else.\n"
           "- What cannot be opened or written is one line in the log; the program runs on. If it "
           "is the log itself, the statistics say so.\n"
           "- A program that runs with more rights than its user (set-user-id and the like) is "
           "left alone: the variables are not read and the mode is `off`.\n");
}

static void print_help(const struct ag_option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char grammar[64];
        printf("  %s=%s", rows[i].env, ag_options_grammar(&rows[i], grammar, sizeof grammar));
        if (rows[i].value[0] != '\0') {
            printf("  [%s]", rows[i].value);
        }
        printf("\n      ");
        for (const char *c = rows[i].sentence; *c != '\0'; c++) {
            if (*c != '`') {
                putchar(*c);
            }
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    size_t count;
    const struct ag_option_row *rows = ag_options_rows(&count);
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "--markdown") == 0) {
        print_markdown(rows, count);
    } else if (strcmp(what, "--help") == 0) {
        print_help(rows, count);
    } else {
        fprintf(stderr, "usage: options_doc --markdown | --help\n");
        return 2;
    }
    return ferror(stdout) || fflush(stdout) != 0;
}
