/*
 * posenc_freqs_create(): checks a spec, allocates the arrays that kernels read, and fills them.
 *
 * The mathematics is in exact.c (exact frequencies), hf_f32.c and ggml_f32.c (f32 numerics modes), scalings.c and
 * yarn.c (scaling families), rotations.c (rotation tables), xpos.c (factors of xPos) and dd.c (double-double
 * arithmetic).
 */
#include <float.h>
#include <stdlib.h>

#include "impl/versioned.h"
#include "scaling.h"

enum { ALIGNMENT = 64 }; /* bytes of a cache line and of the widest vector */

/* Range of frequencies. Below it, a turn of 128 bits would have too few significant bits. Above it, angles in f64
 * would. */
static const double min_omega = 0x1p-80, max_omega = 0x1p16;
/* The minimum if wavelengths are rounded, so that f64 holds them as whole numbers. */
static const double min_omega_whole = 0x1p-50;

__extension__ typedef unsigned __int128 u128;

enum posenc_status posenc_check_range(struct posenc_error *error, const char *what,
                                      double value, double least, double most)
{
    if (value >= least && value <= most)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_PARAMETER, what, value, least, most);
}

static enum posenc_status check_scaling(const struct posenc_freqs_spec *spec,
                                        struct posenc_error *error)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (spec->scaling == POSENC_SCALING_NONE)
        return POSENC_OK;
    enum posenc_status status =
        posenc_check_range(error, "factor of the scaling", spec->factor, 1.0, 1e6);
    return status || !scaling->check ? status : scaling->check(spec, error);
}

/* Checks that no section follows an empty one, and that together they are all pairs. */
static enum posenc_status check_sections(const struct posenc_freqs_spec *spec,
                                         struct posenc_error *error)
{
    const enum posenc_status bad = POSENC_ERR_ARGUMENT;
    int64_t sum = 0, pairs = spec->dim / 2;
    bool ended = false;

    for (int axis = 0; axis < 4; axis++) {
        int64_t section = spec->mrope_section[axis];
        ended = ended || axis == 3;
        if (section < 0 || section > pairs || (ended && section != 0))
            return reject_range(error, POSENC_ERR_PARAMETER,
                                "mrope_section of an axis (0: no more)", (double)section, 0.0,
                                ended ? 0.0 : (double)pairs);
        ended = section == 0;
        sum += section;
    }
    if (sum == 0)
        return POSENC_OK;
    if (spec->dim % 2 != 0)
        return reject_value(error, POSENC_ERR_PARAMETER, "dim (even with mrope_section)",
                            (double)spec->dim);
    if (sum != pairs)
        return reject_range(error, POSENC_ERR_PARAMETER, "sum of mrope_section (dim/2)",
                            (double)sum, (double)pairs, (double)pairs);
    if ((unsigned)spec->mrope_layout > POSENC_MROPE_LAYOUT_KIMI)
        return reject_range(error, bad, "mrope_layout", (double)spec->mrope_layout, 0.0,
                            POSENC_MROPE_LAYOUT_KIMI);
    if (spec->mrope_layout < POSENC_MROPE_LAYOUT_QWEN2_VL_VISION)
        return POSENC_OK;
    if (spec->scaling != POSENC_SCALING_NONE)
        return reject_range(error, bad,
                            "scaling (sections that restart or are dealt have none)",
                            (double)spec->scaling, 0.0, 0.0);
    if (spec->spacing != POSENC_SPACING_EXPONENT)
        return reject_range(
            error, bad, "spacing (sections that restart or are dealt have only the exponent)",
            (double)spec->spacing, 0.0, 0.0);
    if (spec->values)
        return reject_range(error, bad,
                            "values (sections that restart or are dealt make their own)", 1.0,
                            0.0, 0.0);
    if (spec->numerics == POSENC_NUMERICS_GGML_F32)
        return reject_range(error, bad, "numerics (ggml_f32 restarts and deals no sections)",
                            (double)spec->numerics, 0.0, POSENC_NUMERICS_HF_F32);
    return POSENC_OK;
}

/* Rejects members that an f32 numerics mode does not support. */
static enum posenc_status check_mode(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    static const char *const unsupported[] = {
        [POSENC_NUMERICS_HF_F32] = "scaling (not one that numerics mode hf_f32 has)",
        [POSENC_NUMERICS_GGML_F32] = "scaling (not one that numerics mode ggml_f32 has)",
        [POSENC_NUMERICS_TORCH_EXP_F32] = "scaling (numerics mode torch_exp_f32 knows none)",
    };
    if (spec->numerics == POSENC_NUMERICS_EXACT)
        return POSENC_OK;
    if (!(spec->rope_theta >= (double)FLT_MIN && spec->rope_theta <= (double)FLT_MAX))
        return reject_range(error, POSENC_ERR_THETA,
                            "rope_theta (an f32 in this numerics mode)", spec->rope_theta,
                            (double)FLT_MIN, (double)FLT_MAX);
    if (!(posenc_scaling_of(spec)->modes >> spec->numerics & 1u))
        return reject_range(error, POSENC_ERR_ARGUMENT, unsupported[spec->numerics],
                            (double)spec->scaling, 0.0,
                            posenc_scaling_count_of(spec->numerics) - 1);
    if (spec->numerics != POSENC_NUMERICS_GGML_F32)
        return POSENC_OK;
    if (spec->spacing != POSENC_SPACING_EXPONENT)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "spacing (numerics mode ggml_f32 has only the exponent 2i/dim)",
                            (double)spec->spacing, 0.0, 0.0);
    return POSENC_OK;
}

