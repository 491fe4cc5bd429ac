/*
 * Fields: the members of a problem, by name and as text. In "rope_half head_dim=80", the field head_dim sets the member
 * `dim`. Names are those of model configurations if these have one.
 *
 * fields.csv lists the fields that several signatures share. Its columns are the name, the member of struct problem,
 * the FIELD_ kind, the LIST_ kind, and the array with the names of an enum. The signature of a kernel says which of
 * these fields it has, and adds its own parameters (signature.h).
 */
#ifndef POSENC_FIELDS_H
#define POSENC_FIELDS_H

#include "arena.h"
#include "problem.h"

#include <posenc.h>

/* Type of a value, or of each element of a list. */
enum field_kind { FIELD_I64, FIELD_U64, FIELD_F64, FIELD_F32, FIELD_BOOL, FIELD_ENUM };

enum field_list {
    LIST_NONE,      /* one value */
    LIST_SECTIONS,  /* up to three integers, inside the struct */
    LIST_STRIDES,   /* the same, after their number */
    LIST_POSITIONS, /* separate array: an integer for each token */
    LIST_PAIRS,     /* a number for each pair, (dim + 1) / 2 of them */
    LIST_FACTORS    /* the same for an even dim, dim / 2 of them */
};

/* A field of a problem. */
struct field {
    const char *name;
    enum field_kind kind;
    enum field_list list;
    size_t offset;            /* in struct problem */
    const char *const *names; /* of an enum, NULL at the end */
    const char *tensor;       /* "x" for a layout field such as x.stride, or NULL */
};

enum { N_SECTIONS = 3, FIELD_TEXT = 64, NOTATION_ERROR = 1024 };

/* Gets field i of a kernel; returns false past the last. Shared fields come first, then the signature's own
 * parameters, then pad, offset_bytes and stride of each tensor. */
bool kernel_field(enum posenc_kernel kernel, int i, struct field *field);
/* Finds a field by name, such as "heads" or "x.stride"; returns false if the kernel has none. */
bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field);
/* Writes the name of a field. */
void field_name(const struct field *field, char name[FIELD_TEXT]);

/* Return a kernel's problem in which all fields have their defaults, and true if a field has its default. */
struct problem problem_blank(enum posenc_kernel kernel);
bool field_is_blank(const struct field *field, const struct problem *problem);

/* Return the bytes of a value in memory, and the value as 64 bits: an integer, or the bits of an f64 if it is real.
 * `at` need not be aligned. */
size_t value_size(enum field_kind kind);
uint64_t value_get(enum field_kind kind, const void *at);
/* Stores a value that is given by such bits. */
void value_set(enum field_kind kind, void *at, uint64_t bits);

/* Return the length of a list (1 for a single value, 0 if absent), and element i as 64 bits. */
int64_t field_length(const struct field *field, const struct problem *problem);
uint64_t field_get(const struct field *field, const struct problem *problem, int64_t i);
/* Sets a field that is no list. */
void field_set(const struct field *field, struct problem *problem, uint64_t bits);
/* Do the same by the number itself, for a field of any kind. Integers above 2^53 are rounded. */
double field_number(const struct field *field, const struct problem *problem);
void field_set_number(const struct field *field, struct problem *problem, double number);
bool field_is_real(const struct field *field);
/* Returns the names of the values of an enum or a flag, NULL at the end; or NULL if they are numbers. */
const char *const *field_value_names(const struct field *field);
/* Returns true for a list outside the problem, which has a pointer to it. */
bool field_is_array(const struct field *field);

/* Appends a value as text that field_read() converts back to the same bits: an integer, the shortest decimal, a name,
 * true or false. Commas separate elements. */
size_t field_print(const struct field *field, const struct problem *problem, char *text,
                   size_t room, size_t at);

/* Sets a field from text. Positions also set `tokens`, if that is 0. The arena holds the elements of lists. On an
 * error, returns false and a message with the expected values. */
bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR]);

/* Writes formatted text at offset `at` of a buffer of `room` bytes, and truncates it. Returns the offset of the end
 * of the untruncated text. */
__attribute__((format(printf, 4, 5))) size_t text_append(char *text, size_t room, size_t at,
                                                         const char *format, ...);

/* Writes a message and returns false. */
__attribute__((format(printf, 2, 3))) bool notation_fail(char error[NOTATION_ERROR],
                                                         const char *format, ...);

/* ---- Scaling families ---- */

extern const char *const scaling_names[]; /* by id; NULL at the end */

/* Return true if a family has a parameter, whose name has `length` characters, and if a numerics mode supports the
 * family. */
bool scaling_has_parameter(enum posenc_scaling scaling, const char *parameter, size_t length);
bool scaling_supports(enum posenc_scaling scaling, enum posenc_numerics numerics);

#endif
