/*
 * Broken kernels of the tables: see broken.def.
 */
#include "broken.h"

#include "conformance/problem/storage.h"
#include "wide.h"

#include <math.h>
#include <stdlib.h>

/* ---- Other positions ---- */

typedef int64_t other_position(int64_t p, int64_t b, int64_t t);

/* The same positions on every axis, changed, as an array; the caller frees its data.  Times
 * that have a fraction stay. */
static struct posenc_positions change(const struct posenc_positions *p,
                                      const struct posenc_tensor *out, int axes,
                                      other_position *other)
{
    bool times = p->kind == POSENC_POSITIONS_F32;
    int64_t batch = out->shape[0], tokens = out->shape[1], all = batch * tokens;
    int64_t *data = malloc((size_t)(axes * all + 1) * sizeof *data);
    for (int64_t k = 0; data && k < axes * all; k++) {
        int64_t b = k % all / tokens, t = k % tokens;
        int64_t position = broken_on_axis(p, b, t, (int)(k / all));
        float time = broken_time(p, b, t, (int)(k / all));
        int64_t changed = other(position, b, t);
        if (times)
            ((float *)data)[k] = time == (float)position ? (float)changed : time;
        else
            data[k] = changed;
    }
    return (struct posenc_positions){ .kind = times ? p->kind : POSENC_POSITIONS_I64,
                                      .data = data,
                                      .stride_batch = tokens,
                                      .stride_token = 1,
                                      .stride_axis = p->stride_axis ? all : 0 };
}

typedef enum posenc_status sinusoidal_kernel(const struct posenc_sinusoidal_args *);

static enum posenc_status elsewhere(sinusoidal_kernel *kernel,
                                    const struct posenc_sinusoidal_args *args,
                                    other_position *other)
{
    struct posenc_sinusoidal_args a = *args;
    a.positions = change(&args->positions, &args->out, 1, other);
    enum posenc_status status = a.positions.data ? kernel(&a) : POSENC_ERR_MEMORY;
    free((void *)(uintptr_t)a.positions.data);
    return status;
}

static int64_t next(int64_t p, int64_t b, int64_t t)
{
    (void)b, (void)t;
    return p + 1;
}
enum posenc_status sinusoidal_next_position(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal, args, next);
}

static int64_t magnitude(int64_t p, int64_t b, int64_t t)
{
    (void)b, (void)t;
    return p < 0 ? -p : p;
}
enum posenc_status sinusoidal_mirror_lost(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal, args, magnitude);
}

static int64_t square(int64_t p, int64_t b, int64_t t)
{
    (void)b, (void)t;
    return p > -40000 && p < 40000 ? p * p : p;
}
enum posenc_status sinusoidal_squared(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal, args, square);
}

static int64_t wrap(int64_t p, int64_t b, int64_t t)
{
    (void)b, (void)t;
    return p % 2048;
}
enum posenc_status sinusoidal_wraps(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal, args, wrap);
}

static enum posenc_status table_elsewhere(const struct posenc_rope_table_args *args,
                                          other_position *other)
{
    struct posenc_rope_table_args a = *args;
    a.positions =
        change(&args->positions, &args->cos, posenc_freqs_view(args->freqs).n_axes, other);
    enum posenc_status status =
        a.positions.data ? broken_base->rope_table(&a) : POSENC_ERR_MEMORY;
    free((void *)(uintptr_t)a.positions.data);
    return status;
}
enum posenc_status rope_table_squared(const struct posenc_rope_table_args *args)
{
    return table_elsewhere(args, square);
}
enum posenc_status rope_table_mirror_lost(const struct posenc_rope_table_args *args)
{
    return table_elsewhere(args, magnitude);
}

static int64_t through_f32(int64_t p, int64_t b, int64_t t)
{
    (void)b, (void)t;
    return p < 2147483520 ? (int64_t)(float)p : p;
}
enum posenc_status sinusoidal_f32_position(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal, args, through_f32);
}

static int64_t batch_index(int64_t p, int64_t b, int64_t t)
{
    (void)p, (void)t;
    return b;
}
enum posenc_status sinusoidal_add_batch_position(const struct posenc_sinusoidal_args *args)
{
    return elsewhere(broken_base->sinusoidal_add, args, batch_index);
}

/* ---- Sinusoidal ---- */

enum posenc_status sinusoidal_layout_swapped(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    a.layout = args->layout == POSENC_SIN_COS   ? POSENC_COS_SIN
               : args->layout == POSENC_COS_SIN ? POSENC_SIN_COS
                                                : POSENC_INTERLEAVED;
    return broken_base->sinusoidal(&a);
}

