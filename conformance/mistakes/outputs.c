/* Mistakes that most kernels can have: outputs that are missing, exchanged or rounded, and wrong sums with x. */
#include "hypothesis.h"

#include <math.h>
#include <string.h>

static int64_t width_of(const struct hypothesis *h) { return h->call->outputs[0].width; }

/* Returns true if x has the shape of the output. */
static bool has_x_like_output(const struct hypothesis *h)
{
    const enum posenc_kernel kernel = h->call->problem.kernel;
    return kernel_rotates(kernel) || kernel_adds_onto_x(kernel);
}

/* ---- Missing outputs ---- */

enum { FILL_NONE, FILL_ZERO, FILL_X };

static void fill_row(const struct hypothesis *h, int o, int64_t r, double *want)
{
    const int64_t width = h->call->outputs[o].width;
    for (int64_t k = 0; k < width; k++)
        want[k] = h->mistake->value == FILL_X      ? (double)h->call->x[r * width + k]
                  : h->mistake->value == FILL_ZERO ? 0.0
                                                   : UNWRITTEN_VALUE;
}

/* Returns true if every output of row r is filled so. */
static bool is_filled(const struct hypothesis *h, int64_t r, double *want)
{
    bool filled = true;
    for (int o = 0; o < h->call->n_outputs; o++) {
        const float *got = call_row(h->call, o, r);
        fill_row(h, o, r, want);
        for (int64_t k = 0; k < h->call->outputs[o].width; k++)
            filled =
                filled && (want[k] == UNWRITTEN_VALUE ? float_to_bits(got[k]) == CALL_CANARY
                                                      : (double)got[k] == want[k]);
    }
    return filled;
}

static bool edit_filled(struct hypothesis *h)
{
    h->first_row = 0;
    return h->mistake->value != FILL_X || has_x_like_output(h);
}

/* Finds the first of the last rows that are filled so. Row 0 must not be one of them. */
static bool edit_last_filled(struct hypothesis *h)
{
    const int64_t rows = h->call->outputs[0].rows;
    double *want = arena_get(&h->arena, (size_t)(width_of(h) + 1) * sizeof *want);
    if (!want || !edit_filled(h))
        return false;
    h->first_row = rows;
    while (h->first_row > 0 && is_filled(h, h->first_row - 1, want))
        h->first_row--;
    h->first_row = h->first_row > 0 ? h->first_row : rows;
    return true;
}

static bool row_filled(struct hypothesis *h, int o, int64_t r, double *want, double *magnitudes)
{
    if (r >= h->first_row)
        fill_row(h, o, r, want);
    else
        hypothesis_oracle_row(h, o, r, want, magnitudes);
    return true;
}

/* ---- Exchanged outputs ---- */

static void exchange(double *values, int64_t a, int64_t b)
{
    const double value = values[a];
    values[a] = values[b];
    values[b] = value;
}

static bool row_halves_exchanged(struct hypothesis *h, int o, int64_t r, double *want,
                                 double *magnitudes)
{
    const int64_t half = h->call->outputs[o].width / 2;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < half; k++) {
        exchange(want, k, k + half);
        exchange(magnitudes, k, k + half);
    }
    return true;
}

/* Changes the sign of a row, for kernels without x. Masked keys stay masked. */
static bool row_negated(struct hypothesis *h, int o, int64_t r, double *want,
                        double *magnitudes)
{
    if (kernel_takes_x(h->call->problem.kernel))
        return false;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < width_of(h); k++)
        want[k] = isinf(want[k]) ? want[k] : -want[k];
    return true;
}

/* ---- Sums with x ---- */

enum { SUM_MINUS, SUM_SCALES_TERM, SUM_SCALES_BOTH, SUM_TWICE };

static double wrong_sum(int kind, double x, double scale, double term)
{
    switch (kind) {
    case SUM_MINUS:
        return x * scale - term;
    case SUM_SCALES_TERM:
        return x + scale * term;
    case SUM_SCALES_BOTH:
        return scale * (x + term);
    default:
        return x * scale + 2.0 * term;
    }
}

