/*
 * Frequencies for the oracle. The steps of each scaling family are in scalings.c. The numerics modes are
 *
 *   exact          real mathematics in 256 bits
 *   hf_f32         Hugging Face's modeling_rope_utils.py as PyTorch evaluates it on a CPU: each operation on f32 tensors
 *                  rounds once, a Python number is rounded to f32 before it is combined with a tensor, and
 *                  number / tensor is computed as number times (1 / tensor)
 *   torch_exp_f32  torch.exp(torch.arange(0, d, 2).float() * (-math.log(base) / d)) in PyTorch
 *   ggml_f32       ggml_rope_ext on a CPU, in the order of its source (ggml.c and ops.cpp: ggml_rope_cache_init).
 *                  Frequency factors are those of llama.cpp's converter: the ratio of the unscaled to the scaled
 *                  frequency, or longrope's own
 *
 * References: Su et al. 2104.09864; Vaswani et al. 1706.03762 section 3.5; tensor2tensor get_timing_signal_1d
 * (endpoint).
 */
#include "scalings.h"

struct exact_section exact_section(const struct posenc_freqs_spec *spec, int64_t i)
{
    struct exact_section section = { 0, 0, spec->mrope_section[0] };
    if (section.pairs == 0)
        return (struct exact_section){ 0, 0, spec->dim / 2 };
    while (section.axis < 2 && i >= section.start + section.pairs) {
        section.start += section.pairs;
        section.pairs = spec->mrope_section[++section.axis];
    }
    return section;
}

/* Pair of a layout that assigns one pair after the other to the axes in turn. An axis is skipped once its section is
 * full. Pair 0 is { 0, 0, 0 }. */
struct round_robin_pair {
    int64_t index, on_axis; /* among all pairs; among those of its axis */
    int axis;
};

static void next_round_robin_pair(const struct posenc_freqs_spec *spec,
                                  struct round_robin_pair *pair)
{
    do {
        pair->axis = (pair->axis + 1) % 3;
        pair->on_axis += pair->axis == 0;
    } while (spec->mrope_section[pair->axis] <= pair->on_axis);
    pair->index++;
}

static struct round_robin_pair find_round_robin_pair(const struct posenc_freqs_spec *spec,
                                                     int64_t index)
{
    struct round_robin_pair pair = { 0, 0, 0 };
    while (pair.index < index)
        next_round_robin_pair(spec, &pair);
    return pair;
}

/* Hugging Face: modeling_qwen2_vl.py splits the pairs into sections. modeling_qwen3_vl.py assigns all pairs to the
 * first axis, then pairs axis, axis + 3, ... below 3 section to each other axis. modeling_kimi_k25.py puts the axes
 * of a frequency side by side. */
int exact_axis(const struct posenc_freqs_spec *spec, int64_t i)
{
    const int axis = (int)(i % 3);
    if (spec->mrope_layout == POSENC_MROPE_LAYOUT_KIMI && spec->mrope_section[0] != 0)
        return find_round_robin_pair(spec, i).axis;
    if (spec->mrope_layout != POSENC_MROPE_LAYOUT_QWEN3_VL || spec->mrope_section[0] == 0)
        return exact_section(spec, i).axis;
    return i < 3 * spec->mrope_section[axis] ? axis : 0;
}

/* Computes the exponent of 1/theta in the frequency of pair i, as a fraction. With endpoint spacing, the exponent of
 * a single pair is 0, as i / (pairs - 1) would be 0 / 0. */
static void compute_exponent(const struct posenc_freqs_spec *spec, int64_t i,
                             int64_t *numerator, int64_t *denominator)
{
    const struct exact_section section = exact_section(spec, i);
    const int64_t pairs = spec->dim / 2;
    *numerator = 2 * i;
    *denominator = spec->dim;
    if (spec->spacing == POSENC_SPACING_ENDPOINT) {
        *numerator = pairs > 1 ? i : 0;
        *denominator = pairs > 1 ? pairs - 1 : 1;
    }
    if (spec->mrope_layout == POSENC_MROPE_LAYOUT_QWEN2_VL_VISION &&
        spec->mrope_section[0] != 0) {
        *numerator = 2 * (i - section.start);
        *denominator = 2 * section.pairs;
    }
    if (spec->mrope_section[0] == 0)
        return;
    struct round_robin_pair pair = { 0, 0, 0 };
    if (spec->mrope_layout == POSENC_MROPE_LAYOUT_PIXTRAL) { /* modeling_pixtral.py */
        while (pair.axis != section.axis || pair.on_axis != i - section.start)
            next_round_robin_pair(spec, &pair);
        *numerator = 2 * pair.index;
    }
    if (spec->mrope_layout == POSENC_MROPE_LAYOUT_KIMI) {
        pair = find_round_robin_pair(spec, i);
        *numerator = 2 * pair.on_axis;
        *denominator = 2 * spec->mrope_section[pair.axis];
    }
}

/* ---- Numerics exact ---- */

struct scaling_state scaling_state_create(const struct posenc_freqs_spec *spec)
{
    const struct scaling_family *family = scaling_find_family(spec);
    struct scaling_state state = { .spec = spec };
    if (spec->values)
        return state;
    state.log_theta = big_log(big_double(spec->rope_theta));
    if (family->base)
        state.log_theta =
            big_add(state.log_theta,
                    big_multiply(big_divide(big_integer(spec->dim), big_integer(spec->dim - 2)),
                                 big_log(family->base(spec))));
    if (family->prepare)
        family->prepare(&state);
    return state;
}

