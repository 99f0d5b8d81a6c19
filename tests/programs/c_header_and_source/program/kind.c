#include "kind.h"

static const char *const NAMES[KINDS] = {
    [CIRCLE] = "circle",
    [SQUARE] = "square",
};

const char *kind_name(enum kind kind)
{
    return (unsigned)kind < KINDS ? NAMES[kind] : "unknown";
}
