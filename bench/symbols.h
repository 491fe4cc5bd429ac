/*
 * Where the functions and the data of an ELF file begin and end, by its table of symbols.
 */
#ifndef POSENC_SYMBOLS_H
#define POSENC_SYMBOLS_H

#include "object.h"

struct symbol {
    struct range range; /* as the file has it */
    const char *name;
};

struct symbols {
    size_t n;
    struct symbol *list; /* in order */
    char *names;
};

/* None where the file cannot be read or was stripped of them. */
struct symbols symbols_read(const char *path);
void symbols_free(struct symbols *symbols);

/* The largest that an address, as the file has it, lies in; NULL: none is known. */
const struct symbol *symbols_find(const struct symbols *symbols, uintptr_t address);

#endif
