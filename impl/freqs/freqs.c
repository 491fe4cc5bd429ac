/*
 * Plans: what is accepted as a spec, and the making of the arrays that kernels read.
 * The mathematics is in exact.c (frequencies), hf_f32.c and ggml_f32.c (their f32 profiles),
 * scalings.c and yarn.c (the scaling families),
 * steps.c (rotation tables), xpos.c (what xPos multiplies by) and dd.c (the arithmetic).
 */
#include <float.h>
#include <stdlib.h>

#include "impl/grow.h"
#include "scaling.h"

enum { ALIGNMENT = 64 };

/* Frequencies outside would leave too few bits of a 128-bit turn, or more than a 2^53rd of one
 * per unit of an f64 angle. */
static const double least_omega = 0x1p-80, most_omega = 0x1p16;
/* With whole wavelengths, which are then whole numbers of an f64. */
static const double least_whole = 0x1p-50;

__extension__ typedef unsigned __int128 u128;

enum posenc_status posenc_plan_refuse(struct posenc_error *error, enum posenc_status status,
                                      const char *what, double value, double least, double most)
{
    if (error)
        *error = (struct posenc_error){ status, what, value, least, most };
    return status;
}

enum posenc_status posenc_plan_range(struct posenc_error *error, const char *what, double value,
                                     double least, double most)
{
    if (value >= least && value <= most)
        return POSENC_OK;
    return posenc_plan_refuse(error, POSENC_ERR_PARAMETER, what, value, least, most);
}

static enum posenc_status check_scaling(const struct posenc_freqs_spec *spec,
                                        struct posenc_error *error)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (spec->scaling == POSENC_SCALING_NONE)
        return POSENC_OK;
    enum posenc_status status =
        posenc_plan_range(error, "factor of the scaling", spec->factor, 1.0, 1e6);
    return status || !scaling->check ? status : scaling->check(spec, error);
}

/* Sections: none after an empty one, together all pairs. */
static enum posenc_status check_sections(const struct posenc_freqs_spec *spec,
                                         struct posenc_error *error)
{
    const enum posenc_status bad = POSENC_ERR_ARGUMENT;
    int64_t sum = 0, pairs = spec->dim / 2;
    bool ended = false;

    for (int axis = 0; axis < 3; axis++) {
        int64_t section = spec->mrope_section[axis];
        if (section < 0 || section > pairs || (ended && section != 0))
            return posenc_plan_refuse(error, POSENC_ERR_PARAMETER,
                                      "mrope_section of an axis (0: no more)", (double)section,
                                      0.0, ended ? 0.0 : (double)pairs);
        ended = section == 0;
        sum += section;
    }
    if (sum == 0)
        return POSENC_OK;
    if (spec->dim % 2 != 0)
        return posenc_plan_refuse(error, POSENC_ERR_PARAMETER, "dim (even with mrope_section)",
                                  (double)spec->dim, 1.0, 0.0);
    if (sum != pairs)
        return posenc_plan_refuse(error, POSENC_ERR_PARAMETER, "sum of mrope_section (dim/2)",
                                  (double)sum, (double)pairs, (double)pairs);
    if ((unsigned)spec->mrope_layout > POSENC_MROPE_ALTERNATING)
        return posenc_plan_refuse(error, bad, "mrope_layout", (double)spec->mrope_layout, 0.0,
                                  POSENC_MROPE_ALTERNATING);
    if (spec->mrope_layout < POSENC_MROPE_RESTARTED)
        return POSENC_OK;
    if (spec->scaling != POSENC_SCALING_NONE)
        return posenc_plan_refuse(error, bad,
                                  "scaling (sections that restart or are dealt have none)",
                                  (double)spec->scaling, 0.0, 0.0);
    if (spec->convention != POSENC_EXPONENT)
        return posenc_plan_refuse(
            error, bad,
            "convention (sections that restart or are dealt have only the exponent)",
            (double)spec->convention, 0.0, 0.0);
    if (spec->values)
        return posenc_plan_refuse(error, bad,
                                  "values (sections that restart or are dealt make their own)",
                                  1.0, 0.0, 0.0);
    if (spec->profile == POSENC_GGML_F32)
        return posenc_plan_refuse(error, bad,
                                  "profile (ggml_f32 restarts and deals no sections)",
                                  (double)spec->profile, 0.0, POSENC_HF_F32);
    return POSENC_OK;
}

