/*
 * posenc_learned_fill_normal(): initial values N(0, sigma) of learned tables, by the Box-Muller transform. With the
 * output function of splitmix64,
 *
 *   mix(x): x += 0x9e3779b97f4a7c15;   x = (x ^ x >> 30) 0xbf58476d1ce4e5b9;
 *            x = (x ^ x >> 27) 0x94d049bb133111eb;   x ^ x >> 31        (modulo 2^64)
 *
 * columns 2j and 2j + 1 of row r are
 *
 *   s = mix(mix(seed) + r)
 *   u = (floor(mix(s + 2j g) / 2^11) + 1) / 2^53,   t = mix(s + (2j + 1) g) / 2^64
 *   sigma sqrt(-2 ln u) cos(2 pi t)   and   sigma sqrt(-2 ln u) sin(2 pi t)
 *
 * with g = 0x9e3779b97f4a7c15. A row is thus the stream of a splitmix64 whose state starts at s. Each value is
 * correctly rounded to f32 (zero is +0) and depends only on seed, row and column. Its magnitude is at most sqrt(106 ln
 * 2) sigma = 8.57 sigma.
 *
 * Reference: Box, Muller, "A note on the generation of random normal deviates", 1958; Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014.
 */
#include <float.h>

#include "freqs.h"

enum { MAX_DIM = 65536 };
static const int64_t max_rows = INT64_C(1) << 31;

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15;

static uint64_t mix(uint64_t x)
{
    x += golden_gamma;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Draws a pair in double-double, if f64 does not decide how a value rounds. */
static void draw_pair_dd(double u, struct turn turn, double sigma, float *even, float *odd)
{
    struct dd radius = dd_sqrt(dd_scale(posenc_dd_log(dd_from(u)), -2.0));
    struct dd cosine, sine;
    posenc_dd_cossin(turn, &cosine, &sine);
    radius = dd_mul(radius, dd_from(sigma));
    *even = dd_to_float(dd_mul(radius, cosine));
    *odd = dd_to_float(dd_mul(radius, sine));
}

static void draw_pair(uint64_t first, uint64_t second, double sigma, float *even, float *odd)
{
    double u = (double)((first >> 11) + 1) * 0x1p-53;
    struct turn turn = { second, 0 };
    double cosine, sine;
    posenc_quick_cossin(turn, &cosine, &sine);
    double radius = sigma * sqrt(-2.0 * posenc_quick_log(dd_from(u)));
    bool decided = posenc_quick_round(radius * cosine, even);
    decided = posenc_quick_round(radius * sine, odd) && decided;
    if (!decided)
        draw_pair_dd(u, turn, sigma, even, odd);
}

enum posenc_status posenc_learned_fill_normal(uint64_t seed, int64_t first_row, int64_t rows,
                                              int64_t dim, double sigma, float *table,
                                              struct posenc_error *error)
{
    if (!table)
        return reject(error, POSENC_ERR_ARGUMENT, "table (NULL)");
    enum posenc_status status = require_range(error, POSENC_ERR_SHAPE, "dim", dim, 1, MAX_DIM);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "first_row", first_row, 0, max_rows);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "rows", rows, 0, max_rows - first_row);
    if (status)
        return status;
    if (!(sigma > 0.0 && sigma <= (double)FLT_MAX))
        return reject_range(error, POSENC_ERR_PARAMETER, "sigma (above 0)", sigma, 0.0,
                            (double)FLT_MAX);
    for (int64_t r = 0; r < rows; r++) {
        uint64_t state = mix(mix(seed) + (uint64_t)(first_row + r));
        for (int64_t c = 0; c < dim; c += 2, state += 2 * golden_gamma) {
            float values[2];
            draw_pair(mix(state), mix(state + golden_gamma), sigma, &values[0], &values[1]);
            for (int64_t k = c; k < dim && k < c + 2; k++)
                table[r * dim + k] = values[k - c] + 0.0f; /* -0 becomes +0 */
        }
    }
    return POSENC_OK;
}
