/* Tests of primitives that compute or move lanes, for one ISA. */
#ifndef POSENC_SIMD_TESTS_OPERATIONS_H
#define POSENC_SIMD_TESTS_OPERATIONS_H

#include "primitives.h"

#include "impl/simd/simd.h"

enum { VALUES_TRIED = 1 << 15, WIDEST = POSENC_FREQS_PAD };

/* Forms of loads and stores: of a whole vector, of n lanes, of lanes that hold pairs of elements. */
enum access { WHOLE, FIRST_N, COLD_N, STREAM, PAIRS, PAIRS_N };

/* A test of one primitive: an operation with its counterpart in plain C, or a load or store. */
struct test {
    const char *name;
    void (*run)(const struct test *test);
    vf (*f32_1)(vf);
    vf (*f32_2)(vf, vf);
    vf (*f32_3)(vf, vf, vf);
    vf (*f32_4)(vf, vf, vf, vf);
    float (*f32)(const float *x);
    bool same_nan; /* moves bits: a NaN keeps its bits */
    bool no_nan;   /* unspecified for NaN */
    vd (*f64_2)(vd, vd);
    vd (*f64_3)(vd, vd, vd);
    double (*f64)(const double *x);
    vq (*u64_2)(vq, vq);
    uint64_t (*u64)(const uint64_t *x);
    int64_t (*source)(int64_t lane, int64_t lanes);
    enum posenc_dtype type;
    enum access access;
};

/* ---- Lane by lane ---- */

static void f32_op(const struct test *test)
{
    float x[4 * WIDEST] = { 0 }, got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f32(x, test->f32_4 ? 4 : test->f32_3 ? 3 : 2, w);
        for (int64_t k = 0; k < w && test->no_nan; k++)
            if (isnan(x[k]) || isnan(x[k + WIDEST]))
                x[k] = x[k + WIDEST] = 1.0f;
        vf a = vf_load(x), b = vf_load(x + WIDEST);
        vf c = vf_load(x + 2 * WIDEST), d = vf_load(x + 3 * WIDEST);
        vf_store(got, test->f32_1   ? test->f32_1(a)
                      : test->f32_2 ? test->f32_2(a, b)
                      : test->f32_3 ? test->f32_3(a, b, c)
                                    : test->f32_4(a, b, c, d));
        for (int64_t k = 0; k < w; k++)
            wanted[k] = test->f32(x + k);
        if (test->same_nan)
            expect_bits32(got, wanted, w);
        else
            expect_f32(got, wanted, w);
    }
}

static void f64_op(const struct test *test)
{
    double x[3 * WIDEST] = { 0 }, got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f64(x, test->f64_3 ? 3 : 2, w);
        vd a = vd_load(x), b = vd_load(x + WIDEST), c = vd_load(x + 2 * WIDEST);
        vd_store(got, test->f64_3 ? test->f64_3(a, b, c) : test->f64_2(a, b));
        for (int64_t k = 0; k < w; k++)
            wanted[k] = test->f64(x + k);
        expect_f64(got, wanted, w);
    }
}

/* Reads the lanes of q, which has no store: its 32-bit halves are exact in f64. */
static void lanes_of(vq q, uint64_t *lanes)
{
    double high[WIDEST], low[WIDEST];

    vd_store(high, vd_from_u32(vq_shr(q, 32)));
    vd_store(low, vd_from_u32(vq_shr(vq_shl(q, 32), 32)));
    for (int64_t k = 0; k < vf_lanes(); k++)
        lanes[k] = plain_from_halves(high[k], low[k]);
}

static void u64_op(const struct test *test)
{
    uint64_t x[2 * WIDEST], got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_u64(x, 2, w);
        lanes_of(test->u64_2(vq_load(x), vq_load(x + WIDEST)), got);
        for (int64_t k = 0; k < w; k++)
            wanted[k] = test->u64(x + k);
        expect_bits64(got, wanted, w);
    }
}