/* Rejects members that an f32 numerics mode does not support. */
static enum posenc_status check_profile(const struct posenc_freqs_spec *spec,
                                        struct posenc_error *error)
{
    static const char *const foreign[] = {
        [POSENC_HF_F32] = "scaling (not one that profile hf_f32 has)",
        [POSENC_GGML_F32] = "scaling (not one that profile ggml_f32 has)",
        [POSENC_TORCH_EXP_F32] = "scaling (profile torch_exp_f32 knows none)",
    };
    if (spec->profile == POSENC_EXACT)
        return POSENC_OK;
    if (!(spec->rope_theta >= (double)FLT_MIN && spec->rope_theta <= (double)FLT_MAX))
        return posenc_plan_refuse(error, POSENC_ERR_THETA,
                                  "rope_theta (an f32 in this profile)", spec->rope_theta,
                                  (double)FLT_MIN, (double)FLT_MAX);
    if (!(posenc_scaling_of(spec)->profiles >> spec->profile & 1u))
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT, foreign[spec->profile],
                                  (double)spec->scaling, 0.0,
                                  posenc_scalings_of(spec->profile) - 1);
    if (spec->profile != POSENC_GGML_F32)
        return POSENC_OK;
    if (spec->convention != POSENC_EXPONENT)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "convention (profile ggml_f32 has only the exponent 2i/dim)",
                                  (double)spec->convention, 0.0, 0.0);
    return POSENC_OK;
}

/* Checks the base, which is an f32 in those modes. */
static enum posenc_status check_base(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    float theta = spec->profile == POSENC_EXACT ? 1.0f : posenc_f32_theta(spec);
    if (theta <= FLT_MAX)
        return POSENC_OK;
    return posenc_plan_refuse(error, POSENC_ERR_THETA,
                              "rope_theta after scaling (an f32 in this profile)",
                              (double)theta, (double)FLT_MIN, (double)FLT_MAX);
}

/* Checks the requirements of xPos on a checked spec. A scale base below 1 would
 * take 64 positions out of f64's range. */
static enum posenc_status check_xpos(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    if (spec->xpos_scale_base == 0.0)
        return POSENC_OK;
    enum posenc_status status = posenc_plan_range(error, "xpos_scale_base (0: no xPos)",
                                                  spec->xpos_scale_base, 1.0, 0x1p40);
    if (!status)
        status = posenc_plan_range(error, "xpos_centre", spec->xpos_centre, -0x1p40, 0x1p40);
    if (status)
        return status;
    if (spec->profile != POSENC_EXACT)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT, "profile (xPos is exact)",
                                  (double)spec->profile, POSENC_EXACT, POSENC_EXACT);
    if (spec->mrope_section[1] != 0)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "mrope_section of a second axis (xPos has one)",
                                  (double)spec->mrope_section[1], 0.0, 0.0);
    if (spec->dim % 2 != 0)
        return posenc_plan_refuse(error, POSENC_ERR_SHAPE, "dim (even with xPos)",
                                  (double)spec->dim, 1.0, 0.0);
    return POSENC_OK;
}

static enum posenc_status check_values(const struct posenc_freqs_spec *spec,
                                       struct posenc_error *error)
{
    if (spec->scaling != POSENC_SCALING_NONE)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "scaling (the caller's own frequencies take none)",
                                  (double)spec->scaling, 0.0, 0.0);
    if (spec->profile == POSENC_GGML_F32)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "profile (ggml_f32 makes frequencies from rope_theta alone)",
                                  (double)spec->profile, 0.0, POSENC_HF_F32);
    for (int64_t i = 0; i < (spec->dim + 1) / 2; i++)
        if (!(spec->values[i] >= 0.0 && spec->values[i] <= most_omega))
            return posenc_plan_refuse(error, POSENC_ERR_PARAMETER,
                                      "frequency of a pair, as given", spec->values[i], 0.0,
                                      most_omega);
    return POSENC_OK;
}

static enum posenc_status check_spec(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    const enum posenc_status bad = POSENC_ERR_ARGUMENT;
    if ((unsigned)spec->profile > POSENC_TORCH_EXP_F32)
        return posenc_plan_refuse(error, bad, "profile", (double)spec->profile, 0.0,
                                  POSENC_TORCH_EXP_F32);
    if ((unsigned)spec->convention > POSENC_ENDPOINT)
        return posenc_plan_refuse(error, bad, "convention", (double)spec->convention, 0.0,
                                  POSENC_ENDPOINT);
    if ((unsigned)spec->scaling >= (unsigned)posenc_scalings())
        return posenc_plan_refuse(error, bad, "scaling", (double)spec->scaling, 0.0,
                                  posenc_scalings() - 1);
    if (spec->dim < 1 || spec->dim > POSENC_MOST_DIM)
        return posenc_plan_refuse(error, POSENC_ERR_SHAPE, "dim", (double)spec->dim, 1.0,
                                  POSENC_MOST_DIM);
    enum posenc_status status = posenc_plan_range(error, "attention_factor (0: derived)",
                                                  spec->attention_factor, 0.0, (double)FLT_MAX);
    if (!status)
        status = check_sections(spec, error);
    if (!status)
        status = check_xpos(spec, error);
    if (status)
        return status;
    if (spec->values)
        return check_values(spec, error);
    if (!(spec->rope_theta > 0.0 && spec->rope_theta <= DBL_MAX))
        return posenc_plan_refuse(error, POSENC_ERR_THETA, "rope_theta", spec->rope_theta,
                                  DBL_MIN, DBL_MAX);
    status = check_profile(spec, error);
    if (!status)
        status = check_scaling(spec, error);
    return status ? status : check_base(spec, error);
}

