/*
 * Biases by distance and initial values, each the correctly rounded f32 of its formula by MPFR;
 * whether initial values look like normal ones, and depend on nothing but seed, row and column.
 */
#include "builders.h"
#include "mp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inputs: any will do, so long as they are the same each time. */
static uint64_t state;
static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 20;
}

/* A float of 24 random bits, in [2^exponent, 2^(exponent + 1)). */
static float draw_float(int exponent)
{
    return (float)ldexp((double)(draw() % (1u << 23) + (1u << 23)), exponent - 23);
}

/* How far a value is from a midpoint of two floats, in their spacing. */
static double from_midpoint(double value)
{
    int exponent;
    const double x = ldexp(frexp(fabs(value), &exponent), 24);
    return fabs(x - floor(x) - 0.5);
}

/* Of 2^18 floats from 1 on, that whose product with a value is nearest to such a midpoint: some
 * 2^-42 of itself. */
static float hard_factor(double value)
{
    float hardest = 1;
    double least = 1;
    for (int k = 0; k < 1 << 18; k++) {
        const float factor = 1 + 0x1p-23f * (float)k;
        const double distance = from_midpoint(value * (double)factor);
        if (distance < least) {
            least = distance;
            hardest = factor;
        }
    }
    return hardest;
}

static void require_float(float got, number exact, const char *what, int64_t a, int64_t b)
{
    const float want = mp_float(exact);
    if (memcmp(&got, &want, sizeof got) != 0)
        builders_fail("%s, %lld and %lld: %a, MPFR %a", what, (long long)a, (long long)b,
                      (double)got, (double)want);
    else
        builders_require(true, what);
}

static void require_zero(float got, const char *what)
{
    builders_require(got == 0 && !signbit(got), what);
}

/* ---- KERPLE ---- */

static void kerple(bool power, int64_t heads, const float *p, const float *a, int64_t first,
                   int64_t n)
{
    const char *name =
        power ? "kerple_power, head and distance" : "kerple_log, head and distance";
    float *got = builders_allocate(heads * n);
    builders_require((power ? posenc_kerple_power(heads, p, a, first, n, got)
                            : posenc_kerple_log(heads, p, a, first, n, got)) == POSENC_OK,
                     name);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t d = first + k;
            if (d == 0) {
                require_zero(got[h * n + k], "KERPLE at distance 0");
                continue;
            }
            const number far = mp_of(fabs((double)d)), by = mp_of((double)p[h]),
                         scale = mp_of((double)a[h]);
            const number bias = power ? mp_mul(mp_pow(far, by), scale)
                                      : mp_mul(mp_log1p(mp_mul(far, scale)), by);
            require_float(got[h * n + k], mp_neg(bias), name, h, d);
        }
    free(got);
}

/* Parameters of every size; powers that are whole, halves or quarters, so that values are
 * exact or midpoints of two floats (an a of 24 bits times 3, times 9); others that are
 * nearly midpoints. */
