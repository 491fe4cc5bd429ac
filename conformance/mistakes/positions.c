/* Mistakes of positions: every token gets the values of another position. */
#include "hypothesis.h"

#include <math.h>

/* Returns the position of a token, on the first axis if there are several. */
static double position_at(const struct hypothesis *h, int64_t b, int64_t t)
{
    return problem_time(&h->call->problem, b, t, 0);
}

/* ---- Wrong positions ---- */

static double add_value(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return position_at(h, b, t) + h->mistake->value;
}

/* Counts consecutive tokens from another first position; arrays of positions are read as they are. */
static double add_if_consecutive(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    const bool consecutive = h->call->problem.position_kind == POSENC_POSITIONS_OFFSET;
    (void)r;
    return position_at(h, b, t) + (consecutive ? h->mistake->value : 0.0);
}

static double count_tokens(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)b, (void)r;
    return (double)t + h->mistake->value;
}

static double take_first_token(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)t, (void)r;
    return position_at(h, b, 0);
}

static double take_first_batch(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)b, (void)r;
    return position_at(h, 0, t);
}

static double take_zero(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)h, (void)b, (void)t, (void)r;
    return 0.0;
}

static double count_batches(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)h, (void)t, (void)r;
    return (double)b;
}

static double count_heads(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    const int64_t heads = kernel_rotates(h->call->problem.kernel) ? h->call->problem.heads : 1;
    (void)b, (void)t;
    return (double)(r % heads);
}

static double reverse_tokens(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return position_at(h, b, h->call->problem.tokens - 1 - t);
}

static double negate(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return -position_at(h, b, t);
}

static double take_magnitude(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return fabs(position_at(h, b, t));
}

static double take_square(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return position_at(h, b, t) * position_at(h, b, t);
}

static double truncate_time(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return trunc(position_at(h, b, t));
}

static double round_to_type(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return (double)storage_round((enum posenc_dtype)h->mistake->value,
                                 (float)position_at(h, b, t));
}

/* The position on the first axis, for the pairs of all axes. */
static double take_first_axis(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return position_at(h, b, t);
}

static double multiply_by_factor(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    const double factor = h->call->problem.freqs.factor; /* by which the scaling divides */
    (void)r;
    return position_at(h, b, t) * factor * factor;
}

/* ---- Rows ---- */

/* Makes the edited problem have a position at token t, on all axes. Returns false if it cannot. */
static bool place_token(struct problem *p, int64_t t, double position)
{
    const double whole = floor(position);
    if (!(fabs(position) < 0x1p52) || (whole != position && t == 0))
        return false;
    p->positions = NULL;
    p->recipe = RECIPE_MIX;
    p->batch_shift = p->mrope_grid = 0;
    p->first = (int64_t)whole - t;
    p->position_kind = whole == position ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = t ? (position - whole) / (double)t : 0.0;
    return true;
}

bool hypothesis_position_row(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const int64_t rows_of_token = h->call->outputs[0].rows / (p->batch * p->tokens);
    const int64_t token = r / rows_of_token, b = token / p->tokens, t = token % p->tokens;
    const double position = h->mistake->position(h, b, t, r);
    const bool reads_row = !kernel_has_freqs(p->kernel); /* of cosines, or of a learned table */
    const bool has_axes = problem_axes(p) > 1, shifts = h->mistake->position == add_value;
    if (has_axes && !shifts && h->mistake->position != take_first_axis)
        return false;
    /* A shift of the first position concerns all axes, and keeps the fractions of times. */
    if (shifts && !p->positions && !reads_row)
        h->edited.problem.first = p->first + (int64_t)h->mistake->value;
    else if (!place_token(&h->edited.problem, t, position) ||
             (reads_row && !(position >= 0.0 && position < (double)p->rows)))
        return false;
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    return true;
}

/* ---- The gradient of a learned table, whose rows are those of positions ---- */

/* Limit of the comparisons of positions with rows and with one another. */
enum { MOST_COMPARISONS = 1 << 26 };

/* Moves all tokens to one batch with an array of their wrong positions. */
static bool edit_gradient(struct hypothesis *h)
{
    struct problem *p = &h->edited.problem;
    const int64_t tokens = p->tokens, n = p->batch * tokens;
    int64_t *positions = arena_get(&h->arena, (size_t)(n + 1) * sizeof *positions);
    if (!positions)
        return false;
    for (int64_t i = 0; i < n; i++)
        positions[i] = (int64_t)h->mistake->position(h, i / tokens, i % tokens, i);
    p->tokens = n;
    p->batch = 1;
    p->batch_shift = 0;
    p->position_kind = POSENC_POSITIONS_I64;
    p->positions = positions;
    return true;
}

