/*
 * Scaling families by MPFR: each straight from its formula (frequencies.c applies it), then in
 * the steps that frameworks take (frameworks.c).  d is dim, theta rope_theta, omega a
 * pair's frequency, f factor, M max_position_embeddings, L original_max_position_embeddings.
 *
 *     linear        omega/f
 *     llama3        by wavelength: above L/low omega/f, below L/high omega, between a blend
 *     yarn          a blend of omega/f and omega along a ramp over the pairs (2309.00071, 3.2)
 *     ntk           theta f^(d/(d-2)) for theta
 *     dynamic       theta (f s/M - (f-1))^(d/(d-2)), s the length of the sequence, at least M
 *     longrope      omega over the pair's long factor for sequences above L, else its short one
 *     proportional  omega/f for the first share of the d/2 pairs; the others rest, at 0
 *     resonance     2 pi over the whole number nearest to 2 pi/omega, omega plain or yarn's
 */
#include "scalings.h"

#include <math.h>

/* ---- linear ---- */

static number divided(number omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    (void)i;
    return mp_div(omega, mp_of(spec->factor));
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

static number wavelength_of(number omega) { return mp_div(mp_mul(mp_pi(), mp_of(2)), omega); }

static number llama3(number omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    (void)i;
    const number wavelength = wavelength_of(omega),
                 context = mp_of(spec->original_max_position_embeddings);
    const number low = mp_of(spec->low_freq_factor), high = mp_of(spec->high_freq_factor);
    const number scaled = mp_div(omega, mp_of(spec->factor));
    if (mpfr_greater_p(wavelength, mp_div(context, low)))
        return scaled;
    if (mpfr_less_p(wavelength, mp_div(context, high)))
        return omega;
    const number smooth = mp_div(mp_sub(mp_div(context, wavelength), low), mp_sub(high, low));
    return mp_add(mp_mul(omega, smooth), mp_mul(scaled, mp_sub(mp_of(1), smooth)));
}

static double hf_llama3(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    const double inv_freq = step(mpfr_div, 1, power);
    (void)i;
    const double context = spec->original_max_position_embeddings;
    const double low = spec->low_freq_factor, high = spec->high_freq_factor;
    const double two_pi = 2 * pi_f64;
    const double wavelength = step(mpfr_mul, step(mpfr_div, 1, inv_freq), two_pi);
    const double kept =
        wavelength > f32(context / low) ? step(mpfr_div, inv_freq, spec->factor) : inv_freq;
    if (wavelength > f32(context / low) || wavelength < f32(context / high) || low == high)
        return kept;
    double smooth = step(mpfr_mul, step(mpfr_div, 1, wavelength), context);
    smooth = step(mpfr_div, step(mpfr_sub, smooth, low), high - low);
    double scaled = step(mpfr_mul, step(mpfr_sub, 1, smooth), kept);
    scaled = step(mpfr_div, scaled, spec->factor);
    return step(mpfr_add, scaled, step(mpfr_mul, smooth, kept));
}

/* The files that ggml's users convert hold divisors: the plain frequency by the scaled one. */
static void ggml_llama3(struct reference_plan *plan)
{
    struct posenc_freqs_spec plain = *plan->spec;
    plain.scaling = POSENC_SCALING_NONE;
    for (int64_t i = 0; i < plan->n_pairs; i++)
        plan->ggml.divisor[i] =
            (double)mp_float(mp_div(reference_omega(&plain, i), plan->omega[i]));
}

/* ---- yarn ---- */

/* The pair that turns so often in L positions: d log(L / (2 pi rotations)) / (2 log theta). */
static number correction_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    const number context = mp_of(spec->original_max_position_embeddings);
    const number wavelengths = mp_div(context, mp_mul(mp_pi(), mp_of(2 * rotations)));
    const number twice = mp_mul(mp_of(2), mp_log(mp_of(spec->rope_theta)));
    return mp_div(mp_mul(mp_log(wavelengths), mp_of((double)spec->dim)), twice);
}

static void yarn_range(const struct posenc_freqs_spec *spec, number *low, number *high)
{
    const double last = (double)(spec->dim - 1);
    *low = correction_dim(spec, spec->beta_fast);
    *high = correction_dim(spec, spec->beta_slow);
    if (spec->truncate) {
        *low = mp_floor(*low);
        *high = mp_ceil(*high);
    }
    *low = mp_clamp(*low, 0, (double)INFINITY);
    *high = mp_clamp(*high, -(double)INFINITY, last);
}

/* omega (1 - ramp) + omega/f ramp */
static number yarn(number omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    number low, high;
    yarn_range(spec, &low, &high);
    number width = mp_sub(high, low);
    if (mpfr_zero_p(width))
        width = mp_div(mp_of(1), mp_of(1000));
    const number ramp = mp_clamp(mp_div(mp_sub(mp_of((double)i), low), width), 0, 1);
    const number scaled = mp_div(omega, mp_of(spec->factor));
    return mp_add(mp_mul(omega, mp_sub(mp_of(1), ramp)), mp_mul(scaled, ramp));
}

