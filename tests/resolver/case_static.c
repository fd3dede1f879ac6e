/* tests/resolver/case_static.c - a static program: the loader, and so the preload, never sees it.
 * */
#include <stdio.h>

int main(void)
{
    puts("static and well");
    return 7;
}
