/*
 * The scaling families (scaling.h): parameters and formulas, with omega_i = theta^(-2i/dim).
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
 * These are the formulas of Hugging Face transformers, modeling_rope_utils.py, except for ntk, the predecessor of
 * dynamic. In numerics mode ggml_f32, llama3 and longrope become divisors, as in GGUF files.
 */
#include <float.h>

#include "scaling.h"

/* ---- linear ---- */

static struct dd linear_omega(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    (void)i;
    return dd_div(omega, dd_from(rule->spec->factor));
}

static float linear_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq)
{
    (void)i;
    return 1.0f / pos_freq / (float)rule->spec->factor;
}

static void linear_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    freqs->ggml.freq_scale = 1.0f / (float)spec->factor;
}

/* ---- llama3 ---- */

static enum posenc_status llama3_check(const struct posenc_freqs_spec *spec,
                                       struct posenc_error *error)
{
    enum posenc_status status =
        posenc_check_range(error, "original_max_position_embeddings",
                           spec->original_max_position_embeddings, 1.0, 0x1p40);
    if (!status)
        status = posenc_check_range(error, "low_freq_factor", spec->low_freq_factor, 0x1p-40,
                                    0x1p40);
    if (!status)
        status = posenc_check_range(error, "high_freq_factor (low_freq_factor at least)",
                                    spec->high_freq_factor, spec->low_freq_factor, 0x1p40);
    return status;
}

/* Compares L / wavelength, the turns within L positions, with the two factors. */
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
    if (dd_compare(low, high) == 0) /* and equal to turns: t would be 0/0 */
        return omega;
    struct dd t = dd_div(dd_sub(turns, low), dd_sub(high, low));
    return dd_add(dd_mul(scaled, dd_sub(dd_from(1.0), t)), dd_mul(omega, t));
}

/* Divides a number by a tensor, as PyTorch does: by a reciprocal. */
static float divide_by_tensor(double number, float tensor)
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
    float wavelength = divide_by_tensor(2.0 * posenc_dd_pi.hi, inv_freq);
    (void)i;
    if (wavelength > (float)(length / low))
        return inv_freq / (float)spec->factor;
    /* With low == high, only a wavelength at the edge gets here, and `smooth` would be 0/0. */
    if (wavelength < (float)(length / high) || low == high)
        return inv_freq;
    float above = divide_by_tensor(length, wavelength) - (float)low;
    float smooth = above / (float)(high - low);
    float a = (1.0f - smooth) * inv_freq;
    a = a / (float)spec->factor;
    float b = smooth * inv_freq;
    return a + b;
}

/* Fills divisors: omega_i / scaled omega_i, rounded once. */
static void llama3_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    struct exact_rule rule = posenc_exact_rule_of(spec);
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct dd omega = posenc_unscaled_omega(&rule, i);
        freqs->ggml.divisor[i] = dd_to_float(dd_div(omega, llama3_omega(&rule, i, omega)));
    }
}

/* ---- dynamic and ntk: theta is multiplied by a power dim/(dim-2) ---- */

static enum posenc_status ntk_check(const struct posenc_freqs_spec *spec,
                                    struct posenc_error *error)
{
    if (spec->dim >= 3)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_SHAPE, "dim (scaled by a power of dim/(dim-2))",
                        (double)spec->dim, 3.0, POSENC_MAX_DIM);
}

static struct dd ntk_theta_factor(const struct posenc_freqs_spec *spec)
{
    return dd_from(spec->factor);
}

static double ntk_theta_factor_f64(const struct posenc_freqs_spec *spec)
{
    return spec->factor;
}

static enum posenc_status dynamic_check(const struct posenc_freqs_spec *spec,
                                        struct posenc_error *error)
{
    enum posenc_status status = ntk_check(spec, error);
    if (!status)
        status = posenc_check_range(error, "max_position_embeddings",
                                    spec->max_position_embeddings, 1.0, 0x1p40);
    return status ? status
                  : posenc_check_range(error, "seq_len", (double)spec->seq_len, 0.0, 0x1p40);
}

static struct dd dynamic_theta_factor(const struct posenc_freqs_spec *spec)
{
    double s = (double)spec->seq_len, most = spec->max_position_embeddings;
    if (s <= most)
        return dd_from(1.0);
    struct dd times = dd_div(dd_product(spec->factor, s), dd_from(most));
    return dd_sub(times, dd_sum(spec->factor, -1.0));
}

static double dynamic_theta_factor_f64(const struct posenc_freqs_spec *spec)
{
    double s = fmax((double)spec->seq_len, spec->max_position_embeddings);
    return spec->factor * s / spec->max_position_embeddings - (spec->factor - 1.0);
}

/* Beyond M the length of a sequence is a tensor: its largest position plus 1. */
static float dynamic_theta_factor_f32(const struct posenc_freqs_spec *spec)
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
        posenc_check_range(error, "seq_len", (double)spec->seq_len, 0.0, 0x1p40);
    if (!status)
        status = posenc_check_range(error, "original_max_position_embeddings",
                                    spec->original_max_position_embeddings, 2.0, 0x1p40);
    if (status)
        return status;
    if (!spec->short_factor || !spec->long_factor)
        return reject(error, POSENC_ERR_ARGUMENT,
                      spec->short_factor ? "long_factor (NULL)" : "short_factor (NULL)");
    for (int64_t i = 0; i < (spec->dim + 1) / 2 && !status; i++) {
        status = posenc_check_range(error, "short_factor of a pair", spec->short_factor[i],
                                    0x1p-10, 0x1p40);
        if (!status)
            status = posenc_check_range(error, "long_factor of a pair", spec->long_factor[i],
                                        0x1p-10, 0x1p40);
    }
    return status;
}

