#include <stdio.h>

/* Written here. */
static int square(int x)
{
    return x * x;
}

/* Taken from elsewhere, with its line ends. */
static int cube(int x)
{
    return x * x * x;
}

int main(void)
{
    if (square(3) != 9 || cube(3) != 27)
        return printf("%d %d\n", square(3), cube(3)), 1;
    return 0;
}
