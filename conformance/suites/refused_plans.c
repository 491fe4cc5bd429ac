/*
 * Plans that must be refused, each for one bad member of an otherwise valid spec, with the
 * status posenc.h promises and a reason; no plan comes with it.
 */
#include "memory.h"

#include <math.h>

struct plan_mistake {
    const char *name;
    enum posenc_scaling scaling; /* of the valid spec */
    enum posenc_status want;
    void (*make)(struct posenc_freqs_spec *spec);
};

enum { PLAN_PAIRS = 32 };
static const double with_zero[PLAN_PAIRS] = { 1.0 };
static const double nan_first[PLAN_PAIRS] = { (double)NAN };

#define SET(name, expression)                                                                  \
    static void name(struct posenc_freqs_spec *s) { expression; }
SET(plan_size, s->size--)
SET(plan_profile, s->profile = (enum posenc_profile)77)
SET(plan_convention, s->convention = (enum posenc_convention)77)
SET(plan_scaling, s->scaling = (enum posenc_scaling)77)
SET(plan_empty, s->dim = 0)
SET(plan_two, s->dim = 2)
SET(plan_theta_zero, s->rope_theta = 0.0)
SET(plan_theta_one, s->rope_theta = 1.0)
SET(plan_theta_half, s->rope_theta = 0.5)
SET(plan_theta_nan, s->rope_theta = (double)NAN)
SET(plan_theta_wide, (s->rope_theta = 1e39, s->profile = POSENC_HF_F32))
SET(plan_attention, s->attention_factor = -1.0)
SET(plan_factor_half, s->factor = 0.5)
SET(plan_factor_nan, s->factor = (double)NAN)
SET(plan_no_context, s->original_max_position_embeddings = 0.0)
SET(plan_no_most, s->max_position_embeddings = 0.0)
SET(plan_seq_len, s->seq_len = -1)
SET(plan_high_low, s->high_freq_factor = 0.5)
SET(plan_fast_slow, s->beta_fast = 0.5)
SET(plan_no_short, s->short_factor = NULL)
SET(plan_no_long, s->long_factor = NULL)
SET(plan_long_zero, s->long_factor = with_zero)
SET(plan_short_nan, s->short_factor = nan_first)
SET(plan_no_share, s->partial_rotary_factor = 0.0)
SET(plan_share_wide, s->partial_rotary_factor = 1.01)
SET(plan_share_small, s->partial_rotary_factor = 0.03)
SET(plan_torch, s->profile = POSENC_TORCH_EXP_F32)
SET(plan_hf, s->profile = POSENC_HF_F32)
SET(plan_ggml, s->profile = POSENC_GGML_F32)
SET(plan_ggml_endpoint, (s->profile = POSENC_GGML_F32, s->convention = POSENC_ENDPOINT))
SET(plan_ggml_values, (s->profile = POSENC_GGML_F32, s->values = with_zero))
SET(plan_values, s->values = with_zero)
SET(plan_sections_short, s->mrope_section[0]--)
SET(plan_sections_long, s->mrope_section[2]++)
SET(plan_sections_after_none,
    (s->mrope_section[2] += s->mrope_section[1], s->mrope_section[1] = 0))
SET(plan_sections_later, (s->mrope_section[1] += s->mrope_section[0], s->mrope_section[0] = 0))
SET(plan_section_negative, (s->mrope_section[0] += 9, s->mrope_section[2] = -1))
SET(plan_sections_wrap, (s->mrope_section[0] = s->mrope_section[1] = INT64_MAX))
SET(plan_sections_odd, s->dim++)
SET(plan_sections_layout, s->mrope_layout = (enum posenc_mrope_layout)77)
SET(plan_restarted_scaled, (s->mrope_layout = POSENC_MROPE_RESTARTED, s->factor = 2.0,
                            s->scaling = POSENC_SCALING_LINEAR))
SET(plan_restarted_endpoint,
    (s->mrope_layout = POSENC_MROPE_RESTARTED, s->convention = POSENC_ENDPOINT))
SET(plan_restarted_ggml,
    (s->mrope_layout = POSENC_MROPE_RESTARTED, s->profile = POSENC_GGML_F32))
SET(plan_restarted_values, (s->mrope_layout = POSENC_MROPE_RESTARTED, s->values = with_zero))
SET(plan_values_nan, s->values = nan_first)
SET(plan_xpos_negative, s->xpos_scale_base = -512.0)
SET(plan_xpos_nan, s->xpos_scale_base = (double)NAN)
SET(plan_xpos_centre, (s->xpos_scale_base = 512.0, s->xpos_centre = (double)INFINITY))
SET(plan_xpos_profile, (s->xpos_scale_base = 512.0, s->profile = POSENC_HF_F32))
SET(plan_xpos_odd, (s->xpos_scale_base = 512.0, s->dim++))
SET(plan_xpos_axes, s->xpos_scale_base = 512.0)
#undef SET

