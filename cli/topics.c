/*
 * Looking up topics, see topics.h.
 */
#include "topics.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct topic topics[] = {
#include "topics.inc"
};
enum { N_TOPICS = sizeof topics / sizeof *topics };

const struct topic *topic_at(size_t i) { return i < N_TOPICS ? &topics[i] : NULL; }

const char *topic_what(const char *kind, const char *name)
{
    for (const struct topic *t = topics; t < topics + N_TOPICS; t++)
        if (strcmp(t->kind, kind) == 0 && strcmp(t->name, name) == 0)
            return t->what;
    return "";
}

void topic_print_words(const char *text, int column, int to)
{
    int at = column;
    for (bool first = true; *text != '\0'; first = false) {
        int length = (int)strcspn(text, " ");
        if (!first && at + 1 + length > to) {
            printf("\n%*s", column, "");
            at = column;
        } else if (!first) {
            at += printf(" ");
        }
        at += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

const char *topic_piece(const char *list, char *piece, size_t size)
{
    size_t length = strcspn(list, ",");
    snprintf(piece, size, "%.*s", (int)length, list);
    list += length;
    return *list == '\0' ? NULL : list + strspn(list, ", ");
}
