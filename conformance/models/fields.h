/* Members of a configuration: under any of their spellings, in range, or refused by name. */
#ifndef POSENC_MODEL_FIELDS_H
#define POSENC_MODEL_FIELDS_H

#include "conformance/problem/spelling.h"
#include "config.h"

#include <jansson.h>
#include <string.h>

struct fields {
    const json_t *file;     /* a model's configuration, or the part of it about text */
    const json_t *defaults; /* of its model_type, where the file says nothing; or NULL */
    /* rope_scaling, or rope_parameters as later releases call it, or the object in it for one type
     * of layers: a quantity may stand there, too, under its own name.  NULL: there is none. */
    const json_t *rope;
    const char *rope_name;
    const char *whose;   /* what follows "is missing" in a refusal; or NULL */
    char *error, *notes; /* MODEL_ERROR and MODEL_NOTES bytes */
};

/* Always -1. */
__attribute__((format(printf, 2, 3))) int refuse(const struct fields *f, const char *format,
                                                 ...);
/* Adds a sentence to the model's notes: what is there and does not count, or is not covered. */
__attribute__((format(printf, 2, 3))) void note(const struct fields *f, const char *format,
                                                ...);

/* Whether words with blanks between have this one. */
static inline bool lists(const char *words, const char *word)
{
    return has_word(words, ' ', word, strlen(word));
}

struct member {
    const json_t *value; /* NULL: there is none */
    char name[64];       /* the spelling met, or the first */
};
/* The first of several spellings that is there and not null, with blanks between; "a.b" is the b of
 * an object a.  The file comes before the defaults whatever the spelling. */
struct member member_find(const struct fields *f, const char *spellings);
const json_t *member_value(const struct fields *f, const char *spellings);
/* The same of one object. */
struct member member_of(const json_t *object, const char *spellings);

/* The value of a member that is accepted, in the words of members.txt.  0, or -1: it is refused. */
int value_read(const struct fields *f, const struct member *member, enum quantity_kind kind,
               const char *accepted, const struct part *part, double *value);

/* Reads the quantities of members.txt that belong to one of the words, refuses and notes what stands
 * there. */
int members_read(const struct fields *f, const char *words, struct part *part);

/* A text that is there and not empty, on one line, cut between characters; else `otherwise`. */
void field_text(const json_t *object, const char *name, const char *otherwise, char *into,
                size_t bytes);

#endif