/* The first of `n` elements of `size` bytes at *bytes, which moves past them and what may be
 * read beyond. */
static void *carve(unsigned char *memory, size_t *bytes, int64_t n, size_t size)
{
    void *start = memory ? memory + *bytes : NULL;
    *bytes += (size_t)(n + POSENC_PLAN_PAD) * size; /* a multiple of 64: alignment is kept */
    return start;
}

/* Places the arrays of a plan in `memory` (NULL: only counts) and returns the bytes needed. */
static size_t lay_out(struct posenc_freqs *freqs, bool xpos, unsigned char *memory)
{
    int64_t n = freqs->stride;
    size_t bytes = (sizeof *freqs + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    freqs->view.omega = carve(memory, &bytes, n, sizeof(double));
    freqs->view.turn_hi = carve(memory, &bytes, n, sizeof(uint64_t));
    freqs->view.turn_lo = carve(memory, &bytes, n, sizeof(uint64_t));
    freqs->view.omega_f32 = carve(memory, &bytes, n, sizeof(float));
    freqs->turn_whole = carve(memory, &bytes, n, sizeof(uint32_t));
    if (freqs->view.n_axes > 1)
        freqs->view.axis = carve(memory, &bytes, n, sizeof(uint8_t));
    if (freqs->view.profile == POSENC_EXACT) {
        freqs->middle = carve(memory, &bytes, POSENC_GROUPS * (4 * n), sizeof(double));
        freqs->twice_cos = carve(memory, &bytes, n, sizeof(double));
    }
    if (freqs->view.profile == POSENC_GGML_F32) {
        freqs->ggml.divisor = carve(memory, &bytes, n, sizeof(float));
        freqs->ggml.kept = carve(memory, &bytes, n, sizeof(float));
    }
    if (xpos) {
        freqs->xpos_step = carve(memory, &bytes, POSENC_BLOCK * n, sizeof(double));
        freqs->xpos_rate_hi = carve(memory, &bytes, n, sizeof(double));
        freqs->xpos_rate_lo = carve(memory, &bytes, n, sizeof(double));
    }
    return bytes;
}

static struct posenc_freqs *allocate(const struct posenc_freqs_spec *spec)
{
    struct posenc_freqs plan = { 0 };
    plan.view.profile = spec->profile;
    plan.view.dim = spec->dim;
    plan.view.n_pairs = (spec->dim + 1) / 2;
    plan.view.n_axes = 1;
    while (plan.view.n_axes < 3 && spec->mrope_section[plan.view.n_axes] != 0)
        plan.view.n_axes++;
    plan.stride = (plan.view.n_pairs + POSENC_PLAN_PAD - 1) / POSENC_PLAN_PAD * POSENC_PLAN_PAD;
    if (plan.view.n_axes > 1 && spec->mrope_layout == POSENC_MROPE_RESTARTED)
        memcpy(plan.section, spec->mrope_section, sizeof plan.section);
    bool xpos = spec->xpos_scale_base != 0.0;
    size_t bytes = lay_out(&plan, xpos, NULL);
    plan.memory = aligned_alloc(ALIGNMENT, bytes);
    if (!plan.memory)
        return NULL;
    memset(plan.memory, 0, bytes); /* all bits zero is 0.0: the padding */
    lay_out(&plan, xpos, plan.memory);
    struct posenc_freqs *freqs = plan.memory;
    *freqs = plan;
    return freqs;
}

/* The nearest whole wavelength: below 2^53, as omega is at least 2^-50. Nothing is half way, 2 pi
 * over an algebraic number being irrational. */
static double nearest_wavelength(struct dd omega)
{
    struct dd wavelength = dd_div(dd_scale(posenc_dd_pi, 2.0), omega);
    double whole = rint(wavelength.hi);
    return whole + rint(dd_sub(wavelength, dd_from(whole)).hi);
}

/* 1 / wavelength of a turn, to the nearest 2^-128. */
static struct turn whole_turn(double wavelength)
{
    const u128 divisor = (u128)wavelength, most = ~(u128)0;
    u128 turn = most / divisor;
    turn += 2 * (most - turn * divisor + 1) >= divisor;
    return (struct turn){ (uint64_t)(turn >> 64), (uint64_t)turn };
}

/* Frequencies and turns. The view is const for readers; the plan is still ours. */
static enum posenc_status fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs,
                               struct posenc_error *error)
{
    double *omega = (double *)freqs->view.omega;
    float *omega_f32 = (float *)freqs->view.omega_f32;
    uint64_t *turn_hi = (uint64_t *)freqs->view.turn_hi,
             *turn_lo = (uint64_t *)freqs->view.turn_lo;
    struct exact_rule rule = { 0 };
    if (!spec->values)
        rule = posenc_exact_rule(spec);
    freqs->whole = posenc_scaling_of(spec)->whole;
    const double least = freqs->whole ? least_whole : least_omega;
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct dd w = spec->values ? dd_from(spec->values[i]) : posenc_exact_omega(&rule, i);
        bool still = !spec->values && i >= rule.turning;
        if (!spec->values && !still && !(w.hi >= least && w.hi <= most_omega))
            return posenc_plan_refuse(error, POSENC_ERR_THETA,
                                      "frequency of a pair, from rope_theta and its scaling",
                                      w.hi, least, most_omega);
        struct turn turn = posenc_turn(w);
        if (freqs->whole) {
            double wavelength = nearest_wavelength(w);
            w = dd_div(dd_scale(posenc_dd_pi, 2.0), dd_from(wavelength));
            turn = whole_turn(wavelength);
        }
        omega[i] = w.hi;
        omega_f32[i] = dd_to_float(w);
        turn_hi[i] = turn.hi;
        turn_lo[i] = turn.lo;
        freqs->turn_whole[i] = posenc_whole_turns(w, turn);
    }
    for (int64_t i = 0; freqs->view.axis && i < freqs->view.n_pairs; i++)
        ((uint8_t *)freqs->view.axis)[i] = (uint8_t)posenc_axis_of(spec, i);
    freqs->view.attention_factor = posenc_attention_factor(spec);
    if (spec->profile == POSENC_EXACT)
        posenc_fill_steps(freqs);
    else if (spec->profile == POSENC_GGML_F32)
        posenc_ggml_f32_fill(spec, freqs);
    else if (!spec->values)
        posenc_f32_omega(spec, freqs->view.n_pairs, omega_f32);
    if (freqs->xpos_step)
        posenc_xpos_fill(spec, freqs);
    return POSENC_OK;
}