/* The ends of the range are rounded once each, where Python rounds every step to them. */
static double hf_yarn(const struct posenc_freqs_spec *spec, int64_t i, double power)
{
    number range_low, range_high;
    yarn_range(spec, &range_low, &range_high);
    const double low = mp_double(range_low);
    double high = mp_double(range_high);
    if (low == high)
        high += 0.001;
    const double extrapolation = step(mpfr_div, 1, power);
    const double interpolation = step(mpfr_div, 1, step(mpfr_mul, spec->factor, power));
    double ramp = step(mpfr_div, step(mpfr_sub, (double)i, low), high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    const double keep = step(mpfr_sub, 1, ramp);
    const double rest = step(mpfr_mul, interpolation, step(mpfr_sub, 1, keep));
    return step(mpfr_add, rest, step(mpfr_mul, extrapolation, keep));
}

/* n_dims log(n_ctx_orig / (n_rot 2 pi)) / (2 log(base)), from the left as C reads it. */
static double ggml_corr_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    const double span = step(mpfr_mul, step(mpfr_mul, rotations, 2), pi_f64);
    const double ratio = step(mpfr_div, spec->original_max_position_embeddings, span);
    const double above = step(mpfr_mul, (double)spec->dim, step_of(mpfr_log, ratio));
    return step(mpfr_div, above, step(mpfr_mul, 2, step_of(mpfr_log, spec->rope_theta)));
}

/* The share of the angle that is not interpolated: 1 - the ramp. */
static double ggml_kept(const struct posenc_freqs_spec *spec, int64_t i)
{
    double low = floor(ggml_corr_dim(spec, spec->beta_fast));
    double high = ceil(ggml_corr_dim(spec, spec->beta_slow));
    low = low > 0 ? low : 0;
    high = high < (double)(spec->dim - 1) ? high : (double)(spec->dim - 1);
    const double least = f32(0.001), width = step(mpfr_sub, high, low);
    const double y =
        step(mpfr_div, step(mpfr_sub, (double)i, low), width > least ? width : least);
    return step(mpfr_sub, 1, y < 0 ? 0 : y > 1 ? 1 : y);
}

static void ggml_yarn(struct reference_plan *plan)
{
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
static number magnitude(double factor, double mscale)
{
    if (factor <= 1)
        return mp_of(1);
    const number tenth = mp_div(mp_mul(mp_log(mp_of(factor)), mp_of(mscale)), mp_of(10));
    return mp_add(tenth, mp_of(1));
}

static double yarn_attention(const struct posenc_freqs_spec *spec)
{
    const bool both = spec->mscale != 0 && spec->mscale_all_dim != 0;
    if (spec->profile == POSENC_GGML_F32 && !both)
        return ggml_magnitude(spec);
    return mp_double(mp_div(magnitude(spec->factor, both ? spec->mscale : 1),
                            magnitude(both ? spec->factor : 1, spec->mscale_all_dim)));
}

/* ---- ntk and dynamic: what theta is multiplied by ---- */

static number stretched(number theta, number stretch, const struct posenc_freqs_spec *spec)
{
    const double dim = (double)spec->dim;
    return mp_mul(theta, mp_pow(stretch, mp_div(mp_of(dim), mp_of(dim - 2))));
}

static number ntk(number theta, const struct posenc_freqs_spec *spec)
{
    return stretched(theta, mp_of(spec->factor), spec);
}

static number dynamic(number theta, const struct posenc_freqs_spec *spec)
{
    const number length = mp_of((double)spec->seq_len), factor = mp_of(spec->factor);
    if ((double)spec->seq_len <= spec->max_position_embeddings)
        return theta;
    const number ratio = mp_div(mp_mul(factor, length), mp_of(spec->max_position_embeddings));
    return stretched(theta, mp_add(mp_sub(ratio, factor), mp_of(1)), spec);
}

static double python_ntk(const struct posenc_freqs_spec *spec) { return spec->factor; }

static double python_dynamic(const struct posenc_freqs_spec *spec)
{
    const double f = spec->factor;
    const double most = spec->max_position_embeddings, now = (double)spec->seq_len;
    const double stretch = python(mpfr_div, python(mpfr_mul, f, now > most ? now : most), most);
    return python(mpfr_sub, stretch, python(mpfr_sub, f, 1));
}

/* base * ((factor * seq_len / max_position_embeddings) - (factor - 1)) ** (dim / (dim - 2)), where
 * seq_len is a tensor: torch.max(position_ids) + 1.  f - 1 and the exponent are Python's. */
static double tensor_dynamic(const struct posenc_freqs_spec *spec)
{
    const double f = spec->factor, dim = (double)spec->dim, now = (double)spec->seq_len;
    if (now <= spec->max_position_embeddings)
        return 0;
    double stretch = step(mpfr_div, step(mpfr_mul, f, now), spec->max_position_embeddings);
    stretch = step(mpfr_sub, stretch, python(mpfr_sub, f, 1));
    const number power = mp_pow(mp_of(stretch), mp_of(python(mpfr_div, dim, dim - 2)));
    return step(mpfr_mul, spec->rope_theta, (double)mp_float(power));
}

/* ---- longrope ---- */

static double longrope_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    const bool beyond = (double)spec->seq_len > spec->original_max_position_embeddings;
    return beyond ? spec->long_factor[i] : spec->short_factor[i];
}

static number longrope(number omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    return mp_div(omega, mp_of(longrope_factor(spec, i)));
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
    const number context = mp_of(spec->original_max_position_embeddings);
    const number ratio = mp_div(mp_log(mp_of(spec->factor)), mp_log(context));
    return mp_double(mp_sqrt(mp_add(ratio, mp_of(1))));
}

/* ---- proportional ---- */

/* int(share * dim // 2) pairs turn, and to Python the product is a float. */
static bool beyond_share(const struct posenc_freqs_spec *spec, int64_t i)
{
    const double turning = python(mpfr_mul, spec->partial_rotary_factor, (double)spec->dim);
    return floor(turning / 2) <= (double)i;
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
        [POSENC_SCALING_DYNAMIC] = { .theta = dynamic,
                                     .python_stretch = python_dynamic,
                                     .tensor_theta = tensor_dynamic },
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
