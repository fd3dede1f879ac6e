/* tests/differential/program.c - runs random CUDA programs and writes down what they could observe.
 * Called by  runner.cc, or by hand on a GPU machine      Calls  run.c, plan.c
 * Threads    the parent has one; each program runs in a child of its own, made before the driver was touched
 * Promise    SEED.out depends on the seed and the filter alone, if CUDA keeps its promises; SEED.exp is what the
 *            device was asked to do; a program that hangs or dies shows in the status line and harms no other
 * Start at   main()
 *
 * program --seeds A-B [--dir DIR] [--drop ID,ID-ID..] [--drop-tracks MASK] [--cap N]
 *         [--plain-threads] [--no-faults] [--limit SECONDS]
 * Without --dir the observables go to standard output. Each child sets the AUTOGRAPH and SIMCUDA variables that its
 * seed asks for, unless they are set already. */
#define _GNU_SOURCE
#include "tests/differential/state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    const char *dir;
    uint64_t first, last;
    struct df_filter filter;
    bool faults;
    unsigned limit;
};

static struct df_run run;
static struct df_plan plan;

static void drop(struct df_filter *filter, const char *list)
{
    while (*list) {
        char *end;
        unsigned long a = strtoul(list, &end, 10), b = a;
        if (*end == '-')
            b = strtoul(end + 1, &end, 10);
        for (; a <= b && a < DF_MAX_ACTIONS; a++)
            filter->dropped[a / 32] |= 1u << (a % 32);
        list = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return;
    }
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--no-faults")) {
            o->faults = false;
            continue;
        }
        if (!strcmp(argv[i], "--plain-threads")) {
            o->filter.plain_threads = true;
            continue;
        }
        i++;
        if (!strcmp(argv[i - 1], "--dir"))
            o->dir = next;
        else if (!strcmp(argv[i - 1], "--drop"))
            drop(&o->filter, next);
        else if (!strcmp(argv[i - 1], "--drop-tracks"))
            o->filter.drop_tracks = (uint32_t)strtoul(next, NULL, 0);
        else if (!strcmp(argv[i - 1], "--cap"))
            o->filter.cap = (uint32_t)strtoul(next, NULL, 0);
        else if (!strcmp(argv[i - 1], "--limit"))
            o->limit = (unsigned)strtoul(next, NULL, 0);
        else if (!strcmp(argv[i - 1], "--seeds"))
            o->last = sscanf(next, "%lu-%lu", &o->first, &o->last) == 2 ? o->last : o->first;
        else
            return false;
    }
    return o->first <= o->last;
}

static void on_alarm(int signal)
{
    char text[160];
    (void)signal;
    int n =
        snprintf(text, sizeof text, "seed %llu hangs at %u %u %u %u (action * 1000 + iteration)\n",
                 (unsigned long long)plan.seed, run.at[0], run.at[1], run.at[2], run.at[3]);
    if (write(2, text, (size_t)n) < 0)
        _exit(125);
    _exit(124);
}

static void set(const char *name, const char *value)
{
    if (*value)
        setenv(name, value, 0);
}

static void write_texts(const struct options *o, uint64_t seed)
{
    char out[4096], exp[4096];
    snprintf(out, sizeof out, "%s/%llu.out", o->dir ? o->dir : "", (unsigned long long)seed);
    snprintf(exp, sizeof exp, "%s/%llu.exp", o->dir ? o->dir : "", (unsigned long long)seed);
    FILE *said = o->dir ? fopen(out, "ab") : stdout, *expected = o->dir ? fopen(exp, "ab") : NULL;
    for (int t = 0; t < DF_MAX_TRACKS; t++) {
        if (said && run.said[t].used)
            fwrite(run.said[t].data, 1, run.said[t].used, said);
        if (expected && run.expected[t].used) {
            fprintf(expected, "track %d\n", t);
            fwrite(run.expected[t].data, 1, run.expected[t].used, expected);
        }
    }
    if (expected) {
        fprintf(expected, "ops %llu\nkinds", (unsigned long long)atomic_load(&run.ops));
        for (int k = 0; k < DF_KINDS; k++)
            fprintf(expected, " %u", atomic_load(&run.kinds[k]));
        fprintf(expected, "\n");
        fclose(expected);
    }
    if (said && o->dir)
        fclose(said);
}

static int child(const struct options *o, uint64_t seed)
{
    struct df_setting setting;
    char log[4096];
    df_setting_make(seed, &setting);
    set("AUTOGRAPH_MIN_SEEN", setting.min_seen);
    set("AUTOGRAPH_FLUSH_US", setting.flush_us);
    set("AUTOGRAPH_MAX_SEGMENT", setting.max_segment);
    set("AUTOGRAPH_MAX_BYTES", setting.max_bytes);
    set("AUTOGRAPH_PACE", setting.pace);
    if (o->faults)
        set("SIMCUDA_FAULT", setting.fault_text);
    if (o->dir) {
        snprintf(log, sizeof log, "%s/%llu.log", o->dir, (unsigned long long)seed);
        set("SIMCUDA_LOG", log);
        set("SIMCUDA_LOG_ENDS", "1"); /* the judge asks what was over when something began */
        if (o->faults && setting.fault == DF_LAUNCH_FAULT)
            set("SIMCUDA_LOG_CALLS", "1"); /* the judge counts the faults that fired */
    }
    signal(SIGALRM, on_alarm);
    alarm(o->limit);
    for (uint32_t e = 0; e < setting.episodes; e++) {
        uint64_t clock =
            atomic_load(&run.clock); /* goes on: the judge sees one sequence of calls */
        memset(&run, 0, sizeof run);
        atomic_store(&run.clock, clock);
        run.plan = &plan;
        run.episode = e;
        run.patience = o->faults && setting.fault >= DF_LAUNCH_FAULT ? 1 : (long)o->limit / 2;
        df_plan_make(seed + e * 0x100000000ull, &plan);
        df_plan_filter(&plan, &o->filter);
        df_run_plan(&run);
        write_texts(o, seed);
        for (int t = 0; t < DF_MAX_TRACKS; t++) {
            free(run.said[t].data);
            free(run.expected[t].data);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.faults = true, .limit = 30, .first = 1, .last = 0};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: program --seeds A-B [--dir DIR] ...\n");
        return 2;
    }
    for (uint64_t seed = o.first; seed <= o.last; seed++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            int ret = child(&o, seed);
            fflush(stdout);
            exit(ret); /* with what the driver and the shim do at exit */
        }
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return 2;
        printf("seed %llu status %d\n", (unsigned long long)seed,
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return 0;
}
