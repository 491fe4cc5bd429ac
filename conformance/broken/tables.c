/*
 * Mistakes in encodings by position: other positions, sinusoidal encodings, rotary tables.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* ---- Positions ---- */

double next_position(const struct position *at) { return at->value + 1.0; }
double unsigned_position(const struct position *at) { return fabs(at->value); }
double wrapped_position(const struct position *at) { return fmod(at->value, 2048.0); }
double batch_index(const struct position *at) { return (double)at->b; }
double whole_time(const struct position *at) { return trunc(at->value); }
double first_axis(const struct position *at) { return position_on(at->of, at->b, at->t, 0); }

double squared_position(const struct position *at)
{
    return fabs(at->value) < 40000.0 ? at->value * at->value : at->value;
}

double position_in_f32(const struct position *at)
{
    return at->value < 2147483520.0 ? (double)(float)at->value : at->value;
}

/* h and w exchanged: the second axis is read from where the third is, and the reverse. */
double swapped_axes(const struct position *at)
{
    return at->axes < 3 ? at->value : position_on(at->of, at->b, at->t, (3 - at->axis) % 3);
}

/* Text in a model of pictures: the position goes to the first axis, the others stay at 0. */
double text_on_first_axis(const struct position *at)
{
    return at->of->stride_axis == 0 && at->axis > 0 ? 0.0 : at->value;
}

/* ---- Arguments of sinusoidal encodings ---- */

void layout_swapped(struct entered *e)
{
    enum posenc_layout *layout = &e->args.sinusoidal.layout;
    *layout = *layout == POSENC_SIN_COS   ? POSENC_COS_SIN
              : *layout == POSENC_COS_SIN ? POSENC_SIN_COS
                                          : POSENC_INTERLEAVED;
}

void endpoint_frequencies(struct entered *e)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    const struct posenc_freqs_view view = posenc_freqs_view(e->parts.freqs);
    spec.dim = view.dim;
    spec.profile = view.profile;
    spec.convention = POSENC_ENDPOINT;
    if (posenc_freqs_create(&spec, &e->freqs, NULL) == POSENC_OK)
        e->args.sinusoidal.freqs = e->freqs;
}

void larger_scale(struct entered *e) { e->args.sinusoidal.scale *= 1.0001; }
void scale_ignored(struct entered *e) { e->args.sinusoidal.scale = 1.0; }
void x_scale_ignored(struct entered *e) { e->args.sinusoidal.x_scale = 1.0f; }

void times_as_integers(struct entered *e)
{
    if (e->parts.positions->kind == POSENC_POSITIONS_F32)
        e->parts.positions->kind = POSENC_POSITIONS_I32;
}

/* out becomes what something makes of x, and x is out. */
static void make_x(struct entered *e, float (*made)(float x, float x_scale))
{
    struct posenc_sinusoidal_args *a = &e->args.sinusoidal;
    in_f32_open(e);
    for (int64_t r = 0; r < storage_rows(&a->out); r++)
        for (int64_t c = 0; c < a->out.shape[3]; c++)
            ((float *)storage_row(&a->out, r))[c] =
                made(((const float *)storage_row(owned(&a->x), r))[c], a->x_scale);
    a->x = posenc_view(a->out);
}

static float without_nan(float x, float x_scale)
{
    (void)x_scale;
    return isnan(x) ? 0.0f : x;
}

void nan_swallowed(struct entered *e) { make_x(e, without_nan); }

static float scaled(float x, float x_scale) { return x * x_scale; }

void x_scaled_first(struct entered *e)
{
    make_x(e, scaled);
    e->args.sinusoidal.x_scale = 1.0f;
}

