/* Mistakes of frequencies, scalings, axes and the order of sines and cosines, such as a scaling that is ignored. */
#include "hypothesis.h"

#include <math.h>

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

static int64_t count_pairs(const struct hypothesis *h)
{
    return (h->call->problem.freqs.dim + 1) / 2;
}

/* ---- Other frequencies ---- */

/* Computes the frequencies of a spec in radians per position, without whole turns. Returns NULL if there are none, or
 * if out of memory. */
static double *compute_freqs(struct hypothesis *h, const struct posenc_freqs_spec *spec)
{
    const int64_t n = count_pairs(h);
    const bool is_exact = spec->numerics == POSENC_NUMERICS_EXACT;
    uint64_t(*turns)[3] = arena_get(&h->arena, (size_t)n * sizeof *turns);
    float *inv_freq = arena_get(&h->arena, (size_t)n * sizeof *inv_freq);
    double *freqs = arena_get(&h->arena, (size_t)n * sizeof *freqs);
    if (!turns || !inv_freq || !freqs || spec->numerics == POSENC_NUMERICS_GGML_F32)
        return NULL;
    exact_freqs(spec, n, is_exact ? turns : NULL, is_exact ? NULL : inv_freq, NULL);
    for (int64_t i = 0; i < n; i++)
        freqs[i] = is_exact ? 6.283185307179586477 * ((double)turns[i][0] * 0x1p-64 +
                                                      (double)turns[i][1] * 0x1p-128)
                            : (double)inv_freq[i];
    return freqs;
}

/* Takes the frequencies without any scaling, and keeps the attention factor. */
static void keep_factor_alone(struct hypothesis *h)
{
    spec_of(h)->attention_factor = attention_factor(h);
    spec_of(h)->scaling = POSENC_SCALING_NONE;
}

static bool edit_factor_alone(struct hypothesis *h)
{
    keep_factor_alone(h);
    return attention_factor(h) != 1.0; /* otherwise, the whole scaling is ignored */
}

enum { FREQS_ROUNDED, FREQS_REVERSED, FREQS_OF_TWICE_DIM };

/* Replaces the frequencies by a list. The first half of those of twice the dimension is theta^(-i/d). */
static bool edit_freqs(struct hypothesis *h)
{
    struct posenc_freqs_spec spec = *spec_of(h);
    const int64_t n = count_pairs(h);
    const double kind = h->mistake->value;
    const bool is_wider = kind == FREQS_OF_TWICE_DIM;
    spec.dim *= is_wider ? 2 : 1;
    if (is_wider && (spec.mrope_section[0] != 0 || spec.values || spec.short_factor))
        return false;
    const double *freqs = compute_freqs(h, &spec);
    double *values = arena_get(&h->arena, (size_t)n * sizeof *values);
    for (int64_t i = 0; freqs && values && i < n; i++)
        values[i] = kind == FREQS_ROUNDED    ? hypothesis_round(h, freqs[i])
                    : kind == FREQS_REVERSED ? freqs[n - 1 - i]
                                             : freqs[i];
    keep_factor_alone(h);
    spec_of(h)->values = values;
    return freqs && values;
}

