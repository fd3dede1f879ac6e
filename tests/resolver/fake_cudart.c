/* tests/resolver/fake_cudart.c - see fake_cudart.h: one dlopen, one dlsym, then 440 questions. */
#include "tests/resolver/fake_cudart.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*ask_fn)(const char *, void **, int, uint64_t, int *);

static const struct {
    const char *name;
    int version, flags;
} questions[] = {
#define FAKE_ASK(name, version, flags) {name, version, flags},
#include "tests/resolver/fake_cudart.def"
#undef FAKE_ASK
};
_Static_assert(sizeof questions / sizeof *questions == FAKECUDART_ASKS, "the recorded pattern");

int fakecudart_start(struct fakecudart *out)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 1;
    ask_fn ask = (ask_fn)dlsym(driver, "cuGetProcAddress_v2");
    out->by_name = ask == NULL;
    for (int i = 0; i < FAKECUDART_ASKS; i++) {
        out->name[i] = questions[i].name;
        out->version[i] = questions[i].version;
        out->flags[i] = questions[i].flags;
        out->address[i] = NULL;
        if (ask) {
            out->status[i] = ask(questions[i].name, &out->address[i], questions[i].version,
                                 (uint64_t)questions[i].flags, NULL);
        } else {
            out->address[i] = dlsym(driver, questions[i].name);
            out->status[i] = out->address[i] ? 0 : 500;
        }
    }
    return 0;
}
