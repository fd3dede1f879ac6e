/* tests/resolver/case_cudart.c - a program with NVIDIA's own runtime, linked statically: prints
 * what it asked the (fake) driver for, in the form of fake_cudart.def. The runtime gives up
 * afterwards, the fake driver being none.
 * Called by  the test       Calls  cudaGetDeviceCount       Threads  one */
#include "tests/resolver/fake_libcuda.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaGetDeviceCount(int *count);

int main(void)
{
    void *const driver =
        dlopen("libcuda.so.1", RTLD_NOW); /* keeps the log when the runtime closes it */
    const struct fake_api *(*const api)(void) =
        driver ? (const struct fake_api *(*)(void))dlsym(driver, "fake_api") : NULL;
    int count = 0;
    if (!api)
        return 3;
    if (cudaGetDeviceCount(&count) == 0)
        return 4;
    for (unsigned i = 0; i < api()->calls(); i++) {
        const struct fake_call *call = api()->call(i);
        if (call->row == FAKE_cuGetProcAddress_v2)
            printf("FAKE_ASK(\"%s\", %d, %d)\n", (const char *)call->with.args[0],
                   (int)call->with.args[2], (int)call->with.args[3]);
    }
    return 0;
}
