/*
 * Address space of which little is used: tensors whose rows lie gigabytes apart, and tables of
 * millions of rows of which a call reads a few.
 */
#ifndef POSENC_RESERVE_H
#define POSENC_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

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
