/* Mistakes of rotations, such as a sine with the other sign, and of the norm of a head before it. row_rotation()
 * computes a row in f64 from the inputs of the call, with one of the errors below. */
#include "hypothesis.h"

#include <math.h>

enum rotation_error {
    SINES_BACKWARD, /* the first four change the sign of a sine, or remove it */
    SINES_ADDED,
    SINES_SUBTRACTED,
    SINES_NONE,
    SINES_COSINES,        /* exchanged */
    PAIRS_OTHER,          /* adjacent channels for halves, and the reverse */
    PAIRS_READ_OTHER,     /* only as x is read */
    PAIRS_WRITE_OTHER,    /* only as out is written */
    PAIRS_OF_HEAD,        /* half the head apart */
    PAIRS_OF_HEAD_COPIED, /* the same, before channels past rotary_dim are copied */
    ANGLES_OTHER,         /* each channel has the angle that it has in the other pairing */
    ANGLES_ROUNDED,
    ANGLES_ADDED, /* to x, as a table is added */
    RESULT_USED,  /* the new first channel enters the second one, as in place without a copy */
    PRODUCTS_ROUNDED,
    NORM_NONE, /* of rope_qk_norm; the rotation is right */
    NORM_EPSILON_OUTSIDE,
    NORM_SUM,
    NORM_CENTRED,
    NORM_VARIANCE,
    NORM_OF_ROTATED,
    NORM_WEIGHT_LAST,
    NORM_TAIL_COPIED,
    NORM_ROUNDED
};

static enum rotation_error error_of(const struct hypothesis *h)
{
    return (enum rotation_error)h->mistake->value;
}

/* ---- The norm of rope_qk_norm ---- */

static double weight_of(const struct hypothesis *h, int64_t k)
{
    const struct problem *p = &h->call->problem;
    return (double)h->call->table[h->row % p->heads * p->dim + k] +
           (double)h->call->args.rope_qk_norm.weight_offset;
}

/* Returns the factor of the row's channels, and the mean that is subtracted from them. */
static double norm_factor(const struct hypothesis *h, double *centre)
{
    const struct problem *p = &h->call->problem;
    const int64_t heads = h->call->args.rope_qk_norm.across_heads ? p->heads : 1;
    const float *x = h->call->x + (h->row - h->row % heads) * p->dim;
    const double epsilon = (double)h->call->args.rope_qk_norm.epsilon;
    const enum rotation_error error = error_of(h);
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < heads * p->dim; i++) {
        if (error == NORM_OF_ROTATED && !problem_rotation(p, i % p->dim).rotates)
            continue;
        n += 1.0;
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    const double mean = sum / n, square = error == NORM_SUM ? squares : squares / n;
    *centre = error == NORM_CENTRED ? mean : 0.0;
    switch (error) {
    case NORM_NONE:
        return 1.0;
    case NORM_EPSILON_OUTSIDE:
        return 1.0 / (sqrt(square) + epsilon);
    case NORM_CENTRED:
    case NORM_VARIANCE:
        return 1.0 / sqrt(square - mean * mean + epsilon);
    default:
        return 1.0 / sqrt(square + epsilon);
    }
}