/* Checks the base after its scaling, which is an f32 in these modes. */
static enum posenc_status check_base(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    float theta = spec->numerics == POSENC_NUMERICS_EXACT ? 1.0f : posenc_f32_theta(spec);
    if (theta <= FLT_MAX)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_THETA,
                        "rope_theta after scaling (an f32 in this numerics mode)",
                        (double)theta, (double)FLT_MIN, (double)FLT_MAX);
}

/* Checks the parameters of xPos. With a scale base below 1, the factors of a block of 64 positions would overflow
 * f64. */
static enum posenc_status check_xpos(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    if (spec->xpos_scale_base == 0.0)
        return POSENC_OK;
    enum posenc_status status = posenc_check_range(error, "xpos_scale_base (0: no xPos)",
                                                   spec->xpos_scale_base, 1.0, 0x1p40);
    if (!status)
        status = posenc_check_range(error, "xpos_centre", spec->xpos_centre, -0x1p40, 0x1p40);
    if (status)
        return status;
    if (spec->numerics != POSENC_NUMERICS_EXACT)
        return reject_range(error, POSENC_ERR_ARGUMENT, "numerics (xPos is exact)",
                            (double)spec->numerics, POSENC_NUMERICS_EXACT,
                            POSENC_NUMERICS_EXACT);
    if (spec->mrope_section[1] != 0)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "mrope_section of a second axis (xPos has one)",
                            (double)spec->mrope_section[1], 0.0, 0.0);
    if (spec->dim % 2 != 0)
        return reject_value(error, POSENC_ERR_SHAPE, "dim (even with xPos)", (double)spec->dim);
    return POSENC_OK;
}

static enum posenc_status check_values(const struct posenc_freqs_spec *spec,
                                       struct posenc_error *error)
{
    if (spec->scaling != POSENC_SCALING_NONE)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "scaling (the caller's own frequencies take none)",
                            (double)spec->scaling, 0.0, 0.0);
    if (spec->numerics == POSENC_NUMERICS_GGML_F32)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "numerics (ggml_f32 makes frequencies from rope_theta alone)",
                            (double)spec->numerics, 0.0, POSENC_NUMERICS_HF_F32);
    for (int64_t i = 0; i < (spec->dim + 1) / 2; i++)
        if (!(spec->values[i] >= 0.0 && spec->values[i] <= max_omega))
            return reject_range(error, POSENC_ERR_PARAMETER, "frequency of a pair, as given",
                                spec->values[i], 0.0, max_omega);
    return POSENC_OK;
}

static enum posenc_status check_spec(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    const enum posenc_status bad = POSENC_ERR_ARGUMENT;
    if ((unsigned)spec->numerics > POSENC_NUMERICS_TORCH_EXP_F32)
        return reject_range(error, bad, "numerics", (double)spec->numerics, 0.0,
                            POSENC_NUMERICS_TORCH_EXP_F32);
    if ((unsigned)spec->spacing > POSENC_SPACING_ENDPOINT)
        return reject_range(error, bad, "spacing", (double)spec->spacing, 0.0,
                            POSENC_SPACING_ENDPOINT);
    if ((unsigned)spec->scaling >= (unsigned)posenc_scaling_count())
        return reject_range(error, bad, "scaling", (double)spec->scaling, 0.0,
                            posenc_scaling_count() - 1);
    if (spec->dim < 1 || spec->dim > POSENC_MAX_DIM)
        return reject_range(error, POSENC_ERR_SHAPE, "dim", (double)spec->dim, 1.0,
                            POSENC_MAX_DIM);
    enum posenc_status status = posenc_check_range(
        error, "attention_factor (0: derived)", spec->attention_factor, 0.0, (double)FLT_MAX);
    if (!status)
        status = check_sections(spec, error);
    if (!status)
        status = check_xpos(spec, error);
    if (status)
        return status;
    if (spec->values)
        return check_values(spec, error);
    if (!(spec->rope_theta > 0.0 && spec->rope_theta <= DBL_MAX))
        return reject_range(error, POSENC_ERR_THETA, "rope_theta", spec->rope_theta, DBL_MIN,
                            DBL_MAX);
    status = check_mode(spec, error);
    if (!status)
        status = check_scaling(spec, error);
    return status ? status : check_base(spec, error);
}

