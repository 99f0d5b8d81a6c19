#include <stdio.h>
#include <string.h>
#include "kind.h"

int main(void)
{
    if (KINDS != 3 || strcmp(kind_name((enum kind)2), "triangle") != 0)
        return printf("kind 2 is %s\n", kind_name((enum kind)2)), 1;
    return strcmp(kind_name((enum kind)3), "unknown") != 0 || strcmp(kind_name(SQUARE), "square") != 0;
}
