#include "ring.h"

bool ring_push(struct ring *ring, int item)
{
    if (ring->count >= RING_SIZE)
        return false;
    ring->items[(ring->head + ring->count) % RING_SIZE] = item;
    ring->count++;
    return true;
}

bool ring_pop(struct ring *ring, int *item)
{
    if (ring->count == 0)
        return false;
    *item = ring->items[ring->head];
    ring->head = (ring->head + 1) % RING_SIZE;
    ring->count--;
    return true;
}
