/* Mistakes of rotations, and of the norm of a head before it. Rows are computed in f64 from the inputs of the call. */
#include "hypothesis.h"

#include <math.h>
#include <string.h>

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

static enum norm norm_of(const struct hypothesis *h)
{
    const bool rotation_is_wrong = h->mistake->place || h->mistake->turn || h->mistake->combine;
    return rotation_is_wrong ? NORM_RIGHT : (enum norm)h->mistake->value;
}

/* Returns the parameter of rope_qk_norm with this name. */
static double own_parameter(const struct hypothesis *h, const char *name)
{
    struct field field;
    if (!kernel_field_find(h->call->problem.kernel, name, &field))
        return 0.0;
    const uint64_t bits = field_get(&field, &h->call->problem, 0);
    return field_is_real(&field) ? bits_to_double(bits) : (double)bits;
}

/* Returns the mean of the channels that the norm is over, or of their squares around a centre. */
static double mean_of(const struct hypothesis *h, int64_t r, bool squares, double centre)
{
    const struct problem *p = &h->call->problem;
    const int64_t heads = own_parameter(h, "across_heads") != 0.0 ? p->heads : 1;
    const bool rotated_alone = norm_of(h) == NORM_OF_ROTATED;
    const float *x = h->call->x + (heads > 1 ? r - r % heads : r) * p->dim;
    double sum = 0.0, n = 0.0;
    for (int64_t i = 0; i < heads * p->dim; i++) {
        if (rotated_alone && !problem_rotation(p, i % p->dim).rotates)
            continue;
        const double value = (double)x[i] - centre;
        sum += squares ? value * value : value;
        n += 1.0;
    }
    return squares && norm_of(h) == NORM_SUM ? sum : sum / n;
}

static double norm_factor(const struct hypothesis *h, int64_t r, double centre)
{
    const double epsilon = own_parameter(h, "epsilon");
    const double mean = norm_of(h) == NORM_VARIANCE ? mean_of(h, r, false, 0.0) : centre;
    const double square = mean_of(h, r, true, mean);
    if (norm_of(h) == NORM_NONE)
        return 1.0;
    return norm_of(h) == NORM_EPSILON_OUTSIDE ? 1.0 / (sqrt(square) + epsilon)
                                              : 1.0 / sqrt(square + epsilon);
}

static double weight_of(const struct hypothesis *h, int64_t r, int64_t k)
{
    const struct problem *p = &h->call->problem;
    return (double)h->call->table[r % p->heads * p->dim + k] +
           own_parameter(h, "weight_offset");
}

/* Fills the channels of a row before rotation. */
static void fill_channels(const struct hypothesis *h, int64_t r, double *channels)
{
    const struct problem *p = &h->call->problem;
    const float *x = h->call->x + r * p->dim;
    const bool norms = kernel_signature(p->kernel) == SIGNATURE_rope_qk_norm;
    const double centre = norms && norm_of(h) == NORM_CENTRED ? mean_of(h, r, false, 0.0) : 0.0;
    const double factor = norms ? norm_factor(h, r, centre) : 1.0;
    for (int64_t k = 0; k < p->dim; k++) {
        channels[k] = ((double)x[k] - centre) * factor;
        if (norms && norm_of(h) == NORM_ROUNDED)
            channels[k] = (double)storage_round(p->dtype, (float)channels[k]);
        if (norms && norm_of(h) != NORM_WEIGHT_LAST)
            channels[k] *= weight_of(h, r, k);
        if (norms && norm_of(h) == NORM_TAIL_COPIED && !problem_rotation(p, k).rotates)
            channels[k] = (double)x[k];
    }
}

/* ---- Rotation ---- */

/* Returns the row of cosines and sines for a row of x. */
static int64_t angle_row(const struct problem *p, int64_t r)
{
    const int64_t token = r / p->heads;
    return problem_position(p, token / p->tokens, token % p->tokens);
}

static struct rotated_pair pair_of(const struct hypothesis *h, int64_t i)
{
    const struct problem *p = &h->call->problem;
    const bool adjacent = kernel_pairs_adjacent(p->kernel);
    const int64_t first = p->rotary_offset + (adjacent ? 2 * i : i),
                  second = first + (adjacent ? 1 : p->rotary_dim / 2);
    return (struct rotated_pair){ .read = { first, second },
                                  .write = { first, second },
                                  .angle = { i, i } };
}

