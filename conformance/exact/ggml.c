/*
 * Profile ggml_f32 as the oracle sees it: ggml_rope_ext on a CPU in f32, in the order of its
 * source (ggml.c and ops.cpp: ggml_rope_cache_init), each operation rounded once and powers correctly
 * rounded.  What scaling families make of it: scalings.c.  Frequency factors are those of
 * llama.cpp's converter: the ratio of the plain to the scaled frequency, or longrope's own.
 */
#include "scalings.h"

void oracle_ggml(const struct posenc_freqs_spec *spec, struct oracle_ggml *ggml)
{
    const struct scaling_rule *rule = scaling_rule(spec);
    const float base = (float)oracle_python_theta(spec);
    const float exponent = -2.0f / (float)spec->dim;
    const struct big power =
        big_multiply(big_double((double)exponent), big_log(big_double((double)base)));
    ggml->theta_scale = big_to_float(big_exp(power));
    ggml->freq_scale = 1.0f;
    for (int64_t i = 0; i < ggml->n; i++) {
        ggml->divisor[i] = 1.0f;
        ggml->kept[i] = 0.0f;
    }
    if (rule->ggml)
        rule->ggml(spec, ggml);
}
