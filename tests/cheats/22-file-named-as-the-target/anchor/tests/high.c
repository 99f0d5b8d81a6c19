#include <assert.h>
#include "clamp.h"

int main(void) {
    assert(clamp(12, 0, 9) == 9);
    return 0;
}