/* What a framework does that keeps the table in the type of the activations. */
void sines_in_type_of_x(struct entered *e)
{
    struct posenc_sinusoidal_args *a = &e->args.sinusoidal, table = *a;
    const int64_t tokens = a->out.shape[1], dim = a->out.shape[3],
                  rows = a->out.shape[0] * tokens;
    float *sines = enter_keep(e, rows * dim, sizeof *sines);
    table.x = (struct posenc_const_tensor){ 0 };
    table.out = posenc_dense(sines, 4, a->out.shape[0], tokens, 1, dim);
    e->status = mistake_base->sinusoidal(&table);
    in_f32_open(e);
    for (int64_t k = 0; k < rows * dim; k++) {
        const float *x = storage_row(owned(&a->x), k / dim);
        float *out = storage_row(&a->out, k / dim);
        out[k % dim] =
            fmaf(x[k % dim], a->x_scale, round_to(e->given->sinusoidal.out.dtype, sines[k]));
    }
}

void copied_odd_column(struct entered *e, const struct posenc_tensor *out)
{
    const int64_t dim = out->shape[3];
    if (dim % 2 == 0 || e->args.sinusoidal.layout == POSENC_INTERLEAVED)
        return;
    for (int64_t r = 0; r < storage_rows(out); r++) {
        void *row = storage_row(out, r);
        storage_put(out->dtype, row, dim - 1, dim > 1 ? storage_get(out->dtype, row, 0) : 1.0f);
    }
}

/* ---- Pairs ---- */

/* The sine of an f64 angle is right to 2^-52 of the angle, not of itself: seen at times with a
 * fraction, for which the exact profile is asked. */
void f64_time(const struct pair *p)
{
    const double angle = p->time * p->view.omega[p->i], scale = p->e->args.sinusoidal.scale;
    if (p->view.profile != POSENC_EXACT || p->time == trunc(p->time))
        return;
    *p->sine = (float)(scale * sin(angle));
    *p->cosine = (float)(scale * cos(angle));
}

void f32_angle(const struct pair *p)
{
    const float angle = (float)p->time * (float)p->view.omega[p->i];
    *p->cosine = (float)(p->view.attention_factor * (double)cosf(angle));
    *p->sine = (float)(p->view.attention_factor * (double)sinf(angle));
}

/* An exact path only if every position of the call is near. */
void f32_angle_if_any_far(const struct pair *p)
{
    const struct posenc_tensor *out = p->e->parts.out;
    for (int64_t k = 0; k < out->shape[0] * out->shape[1]; k++)
        if (fabs(position_on(p->e->parts.positions, k / out->shape[1], k % out->shape[1], 0)) >
            0x1p20) {
            f32_angle(p);
            return;
        }
}

/* What f64 rotation does to values below 2^-26: an error of 2^-53 that is no longer below the
 * last bit. */
static float with_error(float value)
{
    return value != 0.0f && fabsf(value) < 0x1p-26f ? (float)((double)value + 0x1p-53) : value;
}

void lost_zero(const struct pair *p)
{
    *p->cosine = with_error(*p->cosine);
    *p->sine = with_error(*p->sine);
}

void last_bit_turned(const struct pair *p)
{
    const double position = position_on(p->e->parts.positions, p->b, p->t, 0);
    if (((int64_t)position * 61 + p->i) % 8192 == 17)
        *p->cosine = other_last_bit(*p->cosine);
}

static void multiply(const struct pair *p, double cosine, double sine)
{
    *p->cosine = (float)((double)*p->cosine * cosine);
    *p->sine = (float)((double)*p->sine * sine);
}

static double factor(const struct pair *p) { return p->view.attention_factor; }

void factor_ignored(const struct pair *p) { multiply(p, 1.0 / factor(p), 1.0 / factor(p)); }
void factor_twice(const struct pair *p) { multiply(p, factor(p), factor(p)); }
void factor_on_cos(const struct pair *p) { multiply(p, 1.0, 1.0 / factor(p)); }
void larger_amplitude(const struct pair *p) { multiply(p, 1.0001, 1.0001); }

/* The sign of the integer, which a time between -1 and 0 does not have. */
void sign_of_integer(const struct pair *p)
{
    *p->sine = p->time < 0.0 && p->time > -1.0 ? -*p->sine : *p->sine;
}

/* Sections by turns, the pairs beyond them with an axis of which text knows nothing: they
 * rest. */