/* Rounds the sum to the type of x after each addition. */
static bool row_rounded_gradient(struct hypothesis *h, int o, int64_t r, double *want,
                                 double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const int64_t width = h->call->outputs[0].width;
    (void)o, (void)magnitudes;
    for (int64_t k = 0; k < width; k++)
        want[k] = 0.0;
    for (int64_t i = 0; i < p->batch * p->tokens; i++)
        if (problem_position(p, i / p->tokens, i % p->tokens) == r)
            for (int64_t k = 0; k < width; k++)
                want[k] =
                    (double)storage_round(p->dtype, (float)want[k] + h->call->x[i * width + k]);
    return true;
}

static bool edit_rounded_sums(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    return !p->accumulate && p->rows < MOST_COMPARISONS / (p->batch * p->tokens + 1);
}

static bool row_gradient(struct hypothesis *h, int o, int64_t r, double *want,
                         double *magnitudes)
{
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    return true;
}

/* Keeps one token of each position: the last, or those of the first batch. */
enum { KEEP_LAST, KEEP_FIRST_BATCH };

static bool edit_kept_tokens(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t n = p->batch * p->tokens;
    if (n > MOST_COMPARISONS / (n + 1) || !edit_gradient(h))
        return false;
    int64_t *positions = (int64_t *)(uintptr_t)h->edited.problem.positions;
    for (int64_t i = 0; i < n; i++)
        for (int64_t later = i + 1; later < n && h->mistake->value == KEEP_LAST; later++)
            if (positions[later] == positions[i])
                positions[i] = -1; /* no row of the table */
    for (int64_t i = p->tokens; i < n && h->mistake->value == KEEP_FIRST_BATCH; i++)
        positions[i] = -1;
    return true;
}

static double keep_position(const struct hypothesis *h, int64_t b, int64_t t, int64_t r)
{
    (void)r;
    return position_at(h, b, t);
}

static bool edit_accumulate(struct hypothesis *h)
{
    h->edited.problem.accumulate = false;
    return h->call->problem.accumulate;
}

/* ---- The table ---- */

#define TOKENS   "rope rope_qk_norm rope_table sinusoidal learned"
#define GRADIENT "learned_grad", .edit = edit_gradient, .row = row_gradient
#define ANGLES   "rope_table sinusoidal"
#define POSITION(sentence, function, ...)                                                      \
    { sentence, TOKENS, .position = function, __VA_ARGS__ },                                   \
    {                                                                                          \
        sentence, GRADIENT, .position = function, __VA_ARGS__                                  \
    }

const struct mistake mistakes_of_positions[] = {
    { "the sine has the other sign", ANGLES, .position = negate },
    POSITION("the positions of consecutive tokens begin one too high, as if counted from 1",
             add_if_consecutive, .value = 1.0),
    POSITION("each position is one too high, as if tokens were counted from 1", add_value,
             .value = 1.0),
    POSITION("each position is one too low", add_value, .value = -1.0),
    POSITION("each position is two too high, as in OPT's table", add_value, .value = 2.0),
    POSITION("positions are ignored: tokens are counted from 0", count_tokens, .value = 0.0),
    POSITION("positions are ignored: tokens are counted from 1", count_tokens, .value = 1.0),
    POSITION("every token has the position of the first one", take_first_token, .value = 0.0),
    POSITION("every batch has the positions of the first one", take_first_batch, .value = 0.0),
    POSITION("every position is 0", take_zero, .value = 0.0),
    POSITION("the position is the index of the batch", count_batches, .value = 0.0),
    { "the position is the index of the head", "rope rope_qk_norm", .position = count_heads },
    POSITION("positions are in reverse order", reverse_tokens, .value = 0.0),
    { "the sign of negative positions is lost", ANGLES, .position = take_magnitude },
    { "the position is squared", ANGLES, .position = take_square },
    { "times are truncated to integers", ANGLES, .position = truncate_time },
    POSITION("positions are rounded to bf16", round_to_type, .value = POSENC_DTYPE_BF16),
    POSITION("positions are rounded to f16", round_to_type, .value = POSENC_DTYPE_F16),
    { "positions are rounded to f32", ANGLES, .position = round_to_type,
      .value = POSENC_DTYPE_F32 },
    { "all pairs have the position on the first axis", ANGLES, .position = take_first_axis },
    { "positions are multiplied by the scaling factor, not divided", ANGLES,
      .position = multiply_by_factor },
    { "only the last token of each position counts", "learned_grad", .edit = edit_kept_tokens,
      .row = row_gradient, .position = keep_position, .value = KEEP_LAST },
    { "only the tokens of the first batch count", "learned_grad", .edit = edit_kept_tokens,
      .row = row_gradient, .position = keep_position, .value = KEEP_FIRST_BATCH },
    { "accumulate is ignored: the table's former values are lost", "learned_grad",
      .edit = edit_accumulate, .row = row_gradient },
    { "sums are rounded to the type of x", "learned_grad", .edit = edit_rounded_sums,
      .row = row_rounded_gradient },
    { .sentence = NULL },
};
