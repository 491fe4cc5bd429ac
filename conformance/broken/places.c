/*
 * Broken kernels of positions with several axes, and of times: see broken.def.
 */
#include "broken.h"

#include <math.h>
#include <stdlib.h>

/* ---- Axes ---- */

/* h and w exchanged: the second axis is read from where the third is, and the reverse. */
enum posenc_status rope_table_axes_swapped(const struct posenc_rope_table_args *args)
{
    struct posenc_rope_table_args a = *args;
    const struct posenc_positions *p = &args->positions;
    int64_t tokens = args->cos.shape[1], all = args->cos.shape[0] * tokens;
    if (p->stride_axis == 0 || posenc_freqs_view(args->freqs).n_axes < 3)
        return broken_base->rope_table(args);
    float *data = malloc((size_t)(3 * all + 1) * sizeof *data);
    if (!data)
        return POSENC_ERR_MEMORY;
    for (int64_t k = 0; k < 3 * all; k++)
        data[k] = broken_time(p, k % all / tokens, k % tokens, (int)(3 - k / all) % 3);
    a.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_F32,
                                             .data = data,
                                             .stride_batch = tokens,
                                             .stride_token = 1,
                                             .stride_axis = all };
    enum posenc_status status = broken_base->rope_table(&a);
    free(data);
    return status;
}

enum posenc_status rope_table_first_axis(const struct posenc_rope_table_args *args)
{
    struct posenc_rope_table_args a = *args;
    a.positions.stride_axis = 0;
    return broken_base->rope_table(&a);
}

/* Text in a model of pictures: the position goes to the first axis, the others stay at 0. */
enum posenc_status rope_table_text_first_axis(const struct posenc_rope_table_args *args)
{
    struct posenc_rope_table_args a = *args;
    struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    int64_t tokens = args->cos.shape[1], all = args->cos.shape[0] * tokens;
    if (args->positions.stride_axis != 0 || view.n_axes == 1)
        return broken_base->rope_table(args);
    int64_t *data = calloc((size_t)(view.n_axes * all + 1), sizeof *data);
    if (!data)
        return POSENC_ERR_MEMORY;
    for (int64_t k = 0; k < all; k++)
        data[k] = broken_position(&args->positions, k / tokens, k % tokens);
    a.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I64,
                                             .data = data,
                                             .stride_batch = tokens,
                                             .stride_token = 1,
                                             .stride_axis = all };
    enum posenc_status status = broken_base->rope_table(&a);
    free(data);
    return status;
}

/* ---- Times ---- */

enum posenc_status sinusoidal_time_truncated(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    int64_t tokens = args->out.shape[1], all = args->out.shape[0] * tokens;
    int64_t *data = malloc((size_t)(all + 1) * sizeof *data);
    if (!data)
        return POSENC_ERR_MEMORY;
    for (int64_t k = 0; k < all; k++)
        data[k] = broken_position(&args->positions, k / tokens, k % tokens);
    a.positions = (struct posenc_positions){
        .kind = POSENC_POSITIONS_I64, .data = data, .stride_batch = tokens, .stride_token = 1
    };
    enum posenc_status status = broken_base->sinusoidal(&a);
    free(data);
    return status;
}

enum posenc_status sinusoidal_add_time_bits(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    if (a.positions.kind == POSENC_POSITIONS_F32)
        a.positions.kind = POSENC_POSITIONS_I32;
    return broken_base->sinusoidal_add(&a);
}

/* Whether a token is at a time with a fraction, which the exact profile is asked for. */
static bool has_fraction(const struct posenc_freqs_view *view, const struct posenc_positions *p,
                         int64_t b, int64_t t)
{
    float time = broken_time(p, b, t, 0);
    return view->profile == POSENC_EXACT && p->kind == POSENC_POSITIONS_F32 &&
           time != (float)broken_position(p, b, t);
}

