/* tests/resolver/case_lookup.c - cuGetProcAddress in both versions, and names that nobody knows;
 * see cases.h. */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include "tests/resolver/fake_cudart.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*ask4_fn)(const char *, void **, int, uint64_t);
typedef int (*ask5_fn)(const char *, void **, int, uint64_t, int *);

static void *const untouched = (void *)0x5a5a5a5a5a5a;
enum { UNTOUCHED = 0x5a5a };

static ask5_fn ask5_of(const struct driver *d)
{
    return (ask5_fn)dlsym(d->handle, "cuGetProcAddress_v2");
}

static ask4_fn ask4_of(const struct driver *d)
{
    return (ask4_fn)dlsym(d->handle, "cuGetProcAddress");
}

/* Both look-up functions, reached through dlsym and through themselves, called with their own
 * number of arguments. A four-argument function that writes a fifth would hit `status`. */
static int self(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    void *by_name4 = (void *)ask4_of(&d), *by_name5 = (void *)ask5_of(&d);
    void *from4[2] = {NULL, NULL}, *from5[2] = {NULL, NULL};
    int status = UNTOUCHED;
    (void)argc, (void)argv;
    say("%d", ((ask4_fn)by_name4)("cuGetProcAddress", &from4[0], 11030, 0));
    say("%d", ((ask4_fn)by_name4)("cuGetProcAddress", &from4[1], 12000, 0));
    say("%d", ((ask5_fn)by_name5)("cuGetProcAddress", &from5[0], 11030, 0, &status));
    say("%d", ((ask5_fn)by_name5)("cuGetProcAddress", &from5[1], 12000, 0, NULL));
    void *const four[] = {by_name4, from4[0], from5[0]}, *const five[] = {by_name5, from4[1],
                                                                          from5[1]};
    for (int i = 0; i < 3; i++) {
        void *out = untouched;
        status = UNTOUCHED;
        say("four arguments: %d", ((ask5_fn)four[i])("cuCtxSynchronize", &out, 12000, 0, &status));
        say("status %s", status == UNTOUCHED ? "untouched" : "written");
        say_found("four", d.fake, out);
        out = untouched;
        say("five arguments: %d", ((ask5_fn)five[i])("cuCtxSynchronize", &out, 12000, 0, &status));
        say("status %d", status);
        say_found("five", d.fake, out);
        say_shim("looked up by %s %s", home_of(four[i]), home_of(five[i]));
    }
    return 0;
}

/* A look-up and what came of it. All are made before any pointer is called: a call may change the
 * shim's mind. */
struct question {
    const char *name;
    int version, flags, result, status;
    void *address;
};
enum { QUESTIONS = 1 << 17 };
static struct question asked[QUESTIONS];
static int questions;

static struct question *next_question(const char *name, int version, int flags)
{
    if (questions == QUESTIONS)
        abort();
    asked[questions] = (struct question){name, version, flags, -1, UNTOUCHED, untouched};
    return &asked[questions++];
}

/* Where a call of the pointer arrives; remembered, for 40,000 look-ups give a thousand pointers. */
static const char *row_of(const struct fake_api *fake, void *address)
{
    static struct {
        void *address;
        const char *row;
    } met[4096];
    static int used;
    if (!address || address == untouched)
        return address ? "untouched" : "null";
    for (int i = 0; i < used; i++)
        if (met[i].address == address)
            return met[i].row;
    fake->forget();
    met[used].address = address;
    met[used].row = reached(fake, address);
    return met[used++].row;
}

static void say_questions(const struct fake_api *fake)
{
    for (int i = 0; i < questions; i++)
        if (asked[i].address && asked[i].address != untouched)
            say_shim("%s", home_of(asked[i].address));
    for (int i = 0; i < questions; i++)
        say("'%s' %d %d: %d, status %d, %s", asked[i].name, asked[i].version, asked[i].flags,
            asked[i].result, asked[i].status, row_of(fake, asked[i].address));
}