#define NONE     POSENC_SCALING_NONE
#define OF(name) POSENC_SCALING_##name
static const struct plan_mistake of_plans[] = {
    { "unknown size", NONE, POSENC_ERR_ARGUMENT, plan_size },
    { "unknown profile", NONE, POSENC_ERR_ARGUMENT, plan_profile },
    { "unknown convention", NONE, POSENC_ERR_ARGUMENT, plan_convention },
    { "unknown scaling", NONE, POSENC_ERR_ARGUMENT, plan_scaling },
    { "dim 0", NONE, POSENC_ERR_SHAPE, plan_empty },
    { "rope_theta 0", NONE, POSENC_ERR_THETA, plan_theta_zero },
    { "rope_theta NaN", NONE, POSENC_ERR_THETA, plan_theta_nan },
    { "rope_theta that is no f32", NONE, POSENC_ERR_THETA, plan_theta_wide },
    { "attention_factor -1", NONE, POSENC_ERR_PARAMETER, plan_attention },
    { "a frequency NaN", NONE, POSENC_ERR_PARAMETER, plan_values_nan },
    { "own frequencies in ggml_f32", NONE, POSENC_ERR_ARGUMENT, plan_ggml_values },
    { "the endpoint in ggml_f32", NONE, POSENC_ERR_ARGUMENT, plan_ggml_endpoint },
    { "own frequencies, scaled", OF(LINEAR), POSENC_ERR_ARGUMENT, plan_values },
    { "factor 1/2", OF(LINEAR), POSENC_ERR_PARAMETER, plan_factor_half },
    { "factor NaN", OF(LINEAR), POSENC_ERR_PARAMETER, plan_factor_nan },
    { "torch_exp_f32, scaled", OF(LINEAR), POSENC_ERR_ARGUMENT, plan_torch },
    { "llama3 without its context", OF(LLAMA3), POSENC_ERR_PARAMETER, plan_no_context },
    { "llama3, high below low", OF(LLAMA3), POSENC_ERR_PARAMETER, plan_high_low },
    { "yarn of theta 1", OF(YARN), POSENC_ERR_THETA, plan_theta_one },
    { "yarn, fast below slow", OF(YARN), POSENC_ERR_PARAMETER, plan_fast_slow },
    { "ntk of 2 channels", OF(NTK), POSENC_ERR_SHAPE, plan_two },
    { "dynamic of 2 channels", OF(DYNAMIC), POSENC_ERR_SHAPE, plan_two },
    { "dynamic without its length", OF(DYNAMIC), POSENC_ERR_PARAMETER, plan_no_most },
    { "dynamic of -1 tokens", OF(DYNAMIC), POSENC_ERR_PARAMETER, plan_seq_len },
    { "longrope without short factors", OF(LONGROPE), POSENC_ERR_ARGUMENT, plan_no_short },
    { "longrope without long factors", OF(LONGROPE), POSENC_ERR_ARGUMENT, plan_no_long },
    { "longrope, a factor 0", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_long_zero },
    { "longrope, a factor NaN", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_short_nan },
    { "longrope without its context", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_no_context },
    { "no share of pairs", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_no_share },
    { "more than all pairs", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_share_wide },
    { "less than a pair", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_share_small },
    { "ggml_f32, proportional", OF(PROPORTIONAL), POSENC_ERR_ARGUMENT, plan_ggml },
    { "resonance of theta 1/2", OF(RESONANCE), POSENC_ERR_THETA, plan_theta_half },
    { "resonance_yarn of theta 1", OF(RESONANCE_YARN), POSENC_ERR_THETA, plan_theta_one },
    { "resonance in hf_f32", OF(RESONANCE), POSENC_ERR_ARGUMENT, plan_hf },
    { "xPos of scale base -512", NONE, POSENC_ERR_PARAMETER, plan_xpos_negative },
    { "xPos of scale base NaN", NONE, POSENC_ERR_PARAMETER, plan_xpos_nan },
    { "xPos of an infinite centre", NONE, POSENC_ERR_PARAMETER, plan_xpos_centre },
    { "xPos in hf_f32", NONE, POSENC_ERR_ARGUMENT, plan_xpos_profile },
    { "xPos of an odd dim", NONE, POSENC_ERR_SHAPE, plan_xpos_odd },
};
/* Of a plan whose pairs are shared between three axes. */
static const struct plan_mistake of_sections[] = {
    { "a pair without an axis", NONE, POSENC_ERR_PARAMETER, plan_sections_short },
    { "more sections than pairs", NONE, POSENC_ERR_PARAMETER, plan_sections_long },
    { "a section after an empty one", NONE, POSENC_ERR_PARAMETER, plan_sections_after_none },
    { "sections after an empty first", NONE, POSENC_ERR_PARAMETER, plan_sections_later },
    { "a section of -1 pairs", NONE, POSENC_ERR_PARAMETER, plan_section_negative },
    { "sections that wrap", NONE, POSENC_ERR_PARAMETER, plan_sections_wrap },
    { "sections of an odd dim", NONE, POSENC_ERR_PARAMETER, plan_sections_odd },
    { "unknown layout of sections", NONE, POSENC_ERR_ARGUMENT, plan_sections_layout },
    { "restarted, scaled", NONE, POSENC_ERR_ARGUMENT, plan_restarted_scaled },
    { "restarted, at the endpoint", NONE, POSENC_ERR_ARGUMENT, plan_restarted_endpoint },
    { "restarted, in ggml_f32", NONE, POSENC_ERR_ARGUMENT, plan_restarted_ggml },
    { "restarted, own frequencies", NONE, POSENC_ERR_ARGUMENT, plan_restarted_values },
    { "xPos of three axes", NONE, POSENC_ERR_ARGUMENT, plan_xpos_axes },
};
#undef OF
#undef NONE