enum posenc_status posenc_freqs_create(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error)
{
    if (!spec || !freqs)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  spec ? "freqs (NULL)" : "spec (NULL)", 0.0, 1.0, 0.0);
    struct posenc_freqs_spec own;
    const struct grown *grown = &posenc_grown_freqs_spec;
    if (posenc_grow(grown, &own, spec) && spec->size % grown->align != 0)
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "size of the spec (no whole words)", (double)spec->size, 1.0,
                                  0.0);
    if (posenc_grow(grown, &own, spec))
        return posenc_plan_refuse(error, POSENC_ERR_ARGUMENT,
                                  "size of the spec (or newer members not 0)",
                                  (double)spec->size, (double)grown->first, (double)sizeof own);
    spec = &own;
    enum posenc_status status = check_spec(spec, error);
    if (status)
        return status;
    struct posenc_freqs *plan = allocate(spec);
    if (!plan)
        return posenc_plan_refuse(error, POSENC_ERR_MEMORY, "memory for a plan", 0.0, 1.0, 0.0);
    status = fill(spec, plan, error);
    if (status) {
        posenc_freqs_destroy(plan);
        return status;
    }
    *freqs = plan;
    return POSENC_OK;
}

void posenc_freqs_destroy(struct posenc_freqs *freqs)
{
    if (freqs)
        free(freqs->memory);
}

struct posenc_freqs_view posenc_freqs_view(const struct posenc_freqs *freqs)
{
    return freqs->view;
}

/* `array` from element n on; NULL stays NULL. */
#define FROM(array, n) ((array) ? (array) + (n) : NULL)

struct posenc_freqs posenc_freqs_section(const struct posenc_freqs *freqs, int axis)
{
    struct posenc_freqs part = *freqs;
    int64_t from = 0;
    for (int before = 0; before < axis; before++)
        from += freqs->section[before];
    part.view.n_pairs = freqs->section[axis];
    part.view.dim = 2 * part.view.n_pairs;
    part.view.n_axes = 1;
    part.view.axis = NULL;
    part.view.omega = FROM(part.view.omega, from);
    part.view.omega_f32 = FROM(part.view.omega_f32, from);
    part.view.turn_hi = FROM(part.view.turn_hi, from);
    part.view.turn_lo = FROM(part.view.turn_lo, from);
    part.turn_whole = FROM(part.turn_whole, from);
    part.middle = FROM(part.middle, from);
    part.twice_cos = FROM(part.twice_cos, from);
    memset(part.section, 0, sizeof part.section);
    part.memory = NULL;
    return part;
}
#undef FROM
