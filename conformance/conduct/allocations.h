/*
 * How often this thread has allocated memory.  With glibc the program has malloc() and its like
 * itself, which count and hand on to those of the library: a plug-in's calls come here, too.  A
 * sanitizer, which has its own, tells of each.
 */
#ifndef POSENC_ALLOCATIONS_H
#define POSENC_ALLOCATIONS_H

#include <stddef.h>

struct allocations {
    unsigned long made, freed; /* blocks of the heap */
    unsigned long mapped, unmapped;
    size_t bytes;    /* of all that was made or mapped */
    const void *end; /* of the heap's segment, which brk() moves */
};

/* Since the thread began. */
struct allocations allocations_now(void);

/* Why they cannot be seen here; NULL: they are. */
const char *allocations_unseen(void);

#endif
