/*
 * Properties: metamorphic relations that need no golden data. A property compares calls of one kernel with each
 * other, or with the definition of an encoding.
 *
 * A property is checked on the problems of conformance/cases/properties.txt that have its name. If it has
 * applies_to(), a kernel without such a problem is checked on its default problem, so that a new kernel needs no line
 * there.
 *
 * Each property detects one class of mistake. The accuracy and random suites check the values.
 */
#ifndef POSENC_PROPERTIES_H
#define POSENC_PROPERTIES_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

/* Returns the expected value of column c of output row r, from inputs of the library's own call. If the kernel takes
 * x, it is the term that is added to x times x_scale. */
typedef float expected_value(const struct call *inputs, int64_t r, int64_t c);

/* A property has at most one of the functions below. If it has none, the outputs of both calls must have the same bits.
 * A twin is a second call, which differs from the first in some fields or edits. check_problem() runs calls of its own.
 * The other functions apply after the problem and its twin, if any, were run. */
struct property {
    const char *name;
    void (*check_problem)(struct tally *t, const struct problem *p); /* makes its own calls */
    void (*check_output)(struct tally *t, const struct call *out);
    void (*compare_outputs)(struct tally *t, const struct call *out, const struct call *twin);
    expected_value *expected; /* of each element of the output, to the bit */

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
    bool by_bits; /* its function compares bits, which a program need not reproduce */
};

/* Arrays of properties. Each ends with a property without a name. */
extern const struct property properties_call[], properties_cut[], properties_storage[],
    properties_tables[], properties_learned[], properties_rope[], properties_scores[];

/* Checks a property on one problem. */
void property_check(struct tally *t, const struct property *property, const struct problem *p);

/* Largest accepted error of a sine or cosine in numerics mode exact: 4 ulp just below 1, 4 * 2^-24. The library's
 * backends are within 1 ulp (2 for sleef). Other bounds are multiples of it. */
#define TABLE_ERROR 0x1p-22

/* ---- Kernels to which a property applies ---- */

bool kernel_is_any(enum posenc_kernel kernel);
bool kernel_has_positions(enum posenc_kernel kernel);
/* Returns true if the output has a row for each token or query, not sums over them. */
bool kernel_has_encoded_rows(enum posenc_kernel kernel);
/* Returns true if an output has this dimension. */
bool kernel_has_output_dim(enum posenc_kernel kernel, enum dim dim);
/* Returns true if problems of the kernel have a field of this name. */
bool kernel_has_field(enum posenc_kernel kernel, const char *name);

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

/* Return the same element of another call, and of the x that the call was made with. */
float element_of_twin(const struct element *at, const struct call *twin);
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

#endif
