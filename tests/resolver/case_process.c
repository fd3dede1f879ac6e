/* tests/resolver/case_process.c - life of the process: threads, libraries that come and go, fork,
 * exec; see cases.h. */
#define _GNU_SOURCE
#include "tests/resolver/cases.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *folder)
{
    DIR *const d = opendir(folder);
    int n = 0;
    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Mapped files (first lines of their mappings) and how many mappings have no file. */
static void say_mappings(void)
{
    char line[1024], last[1024] = "";
    int anonymous = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *const path = strchr(line, '/');
        if (!path && !strchr(line, '['))
            anonymous++;
        if (!path || strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        say_shim("file %.*s", (int)strcspn(path, "\n"), path);
    }
    if (maps)
        fclose(maps);
    say_shim("anonymous %d", anonymous);
}

/* A process that never has a driver: what the preload may have done to it. */
static int inert(int argc, char **argv)
{
    (void)argc, (void)argv;
    say("threads %d", entries("/proc/self/task"));
    say("files %d", entries("/proc/self/fd"));
    say("cuInit by default: %s", home_of(dlsym(RTLD_DEFAULT, "cuInit")));
    say("dlerror %s", dlerror() ? "set" : "none");
    say("threads %d", entries("/proc/self/task"));
    say("files %d", entries("/proc/self/fd"));
    say_mappings();
    return 0;
}

/* With the shim only: RTLD_NEXT finds its exports though there is no driver. Each answers "no
 * driver", changes nothing, and works as soon as a driver has come. */
static int no_driver(int argc, char **argv)
{
    int answered = 0, dirty = 0;
    (void)argc, (void)argv;
    for (int row = 0; row < FAKE_KNOWN; row++) {
        void *const function = dlsym(RTLD_NEXT, known_name(row));
        const int result = function ? call_eleven(function) : -1;
        if (result == 34)
            answered++;
        else
            say_shim("%s answers %d", known_name(row), result);
    }
    for (size_t i = 0; i < sizeof argument_page; i++)
        dirty += ((const char *)argument_page)[i] != 0;
    say_shim("%d of %d answer 34, %d bytes written", answered, FAKE_KNOWN, dirty);
    say_shim("threads %d", entries("/proc/self/task"));
    void *const early = dlsym(RTLD_NEXT, "cuInit");
    const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    say_shim("later cuInit reaches %s", early ? reached(d.fake, early) : "nothing");
    say_found("cuInit", d.fake, dlsym(d.handle, "cuInit"));
    return 0;
}

static pthread_barrier_t start_line;
static struct driver shared;
static atomic_int wrong;

static void *cold_start(void *argument)
{
    const long number = (long)argument;
    int (*ask)(const char *, void **, int, uint64_t, int *);
    void *found = NULL;
    int status = 0;
    pthread_barrier_wait(&start_line);
    if (number % 3 == 0)
        found = dlsym(shared.handle, "cuMemAlloc_v2");
    else if (number % 3 == 1)
        found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    ask = (int (*)(const char *, void **, int, uint64_t, int *))dlsym(shared.handle,
                                                                      "cuGetProcAddress_v2");
    if (!found)
        ask("cuMemAlloc", &found, 12000, 0, &status);
    for (int i = 0; i < 100; i++) {
        void *again = NULL;
        if (call_eleven(found) != FAKE_FIRST_RESULT + FAKE_cuMemAlloc_v2)
            atomic_fetch_add(&wrong, 1);
        if (ask("cuMemAlloc", &again, 12000, 0, &status) != 0 || again != found || status != 0)
            atomic_fetch_add(&wrong, 1);
        char name[32];
        snprintf(name, sizeof name, "cuFutureOp%ld", 2 + (number * 7 + i) % 40);
        void *const future = dlsym(shared.handle, name);
        if (call_eleven(future) < FAKE_FIRST_RESULT + FAKE_KNOWN)
            atomic_fetch_add(&wrong, 1);
    }
    return found;
}

/* Sixteen threads are the first to use the driver, at the same moment, by three routes. */
static int threads(int argc, char **argv)
{
    pthread_t thread[16];
    void *got[16];
    bool same = true;
    (void)argc, (void)argv;
    shared = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    pthread_barrier_init(&start_line, NULL, 16);
    for (long i = 0; i < 16; i++)
        if (pthread_create(&thread[i], NULL, cold_start, (void *)i) != 0)
            return 4;
    for (int i = 0; i < 16; i++)
        pthread_join(thread[i], &got[i]);
    for (int i = 1; i < 16; i++)
        same = same && got[i] == got[0];
    int calls = 0;
    for (unsigned i = 0; i < shared.fake->calls(); i++)
        calls += shared.fake->call(i)->row == FAKE_cuMemAlloc_v2;
    say("%d wrong, %d calls arrived, %s", atomic_load(&wrong), calls,
        same ? "one address" : "several addresses");
    return 0;
}

/* Puts something in the place where libcuda was, so that a stale pointer cannot hit the same code
 * again. */
static void *occupy(void *base)
{
    return mmap(base, 1 << 17, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* The driver leaves and comes back somewhere else. */
static int reopen(int argc, char **argv)
{
    const char *const library =
        argc > 1 ? argv[1] : NULL; /* a user of libcuda instead of libcuda itself */
    for (int round = 0; round < 3; round++) {
        void *const user = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
        const struct driver d = driver_open(NULL, RTLD_NOW | RTLD_LOCAL);
        Dl_info info;
        if (!dladdr(d.fake, &info))
            return 4;
        void *const base = info.dli_fbase;
        if (library)
            say("its call %d", ((int (*)(void))dlsym(user, "plugin_call"))());
        say_found("cuInit", d.fake, dlsym(d.handle, "cuInit"));
        say_found("cuMemAlloc_v2", d.fake, dlsym(d.handle, "cuMemAlloc_v2"));
        say_found("cuCtxGetDevice", d.fake, dlsym(d.handle, "cuCtxGetDevice"));
        say_found("cuFutureOp", d.fake, dlsym(d.handle, "cuFutureOp"));
        int (*const ask)(const char *, void **, int, uint64_t, int *) =
            (int (*)(const char *, void **, int, uint64_t, int *))dlsym(d.handle,
                                                                        "cuGetProcAddress_v2");
        void *found = NULL;
        say("look-up %d", ask("cuLaunchKernel", &found, 12000, 0, NULL));
        say_found("cuLaunchKernel", d.fake, found);
        say("dlclose %d", dlclose(d.handle));
        if (user)
            say("dlclose %d", dlclose(user));
        say_shim("its place is %s", occupy(base) == base ? "taken" : "still in use");
    }
    return 0;
}

/* A second copy of the driver in a name space of its own: passed through. */
static int name_space(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    void *const other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    say("dlmopen: %s", other ? "opened" : "refused");
    if (!other)
        return 0;
    const struct fake_api *(*const api)(void) =
        (const struct fake_api *(*)(void))dlsym(other, "fake_api");
    void *const theirs = dlsym(other, "cuMemAlloc_v2");
    say("its cuMemAlloc_v2: %s", reached(api(), theirs));
    say_dlerror("its cuMemAlloc_v2");
    say_shim("its cuMemAlloc_v2 %s", home_of(theirs));
    say_found("ours", d.fake, dlsym(d.handle, "cuMemAlloc_v2"));
    return 0;
}

/* A plugin opened with RTLD_DEEPBIND sees its own libcuda first: the call by-passes the shim, and
 * still works. */
static int deep_bind(int argc, char **argv)
{
    void *const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    if (!plugin)
        return 4;
    const struct driver d = driver_open(NULL, RTLD_NOW);
    say("its call %d", ((int (*)(void))dlsym(plugin, "plugin_call"))());
    say_found("through its handle", d.fake, dlsym(plugin, "cuInit"));
    return 0;
}

/* Runs `body` in a child; says how it ended. A child that hangs is ended by its own alarm. */
static bool in_child(const char *label, void (*body)(const struct driver *), const struct driver *d)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(5);
        body(d);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    say("%s: %s %d", label, WIFSIGNALED(status) ? "signal" : "status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return status == 0;
}

static void child_uses_driver(const struct driver *d)
{
    int status = -1;
    void *found = NULL;
    int (*const ask)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(d->handle,
                                                                    "cuGetProcAddress_v2");
    say("in the child: look-up %d", ask("cuStreamSynchronize", &found, 12000, 0, &status));
    say("in the child: %s", reached(d->fake, found));
    for (int row = 0; row < FAKE_KNOWN; row += 13)
        say("in the child: %s", reached(d->fake, dlsym(d->handle, known_name(row))));
    say("in the child: cuFutureOp %s", reached(d->fake, dlsym(d->handle, "cuFutureOp")));
    say("in the child: threads %d", entries("/proc/self/task"));
}

static void child_opens_driver(const struct driver *d)
{
    const struct driver own = driver_open(NULL, RTLD_NOW);
    (void)d;
    child_uses_driver(&own);
}

static int fork_before_driver(int argc, char **argv)
{
    (void)argc, (void)argv;
    in_child("child", child_opens_driver, NULL);
    const struct driver d = driver_open(NULL, RTLD_NOW);
    say_found("in the parent", d.fake, dlsym(d.handle, "cuInit"));
    return 0;
}

static int fork_after_driver(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    void *const init = dlsym(d.handle, "cuInit");
    say("parent: %s", reached(d.fake, init));
    in_child("child", child_uses_driver, &d);
    say("parent: %s", reached(d.fake, init));
    return 0;
}

static atomic_bool stop;

static void *keep_calling(void *argument)
{
    const long number = (long)argument;
    char name[32];
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        snprintf(name, sizeof name, "cuFutureOp%u", 2 + i % 40);
        call_eleven(dlsym(shared.handle, number ? known_name((int)(i % FAKE_KNOWN)) : name));
        dlsym(RTLD_DEFAULT, "cuInit");
        shared.fake->forget();
    }
    return NULL;
}

static void child_calls(const struct driver *d)
{
    dlsym(RTLD_DEFAULT, "cuInit");
    if (call_eleven(dlsym(d->handle, "cuMemAlloc_v2")) != FAKE_FIRST_RESULT + FAKE_cuMemAlloc_v2)
        _exit(1);
    call_eleven(dlsym(d->handle, "cuFutureOp3"));
    call_eleven(dlsym(d->handle, "cuStreamSynchronize"));
    call_eleven(dlsym(d->handle, "cuLaunchKernel"));
}

/* Other threads hold whatever locks there are while the process forks: no child may wait for one
 * of them. Only the driver itself is asked to be safe here, and the fake one takes no lock. */
static int fork_while_busy(int argc, char **argv)
{
    pthread_t thread[3];
    (void)argc, (void)argv;
    shared = driver_open(NULL, RTLD_NOW | RTLD_GLOBAL);
    for (long i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, keep_calling, (void *)i) != 0)
            return 4;
    for (int i = 0; i < 300 && in_child("child", child_calls, &shared); i++)
        ;
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

static void child_exits(const struct driver *d)
{
    call_eleven(dlsym(d->handle, "cuInit"));
    exit(0);
}

/* A child that ends in the ordinary way: what the shim does at exit is the parent's to do. */
static int fork_and_exit(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    (void)argc, (void)argv;
    call_eleven(dlsym(d.handle, "cuInit"));
    in_child("child", child_exits, &d);
    say_shim("pid %d", (int)getpid());
    return 0;
}

/* exec of another program while the driver is in use. */
static int exec_program(int argc, char **argv)
{
    const struct driver d = driver_open(NULL, RTLD_NOW);
    call_eleven(dlsym(d.handle, "cuInit"));
    if (argc < 2)
        return 2;
    fflush(stdout);
    execv(argv[1], argv + 1);
    return 4;
}

const struct test_case process_cases[] = {
    {"inert", inert},
    {"no-driver", no_driver},
    {"threads", threads},
    {"reopen", reopen},
    {"name-space", name_space},
    {"deep-bind", deep_bind},
    {"fork-before-driver", fork_before_driver},
    {"fork-after-driver", fork_after_driver},
    {"fork-while-busy", fork_while_busy},
    {"fork-and-exit", fork_and_exit},
    {"exec", exec_program},
    {NULL, NULL},
};