/* Reserves n elements of `size` bytes, and the padding behind them, from *bytes on. Returns their address in `memory`,
 * or NULL if that is NULL. */
static void *reserve(unsigned char *memory, size_t *bytes, int64_t n, size_t size)
{
    void *start = memory ? memory + *bytes : NULL;
    *bytes += (size_t)(n + POSENC_FREQS_PAD) * size; /* a multiple of ALIGNMENT */
    return start;
}

/* Sets the arrays of `freqs` to their places in `memory`, and returns the bytes that all need. If `memory` is NULL it
 * only counts. */
static size_t place_arrays(struct posenc_freqs *freqs, bool xpos, unsigned char *memory)
{
    int64_t n = freqs->stride;
    size_t bytes = (sizeof *freqs + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    freqs->view.omega = reserve(memory, &bytes, n, sizeof(double));
    freqs->view.turn_hi = reserve(memory, &bytes, n, sizeof(uint64_t));
    freqs->view.turn_lo = reserve(memory, &bytes, n, sizeof(uint64_t));
    freqs->view.omega_f32 = reserve(memory, &bytes, n, sizeof(float));
    freqs->whole_turns = reserve(memory, &bytes, n, sizeof(uint32_t));
    if (freqs->view.n_axes > 1)
        freqs->view.axis = reserve(memory, &bytes, n, sizeof(uint8_t));
    if (freqs->view.numerics == POSENC_NUMERICS_EXACT) {
        freqs->middle = reserve(memory, &bytes, POSENC_GROUPS * (4 * n), sizeof(double));
        freqs->twice_cos = reserve(memory, &bytes, n, sizeof(double));
    }
    if (freqs->view.numerics == POSENC_NUMERICS_GGML_F32) {
        freqs->ggml.divisor = reserve(memory, &bytes, n, sizeof(float));
        freqs->ggml.ramp_mix = reserve(memory, &bytes, n, sizeof(float));
    }
    if (xpos) {
        freqs->xpos_step = reserve(memory, &bytes, POSENC_BLOCK * n, sizeof(double));
        freqs->xpos_rate_hi = reserve(memory, &bytes, n, sizeof(double));
        freqs->xpos_rate_lo = reserve(memory, &bytes, n, sizeof(double));
    }
    return bytes;
}

/* Allocates the struct and its arrays, all zero except for sizes. Returns NULL without memory. */
static struct posenc_freqs *allocate_freqs(const struct posenc_freqs_spec *spec)
{
    struct posenc_freqs layout = { 0 };
    layout.view.numerics = spec->numerics;
    layout.view.dim = spec->dim;
    layout.view.n_pairs = (spec->dim + 1) / 2;
    layout.view.n_axes = 1;
    while (layout.view.n_axes < 3 && spec->mrope_section[layout.view.n_axes] != 0)
        layout.view.n_axes++;
    layout.stride =
        (layout.view.n_pairs + POSENC_FREQS_PAD - 1) / POSENC_FREQS_PAD * POSENC_FREQS_PAD;
    if (layout.view.n_axes > 1 && spec->mrope_layout == POSENC_MROPE_LAYOUT_QWEN2_VL_VISION)
        memcpy(layout.section, spec->mrope_section, sizeof layout.section);
    bool xpos = spec->xpos_scale_base != 0.0;
    size_t bytes = place_arrays(&layout, xpos, NULL);
    layout.memory = aligned_alloc(ALIGNMENT, bytes);
    if (!layout.memory)
        return NULL;
    memset(layout.memory, 0, bytes); /* padding is 0.0 */
    place_arrays(&layout, xpos, layout.memory);
    struct posenc_freqs *freqs = layout.memory;
    *freqs = layout;
    return freqs;
}

/* Returns the nearest whole wavelength, which is below 2^53 as omega is at least 2^-50. There are no ties, as 2 pi
 * divided by an algebraic number is irrational. */
static double nearest_wavelength(struct dd omega)
{
    struct dd wavelength = dd_div(dd_scale(posenc_dd_pi, 2.0), omega);
    double whole = rint(wavelength.hi);
    return whole + rint(dd_sub(wavelength, dd_from(whole)).hi);
}

/* Returns 1 / wavelength as a turn, rounded to nearest. */
static struct turn turn_of_wavelength(double wavelength)
{
    const u128 divisor = (u128)wavelength, max = ~(u128)0;
    u128 turn = max / divisor;
    turn += 2 * (max - turn * divisor + 1) >= divisor;
    return (struct turn){ (uint64_t)(turn >> 64), (uint64_t)turn };
}

/* Fills all arrays. They are const in the view, but nobody else has the struct yet. */
static enum posenc_status fill_arrays(const struct posenc_freqs_spec *spec,
                                      struct posenc_freqs *freqs, struct posenc_error *error)
{
    double *omega = (double *)freqs->view.omega;
    float *omega_f32 = (float *)freqs->view.omega_f32;
    uint64_t *turn_hi = (uint64_t *)freqs->view.turn_hi,
             *turn_lo = (uint64_t *)freqs->view.turn_lo;
    struct exact_rule rule = { 0 };
    if (!spec->values)
        rule = posenc_exact_rule_of(spec);
    freqs->whole = posenc_scaling_of(spec)->whole_wavelengths;
    const double least = freqs->whole ? min_omega_whole : min_omega;
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct dd w = spec->values ? dd_from(spec->values[i]) : posenc_exact_omega(&rule, i);
        bool at_rest = !spec->values && i >= rule.n_rotated; /* its frequency is 0 */
        if (!spec->values && !at_rest && !(w.hi >= least && w.hi <= max_omega))
            return reject_range(error, POSENC_ERR_THETA,
                                "frequency of a pair, from rope_theta and its scaling", w.hi,
                                least, max_omega);
        struct turn turn = posenc_turn_of(w);
        if (freqs->whole) {
            double wavelength = nearest_wavelength(w);
            w = dd_div(dd_scale(posenc_dd_pi, 2.0), dd_from(wavelength));
            turn = turn_of_wavelength(wavelength);
        }
        omega[i] = w.hi;
        omega_f32[i] = dd_to_float(w);
        turn_hi[i] = turn.hi;
        turn_lo[i] = turn.lo;
        freqs->whole_turns[i] = posenc_whole_turns(w, turn);
    }
    for (int64_t i = 0; freqs->view.axis && i < freqs->view.n_pairs; i++)
        ((uint8_t *)freqs->view.axis)[i] = (uint8_t)posenc_axis_of(spec, i);
    freqs->view.attention_factor = posenc_attention_factor(spec);
    if (spec->numerics == POSENC_NUMERICS_EXACT)
        posenc_freqs_fill_rotations(freqs);
    else if (spec->numerics == POSENC_NUMERICS_GGML_F32)
        posenc_ggml_f32_fill(spec, freqs);
    else if (!spec->values)
        posenc_f32_fill_omega(spec, freqs->view.n_pairs, omega_f32);
    if (freqs->xpos_step)
        posenc_xpos_fill(spec, freqs);
    return POSENC_OK;
}

