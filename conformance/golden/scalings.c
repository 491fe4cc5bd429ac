/*
 * Scaling families by MPFR: real mathematics straight from the formulas, then the steps that
 * frameworks take (frequencies.c, frameworks.c).
 *
 *     linear        omega/f
 *     llama3        by wavelength: above L/low omega/f, below L/high omega, between a blend
 *     yarn          a blend of omega/f and omega along a ramp over the pairs (2309.00071, 3.2)
 *     ntk           theta f^(d/(d-2)) for theta
 *     dynamic       theta (f s/M - (f-1))^(d/(d-2)), s the sequence and at least M
 *     longrope      omega over the pair's long factor for sequences above L, else its short one
 *     proportional  omega/f for the first share of the d/2 pairs; the others rest
 *     resonance     2 pi over the whole number nearest to 2 pi/omega, or to 2 pi over yarn's omega
 */
#include "scalings.h"
#include "frameworks.h"

/* ---- linear ---- */

static void divided(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    (void)i;
    mpfr_div_d(omega, omega, spec->factor, MPFR_RNDN);
}

static double hf_divided(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    (void)i;
    return step(mpfr_div, step(mpfr_div, 1, power), spec->factor);
}

static void ggml_divided(struct reference_plan *plan)
{
    plan->ggml.freq_scale = step(mpfr_div, 1, plan->spec->factor);
}

/* ---- llama3 ---- */

static void llama3(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    (void)i;
    const double context = spec->original_max_position_embeddings;
    mpfr_t wavelength, bound, smooth, scaled;
    mpfr_inits2(PRECISION, wavelength, bound, smooth, scaled, (mpfr_ptr)0);
    mpfr_const_pi(wavelength, MPFR_RNDN);
    mpfr_mul_ui(wavelength, wavelength, 2, MPFR_RNDN);
    mpfr_div(wavelength, wavelength, omega, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
    const bool is_long = mpfr_cmp(wavelength, bound) > 0;
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->high_freq_factor, MPFR_RNDN);
    const bool is_short = mpfr_cmp(wavelength, bound) < 0;
    if (is_long) {
        mpfr_set(omega, scaled, MPFR_RNDN);
    } else if (!is_short) {
        mpfr_d_div(smooth, context, wavelength, MPFR_RNDN);
        mpfr_sub_d(smooth, smooth, spec->low_freq_factor, MPFR_RNDN);
        mpfr_set_d(bound, spec->high_freq_factor, MPFR_RNDN);
        mpfr_sub_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
        mpfr_div(smooth, smooth, bound, MPFR_RNDN);
        mpfr_mul(omega, omega, smooth, MPFR_RNDN);
        mpfr_ui_sub(smooth, 1, smooth, MPFR_RNDN);
        mpfr_mul(scaled, scaled, smooth, MPFR_RNDN);
        mpfr_add(omega, omega, scaled, MPFR_RNDN);
    }
    mpfr_clears(wavelength, bound, smooth, scaled, (mpfr_ptr)0);
}

static double hf_llama3(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    const double inv_freq = step(mpfr_div, 1, power);
    (void)i;
    const double context = spec->original_max_position_embeddings;
    const double low = spec->low_freq_factor, high = spec->high_freq_factor;
    const double two_pi = 2 * pi_f64;
    const double wavelength = step(mpfr_mul, step(mpfr_div, 1, inv_freq), two_pi);
    const double kept = wavelength > step(mpfr_div, context, low)
                            ? step(mpfr_div, inv_freq, spec->factor)
                            : inv_freq;
    if (wavelength > f32(context / low) || wavelength < f32(context / high) || low == high)
        return kept;
    double smooth = step(mpfr_mul, step(mpfr_div, 1, wavelength), context);
    smooth = step(mpfr_div, step(mpfr_sub, smooth, low), high - low);
    double left = step(mpfr_mul, step(mpfr_sub, 1, smooth), kept);
    left = step(mpfr_div, left, spec->factor);
    return step(mpfr_add, left, step(mpfr_mul, smooth, kept));
}

/* The ratio of the plain to the scaled frequency. */
static void ggml_llama3(struct reference_plan *plan)
{
    struct posenc_freqs_spec plain = *plan->spec;
    mpfr_t ratio;
    mpfr_init2(ratio, PRECISION);
    plain.scaling = POSENC_SCALING_NONE;
    for (int64_t i = 0; i < plan->n_pairs; i++) {
        reference_omega(ratio, &plain, i);
        mpfr_div(ratio, ratio, plan->omega[i], MPFR_RNDN);
        plan->ggml.divisor[i] = (double)mpfr_get_flt(ratio, MPFR_RNDN);
    }
    mpfr_clear(ratio);
}