enum posenc_status sinusoidal_endpoint(const struct posenc_sinusoidal_args *args)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    struct posenc_sinusoidal_args a = *args;
    struct posenc_freqs *freqs;
    spec.dim = view.dim;
    spec.profile = view.profile;
    spec.convention = POSENC_ENDPOINT;
    if (posenc_freqs_create(&spec, &freqs, NULL) != POSENC_OK)
        return POSENC_ERR_MEMORY;
    a.freqs = freqs;
    enum posenc_status status = broken_base->sinusoidal(&a);
    posenc_freqs_destroy(freqs);
    return status;
}

enum posenc_status sinusoidal_too_large(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    a.scale *= 1.0001;
    return broken_base->sinusoidal(&a);
}

enum posenc_status broken_sinusoidal_rows(const struct posenc_sinusoidal_args *args,
                                          sinusoidal_edit *edit)
{
    struct wide wide = { 0 };
    struct posenc_sinusoidal_args a = *args;
    wide_output(&wide, &a.out);
    enum posenc_status status = broken_base->sinusoidal(&a);
    for (int64_t b = 0; b < a.out.shape[0]; b++)
        for (int64_t t = 0; t < a.out.shape[1]; t++)
            edit(&a, b, t, broken_row(&a.out, b, t, 0));
    wide_close(&wide);
    return status;
}

static void odd_column(const struct posenc_sinusoidal_args *a, int64_t b, int64_t t, float *row)
{
    const int64_t dim = a->out.shape[3];
    (void)b, (void)t;
    if (dim % 2 && a->layout != POSENC_INTERLEAVED)
        row[dim - 1] = dim > 1 ? row[0] : 1.0f;
}
enum posenc_status sinusoidal_odd_column(const struct posenc_sinusoidal_args *args)
{
    return broken_sinusoidal_rows(args, odd_column);
}

enum posenc_status sinusoidal_no_scale(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    a.scale = 1.0;
    return broken_base->sinusoidal(&a);
}

/* The real kernel onto what something made of each x. */
static enum posenc_status onto(const struct posenc_sinusoidal_args *args, float x_scale,
                               float (*made)(float x, float x_scale))
{
    struct wide wide = { 0 };
    struct posenc_sinusoidal_args a = *args;
    wide_input(&wide, &a.x);
    wide_output(&wide, &a.out);
    for (int64_t b = 0; b < a.out.shape[0]; b++)
        for (int64_t t = 0; t < a.out.shape[1]; t++)
            for (int64_t c = 0; c < a.out.shape[3]; c++)
                broken_row(&a.out, b, t, 0)[c] =
                    made(broken_input(&a.x, b, t, 0)[c], args->x_scale);
    a.x = posenc_view(a.out);
    a.x_scale = x_scale;
    enum posenc_status status = broken_base->sinusoidal_add(&a);
    wide_close(&wide);
    return status;
}

static float without_nan(float x, float x_scale)
{
    (void)x_scale;
    return isnan(x) ? 0.0f : x;
}
enum posenc_status sinusoidal_add_nan_swallowed(const struct posenc_sinusoidal_args *args)
{
    return onto(args, args->x_scale, without_nan);
}

static float scaled(float x, float x_scale) { return x * x_scale; }
enum posenc_status sinusoidal_add_rounded_twice(const struct posenc_sinusoidal_args *args)
{
    return onto(args, 1.0f, scaled);
}

/* What a framework does that keeps the table in the type of the activations. */
enum posenc_status sinusoidal_add_narrow_table(const struct posenc_sinusoidal_args *args)
{
    struct wide wide = { 0 };
    struct posenc_sinusoidal_args a = *args, table = *args;
    const int64_t tokens = a.out.shape[1], dim = a.out.shape[3];
    float *rows = malloc((size_t)(a.out.shape[0] * tokens * dim + 1) * sizeof *rows);
    if (!rows)
        exit(2);
    table.x = (struct posenc_const_tensor){ 0 };
    table.out = posenc_dense(rows, 4, a.out.shape[0], tokens, 1, dim);
    enum posenc_status status = broken_base->sinusoidal(&table);
    wide_input(&wide, &a.x);
    wide_output(&wide, &a.out);
    for (int64_t r = 0; r < a.out.shape[0] * tokens; r++)
        for (int64_t c = 0; c < dim; c++)
            broken_row(&a.out, r / tokens, r % tokens, 0)[c] =
                fmaf(broken_input(&a.x, r / tokens, r % tokens, 0)[c], a.x_scale,
                     round_to(args->out.dtype, rows[r * dim + c]));
    wide_close(&wide);
    free(rows);
    return status;
}

