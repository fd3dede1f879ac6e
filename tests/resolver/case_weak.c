/* tests/resolver/case_weak.c - a program with weak references to driver functions that runs
 * without any driver.
 * Called by  the test       Calls  the references that are not NULL       Threads  one */
#include <stdio.h>

int cuInit(unsigned flags) __attribute__((weak));
int cuDeviceGetCount(int *count) __attribute__((weak));
int cuNoSuchFunction(void) __attribute__((weak));

int main(void)
{
    int count = -7;
    const int init = cuInit ? cuInit(0) : 34;
    const int devices = cuDeviceGetCount ? cuDeviceGetCount(&count) : 34;
    printf("cuInit %d, cuDeviceGetCount %d, count %d\n", init, devices, count);
    printf("cuNoSuchFunction %s\n", cuNoSuchFunction ? "there" : "not there");
    return init == 0 || devices == 0;
}