enum posenc_status posenc_freqs_create(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error)
{
    if (!spec || !freqs)
        return reject(error, POSENC_ERR_ARGUMENT, spec ? "freqs (NULL)" : "spec (NULL)");
    struct posenc_freqs_spec copy;
    const struct versioned *versioned = &posenc_versioned_freqs_spec;
    if (posenc_versioned_copy(versioned, &copy, spec) && spec->size % versioned->align != 0)
        return reject_value(error, POSENC_ERR_ARGUMENT, "size of the spec (no whole words)",
                            (double)spec->size);
    if (posenc_versioned_copy(versioned, &copy, spec))
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "size of the spec (or newer members not 0)", (double)spec->size,
                            (double)versioned->min_size, (double)sizeof copy);
    spec = &copy;
    enum posenc_status status = check_spec(spec, error);
    if (status)
        return status;
    struct posenc_freqs *created = allocate_freqs(spec);
    if (!created)
        return reject(error, POSENC_ERR_MEMORY, "memory for frequencies");
    status = fill_arrays(spec, created, error);
    if (status) {
        posenc_freqs_destroy(created);
        return status;
    }
    *freqs = created;
    return POSENC_OK;
}

void posenc_freqs_destroy(struct posenc_freqs *freqs)
{
    if (freqs)
        free(freqs->memory);
}

void posenc_freqs_view_get(const struct posenc_freqs *freqs, struct posenc_freqs_view *view,
                           size_t size)
{
    memset(view, 0, size);
    memcpy(view, &freqs->view, size < sizeof *view ? size : sizeof *view);
}

/* Points to element n of an array, unless it is NULL. */
#define ELEMENT(array, n) ((array) ? (array) + (n) : NULL)

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
    part.view.omega = ELEMENT(part.view.omega, from);
    part.view.omega_f32 = ELEMENT(part.view.omega_f32, from);
    part.view.turn_hi = ELEMENT(part.view.turn_hi, from);
    part.view.turn_lo = ELEMENT(part.view.turn_lo, from);
    part.whole_turns = ELEMENT(part.whole_turns, from);
    part.middle = ELEMENT(part.middle, from);
    part.twice_cos = ELEMENT(part.twice_cos, from);
    memset(part.section, 0, sizeof part.section);
    part.memory = NULL;
    return part;
}
#undef ELEMENT
