/*
 * What the two files of the builders' test share.
 */
#ifndef POSENC_GOLDEN_BUILDERS_H
#define POSENC_GOLDEN_BUILDERS_H

#include <posenc.h>

#include <stdbool.h>

/* Counts and prints a failure. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void builders_fail(const char *format, ...);

/* What must hold for the rest to make sense: a call that succeeds. */
void builders_require(bool good, const char *what);

/* n elements of 4 bytes, to be freed. */
void *builders_allocate(int64_t n);

void check_kerple(void); /* builders_values.c */
void check_sandwich(void);
void check_normal(void);

#endif