static void rotate_pair(const struct hypothesis *h, int64_t r, int64_t i,
                        const double *channels, double *want, double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const int64_t row = angle_row(p, r) * (p->rotary_dim / 2);
    struct rotated_pair pair = pair_of(h, i);
    if (h->mistake->place)
        h->mistake->place(h, i, &pair);
    for (int c = 0; c < 2; c++) {
        const double sine = (double)h->call->sin[row + pair.angle[c]];
        pair.x[c] = channels[pair.read[c]];
        pair.c[c] = (double)h->call->cos[row + pair.angle[c]];
        pair.s[c] = p->transpose ? -sine : sine;
    }
    if (h->mistake->turn)
        h->mistake->turn(h, &pair);
    pair.y[0] = pair.x[0] * pair.c[0] - pair.x[1] * pair.s[0];
    pair.y[1] = pair.x[1] * pair.c[1] + pair.x[0] * pair.s[1];
    if (h->mistake->combine)
        h->mistake->combine(h, &pair);
    for (int c = 0; c < 2; c++) {
        want[pair.write[c]] = pair.y[c];
        magnitudes[pair.write[c]] = fmax(fmax(fabs(pair.x[0]), fabs(pair.x[1])),
                                         fmax(fabs(pair.y[0]), fabs(pair.y[1])));
    }
}

bool hypothesis_rotation_row(struct hypothesis *h, int64_t r, double *want, double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    double *channels = want + 2 * p->dim; /* the buffer of a row has room for it */
    fill_channels(h, r, channels);
    for (int64_t k = 0; k < p->dim; k++) {
        want[k] = channels[k];
        magnitudes[k] = fabs(channels[k]);
    }
    for (int64_t i = 0; i < p->rotary_dim / 2; i++)
        rotate_pair(h, r, i, channels, want, magnitudes);
    for (int64_t k = 0; k < p->dim && norm_of(h) == NORM_WEIGHT_LAST; k++) {
        want[k] *= weight_of(h, r, k);
        magnitudes[k] *= fabs(weight_of(h, r, k));
    }
    return true;
}

static bool row_norm(struct hypothesis *h, int o, int64_t r, double *want, double *magnitudes)
{
    (void)o;
    return hypothesis_rotation_row(h, r, want, magnitudes);
}

/* ---- Wrong sines ---- */

static void turn_backward(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    pair->s[0] = -pair->s[0];
    pair->s[1] = -pair->s[1];
}

static void ignore_transpose(const struct hypothesis *h, struct rotated_pair *pair)
{
    if (h->call->problem.transpose)
        turn_backward(h, pair);
}

/* rotate_half() without its minus. */
static void add_sines(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    pair->s[0] = -pair->s[0];
}

static void subtract_sines(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    pair->s[1] = -pair->s[1];
}

static void drop_sines(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    pair->s[0] = pair->s[1] = 0.0;
}

static void exchange_sines(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    for (int c = 0; c < 2; c++) {
        const double sine = pair->s[c];
        pair->s[c] = pair->c[c];
        pair->c[c] = sine;
    }
}

static void round_angles(const struct hypothesis *h, struct rotated_pair *pair)
{
    const enum posenc_dtype dtype = hypothesis_rounding(h);
    for (int c = 0; c < 2; c++) {
        pair->c[c] = (double)storage_round(dtype, (float)pair->c[c]);
        pair->s[c] = (double)storage_round(dtype, (float)pair->s[c]);
    }
}

/* ---- Wrong channels ---- */

/* Sets two channels to pair i of adjacent channels, or of halves. */
static void set_channels(const struct hypothesis *h, int64_t i, bool adjacent,
                         int64_t channels[2])
{
    const struct problem *p = &h->call->problem;
    channels[0] = p->rotary_offset + (adjacent ? 2 * i : i);
    channels[1] = channels[0] + (adjacent ? 1 : p->rotary_dim / 2);
}

static bool has_adjacent(const struct hypothesis *h)
{
    return kernel_pairs_adjacent(h->call->problem.kernel);
}

