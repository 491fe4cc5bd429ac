/*
 * Pairs of a table of cosines and sines, sinusoidal or rotary, edited after the real kernel.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

/* A pair of a row of a table; pair 0 of that row. */
struct pair {
    const struct entered *e;
    struct posenc_freqs_view view;
    int64_t i;
    double time; /* its position on the axis that turns it */
    float *cosine, *sine, *cosines, *sines;
};

/* ---- Angles ---- */

/* Whether any position of the call is: an exact path only where all are near. */
static bool any_is_far(const struct entered *e)
{
    const int64_t *shape = e->parts.out->shape;
    for (int64_t k = 0; k < shape[0] * shape[1]; k++)
        if (fabs(position_on(e->parts.positions, k / shape[1], k % shape[1], 0)) > 0x1p20)
            return true;
    return false;
}

static void turn_in_f32(const struct pair *p)
{
    const float angle = (float)p->time * (float)p->view.omega[p->i];
    *p->cosine = (float)(p->view.attention_factor * (double)cosf(angle));
    *p->sine = (float)(p->view.attention_factor * (double)sinf(angle));
}

/* The sine of an f64 angle is right to 2^-52 of the angle, not of itself: seen at times with a
 * fraction, for which the exact profile is asked. */
static void turn_in_f64(const struct pair *p)
{
    const double angle = p->time * p->view.omega[p->i], scale = p->e->args.sinusoidal.scale;
    if (p->view.profile != POSENC_EXACT || p->time == trunc(p->time))
        return;
    *p->sine = (float)(scale * sin(angle));
    *p->cosine = (float)(scale * cos(angle));
}

/* What f64 rotation does to values below 2^-26: an error of 2^-53 that is no longer below the
 * last bit. */
static float with_error(float value)
{
    return value != 0.0f && fabsf(value) < 0x1p-26f ? (float)((double)value + 0x1p-53) : value;
}

/* ---- Amplitudes ---- */

static double zeta_of(const struct pair *p, double i)
{
    const double dim = (double)p->view.dim;
    return (2.0 * i + 0.4 * dim) / (1.4 * dim);
}

/* What another zeta makes of a value.  The exponent, (position - centre) / scale_base, is known
 * from what pair 0 is scaled by, and 0 of a plan without xPos. */
static double rescaled(const struct pair *p, double zeta)
{
    const double length = hypot((double)p->cosines[0], (double)p->sines[0]);
    const double exponent = log(length / p->view.attention_factor) / log(0.4 / 1.4);
    return fabs(exponent) < 1e-6 ? 1.0 : pow(zeta / zeta_of(p, (double)p->i), exponent);
}

/* What a pair is multiplied by. */
static double amplitude(const struct pair *p)
{
    const double factor = p->view.attention_factor, i = (double)p->i;
    return SLIP(factor_ignored) || SLIP(factor_on_cos) ? 1.0 / factor
           : SLIP(factor_twice)                        ? factor
           : SLIP(larger_amplitude)                    ? 1.0001
           : SLIP(zeta_on_cos)                         ? rescaled(p, 1.0)
           : SLIP(next_zeta)                           ? rescaled(p, zeta_of(p, i + 1.0))
           : SLIP(plain_zeta) && p->i > 0 ? rescaled(p, 2.0 * i / (double)p->view.dim)
                                          : 1.0;
}

/* ---- Pairs ---- */

static void edit(const struct pair *p)
{
    const double by = amplitude(p);
    if (SLIP(f32_angle) || (SLIP(f32_angle_if_any_far) && any_is_far(p->e)))
        turn_in_f32(p);
    if (SLIP(f64_time))
        turn_in_f64(p);
    if (SLIP(lost_zero)) {
        *p->cosine = with_error(*p->cosine);
        *p->sine = with_error(*p->sine);
    }
    if (SLIP(last_bit_turned) && ((int64_t)p->time * 61 + p->i) % 8192 == 17)
        *p->cosine = other_last_bit(*p->cosine);
    /* The sign of the integer, which a time between -1 and 0 does not have. */
    if (SLIP(sign_of_integer) && p->time < 0.0 && p->time > -1.0)
        *p->sine = -*p->sine;
    /* Sections by turns, the pairs beyond them with an axis of which text knows nothing: they
     * rest. */
    if (SLIP(fourth_axis) && p->view.n_axes == 3 && p->view.axis[1] == 1 && p->i % 3 != 0 &&
        p->view.axis[p->i] == 0) {
        *p->cosine = (float)p->view.attention_factor;
        *p->sine = 0.0f;
    }
    if (!SLIP(factor_on_cos) && !SLIP(zeta_on_cos))
        *p->cosine = (float)((double)*p->cosine * by);
    *p->sine = (float)((double)*p->sine * by);
}

/* Of each row the last pair first: those after it are scaled by what pair 0 is.  Cosines and
 * sines are two tables, or lie in one row: one after the other by pairs or by halves. */
void enter_pair(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out, *other = e->parts.second;
    struct pair p = { .e = e, .view = posenc_freqs_view(e->parts.freqs) };
    const enum posenc_layout layout = other ? POSENC_COS_SIN : e->args.sinusoidal.layout;
    const bool interleaved = layout == POSENC_INTERLEAVED;
    const int64_t half = p.view.dim / 2, apart = interleaved ? 1 : half;
    const int64_t pairs = other ? out->shape[3] : half, tokens = out->shape[1];
    in_f32_open(e);
    enter_kernel(e);
    for (int64_t r = 0; r < storage_rows(out); r++) {
        float *first = storage_row(out, r),
              *second = other ? storage_row(other, r) : first + apart;
        p.cosines = layout == POSENC_COS_SIN ? first : second;
        p.sines = layout == POSENC_COS_SIN ? second : first;
        for (p.i = pairs - 1; p.i >= 0; p.i--) {
            p.time = position_on(e->parts.positions, r / tokens, r % tokens,
                                 p.view.axis && other ? p.view.axis[p.i] : 0);
            p.cosine = p.cosines + (interleaved ? 2 : 1) * p.i;
            p.sine = p.sines + (interleaved ? 2 : 1) * p.i;
            edit(&p);
        }
    }
}
