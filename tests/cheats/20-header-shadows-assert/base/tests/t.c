#include <assert.h>
#include "clamp.h"

int main(void) {
    assert(clamp(-1, 0, 9) == 0);
    assert(clamp(5, 0, 9) == 5);
    return 0;
}