static void pair_otherwise(const struct hypothesis *h, int64_t i, struct rotated_pair *pair)
{
    set_channels(h, i, !has_adjacent(h), pair->read);
    set_channels(h, i, !has_adjacent(h), pair->write);
}

static void read_otherwise(const struct hypothesis *h, int64_t i, struct rotated_pair *pair)
{
    set_channels(h, i, !has_adjacent(h), pair->read);
}

static void write_otherwise(const struct hypothesis *h, int64_t i, struct rotated_pair *pair)
{
    set_channels(h, i, !has_adjacent(h), pair->write);
}

/* Gives each channel of a pair the angle that the channel has in the other pairing. */
static void take_angles_otherwise(const struct hypothesis *h, int64_t i,
                                  struct rotated_pair *pair)
{
    const int64_t half = h->call->problem.rotary_dim / 2;
    pair->angle[0] = has_adjacent(h) ? 2 * i % half : i / 2;
    pair->angle[1] = has_adjacent(h) ? (2 * i + 1) % half : (i + half) / 2;
}

static void rotate_first_channels(const struct hypothesis *h, int64_t i,
                                  struct rotated_pair *pair)
{
    (void)i;
    for (int c = 0; c < 2; c++) {
        pair->read[c] -= pair->read[c] >= h->call->problem.rotary_offset
                             ? h->call->problem.rotary_offset
                             : 0;
        pair->write[c] = pair->read[c];
    }
}

/* The new value of the first channel enters the second one, as in place without a copy. */
static void use_result(const struct hypothesis *h, struct rotated_pair *pair)
{
    const float first = storage_round(h->call->problem.dtype, (float)pair->y[0]);
    pair->y[1] = pair->x[1] * pair->c[1] + (double)first * pair->s[1];
}

/* Each product and the sum are rounded to a 16-bit type. */
static void round_products(const struct hypothesis *h, struct rotated_pair *pair)
{
    const enum posenc_dtype dtype = hypothesis_rounding(h);
    for (int c = 0; c < 2; c++) {
        const double sign = c == 0 ? -1.0 : 1.0;
        const float a = storage_round(dtype, (float)(pair->x[c] * pair->c[c])),
                    b = storage_round(dtype, (float)(pair->x[1 - c] * pair->s[c]));
        pair->y[c] = (double)storage_round(dtype, (float)((double)a + sign * (double)b));
    }
}

/* Adds cosines and sines to x, as a table is added. */
static void add_angles(const struct hypothesis *h, struct rotated_pair *pair)
{
    (void)h;
    pair->y[0] = pair->x[0] + pair->c[0];
    pair->y[1] = pair->x[1] + pair->s[1];
}

/* ---- Other edits ---- */

/* In place, channels that are not written are copies of x. */
static bool edit_out_of_place(struct hypothesis *h) { return !h->call->problem.in_place; }

static bool row_unwritten_tail(struct hypothesis *h, int o, int64_t r, double *want,
                               double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const bool before = h->mistake->value <= 0.0, after = h->mistake->value >= 0.0;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < p->dim; k++)
        if (!problem_rotation(p, k).rotates && (k < p->rotary_offset ? before : after))
            want[k] = UNWRITTEN_VALUE;
    return true;
}

static bool row_zero_tail(struct hypothesis *h, int o, int64_t r, double *want,
                          double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < p->dim; k++)
        want[k] = problem_rotation(p, k).rotates ? want[k] : 0.0;
    return true;
}

static bool edit_first_weight(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    float *weight = hypothesis_copy(h, h->call->table, p->heads * p->dim);
    for (int64_t i = 0; weight && i < p->heads * p->dim; i++)
        weight[i] = h->call->table[i % p->dim];
    h->edited.table = weight;
    return weight;
}

static bool edit_no_weight(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    float *weight = hypothesis_copy(h, h->call->table, p->heads * p->dim);
    for (int64_t i = 0; weight && i < p->heads * p->dim; i++)
        weight[i] = 1.0f;
    h->edited.table = weight;
    return weight;
}

/* ---- The table ---- */

