/*
 * Properties: metamorphic relations that need no golden data. A property compares calls of one kernel with each other,
 * or with the definition of an encoding. This one requires a call in place to give the bits of a call that is not:
 *
 *     { "in-place", .twin = "in_place=true", .applies_to = kernel_in_place, .problems = "parts" },
 *
 * A property is checked on the problems of conformance/cases/properties.txt that have its name. If it has applies_to(),
 * a kernel without such a problem is checked on its default problem, so that a new kernel needs no line there.
 *
 * Each property detects one class of mistake. The accuracy and random suites check the values.
 */
#ifndef POSENC_PROPERTIES_H
#define POSENC_PROPERTIES_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

#include <complex.h>

/* A property runs each of its problems, and perhaps a twin: a second call, which differs in some fields or edits. It has
 * at most one of three functions. Without one, both outputs must have the same bits. */
struct property {
    const char *name;
    void (*check_problem)(struct tally *t, const struct problem *p); /* makes its own calls */
    void (*check_output)(struct tally *t, const struct call *out);   /* without a twin */
    void (*compare_outputs)(struct tally *t, const struct call *out, const struct call *twin);

    const char *fields; /* set in each problem: "tokens=20 batch=1"; may be NULL */
    call_edit *edit;    /* changes both calls before they run, given `user` */
    const void *user;
    const char *twin; /* kernel or fields of the second call, "" for the same; NULL: no twin */
    call_edit *twin_edit; /* changes the twin instead of `edit`, given the first call */

    bool (*applies_to)(enum posenc_kernel kernel); /* NULL: the kernels of the problems */
    const char *needed_field; /* only kernels whose problems have this field; NULL: all */
    const char *problems;     /* name of the problems; NULL: that of the property */
    enum posenc_dtype dtype;  /* of the problems and the case */
    bool in_place;            /* runs the problems in place, too, if the kernel can */
    bool full_only;           /* skipped by quick runs */
    bool by_bits;             /* its function compares bits; without one every property does */
};

/* Arrays of properties. Each ends with a property without a name. */
extern const struct property properties_call[], properties_storage[], properties_tables[],
    properties_rope[];

/* Checks relations between calls, without golden data. */
suite_function suite_properties;

/* ---- Kernels to which a property applies ---- */

bool kernel_is_any(enum posenc_kernel kernel);
bool kernel_has_positions(enum posenc_kernel kernel);
/* Returns true if an output has this dimension. */
bool kernel_has_output_dim(enum posenc_kernel kernel, enum dim dim);

/* Returns true if the backend provides another kernel. Otherwise reports the check as skipped. */
bool property_can_call(struct tally *t, enum posenc_kernel other);

/* ---- Elements ---- */

/* Element of an output, and the loop for (EACH_ELEMENT(at, call)) over all elements of all outputs. A NULL call has
 * none. */
struct element {
    const struct call *call;
    int output;
    int64_t row, column, width;
    const float *values; /* of the row */
    float value;
};
/* Returns the first element of a row. The row after the last is the first row of the next output. After the last
 * output comes an element without a call, which ends the loop. */
struct element element_at(const struct call *call, int output, int64_t row);
static inline void element_next(struct element *at)
{
    if (++at->column < at->width)
        at->value = at->values[at->column];
    else
        *at = element_at(at->call, at->output, at->row + 1);
}
#define EACH_ELEMENT(at, whole)                                                                \
    struct element at = element_at(whole, 0, 0);                                               \
    at.call;                                                                                   \
    element_next(&at)

/* Returns the same element of the x that the call was made with. */
float element_x(const struct element *at);

/* Index of an element of a tensor of any dtype, and the loop for (EACH_TENSOR_ELEMENT(at, tensor)) over all of them. A
 * tensor without data has none. tensor_element_put() rounds to the dtype. */
struct tensor_element {
    const struct posenc_tensor *in;
    int64_t row, column;
};
struct tensor_element tensor_element_at(const struct posenc_tensor *in, int64_t row,
                                        int64_t column);
void tensor_element_put(struct tensor_element at, float value);
float tensor_element_get(struct tensor_element at);
#define EACH_TENSOR_ELEMENT(at, whole)                                                         \
    struct tensor_element at = tensor_element_at(whole, 0, 0);                                 \
    at.in;                                                                                     \
    at = tensor_element_at(at.in, at.row, at.column + 1)

/* ---- Edits of calls before they run ---- */

/* Fills a tensor of f32 with repetitions of its first n rows. */
void tensor_repeat_rows(const struct posenc_tensor *in, int64_t n);
/* Fills x, if there is one, with the f32 that `value` points to. */
void edit_fill_x(struct call *call, const void *value);
extern const float plus_one, minus_zero; /* for edit_fill_x(); adding -0 changes no value */

/* ---- Requirements of several files ---- */

/* Requires that an element has the bits of `want`; any NaN equals any other. */
void element_require(struct tally *t, const struct element *at, float want, const char *what);

/* Returns the inner product of the first output and an array of the same shape. Adds the magnitudes of its terms to
 * `magnitudes`. The transpose A^T of a linear map has <A x, g> = <x, A^T g>. */
double element_inner_product(const struct call *out, const float *by, double *magnitudes);

/* ---- Pairs ---- */

/*
 * Pairs as complex numbers: cos + i sin of a table, or x0 + i x1 of two channels that rotate together. A rotation is
 * a product of two such numbers, and the rotation from a to b is b conj(a).
 */

/* Returns real + i imaginary. */
double complex pair_make(double real, double imaginary);

/* Return pair i of row r of the output (a table or rotated channels), and of the input x. */
double complex pair_from_output(const struct call *call, int64_t r, int64_t i);
double complex pair_from_x(const struct call *call, int64_t r, int64_t i);

/* Return the number of pairs of a row, and the columns of a pair, except for rope_table. */
int64_t pair_count(const struct problem *p);
struct pair_columns {
    int64_t real, imaginary;
} pair_columns(const struct problem *p, int64_t i);

/* Pair of an output, and the loop for (EACH_PAIR(at, call)) over all pairs. A NULL call has none. */
struct pair {
    const struct call *call;
    int64_t row, i;
    double complex z;
};
struct pair pair_at(const struct call *call, int64_t row, int64_t i);
#define EACH_PAIR(at, whole)                                                                   \
    struct pair at = pair_at(whole, 0, 0);                                                     \
    at.call;                                                                                   \
    at = pair_at(at.call, at.row, at.i + 1)

/* Requires that both components are within `bound` of the expected ones. */
void pair_require(struct tally *t, const struct pair *at, double complex want, double bound,
                  const char *what);

#endif