void check_kerple(void)
{
    static const float powers[16] = { 1, 2,         0.5f,      1.5f,    0.25f, 1.75f,
                                      1, 0x1p-149f, 2,         0x1p-4f, 0.01f, 1.875f,
                                      1, 0.5f,      0.123456f, 2 };
    float p[16], a[16], exact[16];
    state = 1;
    for (int h = 0; h < 16; h++) {
        p[h] = draw_float(h % 4 - 3);
        a[h] = draw_float(h % 8 - 7);
        exact[h] = draw_float(-3) + 0x1p-26f * (float)(h % 2);
    }
    kerple(false, 16, p, a, -500, 3000);
    kerple(true, 16, powers, exact, -500, 3000);
    for (int h = 0; h < 16; h++) {
        p[h] = draw_float((int)(draw() % 250) - 125);
        a[h] = draw_float((int)(draw() % 250) - 125);
    }
    p[0] = 0x1p-149f;
    a[0] = 0x1p-149f;
    p[1] = 3e38f;
    a[1] = 3e38f;
    kerple(false, 16, p, a, -200, 400);
    kerple(false, 16, p, a, (1 << 24) - 300, 300);
    kerple(true, 16, powers, a, 1 - (1 << 24), 300);
    for (int h = 0; h < 16; h++)
        p[h] = draw_float(-(int)(draw() % 20));
    kerple(true, 16, p, exact, (1 << 24) - 4000, 4000);
    kerple(true, 16, powers, exact, 4090 * 4090, 20000); /* squares, and one fourth power */
    for (int64_t d = 3; d < 1 << 24; d *= 21) {
        for (int h = 0; h < 16; h++) {
            exact[h] = draw_float(-h);
            p[h] = hard_factor(log1p((double)exact[h] * (double)d));
        }
        kerple(false, 16, p, exact, d, 1);
        for (int h = 0; h < 16; h++) {
            p[h] = draw_float(h % 2 ? 0 : -h);
            a[h] = hard_factor(pow((double)d, (double)p[h]));
        }
        kerple(true, 16, p, a, d, 1);
    }
}

/* ---- Sandwich ---- */

/* Of each pair the phase of a distance, as such: sum of cosines less dim/2. */
static number sandwich_sum(int64_t dim, int64_t d)
{
    number sum = mp_of((double)(-dim / 2));
    for (int64_t i = 0; i < dim / 2; i++) {
        const number power = mp_div(mp_of((double)(-2 * i)), mp_of((double)dim));
        const number omega = mp_pow(mp_of(10000), power);
        sum = mp_add(sum, mp_cos(mp_mul(omega, mp_of((double)d))));
    }
    return sum;
}

/* The scales of 12 heads: those of a model, one of each sort, and one that is hard to round
 * at the first distance. */
static void sandwich_scales(int64_t dim, int64_t first, float scale[12])
{
    for (int h = 0; h < 9; h++)
        scale[h] = 9.0f / (float)(8 * (h + 1));
    scale[9] = hard_factor(mp_double(sandwich_sum(dim, first)));
    scale[10] = -draw_float(-100);
    scale[11] = 0;
}

static void sandwich(int64_t dim, int64_t first, int64_t n)
{
    float scale[12], *got = builders_allocate(12 * n);
    sandwich_scales(dim, first, scale);
    builders_require(posenc_sandwich(dim, 12, scale, first, n, got) == POSENC_OK, "sandwich");
    for (int64_t k = 0; k < n; k++) {
        const int64_t d = first + k;
        const number sum = sandwich_sum(dim, d);
        for (int64_t h = 0; h < 12; h++) {
            if (d == 0 || h == 11) {
                require_zero(got[h * n + k], "Sandwich at distance 0, or of scale 0");
                continue;
            }
            require_float(got[h * n + k], mp_mul(mp_of((double)scale[h]), sum),
                          "Sandwich, columns and distance", dim, d);
        }
    }
    free(got);
}

void check_sandwich(void)
{
    state = 2;
    sandwich(2, -600, 3000);
    sandwich(4, 0, 2000);
    sandwich(64, -20, 700);
    sandwich(128, 1, 600);
    sandwich(128, (1 << 24) - 40, 40);
    sandwich(1024, -3, 20);
    sandwich(2, 5419351 - 1, 3); /* 862527 turns and 5e-8 of a radian: the phase in full */
}

/* ---- Initial values ---- */

/* The recipe as it is stated: see normal.c of the library. */
static uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static number normal_exactly(uint64_t seed, int64_t row, int64_t column, double sigma)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15),
                   start = splitmix(splitmix(seed) + (uint64_t)row) +
                           (uint64_t)(column / 2) * 2 * step;
    const number turn = mp_mul(mp_pi(), mp_of(2)), share = mp_of_u64(splitmix(start + step));
    const number angle = mp_mul(turn, mp_div(share, mp_of(0x1p64)));
    const double uniform = (double)((splitmix(start) >> 11) + 1) * 0x1p-53;
    const number radius = mp_sqrt(mp_mul(mp_log(mp_of(uniform)), mp_of(-2)));
    return mp_mul(mp_mul(radius, column % 2 == 0 ? mp_cos(angle) : mp_sin(angle)),
                  mp_of(sigma));
}