/* Returns the factors for the length of the sequence. */
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

static void longrope_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    for (int64_t i = 0; i < freqs->view.n_pairs; i++)
        freqs->ggml.divisor[i] = (float)longrope_factors(spec)[i];
}

/* Returns sqrt(1 + ln factor / ln L), correctly rounded. */
static double longrope_attention(const struct posenc_freqs_spec *spec)
{
    struct dd log_length = posenc_dd_log(dd_from(spec->original_max_position_embeddings));
    struct dd a =
        dd_add(dd_from(1.0), dd_div(posenc_dd_log(dd_from(spec->factor)), log_length));
    return dd_sqrt(a).hi;
}

/* ---- proportional: linear, and only the first pairs rotate ---- */

static enum posenc_status proportional_check(const struct posenc_freqs_spec *spec,
                                             struct posenc_error *error)
{
    return posenc_check_range(error, "partial_rotary_factor (a pair at least)",
                              spec->partial_rotary_factor, 2.0 / (double)spec->dim, 1.0);
}

static int64_t proportional_rotated_pairs(const struct posenc_freqs_spec *spec)
{
    return (int64_t)floor(spec->partial_rotary_factor * (double)spec->dim / 2.0);
}

/* ---- resonance ---- */

/* With theta >= 1, each wavelength is at least 2 pi positions, so none is rounded to 0. */
static enum posenc_status resonance_check(const struct posenc_freqs_spec *spec,
                                          struct posenc_error *error)
{
    if (spec->rope_theta >= 1.0)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_THETA,
                        "rope_theta (resonance rounds wavelengths from 6 positions on)",
                        spec->rope_theta, 1.0, DBL_MAX);
}

/* ---- The list ---- */

enum {
    HF = 1 << POSENC_NUMERICS_HF_F32,
    GGML = 1 << POSENC_NUMERICS_GGML_F32,
    TORCH = 1 << POSENC_NUMERICS_TORCH_EXP_F32
};

/* clang-format off */
static const struct scaling scalings[] = {
    [POSENC_SCALING_NONE] = { .modes = HF | GGML | TORCH },
    [POSENC_SCALING_LINEAR] = { .modes = HF | GGML,
        .omega = linear_omega, .inv_freq = linear_inv_freq, .ggml = linear_ggml },
    [POSENC_SCALING_LLAMA3] = { .modes = HF | GGML, .check = llama3_check,
        .omega = llama3_omega, .inv_freq = llama3_inv_freq, .ggml = llama3_ggml },
    [POSENC_SCALING_YARN] = { .modes = HF | GGML, .check = posenc_yarn_check,
        .prepare = posenc_yarn_prepare, .omega = posenc_yarn_omega,
        .prepare_f32 = posenc_yarn_prepare_f32, .inv_freq = posenc_yarn_inv_freq,
        .ggml = posenc_yarn_ggml, .attention = posenc_yarn_attention },
    [POSENC_SCALING_DYNAMIC] = { .modes = HF | GGML, .check = dynamic_check, .theta_factor = dynamic_theta_factor,
        .theta_factor_f64 = dynamic_theta_factor_f64, .theta_factor_f32 = dynamic_theta_factor_f32 },
    [POSENC_SCALING_NTK] = { .modes = HF | GGML, .check = ntk_check,
        .theta_factor = ntk_theta_factor, .theta_factor_f64 = ntk_theta_factor_f64 },
    [POSENC_SCALING_LONGROPE] = { .modes = HF | GGML, .check = longrope_check, .omega = longrope_omega,
        .inv_freq = longrope_inv_freq, .ggml = longrope_ggml, .attention = longrope_attention },
    [POSENC_SCALING_PROPORTIONAL] = { .modes = HF, .check = proportional_check,
        .rotated_pairs = proportional_rotated_pairs, .omega = linear_omega, .inv_freq = linear_inv_freq },
    [POSENC_SCALING_RESONANCE] = { .check = resonance_check, .whole_wavelengths = true },
    [POSENC_SCALING_RESONANCE_YARN] = { .check = posenc_yarn_check, .prepare = posenc_yarn_prepare,
        .omega = posenc_yarn_omega, .attention = posenc_yarn_attention, .whole_wavelengths = true },
};
/* clang-format on */

const struct scaling *posenc_scaling_of(const struct posenc_freqs_spec *spec)
{
    return &scalings[spec->scaling];
}

int posenc_scaling_count(void) { return (int)(sizeof scalings / sizeof scalings[0]); }

int posenc_scaling_count_of(enum posenc_numerics mode)
{
    int n = 0;
    while (n < posenc_scaling_count() &&
           (mode == POSENC_NUMERICS_EXACT || (scalings[n].modes >> mode & 1u)))
        n++;
    return n;
}