/* Valid in every scaling. */
static struct posenc_freqs_spec valid_spec(enum posenc_scaling scaling, const double *factors)
{
    struct posenc_freqs_spec s = posenc_freqs_spec_init();
    s.dim = 2 * PLAN_PAIRS;
    s.scaling = scaling;
    s.factor = 4.0;
    s.original_max_position_embeddings = s.max_position_embeddings = 4096.0;
    s.low_freq_factor = 1.0;
    s.high_freq_factor = 4.0;
    s.short_factor = s.long_factor = factors;
    return s;
}

/* Without the mistake the plan is made; with it, it is refused for a reason and none is given.
 */
static void check_plan(struct tally *t, const struct plan_mistake *m, bool sections)
{
    double factors[PLAN_PAIRS];
    for (int i = 0; i < PLAN_PAIRS; i++)
        factors[i] = 1.0;
    struct posenc_freqs_spec spec = valid_spec(m->scaling, factors);
    spec.mrope_section[0] = sections ? PLAN_PAIRS / 2 : 0;
    spec.mrope_section[1] = spec.mrope_section[2] = sections ? PLAN_PAIRS / 4 : 0;
    struct posenc_error error = { .what = NULL };
    struct posenc_freqs *freqs = NULL;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, NULL);
    require(t, status == POSENC_OK && freqs, "the plan was not made: %s",
            posenc_status_string(status));
    posenc_freqs_destroy(freqs);
    freqs = NULL;
    m->make(&spec);
    status = posenc_freqs_create(&spec, &freqs, &error);
    require(t, status == m->want, "%s: answered \"%s\"", m->name, posenc_status_string(status));
    require(t, status == error.status && error.what, "%s: no reason", m->name);
    require(t, !freqs, "%s: a plan all the same", m->name);
    posenc_freqs_destroy(freqs);
}

/* Each family is made in the profiles that the list says it has, and in no other. */
static void check_profiles(struct tally *t)
{
    double factors[PLAN_PAIRS];
    for (int i = 0; i < PLAN_PAIRS; i++)
        factors[i] = 1.0;
    for (int scaling = 0; scaling_names[scaling]; scaling++)
        for (int profile = 0; profile_names[profile]; profile++) {
            struct posenc_freqs_spec spec = valid_spec((enum posenc_scaling)scaling, factors);
            struct posenc_freqs *freqs = NULL;
            spec.profile = (enum posenc_profile)profile;
            const bool made = posenc_freqs_create(&spec, &freqs, NULL) == POSENC_OK;
            require(t, made == scaling_in_profile(spec.scaling, spec.profile), "%s in %s is %s",
                    scaling_names[scaling], profile_names[profile], made ? "made" : "refused");
            posenc_freqs_destroy(freqs);
        }
}

void check_plans(struct tally *t)
{
    check_profiles(t);
    for (size_t i = 0; i < sizeof of_plans / sizeof of_plans[0]; i++)
        check_plan(t, &of_plans[i], false);
    for (size_t i = 0; i < sizeof of_sections / sizeof of_sections[0]; i++)
        check_plan(t, &of_sections[i], true);
}
