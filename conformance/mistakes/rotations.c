/* Mistakes of rotations, and of the norm of a head before it. Rows are computed in f64 from the inputs of the call. */
#include "hypothesis.h"

#include "conformance/problem/signature.h"

#include <math.h>

/* ---- The norm of rope_qk_norm ---- */

enum norm {
    NORM_RIGHT,
    NORM_NONE,
    NORM_EPSILON_OUTSIDE,
    NORM_SUM,
    NORM_CENTRED,
    NORM_VARIANCE,
    NORM_OF_ROTATED,
    NORM_WEIGHT_LAST,
    NORM_TAIL_COPIED,
    NORM_ROUNDED
};

static double weight_of(const struct hypothesis *h, int64_t r, int64_t k)
{
    const struct problem *p = &h->call->problem;
    return (double)h->call->table[r % p->heads * p->dim + k] +
           (double)h->call->args.rope_qk_norm.weight_offset;
}

/* Returns the sum of x^power over the channels that the norm is over, less a centre, and sets their number. */
static double sum_powers(const struct hypothesis *h, enum norm kind, int64_t r, double centre,
                         int power, double *n)
{
    const struct problem *p = &h->call->problem;
    const int64_t heads = h->call->args.rope_qk_norm.across_heads ? p->heads : 1;
    const float *x = h->call->x + (r - r % heads) * p->dim;
    double sum = 0.0;
    *n = 0.0;
    for (int64_t i = 0; i < heads * p->dim; i++) {
        if (kind == NORM_OF_ROTATED && !problem_rotation(p, i % p->dim).rotates)
            continue;
        sum += pow((double)x[i] - centre, power);
        *n += 1.0;
    }
    return sum;
}

/* Normalises a row in a wrong way, and multiplies it by the weight. */
static void normalise_row(const struct hypothesis *h, enum norm kind, int64_t r, float *to)
{
    const struct problem *p = &h->call->problem;
    const double epsilon = (double)h->call->args.rope_qk_norm.epsilon;
    double n, factor;
    const double mean = sum_powers(h, kind, r, 0.0, 1, &n) / n,
                 centre = kind == NORM_CENTRED ? mean : 0.0,
                 sum = sum_powers(h, kind, r, kind == NORM_VARIANCE ? mean : centre, 2, &n),
                 square = kind == NORM_SUM ? sum : sum / n;
    factor = kind == NORM_NONE              ? 1.0
             : kind == NORM_EPSILON_OUTSIDE ? 1.0 / (sqrt(square) + epsilon)
                                            : 1.0 / sqrt(square + epsilon);
    for (int64_t k = 0; k < p->dim; k++) {
        const float x = h->call->x[r * p->dim + k];
        double value = ((double)x - centre) * factor;
        if (kind == NORM_ROUNDED)
            value = (double)storage_round(p->dtype, (float)value);
        to[k] = (float)(value * (kind == NORM_WEIGHT_LAST ? 1.0 : weight_of(h, r, k)));
        if (kind == NORM_TAIL_COPIED && !problem_rotation(p, k).rotates)
            to[k] = x;
    }
}

/* Replaces x by its normalised rows, and the kernel by one without a norm. */
static bool normalise(struct hypothesis *h, enum norm kind)
{
    const struct output *out = &h->call->outputs[0];
    float *x = arena_get(&h->arena, (size_t)(out->rows * out->width) * sizeof *x);
    for (int64_t r = 0; x && r < out->rows; r++)
        normalise_row(h, kind, r, x + r * out->width);
    h->edited.problem.kernel = POSENC_KERNEL_ROPE_HALF;
    h->edited.x = x;
    return x;
}

static bool edit_norm(struct hypothesis *h)
{
    return normalise(h, (enum norm)h->mistake->value);
}

static void row_weight_last(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width; k++) {
        h->want[k] *= weight_of(h, h->r, k);
        h->magnitudes[k] *= fabs(weight_of(h, h->r, k));
    }
}

/* Makes all weights 1, or gives each head the weights of the first one. */
enum { WEIGHT_NONE, WEIGHT_FIRST };
static bool edit_weight(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    float *weight = hypothesis_copy(h, h->call->table, p->heads * p->dim);
    for (int64_t i = 0; weight && i < p->heads * p->dim; i++)
        weight[i] = h->mistake->value == WEIGHT_NONE ? 1.0f : h->call->table[i % p->dim];
    h->edited.table = weight;
    return weight;
}

