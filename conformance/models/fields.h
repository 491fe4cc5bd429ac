/* Members of a configuration: under any of their spellings, in range, or refused by name. */
#ifndef POSENC_MODEL_FIELDS_H
#define POSENC_MODEL_FIELDS_H

#include "model.h"

#include <jansson.h>

struct fields {
    const json_t *file;     /* a model's configuration, or the part of it about text */
    const json_t *defaults; /* of its model_type, where the file says nothing; or NULL */
    char *error, *notes;    /* MODEL_ERROR and MODEL_NOTES bytes */
};

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Always -1. */
__attribute__((format(printf, 2, 3))) int refuse(const struct fields *f, const char *format,
                                                 ...);
/* Adds a sentence to the model's notes: what is there and does not count, or is not covered. */
__attribute__((format(printf, 2, 3))) void note(const struct fields *f, const char *format,
                                                ...);

/* The first of several spellings that is there and not null; NULL where none is.  The file comes
 * before the defaults whatever the spelling.  `found` (may be NULL) is the one met, or the
 * first. */
const json_t *find_field(const struct fields *f, const char *const *names, const char **found);
/* In the file alone. */
const json_t *find_field_of_file(const struct fields *f, const char *const *names,
                                 const char **found);

/* A whole number from 1 to `most`; `otherwise` where absent, and 0 for `otherwise` makes it
 * required. */
int field_whole(const struct fields *f, const char *const *names, int64_t most,
                int64_t otherwise, int64_t *value);
/* A number in [least, most]; `value` is unchanged where there is none. */
int field_number(const struct fields *f, const char *const *names, double least, double most,
                 double *value);
/* true or false; `value` is unchanged where there is none. */
int field_truth(const struct fields *f, const char *const *names, bool *value);

/* As field_number(), of the value `j` (NULL or null: absent) called `name`. */
int number_in(const struct fields *f, const json_t *j, const char *name, double least,
              double most, double *value);

/* A text that is there and not empty, on one line, cut between characters; else `otherwise`. */
void field_text(const json_t *object, const char *name, const char *otherwise, char *into,
                size_t bytes);

/* No dimension or length of a model is larger; heads as far as the library takes them. */
enum { MOST = 1 << 24, MOST_HEADS = 65536 };

#endif
