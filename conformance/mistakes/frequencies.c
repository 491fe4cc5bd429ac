/* Mistakes of frequencies, scalings, axes and the order of sines and cosines. */
#include "hypothesis.h"

#include <math.h>
#include <string.h>

static struct posenc_freqs_spec *spec_of(struct hypothesis *h)
{
    return &h->edited.problem.freqs;
}

static double attention_factor(const struct hypothesis *h)
{
    double factor = 1.0;
    exact_freqs(&h->call->problem.freqs, 0, NULL, NULL, &factor);
    return factor;
}

/* ---- Other frequencies ---- */

/* Computes the frequencies of a spec in radians per position, without whole turns. */
static double *compute_freqs(struct hypothesis *h, const struct posenc_freqs_spec *spec,
                             int64_t n)
{
    uint64_t(*turns)[3] = arena_get(&h->arena, (size_t)n * sizeof *turns);
    float *inv_freq = arena_get(&h->arena, (size_t)n * sizeof *inv_freq);
    double *freqs = arena_get(&h->arena, (size_t)n * sizeof *freqs);
    const bool is_exact = spec->numerics == POSENC_NUMERICS_EXACT;
    if (!turns || !inv_freq || !freqs || spec->numerics == POSENC_NUMERICS_GGML_F32)
        return NULL;
    exact_freqs(spec, n, is_exact ? turns : NULL, is_exact ? NULL : inv_freq, NULL);
    for (int64_t i = 0; i < n; i++)
        freqs[i] = is_exact ? 6.283185307179586477 * ((double)turns[i][0] * 0x1p-64 +
                                                      (double)turns[i][1] * 0x1p-128)
                            : (double)inv_freq[i];
    return freqs;
}

/* Replaces the frequencies by a list; the attention factor stays. */
static bool set_freqs(struct hypothesis *h, const double *freqs)
{
    struct posenc_freqs_spec *spec = spec_of(h);
    spec->attention_factor = attention_factor(h);
    spec->scaling = POSENC_SCALING_NONE;
    spec->values = freqs;
    return freqs;
}

static int64_t count_pairs(const struct hypothesis *h)
{
    return (h->call->problem.freqs.dim + 1) / 2;
}

static bool edit_rounded_freqs(struct hypothesis *h)
{
    double *freqs = compute_freqs(h, spec_of(h), count_pairs(h));
    for (int64_t i = 0; freqs && i < count_pairs(h); i++)
        freqs[i] = (double)storage_round((enum posenc_dtype)h->mistake->value, (float)freqs[i]);
    return set_freqs(h, freqs);
}

/* Rounds exact frequencies to f32, and forms angles in f32. */
static bool edit_f32_angles(struct hypothesis *h)
{
    if (spec_of(h)->numerics != POSENC_NUMERICS_EXACT || spec_of(h)->xpos_scale_base != 0.0)
        return false;
    const bool rounded = edit_rounded_freqs(h);
    spec_of(h)->numerics = POSENC_NUMERICS_HF_F32;
    return rounded;
}

/* Takes theta^(-i/d): the frequencies of twice the dimension, which are the first half of them. */
static bool edit_half_exponents(struct hypothesis *h)
{
    struct posenc_freqs_spec wider = *spec_of(h);
    wider.dim *= 2;
    if (wider.mrope_section[0] != 0 || wider.values || wider.short_factor)
        return false;
    return set_freqs(h, compute_freqs(h, &wider, count_pairs(h)));
}

static bool edit_reversed_freqs(struct hypothesis *h)
{
    const int64_t n = count_pairs(h);
    double *freqs = compute_freqs(h, spec_of(h), n);
    for (int64_t i = 0; freqs && i < n / 2; i++) {
        const double first = freqs[i];
        freqs[i] = freqs[n - 1 - i];
        freqs[n - 1 - i] = first;
    }
    return set_freqs(h, freqs);
}

