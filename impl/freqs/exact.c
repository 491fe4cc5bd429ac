/*
 * Exact frequencies, by double-double arithmetic. Before its scaling (scalings.c), a frequency is
 *
 *   omega_i = theta^(-2i/dim), or theta^(-i/(n-1)) with n = dim/2  (Vaswani et al. 1706.03762)
 */
#include "scaling.h"

/* ---- Axes of multimodal RoPE ---- */

/* Pair j of those that an axis has. */
struct axis_pair {
    int axis;
    int64_t j;
};

/* Round robin assigns pairs in rounds, each of one pair to each axis whose section is not full. Returns the number of
 * pairs in the first rounds. */
static int64_t round_robin_count(const int64_t section[3], int64_t rounds)
{
    int64_t n = 0;
    for (int axis = 0; axis < 3; axis++)
        n += section[axis] < rounds ? section[axis] : rounds;
    return n;
}

/* Returns the i-th pair if the pairs of each axis follow those of the axis before. */
static struct axis_pair chunked_pair(const int64_t section[3], int64_t i)
{
    struct axis_pair pair = { 0, i };
    while (pair.axis < 2 && pair.j >= section[pair.axis])
        pair.j -= section[pair.axis++];
    return pair;
}

/* Returns the i-th pair that round robin assigns. It is in the last round j that begins at i or before, found by
 * bisection. */
static struct axis_pair round_robin_pair(const int64_t section[3], int64_t i)
{
    struct axis_pair pair = { -1, 0 };
    int64_t end = i + 1;
    while (end - pair.j > 1) {
        const int64_t middle = pair.j + (end - pair.j) / 2;
        *(round_robin_count(section, middle) <= i ? &pair.j : &end) = middle;
    }
    for (i -= round_robin_count(section, pair.j); i >= 0;)
        i -= section[++pair.axis] > pair.j;
    return pair;
}

/* Returns the i of which `pair` is the round_robin_pair(). */
static int64_t round_robin_index(const int64_t section[3], struct axis_pair pair)
{
    int64_t i = round_robin_count(section, pair.j);
    for (int before = 0; before < pair.axis; before++)
        i += section[before] > pair.j;
    return i;
}

static struct axis_pair axis_pair_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    const bool alternating = spec->mrope_layout == POSENC_MROPE_LAYOUT_KIMI;
    return (alternating ? round_robin_pair : chunked_pair)(spec->mrope_section, i);
}

int posenc_axis_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->mrope_layout == POSENC_MROPE_LAYOUT_QWEN3_VL)
        return i < 3 * spec->mrope_section[i % 3] ? (int)(i % 3) : 0;
    return axis_pair_of(spec, i).axis;
}

struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->mrope_layout >= POSENC_MROPE_LAYOUT_QWEN2_VL_VISION &&
        spec->mrope_section[0] != 0) {
        const struct axis_pair pair = axis_pair_of(spec, i);
        if (spec->mrope_layout != POSENC_MROPE_LAYOUT_PIXTRAL)
            return (struct exponent){ (double)pair.j, (double)spec->mrope_section[pair.axis] };
        i = round_robin_index(spec->mrope_section, pair);
    }
    if (spec->spacing == POSENC_SPACING_EXPONENT)
        return (struct exponent){ 2.0 * (double)i, (double)spec->dim };
    int64_t n = spec->dim / 2;
    return n > 1 ? (struct exponent){ (double)i, (double)(n - 1) }
                 : (struct exponent){ 0.0, 1.0 };
}

struct dd posenc_unscaled_omega(const struct exact_rule *rule, int64_t i)
{
    struct exponent e = posenc_exponent(rule->spec, i);
    struct dd power = dd_div(dd_mul(rule->log_theta, dd_from(e.n)), dd_from(e.d));
    return posenc_dd_exp(dd_neg(power));
}

struct exact_rule posenc_exact_rule_of(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    struct exact_rule rule = { .spec = spec,
                               .log_theta = posenc_dd_log(dd_from(spec->rope_theta)),
                               .n_rotated = posenc_rotated_pairs(spec) };
    if (scaling->prepare)
        scaling->prepare(&rule);
    if (scaling->theta_factor) {
        struct dd power = dd_div(dd_from((double)spec->dim), dd_from((double)(spec->dim - 2)));
        rule.log_theta =
            dd_add(rule.log_theta, dd_mul(power, posenc_dd_log(scaling->theta_factor(spec))));
    }
    return rule;
}

struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i)
{
    const struct scaling *scaling = posenc_scaling_of(rule->spec);
    if (i >= rule->n_rotated)
        return dd_from(0.0);
    struct dd omega = posenc_unscaled_omega(rule, i);
    return scaling->omega ? scaling->omega(rule, i, omega) : omega;
}

int64_t posenc_rotated_pairs(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    return scaling->rotated_pairs ? scaling->rotated_pairs(spec) : (spec->dim + 1) / 2;
}

double posenc_attention_factor(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (spec->attention_factor != 0.0)
        return spec->attention_factor;
    return scaling->attention && !spec->values ? scaling->attention(spec) : 1.0;
}