/* ---- yarn ---- */

/* d log(L / (2 pi rotations)) / (2 log theta) */
static void correction_dim(mpfr_t to, const struct posenc_freqs_spec *spec, double rotations)
{
    mpfr_t log_theta;
    mpfr_init2(log_theta, PRECISION);
    mpfr_const_pi(to, MPFR_RNDN);
    mpfr_mul_d(to, to, 2 * rotations, MPFR_RNDN);
    mpfr_d_div(to, spec->original_max_position_embeddings, to, MPFR_RNDN);
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_si(to, to, (long)spec->dim, MPFR_RNDN);
    mpfr_set_d(log_theta, spec->rope_theta, MPFR_RNDN);
    mpfr_log(log_theta, log_theta, MPFR_RNDN);
    mpfr_div(to, to, log_theta, MPFR_RNDN);
    mpfr_div_ui(to, to, 2, MPFR_RNDN);
    mpfr_clear(log_theta);
}

static void yarn_range(mpfr_t low, mpfr_t high, const struct posenc_freqs_spec *spec)
{
    correction_dim(low, spec, spec->beta_fast);
    correction_dim(high, spec, spec->beta_slow);
    if (spec->truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0)
        mpfr_set_zero(low, 1);
    if (mpfr_cmp_si(high, (long)spec->dim - 1) > 0)
        mpfr_set_si(high, (long)spec->dim - 1, MPFR_RNDN);
}

