/* The mappings that hold the buffers of a call, shared by guard.c and guard_memory.c. */
#ifndef POSENC_GUARD_SLOTS_H
#define POSENC_GUARD_SLOTS_H

#include "guard.h"

/* Width in bytes of the pattern around a buffer. A write farther out than this faults on the guard
 * page when the buffer lies at the other end. */
enum { SLOTS = LAYOUTS, RED_ZONE = 1024 };

/* Bytes that hold the pattern or an element. */
struct region {
    char *from, *to;
};

/* A mapping [margin][capacity][margin] whose margins are inaccessible. A dense slot has one region
 * and is reused by later calls. In a sparse one only the regions are accessible. */
struct slot {
    char *map;
    size_t capacity, margin;
    char *data; /* NULL: unused */
    size_t bytes;
    struct region *regions; /* the buffer and the pattern around it; or pages of rows */
    size_t n, room;
    unsigned char *shadow; /* contents of the regions before the call, concatenated */
    size_t shadow_room;
    char role;
    bool sealed, sparse;
};

struct guard {
    enum guard_mode mode;
    size_t page;
    unsigned char pattern[RED_ZONE];
    struct slot slots[SLOTS];
};

/* for (EACH_SLOT(s, guard)) visits no slot if guard is NULL. */
#define EACH_SLOT(s, guard)                                                                    \
    struct slot *s = (guard) ? (guard)->slots : NULL;                                          \
    s != NULL &&s < (guard)->slots + SLOTS;                                                    \
    s++
#define EACH_REGION(r, slot)                                                                   \
    struct region *r = (slot)->regions;                                                        \
    r < (slot)->regions + (slot)->n;                                                           \
    r++

/* Returns the size of the mapping, margins included. */
size_t slot_size(const struct slot *slot);
/* Returns the region that holds a byte, or NULL. */
struct region *region_of(const struct slot *slot, const char *at);

#endif
