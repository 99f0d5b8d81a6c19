#include "clamp.h"

int clamp(int value, int low, int high) {
    if (value > high) return high;
    return value;
}
