/*
 * Frequencies in real mathematics, by double-double arithmetic.
 *
 *   plain   omega_i = theta^(-2i/dim), or theta^(-i/(n-1)) with n = dim/2
 *           (Vaswani et al. 1706.03762)
 *   linear  omega_i / factor  (Chen et al. 2306.15595)
 *   llama3  wavelength = 2 pi / omega_i, L = original_max_position_embeddings
 *           wavelength > L/low:   omega_i / factor
 *           wavelength < L/high:  omega_i
 *           between:  t = (L/wavelength - low)/(high - low),  omega_i ((1-t)/factor + t)
 *   yarn    c(n) = dim ln(L/(2 pi n)) / (2 ln theta);  from c(beta_fast) to c(beta_slow),
 *           clamped to [0, dim-1], omega_i goes linearly to omega_i / factor
 *           (Peng et al. 2309.00071)
 *   dynamic theta (factor s/M - (factor - 1))^(dim/(dim-2)), M = max_position_embeddings, s the
 *           larger of seq_len and M;   ntk  theta factor^(dim/(dim-2))
 *   longrope      omega_i / f_i, f long_factor where seq_len > L, else short_factor
 *                 (Ding et al. 2402.13753)
 *   proportional  omega_i / factor for i < floor(partial_rotary_factor dim/2), else 0
 *
 * The rules are those of Hugging Face transformers, modeling_rope_utils.py, but ntk, which is
 * the one dynamic came from.
 */
#include "plan.h"

int posenc_axis_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    const int64_t *section = spec->mrope_section;

    if (spec->mrope_layout == POSENC_MROPE_INTERLEAVED)
        return i < 3 * section[i % 3] ? (int)(i % 3) : 0;
    return i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
}

struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->mrope_layout == POSENC_MROPE_RESTARTED && spec->mrope_section[0] != 0) {
        int axis = posenc_axis_of(spec, i);
        for (int before = 0; before < axis; before++)
            i -= spec->mrope_section[before];
        return (struct exponent){ (double)i, (double)spec->mrope_section[axis] };
    }
    if (spec->convention == POSENC_EXPONENT)
        return (struct exponent){ 2.0 * (double)i, (double)spec->dim };
    int64_t n = spec->dim / 2;
    return n > 1 ? (struct exponent){ (double)i, (double)(n - 1) }
                 : (struct exponent){ 0.0, 1.0 };
}

/* c(rotations), rounded outwards to a whole pair if `truncate`. */
static struct dd correction(const struct posenc_freqs_spec *spec, double rotations, bool up)
{
    struct dd turns = dd_mul(dd_scale(posenc_dd_pi, 2.0), dd_from(rotations));
    struct dd log_ratio =
        posenc_dd_log(dd_div(dd_from(spec->original_max_position_embeddings), turns));
    struct dd log_theta = posenc_dd_log(dd_from(spec->rope_theta));
    struct dd c = dd_div(dd_mul(log_ratio, dd_from(0.5 * (double)spec->dim)), log_theta);
    if (!spec->truncate)
        return c;
    double whole = up ? ceil(c.hi) : floor(c.hi);
    if (whole == c.hi &&
        c.lo != 0.0) /* c is irrational: the low part says on which side it lies */
        whole += up ? (c.lo > 0.0) : -(double)(c.lo < 0.0);
    return dd_from(whole);
}

static void yarn_ramp(const struct posenc_freqs_spec *spec, struct exact_rule *rule)
{
    struct dd low = correction(spec, spec->beta_fast, false);
    struct dd high = correction(spec, spec->beta_slow, true);
    struct dd last = dd_from((double)(spec->dim - 1));
    if (dd_compare(low, dd_from(0.0)) < 0)
        low = dd_from(0.0);
    if (dd_compare(high, last) > 0)
        high = last;
    struct dd width = dd_sub(high, low);
    if (width.hi == 0.0)
        width = dd_div(dd_from(1.0), dd_from(1000.0));
    rule->ramp_low = low;
    rule->ramp_width = width;
}

static struct dd yarn(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    struct dd one = dd_from(1.0);
    struct dd t = dd_div(dd_sub(dd_from((double)i), rule->ramp_low), rule->ramp_width);
    if (t.hi <= 0.0)
        return omega;
    struct dd scaled = dd_div(omega, dd_from(rule->spec->factor));
    if (dd_compare(t, one) >= 0)
        return scaled;
    return dd_add(dd_mul(scaled, t), dd_mul(omega, dd_sub(one, t)));
}

/* Compares turns within L positions, L / wavelength, instead of wavelengths. */
static struct dd llama3(const struct posenc_freqs_spec *spec, struct dd omega)
{
    struct dd low = dd_from(spec->low_freq_factor);
    struct dd high = dd_from(spec->high_freq_factor);
    struct dd turns = dd_div(dd_mul(omega, dd_from(spec->original_max_position_embeddings)),
                             dd_scale(posenc_dd_pi, 2.0));
    struct dd scaled = dd_div(omega, dd_from(spec->factor));
    if (dd_compare(turns, low) < 0)
        return scaled;
    if (dd_compare(turns, high) > 0)
        return omega;
    if (dd_compare(low, high) == 0) /* and the turns exactly there: the formula has no value */
        return omega;
    struct dd t = dd_div(dd_sub(turns, low), dd_sub(high, low));
    return dd_add(dd_mul(scaled, dd_sub(dd_from(1.0), t)), dd_mul(omega, t));
}