/* Takes the frequencies without any scaling, and keeps the attention factor. */
static bool edit_factor_alone(struct hypothesis *h)
{
    spec_of(h)->attention_factor = attention_factor(h);
    spec_of(h)->scaling = POSENC_SCALING_NONE;
    return attention_factor(h) != 1.0; /* otherwise, the whole scaling is ignored */
}

/* ---- Scalings ---- */

static bool edit_attention_power(struct hypothesis *h)
{
    spec_of(h)->attention_factor = pow(attention_factor(h), h->mistake->value);
    return true;
}

static bool edit_exchanged_factors(struct hypothesis *h)
{
    struct posenc_freqs_spec *spec = spec_of(h);
    const double *first = spec->short_factor;
    spec->short_factor = spec->long_factor;
    spec->long_factor = first;
    return true;
}

/* Divides the sines by the attention factor that the oracle has multiplied them with. */
static bool row_factor_on_cosines(struct hypothesis *h, int o, int64_t r, double *want,
                                  double *magnitudes)
{
    const double factor = attention_factor(h);
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; o == 1 && k < h->call->outputs[o].width; k++)
        want[k] /= factor;
    return true;
}

/* ---- Axes ---- */

/* Exchanges the numbers of pairs of two axes that follow each other. */
static bool edit_exchanged_sections(struct hypothesis *h)
{
    int64_t *section = spec_of(h)->mrope_section + (int)h->mistake->value;
    const int64_t first = section[0];
    if (section[1] == 0)
        return false;
    section[0] = section[1];
    section[1] = first;
    return true;
}

/* Makes the oracle compute any token of an endless image, whose width is a power of two. */
enum { WIDE_SHIFT = 20, TOKENS_SHIFT = 40 };
static bool edit_axes(struct hypothesis *h)
{
    struct problem *p = &h->edited.problem;
    p->mrope_grid = INT64_C(1) << WIDE_SHIFT;
    p->tokens = INT64_C(1) << TOKENS_SHIFT;
    if (kernel_takes_x(p->kernel))
        p->kernel = POSENC_KERNEL_SINUSOIDAL; /* as x has no such tokens */
    return problem_axes(&h->call->problem) > 1 && p->position_kind != POSENC_POSITIONS_F32;
}

/* Computes the token whose row in the image is the column of this one, and the reverse. */
static bool row_exchanged_axes(struct hypothesis *h, int o, int64_t r, double *want,
                               double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const int64_t b = r / p->tokens, t = r % p->tokens, row = t / p->mrope_grid,
                  column = t % p->mrope_grid;
    hypothesis_oracle_row(h, o, (b << TOKENS_SHIFT) + (column << WIDE_SHIFT) + row, want,
                          magnitudes);
    hypothesis_add_x(h, r, want);
    return true;
}

/* ---- Order ---- */

/* Returns the sines for the cosines, and the reverse. */
static bool row_exchanged(struct hypothesis *h, int o, int64_t r, double *want,
                          double *magnitudes)
{
    const int64_t width = h->call->outputs[o].width;
    const bool is_table = h->call->n_outputs == 2;
    hypothesis_oracle_row(h, is_table ? 1 - o : o, r, want, magnitudes);
    for (int64_t k = 0;
         h->edited.problem.layout == POSENC_LAYOUT_INTERLEAVED && !is_table && k + 1 < width;
         k += 2) {
        const double sine = want[k];
        want[k] = want[k + 1];
        want[k + 1] = sine;
    }
    return true;
}

/* Exchanges the two layouts in halves. */
static bool edit_layout(struct hypothesis *h)
{
    enum posenc_layout *layout = &h->edited.problem.layout;
    if (*layout != POSENC_LAYOUT_INTERLEAVED)
        *layout =
            *layout == POSENC_LAYOUT_SIN_COS ? POSENC_LAYOUT_COS_SIN : POSENC_LAYOUT_SIN_COS;
    return true;
}

/* Angle in radians up to which errors of f32 are far below the values. */
static const double MOST_ANGLE = 0x1p14;

