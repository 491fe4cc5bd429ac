/*
 * What posenc list and records say of kernels, methods, profiles and scalings: the first sentence of their pages,
 * docs/encodings/NAME.md, compiled in.
 */
#ifndef POSENC_CLI_TOPICS_H
#define POSENC_CLI_TOPICS_H

#include <stddef.h>

struct topic {
    const char *kind, *name; /* "scaling", "yarn" */
    const char
        *what; /* what it is; of a kernel the encodings that it serves, with commas between */
};
/* The i-th topic; NULL past the end. */
const struct topic *topic_at(size_t i);
/* What the topic is; "" where there is none. */
const char *topic_what(const char *kind, const char *name);

/* Prints words up to column `to` of each line, the cursor being at `column` already. */
void topic_print_words(const char *text, int column, int to);

/* Splits "a, b, c" off at the first comma: the piece, and where the next begins, or NULL. */
const char *topic_piece(const char *list, char *piece, size_t size);

#endif
