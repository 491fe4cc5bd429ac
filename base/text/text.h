/*
 * Safe display of untrusted text, such as names, paths and notes from files and plug-ins. Control characters, bytes
 * that are not UTF-8, blanks without width, tags and marks of the writing direction are escaped: a name that would turn
 * the terminal red is shown as \x1b[31mred. Fillers and variation selectors, which scripts and emoji need, are not.
 */
#ifndef POSENC_TEXT_H
#define POSENC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Has the compiler check arguments from number `first` on against the format string that is argument `format`. */
#define PRINTF_LIKE(format, first) __attribute__((__format__(__printf__, format, first)))

/* Returns true if a text is one line without characters that are escaped. */
bool text_is_plain(const char *text);

/* Writes the escaped text, cut between characters to `room` - 1 bytes. Returns the length of the whole escaped text. */
size_t text_escape(const char *text, char *to, size_t room);
/* Returns the escaped text, to be freed; NULL without memory. */
char *text_escape_copy(const char *text);

/* Print one escaped line like fprintf(), with a newline if `format` ends with one. Commands of GitHub Actions (::error
 * at the start of a line, ##[group] anywhere) get a backslash. */
void text_print(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vprint(FILE *out, const char *format, va_list list) PRINTF_LIKE(2, 0);

/* ---- Words ---- */

/* Appends a name to a list in `text` of `size` bytes, after a separator unless the list is empty. Cuts what does not fit. */
void text_list_add(char *text, size_t size, const char *separator, const char *name);

/* Returns the Levenshtein distance of two names. Only the first 96 bytes of b count. */
size_t text_edit_distance(const char *a, const char *b);

/* Returns true if the first n characters of `word` are a word in a list: words with a separator between them. */
bool text_has_word(const char *list, char separator, const char *word, size_t n);

#endif
