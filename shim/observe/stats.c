/* shim/observe/stats.c - see stats.h. */
#define _GNU_SOURCE
#include "shim/observe/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "policy/refusal.h"
#include "shim/observe/json.h"
#include "shim/observe/log.h"
#include "shim/observe/sys.h"

enum {
    PROGRAM = 1024,    /* longest command line kept */
    PATIENCE_US = 200, /* the last writer looks so often whether the one before is done, ... */
    PATIENCE = 1000,   /* ... and this many times: a network disk must not keep a process alive */
};

/* The one statistics file of the process. */
static struct {
    atomic_flag busy;     /* held while a file is written: an older one must not follow a newer */
    atomic_bool finished; /* the last one is written, or being written */
    atomic_bool told;     /* a failure has been logged */
} the_stats = {.busy = ATOMIC_FLAG_INIT};

static void read_program(char *text, size_t size)
{
    size_t used = 0;
    ssize_t n = 0;
    int fd = ag_sys_open(AT_FDCWD, "/proc/self/cmdline", O_RDONLY, 0);
    while (fd >= 0 && used < size - 1 && (n = ag_sys_read(fd, text + used, size - 1 - used)) > 0) {
        used += (size_t)n;
    }
    if (fd >= 0) {
        ag_sys_close(fd);
    }
    while (used > 0 && text[used - 1] == '\0') {
        used--;
    }
    for (size_t i = 0; i < used; i++) {
        if (text[i] == '\0') {
            text[i] = ' ';
        }
    }
    text[used] = '\0';
}

static void put_process(struct ag_json *j, const struct ag_stats_input *in)
{
    const struct ag_identity *id = in->identity;
    struct timespec now = {0, 0};
    char program[PROGRAM];
    read_program(program, sizeof program);
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec - (double)id->start +
                     ((double)now.tv_nsec - (double)id->start_nsec) * 1e-9;

    ag_json_text(j, "version", in->version);
    ag_json_text(j, "program", program);
    ag_json_u64(j, "pid", (uint64_t)id->pid);
    ag_json_text(j, "host", id->host);
    ag_json_u64(j, "start", id->start);
    ag_json_u64(j, "written", (uint64_t)now.tv_sec);
    ag_json_double(j, "seconds", seconds);
    ag_json_bool(j, "complete", in->last);
    ag_json_u64(j, "driver_version", in->driver_version < 0 ? 0 : (uint64_t)in->driver_version);
    ag_json_text(j, "mode", in->mode);
    ag_json_text(j, "off_reason", in->off_reason);
    ag_json_text(j, "log_trouble", ag_log_trouble());
}

