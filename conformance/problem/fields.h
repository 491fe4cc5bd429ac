/*
 * The parameters of a problem by name: where they live, and their values as text.  Which of them
 * a kernel has is said by its signature (signature.h).  ENCODINGS 8.2 and the models' own configurations have the names.
 */
#ifndef POSENC_FIELDS_H
#define POSENC_FIELDS_H

#include "arena.h"
#include "problem.h"

enum field_kind {
    FIELD_I64,
    FIELD_U64,
    FIELD_F64,
    FIELD_F32,
    FIELD_BOOL,
    FIELD_ENUM,
    FIELD_SECTIONS,  /* up to three whole numbers, where they live */
    FIELD_STRIDES,   /* the same, behind how many there are */
    FIELD_POSITIONS, /* a whole number a token */
    FIELD_PAIRS,     /* a number a pair, (dim + 1) / 2 of them */
    FIELD_FACTORS    /* the same where dim is even, dim / 2 */
};

struct field {
    const char *name;
    enum field_kind kind;
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

/* Those of one number: as 64 bits, f64 as its bits, f32 widened to f64 first. */
bool field_is_list(const struct field *field);
uint64_t field_get(const struct field *field, const struct problem *problem);
void field_set(const struct field *field, struct problem *problem, uint64_t bits);
double bits_to_double(uint64_t bits);
uint64_t double_to_bits(double value);

/* Of a list, the number of elements; element i as above. */
int64_t field_length(const struct field *field, const struct problem *problem);
uint64_t field_element(const struct field *field, const struct problem *problem, int64_t i);

/* The value as text that field_read() takes for the same bits: whole numbers, the shortest
 * decimal, a name, true or false, elements with commas between.  Of one number or element. */
void field_print(const struct field *field, uint64_t bits, char text[FIELD_TEXT]);
/* Of the whole field of a problem; returns its length, the text is cut to `room` - 1. */
size_t field_print_all(const struct field *field, const struct problem *problem, char *text,
                       size_t room);

/* Sets a field to what the text says; of positions also the tokens.  Elements come from the
 * arena.  False with what was expected in error. */
bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR]);

#endif
