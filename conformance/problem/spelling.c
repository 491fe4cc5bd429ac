/*
 * Names and lists of them: see spelling.h.  The edit distance goes through the rows of its table, one
 * kept: Wagner and Fischer, J. ACM 21(1), 1974.
 */
#define _POSIX_C_SOURCE 200809L
#include "spelling.h"

#include <string.h>

size_t edit_distance(const char *a, const char *b)
{
    enum { SHORT = 96 };
    size_t row[SHORT + 1];
    size_t length = strnlen(b, SHORT);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = step < change ? step : change;
        }
    }
    return row[length];
}

bool has_word(const char *words, char between, const char *word, size_t n)
{
    for (const char *end; words; words = end ? end + 1 : NULL) {
        end = strchr(words, between);
        const size_t length = end ? (size_t)(end - words) : strlen(words);
        if (length == n && strncmp(words, word, n) == 0)
            return true;
    }
    return false;
}