/* omega (1 - ramp) + omega/f ramp */
static void yarn(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    mpfr_t low, high, ramp, scaled;
    mpfr_inits2(PRECISION, low, high, ramp, scaled, (mpfr_ptr)0);
    yarn_range(low, high, spec);
    mpfr_sub(high, high, low, MPFR_RNDN);
    if (mpfr_zero_p(high)) {
        mpfr_set_ui(high, 1, MPFR_RNDN);
        mpfr_div_ui(high, high, 1000, MPFR_RNDN);
    }
    mpfr_si_sub(ramp, (long)i, low, MPFR_RNDN);
    mpfr_div(ramp, ramp, high, MPFR_RNDN);
    if (mpfr_sgn(ramp) < 0)
        mpfr_set_zero(ramp, 1);
    if (mpfr_cmp_ui(ramp, 1) > 0)
        mpfr_set_ui(ramp, 1, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_mul(scaled, scaled, ramp, MPFR_RNDN);
    mpfr_ui_sub(ramp, 1, ramp, MPFR_RNDN);
    mpfr_mul(omega, omega, ramp, MPFR_RNDN);
    mpfr_add(omega, omega, scaled, MPFR_RNDN);
    mpfr_clears(low, high, ramp, scaled, (mpfr_ptr)0);
}

static double hf_yarn(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    mpfr_t range_low, range_high;
    mpfr_inits2(PRECISION, range_low, range_high, (mpfr_ptr)0);
    yarn_range(range_low, range_high, spec);
    const double low = mpfr_get_d(range_low, MPFR_RNDN);
    double high = mpfr_get_d(range_high, MPFR_RNDN);
    mpfr_clears(range_low, range_high, (mpfr_ptr)0);
    if (low == high)
        high += 0.001;
    const double extrapolation = step(mpfr_div, 1, power);
    const double interpolation = step(mpfr_div, 1, step(mpfr_mul, spec->factor, power));
    double ramp = step(mpfr_div, step(mpfr_sub, (double)i, low), high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    const double keep = step(mpfr_sub, 1, ramp);
    const double left = step(mpfr_mul, interpolation, step(mpfr_sub, 1, keep));
    return step(mpfr_add, left, step(mpfr_mul, extrapolation, keep));
}

/* n_dims log(n_ctx_orig / (n_rot 2 pi)) / (2 log(base)), from the left as C reads it. */
static double ggml_corr_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    const double span = step(mpfr_mul, step(mpfr_mul, rotations, 2), pi_f64);
    const double ratio = step(mpfr_div, spec->original_max_position_embeddings, span);
    const double above = step(mpfr_mul, (double)spec->dim, step_of(mpfr_log, ratio));
    return step(mpfr_div, above, step(mpfr_mul, 2, step_of(mpfr_log, spec->rope_theta)));
}

static int ggml_floor(mpfr_t to, const mpfr_t x, mpfr_rnd_t rounding)
{
    (void)rounding;
    return mpfr_floor(to, x);
}

static int ggml_ceil(mpfr_t to, const mpfr_t x, mpfr_rnd_t rounding)
{
    (void)rounding;
    return mpfr_ceil(to, x);
}

/* 1 - the ramp: the share of the angle that is not interpolated. */
static double ggml_kept(const struct posenc_freqs_spec *spec, int64_t i)
{
    double low = step_of(ggml_floor, ggml_corr_dim(spec, spec->beta_fast));
    double high = step_of(ggml_ceil, ggml_corr_dim(spec, spec->beta_slow));
    low = low > 0 ? low : 0;
    high = high < (double)(spec->dim - 1) ? high : (double)(spec->dim - 1);
    const double least = f32(0.001), width = step(mpfr_sub, high, low);
    const double y =
        step(mpfr_div, step(mpfr_sub, (double)i, low), width > least ? width : least);
    return step(mpfr_sub, 1, y < 0 ? 0 : y > 1 ? 1 : y);
}

static void ggml_yarn(struct reference_plan *plan)
{
    plan->ggml.blends = true;
    plan->ggml.freq_scale = step(mpfr_div, 1, plan->spec->factor);
    for (int64_t i = 0; i < plan->n_pairs; i++)
        plan->ggml.kept[i] = ggml_kept(plan->spec, i);
}

static double ggml_magnitude(const struct posenc_freqs_spec *spec)
{
    const double freq_scale = step(mpfr_div, 1, spec->factor);
    const double log_factor = step_of(mpfr_log, step(mpfr_div, 1, freq_scale));
    return step(mpfr_add, 1, step(mpfr_mul, 0.1, log_factor));
}

/* mscale log(f)/10 + 1, 1 for f <= 1 */
static void magnitude(mpfr_t to, double factor, double mscale)
{
    mpfr_set_d(to, factor, MPFR_RNDN);
    if (factor <= 1) {
        mpfr_set_ui(to, 1, MPFR_RNDN);
        return;
    }
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_d(to, to, mscale, MPFR_RNDN);
    mpfr_div_ui(to, to, 10, MPFR_RNDN);
    mpfr_add_ui(to, to, 1, MPFR_RNDN);
}

static double yarn_attention(const struct posenc_freqs_spec *spec)
{
    const bool both = spec->mscale != 0 && spec->mscale_all_dim != 0;
    if (spec->profile == POSENC_GGML_F32 && !both)
        return ggml_magnitude(spec);
    mpfr_t a, b;
    mpfr_inits2(PRECISION, a, b, (mpfr_ptr)0);
    magnitude(a, spec->factor, both ? spec->mscale : 1);
    magnitude(b, both ? spec->factor : 1, spec->mscale_all_dim);
    mpfr_div(a, a, b, MPFR_RNDN);
    const double m = mpfr_get_d(a, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
    return m;
}

/* ---- ntk and dynamic: what theta is multiplied by ---- */

static void power_of_stretch(mpfr_t stretch, const struct posenc_freqs_spec *spec)
{
    mpfr_t power;
    mpfr_init2(power, PRECISION);
    mpfr_set_si(power, (long)spec->dim, MPFR_RNDN);
    mpfr_div_si(power, power, (long)spec->dim - 2, MPFR_RNDN);
    mpfr_pow(stretch, stretch, power, MPFR_RNDN);
    mpfr_clear(power);
}

static void ntk(mpfr_t theta, const struct posenc_freqs_spec *spec)
{
    mpfr_t stretch;
    mpfr_init2(stretch, PRECISION);
    mpfr_set_d(stretch, spec->factor, MPFR_RNDN);
    power_of_stretch(stretch, spec);
    mpfr_mul(theta, theta, stretch, MPFR_RNDN);
    mpfr_clear(stretch);
}

static void dynamic(mpfr_t theta, const struct posenc_freqs_spec *spec)
{
    mpfr_t stretch;
    if ((double)spec->seq_len <= spec->max_position_embeddings)
        return;
    mpfr_init2(stretch, PRECISION);
    mpfr_set_d(stretch, spec->factor, MPFR_RNDN);
    mpfr_mul_si(stretch, stretch, (long)spec->seq_len, MPFR_RNDN);
    mpfr_div_d(stretch, stretch, spec->max_position_embeddings, MPFR_RNDN);
    mpfr_sub_d(stretch, stretch, spec->factor, MPFR_RNDN);
    mpfr_add_ui(stretch, stretch, 1, MPFR_RNDN);
    power_of_stretch(stretch, spec);
    mpfr_mul(theta, theta, stretch, MPFR_RNDN);
    mpfr_clear(stretch);
}

static double python_ntk(const struct posenc_freqs_spec *spec) { return spec->factor; }

static double python_dynamic(const struct posenc_freqs_spec *spec)
{
    const double f = spec->factor;
    const double most = spec->max_position_embeddings, now = (double)spec->seq_len;
    const double stretch = python(mpfr_div, python(mpfr_mul, f, now > most ? now : most), most);
    return python(mpfr_sub, stretch, python(mpfr_sub, f, 1));
}

/* ---- longrope ---- */

static double longrope_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    const bool beyond = (double)spec->seq_len > spec->original_max_position_embeddings;
    return beyond ? spec->long_factor[i] : spec->short_factor[i];
}

static void longrope(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    mpfr_div_d(omega, omega, longrope_factor(spec, i), MPFR_RNDN);
}

static double hf_longrope(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    return step(mpfr_div, 1, step(mpfr_mul, longrope_factor(spec, i), power));
}

static void ggml_longrope(struct reference_plan *plan)
{
    for (int64_t i = 0; i < plan->n_pairs; i++)
        plan->ggml.divisor[i] = f32(longrope_factor(plan->spec, i));
}

/* sqrt(1 + log(f)/log(L)) */
static double longrope_attention(const struct posenc_freqs_spec *spec)
{
    mpfr_t m, log_context;
    mpfr_inits2(PRECISION, m, log_context, (mpfr_ptr)0);
    mpfr_set_d(log_context, spec->original_max_position_embeddings, MPFR_RNDN);
    mpfr_log(log_context, log_context, MPFR_RNDN);
    mpfr_set_d(m, spec->factor, MPFR_RNDN);
    mpfr_log(m, m, MPFR_RNDN);
    mpfr_div(m, m, log_context, MPFR_RNDN);
    mpfr_add_ui(m, m, 1, MPFR_RNDN);
    mpfr_sqrt(m, m, MPFR_RNDN);
    const double magnitude_of = mpfr_get_d(m, MPFR_RNDN);
    mpfr_clears(m, log_context, (mpfr_ptr)0);
    return magnitude_of;
}

/* ---- proportional ---- */

/* int(share * dim // 2) of Python: the product is a float. */
static bool beyond_share(const struct posenc_freqs_spec *spec, int64_t i)
{
    mpfr_t turning;
    mpfr_init2(turning, 53);
    mpfr_set_d(turning, spec->partial_rotary_factor, MPFR_RNDN);
    mpfr_mul_si(turning, turning, (long)spec->dim, MPFR_RNDN);
    mpfr_div_ui(turning, turning, 2, MPFR_RNDN);
    const bool rests = mpfr_get_si(turning, MPFR_RNDD) <= (long)i;
    mpfr_clear(turning);
    return rests;
}

/* ---- The list ---- */

const struct reference_scaling *reference_scaling(const struct posenc_freqs_spec *spec)
{
    static const struct reference_scaling all[] = {
        [POSENC_SCALING_NONE] = { .omega = NULL },
        [POSENC_SCALING_LINEAR] = { .omega = divided,
                                    .inv_freq = hf_divided,
                                    .ggml = ggml_divided },
        [POSENC_SCALING_LLAMA3] = { .omega = llama3,
                                    .inv_freq = hf_llama3,
                                    .ggml = ggml_llama3 },
        [POSENC_SCALING_YARN] = { .omega = yarn,
                                  .inv_freq = hf_yarn,
                                  .ggml = ggml_yarn,
                                  .attention = yarn_attention },
        [POSENC_SCALING_DYNAMIC] = { .theta = dynamic, .python_stretch = python_dynamic },
        [POSENC_SCALING_NTK] = { .theta = ntk, .python_stretch = python_ntk },
        [POSENC_SCALING_LONGROPE] = { .omega = longrope,
                                      .inv_freq = hf_longrope,
                                      .ggml = ggml_longrope,
                                      .attention = longrope_attention },
        [POSENC_SCALING_PROPORTIONAL] = { .rests = beyond_share,
                                          .omega = divided,
                                          .inv_freq = hf_divided },
        [POSENC_SCALING_RESONANCE] = { .whole = true },
        [POSENC_SCALING_RESONANCE_YARN] = { .omega = yarn,
                                            .attention = yarn_attention,
                                            .whole = true },
    };
    return &all[spec->scaling];
}