static void put_options(struct ag_json *j, const struct ag_options *o)
{
    char value[AG_OPTION_PATH];
    size_t count;
    const struct ag_option_row *rows = ag_options_rows(&count);
    ag_json_object(j, "options");
    for (size_t i = 0; i < count; i++) {
        ag_json_text(j, rows[i].env, ag_options_value(o, &rows[i], value, sizeof value));
    }
    ag_json_end(j);
    ag_json_array(j, "options_given");
    for (size_t i = 0; i < count; i++) {
        if (o->given & 1u << i) {
            ag_json_text(j, NULL, rows[i].env);
        }
    }
    ag_json_end(j);
    ag_json_array(j, "option_problems");
    for (uint32_t i = 0; i < o->problem_count && i < AG_OPTION_PROBLEMS; i++) {
        ag_json_text(j, NULL, o->problems[i]);
    }
    ag_json_end(j);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

static void put_counters(struct ag_json *j, const struct ag_counters *c)
{
    ag_json_object(j, "counters");
#define AG_COUNTER(name, sentence) ag_json_u64(j, #name, ag_count_read(&c->name));
    AG_COUNTERS(AG_COUNTER)
#undef AG_COUNTER
    ag_json_end(j);

    uint64_t seen = ag_count_read(&c->launches_seen);
    uint64_t replayed = ag_count_read(&c->launches_replayed);
    ag_json_object(j, "shares");
    ag_json_double(j, "held", share(ag_count_read(&c->launches_held), seen));
    ag_json_double(j, "replayed", share(replayed, seen));
    ag_json_double(j, "patched", share(ag_count_read(&c->nodes_patched), replayed));
    ag_json_double(j, "launches_per_graph", share(replayed, ag_count_read(&c->graph_launches)));
    ag_json_end(j);
}

/* Reasons by falling count. The counters go on moving, so the order is that of one look at them. */
static void put_eager(struct ag_json *j, const struct ag_counters *c)
{
    uint64_t count[AG_REFUSALS];
    for (int r = 0; r < AG_REFUSALS; r++) {
        count[r] = ag_count_read(&c->eager[r]);
    }
    ag_json_array(j, "eager");
    for (;;) {
        int most = 0;
        for (int r = 1; r < AG_REFUSALS; r++) {
            most = count[r] > count[most] ? r : most;
        }
        if (count[most] == 0) {
            break;
        }
        ag_json_object(j, NULL);
        ag_json_text(j, "reason", ag_refusal_name((enum ag_refusal)most));
        ag_json_text(j, "sentence", ag_refusal_sentence((enum ag_refusal)most));
        ag_json_u64(j, "count", count[most]);
        ag_json_end(j);
        count[most] = 0;
    }
    ag_json_end(j);
}

static void put_rows(struct ag_json *j, const char *key, const struct ag_counters *c,
                     const ag_counter *values)
{
    ag_json_object(j, key);
    for (uint32_t i = 0; values != NULL && i < c->rows; i++) {
        uint64_t n = ag_count_read(&values[i]);
        if (n != 0) {
            ag_json_u64(j, c->names[i], n);
        }
    }
    ag_json_end(j);
}

static int write_file(const struct ag_stats_input *in)
{
    char path[AG_OPTION_PATH];
    struct ag_file file;
    struct ag_json j;
    int error = ag_file_expand(path, sizeof path, in->options->stats, in->identity);
    if (error == 0) {
        error = ag_file_create(&file, path);
    }
    if (error != 0) {
        return error;
    }
    ag_json_open(&j, &file.sink);
    ag_json_object(&j, NULL);
    ag_json_text(&j, "schema", "autograph-stats/1");
    put_process(&j, in);
    put_options(&j, in->options);
    put_counters(&j, in->counters);
    put_eager(&j, in->counters);
    put_rows(&j, "calls", in->counters, in->counters->calls);
    put_rows(&j, "drains", in->counters, in->counters->drains);
    ag_json_end(&j);
    ag_json_close(&j);
    /* A slow writer must not put its old numbers over the last ones, which did not wait for ever.
     * */
    if (!in->last && atomic_load(&the_stats.finished)) {
        ag_file_discard(&file);
        return 0;
    }
    return ag_file_commit(&file);
}

/* False: somebody else is writing, and this one need not be. */
static bool take_turn(bool last)
{
    int tries = last ? PATIENCE : 0;
    while (atomic_flag_test_and_set(&the_stats.busy)) {
        if (tries-- == 0) {
            return last;
        }
        ag_sys_sleep_us(PATIENCE_US);
    }
    return true;
}

int ag_stats_write(const struct ag_stats_input *in)
{
    if (in->options->stats[0] == '\0' || !ag_identity_is_ours(in->identity) ||
        !take_turn(in->last)) {
        return 0;
    }
    int saved = errno;
    bool finished =
        in->last ? atomic_exchange(&the_stats.finished, true) : atomic_load(&the_stats.finished);
    int error = finished ? 0 : write_file(in);
    atomic_flag_clear(&the_stats.busy);
    if (error != 0 && !atomic_exchange(&the_stats.told, true)) {
        ag_log(AG_LEVEL_WARN, "statistics: %.200s: %s (errno %d)", in->options->stats,
               ag_file_reason(error), error);
    }
    errno = saved;
    return error;
}
