/*
 * The library's builders against what they are defined by, evaluated another way: positions by
 * counting, indices of windows by numbering the differences, Transformer-XL's by carrying out
 * its shift, DeBERTa's by its logarithms in MPFR (and whole numbers where those meet);
 * published figures; refusals, which write nothing.  Biases and initial values:
 * builders_values.c.
 *
 * ALiBi's slopes and T5's thresholds are checked by `golden --library` and published.c.
 */
#include "builders.h"
#include "mp.h"

#include <gmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static int64_t checked;

void builders_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "builders: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    if (++failures == 20)
        exit(1);
}

void builders_require(bool good, const char *what)
{
    checked++;
    if (!good)
        builders_fail("%s", what);
}

static void require_equal(int64_t got, int64_t want, const char *what, int64_t i, int64_t j)
{
    checked++;
    if (got != want)
        builders_fail("%s, %lld and %lld: %lld, not %lld", what, (long long)i, (long long)j,
                      (long long)got, (long long)want);
}

void *builders_allocate(int64_t n)
{
    void *p = malloc((size_t)n * 4);
    if (!p)
        abort();
    return p;
}

/* ---- Padding ---- */

static void padding_row(int64_t tokens, const uint8_t *mask, int64_t padding_idx,
                        const int32_t *got)
{
    for (int64_t t = 0; t < tokens; t++) {
        int64_t want = padding_idx;
        for (int64_t before = 0; mask[t] && before <= t; before++)
            want += mask[before] != 0;
        require_equal(got[t], want, "padding, token", t, padding_idx);
    }
}

static void check_padding(void)
{
    static const uint8_t mask[4][3] = { { 1, 1, 0 }, { 0, 1, 1 }, { 1, 0, 7 }, { 0, 0, 0 } };
    static const int32_t published[2][3] = { { 2, 3, 1 }, { 1, 2, 3 } }; /* right, left */
    int32_t got[12];
    builders_require(posenc_padding_positions(4, 3, mask[0], 1, got) == POSENC_OK, "padding");
    for (int t = 0; t < 6; t++)
        require_equal(got[t], published[t / 3][t % 3], "padding as fairseq, token", t, 1);
    for (int b = 0; b < 4; b++)
        padding_row(3, mask[b], 1, got + 3 * b);

    uint8_t random[1000];
    int32_t *many = builders_allocate(1000);
    for (int t = 0; t < 1000; t++)
        random[t] = (uint8_t)(t * t % 7 % 3);
    for (int64_t padding_idx = 0; padding_idx < 3; padding_idx++) {
        builders_require(posenc_padding_positions(2, 500, random, padding_idx, many) ==
                             POSENC_OK,
                         "padding of 500");
        for (int b = 0; b < 2; b++)
            padding_row(500, random + 500 * b, padding_idx, many + 500 * b);
    }
    /* the last position there is */
    builders_require(posenc_padding_positions(1, 2, mask[0], INT32_MAX - 2, got) == POSENC_OK &&
                         got[1] == INT32_MAX,
                     "padding up to 2^31 - 1");
    free(many);
}

/* ---- Windows ---- */

/* Differences (dy, dx) are numbered in ascending order; the class token's come after them. */
static void check_window(int64_t height, int64_t width, bool class_token)
{
    const int64_t rows = 2 * height - 1, columns = 2 * width - 1,
                  n = height * width + class_token;
    int32_t *index = builders_allocate(n * n), *numbered = builders_allocate(rows * columns);
    builders_require((class_token ? posenc_beit_index(height, width, index)
                                  : posenc_swin_index(height, width, index)) == POSENC_OK,
                     "index of a window");
    int32_t count = 0;
    for (int64_t dy = 0; dy < rows; dy++)
        for (int64_t dx = 0; dx < columns; dx++)
            numbered[dy * columns + dx] = count++;
    for (int64_t q = class_token; q < n; q++)
        for (int64_t k = class_token; k < n; k++) {
            const int64_t a = q - class_token, b = k - class_token;
            const int64_t dy = a / width - b / width, dx = a % width - b % width;
            require_equal(index[q * n + k],
                          numbered[(dy + height - 1) * columns + (dx + width - 1)],
                          "window, query and key", q, k);
        }
    for (int64_t k = 1; class_token && k < n; k++) {
        require_equal(index[k], count, "class token to token", 0, k);
        require_equal(index[k * n], count + 1, "token to class token", k, 0);
    }
    if (class_token)
        require_equal(index[0], count + 2, "class token to itself", 0, 0);
    free(index);
    free(numbered);
}

