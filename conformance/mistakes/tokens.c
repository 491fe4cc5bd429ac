/* Mistakes that most kernels can have: outputs that are missing or exchanged, wrong sums with x, and wrong positions,
 * such as tokens that are counted from 1. */
#include "hypothesis.h"

#include <math.h>

/* ---- Missing outputs ---- */

enum { FILL_NONE, FILL_ZERO, FILL_X };

static double filled_value(const struct hypothesis *h, int64_t r, int64_t k)
{
    const int kind = (int)h->mistake->value;
    return kind == FILL_X      ? (double)h->call->x[r * h->call->outputs[0].width + k]
           : kind == FILL_ZERO ? 0.0
                               : UNWRITTEN_VALUE;
}

/* Returns true if every output of row r is filled so. */
static bool is_filled(const struct hypothesis *h, int64_t r)
{
    for (int o = 0; o < h->call->n_outputs; o++) {
        const float *got = call_row(h->call, o, r);
        for (int64_t k = 0; k < h->call->outputs[o].width; k++) {
            const double want = filled_value(h, r, k);
            if (want == UNWRITTEN_VALUE ? float_to_bits(got[k]) != CALL_CANARY
                                        : (double)got[k] != want)
                return false;
        }
    }
    return true;
}

/* Requires an x of the shape of the output where x is copied. */
static bool edit_filled(struct hypothesis *h)
{
    const enum posenc_kernel kernel = h->call->problem.kernel;
    return h->mistake->value != FILL_X || kernel_rotates(kernel) || kernel_adds_onto_x(kernel);
}

/* Finds the first of the last rows that are filled so. Row 0 must not be one of them. */
static bool edit_last_filled(struct hypothesis *h)
{
    const int64_t rows = h->call->outputs[0].rows;
    if (!edit_filled(h))
        return false;
    h->first_row = rows;
    while (h->first_row > 0 && is_filled(h, h->first_row - 1))
        h->first_row--;
    h->first_row = h->first_row > 0 ? h->first_row : rows;
    return true;
}

static void change_filled(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width && h->row >= h->first_row; k++) {
        h->want[k] = filled_value(h, h->row, k);
        h->magnitudes[k] = 0.0;
    }
}

/* Adds onto memory that holds no numbers, where the former contents must not count. */
static void change_onto_nothing(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width && !h->call->problem.accumulate; k++)
        h->want[k] = UNWRITTEN_VALUE;
}

/* ---- Exchanged outputs ---- */

static void exchange(double *values, int64_t a, int64_t b)
{
    const double value = values[a];
    values[a] = values[b];
    values[b] = value;
}

static void change_halves_exchanged(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width / 2; k++) {
        exchange(h->want, k, k + h->width / 2);
        exchange(h->magnitudes, k, k + h->width / 2);
    }
}

static bool edit_without_x(struct hypothesis *h)
{
    return !kernel_takes_x(h->call->problem.kernel);
}

/* Changes the sign of a row. Masked keys stay masked. */
static void change_negated(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width; k++)
        h->want[k] = isinf(h->want[k]) ? h->want[k] : -h->want[k];
}

/* ---- Sums with x ---- */

enum { SUM_MINUS, SUM_SCALES_TERM, SUM_SCALES_BOTH, SUM_TWICE };

static bool edit_sum(struct hypothesis *h)
{
    return kernel_adds_onto_x(h->call->problem.kernel) && hypothesis_remove_x(h);
}

static void change_sum(struct hypothesis *h)
{
    const double scale = (double)h->call->problem.x_scale;
    for (int64_t k = 0; k < h->width; k++) {
        const double x = (double)h->call->x[h->row * h->width + k], term = h->want[k];
        const double sums[] = {
            [SUM_MINUS] = isinf(term) ? term : x * scale - term,
            [SUM_SCALES_TERM] = x + scale * term,
            [SUM_SCALES_BOTH] = scale * (x + term),
            [SUM_TWICE] = x * scale + 2.0 * term,
        };
        h->want[k] = sums[(int)h->mistake->value];
        h->magnitudes[k] = fmax(fabs(x), fabs(term)) * fmax(1.0, fabs(scale));
    }
}

static bool edit_rounded_term(struct hypothesis *h)
{
    h->is_term = true;
    return edit_sum(h) && hypothesis_rounds(h);
}

static void change_rounded(struct hypothesis *h)
{
    for (int64_t k = 0; k < h->width; k++)
        h->want[k] = hypothesis_round(h, h->want[k]);
}

/* ---- Wrong positions ---- */

/* Returns the position of a token, on the first axis if there are several. */
static double position_at(const struct hypothesis *h, int64_t b, int64_t t)
{
    return problem_time(&h->call->problem, b, t, 0);
}

static double keep_position(const struct hypothesis *h) { return h->position; }
static double add_value(const struct hypothesis *h) { return h->position + h->mistake->value; }
static double multiply_by_value(const struct hypothesis *h)
{
    return h->position * h->mistake->value;
}
static double multiply_by_factor(const struct hypothesis *h)
{
    const double factor = h->call->problem.freqs.factor; /* by which the scaling divides */
    return h->position * factor * factor;
}
static double take_magnitude(const struct hypothesis *h) { return fabs(h->position); }
static double take_square(const struct hypothesis *h) { return h->position * h->position; }
static double truncate_time(const struct hypothesis *h) { return trunc(h->position); }

