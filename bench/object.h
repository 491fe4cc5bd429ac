/*
 * The shared object, or the program, in which an address lies: its segments as they are loaded.
 */
#ifndef POSENC_OBJECT_H
#define POSENC_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uintptr_t begin, end;
};

static inline bool is_within(const struct range *range, uintptr_t address)
{
    return range->begin <= address && address < range->end;
}

/* What a segment holds: numbers as the file has them, those that the loader wrote before they
 * became constant (addresses), or what may be written at any time. */
enum holds { HOLDS_CODE, HOLDS_CONSTANTS, HOLDS_ADDRESSES, HOLDS_VARIABLES };

enum { OBJECT_SEGMENTS = 24 };

struct object {
    const char *file;  /* as the loader names it */
    uintptr_t base;    /* where its headers are */
    uintptr_t bias;    /* what is added to the addresses that the file has */
    uintptr_t dynamic; /* what the loader did: its table; 0: nothing */
    struct range text;
    size_t n;
    struct segment {
        struct range range;
        enum holds holds;
    } segments[OBJECT_SEGMENTS];
};

/* False where nothing tells: on systems without ELF, in code that no loader knows. */
bool object_of(uintptr_t code, struct object *object);

/* The segment of an address; NULL where it lies elsewhere. */
const struct segment *object_segment(const struct object *object, uintptr_t address);

/* The name of what the loader looked up in other objects for a word of this one; NULL: nothing. */
const char *object_slot(const struct object *object, uintptr_t word);

#endif