static void check_windows(void)
{
    static const int32_t swin[16] = { 4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4 };
    int32_t index[16];
    builders_require(posenc_swin_index(2, 2, index) == POSENC_OK, "swin 2 x 2");
    for (int k = 0; k < 16; k++)
        require_equal(index[k], swin[k], "Swin's published rows, query and key", k / 4, k % 4);
    static const int64_t sizes[][2] = { { 1, 1 }, { 1, 4 }, { 4, 1 },   { 7, 7 },
                                        { 3, 5 }, { 5, 3 }, { 14, 14 }, { 2, 256 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        check_window(sizes[k][0], sizes[k][1], false);
        check_window(sizes[k][0], sizes[k][1], true);
    }
}

/* ---- Relative positions ---- */

static void check_shaw(int64_t queries, int64_t keys, int64_t offset, int64_t most)
{
    int32_t *index = builders_allocate(queries + keys - 1);
    builders_require(posenc_shaw_index(queries, keys, offset, most, index) == POSENC_OK,
                     "shaw");
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) {
            int64_t from_query = j - (i + offset);
            if (from_query > most)
                from_query = most;
            if (from_query < -most)
                from_query = -most;
            require_equal(index[i - j + keys - 1], from_query + most, "Shaw, query and key", i,
                          j);
        }
    free(index);
}

/* The shift itself, on a matrix whose entries say their column: a column of zeros before the
 * others, the rows read as keys + 1 rows of queries, the first of them dropped. */
static void check_transformer_xl(int64_t queries, int64_t keys)
{
    int32_t *index = builders_allocate(queries + keys - 1),
            *padded = builders_allocate(queries * (keys + 1));
    builders_require(posenc_transformer_xl_index(queries, keys, index) == POSENC_OK,
                     "transformer_xl");
    for (int64_t i = 0; i < queries; i++)
        for (int64_t c = 0; c <= keys; c++)
            padded[i * (keys + 1) + c] = (int32_t)(c - 1);
    const int32_t *shifted = padded + queries;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) {
            const bool seen = j <= i + keys - queries;
            require_equal(index[i - j + keys - 1], seen ? shifted[i * keys + j] : keys - 1,
                          "Transformer-XL, query and key", i, j);
        }
    free(index);
    free(padded);
}

/* n^N = a^k b^(N-k)? */
static bool powers_meet(unsigned long n, unsigned long steps, unsigned long a, unsigned long k,
                        unsigned long b)
{
    mpz_t left, right, factor;
    mpz_inits(left, right, factor, (mpz_ptr)0);
    mpz_ui_pow_ui(left, n, steps);
    mpz_ui_pow_ui(right, a, k);
    mpz_ui_pow_ui(factor, b, steps - k);
    mpz_mul(right, right, factor);
    const bool meet = mpz_cmp(left, right) == 0;
    mpz_clears(left, right, factor, (mpz_ptr)0);
    return meet;
}

/* ceil(ln(n/m) / ln((most-1)/m) (m-1)) + m for n > m */
static int64_t log_bucket(int64_t n, int64_t m, int64_t most)
{
    const number a = mp_log(mp_div(mp_of((double)n), mp_of((double)m))),
                 b = mp_log(mp_div(mp_of((double)(most - 1)), mp_of((double)m)));
    const number steps = mp_mul(mp_div(a, b), mp_of((double)(m - 1)));
    const int64_t k = (int64_t)mp_double(mp_round(steps));
    const double rest = mp_double(mp_sub(steps, mp_of((double)k)));
    if (fabs(rest) > 0x1p-150)
        return k + (rest > 0) + m;
    if (k <= m - 1 &&
        !powers_meet((unsigned long)n, (unsigned long)(m - 1), (unsigned long)(most - 1),
                     (unsigned long)k, (unsigned long)m))
        builders_fail("DeBERTa, distance %lld: MPFR does not decide", (long long)n);
    return k + m;
}

