/*
 * Frequencies in real mathematics, by double-double arithmetic.
 *
 *   omega_i = theta^(-2i/dim), or theta^(-i/(n-1)) with n = dim/2  (Vaswani et al. 1706.03762)
 *
 * and what a scaling family makes of it (scalings.c).
 */
#include "scaling.h"

/* ---- The axis of a pair, and its place among those of that axis ---- */

struct place {
    int axis;
    int64_t j;
};

/* Pairs that the first rounds deal out, one to each axis whose section is not full. */
static int64_t dealt_in(const int64_t section[3], int64_t rounds)
{
    int64_t n = 0;
    for (int axis = 0; axis < 3; axis++)
        n += section[axis] < rounds ? section[axis] : rounds;
    return n;
}

static struct place chunked(const int64_t section[3], int64_t i)
{
    struct place place = { 0, i };
    while (place.axis < 2 && place.j >= section[place.axis])
        place.j -= section[place.axis++];
    return place;
}

/* The i-th pair that is dealt out: of the last round j that begins no later. */
static struct place dealt(const int64_t section[3], int64_t i)
{
    struct place place = { -1, 0 };
    int64_t most = i + 1;
    while (most - place.j > 1) {
        const int64_t middle = place.j + (most - place.j) / 2;
        *(dealt_in(section, middle) <= i ? &place.j : &most) = middle;
    }
    for (i -= dealt_in(section, place.j); i >= 0;)
        i -= section[++place.axis] > place.j;
    return place;
}

/* Returns the index of a pair in a layout that deals pairs out to the axes in turn. */
static int64_t when_dealt(const int64_t section[3], struct place place)
{
    int64_t i = dealt_in(section, place.j);
    for (int before = 0; before < place.axis; before++)
        i += section[before] > place.j;
    return i;
}

static struct place place_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    const bool alternating = spec->mrope_layout == POSENC_MROPE_ALTERNATING;
    return (alternating ? dealt : chunked)(spec->mrope_section, i);
}

int posenc_axis_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->mrope_layout == POSENC_MROPE_INTERLEAVED)
        return i < 3 * spec->mrope_section[i % 3] ? (int)(i % 3) : 0;
    return place_of(spec, i).axis;
}

struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->mrope_layout >= POSENC_MROPE_RESTARTED && spec->mrope_section[0] != 0) {
        const struct place place = place_of(spec, i);
        if (spec->mrope_layout != POSENC_MROPE_DEALT)
            return (struct exponent){ (double)place.j,
                                      (double)spec->mrope_section[place.axis] };
        i = when_dealt(spec->mrope_section, place);
    }
    if (spec->convention == POSENC_EXPONENT)
        return (struct exponent){ 2.0 * (double)i, (double)spec->dim };
    int64_t n = spec->dim / 2;
    return n > 1 ? (struct exponent){ (double)i, (double)(n - 1) }
                 : (struct exponent){ 0.0, 1.0 };
}

struct dd posenc_plain_omega(const struct exact_rule *rule, int64_t i)
{
    struct exponent e = posenc_exponent(rule->spec, i);
    struct dd power = dd_div(dd_mul(rule->log_theta, dd_from(e.n)), dd_from(e.d));
    return posenc_dd_exp(dd_neg(power));
}

struct exact_rule posenc_exact_rule(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    struct exact_rule rule = { .spec = spec,
                               .log_theta = posenc_dd_log(dd_from(spec->rope_theta)),
                               .turning = posenc_turning_pairs(spec) };
    if (scaling->prepare)
        scaling->prepare(&rule);
    if (scaling->stretch) {
        struct dd power = dd_div(dd_from((double)spec->dim), dd_from((double)(spec->dim - 2)));
        rule.log_theta =
            dd_add(rule.log_theta, dd_mul(power, posenc_dd_log(scaling->stretch(spec))));
    }
    return rule;
}

struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i)
{
    const struct scaling *scaling = posenc_scaling_of(rule->spec);
    if (i >= rule->turning)
        return dd_from(0.0);
    struct dd omega = posenc_plain_omega(rule, i);
    return scaling->omega ? scaling->omega(rule, i, omega) : omega;
}

int64_t posenc_turning_pairs(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    return scaling->turning ? scaling->turning(spec) : (spec->dim + 1) / 2;
}

double posenc_attention_factor(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (spec->attention_factor != 0.0)
        return spec->attention_factor;
    return scaling->attention && !spec->values ? scaling->attention(spec) : 1.0;
}