/* ---- The rotation ---- */

enum pair_error {
    SINES_BACKWARD,
    SINES_ADDED,
    SINES_SUBTRACTED,
    SINES_NONE,
    SINES_COSINES,
    PAIRS_OTHER,          /* adjacent channels for halves, and the reverse */
    PAIRS_READ_OTHER,     /* only as x is read */
    PAIRS_WRITE_OTHER,    /* only as out is written */
    PAIRS_OF_HEAD,        /* half the head apart */
    PAIRS_OF_HEAD_COPIED, /* the same, before channels past rotary_dim are copied */
    ANGLES_OTHER,         /* each channel has the angle that it has in the other pairing */
    ANGLES_ROUNDED,
    ANGLES_ADDED, /* to x, as a table is added */
    RESULT_USED,  /* the new first channel enters the second one, as in place without a copy */
    PRODUCTS_ROUNDED
};

/* Sets two channels to pair i. */
static void find_channels(const struct hypothesis *h, int64_t i, bool adjacent,
                          int64_t channels[2])
{
    const struct problem *p = &h->call->problem;
    const bool of_head =
        h->mistake->value == PAIRS_OF_HEAD || h->mistake->value == PAIRS_OF_HEAD_COPIED;
    channels[0] = p->rotary_offset + (adjacent ? 2 * i : i);
    channels[1] = channels[0] + (adjacent ? 1 : (of_head ? p->dim : p->rotary_dim) / 2);
}

/* Computes the channels y of a pair from x and, for each channel, a cosine and a sine. */
static void rotate_wrongly(const struct hypothesis *h, const double x[2], const double c[2],
                           const double s[2], double y[2])
{
    static const double signs[][2] = { [SINES_BACKWARD] = { 1.0, -1.0 },
                                       [SINES_ADDED] = { 1.0, 1.0 },
                                       [SINES_SUBTRACTED] = { -1.0, -1.0 },
                                       [SINES_NONE] = { 0.0, 0.0 },
                                       { -1.0, 1.0 } };
    const enum pair_error error = (enum pair_error)h->mistake->value;
    const double *sign = signs[error < SINES_COSINES ? error : SINES_COSINES];
    for (int i = 0; i < 2; i++) {
        const double a = x[i] * c[i], b = sign[i] * x[1 - i] * s[i];
        y[i] = a + b;
        if (error == PRODUCTS_ROUNDED)
            y[i] = hypothesis_round(h, hypothesis_round(h, a) + hypothesis_round(h, b));
        if (error == ANGLES_ADDED)
            y[i] = x[i] + (i == 0 ? c[i] : s[i]);
    }
    if (error == RESULT_USED)
        y[1] = x[1] * c[1] + (double)storage_round(h->call->problem.dtype, (float)y[0]) * s[1];
}

static void rotate_pair(struct hypothesis *h, int64_t i, const float *cosines,
                        const float *sines)
{
    const struct problem *p = &h->call->problem;
    const enum pair_error error = (enum pair_error)h->mistake->value;
    const bool adjacent = kernel_pairs_adjacent(p->kernel);
    const int64_t half = p->rotary_dim / 2;
    int64_t read[2], write[2], angle[2] = { i, i };
    double x[2], c[2], s[2], y[2];
    find_channels(h, i, adjacent != (error == PAIRS_OTHER || error == PAIRS_READ_OTHER), read);
    find_channels(h, i, adjacent != (error == PAIRS_OTHER || error == PAIRS_WRITE_OTHER),
                  write);
    if (error == ANGLES_OTHER) {
        angle[0] = adjacent ? 2 * i % half : i / 2;
        angle[1] = adjacent ? (2 * i + 1) % half : (i + half) / 2;
    }
    for (int k = 0; k < 2; k++) {
        const double cosine = (double)cosines[angle[k]],
                     sine = (double)(p->transpose ? -sines[angle[k]] : sines[angle[k]]);
        x[k] = (double)h->edited.x[h->r * p->dim + read[k]];
        c[k] = error == SINES_COSINES ? sine : cosine;
        s[k] = error == SINES_COSINES ? cosine : sine;
        if (error == ANGLES_ROUNDED) {
            c[k] = hypothesis_round(h, cosine);
            s[k] = hypothesis_round(h, sine);
        }
    }
    rotate_wrongly(h, x, c, s, y);
    for (int k = 0; k < 2; k++) {
        h->want[write[k]] = y[k];
        h->magnitudes[write[k]] =
            fmax(fmax(fabs(x[0]), fabs(x[1])), fmax(fabs(y[0]), fabs(y[1])));
    }
}