/* Distances -far ... far, as those of one query in the middle of keys. */
static void check_deberta(int64_t buckets, int64_t most, int64_t far)
{
    const int64_t m = buckets / 2, span = buckets ? buckets : most;
    int32_t *index = builders_allocate(2 * far + 1);
    builders_require(posenc_deberta_index(1, 2 * far + 1, far, buckets, most, index) ==
                         POSENC_OK,
                     "deberta");
    for (int64_t n = 0; n <= far; n++) {
        const int64_t bucket = buckets == 0 || n <= m ? n : log_bucket(n, m, most);
        const int64_t up = bucket + span > 2 * span - 1 ? 2 * span - 1 : bucket + span,
                      down = span - bucket < 0 ? 0 : span - bucket;
        require_equal(index[far + n], up, "DeBERTa, buckets and distance", buckets, n);
        require_equal(index[far - n], down, "DeBERTa, buckets and distance", buckets, -n);
    }
    free(index);
}

static void check_deberta_all(void)
{
    static const struct {
        int64_t distance, bucket;
    } published[] = {
        { -511, -255 }, { -256, -192 }, { 129, 129 }, { 256, 192 },
        { 510, 255 },   { 511, 255 },   { 512, 255 }, { -512, -256 }
    }; /* 256 at 512, clipped to the table */
    int32_t index[1025];
    builders_require(posenc_deberta_index(513, 513, 0, 256, 512, index) == POSENC_OK,
                     "deberta-v3");
    for (size_t k = 0; k < sizeof published / sizeof *published; k++)
        require_equal(index[published[k].distance + 512], published[k].bucket + 256,
                      "DeBERTa-v3, published, distance", published[k].distance, 0);
    static const int64_t sizes[][3] = {
        { 256, 512, 3000 }, { 128, 512, 3000 }, { 32, 128, 600 },  { 4, 6, 40 },
        { 8, 257, 600 },    { 10, 513, 900 },   { 6, 4097, 9000 }, { 512, 513, 700 },
        { 0, 512, 1100 },   { 0, 1, 5 },        { 320, 800, 2000 }
    };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        check_deberta(sizes[k][0], sizes[k][1], sizes[k][2]);
    /* a part of the distances, all on one side or far out, is a part of the whole */
    int32_t part[20];
    for (int64_t offset = -40; offset <= 40; offset += 8) {
        builders_require(posenc_deberta_index(5, 16, offset, 8, 20, part) == POSENC_OK, "part");
        int32_t whole[201];
        builders_require(posenc_deberta_index(1, 201, 100, 8, 20, whole) == POSENC_OK, "whole");
        for (int64_t e = 0; e < 20; e++)
            require_equal(part[e], whole[e - 15 + offset + 100], "part of DeBERTa's distances",
                          offset, e);
    }
}

/* ---- Refusals ---- */

/* What a builder that refuses must leave alone. */
static union {
    int32_t index[64];
    float values[64];
} canary;

static void refused(enum posenc_status got, enum posenc_status want, const char *what)
{
    checked++;
    if (got != want)
        builders_fail("%s: status %d, not %d", what, (int)got, (int)want);
    for (int k = 0; k < 64; k++)
        if (canary.index[k] != 0x7fc12345) {
            builders_fail("%s: refused, but element %d was written", what, k);
            canary.index[k] = 0x7fc12345;
        }
}

