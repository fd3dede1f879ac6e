/* tests/resolver/plugin.h - what the libraries of the test export beside cu* names; case programs
 * dlsym these.
 * Called by  case programs       Calls  dlsym, and the driver where the library is linked with it
 * Threads    one */
#ifndef AG_TESTS_RESOLVER_PLUGIN_H
#define AG_TESTS_RESOLVER_PLUGIN_H

enum {
    FOREIGN_CUINIT = 4711, /* answers of plugin_foreign.c */
    FOREIGN_CUDNN = 4712,
    FOREIGN_CUTE = 4713,
};

/* dlsym as this library calls it: RTLD_NEXT and RTLD_DEFAULT mean something else for each caller.
 * */
void *plugin_dlsym(void *handle, const char *name);
/* Calls cuInit as the library's own binding has it. */
int plugin_call(void);
/* plugin_constructor.c: what its constructor met. */
struct plugin_seen {
    void *by_default, *by_handle;
    int call, linked_call;
    char error[512];
};
const struct plugin_seen *plugin_seen(void);

#endif
