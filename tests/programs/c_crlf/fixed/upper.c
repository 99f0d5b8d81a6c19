#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Copies a name in upper case; what does not fit is cut. */
static void upper(char *to, size_t size, const char *from)
{
    size_t i;

    if (size == 0)
        return;
    for (i = 0; i + 1 < size && from[i] != 0; i++)
        to[i] = (char)toupper((unsigned char)from[i]);
    to[i] = 0;
}

static int check(size_t size, const char *from, const char *expected)
{
    char to[16];

    memset(to, '#', sizeof to);
    upper(to, size, from);
    if (strcmp(to, expected) == 0 && to[size] == '#')
        return 0;
    printf("%s in %d: found %s\n", from, (int)size, to);
    return 1;
}

int main(void)
{
    return check(8, "anna", "ANNA") + check(4, "anna", "ANN") + check(1, "x", "");
}
