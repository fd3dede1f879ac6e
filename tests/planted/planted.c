/* tests/planted/planted.c - one bug for each sanitizer; prove.sh shows that each catches its own.
 * The argument says which: asan, ubsan, tsan, or none for a clean run.                          */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;

static int use_after_free(int i)
{
    int *volatile p = malloc(4 * sizeof *p);
    if (!p)
        return 2;
    p[i] = 1;
    free(p);
    return p[i] == 12345;
}

static int overflow(int i)
{
    int x = INT_MAX;
    x += i;
    return printf("%d\n", x) < 0;
}

static void *increment(void *unused)
{
    shared++;
    return unused;
}

static int race(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, increment, NULL))
        return 2;
    shared++;
    pthread_join(t, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "asan"))
        return use_after_free(argc - 1);
    if (!strcmp(what, "ubsan"))
        return overflow(argc - 1);
    if (!strcmp(what, "tsan"))
        return race();
    return strcmp(what, "none") ? 2 : 0;
}