static void row_pairs(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t token = h->r / p->heads, half = p->rotary_dim / 2,
                  row = problem_position(p, token / p->tokens, token % p->tokens) * half;
    for (int64_t k = 0; k < p->dim; k++) {
        h->want[k] = (double)h->edited.x[h->r * p->dim + k];
        h->magnitudes[k] = fabs(h->want[k]);
    }
    for (int64_t i = 0; i < half; i++)
        rotate_pair(h, i, h->call->cos + row, h->call->sin + row);
    for (int64_t k = p->rotary_offset + 2 * half;
         k < p->dim && h->mistake->value == PAIRS_OF_HEAD_COPIED && !p->in_place; k++)
        h->want[k] = (double)h->edited.x[h->r * p->dim + k];
}

static bool edit_pairs(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const enum pair_error error = (enum pair_error)h->mistake->value;
    if ((error == PAIRS_OF_HEAD || error == PAIRS_OF_HEAD_COPIED) &&
        p->rotary_offset + p->rotary_dim / 2 + p->dim / 2 > p->dim)
        return false; /* pairs would end in the next head */
    if ((error == ANGLES_ROUNDED || error == PRODUCTS_ROUNDED) && !hypothesis_rounds(h))
        return false;
    return p->kernel != POSENC_KERNEL_ROPE_QK_NORM || normalise(h, NORM_RIGHT);
}

/* ---- Channels that do not rotate ---- */

enum { TAIL_ZERO, TAIL_UNWRITTEN, TAIL_UNWRITTEN_BEFORE, TAIL_UNWRITTEN_AFTER };

/* In place, channels that are not written are copies of x. */
static bool edit_tail(struct hypothesis *h)
{
    return h->mistake->value == TAIL_ZERO || !h->call->problem.in_place;
}

static void row_tail(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const double kind = h->mistake->value;
    for (int64_t k = 0; k < p->dim; k++) {
        const bool before = k < p->rotary_offset;
        const bool concerned = kind != (before ? TAIL_UNWRITTEN_AFTER : TAIL_UNWRITTEN_BEFORE);
        if (!problem_rotation(p, k).rotates && concerned)
            h->want[k] = kind == TAIL_ZERO ? 0.0 : UNWRITTEN_VALUE;
    }
}

/* ---- The table ---- */