static void ask_all_versions(const struct driver *d, ask5_fn ask, const char *name)
{
    static const int versions[] = {0,     2000,  3020,  4000,  6050,  7000,  9000,  10000,
                                   10010, 11000, 11020, 11030, 11040, 11080, 12000, 12010,
                                   12020, 12030, 12040, 12080, 13000, 14000};
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        for (int flags = 0; flags < 4; flags++) {
            struct question *q = next_question(name, versions[v], flags);
            q->result = ask(name, &q->address, q->version, (uint64_t)flags, &q->status);
        }
    d->fake->forget();
}

/* Every name with its suffix and without, in every version, for every kind of stream. */
static int every_lookup(int argc, char **argv)
{
    static const char *const names[] = {
#define FAKE_VERSION(name, since, symbol, twin) #name,
#include "tests/resolver/fake_versions.def"
#undef FAKE_VERSION
    };
    const struct driver d = driver_open(NULL, RTLD_NOW);
    const ask5_fn ask = ask5_of(&d);
    const char *last = "";
    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], last) != 0)
            ask_all_versions(&d, ask, names[i]);
        last = names[i];
    }
    for (int row = 0; row < FAKE_KNOWN; row += 7)
        ask_all_versions(&d, ask, known_name(row));
    ask_all_versions(&d, ask, "");
    ask_all_versions(&d, ask, "cudaMalloc");
    ask_all_versions(&d, ask, "cuNoSuchFunction");
    say_questions(d.fake);
    return 0;
}

/* The four-argument version, over the same names. */
static int every_old_lookup(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    const ask4_fn ask = ask4_of(&d);
    (void)argc, (void)argv;
    for (int row = 0; row < FAKE_KNOWN; row++)
        for (int flags = 0; flags < 3; flags++) {
            struct question *q = next_question(known_name(row), 11080, flags);
            q->result = ask(q->name, &q->address, q->version, (uint64_t)flags);
        }
    say_questions(d.fake);
    return 0;
}

static void say_ask(const struct driver *d, const char *label, int result, void *out, int status)
{
    say("%s: %d, address %s, status %d", label, result,
        out == untouched ? "untouched"
        : out            ? reached(d->fake, out)
                         : "null",
        status);
}

/* Look-ups that the driver refuses, and out-parameters that are not there. */
static int refused(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    const ask5_fn ask = ask5_of(&d);
    const ask4_fn old = ask4_of(&d);
    void *out = untouched;
    int status = UNTOUCHED;
    (void)argc, (void)argv;
    int result = ask("cuNoSuchFunction", &out, 12000, 0, &status);
    say_ask(&d, "unknown name", result, out, status);
    out = untouched, status = UNTOUCHED;
    result = ask("cuLaunchKernelEx", &out, 2000, 0, &status);
    say_ask(&d, "too old", result, out, status);
    out = untouched, status = UNTOUCHED;
    result = ask("cuInit", &out, 12000, 77, &status);
    say_ask(&d, "unknown flags", result, out, status);
    out = untouched, status = UNTOUCHED;
    result = ask("", &out, 0, 0, &status);
    say_ask(&d, "empty name", result, out, status);
    out = untouched, status = UNTOUCHED;
    result = ask(NULL, &out, 12000, 0, &status);
    say_ask(&d, "no name", result, out, status);
    out = untouched, status = UNTOUCHED;
    result = ask("cuInit", NULL, 12000, 0, &status);
    say_ask(&d, "nowhere to put it", result, out, status);
    out = untouched;
    result = ask("cuInit", &out, 12000, 0, NULL);
    say_ask(&d, "no status wanted", result, out, UNTOUCHED);
    out = untouched;
    result = ask("cuNoSuchFunction", &out, 12000, 0, NULL);
    say_ask(&d, "no status wanted, unknown", result, out, UNTOUCHED);
    out = untouched;
    result = old("cuNoSuchFunction", &out, 12000, 0);
    say_ask(&d, "old version, unknown", result, out, UNTOUCHED);
    result = old(NULL, NULL, 12000, 0);
    say_ask(&d, "old version, nothing given", result, untouched, UNTOUCHED);
    return 0;
}