void fourth_axis(const struct pair *p)
{
    const bool turns = p->view.n_axes == 3 && p->view.axis[1] == 1;
    if (!turns || p->i % 3 == 0 || p->view.axis[p->i] != 0)
        return;
    *p->cosine = (float)p->view.attention_factor;
    *p->sine = 0.0f;
}

/* ---- xPos ---- */

static double zeta_of(const struct pair *p, int64_t i)
{
    const double dim = (double)p->view.dim;
    return (2.0 * (double)i + 0.4 * dim) / (1.4 * dim);
}

/* What another zeta makes of a value.  The exponent, (position - centre) / scale_base, is known
 * from what pair 0 is scaled by, and 0 of a plan without xPos. */
static double rescaled(const struct pair *p, double zeta)
{
    const double length = hypot((double)p->cosines[0], (double)p->sines[0]);
    const double exponent = log(length / factor(p)) / log(0.4 / 1.4);
    return fabs(exponent) < 1e-6 ? 1.0 : pow(zeta / zeta_of(p, p->i), exponent);
}

void zeta_on_cos(const struct pair *p) { multiply(p, 1.0, rescaled(p, 1.0)); }

void next_zeta(const struct pair *p)
{
    const double by = rescaled(p, zeta_of(p, p->i + 1));
    multiply(p, by, by);
}

void plain_zeta(const struct pair *p)
{
    const double by = rescaled(p, 2.0 * (double)p->i / (double)p->view.dim);
    if (p->i > 0)
        multiply(p, by, by);
}

/* ---- The front-end: encodings of several axes ---- */

/* Whether each axis has positions of its own. */
static bool has_axes(const struct posenc_sinusoidal_args *args)
{
    return args->freqs && posenc_freqs_view(args->freqs).n_axes > 1 &&
           args->positions.kind != POSENC_OFFSET && args->positions.stride_axis != 0;
}

/* Positions on an axis and those after it. */
static const void *from_axis(const struct posenc_positions *p, int64_t axis)
{
    const int64_t size = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    return (const char *)p->data + axis * p->stride_axis * size;
}

/* A picture's x where its y was meant. */
enum posenc_status axes_from_the_last(front_end *real, const struct posenc_backend *backend,
                                      const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    if (has_axes(args)) {
        a.positions.data = from_axis(&a.positions, posenc_freqs_view(args->freqs).n_axes - 1);
        a.positions.stride_axis = -a.positions.stride_axis;
    }
    return real(backend, &a);
}

/* Frequencies that go on from one section to the next: theta^(-2i/dim) of the whole. */
static struct posenc_freqs *continued(const struct posenc_freqs_view *view, int64_t from,
                                      int64_t n)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; values && i < n; i++)
        values[i] = pow(1e4, -(double)(from + i) / (double)view->n_pairs);
    spec.dim = 2 * n;
    spec.profile = view->profile;
    spec.values = values;
    if (!values || posenc_freqs_create(&spec, &freqs, NULL) != POSENC_OK)
        exit(2);
    free(values);
    return freqs;
}

enum posenc_status axes_continued(front_end *real, const struct posenc_backend *backend,
                                  const struct posenc_sinusoidal_args *args)
{
    enum posenc_status status = POSENC_OK;
    if (!has_axes(args))
        return real(backend, args);
    const struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    for (int64_t from = 0, n; status == POSENC_OK && from < view.n_pairs; from += n) {
        struct posenc_sinusoidal_args part = *args;
        for (n = 1; from + n < view.n_pairs && view.axis[from + n] == view.axis[from];)
            n++;
        struct posenc_freqs *freqs = continued(&view, from, n);
        part.freqs = freqs;
        part.positions.data = from_axis(&args->positions, view.axis[from]);
        part.out.data =
            (char *)part.out.data + 2 * from * (int64_t)storage_size(part.out.dtype);
        part.out.shape[part.out.rank - 1] = 2 * n;
        status = real(backend, &part);
        posenc_freqs_destroy(freqs);
    }
    return status;
}
