/*
 * What the files that check published figures (published*.c) share.
 */
#ifndef POSENC_PUBLISHED_H
#define POSENC_PUBLISHED_H

#include "golden.h"

/* Tell and count what is not as published, or not as it should be. */
void require_near(double got, double want, double within, const char *what);
void require_that(bool good, const char *what, const char *id);

void check_storage(const struct vectors *vectors);
void check_relative(const struct vectors *vectors);
void check_positions(const struct vectors *vectors);

#endif
