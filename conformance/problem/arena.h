/*
 * Memory that is taken in pieces and freed at once, and address space of which little is used: tensors whose
 * rows lie gigabytes apart, and tables of millions of rows of which a call reads a few.
 */
#ifndef POSENC_ARENA_H
#define POSENC_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* ---- Arenas ---- */

struct arena {
    struct arena_piece *last;
};

/* Zeroed, aligned for any number; NULL when there is none. */
void *arena_get(struct arena *arena, size_t bytes);
/* A copy of n characters, with a NUL after them. */
char *arena_text(struct arena *arena, const char *text, size_t n);
/* Room for one more after n elements, doubled as it fills: the array, or a copy of it; NULL
 * when there is no memory. */
void *arena_grow(struct arena *arena, void *array, size_t n, size_t *room, size_t size);
void arena_free(struct arena *arena);

/* ---- Reserved address space ---- */

/* What is so large is not allocated but reserved. */
#define RESERVE_FROM ((size_t)1 << 26)

/* Bytes that read as zeros, of which pages that nobody writes cost nothing; NULL where the system
 * refuses so much. */
void *reserve(size_t bytes);
/* The same where nobody may touch anything. */
void *reserve_closed(size_t bytes);
void reserve_end(void *data, size_t bytes);
/* Whether gigabytes of address space cost next to nothing: where a program emulates the system and
 * keeps books of every page, they take it a second. */
bool reserve_is_quick(void);

#endif
