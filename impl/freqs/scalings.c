/*
 * The scaling families: what each accepts and what it makes of theta^(-2i/dim) = omega.
 *
 *   linear  omega_i / factor  (Chen et al. 2306.15595)
 *   llama3  wavelength = 2 pi / omega_i, L = original_max_position_embeddings
 *           wavelength > L/low:   omega_i / factor
 *           wavelength < L/high: omega_i
 *           between: t = (L/wavelength - low)/(high - low),  omega_i ((1-t)/factor + t)
 *   yarn    see yarn.c
 *   dynamic theta (factor s/M - (factor - 1))^(dim/(dim-2)), M = max_position_embeddings, s the
 *           larger of seq_len and M;   ntk  theta factor^(dim/(dim-2))
 *   longrope      omega_i / f_i, f long_factor where seq_len > L, else short_factor
 *                 (Ding et al. 2402.13753)
 *   proportional  omega_i / factor for i < floor(partial_rotary_factor dim/2), else 0
 *   resonance     2 pi / round(2 pi / omega_i), alone or of yarn's omega_i  (Wang et al. 2403.00071)
 *
 * The rules are those of Hugging Face transformers, modeling_rope_utils.py, but ntk, which is
 * the one dynamic came from. In profile ggml_f32 llama3 and longrope come as divisors, as the files
 * that ggml's users convert hold them.
 */
#include <float.h>

#include "scaling.h"

/* ---- linear ---- */

static struct dd divided(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    (void)i;
    return dd_div(omega, dd_from(rule->spec->factor));
}

static float divided_f32(const struct f32_rule *rule, int64_t i, float pos_freq)
{
    (void)i;
    return 1.0f / pos_freq / (float)rule->spec->factor;
}

static void divided_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan)
{
    plan->ggml.freq_scale = 1.0f / (float)spec->factor;
}

/* ---- llama3 ---- */

static enum posenc_status llama3_check(const struct posenc_freqs_spec *spec,
                                       struct posenc_error *error)
{
    enum posenc_status status =
        posenc_plan_range(error, "original_max_position_embeddings",
                          spec->original_max_position_embeddings, 1.0, 0x1p40);
    if (!status)
        status =
            posenc_plan_range(error, "low_freq_factor", spec->low_freq_factor, 0x1p-40, 0x1p40);
    if (!status)
        status = posenc_plan_range(error, "high_freq_factor (low_freq_factor at least)",
                                   spec->high_freq_factor, spec->low_freq_factor, 0x1p40);
    return status;
}

/* Compares turns within L positions, L / wavelength, instead of wavelengths. */
static struct dd llama3_omega(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    const struct posenc_freqs_spec *spec = rule->spec;
    struct dd low = dd_from(spec->low_freq_factor);
    struct dd high = dd_from(spec->high_freq_factor);
    struct dd turns = dd_div(dd_mul(omega, dd_from(spec->original_max_position_embeddings)),
                             dd_scale(posenc_dd_pi, 2.0));
    struct dd scaled = dd_div(omega, dd_from(spec->factor));
    (void)i;
    if (dd_compare(turns, low) < 0)
        return scaled;
    if (dd_compare(turns, high) > 0)
        return omega;
    if (dd_compare(low, high) == 0) /* and the turns exactly there: the formula has no value */
        return omega;
    struct dd t = dd_div(dd_sub(turns, low), dd_sub(high, low));
    return dd_add(dd_mul(scaled, dd_sub(dd_from(1.0), t)), dd_mul(omega, t));
}

/* number / tensor */
static float quotient(double number, float tensor)
{
    float reciprocal = 1.0f / tensor;
    return reciprocal * (float)number;
}

static float llama3_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq)
{
    const struct posenc_freqs_spec *spec = rule->spec;
    double length = spec->original_max_position_embeddings;
    double low = spec->low_freq_factor, high = spec->high_freq_factor;
    float inv_freq = 1.0f / pos_freq;
    float wavelength = quotient(2.0 * posenc_dd_pi.hi, inv_freq);
    (void)i;
    if (wavelength > (float)(length / low))
        return inv_freq / (float)spec->factor;
    /* At low == high the formula has no value; nobody is between them but on the very edge. */
    if (wavelength < (float)(length / high) || low == high)
        return inv_freq;
    float above = quotient(length, wavelength) - (float)low;
    float smooth = above / (float)(high - low);
    float a = (1.0f - smooth) * inv_freq;
    a = a / (float)spec->factor;
    float b = smooth * inv_freq;
    return a + b;
}