/* Fills the channels of the row before rotation. */
static void fill_channels(const struct hypothesis *h, double *channels)
{
    const struct problem *p = &h->call->problem;
    const bool norms = p->kernel == POSENC_KERNEL_ROPE_QK_NORM;
    const enum rotation_error error = error_of(h);
    double centre = 0.0;
    const double factor = norms ? norm_factor(h, &centre) : 1.0;
    for (int64_t k = 0; k < p->dim; k++) {
        const double x = (double)h->call->x[h->row * p->dim + k];
        channels[k] = (x - centre) * factor;
        if (error == NORM_ROUNDED)
            channels[k] = (double)storage_round(p->dtype, (float)channels[k]);
        if (norms && error != NORM_WEIGHT_LAST)
            channels[k] *= weight_of(h, k);
        if (error == NORM_TAIL_COPIED && !problem_rotation(p, k).rotates)
            channels[k] = x;
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

/* Sets two channels to pair i. */
static void find_channels(const struct hypothesis *h, int64_t i, bool adjacent,
                          int64_t channels[2])
{
    const struct problem *p = &h->call->problem;
    const bool of_head = error_of(h) == PAIRS_OF_HEAD || error_of(h) == PAIRS_OF_HEAD_COPIED;
    channels[0] = p->rotary_offset + (adjacent ? 2 * i : i);
    channels[1] = channels[0] + (adjacent ? 1 : (of_head ? p->dim : p->rotary_dim) / 2);
}

/* Computes the channels y of a pair from x and, for each channel, a cosine and a sine. */
static void rotate_wrongly(const struct hypothesis *h, const double x[2], const double c[2],
                           const double s[2], double y[2])
{
    /* Factors of the sine in both channels. Other errors have the right ones. */
    static const double factors[][2] = { [SINES_BACKWARD] = { 1.0, -1.0 },
                                         [SINES_ADDED] = { 1.0, 1.0 },
                                         [SINES_SUBTRACTED] = { -1.0, -1.0 },
                                         [SINES_NONE] = { 0.0, 0.0 } };
    static const double right_factors[2] = { -1.0, 1.0 };
    const enum rotation_error error = error_of(h);
    const double *factor = error <= SINES_NONE ? factors[error] : right_factors;
    for (int i = 0; i < 2; i++) {
        const double own = x[i] * c[i], other = factor[i] * x[1 - i] * s[i];
        y[i] = own + other;
        if (error == PRODUCTS_ROUNDED)
            y[i] = hypothesis_round(h, hypothesis_round(h, own) + hypothesis_round(h, other));
        if (error == ANGLES_ADDED)
            y[i] = x[i] + (i == 0 ? c[i] : s[i]);
    }
    if (error == RESULT_USED)
        y[1] = x[1] * c[1] + (double)storage_round(h->call->problem.dtype, (float)y[0]) * s[1];
}

static void rotate_pair(struct hypothesis *h, int64_t i, const double *channels,
                        const float *cosines, const float *sines)
{
    const struct problem *p = &h->call->problem;
    const enum rotation_error error = error_of(h);
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
        x[k] = channels[read[k]];
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

static void row_rotation(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t token = h->row / p->heads, half = p->rotary_dim / 2,
                  row = problem_position(p, token / p->tokens, token % p->tokens) * half;
    double *channels = h->scratch;
    fill_channels(h, channels);
    for (int64_t k = 0; k < p->dim; k++) {
        h->want[k] = channels[k];
        h->magnitudes[k] = fabs(channels[k]);
    }
    for (int64_t i = 0; i < half; i++)
        rotate_pair(h, i, channels, h->call->cos + row, h->call->sin + row);
    for (int64_t k = 0; k < p->dim; k++) {
        if (error_of(h) == NORM_WEIGHT_LAST) {
            h->want[k] *= weight_of(h, k);
            h->magnitudes[k] *= fabs(weight_of(h, k));
        }
        if (error_of(h) == PAIRS_OF_HEAD_COPIED && !p->in_place &&
            k >= p->rotary_offset + 2 * half)
            h->want[k] = channels[k];
    }
}

static bool edit_rotation(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const enum rotation_error error = error_of(h);
    if (error == PAIRS_OF_HEAD || error == PAIRS_OF_HEAD_COPIED) /* else in the next head */
        return p->rotary_offset + p->rotary_dim / 2 + p->dim / 2 <= p->dim;
    return (error != ANGLES_ROUNDED && error != PRODUCTS_ROUNDED) || hypothesis_rounds(h);
}

/* ---- Channels that do not rotate ---- */

enum { TAIL_ZERO, TAIL_UNWRITTEN, TAIL_UNWRITTEN_BEFORE, TAIL_UNWRITTEN_AFTER };

/* In place, channels that are not written are copies of x. */
static bool edit_tail(struct hypothesis *h)
{
    return h->mistake->value == TAIL_ZERO || !h->call->problem.in_place;
}

static void change_tail(struct hypothesis *h)
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
#define ERROR(kind)  .edit = edit_rotation, .row = row_rotation, .value = (kind)
#define ANGLES(to)   BOTH, ERROR(ANGLES_ROUNDED), .type = (to)
#define PRODUCTS(to) ROPE, ERROR(PRODUCTS_ROUNDED), .type = (to)
#define TAIL(kind)   BOTH, .edit = edit_tail, .change = change_tail, .value = (kind)
#define NORM(kind)   QK_NORM, ERROR(kind)
const struct mistake mistakes_of_rotations[] = {
    { "transpose is ignored: the rotation always turns forward", ROPE, SET("transpose", 0.0) },
    { "the sine has the other sign: the rotation turns backward", BOTH, ERROR(SINES_BACKWARD) },
    { "the sine is added in both channels of a pair, as by rotate_half() without its minus",
      BOTH, ERROR(SINES_ADDED) },
    { "the sine is subtracted in both channels of a pair", BOTH, ERROR(SINES_SUBTRACTED) },
    { "the terms with the sine are missing", BOTH, ERROR(SINES_NONE) },
    { "cosine and sine are exchanged", BOTH, ERROR(SINES_COSINES) },
    { "adjacent channels are paired, as by rope_interleaved", HALVES, ERROR(PAIRS_OTHER) },
    { "channels are paired half the rotary channels apart, as by rope_half", ADJACENT,
      ERROR(PAIRS_OTHER) },
    { "adjacent channels are read as pairs, and written half the rotary channels apart", HALVES,
      ERROR(PAIRS_READ_OTHER) },
    { "pairs are read from both halves, and written to adjacent channels", HALVES,
      ERROR(PAIRS_WRITE_OTHER) },
    { "pairs are read from both halves, and written to adjacent channels", ADJACENT,
      ERROR(PAIRS_READ_OTHER) },
    { "adjacent channels are read as pairs, and written half the rotary channels apart",
      ADJACENT, ERROR(PAIRS_WRITE_OTHER) },
    { "channels are paired half the head apart: rotary_dim is taken for head_dim", HALVES,
      ERROR(PAIRS_OF_HEAD) },
    { "channels are paired half the head apart: rotary_dim is taken for head_dim", HALVES,
      ERROR(PAIRS_OF_HEAD_COPIED) },
    { "each angle is repeated for two adjacent channels, as rope_interleaved needs it", HALVES,
      ERROR(ANGLES_OTHER) },
    { "all angles are repeated for the second half, as rope_half needs them", ADJACENT,
      ERROR(ANGLES_OTHER) },
    { "rotary_offset is ignored: the first channels are rotated", BOTH,
      SET("rotary_offset", 0.0) },
    { "the first channel of a pair is overwritten before the second one is computed", BOTH,
      ERROR(RESULT_USED) },
    { "cos and sin are added to x", ROPE, ERROR(ANGLES_ADDED) },
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
    { "the weight multiplies after the rotation, not before it", NORM(NORM_WEIGHT_LAST) },
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
