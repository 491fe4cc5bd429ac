/*
 * What guard.c and guard_memory.c share: the mappings that buffers of a call lie in.
 */
#ifndef POSENC_GUARD_SLOTS_H
#define POSENC_GUARD_SLOTS_H

#include "guard.h"

/* What lies farther out than the red zone a page that faults guards, at the other end. */
enum { SLOTS = LAYOUTS, RED_ZONE = 1024 };

/* Bytes that hold the pattern or an element, from `from` up to `to`. */
struct region {
    char *from, *to;
};

/* A mapping [margin][capacity][margin], of whose margins any touch faults.  One with a single
 * region is used again by call after call; of one that is `sparse` only the regions are there. */
struct slot {
    char *map;
    size_t capacity, margin;
    char *data; /* NULL: no buffer */
    size_t bytes;
    struct region *regions; /* a buffer and the red zones around it; or pages of rows */
    size_t n, room;
    unsigned char *shadow; /* what they held before the call, one after the other */
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

/* for (EACH_SLOT(s, guard)): none of them where there is no guard. */
#define EACH_SLOT(s, guard)                                                                    \
    struct slot *s = (guard) ? (guard)->slots : NULL;                                          \
    s != NULL &&s < (guard)->slots + SLOTS;                                                    \
    s++
#define EACH_REGION(r, slot)                                                                   \
    struct region *r = (slot)->regions;                                                        \
    r < (slot)->regions + (slot)->n;                                                           \
    r++

/* Its size, margins included; the region of a byte, NULL where it is in none. */
size_t slot_size(const struct slot *slot);
struct region *region_of(const struct slot *slot, const char *at);

#endif
