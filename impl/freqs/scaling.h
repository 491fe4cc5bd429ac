/*
 * Scaling families (context extension), such as yarn: scalings.c has a row of functions for each. No other file asks
 * which family a spec has. A spec has been validated (freqs.c) before it reaches any function but `check`.
 */
#ifndef POSENC_SCALING_H
#define POSENC_SCALING_H

#include "freqs.h"

/* Parts of the frequencies of numerics mode hf_f32 that do not depend on the pair. */
struct f32_rule {
    const struct posenc_freqs_spec *spec;
    double ramp_low, ramp_high; /* yarn: in pairs */
};

/* The functions of a family. One that is NULL changes nothing; a family with parameters besides `factor` must have
 * `check`. */
struct scaling {
    /* The f32 numerics modes that have this family, as bits: 1u << POSENC_NUMERICS_HF_F32. */
    unsigned modes;
    /* Rejects parameters that are out of range, except for `factor`, which freqs.c checks. */
    enum posenc_status (*check)(const struct posenc_freqs_spec *spec,
                                struct posenc_error *error);
    /* Return the number whose power dim/(dim-2) multiplies theta: exact, as a Python float, and as a tensor of f32. The
     * last returns 0 if Hugging Face computes a Python float. */
    struct dd (*theta_factor)(const struct posenc_freqs_spec *spec);
    double (*theta_factor_f64)(const struct posenc_freqs_spec *spec);
    float (*theta_factor_f32)(const struct posenc_freqs_spec *spec);
    /* The wavelength 2 pi / omega of each pair is rounded to a whole number at the end. */
    bool whole_wavelengths;
    /* Returns the number of pairs that rotate. The others have frequency 0. */
    int64_t (*rotated_pairs)(const struct posenc_freqs_spec *spec);
    /* Numerics mode exact: `prepare` sets the members of the rule that the family uses, and `omega` returns the scaled
     * frequency of a pair. */
    void (*prepare)(struct exact_rule *rule);
    struct dd (*omega)(const struct exact_rule *rule, int64_t i, struct dd omega);
    /* Numerics mode hf_f32: the same; pos_freq is theta^exponent, the inverse of the frequency. */
    void (*prepare_f32)(struct f32_rule *rule);
    float (*inv_freq)(const struct f32_rule *rule, int64_t i, float pos_freq);
    /* Numerics mode ggml_f32: changes freqs->ggml, and freqs->view.attention_factor. */
    void (*ggml)(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);
    /* Returns the derived attention factor, correctly rounded. */
    double (*attention)(const struct posenc_freqs_spec *spec);
};

/* Returns the family of a spec, whose id must be valid. */
const struct scaling *posenc_scaling_of(const struct posenc_freqs_spec *spec);

/* Returns the number of families. */
int posenc_scaling_count(void);

/* Returns the number of families, counted from id 0 up to the first one that the mode lacks. */
int posenc_scaling_count_of(enum posenc_numerics mode);

/* ---- yarn.c ---- */

enum posenc_status posenc_yarn_check(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error);
void posenc_yarn_prepare(struct exact_rule *rule);
struct dd posenc_yarn_omega(const struct exact_rule *rule, int64_t i, struct dd omega);
void posenc_yarn_prepare_f32(struct f32_rule *rule);
float posenc_yarn_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq);
void posenc_yarn_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);
double posenc_yarn_attention(const struct posenc_freqs_spec *spec);

#endif