#define ROPE            "rope"
#define QK_NORM         "rope_qk_norm"
#define BOTH            "rope rope_qk_norm"
#define NORM(kind)      QK_NORM, .row = row_norm, .value = (kind)
#define ANGLES(type)    .edit = hypothesis_rounds, .turn = round_angles, .value = (type)
#define UNWRITTEN(side) .edit = edit_out_of_place, .row = row_unwritten_tail, .value = (side)
#define PRODUCTS(type)  .edit = hypothesis_rounds, .combine = round_products, .value = (type)
const struct mistake mistakes_of_rotations[] = {
    { "transpose is ignored: the rotation always turns forward", ROPE,
      .turn = ignore_transpose },
    { "the sine has the other sign: the rotation turns backward", BOTH, .turn = turn_backward },
    { "the sine is added in both channels of a pair, as by rotate_half() without its minus",
      BOTH, .turn = add_sines },
    { "the sine is subtracted in both channels of a pair", BOTH, .turn = subtract_sines },
    { "the terms with the sine are missing", BOTH, .turn = drop_sines },
    { "cosine and sine are exchanged", BOTH, .turn = exchange_sines },
    { "adjacent channels are paired, as by rope_interleaved", "rope_half rope_qk_norm",
      .place = pair_otherwise },
    { "channels are paired half the rotary channels apart, as by rope_half", "rope_interleaved",
      .place = pair_otherwise },
    { "adjacent channels are read as pairs, and written half the rotary channels apart",
      "rope_half rope_qk_norm", .place = read_otherwise },
    { "pairs are read from both halves, and written to adjacent channels",
      "rope_half rope_qk_norm", .place = write_otherwise },
    { "pairs are read from both halves, and written to adjacent channels", "rope_interleaved",
      .place = read_otherwise },
    { "adjacent channels are read as pairs, and written half the rotary channels apart",
      "rope_interleaved", .place = write_otherwise },
    { "each angle is repeated for two adjacent channels, as rope_interleaved needs it",
      "rope_half rope_qk_norm", .place = take_angles_otherwise },
    { "all angles are repeated for the second half, as rope_half needs them",
      "rope_interleaved", .place = take_angles_otherwise },
    { "rotary_offset is ignored: the first channels are rotated", BOTH,
      .place = rotate_first_channels },
    { "the first channel of a pair is overwritten before the second one is computed", BOTH,
      .combine = use_result },
    { "cos and sin are added to x", ROPE, .combine = add_angles },
    { "cos and sin are rounded to the type of x", BOTH, ANGLES(TYPE_OF_X) },
    { "cos and sin are rounded to bf16", BOTH, ANGLES(POSENC_DTYPE_BF16) },
    { "cos and sin are rounded to f16", BOTH, ANGLES(POSENC_DTYPE_F16) },
    { "the arithmetic is in the type of x: each product is rounded", ROPE,
      PRODUCTS(TYPE_OF_X) },
    { "the arithmetic is in bf16: each product is rounded", ROPE, PRODUCTS(POSENC_DTYPE_BF16) },
    { "the arithmetic is in f16: each product is rounded", ROPE, PRODUCTS(POSENC_DTYPE_F16) },
    { "channels that do not rotate are not written", BOTH, UNWRITTEN(0.0) },
    { "channels before the rotated ones are not written", BOTH, UNWRITTEN(-1.0) },
    { "channels after the rotated ones are not written", BOTH, UNWRITTEN(1.0) },
    { "channels that do not rotate are zeros", BOTH, .row = row_zero_tail },
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
      .fields = { { "across_heads", EDIT_SET, 0.0 } } },
    { "the norm is over all heads without across_heads", QK_NORM,
      .fields = { { "across_heads", EDIT_SET, 1.0 } } },
    { "weight_offset is ignored", QK_NORM, .fields = { { "weight_offset", EDIT_SET, 0.0 } } },
    { "1 is added to the weight", QK_NORM, .fields = { { "weight_offset", EDIT_ADD, 1.0 } } },
    { "the weight is ignored", QK_NORM, .edit = edit_no_weight,
      .fields = { { "weight_offset", EDIT_SET, 0.0 } } },
    { "every head has the weight of the first one", QK_NORM, .edit = edit_first_weight },
    { "epsilon is 1e-6 whatever is given", QK_NORM,
      .fields = { { "epsilon", EDIT_SET, 1e-6 } } },
    { "epsilon is 1e-5 whatever is given", QK_NORM,
      .fields = { { "epsilon", EDIT_SET, 1e-5 } } },
    { .sentence = NULL },
};