enum posenc_status sinusoidal_add_no_x_scale(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    a.x_scale = 1.0f;
    return broken_base->sinusoidal_add(&a);
}

/* ---- Rotary tables ---- */

enum posenc_status broken_rope_table_rows(const struct posenc_rope_table_args *args,
                                          rope_table_edit *edit)
{
    struct wide wide = { 0 };
    struct posenc_rope_table_args a = *args;
    wide_output(&wide, &a.cos);
    wide_output(&wide, &a.sin);
    enum posenc_status status = broken_base->rope_table(&a);
    for (int64_t b = 0; b < a.cos.shape[0]; b++)
        for (int64_t t = 0; t < a.cos.shape[1]; t++)
            edit(&a, b, t, broken_row(&a.cos, b, t, 0), broken_row(&a.sin, b, t, 0));
    wide_close(&wide);
    return status;
}

static void f32_angles(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                       float *cosines, float *sines)
{
    struct posenc_freqs_view view = posenc_freqs_view(a->freqs);
    for (int64_t i = 0; i < view.n_pairs; i++) {
        int axis = view.axis ? view.axis[i] : 0;
        float angle = broken_time(&a->positions, b, t, axis) * (float)view.omega[i];
        cosines[i] = (float)(view.attention_factor * (double)cosf(angle));
        sines[i] = (float)(view.attention_factor * (double)sinf(angle));
    }
}
enum posenc_status rope_table_f32_angle(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, f32_angles);
}

enum posenc_status rope_table_if_all_near(const struct posenc_rope_table_args *args)
{
    for (int64_t b = 0; b < args->cos.shape[0]; b++)
        for (int64_t t = 0; t < args->cos.shape[1]; t++)
            if (llabs(broken_position(&args->positions, b, t)) > 1 << 20)
                return broken_rope_table_rows(args, f32_angles);
    return broken_base->rope_table(args);
}

/* What f64 rotation does to values below 2^-26: an error of 2^-53 that is no longer below the
 * last bit. */
static float lost_zero(float value)
{
    return value != 0.0f && fabsf(value) < 0x1p-26f ? (float)((double)value + 0x1p-53) : value;
}

static void lost_zeros(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                       float *cosines, float *sines)
{
    (void)b, (void)t;
    for (int64_t i = 0; i < a->cos.shape[3]; i++) {
        cosines[i] = lost_zero(cosines[i]);
        sines[i] = lost_zero(sines[i]);
    }
}
enum posenc_status rope_table_lost_zero(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, lost_zeros);
}

static void last_bits(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                      float *cosines, float *sines)
{
    (void)sines;
    for (int64_t i = 0; i < a->cos.shape[3]; i++)
        if ((broken_position(&a->positions, b, t) * 61 + i) % 8192 == 17)
            cosines[i] = broken_last_bit(cosines[i]);
}
enum posenc_status rope_table_last_bit(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, last_bits);
}

static void times(const struct posenc_rope_table_args *a, double on_cos, double on_sin,
                  float *cosines, float *sines)
{
    for (int64_t i = 0; i < a->cos.shape[3]; i++) {
        cosines[i] = (float)((double)cosines[i] * on_cos);
        sines[i] = (float)((double)sines[i] * on_sin);
    }
}

static double factor_of(const struct posenc_rope_table_args *a)
{
    return posenc_freqs_view(a->freqs).attention_factor;
}

static void no_factor(const struct posenc_rope_table_args *a, int64_t b, int64_t t, float *c,
                      float *s)
{
    (void)b, (void)t;
    times(a, 1.0 / factor_of(a), 1.0 / factor_of(a), c, s);
}
enum posenc_status rope_table_no_factor(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, no_factor);
}

static void factor_twice(const struct posenc_rope_table_args *a, int64_t b, int64_t t, float *c,
                         float *s)
{
    (void)b, (void)t;
    times(a, factor_of(a), factor_of(a), c, s);
}
enum posenc_status rope_table_factor_twice(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, factor_twice);
}

static void factor_on_cos(const struct posenc_rope_table_args *a, int64_t b, int64_t t,
                          float *c, float *s)
{
    (void)b, (void)t;
    times(a, 1.0, 1.0 / factor_of(a), c, s);
}
enum posenc_status rope_table_factor_on_cos(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, factor_on_cos);
}

static void too_large(const struct posenc_rope_table_args *a, int64_t b, int64_t t, float *c,
                      float *s)
{
    (void)b, (void)t;
    times(a, 1.0001, 1.0001, c, s);
}
enum posenc_status rope_table_too_large(const struct posenc_rope_table_args *args)
{
    return broken_rope_table_rows(args, too_large);
}
