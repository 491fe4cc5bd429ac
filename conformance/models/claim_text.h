/*
 * What lines of claims stand for: names in them for texts, and texts for the bytes of files.
 */
#ifndef POSENC_MODEL_CLAIM_TEXT_H
#define POSENC_MODEL_CLAIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { CLAIM_LINE = 4096, CLAIM_WORD = 128 };

/* What $NAME stands for from here on; false: names are too many. */
bool claim_name(const char *name, const char *text);
/* A line with the text of names in their places. */
void claim_expand(const char *line, char text[CLAIM_LINE]);

/* The bytes of a GGUF file, to be freed: an object of its keys, in their order.  Whole numbers are
 * u32, below 0 i32, others f32; lists are of what their first value is.  "tensor NAME" is one of
 * f32, "version" that of the file.  NULL where the text is no such object. */
unsigned char *claim_gguf(const char *text, size_t *n);

#endif
