#include <stdio.h>

enum { READ = 4, WRITE = 2, EXECUTE = 1 };

static int may(int mode, int wanted)
{
    return (mode & wanted) == wanted;
}

int main(void)
{
    const int rows[][3] = {
        {READ | WRITE, READ, 1},  {READ | WRITE, WRITE, 1}, {READ, WRITE, 0},
        {READ | EXECUTE, READ | WRITE, 0}, {7, READ | EXECUTE, 1}, {EXECUTE, READ, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (may(rows[i][0], rows[i][1]) != rows[i][2])
            return printf("may(%d, %d) is not %d\n", rows[i][0], rows[i][1], rows[i][2]), 1;
    return 0;
}
