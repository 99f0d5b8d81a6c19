#include <stdio.h>
#include "ring.h"

int main(void)
{
    struct ring ring = {0};
    int item = 0;
    for (int i = 1; i <= RING_SIZE; i++)
        if (!ring_push(&ring, i)) return puts("it is full too early"), 1;
    if (ring_push(&ring, 99)) return puts("a full ring took one more"), 1;
    for (int i = 1; i <= RING_SIZE; i++)
        if (!ring_pop(&ring, &item) || item != i) return printf("expected %d, found %d\n", i, item), 1;
    return ring_pop(&ring, &item);
}