static bool edit_sum(struct hypothesis *h)
{
    return kernel_adds_onto_x(h->call->problem.kernel) && hypothesis_remove_x(h);
}

static bool edit_rounded_term(struct hypothesis *h)
{
    return edit_sum(h) && hypothesis_rounds(h);
}

static bool row_rounded_term(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes)
{
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < width_of(h); k++)
        want[k] = (double)storage_round(hypothesis_rounding(h), (float)want[k]);
    hypothesis_add_x(h, r, want);
    return true;
}

static bool row_sum(struct hypothesis *h, int o, int64_t r, double *want, double *magnitudes)
{
    const double scale = (double)h->call->problem.x_scale;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < width_of(h); k++) {
        const double x = (double)h->call->x[r * width_of(h) + k], term = want[k];
        want[k] = isinf(term) && h->mistake->value == SUM_MINUS
                      ? term
                      : wrong_sum((int)h->mistake->value, x, scale, term);
        magnitudes[k] = fmax(fabs(x), fabs(term)) * fmax(1.0, fabs(scale));
    }
    return true;
}

/* ---- Former contents ---- */

/* Adds onto memory that holds no numbers, where the former contents must not count. */
static bool row_onto_nothing(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes)
{
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < width_of(h) && !h->call->problem.accumulate; k++)
        want[k] = UNWRITTEN_VALUE;
    return true;
}

/* ---- The table ---- */

#define SUM(kind)     .edit = edit_sum, .row = row_sum, .value = (kind)
#define ROUNDED(type) .edit = edit_rounded_term, .row = row_rounded_term, .value = (type)
const struct mistake mistakes_of_outputs[] = {
    { "the output is all zeros", .edit = edit_filled, .row = row_filled, .value = FILL_ZERO },
    { "x is returned unchanged", .edit = edit_filled, .row = row_filled, .value = FILL_X },
    { "nothing is written", .edit = edit_filled, .row = row_filled, .value = FILL_NONE },
    { "the output is added to its former contents, without accumulate", "learned_grad",
      .row = row_onto_nothing },
    { "the last rows are not written", .edit = edit_last_filled, .row = row_filled,
      .value = FILL_NONE },
    { "the last rows are zeros", .edit = edit_last_filled, .row = row_filled,
      .value = FILL_ZERO },
    { "the last rows are copies of x", .edit = edit_last_filled, .row = row_filled,
      .value = FILL_X },
    { "x is not added", .fields = { { "x_scale", EDIT_SET, 0.0 } } },
    { "x_scale is ignored", .fields = { { "x_scale", EDIT_SET, 1.0 } } },
    { "the sign of x_scale is lost", .fields = { { "x_scale", EDIT_MAGNITUDE, 0.0 } } },
    { "the encoding is subtracted from x, not added", SUM(SUM_MINUS) },
    { "x_scale multiplies the encoding, not x", SUM(SUM_SCALES_TERM) },
    { "x_scale multiplies the whole sum, not x alone", SUM(SUM_SCALES_BOTH) },
    { "the encoding is added twice", SUM(SUM_TWICE) },
    { "the encoding is rounded to the type of x before it is added", ROUNDED(TYPE_OF_X) },
    { "the encoding is rounded to bf16 before it is added", ROUNDED(POSENC_DTYPE_BF16) },
    { "the encoding is rounded to f16 before it is added", ROUNDED(POSENC_DTYPE_F16) },
    { "the output has the other sign", .row = row_negated },
    { "the two halves of each output row are exchanged", "rope rope_qk_norm",
      .row = row_halves_exchanged, .is_vague = true },
    { "the output is rounded to bf16", .rounded = POSENC_DTYPE_BF16 },
    { "the output is rounded to f16", .rounded = POSENC_DTYPE_F16 },
    { .sentence = NULL },
};
