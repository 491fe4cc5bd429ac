/*
 * Shared by the files of the property suite.  A property is a metamorphic relation: it compares calls
 * of one kernel with each other, or with a sentence of its definition, and needs no golden data.
 *
 * It is checked on the problems of conformance/cases/properties.txt that have its name.  If it names
 * the kernels that it concerns, one of them without such a problem is checked on its default
 * problem: a new kernel needs no line there.
 *
 * There is one property for each class of mistake: relative position, composition, transposes as
 * gradients, layouts and permutations, in place, parts of a call, threads, storage in 16 bits, and
 * the results of builders.  Values themselves are the business of the accuracy and random suites.
 */
#ifndef POSENC_PROPERTIES_H
#define POSENC_PROPERTIES_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

/* Returns the expected column c of output row r, from inputs as the library itself makes them; if
 * the kernel takes x, the term that is added onto x times x_scale. */
typedef float by_hand(const struct call *inputs, int64_t r, int64_t c);

/*
 * A property asks for what it wants in one of five ways.  `check` runs what it likes.  Without it
 * the problem is run, and perhaps its twin, which differs in some fields or edits; then
 *
 *     by_hand     gives what every element of the output is, to the bit
 *     holds       requires what it likes of the output
 *     compares    requires what it likes of both outputs
 *     none        of these: the twin's output has the same bits
 */
struct property {
    const char *name;
    void (*check)(struct tally *t, const struct problem *p);
    void (*holds)(struct tally *t, const struct call *out);
    void (*compares)(struct tally *t, const struct call *out, const struct call *twin);
    by_hand *by_hand;

    const char *with; /* fields that problems have besides: "tokens=20 batch=1" */
    call_edit *edit;  /* of both calls before they are run, given `user` */
    const void *user;
    const char *twin;     /* fields of the other call, or its kernel; NULL: there is none */
    call_edit *twin_edit; /* of that one instead of `edit`, given the first call */

    bool (*concerns)(enum posenc_kernel kernel); /* NULL: those that the problems have */
    const char *field;       /* of these, those whose problems have it; NULL: all */
    const char *problems;    /* their name, where it is not the property's */
    enum posenc_dtype dtype; /* of the case: what the property is about */
    bool in_place;           /* its problems are run in place, too, where that can be */
    bool full;               /* in full runs only */
};

/* Each ends with a property without a name. */
extern const struct property properties_call[], properties_cut[], properties_layouts[],
    properties_storage[], properties_table[], properties_positions[], properties_learned[],
    properties_rope[], properties_norm[], properties_bias[], properties_relative[];

/* A property of one of its problems. */
void property_check(struct tally *t, const struct property *property, const struct problem *of);

/*
 * How far a table entry of magnitude at most 1 may be from real mathematics at the positions
 * that the properties use, in profile exact: 4 ulp of the last binade below 1, 4 * 2^-24.  The
 * backends here are within 1 (2 for sleef); the properties' other bounds are multiples of it.
 */
#define TABLE_ERROR 0x1p-22

/* ---- Which kernels ---- */

bool any_kernel(enum posenc_kernel kernel);
bool has_positions(enum posenc_kernel kernel);
/* Returns true if the output has a row for each token or query, not sums over them. */
bool encodes(enum posenc_kernel kernel);
/* Returns true if the first output has this dimension. */
bool kernel_counts(enum posenc_kernel kernel, enum dim dim);
/* Returns true if problems of the kernel have a field of this name. */
bool has_field(enum posenc_kernel kernel, const char *name);

/* Returns true if the backend provides another kernel; if not, skips the tally. */
bool property_needs(struct tally *t, enum posenc_kernel other);

/* ---- Elements ---- */

/* for (EACH_ELEMENT(at, call)): of all its outputs; none of a call that is NULL. */
struct element {
    const struct call *call;
    int output;
    int64_t row, column, width;
    const float *values; /* of the row */
    float value;
};
/* The first of a row; behind the last row, of the next output; without a call behind that. */
struct element row_from(const struct call *call, int output, int64_t row);
static inline void next_element(struct element *at)
{
    if (++at->column < at->width)
        at->value = at->values[at->column];
    else
        *at = row_from(at->call, at->output, at->row + 1);
}
#define EACH_ELEMENT(at, all_of)                                                               \
    struct element at = row_from(all_of, 0, 0);                                                \
    at.call;                                                                                   \
    next_element(&at)

/* Return the same element of another call; of x as it was made, if it has the output's shape. */
float twin_of(const struct element *at, const struct call *twin);
float x_of(const struct element *at);

/* for (EACH_PLACE(at, tensor)): every element's place in a tensor, where it has data; and what a
 * value is there, as its type holds it. */
struct place {
    const struct posenc_tensor *in;
    int64_t row, column;
};
struct place place_from(const struct posenc_tensor *in, int64_t row, int64_t column);
void place_put(struct place at, float value);
float place_get(struct place at);
#define EACH_PLACE(at, all_of)                                                                 \
    struct place at = place_from(all_of, 0, 0);                                                \
    at.in;                                                                                     \
    at = place_from(at.in, at.row, at.column + 1)

/* ---- Edits ---- */

/* Fills a tensor of f32 with its first n rows, again and again. */
void repeat_rows(const struct posenc_tensor *in, int64_t n);
/* Fills x, where there is one, with the f32 that `value` points to. */
void edit_x(struct call *call, const void *value);
extern const float one, nothing; /* 1; -0, onto which a value is itself */

/* ---- Requirements of several files ---- */

void require_element(struct tally *t, const struct element *at, float want, const char *what);

/* Requires that the bias of one query and one key further on is the same. */
void holds_by_distance(struct tally *t, const struct call *out);

/* Returns the sum of all products of an output and as many f32, and adds their magnitudes to
 * `mass`: either side of <A x, g> = <x, A^T g>, the property of gradients. */
double product_of(const struct call *out, const float *by, double *mass);

#endif