/* The sine of an f64 angle is right to 2^-52 of the angle, not of itself. */
static void f64_angles(const struct posenc_sinusoidal_args *a, int64_t b, int64_t t, float *row)
{
    struct posenc_freqs_view view = posenc_freqs_view(a->freqs);
    const int64_t half = view.dim / 2;
    const bool interleaved = a->layout == POSENC_INTERLEAVED;
    const bool sine_first = a->layout != POSENC_COS_SIN;
    for (int64_t i = 0; has_fraction(&view, &a->positions, b, t) && i < half; i++) {
        const double angle = (double)broken_time(&a->positions, b, t, 0) * view.omega[i];
        const int64_t first = interleaved ? 2 * i : i,
                      second = interleaved ? first + 1 : half + i;
        row[sine_first ? first : second] = (float)(a->scale * sin(angle));
        row[sine_first ? second : first] = (float)(a->scale * cos(angle));
    }
}
enum posenc_status sinusoidal_time_f64(const struct posenc_sinusoidal_args *args)
{
    return broken_sinusoidal_rows(args, f64_angles);
}

/* The sign of the integer, which a time between -1 and 0 does not have. */
static void integer_sign(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                         float *cosines, float *sines)
{
    const float time = broken_time(&a->positions, b, t, 0);
    (void)cosines;
    for (int64_t i = 0; time < 0.0f && time > -1.0f && i < a->sin.shape[3]; i++)
        sines[i] = -sines[i];
}
enum posenc_status rope_table_time_sign(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, integer_sign);
}

/* ---- xPos ---- */

/* (position - centre) / scale_base of a row of a plan with xPos, from what pair 0 is scaled by;
 * 0 of a plan without. */
static double exponent_of(const struct posenc_rope_table_args *a, const float *cosines,
                          const float *sines)
{
    const double length = hypot((double)cosines[0], (double)sines[0]);
    const double exponent =
        log(length / posenc_freqs_view(a->freqs).attention_factor) / log(0.4 / 1.4);
    return fabs(exponent) < 1e-6 ? 0.0 : exponent;
}

static double zeta_of(const struct posenc_rope_table_args *a, int64_t i)
{
    const double dim = (double)posenc_freqs_view(a->freqs).dim;
    return (2.0 * (double)i + 0.4 * dim) / (1.4 * dim);
}

/* Pair i scaled by another zeta. */
static void rescale(const struct posenc_rope_table_args *a, int64_t i, double zeta,
                    double exponent, float *value)
{
    if (exponent != 0.0)
        *value = (float)((double)*value * pow(zeta / zeta_of(a, i), exponent));
}

static void plain_zeta(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                       float *cosines, float *sines)
{
    const double exponent = exponent_of(a, cosines, sines),
                 dim = (double)posenc_freqs_view(a->freqs).dim;
    (void)b, (void)t;
    for (int64_t i = 1; i < a->cos.shape[3]; i++) {
        rescale(a, i, 2.0 * (double)i / dim, exponent, &cosines[i]);
        rescale(a, i, 2.0 * (double)i / dim, exponent, &sines[i]);
    }
}
enum posenc_status rope_table_xpos_plain_zeta(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, plain_zeta);
}

static void next_zeta(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                      float *cosines, float *sines)
{
    const double exponent = exponent_of(a, cosines, sines);
    (void)b, (void)t;
    for (int64_t i = 0; i < a->cos.shape[3]; i++) {
        rescale(a, i, zeta_of(a, i + 1), exponent, &cosines[i]);
        rescale(a, i, zeta_of(a, i + 1), exponent, &sines[i]);
    }
}
enum posenc_status rope_table_xpos_next_pair(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, next_zeta);
}

static void cosines_alone(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                          float *cosines, float *sines)
{
    const double exponent = exponent_of(a, cosines, sines);
    (void)b, (void)t;
    for (int64_t i = 0; i < a->cos.shape[3]; i++)
        rescale(a, i, 1.0, exponent, &sines[i]);
}
enum posenc_status rope_table_xpos_on_cos(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, cosines_alone);
}

/* ---- A fourth axis ---- */

/* Sections by turns, the pairs beyond them with an axis of which text knows nothing: they
 * rest. */
static void fourth_axis(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                        float *cosines, float *sines)
{
    struct posenc_freqs_view view = posenc_freqs_view(a->freqs);
    (void)b, (void)t;
    for (int64_t i = 0; view.n_axes == 3 && view.axis[1] == 1 && i < view.n_pairs; i++)
        if (i % 3 != 0 && view.axis[i] == 0) {
            cosines[i] = (float)view.attention_factor;
            sines[i] = 0.0f;
        }
}
enum posenc_status rope_table_fourth_axis(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, fourth_axis);
}
