/*
 * Profile ggml_f32 as the oracle sees it: ggml_rope_ext on a CPU in f32, in the order of its
 * source (ggml.c and ops.cpp: ggml_rope_cache_init), each operation rounded once and powers correctly
 * rounded.  What scaling families make of it: scalings.c.  Frequency factors are those of
 * llama.cpp's converter: the ratio of the plain to the scaled frequency, or longrope's own.
 */
#include "scalings.h"

struct oracle_ggml oracle_ggml(const struct posenc_freqs_spec *spec, int64_t n, float *divisor,
                               float *kept)
{
    const struct scaling_rule *rule = scaling_rule(spec);
    const float base = (float)oracle_python_theta(spec);
    const float exponent = -2.0f / (float)spec->dim;
    const struct big power =
        big_multiply(big_double((double)exponent), big_log(big_double((double)base)));
    struct oracle_ggml ggml = { big_to_float(big_exp(power)), 1.0f };
    for (int64_t i = 0; i < n; i++) {
        divisor[i] = 1.0f;
        kept[i] = 0.0f;
    }
    if (rule->ggml)
        rule->ggml(spec, n, &ggml, divisor, kept);
    return ggml;
}
