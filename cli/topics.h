/*
 * What is written of kernels, profiles, scalings, methods and parameters: topics.txt,
 * compiled in.
 */
#ifndef POSENC_CLI_TOPICS_H
#define POSENC_CLI_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

enum { TOPIC_NAME = 64 };

struct topic {
    char kind[16], name[TOPIC_NAME];
    const char *const *lines; /* up to the next topic's */
};

/* The i-th topic; false past the end. */
bool topic_at(size_t i, struct topic *topic);
/* The one of that name, of `kind` or, NULL, of any. */
bool topic_find(const char *kind, const char *name, struct topic *topic);

/* One field: its key, its text, and further lines of the text. */
struct topic_field {
    char key[16];
    const char *text;
    const char *const *more;
    size_t n_more;
};
/* Field `i` of a topic; false past the last. */
bool topic_field(const struct topic *topic, size_t i, struct topic_field *field);
/* The text of the first field `key`; "" where there is none. */
const char *topic_text(const struct topic *topic, const char *key);

/* Prints words up to column `to` of each line, the cursor being at `column` already. */
void topic_print_words(const char *text, int column, int to);

/* Splits "a, b, c" off at the first comma: the piece, and where the next begins, or NULL. */
const char *topic_piece(const char *list, char *piece, size_t size);

#endif
