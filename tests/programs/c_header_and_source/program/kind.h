#ifndef KIND_H
#define KIND_H

enum kind { CIRCLE, SQUARE };

#define KINDS 2

const char *kind_name(enum kind kind);
#endif
