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
 *
 * The rules of llama3 and yarn are those of Hugging Face transformers, modeling_rope_utils.py.
 */
#include "plan.h"

struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i)
{
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

struct exact_rule posenc_exact_rule(const struct posenc_freqs_spec *spec)
{
    struct exact_rule rule = { .spec = spec,
                               .log_theta = posenc_dd_log(dd_from(spec->rope_theta)) };
    if (spec->scaling == POSENC_SCALING_YARN)
        yarn_ramp(spec, &rule);
    return rule;
}

struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i)
{
    struct exponent e = posenc_exponent(rule->spec, i);
    struct dd power = dd_div(dd_mul(rule->log_theta, dd_from(e.n)), dd_from(e.d));
    struct dd omega = posenc_dd_exp(dd_neg(power));
    switch (rule->spec->scaling) {
    case POSENC_SCALING_NONE:
        break;
    case POSENC_SCALING_LINEAR:
        return dd_div(omega, dd_from(rule->spec->factor));
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

double posenc_attention_factor(const struct posenc_freqs_spec *spec)
{
    if (spec->attention_factor != 0.0)
        return spec->attention_factor;
    if (spec->scaling != POSENC_SCALING_YARN || spec->values)
        return 1.0;
    if (spec->mscale != 0.0 && spec->mscale_all_dim != 0.0) {
        struct dd above = magnitude(spec->factor, spec->mscale);
        return dd_div(above, magnitude(spec->factor, spec->mscale_all_dim)).hi;
    }
    return magnitude(spec->factor, 1.0).hi;
}
