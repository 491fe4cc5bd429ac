/*
 * Kernels sinusoidal, sinusoidal_add and rope_table: cosines and sines of position * omega_i, for pairs i of
 * frequencies. Shapes: cos and sin [batch, tokens, 1, pairs]; x and out [batch, tokens, 1, dim].
 *
 *   rope_table      cos = scale cos(position omega_i),   sin = scale sin(position omega_i)
 *   sinusoidal      out = the sines and cosines of all pairs, in halves or interleaved, times scale
 *   sinusoidal_add  out = fma(x, x_scale, the same)
 *
 * Sources: Vaswani et al. 1706.03762 section 3.5; Su et al. 2104.09864 section 3.4; Sun et al. 2212.10554 (xPos).
 *
 * Tokens are cut into runs of consecutive positions, as a run needs few evaluations (sincos.h). f32 runs are stored
 * directly. Large runs and 16-bit runs go through a buffer (run_buffer.h), and those with xPos and other special cases
 * through tiles (run_tiles.h).
 */
#include "run_tiles.h"

/* Finds the run that begins at token t: consecutive positions of one sign. Returns the number of tokens. */
static int64_t run_find(const struct posenc_positions *positions, int64_t b, int64_t t,
                        int64_t tokens, struct run *run)
{
    int64_t p = posenc_position(positions, b, t), n = 1;

    run->time = 0.0f;
    if (!posenc_is_whole(positions, b, t))
        run->time = (float)fabs(posenc_time(positions, b, t));
    else if (positions->kind == POSENC_POSITIONS_OFFSET)
        n = p < 0 ? min_i64(-p, tokens - t) : tokens - t;
    else
        while (t + n < tokens && posenc_is_whole(positions, b, t + n) &&
               posenc_position(positions, b, t + n) == p + n && (p >= 0 || p + n < 0))
            n++;
    run->negative = posenc_time(positions, b, t) < 0.0;
    run->first = (uint32_t)(p < 0 ? -(p + n - 1) : p);
    run->count = n;
    return n;
}

/* Return the token at which the run's magnitudes begin, and the stride that walks them upward. */
static int64_t run_first_token(const struct run *run, int64_t t)
{
    return run->negative ? t + run->count - 1 : t;
}

static int64_t run_stride(const struct run *run, int64_t stride)
{
    return run->negative ? -stride : stride;
}

/* Returns the first row of a run in a tensor, and its stride. */
static void *run_first_row(const struct posenc_tensor *tensor, int64_t b, int64_t t,
                           const struct run *run, int64_t *stride)
{
    *stride = run_stride(run, tensor->stride[1]);
    return output_row(tensor, b, run_first_token(run, t), 0);
}

/* Stores the zero in the last column of halves whose dim is odd. */
static void put_zero_column(const struct run *run, enum posenc_dtype type)
{
    int64_t column = run->dim - 1;

    for (int64_t row = 0; row < run->count; row++) {
        vf zero = vf_set1(0.0f);
        if (run->x)
            zero = vf_fma(load_as(type, run->x, row * run->x_stride + column, 1),
                          vf_set1(run->x_scale), zero);
        store_as(type, run->out, row * run->out_stride + column, zero, 1);
    }
}

/* Evaluates and stores all runs of a call. */
SIMD_INLINE void sinusoidal_runs(const struct posenc_sinusoidal_args *args, enum sink sink,
                                 bool add)
{
    struct run run = { .freqs = args->freqs, .scale = args->scale, .x_scale = args->x_scale };
    enum posenc_dtype type = args->out.dtype;
    int64_t tokens = args->out.shape[1];

    run.dim = args->out.shape[3];
    *(args->layout == POSENC_LAYOUT_SIN_COS ? &run.cosine_at : &run.sine_at) = run.dim / 2;
    run.pairs = sink == TO_INTERLEAVED ? (run.dim + 1) / 2 : run.dim / 2;
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < tokens;) {
            int64_t n = run_find(&args->positions, b, t, tokens, &run);
            run.out = run_first_row(&args->out, b, t, &run, &run.out_stride);
            if (add) {
                run.x = input_row(&args->x, b, run_first_token(&run, t), 0);
                run.x_stride = run_stride(&run, args->x.stride[1]);
            }
            run_write(&run, sink, add, type);
            if (sink != TO_INTERLEAVED && run.dim % 2)
                put_zero_column(&run, type);
            t += n;
        }
}