/* Counts consecutive tokens from another first position; arrays of positions are read as they are. */
static double add_if_consecutive(const struct hypothesis *h)
{
    const bool consecutive = h->call->problem.position_kind == POSENC_POSITIONS_OFFSET;
    return h->position + (consecutive ? h->mistake->value : 0.0);
}

static double round_position(const struct hypothesis *h)
{
    return hypothesis_round(h, h->position);
}

static double count_tokens(const struct hypothesis *h)
{
    return (double)h->token + h->mistake->value;
}
static double count_batches(const struct hypothesis *h) { return (double)h->batch; }
static double count_heads(const struct hypothesis *h) { return (double)h->head; }

static double take_first_token(const struct hypothesis *h)
{
    return position_at(h, h->batch, 0);
}
static double take_first_batch(const struct hypothesis *h)
{
    return position_at(h, 0, h->token);
}
static double reverse_tokens(const struct hypothesis *h)
{
    return position_at(h, h->batch, h->call->problem.tokens - 1 - h->token);
}

/* Keeps one token of each position: those of the first batch, or the last. -1 is no row of a table. */
static double keep_first_batch(const struct hypothesis *h)
{
    return h->batch == 0 ? h->position : -1.0;
}
static double keep_last_token(const struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    for (int64_t i = h->batch * p->tokens + h->token + 1; i < p->batch * p->tokens; i++)
        if (position_at(h, i / p->tokens, i % p->tokens) == h->position)
            return -1.0;
    return h->position;
}

/* ---- Rows at these positions ---- */

/* Sets the token of a row, and its right position. */
static void find_token(struct hypothesis *h, int64_t r, int64_t rows_per_token)
{
    const int64_t token = r / rows_per_token;
    h->batch = token / h->call->problem.tokens;
    h->token = token % h->call->problem.tokens;
    h->head = r % rows_per_token;
    h->position = position_at(h, h->batch, h->token);
}

/* Gives the token a position, on all axes. */
static bool place_token(const struct hypothesis *h, double position, struct problem *p)
{
    const double whole = floor(position);
    if (!(fabs(position) < 0x1p52) || (whole != position && h->token == 0))
        return false;
    p->positions = NULL;
    p->recipe = RECIPE_MIX;
    p->batch_shift = p->mrope_grid = 0;
    p->first = (int64_t)whole - h->token;
    p->position_kind = whole == position ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = h->token ? (position - whole) / (double)h->token : 0.0;
    return true;
}

bool hypothesis_place_row(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    find_token(h, h->row, h->call->outputs[0].rows / (p->batch * p->tokens));
    const double position = h->mistake->position(h);
    const bool reads_row = !kernel_has_freqs(p->kernel); /* of cosines, or of a learned table */
    const bool shifts = h->mistake->position == add_value;
    if (problem_axes(p) > 1 && !shifts && h->mistake->position != keep_position)
        return false;
    if (reads_row && !(position >= 0.0 && position < (double)p->rows))
        return false;
    /* A shift of the first position concerns all axes, and keeps the fractions of times. */
    if (shifts && !p->positions && !reads_row)
        h->edited.problem.first = p->first + (int64_t)h->mistake->value;
    else
        return place_token(h, position, &h->edited.problem);
    return true;
}

bool hypothesis_place_tokens(struct hypothesis *h)
{
    struct problem *p = &h->edited.problem;
    const int64_t n = p->batch * p->tokens;
    int64_t *positions = arena_get(&h->arena, (size_t)(n + 1) * sizeof *positions);
    for (int64_t i = 0; positions && i < n; i++) {
        find_token(h, i, 1);
        positions[i] = (int64_t)h->mistake->position(h);
    }
    p->tokens = n;
    p->batch = 1;
    p->batch_shift = 0;
    p->position_kind = POSENC_POSITIONS_I64;
    p->positions = positions;
    return positions;
}

/* Limits the comparisons of positions with rows, or with one another. */
enum { MOST_COMPARISONS = 1 << 26 };
static bool may_compare(const struct hypothesis *h, int64_t n)
{
    return n < MOST_COMPARISONS / (h->call->problem.batch * h->call->problem.tokens + 1);
}

static bool edit_last_token(struct hypothesis *h)
{
    return may_compare(h, h->call->problem.batch * h->call->problem.tokens);
}

static bool edit_rounded_sums(struct hypothesis *h)
{
    return !h->call->problem.accumulate && may_compare(h, h->call->problem.rows);
}

/* Rounds the sum to the type of x after each addition. */
static void row_rounded_sums(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    for (int64_t k = 0; k < h->width; k++)
        h->want[k] = 0.0;
    for (int64_t i = 0; i < p->batch * p->tokens; i++)
        for (int64_t k = 0;
             k < h->width && problem_position(p, i / p->tokens, i % p->tokens) == h->row; k++)
            h->want[k] = hypothesis_round(h, h->want[k] + (double)h->call->x[i * h->width + k]);
}