static void check_refused_indices(void)
{
    const enum posenc_status null = POSENC_ERR_ARGUMENT, shape = POSENC_ERR_SHAPE,
                             position = POSENC_ERR_POSITION;
    static const uint8_t mask[4] = { 1, 1, 0, 1 };
    int32_t *out = canary.index;
    refused(posenc_padding_positions(1, 4, NULL, 1, out), null, "padding without mask");
    refused(posenc_padding_positions(1, 4, mask, 1, NULL), null, "padding without positions");
    refused(posenc_padding_positions(-1, 4, mask, 1, out), shape, "padding, batch -1");
    refused(posenc_padding_positions(1, -4, mask, 1, out), shape, "padding, -4 tokens");
    refused(posenc_padding_positions(1, 4, mask, -1, out), position, "padding_idx -1");
    refused(posenc_padding_positions(2, 2, mask, INT32_MAX - 1, out), position,
            "padding beyond 2^31");
    refused(posenc_padding_positions(1, 4, mask, INT64_MAX, out), position,
            "padding_idx 2^63 - 1");
    refused(posenc_swin_index(2, 2, NULL), null, "swin without index");
    refused(posenc_swin_index(0, 2, out), shape, "swin of height 0");
    refused(posenc_swin_index(2, 257, out), shape, "swin of width 257");
    refused(posenc_beit_index(2, 2, NULL), null, "beit without index");
    refused(posenc_beit_index(257, 2, out), shape, "beit of height 257");
    refused(posenc_beit_index(2, -1, out), shape, "beit of width -1");
    refused(posenc_shaw_index(2, 2, 0, 4, NULL), null, "shaw without index");
    refused(posenc_shaw_index(0, 2, 0, 4, out), shape, "shaw without queries");
    refused(posenc_shaw_index(2, 1 << 24, 0, 4, out), shape, "shaw, 2^24 keys");
    refused(posenc_shaw_index(2, 2, (1 << 24) - 1, 4, out), shape, "shaw, distance 2^24");
    refused(posenc_shaw_index(2, 2, 1 - (1 << 24), 4, out), shape, "shaw, distance -2^24");
    refused(posenc_shaw_index(2, 2, INT64_MIN, 4, out), shape, "shaw, offset -2^63");
    refused(posenc_shaw_index(2, INT64_MAX, INT64_MIN, 4, out), shape, "shaw, 2^63 - 1 keys");
    refused(posenc_shaw_index(2, 2, 0, 0, out), shape, "shaw, max_distance 0");
    refused(posenc_shaw_index(2, 2, 0, (1 << 20) + 1, out), shape,
            "shaw, max_distance 2^20 + 1");
    refused(posenc_transformer_xl_index(2, 2, NULL), null, "transformer_xl without index");
    refused(posenc_transformer_xl_index(2, 0, out), shape, "transformer_xl without keys");
    refused(posenc_transformer_xl_index(1 << 24, 2, out), shape,
            "transformer_xl, 2^24 queries");
    refused(posenc_deberta_index(2, 2, 0, 8, 32, NULL), null, "deberta without index");
    refused(posenc_deberta_index(2, -2, 0, 8, 32, out), shape, "deberta, -2 keys");
    refused(posenc_deberta_index(2, 2, INT64_MAX, 8, 32, out), shape,
            "deberta, offset 2^63 - 1");
    refused(posenc_deberta_index(2, 2, 0, 7, 32, out), shape, "deberta, 7 buckets");
    refused(posenc_deberta_index(2, 2, 0, 2, 32, out), shape, "deberta, 2 buckets");
    refused(posenc_deberta_index(2, 2, 0, 4098, 5000, out), shape, "deberta, 4098 buckets");
    refused(posenc_deberta_index(2, 2, 0, -8, 32, out), shape, "deberta, -8 buckets");
    refused(posenc_deberta_index(2, 2, 0, 32, 32, out), shape,
            "deberta, max_distance 32 of 32");
    refused(posenc_deberta_index(2, 2, 0, 0, 0, out), shape, "deberta, max_distance 0");
    refused(posenc_deberta_index(2, 2, 0, 8, (1 << 20) + 1, out), shape,
            "deberta, max_distance 2^20 + 1");
}

