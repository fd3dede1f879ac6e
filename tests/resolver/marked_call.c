/* tests/resolver/marked_call.c - see marked_call.h. */
#include "tests/resolver/marked_call.h"
#include <stdio.h>
#include <string.h>

/* Integer marks are pointers into pages of zeros, because a hook may follow a pointer: their bytes
 * all differ. */
static char pages[FAKE_ARGS][1 << 16] __attribute__((aligned(1 << 16)));

typedef int (*marked_fn)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                         void *, void *, double, double, double, double, double, double, double,
                         double);

static double float_mark(int index)
{
    return 0.5 + index;
}

/* A pointer that no other argument shares: another page, another place in it. */
static void *mark(int index)
{
    return pages[index] + 64 * (index + 1);
}

static int call_marked(void *function)
{
    return ((marked_fn)function)(mark(0), mark(1), mark(2), mark(3), mark(4), mark(5), mark(6),
                                 mark(7), mark(8), mark(9), mark(10), float_mark(0), float_mark(1),
                                 float_mark(2), float_mark(3), float_mark(4), float_mark(5),
                                 float_mark(6), float_mark(7));
}

static int low_bytes_equal(uint64_t a, uint64_t b)
{
    int bytes = 0;
    while (bytes < 8 && (a >> 8 * bytes & 0xff) == (b >> 8 * bytes & 0xff))
        bytes++;
    return bytes;
}

static int is_marked(const struct fake_call *call)
{
    return low_bytes_equal(call->with.args[0], (uint64_t)(uintptr_t)mark(0)) >= 4;
}

static void report_arrival(const struct fake_call *call)
{
    fputs(" ints ", stdout);
    for (int i = 0; i < FAKE_ARGS; i++)
        printf("%d", low_bytes_equal(call->with.args[i], (uint64_t)(uintptr_t)mark(i)));
    fputs(" floats ", stdout);
    for (int i = 0; i < 8; i++)
        printf("%d", call->with.floats[i] == float_mark(i));
}

void marked_call_report(const struct fake_api *fake, const char *name, void *function)
{
    const unsigned before = fake->calls();
    const int result = call_marked(function);
    printf("%s answer %d", name, result);
    for (unsigned i = before; i < fake->calls(); i++) {
        const struct fake_call *call = fake->call(i);
        printf(" | %s", fake->names[call->row]);
        if (is_marked(call))
            report_arrival(call);
    }
    putchar('\n');
}