/* ---- The table ---- */

#define FILLED(kind)      .edit = edit_filled, .change = change_filled, .value = (kind)
#define LAST_FILLED(kind) .edit = edit_last_filled, .change = change_filled, .value = (kind)
#define SUM(kind)         .edit = edit_sum, .change = change_sum, .value = (kind)
#define TERM(rounded)     .edit = edit_rounded_term, .change = change_rounded, .type = (rounded)
#define TOKENS            "rope rope_qk_norm rope_table sinusoidal learned learned_grad"
#define ANGLES            "rope_table sinusoidal"
const struct mistake mistakes_of_tokens[] = {
    { "the output is all zeros", FILLED(FILL_ZERO) },
    { "x is returned unchanged", FILLED(FILL_X) },
    { "nothing is written", FILLED(FILL_NONE) },
    { "the output is added to its former contents, without accumulate", "learned_grad",
      .change = change_onto_nothing },
    { "the last rows are not written", LAST_FILLED(FILL_NONE) },
    { "the last rows are zeros", LAST_FILLED(FILL_ZERO) },
    { "the last rows are copies of x", LAST_FILLED(FILL_X) },
    { "x is not added", SET("x_scale", 0.0) },
    { "x_scale is ignored", SET("x_scale", 1.0) },
    { "the sign of x_scale is lost", MAGNITUDE("x_scale") },
    { "the encoding is subtracted from x, not added", SUM(SUM_MINUS) },
    { "x_scale multiplies the encoding, not x", SUM(SUM_SCALES_TERM) },
    { "x_scale multiplies the whole sum, not x alone", SUM(SUM_SCALES_BOTH) },
    { "the encoding is added twice", SUM(SUM_TWICE) },
    { "the encoding is rounded to the type of x before it is added", TERM(TYPE_OF_X) },
    { "the encoding is rounded to bf16 before it is added", TERM(POSENC_DTYPE_BF16) },
    { "the encoding is rounded to f16 before it is added", TERM(POSENC_DTYPE_F16) },
    { "the output has the other sign", .edit = edit_without_x, .change = change_negated },
    { "the two halves of each output row are exchanged", "rope rope_qk_norm",
      .change = change_halves_exchanged, .is_vague = true },
    { "the output is rounded to bf16", .rounded = POSENC_DTYPE_BF16 },
    { "the output is rounded to f16", .rounded = POSENC_DTYPE_F16 },

    { "the sine has the other sign", ANGLES, .position = multiply_by_value, .value = -1.0 },
    { "the positions of consecutive tokens begin one too high, as if counted from 1", TOKENS,
      .position = add_if_consecutive, .value = 1.0 },
    { "each position is one too high, as if tokens were counted from 1", TOKENS,
      .position = add_value, .value = 1.0 },
    { "each position is one too low", TOKENS, .position = add_value, .value = -1.0 },
    { "each position is two too high, as in OPT's table", TOKENS, .position = add_value,
      .value = 2.0 },
    { "positions are ignored: tokens are counted from 0", TOKENS, .position = count_tokens },
    { "positions are ignored: tokens are counted from 1", TOKENS, .position = count_tokens,
      .value = 1.0 },
    { "every token has the position of the first one", TOKENS, .position = take_first_token },
    { "every batch has the positions of the first one", TOKENS, .position = take_first_batch },
    { "every position is 0", TOKENS, .position = multiply_by_value, .value = 0.0 },
    { "the position is the index of the batch", TOKENS, .position = count_batches },
    { "the position is the index of the head", "rope rope_qk_norm", .position = count_heads },
    { "positions are in reverse order", TOKENS, .position = reverse_tokens },
    { "the sign of negative positions is lost", ANGLES, .position = take_magnitude },
    { "the position is squared", ANGLES, .position = take_square },
    { "times are truncated to integers", ANGLES, .position = truncate_time },
    { "positions are rounded to bf16", TOKENS, .position = round_position,
      .type = POSENC_DTYPE_BF16 },
    { "positions are rounded to f16", TOKENS, .position = round_position,
      .type = POSENC_DTYPE_F16 },
    { "positions are rounded to f32", ANGLES, .position = round_position,
      .type = POSENC_DTYPE_F32 },
    { "all pairs have the position on the first axis", ANGLES, .position = keep_position },
    { "positions are multiplied by the scaling factor, not divided", ANGLES,
      .position = multiply_by_factor },
    { "only the last token of each position counts", "learned_grad", .edit = edit_last_token,
      .position = keep_last_token },
    { "only the tokens of the first batch count", "learned_grad",
      .position = keep_first_batch },
    { "accumulate is ignored: the table's former values are lost", "learned_grad",
      SET("accumulate", 0.0) },
    { "sums are rounded to the type of x", "learned_grad", .edit = edit_rounded_sums,
      .row = row_rounded_sums, .type = TYPE_OF_X },
    { .sentence = NULL },
};