struct big scaling_unscaled_omega(const struct scaling_state *state, int64_t i)
{
    int64_t numerator, denominator;
    compute_exponent(state->spec, i, &numerator, &denominator);
    const struct big exponent = big_divide(big_integer(-numerator), big_integer(denominator));
    return big_exp(big_multiply(exponent, state->log_theta));
}

/* Returns the scaled frequency of pair i in radians per position. */
static struct big omega_exact(const struct scaling_state *state, int64_t i)
{
    const struct posenc_freqs_spec *spec = state->spec;
    const struct scaling_family *family = scaling_find_family(spec);
    if (spec->values)
        return big_double(spec->values[i]);
    if (family->is_unrotated && family->is_unrotated(spec, i))
        return big_integer(0);
    struct big omega = scaling_unscaled_omega(state, i);
    if (family->omega)
        omega = family->omega(state, i, omega);
    if (family->rounds_wavelength) {
        const struct big half = big_divide(big_integer(1), big_integer(2));
        omega = big_divide(
            big_two_pi, big_integer(big_floor(big_add(big_divide(big_two_pi, omega), half))));
    }
    return omega;
}

/* ---- Numerics hf_f32 and torch_exp_f32 ---- */

/* Returns x^y. */
static struct big compute_power(double x, double y)
{
    return big_exp(big_multiply(big_double(y), big_log(big_double(x))));
}

/* Returns theta of the f32 modes. Some families scale it, in Python floats or in f32 tensors of PyTorch. The exponent
 * is a Python float in both. */
static float theta_f32(const struct posenc_freqs_spec *spec)
{
    const struct scaling_family *family = scaling_find_family(spec);
    const double power = (double)spec->dim / ((double)spec->dim - 2.0);
    if (!family->python_base)
        return (float)spec->rope_theta;
    if (spec->numerics != POSENC_NUMERICS_GGML_F32 && family->is_tensor &&
        family->is_tensor(spec)) {
        const double base = (double)family->tensor_base(spec);
        return (float)spec->rope_theta * big_to_float(compute_power(base, power));
    }
    return (float)(spec->rope_theta *
                   big_to_double(compute_power(family->python_base(spec), power)));
}

static float torch_exp_f32(const struct scaling_state *state, int64_t numerator,
                           int64_t denominator)
{
    const double step = -big_to_double(state->log_theta) / (double)denominator;
    const float exponent = (float)numerator * (float)step;
    return big_to_float(big_exp(big_double((double)exponent)));
}

static float inv_freq_of_pair(const struct scaling_state *state, int64_t i)
{
    const struct posenc_freqs_spec *spec = state->spec;
    const struct scaling_family *family = scaling_find_family(spec);
    if (spec->values)
        return (float)spec->values[i];
    int64_t numerator, denominator;
    compute_exponent(spec, i, &numerator, &denominator);
    if (spec->numerics == POSENC_NUMERICS_TORCH_EXP_F32)
        return torch_exp_f32(state, numerator, denominator);
    if (family->is_unrotated && family->is_unrotated(spec, i))
        return 0.0f;
    const float exponent = (float)numerator / (float)denominator;
    const float power =
        big_to_float(big_exp(big_multiply(big_double((double)exponent), state->log_theta_f32)));
    return family->inv_freq ? family->inv_freq(state, i, power) : 1.0f / power;
}

/* ---- Numerics ggml_f32 ---- */

void exact_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml)
{
    const struct scaling_family *family = scaling_find_family(spec);
    const float base = theta_f32(spec), exponent = -2.0f / (float)spec->dim;
    ggml->theta_scale = big_to_float(compute_power((double)base, (double)exponent));
    ggml->freq_scale = 1.0f;
    for (int64_t i = 0; i < ggml->n; i++) {
        ggml->divisor[i] = 1.0f;
        ggml->ramp_mix[i] = 0.0f;
    }
    if (family->ggml)
        family->ggml(spec, ggml);
}

static double attention_factor_of(const struct posenc_freqs_spec *spec)
{
    const struct scaling_family *family = scaling_find_family(spec);
    if (spec->attention_factor != 0)
        return spec->attention_factor;
    return family->attention && !spec->values ? family->attention(spec) : 1.0;
}

void exact_turns(const struct posenc_freqs_spec *spec, int64_t n, struct big *turns)
{
    const struct scaling_state state = scaling_state_create(spec);
    for (int64_t i = 0; i < n; i++)
        turns[i] = big_divide(omega_exact(&state, i), big_two_pi);
}

int64_t exact_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                    float *inv_freq_f32, double *attention_factor)
{
    struct scaling_state state = scaling_state_create(spec);
    const int64_t pairs = (spec->dim + 1) / 2;
    if (inv_freq_f32 && !spec->values)
        state.log_theta_f32 = big_log(big_double((double)theta_f32(spec)));
    for (int64_t i = 0; i < pairs && i < n; i++) {
        if (turn)
            big_fraction(big_divide(omega_exact(&state, i), big_two_pi), turn[i]);
        if (inv_freq_f32)
            inv_freq_f32[i] = inv_freq_of_pair(&state, i);
    }
    if (attention_factor)
        *attention_factor = attention_factor_of(spec);
    return pairs < n ? pairs : n;
}
