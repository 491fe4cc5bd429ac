/*
 * The parameters of a problem by name: where they live, and their values as text.  The signature of a kernel says which
 * it has (signature.h).  ENCODINGS 8.2 and the models' own configurations have the names.
 */
#ifndef POSENC_FIELDS_H
#define POSENC_FIELDS_H

#include "arena.h"
#include "problem.h"

#include <posenc.h>

/* Of a value, or of each element of a list. */
enum field_kind { FIELD_I64, FIELD_U64, FIELD_F64, FIELD_F32, FIELD_BOOL, FIELD_ENUM };

enum field_list {
    LIST_NONE,      /* one value */
    LIST_SECTIONS,  /* up to three whole numbers, where they live */
    LIST_STRIDES,   /* the same, behind how many there are */
    LIST_POSITIONS, /* elsewhere: a whole number a token */
    LIST_PAIRS,     /* a number a pair, (dim + 1) / 2 of them */
    LIST_FACTORS    /* the same where dim is even, dim / 2 */
};

struct field {
    const char *name;
    enum field_kind kind;
    enum field_list list;
    size_t offset;            /* in struct problem */
    const char *const *names; /* of an enum, NULL at the end */
    const char *tensor;       /* of a layout: "x", whose field is called x.stride; or NULL */
};

enum { N_SECTIONS = 3, FIELD_TEXT = 64, NOTATION_ERROR = 1024 };

/* Field i of the problems of a kernel: those that problems share and its signature names, its
 * signature's own, then pad, offset_bytes and stride of each of its tensors.  False past the
 * last. */
bool kernel_field(enum posenc_kernel kernel, int i, struct field *field);
/* The field of that name, "heads" or "x.stride"; the name of a field. */
bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field);
void field_name(const struct field *field, char name[FIELD_TEXT]);

/* What a problem is where no field says otherwise; whether this one does. */
struct problem problem_blank(enum posenc_kernel kernel);
bool field_is_blank(const struct field *field, const struct problem *problem);

/* Elements of a list, one of what is none; element i as 64 bits, f64 as its bits, f32 widened to
 * f64 first. */
int64_t field_length(const struct field *field, const struct problem *problem);
uint64_t field_get(const struct field *field, const struct problem *problem, int64_t i);
void field_set(const struct field *field, struct problem *problem, uint64_t bits); /* no list */
bool field_is_real(const struct field *field);
double bits_to_double(uint64_t bits);
uint64_t double_to_bits(double value);

/* Writes the value behind `at` characters of a text, as append() does, so that field_read() takes
 * it for the same bits: whole numbers, the shortest decimal, a name, true or false, elements with
 * commas between. */
size_t field_print(const struct field *field, const struct problem *problem, char *text,
                   size_t room, size_t at);

/* Sets a field to what the text says; of positions also the tokens.  Elements come from the
 * arena.  False with what was expected in error. */
bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR]);

/* Writes behind `at` characters of a text; returns the length of the whole, which is cut to
 * `room` - 1. */
__attribute__((format(printf, 4, 5))) size_t append(char *text, size_t room, size_t at,
                                                    const char *format, ...);

/* Writes what is wrong, and returns false. */
__attribute__((format(printf, 2, 3))) bool tell_wrong(char error[NOTATION_ERROR],
                                                      const char *format, ...);

/* ---- Scaling families ---- */

extern const char *const scaling_names[]; /* by id; NULL at the end */

/* What configurations call it, or NULL. */
const char *scaling_rope_type(enum posenc_scaling scaling);

/* Whether a parameter counts for a family; `length` characters of its name are given. */
bool scaling_takes(enum posenc_scaling scaling, const char *parameter, size_t length);
bool scaling_in_profile(enum posenc_scaling scaling, enum posenc_profile profile);

#endif
