/*
 * Properties: metamorphic relations that need no golden data. A property compares calls of one kernel
 * with each other, or with the definition of an encoding.
 *
 * It is checked on the problems of conformance/cases/properties.txt that have its name. If it names
 * the kernels that it concerns, a kernel without such a problem is checked on its default problem, so
 * that a new kernel needs no line there.
 *
 * There is one property for each class of mistake: relative position, composition, transposes as
 * gradients, layouts and permutations, in place, parts of a call, threads, storage in 16 bits, and
 * results of builders. The accuracy and random suites check the values themselves.
 */
#ifndef POSENC_PROPERTIES_H
#define POSENC_PROPERTIES_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

/* Returns the expected value of column c of output row r, from inputs of the library's own call. If
 * the kernel takes x, it is the term that is added to x times x_scale. */
typedef float by_hand(const struct call *inputs, int64_t r, int64_t c);

/*
 * A property states its requirement in one of five ways. `check` makes calls of its own. Otherwise the
 * problem is run, and the twin if there is one, which differs in some fields or edits. Then
 *
 *     by_hand     returns the expected bits of every element of the output
 *     holds       checks the output
 *     compares    checks both outputs
 *     none        of these: both outputs must have the same bits
 */
struct property {
    const char *name;
    void (*check)(struct tally *t, const struct problem *p);
    void (*holds)(struct tally *t, const struct call *out);
    void (*compares)(struct tally *t, const struct call *out, const struct call *twin);
    by_hand *by_hand;

    const char *with; /* further fields of the problems: "tokens=20 batch=1" */
    call_edit *edit;  /* changes both calls before they run, given `user` */
    const void *user;
    const char *twin; /* kernel or fields of the other call, "" for the same; NULL: no twin */
    call_edit *twin_edit; /* changes the twin instead of `edit`, given the first call */

    bool (*concerns)(enum posenc_kernel kernel); /* NULL: the kernels of the problems */
    const char *field;       /* only kernels whose problems have this field; NULL: all */
    const char *problems;    /* name of the problems; NULL: that of the property */
    enum posenc_dtype dtype; /* of the problems and the case */
    bool in_place;           /* runs the problems in place, too, if the kernel can */
    bool full;               /* in full runs only */
};

/* Each ends with a property without a name. */
extern const struct property properties_call[], properties_cut[], properties_storage[],
    properties_tables[], properties_learned[], properties_rope[], properties_scores[];

/* Checks a property on one problem. */
void property_check(struct tally *t, const struct property *property, const struct problem *of);

/*
 * Largest error of a table entry of magnitude at most 1 at the positions of the properties, in numerics
 * mode exact: 4 ulp of the last binade below 1, 4 * 2^-24. The backends here are within 1 ulp (2 for
 * sleef). Other bounds of properties are multiples of it.
 */
#define TABLE_ERROR 0x1p-22

/* ---- Kernels that a property concerns ---- */

bool is_any_kernel(enum posenc_kernel kernel);
bool has_positions(enum posenc_kernel kernel);
/* Returns true if the output has a row for each token or query, not sums over them. */
bool has_encoded_rows(enum posenc_kernel kernel);
/* Returns true if an output has this dimension. */
bool has_output_dim(enum posenc_kernel kernel, enum dim dim);
/* Returns true if problems of the kernel have a field of this name. */
bool has_field(enum posenc_kernel kernel, const char *name);

/* Returns true if the backend provides another kernel; if not, skips the tally. */
bool property_needs(struct tally *t, enum posenc_kernel other);

/* ---- Elements ---- */

/* Loop over the elements of all outputs of a call, none if it is NULL: for (EACH_ELEMENT(at, call)). */
struct element {
    const struct call *call;
    int output;
    int64_t row, column, width;
    const float *values; /* of the row */
    float value;
};
/* Returns the first element of a row. After the last row follows the next output, then an element
 * without a call. */
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

/* Return the same element of another call, and of the x that the call was made with. */
float twin_of(const struct element *at, const struct call *twin);
float x_of(const struct element *at);

/* Loop over the elements of a tensor of any dtype, none if it has no data: for (EACH_PLACE(at,
 * tensor)). place_put() rounds to the dtype. */
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

/* Fills a tensor of f32 with repetitions of its first n rows. */
void repeat_rows(const struct posenc_tensor *in, int64_t n);
/* Fills x, if there is one, with the f32 that `value` points to. */
void edit_x(struct call *call, const void *value);
extern const float plus_one, minus_zero; /* adding -0 changes no value */

/* ---- Requirements of several files ---- */

void require_element(struct tally *t, const struct element *at, float want, const char *what);

/* Returns the inner product of an output and as many f32, and adds the magnitudes of its terms to
 * `mass`. Gradients have the property <A x, g> = <x, A^T g>. */
double inner_product(const struct call *out, const float *by, double *mass);

#endif