enum posenc_status KERNEL(sinusoidal)(const struct posenc_sinusoidal_args *args)
{
    if (args->layout == POSENC_LAYOUT_INTERLEAVED)
        sinusoidal_runs(args, TO_INTERLEAVED, false);
    else
        sinusoidal_runs(args, TO_HALVES, false);
    return POSENC_OK;
}

enum posenc_status KERNEL(sinusoidal_add)(const struct posenc_sinusoidal_args *args)
{
    if (args->layout == POSENC_LAYOUT_INTERLEAVED)
        sinusoidal_runs(args, TO_INTERLEAVED, true);
    else
        sinusoidal_runs(args, TO_HALVES, true);
    return POSENC_OK;
}

/* Copies the run's pairs from one row to another, bit for bit. */
static void copy_pairs(const struct run *run, enum posenc_dtype type, const void *from,
                       void *to)
{
    const float *from_f32 = from;
    const uint16_t *from_16 = from;

    for (int64_t i = run->from; i < run->pairs; i++)
        if (run->axis_of && run->axis_of[i] != run->axis)
            continue;
        else if (type == POSENC_DTYPE_F32)
            ((float *)to)[i] = from_f32[i];
        else
            ((uint16_t *)to)[i] = from_16[i];
}

/* Repeats the row of token t - 1 for the tokens from t on that are at the same position. Images have such tokens: a
 * row of patches shares its height, and all patches share the time. Returns the first token at another position. */
static int64_t repeat_row(const struct posenc_rope_table_args *args,
                          const struct posenc_positions *positions, int64_t b, int64_t t,
                          const struct run *run)
{
    for (; positions->kind != POSENC_POSITIONS_OFFSET && t < args->cos.shape[1] &&
           posenc_time(positions, b, t) == posenc_time(positions, b, t - 1);
         t++) {
        copy_pairs(run, args->cos.dtype, output_row(&args->cos, b, t - 1, 0),
                   output_row(&args->cos, b, t, 0));
        copy_pairs(run, args->sin.dtype, output_row(&args->sin, b, t - 1, 0),
                   output_row(&args->sin, b, t, 0));
    }
    return t;
}

/* Fills the pairs [run.from, run.pairs) of every token, by the positions of one axis. */
static void rope_table_axis(const struct posenc_rope_table_args *args,
                            const struct posenc_positions *positions, struct run run)
{
    int64_t tokens = args->cos.shape[1];

    for (int64_t b = 0; b < args->cos.shape[0]; b++)
        for (int64_t t = 0; t < tokens;) {
            int64_t n = run_find(positions, b, t, tokens, &run);
            run.out = run_first_row(&args->cos, b, t, &run, &run.out_stride);
            run.sine = run_first_row(&args->sin, b, t, &run, &run.sine_stride);
            run_write(&run, TO_COS_AND_SIN, false, args->cos.dtype);
            t = repeat_row(args, positions, b, t + n, &run);
        }
}

enum posenc_status KERNEL(rope_table)(const struct posenc_rope_table_args *args)
{
    const struct posenc_freqs_view *view = &args->freqs->view;
    struct run run = { .freqs = args->freqs, .scale = view->attention_factor };

    run.dim = run.pairs = args->cos.shape[3];
    if (args->positions.stride_axis == 0) {
        rope_table_axis(args, &args->positions, run);
        return POSENC_OK;
    }
    for (int32_t axis = 0; axis < view->n_axes; axis++) {
        struct posenc_positions positions = posenc_positions_on_axis(&args->positions, axis);
        int64_t others = 0;
        run.axis = (uint8_t)axis;
        run.from = 0;
        run.pairs = view->n_pairs;
        while (run.from < run.pairs && view->axis[run.from] != axis)
            run.from++;
        run.from -= run.from % vf_lanes(); /* vectors begin at multiples of their size */
        while (run.pairs > run.from && view->axis[run.pairs - 1] != axis)
            run.pairs--;
        for (int64_t i = run.from; i < run.pairs; i++)
            others += view->axis[i] != axis;
        run.axis_of = others ? view->axis : NULL;
        rope_table_axis(args, &positions, run);
    }
    return POSENC_OK;
}
