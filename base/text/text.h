/*
 * What others wrote (names, paths, notes, reasons), as it may be shown.  A file of records, a
 * configuration or a plug-in may hold what a terminal obeys and what a reader does not see: control
 * characters, bytes that are no UTF-8, marks that turn the direction of writing or are invisible.
 * These are shown escaped: \x1b, \u202e.
 */
#ifndef POSENC_TEXT_H
#define POSENC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether a text is one line of UTF-8 without such characters. */
bool text_is_plain(const char *text);

/* The text on one line with them escaped, cut between characters to `room` - 1 bytes.  Returns the
 * length of the whole. */
size_t text_plain(const char *text, char *to, size_t room);
/* The same, malloc'ed; NULL: no memory. */
char *text_plain_copy(const char *text);

/* fprintf() of one line, whatever its arguments hold: a line end stands at most where `format` ends
 * with one.  What GitHub's runners take for a command (::error at the start of a line, ##[group]
 * anywhere) is shown with a backslash. */
__attribute__((format(printf, 2, 3))) void text_print(FILE *out, const char *format, ...);
__attribute__((format(printf, 2, 0))) void text_vprint(FILE *out, const char *format,
                                                       va_list list);

/* ---- Names ---- */

/* Insertions, deletions and substitutions from one name to the other; of b the first 96
 * characters count. */
size_t edit_distance(const char *a, const char *b);

/* Whether a word of n characters is one of those in `words`, separated by `between`. */
bool has_word(const char *words, char between, const char *word, size_t n);

#endif
