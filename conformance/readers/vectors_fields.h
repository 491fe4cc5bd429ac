/*
 * The parameters of a problem by name: what a manifest calls them, where they live, to which
 * signatures they belong.  One list serves the JSON manifests and the flat pack.
 */
#ifndef POSENC_VECTORS_FIELDS_H
#define POSENC_VECTORS_FIELDS_H

#include "vectors.h"

enum field_kind { FIELD_I64, FIELD_U64, FIELD_F64, FIELD_F32, FIELD_BOOL, FIELD_ENUM };

struct field {
    const char *name; /* canonical */
    enum field_kind kind;
    size_t offset;            /* in struct problem */
    unsigned signatures;      /* bit 1 << enum signature_id */
    const char *const *names; /* of an enum, NULL at the end */
};

enum { N_FIELDS = 73 };
extern const struct field problem_fields[N_FIELDS];

/* Whether a field belongs to problems of a kernel. */
bool field_applies(const struct field *field, enum posenc_kernel kernel);

/* What a manifest's problem is before its members are read. */
struct problem problem_blank(enum posenc_kernel kernel);

/* A field's value as 64 bits, f64 as its bits, f32 widened to f64 first. */
uint64_t field_get(const struct field *field, const struct problem *problem);
void field_set(const struct field *field, struct problem *problem, uint64_t bits);

double bits_to_double(uint64_t bits);
uint64_t double_to_bits(double value);

/* Memory of a vector set: freed as a whole by vectors_free.  NULL when there is none. */
void *vectors_keep(struct vectors *vectors, size_t bytes);

/* The whole of a file as kept memory, with a NUL after it.  NULL and a message otherwise. */
void *vectors_read_file(struct vectors *vectors, const char *path, size_t *bytes, char *error);

/* Header of a pack: magic, payload bytes, SHA-256 of the payload in hexadecimal, zeros. */
enum { PACK_MAGIC = 16, PACK_HASH = 24, PACK_HEADER = 96, VECTORS_ERROR = 512 };
extern const char pack_magic[PACK_MAGIC + 1];

#endif