/* Returns the pair of a column; -1 if sections of axes decide it. */
static int64_t pair_of_column(const struct hypothesis *h, int64_t k)
{
    const struct problem *p = &h->call->problem;
    if (h->call->n_outputs == 2)
        return k;
    if (p->layout == POSENC_LAYOUT_INTERLEAVED)
        return k / 2;
    return p->freqs.mrope_section[0] == 0 ? k % count_pairs(h) : -1;
}

/* Sets magnitudes to the angles, whose errors in f32 are those of the values. */
static bool row_rough_angles(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const struct posenc_freqs_view view = posenc_freqs_view_of(h->call->freqs);
    const double amplitude = h->call->n_outputs == 2 ? attention_factor(h) : fabs(p->scale);
    hypothesis_oracle_row(h, o, r, want, magnitudes);
    for (int64_t k = 0; k < h->call->outputs[o].width; k++) {
        const int64_t pair = pair_of_column(h, k);
        if (pair < 0)
            return false;
        const double position =
            problem_time(p, r / p->tokens, r % p->tokens, exact_axis(&p->freqs, pair));
        const double angle = fabs(position) * view.omega[pair];
        magnitudes[k] = fmax(1.0, angle) * amplitude;
        want[k] = angle < MOST_ANGLE ? want[k] : UNKNOWN_VALUE; /* any value would match */
    }
    return true;
}

static bool edit_table(struct hypothesis *h)
{
    edit_layout(h);
    return h->call->problem.freqs.dim % 2 == 0;
}

/* ---- The table ---- */

#define ANGLES     "rope_table sinusoidal"
#define TABLE      "rope_table"
#define SINUSOIDAL "sinusoidal"
#define SET(sentence, field, value)                                                            \
    {                                                                                          \
        sentence, ANGLES, .fields = { { field, EDIT_SET, value } }                             \
    }
