/*
 * Reading topics.txt, see topics.h and the head of that file.
 */
#include "topics.h"

#include <stdio.h>
#include <string.h>

static const char *const lines[] = {
#include "topics.inc"
    NULL,
};

static bool begins_topic(const char *line)
{
    return line[0] != '\0' && line[0] != ' ' && line[0] != '#';
}

bool topic_at(size_t i, struct topic *topic)
{
    for (const char *const *line = lines; *line; line++) {
        if (begins_topic(*line) && i-- == 0) {
            size_t kind = strcspn(*line, " ");
            snprintf(topic->kind, sizeof topic->kind, "%.*s", (int)kind, *line);
            snprintf(topic->name, sizeof topic->name, "%s", *line + kind + 1);
            topic->lines = line + 1;
            return true;
        }
    }
    return false;
}

bool topic_find(const char *kind, const char *name, struct topic *topic)
{
    for (size_t i = 0; topic_at(i, topic); i++)
        if ((!kind || strcmp(topic->kind, kind) == 0) && strcmp(topic->name, name) == 0)
            return true;
    return false;
}

static bool continues(const char *line) { return strncmp(line, "    ", 4) == 0; }

static bool begins_field(const char *line)
{
    return strncmp(line, "  ", 2) == 0 && !continues(line);
}

bool topic_field(const struct topic *topic, size_t i, struct topic_field *field)
{
    for (const char *const *line = topic->lines; *line && !begins_topic(*line); line++) {
        if (begins_field(*line) && i-- == 0) {
            size_t key = strcspn(*line + 2, ":");
            snprintf(field->key, sizeof field->key, "%.*s", (int)key, *line + 2);
            field->text = *line + 2 + key + strspn(*line + 2 + key, ": ");
            field->more = line + 1;
            field->n_more = 0;
            while (line[1] && continues(line[1])) {
                field->n_more++;
                line++;
            }
            return true;
        }
    }
    return false;
}

const char *topic_text(const struct topic *topic, const char *key)
{
    struct topic_field field;
    for (size_t i = 0; topic_field(topic, i, &field); i++)
        if (strcmp(field.key, key) == 0)
            return field.text;
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
