/*
 * Scaling families: scalings.c has a row of functions for each, and nothing else in the library
 * asks which family a spec has. Every function but `check` gets a spec that has been validated
 * (freqs.c).
 */
#ifndef POSENC_SCALING_H
#define POSENC_SCALING_H

#include "plan.h"

/* Profile hf_f32: what does not depend on the pair. */
struct f32_rule {
    const struct posenc_freqs_spec *spec;
    double ramp_low, ramp_high; /* yarn: in pairs */
};

/* A function that is NULL: the family leaves alone what it would change. Only a family with
 * parameters besides `factor` must have one, `check`. */
struct scaling {
    unsigned profiles; /* besides exact, as bits: 1u << POSENC_HF_F32 */
    /* Refuses parameters that are out of range, but for `factor`, which freqs.c checks. */
    enum posenc_status (*check)(const struct posenc_freqs_spec *spec,
                                struct posenc_error *error);
    /* theta is multiplied by this to the power of dim/(dim-2): in real mathematics; in Python's
     * floats as the f32 profiles take it; and in f32 where Hugging Face has it in a tensor, which
     * makes a tensor of theta, too (0: it is a Python float). */
    struct dd (*stretch)(const struct posenc_freqs_spec *spec);
    double (*stretch_f64)(const struct posenc_freqs_spec *spec);
    float (*stretch_f32)(const struct posenc_freqs_spec *spec);
    /* Wavelengths 2 pi / omega, after all else, are rounded to whole positions (from theta >= 1 on). */
    bool whole;
    /* Pairs that turn; the others have frequency 0. */
    int64_t (*turning)(const struct posenc_freqs_spec *spec);
    /* Profile exact: fills what of the rule does not depend on the pair; what becomes of omega. */
    void (*prepare)(struct exact_rule *rule);
    struct dd (*omega)(const struct exact_rule *rule, int64_t i, struct dd omega);
    /* Profile hf_f32: the same; the inverse frequency from theta^exponent. */
    void (*prepare_f32)(struct f32_rule *rule);
    float (*inv_freq)(const struct f32_rule *rule, int64_t i, float pos_freq);
    /* Profile ggml_f32: changes plan->ggml, and plan->view.attention_factor. */
    void (*ggml)(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan);
    /* The attention factor where none is given, correctly rounded. */
    double (*attention)(const struct posenc_freqs_spec *spec);
};

/* The row of a spec, whose id must be one of the list. */
const struct scaling *posenc_scaling_of(const struct posenc_freqs_spec *spec);

/* Return the number of ids, from 0 on, and the number of them, from 0 on, that a numerics mode has before
 * the first that it lacks. */
int posenc_scalings(void);
int posenc_scalings_of(enum posenc_profile profile);

/* ---- freqs.c: refusals ---- */

enum posenc_status posenc_plan_refuse(struct posenc_error *error, enum posenc_status status,
                                      const char *what, double value, double least,
                                      double most);
/* NaN is out of every range. */
enum posenc_status posenc_plan_range(struct posenc_error *error, const char *what, double value,
                                     double least, double most);

/* ---- yarn.c ---- */

enum posenc_status posenc_yarn_check(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error);
void posenc_yarn_prepare(struct exact_rule *rule);
struct dd posenc_yarn_omega(const struct exact_rule *rule, int64_t i, struct dd omega);
void posenc_yarn_prepare_f32(struct f32_rule *rule);
float posenc_yarn_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq);
void posenc_yarn_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan);
double posenc_yarn_attention(const struct posenc_freqs_spec *spec);

#endif