/* The number of bits to shift by is a constant. */
static void shift(const struct test *test)
{
    uint64_t x[WIDEST], got[WIDEST], wanted[WIDEST];
    const int64_t w = vf_lanes();
    const bool left = test->name[5] == 'l';

    draw_u64(x, 1, w);
#define BY(by)                                                                                 \
    for (int64_t k = 0; k < w; k++)                                                            \
        wanted[k] = left ? x[k] << by : x[k] >> by;                                            \
    lanes_of(left ? vq_shl(vq_load(x), by) : vq_shr(vq_load(x), by), got);                     \
    trying("by " #by, 0);                                                                      \
    expect_bits64(got, wanted, w);
    BY(1) BY(2) BY(31) BY(32) BY(33) BY(61) BY(62) BY(63)
#undef BY
}

static void bits_of(const struct test *test)
{
    double x[WIDEST];
    uint64_t got[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f64(x, 1, w);
        lanes_of(vq_from_bits(vd_load(x)), got);
        expect_bits64(got, x, w);
    }
    (void)test;
}

static void any_lt(const struct test *test)
{
    float x[2 * WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED / 8; i++) {
        bool less = false;
        draw_f32(x, 2, w);
        /* mostly no lane, sometimes one */
        for (int64_t k = 0; k < w && i % 4; k++)
            if (k != i % w && x[k] < x[k + WIDEST])
                x[k] = x[k + WIDEST];
        for (int64_t k = 0; k < w; k++)
            less = less || x[k] < x[k + WIDEST];
        expect(vf_any_lt(vf_load(x), vf_load(x + WIDEST)) == less,
               less ? "misses a lane that is less" : "finds a lane that is not less");
    }
    (void)test;
}

/* Any float in one lane of one vector, all other lanes in the range. */
static void none_small(const struct test *test)
{
    float x[4 * WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i++) {
        float any[WIDEST];
        draw_f32(any, 1, w);
        for (int64_t k = 0; k < 4 * WIDEST; k++)
            x[k] =
                ldexpf(k % 2 ? 1.0f + (float)(i % 100) / 128.0f : -1.25f, -(int)((i + k) % 16));
        float *one = &x[i / 4 % w + i % 4 * WIDEST];
        *one = i % 8 ? any[0] : *one;
        uint32_t bits;
        memcpy(&bits, one, sizeof bits);
        const bool none = (bits & 0x38000000) == 0x38000000;
        expect(vf_none_small(vf_load(x), vf_load(x + WIDEST), vf_load(x + 2 * WIDEST),
                             vf_load(x + 3 * WIDEST)) == none,
               none ? "finds what is not small" : "misses what is small");
    }
    (void)test;
}

/* Bits of q other than the tested one are random, and must not matter. */
static void by_bit(const struct test *test)
{
    float x[2 * WIDEST], f32[WIDEST], f32_wanted[WIDEST];
    double y[2 * WIDEST], f64[WIDEST], f64_wanted[WIDEST];
    uint64_t q[WIDEST];
    int64_t w = vf_lanes();
    bool flip = test->name[3] == 'f', wide = test->name[1] == 'd';

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f32(x, 2, w);
        draw_f64(y, 2, w);
        draw_u64(q, 1, w);
        for (int64_t k = 0; k < w; k++) {
            f32_wanted[k] = flip ? q[k] & 2 ? -x[k] : x[k] : x[q[k] & 1 ? k : k + WIDEST];
            f64_wanted[k] = flip ? q[k] & 2 ? -y[k] : y[k] : y[q[k] & 1 ? k : k + WIDEST];
        }
        vf a = vf_load(x), b = vf_load(x + WIDEST);
        vd c = vd_load(y), d = vd_load(y + WIDEST);
        vf_store(f32, flip ? vf_flip_bit1(a, vq_load(q)) : vf_select_bit0(vq_load(q), a, b));
        vd_store(f64, flip ? vd_flip_bit1(c, vq_load(q)) : vd_select_bit0(vq_load(q), c, d));
        if (wide)
            expect_bits64(f64, f64_wanted, w);
        else
            expect_bits32(f32, f32_wanted, w);
    }
}

/* ---- Conversions between types ---- */

static void f64_from_f32(const struct test *test)
{
    float x[WIDEST];
    double got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f32(x, 1, w);
        for (int64_t k = 0; k < w; k++)
            wanted[k] = (double)x[k];
        vd_store(got, vd_from_vf(vf_load(x)));
        expect_f64(got, wanted, w);
    }
    (void)test;
}

static void f32_from_f64(const struct test *test)
{
    double x[WIDEST];
    float got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_f64(x, 1, w);
        for (int64_t k = 0; k < w; k++)
            wanted[k] = plain_from_f64(x[k]);
        vf_store(got, vf_from_vd(vd_load(x)));
        expect_f32(got, wanted, w);
    }
    (void)test;
}

