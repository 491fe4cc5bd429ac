/*
 * What the files of published figures share.
 */
#ifndef POSENC_PUBLISHED_H
#define POSENC_PUBLISHED_H

#include "golden.h"

/* Tell and count what is not as published, or not as it should be. */
void require_near(double got, double want, double within, const char *what);
void require_that(bool good, const char *what, const char *id);

void known_storage(const struct vectors *vectors);
void known_relative(const struct vectors *vectors);
void known_positions(const struct vectors *vectors);

#endif
