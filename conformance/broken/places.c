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
enum posenc_status sinusoidal_time_f64(const struct posenc_sinusoidal_args *args)
{
    enum posenc_status status = broken_base->sinusoidal(args);
    struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    int64_t dim = view.dim, half = dim / 2;
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            for (int64_t i = 0; has_fraction(&view, &args->positions, b, t) && i < half; i++) {
                double angle = (double)broken_time(&args->positions, b, t, 0) * view.omega[i];
                float *row = broken_row(&args->out, b, t, 0);
                bool interleaved = args->layout == POSENC_INTERLEAVED;
                bool sine_first = args->layout != POSENC_COS_SIN;
                int64_t first = interleaved ? 2 * i : i,
                        second = interleaved ? first + 1 : half + i;
                row[sine_first ? first : second] = (float)(args->scale * sin(angle));
                row[sine_first ? second : first] = (float)(args->scale * cos(angle));
            }
    return status;
}

/* The sign of the integer, which a time between -1 and 0 does not have. */
enum posenc_status rope_table_time_sign(const struct posenc_rope_table_args *args)
{
    enum posenc_status status = broken_base->rope_table(args);
    for (int64_t b = 0; b < args->sin.shape[0]; b++)
        for (int64_t t = 0; t < args->sin.shape[1]; t++) {
            float time = broken_time(&args->positions, b, t, 0);
            for (int64_t i = 0; time < 0.0f && time > -1.0f && i < args->sin.shape[3]; i++) {
                float *sine = &broken_row(&args->sin, b, t, 0)[i];
                *sine = -*sine;
            }
        }
    return status;
}
