/* tests/resolver/case_newer.c - a program newer than the shim: it binds a function that the table
 * lacks.
 * Called by  the test       Calls  cuInit, cuFutureOp       Threads  one */
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuFutureOp(void *stream);

int main(void)
{
    printf("cuInit %d\n", cuInit(0));
    printf("cuFutureOp %d\n", cuFutureOp(NULL));
    printf("cuInit %d\n", cuInit(0));
    return 0;
}