/* omega_i / scaled omega_i, rounded once. */
static void llama3_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan)
{
    struct exact_rule rule = posenc_exact_rule(spec);
    for (int64_t i = 0; i < plan->view.n_pairs; i++) {
        struct dd omega = posenc_plain_omega(&rule, i);
        plan->ggml.divisor[i] = dd_to_float(dd_div(omega, llama3_omega(&rule, i, omega)));
    }
}

/* ---- dynamic and ntk: theta changes by a power dim/(dim-2) ---- */

static enum posenc_status ntk_check(const struct posenc_freqs_spec *spec,
                                    struct posenc_error *error)
{
    if (spec->dim >= 3)
        return POSENC_OK;
    return posenc_plan_refuse(error, POSENC_ERR_SHAPE, "dim (scaled by a power of dim/(dim-2))",
                              (double)spec->dim, 3.0, POSENC_MOST_DIM);
}

static struct dd ntk_stretch(const struct posenc_freqs_spec *spec)
{
    return dd_from(spec->factor);
}

static double ntk_stretch_f64(const struct posenc_freqs_spec *spec) { return spec->factor; }

static enum posenc_status dynamic_check(const struct posenc_freqs_spec *spec,
                                        struct posenc_error *error)
{
    enum posenc_status status = ntk_check(spec, error);
    if (!status)
        status = posenc_plan_range(error, "max_position_embeddings",
                                   spec->max_position_embeddings, 1.0, 0x1p40);
    return status ? status
                  : posenc_plan_range(error, "seq_len", (double)spec->seq_len, 0.0, 0x1p40);
}

static struct dd dynamic_stretch(const struct posenc_freqs_spec *spec)
{
    double s = (double)spec->seq_len, most = spec->max_position_embeddings;
    if (s <= most)
        return dd_from(1.0);
    struct dd times = dd_div(dd_product(spec->factor, s), dd_from(most));
    return dd_sub(times, dd_sum(spec->factor, -1.0));
}

static double dynamic_stretch_f64(const struct posenc_freqs_spec *spec)
{
    double s = fmax((double)spec->seq_len, spec->max_position_embeddings);
    return spec->factor * s / spec->max_position_embeddings - (spec->factor - 1.0);
}

/* The length of a sequence beyond M is a tensor, the greatest of its positions plus 1. */
static float dynamic_stretch_f32(const struct posenc_freqs_spec *spec)
{
    if ((double)spec->seq_len <= spec->max_position_embeddings)
        return 0.0f;
    float times = (float)spec->factor * (float)spec->seq_len;
    times = times / (float)spec->max_position_embeddings;
    return times - (float)(spec->factor - 1.0);
}

/* ---- longrope ---- */

static enum posenc_status longrope_check(const struct posenc_freqs_spec *spec,
                                         struct posenc_error *error)
{
    enum posenc_status status =
        posenc_plan_range(error, "seq_len", (double)spec->seq_len, 0.0, 0x1p40);
    if (!status)
        status = posenc_plan_range(error, "original_max_position_embeddings",
                                   spec->original_max_position_embeddings, 2.0, 0x1p40);
    if (status)
        return status;
    if (!spec->short_factor || !spec->long_factor)
        return posenc_plan_refuse(
            error, POSENC_ERR_ARGUMENT,
            spec->short_factor ? "long_factor (NULL)" : "short_factor (NULL)", 0.0, 1.0, 0.0);
    for (int64_t i = 0; i < (spec->dim + 1) / 2 && !status; i++) {
        status = posenc_plan_range(error, "short_factor of a pair", spec->short_factor[i],
                                   0x1p-10, 0x1p40);
        if (!status)
            status = posenc_plan_range(error, "long_factor of a pair", spec->long_factor[i],
                                       0x1p-10, 0x1p40);
    }
    return status;
}

/* The factors in force. */
static const double *longrope_factors(const struct posenc_freqs_spec *spec)
{
    bool beyond = (double)spec->seq_len > spec->original_max_position_embeddings;
    return beyond ? spec->long_factor : spec->short_factor;
}

static struct dd longrope_omega(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    return dd_div(omega, dd_from(longrope_factors(rule->spec)[i]));
}

static float longrope_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq)
{
    return 1.0f / ((float)longrope_factors(rule->spec)[i] * pos_freq);
}

static void longrope_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan)
{
    for (int64_t i = 0; i < plan->view.n_pairs; i++)
        plan->ggml.divisor[i] = (float)longrope_factors(spec)[i];
}

/* sqrt(1 + ln factor / ln L), correctly rounded: the square root of the high part, one Newton
 * step. */