const struct mistake mistakes_of_frequencies[] = {
    SET("cosines and sines are interleaved", "layout", POSENC_LAYOUT_INTERLEAVED),
    SET("all sines come before all cosines", "layout", POSENC_LAYOUT_SIN_COS),
    SET("all cosines come before all sines", "layout", POSENC_LAYOUT_COS_SIN),
    { "cosine and sine are exchanged", ANGLES, .edit = edit_table, .row = row_exchanged },
    { "the layouts sin_cos and cos_sin are exchanged", SINUSOIDAL, .edit = edit_layout },
    SET("scale is ignored", "scale", 1.0),
    { "scale is applied twice", ANGLES, .fields = { { "scale", EDIT_POWER, 2.0 } } },
    SET("rope_theta is 10000 whatever is given", "rope_theta", 10000.0),
    { "the scaling is ignored", ANGLES,
      .fields = { { "scaling", EDIT_SET, POSENC_SCALING_NONE },
                  { "attention_factor", EDIT_SET, 0.0 } } },
    { "the frequencies are not scaled, only the attention factor is applied", TABLE,
      .edit = edit_factor_alone },
    { "the scaling factor is applied twice", ANGLES,
      .fields = { { "factor", EDIT_POWER, 2.0 } } },
    { "all frequencies are divided by the factor, as by the scaling linear", ANGLES,
      .fields = { { "scaling", EDIT_SET, POSENC_SCALING_LINEAR } } },
    { "the factor changes rope_theta, as by the scaling ntk", ANGLES,
      .fields = { { "scaling", EDIT_SET, POSENC_SCALING_NTK } } },
    { "the attention factor is missing", TABLE, .edit = edit_attention_power, .value = 0.0 },
    { "the attention factor is applied twice", TABLE, .edit = edit_attention_power,
      .value = 2.0 },
    { "the attention factor is inverted", TABLE, .edit = edit_attention_power, .value = -1.0 },
    { "the attention factor is applied to the cosines alone", TABLE,
      .row = row_factor_on_cosines },
    { "truncate is ignored: the range of yarn ends at whole pairs", TABLE,
      .fields = { { "truncate", EDIT_SET, 1.0 } } },
    { "the range of yarn is not rounded to whole pairs", TABLE,
      .fields = { { "truncate", EDIT_SET, 0.0 } } },
    { "mscale_all_dim is ignored", TABLE, .fields = { { "mscale_all_dim", EDIT_SET, 0.0 } } },
    { "short_factor and long_factor are exchanged", TABLE, .edit = edit_exchanged_factors },
    { "seq_len is ignored", TABLE, .fields = { { "seq_len", EDIT_SET, 0.0 } } },
    { "the parameters of llama3 are those of Llama 3.1 whatever is given", TABLE,
      .fields = { { "factor", EDIT_SET, 8.0 },
                  { "low_freq_factor", EDIT_SET, 1.0 },
                  { "high_freq_factor", EDIT_SET, 4.0 },
                  { "original_max_position_embeddings", EDIT_SET, 8192.0 } } },
    { "partial_rotary_factor is ignored", TABLE,
      .fields = { { "partial_rotary_factor", EDIT_SET, 1.0 } } },
    SET("the exponents are 2i/d, where they must end at 1", "freq_spacing",
        POSENC_SPACING_EXPONENT),
    SET("the exponents are i/(d/2 - 1), and end at 1", "freq_spacing", POSENC_SPACING_ENDPOINT),
    { "the exponents are i/d in place of 2i/d", ANGLES, .edit = edit_half_exponents },
    { "the frequencies are in reverse order", ANGLES, .edit = edit_reversed_freqs },
    { "the frequencies are rounded to bf16", ANGLES, .edit = edit_rounded_freqs,
      .value = POSENC_DTYPE_BF16 },
    { "the frequencies are rounded to f16", ANGLES, .edit = edit_rounded_freqs,
      .value = POSENC_DTYPE_F16 },
    SET("angles are exact where another numerics mode is given", "numerics",
        POSENC_NUMERICS_EXACT),
    SET("angles are those of the numerics mode hf_f32", "numerics", POSENC_NUMERICS_HF_F32),
    SET("angles are those of the numerics mode ggml_f32", "numerics", POSENC_NUMERICS_GGML_F32),
    SET("angles are those of the numerics mode torch_exp_f32", "numerics",
        POSENC_NUMERICS_TORCH_EXP_F32),
    { "angles are computed in f32", ANGLES, .edit = edit_f32_angles,
      .value = POSENC_DTYPE_F32 },
    { "xPos is ignored", TABLE, .fields = { { "xpos_scale_base", EDIT_SET, 0.0 } } },
    { "xpos_centre is ignored", TABLE, .fields = { { "xpos_centre", EDIT_SET, 0.0 } } },
    { "xpos_inverse is ignored: keys are scaled as queries", TABLE,
      .fields = { { "xpos_inverse", EDIT_SET, 0.0 } } },
    { "xPos scales queries as keys", TABLE, .fields = { { "xpos_inverse", EDIT_SET, 1.0 } } },
    { "the last two axes are exchanged, such as height and width", ANGLES, .edit = edit_axes,
      .row = row_exchanged_axes },
    { "the sections of the first two axes are exchanged", ANGLES,
      .edit = edit_exchanged_sections, .value = 0.0 },
    { "the sections of the last two axes are exchanged", ANGLES,
      .edit = edit_exchanged_sections, .value = 1.0 },
    SET("the axes are laid out as in Qwen2-VL", "mrope_layout", POSENC_MROPE_LAYOUT_QWEN2_VL),
    SET("the axes are laid out as in Qwen3-VL", "mrope_layout", POSENC_MROPE_LAYOUT_QWEN3_VL),
    SET("the axes are laid out as in the vision part of Qwen2-VL", "mrope_layout",
        POSENC_MROPE_LAYOUT_QWEN2_VL_VISION),
    SET("the axes are laid out as in Pixtral", "mrope_layout", POSENC_MROPE_LAYOUT_PIXTRAL),
    SET("the axes are laid out as in Kimi", "mrope_layout", POSENC_MROPE_LAYOUT_KIMI),
    { "angles have the errors of f32: frequencies or their products with positions are rounded",
      ANGLES, .row = row_rough_angles, .is_vague = true },
    { .sentence = NULL },
};
