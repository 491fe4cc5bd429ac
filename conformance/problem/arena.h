/* Arenas, whose memory is allocated in pieces and freed at once; and reserved address space, for tensors with
 * gigabytes between rows and for large tables of which a call reads a few rows. */
#ifndef POSENC_ARENA_H
#define POSENC_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* ---- Arenas ---- */

struct arena {
    struct arena_piece *last;
};

/* Return NULL if out of memory. Memory is zeroed, and aligned for any number. */
void *arena_get(struct arena *arena, size_t bytes);
/* Copies n characters, with a NUL after them. */
char *arena_text(struct arena *arena, const char *text, size_t n);
/* Makes room for one more element in an array of n, with a capacity of *room elements of `size` bytes. Returns the
 * array, or a larger copy. */
void *arena_grow(struct arena *arena, void *array, size_t n, size_t *room, size_t size);
void arena_free(struct arena *arena);

/* ---- Reserved address space ---- */

/* Size in bytes from which memory is reserved, not allocated. */
#define RESERVE_FROM ((size_t)1 << 26)

/* Returns memory that reads as zeros, or NULL. Unwritten pages cost nothing. */
void *pages_reserve(size_t bytes);
/* Returns such memory without access to any page. */
void *pages_reserve_inaccessible(size_t bytes);
void pages_release(void *data, size_t bytes);
/* Returns true if reserving gigabytes takes under 50 ms of CPU time. Emulators that track every page need about a
 * second. */
bool pages_reserve_is_quick(void);

#endif