static double longrope_attention(const struct posenc_freqs_spec *spec)
{
    struct dd log_length = posenc_dd_log(dd_from(spec->original_max_position_embeddings));
    struct dd a =
        dd_add(dd_from(1.0), dd_div(posenc_dd_log(dd_from(spec->factor)), log_length));
    double root = sqrt(a.hi);
    struct dd rest = dd_sub(a, dd_product(root, root));
    return root + rest.hi / (2.0 * root);
}

/* ---- proportional: linear, of the pairs that turn ---- */

static enum posenc_status proportional_check(const struct posenc_freqs_spec *spec,
                                             struct posenc_error *error)
{
    return posenc_plan_range(error, "partial_rotary_factor (a pair at least)",
                             spec->partial_rotary_factor, 2.0 / (double)spec->dim, 1.0);
}

static int64_t proportional_turning(const struct posenc_freqs_spec *spec)
{
    return (int64_t)floor(spec->partial_rotary_factor * (double)spec->dim / 2.0);
}

/* ---- resonance ---- */

/* No wavelength is shorter than six positions, so none is rounded to nothing. */
static enum posenc_status resonance_check(const struct posenc_freqs_spec *spec,
                                          struct posenc_error *error)
{
    if (spec->rope_theta >= 1.0)
        return POSENC_OK;
    return posenc_plan_refuse(error, POSENC_ERR_THETA,
                              "rope_theta (resonance rounds wavelengths from 6 positions on)",
                              spec->rope_theta, 1.0, DBL_MAX);
}

/* ---- The list ---- */

enum {
    HF = 1 << POSENC_HF_F32,
    GGML = 1 << POSENC_GGML_F32,
    TORCH = 1 << POSENC_TORCH_EXP_F32
};

static const struct scaling scalings[] = {
    [POSENC_SCALING_NONE] = { .profiles = HF | GGML | TORCH },
    [POSENC_SCALING_LINEAR] = { .profiles = HF | GGML,
                                .omega = divided,
                                .inv_freq = divided_f32,
                                .ggml = divided_ggml },
    [POSENC_SCALING_LLAMA3] = { .profiles = HF | GGML,
                                .check = llama3_check,
                                .omega = llama3_omega,
                                .inv_freq = llama3_inv_freq,
                                .ggml = llama3_ggml },
    [POSENC_SCALING_YARN] = { .profiles = HF | GGML,
                              .check = posenc_yarn_check,
                              .prepare = posenc_yarn_prepare,
                              .omega = posenc_yarn_omega,
                              .prepare_f32 = posenc_yarn_prepare_f32,
                              .inv_freq = posenc_yarn_inv_freq,
                              .ggml = posenc_yarn_ggml,
                              .attention = posenc_yarn_attention },
    [POSENC_SCALING_DYNAMIC] = { .profiles = HF | GGML,
                                 .check = dynamic_check,
                                 .stretch = dynamic_stretch,
                                 .stretch_f64 = dynamic_stretch_f64,
                                 .stretch_f32 = dynamic_stretch_f32 },
    [POSENC_SCALING_NTK] = { .profiles = HF | GGML,
                             .check = ntk_check,
                             .stretch = ntk_stretch,
                             .stretch_f64 = ntk_stretch_f64 },
    [POSENC_SCALING_LONGROPE] = { .profiles = HF | GGML,
                                  .check = longrope_check,
                                  .omega = longrope_omega,
                                  .inv_freq = longrope_inv_freq,
                                  .ggml = longrope_ggml,
                                  .attention = longrope_attention },
    [POSENC_SCALING_PROPORTIONAL] = { .profiles = HF,
                                      .check = proportional_check,
                                      .turning = proportional_turning,
                                      .omega = divided,
                                      .inv_freq = divided_f32 },
    [POSENC_SCALING_RESONANCE] = { .check = resonance_check, .whole = true },
    [POSENC_SCALING_RESONANCE_YARN] = { .check = posenc_yarn_check,
                                        .prepare = posenc_yarn_prepare,
                                        .omega = posenc_yarn_omega,
                                        .attention = posenc_yarn_attention,
                                        .whole = true },
};

const struct scaling *posenc_scaling_of(const struct posenc_freqs_spec *spec)
{
    return &scalings[spec->scaling];
}

int posenc_scalings(void) { return (int)(sizeof scalings / sizeof scalings[0]); }

int posenc_scalings_of(enum posenc_profile profile)
{
    int n = 0;
    while (n < posenc_scalings() &&
           (profile == POSENC_EXACT || (scalings[n].profiles >> profile & 1u)))
        n++;
    return n;
}
