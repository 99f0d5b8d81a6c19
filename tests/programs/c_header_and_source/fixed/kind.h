#ifndef KIND_H
#define KIND_H

enum kind { CIRCLE, SQUARE, TRIANGLE };

#define KINDS 3

const char *kind_name(enum kind kind);
#endif