/* What dim/(dim-2) is the power of. */
static struct dd stretch(const struct posenc_freqs_spec *spec)
{
    double s = (double)spec->seq_len, most = spec->max_position_embeddings;

    if (spec->scaling == POSENC_SCALING_NTK)
        return dd_from(spec->factor);
    if (s <= most)
        return dd_from(1.0);
    struct dd times = dd_div(dd_product(spec->factor, s), dd_from(most));
    return dd_sub(times, dd_sum(spec->factor, -1.0));
}

const double *posenc_longrope_factors(const struct posenc_freqs_spec *spec)
{
    bool beyond = (double)spec->seq_len > spec->original_max_position_embeddings;
    return beyond ? spec->long_factor : spec->short_factor;
}

int64_t posenc_turning_pairs(const struct posenc_freqs_spec *spec)
{
    int64_t pairs = (spec->dim + 1) / 2;
    if (spec->scaling == POSENC_SCALING_PROPORTIONAL)
        pairs = (int64_t)floor(spec->partial_rotary_factor * (double)spec->dim / 2.0);
    return pairs;
}

struct exact_rule posenc_exact_rule(const struct posenc_freqs_spec *spec)
{
    struct exact_rule rule = { .spec = spec,
                               .log_theta = posenc_dd_log(dd_from(spec->rope_theta)),
                               .turning = posenc_turning_pairs(spec) };
    if (spec->scaling == POSENC_SCALING_YARN)
        yarn_ramp(spec, &rule);
    if (spec->scaling == POSENC_SCALING_DYNAMIC || spec->scaling == POSENC_SCALING_NTK) {
        struct dd power = dd_div(dd_from((double)spec->dim), dd_from((double)(spec->dim - 2)));
        rule.log_theta = dd_add(rule.log_theta, dd_mul(power, posenc_dd_log(stretch(spec))));
    }
    return rule;
}

struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i)
{
    struct exponent e = posenc_exponent(rule->spec, i);
    struct dd power = dd_div(dd_mul(rule->log_theta, dd_from(e.n)), dd_from(e.d));
    struct dd omega = posenc_dd_exp(dd_neg(power));
    switch (rule->spec->scaling) {
    case POSENC_SCALING_NONE:
    case POSENC_SCALING_DYNAMIC:
    case POSENC_SCALING_NTK:
        break;
    case POSENC_SCALING_LINEAR:
        return dd_div(omega, dd_from(rule->spec->factor));
    case POSENC_SCALING_PROPORTIONAL:
        return i < rule->turning ? dd_div(omega, dd_from(rule->spec->factor)) : dd_from(0.0);
    case POSENC_SCALING_LONGROPE:
        return dd_div(omega, dd_from(posenc_longrope_factors(rule->spec)[i]));
    case POSENC_SCALING_LLAMA3:
        return llama3(rule->spec, omega);
    case POSENC_SCALING_YARN:
        return yarn(rule, i, omega);
    }
    return omega;
}

/* 0.1 mscale ln(factor) + 1 */
static struct dd magnitude(double factor, double mscale)
{
    struct dd log_factor = posenc_dd_log(dd_from(factor));
    struct dd tenth = dd_div(log_factor, dd_from(10.0));
    return dd_add(dd_mul(tenth, dd_from(mscale)), dd_from(1.0));
}

/* sqrt(1 + ln factor / ln L), correctly rounded: the square root of the high part, one Newton
 * step. */
static double longrope_magnitude(const struct posenc_freqs_spec *spec)
{
    struct dd log_length = posenc_dd_log(dd_from(spec->original_max_position_embeddings));
    struct dd a =
        dd_add(dd_from(1.0), dd_div(posenc_dd_log(dd_from(spec->factor)), log_length));
    double root = sqrt(a.hi);
    struct dd rest = dd_sub(a, dd_product(root, root));
    return root + rest.hi / (2.0 * root);
}

double posenc_attention_factor(const struct posenc_freqs_spec *spec)
{
    if (spec->attention_factor != 0.0)
        return spec->attention_factor;
    if (spec->scaling == POSENC_SCALING_LONGROPE && !spec->values)
        return longrope_magnitude(spec);
    if (spec->scaling != POSENC_SCALING_YARN || spec->values)
        return 1.0;
    if (spec->mscale != 0.0 && spec->mscale_all_dim != 0.0) {
        struct dd above = magnitude(spec->factor, spec->mscale);
        return dd_div(above, magnitude(spec->factor, spec->mscale_all_dim)).hi;
    }
    return magnitude(spec->factor, 1.0).hi;
}