static int call_with_marks(const struct fake_api *fake, void *function)
{
    const unsigned before = fake->calls();
    const int result =
        ((int (*)(long, long, long, long, long, long, long, long, long, long, long))function)(
            0x1111111100000001, 0x1111111100000002, 0x1111111100000003, 0x1111111100000004,
            0x1111111100000005, 0x1111111100000006, 0x1111111100000007, 0x1111111100000008,
            0x1111111100000009, 0x111111110000000a, 0x111111110000000b);
    for (unsigned i = before; i < fake->calls(); i++)
        for (int a = 0; a < FAKE_ARGS; a++)
            say("%s argument %d: %llx", fake->names[fake->call(i)->row], a,
                (unsigned long long)fake->call(i)->with.args[a]);
    return result;
}

/* Functions of a later driver: served by a thunk that forwards everything and answers what the
 * driver answers. */
static int unknown_names(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    const ask5_fn ask = ask5_of(&d);
    void *out[2] = {NULL, NULL};
    int status = UNTOUCHED;
    (void)argc, (void)argv;
    say("look-up %d", ask("cuFutureOp", &out[0], 13000, 0, &status));
    say("look-up %d, status %d", ask("cuFutureOp", &out[1], 13000, 2, &status), status);
    void *const by_handle = dlsym(d.handle, "cuFutureOp");
    void *const by_default = dlsym(RTLD_DEFAULT, "cuFutureOp");
    say("the address %s",
        out[0] == out[1] && out[0] == by_handle && out[0] == by_default ? "is one" : "differs");
    say_shim("%s %s %s", home_of(out[0]), home_of(by_handle), home_of(by_default));
    say("answer %d", call_with_marks(d.fake, out[0]));
    say("answer %d", call_with_marks(d.fake, by_handle));
    say("answer %d", call_with_marks(d.fake, by_default));
    return 0;
}

/* More unknown names than there are thunks: the rest must still work. */
static int pool_runs_out(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    const ask5_fn ask = ask5_of(&d);
    (void)argc, (void)argv;
    for (int row = FAKE_KNOWN; row < FAKE_ROWS; row++) {
        void *out = NULL, *again = NULL;
        int status = UNTOUCHED;
        const int result = ask(d.fake->names[row], &out, 13000, 0, &status);
        ask(d.fake->names[row], &again, 13000, 0, &status);
        say("%s: %d, %s, %s", d.fake->names[row], result, reached(d.fake, out),
            out == again ? "stable" : "moved");
        say_shim("pool %s", home_of(out));
    }
    say("cuInit: %s", reached(d.fake, dlsym(d.handle, "cuInit")));
    return 0;
}

/* The pattern of a real runtime. */
static int runtime(int argc, char **argv)
{
    static struct fakecudart seen;
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return 4;
    int (*const start)(struct fakecudart *) =
        (int (*)(struct fakecudart *))dlsym(library, "fakecudart_start");
    if (start(&seen) != 0)
        return 5;
    const struct driver d = driver_open(NULL, RTLD_NOW);
    say("by name: %d", seen.by_name);
    for (int i = 0; i < FAKECUDART_ASKS; i++) {
        struct question *q = next_question(seen.name[i], seen.version[i], seen.flags[i]);
        q->result = seen.status[i];
        q->address = seen.address[i];
    }
    say_questions(d.fake);
    return 0;
}

/* The table of undocumented functions is the driver's own, byte for byte. */
static int export_table(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    int (*const get)(const void **, const void *) =
        (int (*)(const void **, const void *))dlsym(d.handle, "cuGetExportTable");
    const void *table = NULL;
    (void)argc, (void)argv;
    say("%d", get(&table, argument_page));
    say("table in %s, its function in %s", home_of(table), home_of(((void *const *)table)[1]));
    say("without an id: %d", get(&table, NULL));
    return 0;
}

const struct test_case lookup_cases[] = {
    {"self", self},       {"every-lookup", every_lookup},   {"every-old-lookup", every_old_lookup},
    {"refused", refused}, {"unknown-names", unknown_names}, {"pool-runs-out", pool_runs_out},
    {"runtime", runtime}, {"export-table", export_table},   {NULL, NULL},
};