/* Rounds exact frequencies to f32, and forms angles in f32. */
static bool edit_f32_angles(struct hypothesis *h)
{
    if (spec_of(h)->numerics != POSENC_NUMERICS_EXACT || spec_of(h)->xpos_scale_base != 0.0)
        return false;
    const bool rounded = edit_freqs(h);
    spec_of(h)->numerics = POSENC_NUMERICS_HF_F32;
    return rounded;
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
static void change_factor_on_cosines(struct hypothesis *h)
{
    const double factor = attention_factor(h);
    for (int64_t k = 0; h->output == 1 && k < h->width; k++)
        h->want[k] /= factor;
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
    h->is_term = kernel_takes_x(p->kernel);
    if (h->is_term)
        p->kernel = POSENC_KERNEL_SINUSOIDAL; /* as x has no such tokens */
    return problem_axes(&h->call->problem) > 1 && p->position_kind != POSENC_POSITIONS_F32;
}

/* Computes the token whose row in the image is the column of this one, and the reverse. */
static void row_exchanged_axes(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t b = h->row / p->tokens, t = h->row % p->tokens, row = t / p->mrope_grid,
                  column = t % p->mrope_grid;
    oracle_compute_row(h->oracle, h->output, (b << TOKENS_SHIFT) + (column << WIDE_SHIFT) + row,
                       h->want, h->magnitudes);
}

/* ---- Order ---- */

/* Exchanges the two layouts in halves. */
static bool edit_layout(struct hypothesis *h)
{
    enum posenc_layout *layout = &h->edited.problem.layout;
    if (*layout != POSENC_LAYOUT_INTERLEAVED)
        *layout =
            *layout == POSENC_LAYOUT_SIN_COS ? POSENC_LAYOUT_COS_SIN : POSENC_LAYOUT_SIN_COS;
    return true;
}

static bool edit_exchanged(struct hypothesis *h)
{
    return edit_layout(h) && h->call->problem.freqs.dim % 2 == 0;
}

/* Returns the sines for the cosines, and the reverse, where edit_layout() does not. */
static void change_exchanged(struct hypothesis *h)
{
    const bool is_table = h->call->n_outputs == 2,
               adjacent = h->call->problem.layout == POSENC_LAYOUT_INTERLEAVED;
    if (is_table)
        oracle_compute_row(h->oracle, 1 - h->output, h->row, h->want, h->magnitudes);
    for (int64_t k = 0; !is_table && adjacent && k + 1 < h->width; k += 2) {
        const double sine = h->want[k];
        h->want[k] = h->want[k + 1];
        h->want[k + 1] = sine;
    }
}

/* ---- Rough angles ---- */

/* Angle in radians up to which errors of f32 are far below the values. */
static const double MOST_ANGLE = 0x1p14;

/* Returns the pair of a column. */
static int64_t pair_of_column(const struct hypothesis *h, int64_t k)
{
    if (h->call->n_outputs == 2)
        return k;
    return h->call->problem.layout == POSENC_LAYOUT_INTERLEAVED ? k / 2 : k % count_pairs(h);
}

/* Takes the frequencies of the edited call; those of ggml_f32 are about the exact ones. Sections of axes would decide
 * the pair of a column in halves. */
static bool edit_rough_angles(struct hypothesis *h)
{
    struct posenc_freqs_spec spec = *spec_of(h);
    if (spec.numerics == POSENC_NUMERICS_GGML_F32)
        spec.numerics = POSENC_NUMERICS_EXACT;
    h->freqs = compute_freqs(h, &spec);
    return h->freqs && (h->call->n_outputs == 2 || spec.mrope_section[0] == 0 ||
                        h->call->problem.layout == POSENC_LAYOUT_INTERLEAVED);
}

/* Sets magnitudes to the angles, whose errors in f32 are those of the values. */
static void change_rough_angles(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const double amplitude = h->call->n_outputs == 2 ? attention_factor(h) : fabs(p->scale);
    for (int64_t k = 0; k < h->width; k++) {
        const int64_t pair = pair_of_column(h, k);
        const double position = problem_time(p, h->row / p->tokens, h->row % p->tokens,
                                             exact_axis(&p->freqs, pair));
        const double angle = fabs(position) * h->freqs[pair];
        h->magnitudes[k] = fmax(1.0, angle) * amplitude;
        if (!(angle < MOST_ANGLE))
            h->want[k] = UNKNOWN_VALUE; /* any value would match */
    }
}

/* ---- The table ---- */

#define ANGLES         "rope_table sinusoidal"
#define TABLE          "rope_table"
#define SINUSOIDAL     "sinusoidal"
#define FREQS(kind)    ANGLES, .edit = edit_freqs, .value = (kind)
#define FACTOR(power)  TABLE, .edit = edit_attention_power, .value = (power)
#define ROUGH          .edit = edit_rough_angles, .change = change_rough_angles, .is_vague = true
#define SECTIONS(axis) ANGLES, .edit = edit_exchanged_sections, .value = (axis)
const struct mistake mistakes_of_frequencies[] = {
    { "cosines and sines are interleaved", ANGLES, SET("layout", POSENC_LAYOUT_INTERLEAVED) },
    { "all sines come before all cosines", ANGLES, SET("layout", POSENC_LAYOUT_SIN_COS) },
    { "all cosines come before all sines", ANGLES, SET("layout", POSENC_LAYOUT_COS_SIN) },
    { "cosine and sine are exchanged", ANGLES, .edit = edit_exchanged,
      .change = change_exchanged },
    { "the layouts sin_cos and cos_sin are exchanged", SINUSOIDAL, .edit = edit_layout },
    { "scale is ignored", ANGLES, SET("scale", 1.0) },
    { "scale is applied twice", ANGLES, POWER("scale", 2.0) },
    { "rope_theta is 10000 whatever is given", ANGLES, SET("rope_theta", 10000.0) },
    { "the scaling is ignored", ANGLES,
      .fields = { { "scaling", EDIT_SET, POSENC_SCALING_NONE },
                  { "attention_factor", EDIT_SET, 0.0 } } },
    { "the frequencies are not scaled, only the attention factor is applied", TABLE,
      .edit = edit_factor_alone },
    { "the scaling factor is applied twice", ANGLES, POWER("factor", 2.0) },
    { "all frequencies are divided by the factor, as by the scaling linear", ANGLES,
      SET("scaling", POSENC_SCALING_LINEAR) },
    { "the factor changes rope_theta, as by the scaling ntk", ANGLES,
      SET("scaling", POSENC_SCALING_NTK) },
    { "the attention factor is missing", FACTOR(0.0) },
    { "the attention factor is applied twice", FACTOR(2.0) },
    { "the attention factor is inverted", FACTOR(-1.0) },
    { "the attention factor is applied to the cosines alone", TABLE,
      .change = change_factor_on_cosines },
    { "truncate is ignored: the range of yarn ends at whole pairs", TABLE,
      SET("truncate", 1.0) },
    { "the range of yarn is not rounded to whole pairs", TABLE, SET("truncate", 0.0) },
    { "mscale_all_dim is ignored", TABLE, SET("mscale_all_dim", 0.0) },
    { "short_factor and long_factor are exchanged", TABLE, .edit = edit_exchanged_factors },
    { "seq_len is ignored", TABLE, SET("seq_len", 0.0) },
    { "the parameters of llama3 are those of Llama 3.1 whatever is given", TABLE,
      .fields = { { "factor", EDIT_SET, 8.0 },
                  { "low_freq_factor", EDIT_SET, 1.0 },
                  { "high_freq_factor", EDIT_SET, 4.0 },
                  { "original_max_position_embeddings", EDIT_SET, 8192.0 } } },
    { "partial_rotary_factor is ignored", TABLE, SET("partial_rotary_factor", 1.0) },
    { "the exponents are 2i/d, where they must end at 1", ANGLES,
      SET("freq_spacing", POSENC_SPACING_EXPONENT) },
    { "the exponents are i/(d/2 - 1), and end at 1", ANGLES,
      SET("freq_spacing", POSENC_SPACING_ENDPOINT) },
    { "the exponents are i/d in place of 2i/d", FREQS(FREQS_OF_TWICE_DIM) },
    { "the frequencies are in reverse order", FREQS(FREQS_REVERSED) },
    { "the frequencies are rounded to bf16", FREQS(FREQS_ROUNDED), .type = POSENC_DTYPE_BF16 },
    { "the frequencies are rounded to f16", FREQS(FREQS_ROUNDED), .type = POSENC_DTYPE_F16 },
    { "angles are exact where another numerics mode is given", ANGLES,
      SET("numerics", POSENC_NUMERICS_EXACT) },
    { "angles are those of the numerics mode hf_f32", ANGLES,
      SET("numerics", POSENC_NUMERICS_HF_F32) },
    { "angles are those of the numerics mode ggml_f32", ANGLES,
      SET("numerics", POSENC_NUMERICS_GGML_F32) },
    { "angles are those of the numerics mode torch_exp_f32", ANGLES,
      SET("numerics", POSENC_NUMERICS_TORCH_EXP_F32) },
    { "angles are computed in f32", ANGLES, .edit = edit_f32_angles, .value = FREQS_ROUNDED,
      .type = POSENC_DTYPE_F32 },
    { "xPos is ignored", TABLE, SET("xpos_scale_base", 0.0) },
    { "xpos_centre is ignored", TABLE, SET("xpos_centre", 0.0) },
    { "xpos_inverse is ignored: keys are scaled as queries", TABLE, SET("xpos_inverse", 0.0) },
    { "xPos scales queries as keys", TABLE, SET("xpos_inverse", 1.0) },
    { "the last two axes are exchanged, such as height and width", ANGLES, .edit = edit_axes,
      .row = row_exchanged_axes },
    { "the sections of the first two axes are exchanged", SECTIONS(0.0) },
    { "the sections of the last two axes are exchanged", SECTIONS(1.0) },
    { "the axes are laid out as in Qwen2-VL", ANGLES,
      SET("mrope_layout", POSENC_MROPE_LAYOUT_QWEN2_VL) },
    { "the axes are laid out as in Qwen3-VL", ANGLES,
      SET("mrope_layout", POSENC_MROPE_LAYOUT_QWEN3_VL) },
    { "the axes are laid out as in the vision part of Qwen2-VL", ANGLES,
      SET("mrope_layout", POSENC_MROPE_LAYOUT_QWEN2_VL_VISION) },
    { "the axes are laid out as in Pixtral", ANGLES,
      SET("mrope_layout", POSENC_MROPE_LAYOUT_PIXTRAL) },
    { "the axes are laid out as in Kimi", ANGLES,
      SET("mrope_layout", POSENC_MROPE_LAYOUT_KIMI) },
    { "angles have the errors of f32: frequencies or their products with positions are rounded",
      ANGLES, ROUGH },
    { "rope_theta is 10000 whatever is given", ANGLES, SET("rope_theta", 10000.0), ROUGH },
    { .sentence = NULL },
};