static void turns_from_f64(const struct test *test)
{
    double x[2 * WIDEST];
    float got[2 * WIDEST], wanted[2 * WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        vf lo, hi;
        draw_f64(x, 1, 2 * w);
        for (int64_t k = 0; k < 2 * w; k++)
            wanted[k] = plain_from_f64(x[k % 2 ? w + k / 2 : k / 2]);
        vf_zip_from_vd(vd_load(x), vd_load(x + w), &lo, &hi);
        vf_store(got, lo);
        vf_store(got + w, hi);
        expect_f32(got, wanted, 2 * w);
    }
    (void)test;
}

static void f64_from_int(const struct test *test)
{
    uint64_t x[WIDEST];
    double got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();
    bool is_signed = test->name[8] == 'i';

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        draw_u64(x, 1, w);
        for (int64_t k = 0; k < w; k++) {
            x[k] &= is_signed ? UINT64_MAX : UINT32_MAX;
            wanted[k] = plain_from_i64(x[k]);
        }
        vd_store(got, is_signed ? vd_from_i64(vq_load(x)) : vd_from_u32(vq_load(x)));
        expect_f64(got, wanted, w);
    }
}

/* ---- Permutations ---- */

static void permutation(const struct test *test)
{
    float x[2 * WIDEST], got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED && w > 1; i += w) {
        draw_f32(x, 2, w);
        vf a = vf_load(x), b = vf_load(x + WIDEST);
        vf_store(got, test->f32_1 ? test->f32_1(a) : test->f32_2(a, b));
        for (int64_t k = 0; k < w; k++) {
            int64_t from = test->source(k, w);
            wanted[k] = x[from < w ? from : from - w + WIDEST];
        }
        expect_bits32(got, wanted, w);
    }
}

static int64_t zipped(int64_t k, int64_t w) { return k / 2 + (k % 2 ? w : 0); }
static int64_t zipped_hi(int64_t k, int64_t w) { return zipped(k + w, w); }
static int64_t swapped(int64_t k, int64_t w)
{
    (void)w;
    return k ^ 1;
}

static void lookup(const struct test *test)
{
    float x[WIDEST], got[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        int32_t first = (int32_t)(draw_below(1 << 30)) - (i % 2 ? 1 << 29 : 0);
        int32_t *index = edge_memory(AT_END, (size_t)w * sizeof *index);
        draw_f32(x, 1, w);
        for (int64_t k = 0; k < w; k++) /* indices without a lane, too */
            index[k] = first + (int32_t)draw_below((uint64_t)(i % 4 ? w : 3 * w)) -
                       (i % 4 ? 0 : (int32_t)w);
        vf_store(got, vf_lookup(vf_load(x), index, first));
        for (int64_t k = 0; k < w; k++)
            if (index[k] >= first && index[k] - first < w)
                expect_bits32(got + k, x + (index[k] - first), 1);
    }
    (void)test;
}

static void lookup2(const struct test *test)
{
    float x[2 * WIDEST], got[WIDEST];
    const int64_t w = vf_lanes();

    for (int64_t i = 0; i < VALUES_TRIED; i += w) {
        int32_t *index = edge_memory(AT_END, (size_t)w * sizeof *index);
        draw_f32(x, 2, w);
        for (int64_t k = 0; k < w; k++)
            index[k] = (int32_t)draw_below((uint64_t)(2 * w));
        vf_store(got, vf_lookup2(vf_load(x), vf_load(x + WIDEST), index));
        for (int64_t k = 0; k < w; k++)
            expect_bits32(got + k, x + (index[k] < w ? index[k] : WIDEST + index[k] - w), 1);
    }
    (void)test;
}

static void same_in_all(const struct test *test)
{
    float x, f32[WIDEST];
    double y, f64[WIDEST];
    uint64_t q, u64[WIDEST];

    for (int64_t i = 0; i < VALUES_TRIED / 8; i++) {
        draw_f32(&x, 1, 1);
        draw_f64(&y, 1, 1);
        draw_u64(&q, 1, 1);
        vf_store(f32, vf_set1(x));
        vd_store(f64, vd_set1(y));
        lanes_of(vq_set1(q), u64);
        for (int64_t k = 0; k < vf_lanes(); k++)
            if (test->name[1] == 'f')
                expect_bits32(f32 + k, &x, 1);
            else if (test->name[1] == 'd')
                expect_bits64(f64 + k, &y, 1);
            else
                expect_bits64(u64 + k, &q, 1);
    }
}

static void counting(const struct test *test)
{
    float got[WIDEST];

    vf_store(got, vf_iota());
    for (int64_t k = 0; k < vf_lanes(); k++)
        expect(got[k] == (float)k, "lane i does not hold i");
    (void)test;
}

static void lanes_are_few(const struct test *test)
{
    expect_lanes(vf_lanes());
    (void)test;
}

#endif