static void check_refused_values(void)
{
    const enum posenc_status null = POSENC_ERR_ARGUMENT, shape = POSENC_ERR_SHAPE,
                             parameter = POSENC_ERR_PARAMETER;
    static const float ones[2] = { 1, 1 }, zero[2] = { 1, 0 }, minus[2] = { 1, -1 },
                       infinite[2] = { 1, (float)INFINITY }, nan[2] = { 1, (float)NAN },
                       above[2] = { 1, 2.0000002f };
    const float *const bad[] = { zero, minus, infinite, nan };
    float *out = canary.values;
    const int64_t far = 1 << 24;
    refused(posenc_kerple_log(2, NULL, ones, 0, 4, out), null, "kerple_log without p");
    refused(posenc_kerple_log(2, ones, NULL, 0, 4, out), null, "kerple_log without a");
    refused(posenc_kerple_log(2, ones, ones, 0, 4, NULL), null, "kerple_log without values");
    refused(posenc_kerple_log(0, ones, ones, 0, 4, out), shape, "kerple_log, no heads");
    refused(posenc_kerple_log(65537, ones, ones, 0, 4, out), shape, "kerple_log, 65537 heads");
    refused(posenc_kerple_log(2, ones, ones, 0, 0, out), shape, "kerple_log, no distances");
    refused(posenc_kerple_log(2, ones, ones, -far, 4, out), shape, "kerple_log from -2^24");
    refused(posenc_kerple_log(2, ones, ones, far - 3, 4, out), shape, "kerple_log to 2^24");
    refused(posenc_kerple_log(2, ones, ones, INT64_MAX, 4, out), shape, "kerple_log from 2^63");
    refused(posenc_kerple_log(2, ones, ones, 0, INT64_MAX, out), shape, "kerple_log, 2^63 - 1");
    refused(posenc_kerple_power(2, NULL, ones, 0, 4, out), null, "kerple_power without p");
    refused(posenc_kerple_power(2, ones, ones, far - 3, 4, out), shape, "kerple_power to 2^24");
    refused(posenc_kerple_power(2, above, ones, 0, 4, out), parameter, "kerple_power, p > 2");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        refused(posenc_kerple_log(2, bad[k], ones, 0, 4, out), parameter, "kerple_log, p");
        refused(posenc_kerple_log(2, ones, bad[k], 0, 4, out), parameter, "kerple_log, a");
        refused(posenc_kerple_power(2, bad[k], ones, 0, 4, out), parameter, "kerple_power, p");
        refused(posenc_kerple_power(2, ones, bad[k], 0, 4, out), parameter, "kerple_power, a");
    }
    refused(posenc_sandwich(8, 2, NULL, 0, 4, out), null, "sandwich without scale");
    refused(posenc_sandwich(8, 2, ones, 0, 4, NULL), null, "sandwich without values");
    refused(posenc_sandwich(7, 2, ones, 0, 4, out), shape, "sandwich of 7 columns");
    refused(posenc_sandwich(0, 2, ones, 0, 4, out), shape, "sandwich of none");
    refused(posenc_sandwich(65538, 2, ones, 0, 4, out), shape, "sandwich of 65538");
    refused(posenc_sandwich(8, 2, ones, -far, 4, out), shape, "sandwich from -2^24");
    refused(posenc_sandwich(8, 2, infinite, 0, 4, out), parameter, "sandwich, infinite scale");
    refused(posenc_sandwich(8, 2, nan, 0, 4, out), parameter, "sandwich, NaN scale");
    refused(posenc_normal(0, 0, 2, 4, 1, NULL), null, "normal without table");
    refused(posenc_normal(0, 0, 2, 0, 1, out), shape, "normal of no columns");
    refused(posenc_normal(0, 0, 2, 65537, 1, out), shape, "normal of 65537 columns");
    refused(posenc_normal(0, 0, -2, 4, 1, out), shape, "normal, -2 rows");
    refused(posenc_normal(0, -1, 2, 4, 1, out), shape, "normal from row -1");
    refused(posenc_normal(0, (INT64_C(1) << 31) - 1, 2, 4, 1, out), shape,
            "normal beyond row 2^31");
    refused(posenc_normal(0, 0, INT64_MAX, 4, 1, out), shape, "normal, 2^63 - 1 rows");
    refused(posenc_normal(0, 0, 2, 4, 0, out), parameter, "normal, sigma 0");
    refused(posenc_normal(0, 0, 2, 4, -1, out), parameter, "normal, sigma -1");
    refused(posenc_normal(0, 0, 2, 4, (double)INFINITY, out), parameter, "normal, sigma inf");
    refused(posenc_normal(0, 0, 2, 4, (double)NAN, out), parameter, "normal, sigma NaN");
    refused(posenc_normal(0, 0, 2, 4, 1e39, out), parameter, "normal, sigma beyond f32");
}

int main(void)
{
    check_padding();
    check_windows();
    for (int64_t keys = 1; keys < 8; keys++)
        for (int64_t queries = 1; queries < 8; queries++) {
            check_shaw(queries, keys, keys - queries, 1 + keys % 3);
            if (queries <= keys)
                check_transformer_xl(queries, keys);
        }
    check_shaw(40, 300, -250, 128);
    check_shaw(40, 300, 700, 16);
    check_transformer_xl(128, 1000);
    check_deberta_all();
    for (int k = 0; k < 64; k++)
        canary.index[k] = 0x7fc12345;
    check_refused_indices();
    check_refused_values();
    check_kerple();
    check_sandwich();
    check_normal();
    printf("builders = their definitions: %lld comparisons\n", (long long)checked);
    return failures != 0;
}
