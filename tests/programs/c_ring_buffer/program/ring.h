#ifndef RING_H
#define RING_H
#include <stdbool.h>
#include <stddef.h>

#define RING_SIZE 4

struct ring {
    int items[RING_SIZE];
    size_t head;
    size_t count;
};

bool ring_push(struct ring *ring, int item);
bool ring_pop(struct ring *ring, int *item);
#endif
