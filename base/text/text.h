/*
 * Safe display of texts of others: names, paths, notes, reasons. A file of records, a configuration or a plug-in may
 * hold control characters that a terminal obeys, bytes that are not UTF-8, and marks that are invisible or change the
 * direction of writing. These are escaped: \x1b, \u202e.
 */
#ifndef POSENC_TEXT_H
#define POSENC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Has the compiler check arguments from number `first` on against the format string that is argument `format`. */
#define PRINTF_LIKE(format, first) __attribute__((__format__(__printf__, format, first)))

/* Returns true if a text is one line of UTF-8 without such characters. */
bool text_is_plain(const char *text);

/* Writes the text on one line with these characters escaped, cut between characters to `room` - 1 bytes. Returns the
 * length of the whole. */
size_t text_plain(const char *text, char *to, size_t room);
/* Returns such a text, to be freed; NULL: out of memory. */
char *text_plain_copy(const char *text);

/* Print one line like fprintf(): a newline in an argument is escaped, one at the end of `format` is not. Commands of
 * GitHub's runners (::error at the start of a line, ##[group] anywhere) get a backslash. */
void text_print(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vprint(FILE *out, const char *format, va_list list) PRINTF_LIKE(2, 0);

/* ---- Names ---- */

/* Returns the number of insertions, deletions and substitutions from one name to the other, of which b counts with its
 * first 96 characters. */
size_t edit_distance(const char *a, const char *b);

/* Returns true if a word of n characters is one of `words`, which `between` separates. */
bool has_word(const char *words, char between, const char *word, size_t n);

#endif