#define ROPE         "rope"
#define QK_NORM      "rope_qk_norm"
#define BOTH         "rope rope_qk_norm"
#define HALVES       "rope_half rope_qk_norm"
#define ADJACENT     "rope_interleaved"
#define PAIR(kind)   .edit = edit_pairs, .row = row_pairs, .value = (kind)
#define ANGLES(to)   BOTH, PAIR(ANGLES_ROUNDED), .type = (to)
#define PRODUCTS(to) ROPE, PAIR(PRODUCTS_ROUNDED), .type = (to)
#define TAIL(kind)   BOTH, .edit = edit_tail, .row = row_tail, .value = (kind)
#define NORM(kind)   QK_NORM, .edit = edit_norm, .value = (kind)
const struct mistake mistakes_of_rotations[] = {
    { "transpose is ignored: the rotation always turns forward", ROPE, SET("transpose", 0.0) },
    { "the sine has the other sign: the rotation turns backward", BOTH, PAIR(SINES_BACKWARD) },
    { "the sine is added in both channels of a pair, as by rotate_half() without its minus",
      BOTH, PAIR(SINES_ADDED) },
    { "the sine is subtracted in both channels of a pair", BOTH, PAIR(SINES_SUBTRACTED) },
    { "the terms with the sine are missing", BOTH, PAIR(SINES_NONE) },
    { "cosine and sine are exchanged", BOTH, PAIR(SINES_COSINES) },
    { "adjacent channels are paired, as by rope_interleaved", HALVES, PAIR(PAIRS_OTHER) },
    { "channels are paired half the rotary channels apart, as by rope_half", ADJACENT,
      PAIR(PAIRS_OTHER) },
    { "adjacent channels are read as pairs, and written half the rotary channels apart", HALVES,
      PAIR(PAIRS_READ_OTHER) },
    { "pairs are read from both halves, and written to adjacent channels", HALVES,
      PAIR(PAIRS_WRITE_OTHER) },
    { "pairs are read from both halves, and written to adjacent channels", ADJACENT,
      PAIR(PAIRS_READ_OTHER) },
    { "adjacent channels are read as pairs, and written half the rotary channels apart",
      ADJACENT, PAIR(PAIRS_WRITE_OTHER) },
    { "channels are paired half the head apart: rotary_dim is taken for head_dim", HALVES,
      PAIR(PAIRS_OF_HEAD) },
    { "channels are paired half the head apart: rotary_dim is taken for head_dim", HALVES,
      PAIR(PAIRS_OF_HEAD_COPIED) },
    { "each angle is repeated for two adjacent channels, as rope_interleaved needs it", HALVES,
      PAIR(ANGLES_OTHER) },
    { "all angles are repeated for the second half, as rope_half needs them", ADJACENT,
      PAIR(ANGLES_OTHER) },
    { "rotary_offset is ignored: the first channels are rotated", BOTH,
      SET("rotary_offset", 0.0) },
    { "the first channel of a pair is overwritten before the second one is computed", BOTH,
      PAIR(RESULT_USED) },
    { "cos and sin are added to x", ROPE, PAIR(ANGLES_ADDED) },
    { "cos and sin are rounded to the type of x", ANGLES(TYPE_OF_X) },
    { "cos and sin are rounded to bf16", ANGLES(POSENC_DTYPE_BF16) },
    { "cos and sin are rounded to f16", ANGLES(POSENC_DTYPE_F16) },
    { "the arithmetic is in the type of x: each product is rounded", PRODUCTS(TYPE_OF_X) },
    { "the arithmetic is in bf16: each product is rounded", PRODUCTS(POSENC_DTYPE_BF16) },
    { "the arithmetic is in f16: each product is rounded", PRODUCTS(POSENC_DTYPE_F16) },
    { "channels that do not rotate are not written", TAIL(TAIL_UNWRITTEN) },
    { "channels before the rotated ones are not written", TAIL(TAIL_UNWRITTEN_BEFORE) },
    { "channels after the rotated ones are not written", TAIL(TAIL_UNWRITTEN_AFTER) },
    { "channels that do not rotate are zeros", TAIL(TAIL_ZERO) },
    { "the norm is missing", NORM(NORM_NONE) },
    { "epsilon is added to the root, not under it", NORM(NORM_EPSILON_OUTSIDE) },
    { "the norm is over the sum of squares, not over their mean", NORM(NORM_SUM) },
    { "the mean is subtracted first, as by a layer norm", NORM(NORM_CENTRED) },
    { "the norm is over the variance, without the mean", NORM(NORM_VARIANCE) },
    { "the norm is over the rotated channels alone", NORM(NORM_OF_ROTATED) },
    { "the weight multiplies after the rotation, not before it", NORM(NORM_WEIGHT_LAST),
      .row = row_weight_last },
    { "channels that do not rotate are copied without the norm", NORM(NORM_TAIL_COPIED) },
    { "the norm is rounded to the type of x before the weight", NORM(NORM_ROUNDED) },
    { "across_heads is ignored: the norm is over each head", QK_NORM,
      SET("across_heads", 0.0) },
    { "the norm is over all heads without across_heads", QK_NORM, SET("across_heads", 1.0) },
    { "weight_offset is ignored", QK_NORM, SET("weight_offset", 0.0) },
    { "1 is added to the weight", QK_NORM, ADD("weight_offset", 1.0) },
    { "the weight is ignored", QK_NORM, SET("weight_offset", 0.0), .edit = edit_weight,
      .value = WEIGHT_NONE },
    { "every head has the weight of the first one", QK_NORM, .edit = edit_weight,
      .value = WEIGHT_FIRST },
    { "epsilon is 1e-6 whatever is given", QK_NORM, SET("epsilon", 1e-6) },
    { "epsilon is 1e-5 whatever is given", QK_NORM, SET("epsilon", 1e-5) },
    { .sentence = NULL },
};