static void normal_values(uint64_t seed, int64_t first, int64_t rows, int64_t dim, double sigma)
{
    float *got = builders_allocate(rows * dim);
    builders_require(posenc_normal(seed, first, rows, dim, sigma, got) == POSENC_OK, "normal");
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < dim; c++) {
            const number value = normal_exactly(seed, first + r, c, sigma);
            if (mp_float(value) == 0)
                require_zero(got[r * dim + c], "zero among initial values");
            else
                require_float(got[r * dim + c], value, "initial values, row and column",
                              first + r, c);
        }
    free(got);
}

/* Sigmas that put one value of a row next to a midpoint of two floats, as near as a double
 * can say. */
static void normal_hard(void)
{
    for (int64_t c = 0; c < 40; c++) {
        const double middle = ldexp((double)(draw() % (1u << 23) + (1u << 23)) + 0.5, -24);
        const number sigma = mp_div(mp_of(middle), normal_exactly(5, 1, c, 1));
        normal_values(5, 1, 1, 40, fabs(mp_double(sigma)));
    }
}

/* n values: mean, variance, fourth moment and the correlation with the value `lag` on, each
 * within 5 standard deviations of that of independent normal values. */
static void normal_moments(const float *values, int64_t n, int64_t lag)
{
    double sum = 0, squares = 0, fourth = 0, products = 0;
    for (int64_t k = 0; k < n; k++) {
        const double x = (double)values[k];
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        products += k + lag < n ? x * (double)values[k + lag] : 0;
    }
    const double m = (double)n, unit = 5 / sqrt(m);
    builders_require(fabs(sum / m) < unit, "mean of initial values");
    builders_require(fabs(squares / m - 1) < unit * sqrt(2), "their variance");
    builders_require(fabs(fourth / m - 3) < unit * sqrt(96), "their fourth moment");
    builders_require(fabs(products / m) < unit, "their correlation");
}

/* A part of a table, by rows and by columns, is a part of the whole. */
static void normal_parts(const float *whole, int64_t rows, int64_t dim)
{
    float part[3 * 40];
    for (int64_t first = 0; first + 3 <= rows; first += 7)
        for (int64_t columns = 39; columns <= 40; columns++) {
            builders_require(posenc_normal(7, first, 3, columns, 1, part) == POSENC_OK, "part");
            for (int64_t r = 0; r < 3; r++)
                builders_require(memcmp(part + r * columns, whole + (first + r) * dim,
                                        (size_t)columns * sizeof *part) == 0,
                                 "rows of initial values by themselves");
        }
}

void check_normal(void)
{
    static const uint64_t seeds[] = { 0, 1, UINT64_MAX, UINT64_C(0x123456789abcdef0) };
    static const double sigmas[] = { 0.02, 1, 1.0 / 3, 1e-42, 3e38, 0x1p-1074 };
    for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++)
        for (size_t k = 0; k < sizeof sigmas / sizeof *sigmas; k++) {
            normal_values(seeds[s], 0, 6, 33, sigmas[k]);
            normal_values(seeds[s], (INT64_C(1) << 31) - 2, 2, 5, sigmas[k]);
        }
    normal_values(3, 0, 30, 1000, 0.02);
    normal_hard();
    const int64_t rows = 1024, dim = 768;
    float *table = builders_allocate(rows * dim);
    builders_require(posenc_normal(7, 0, rows, dim, 1, table) == POSENC_OK, "normal");
    normal_moments(table, rows * dim, 1);
    normal_moments(table, rows * dim, 2);
    normal_moments(table, rows * dim, dim);
    normal_parts(table, rows, dim);
    free(table);
}
