/*
 * Tests of primitives that load and store, for one ISA: at the end and at the start of accessible memory, for each n.
 * Conversions of 16 bits are checked for every bit pattern.
 */
#ifndef POSENC_SIMD_TESTS_MEMORY_H
#define POSENC_SIMD_TESTS_MEMORY_H

#include "operations.h"

/* Returns the elements of each lane: two of a primitive with pairs. */
static int64_t per_lane(const struct test *test)
{
    return test->access == PAIRS || test->access == PAIRS_N ? 2 : 1;
}

/* Returns the least number of lanes that a primitive loads or stores. */
static int64_t least_lanes(const struct test *test)
{
    return test->access == WHOLE || test->access == STREAM || test->access == PAIRS ? vf_lanes()
                                                                                    : 1;
}

static vf load_lanes(const struct test *test, const void *p, int64_t n)
{
    const bool whole = test->access == WHOLE;

    switch (test->type) {
    case POSENC_DTYPE_F16:
        return whole ? vf_load_f16(p) : vf_load_f16_n(p, n);
    case POSENC_DTYPE_BF16:
        return whole ? vf_load_bf16(p) : vf_load_bf16_n(p, n);
    case POSENC_DTYPE_F32:
        break;
    }
    return whole ? vf_load(p) : vf_load_n(p, n);
}

static void store_lanes(const struct test *test, void *p, vf v, int64_t n)
{
    const bool whole = test->access == WHOLE, stream = test->access == STREAM;

    if (test->type == POSENC_DTYPE_F16 && stream)
        vf_stream_f16(p, v);
    else if (test->type == POSENC_DTYPE_F16 && whole)
        vf_store_f16(p, v);
    else if (test->type == POSENC_DTYPE_F16)
        vf_store_f16_n(p, v, n);
    else if (test->type == POSENC_DTYPE_BF16 && stream)
        vf_stream_bf16(p, v);
    else if (test->type == POSENC_DTYPE_BF16 && whole)
        vf_store_bf16(p, v);
    else if (test->type == POSENC_DTYPE_BF16)
        vf_store_bf16_n(p, v, n);
    else if (stream)
        vf_stream(p, v);
    else if (whole)
        vf_store(p, v);
    else if (test->access == COLD_N)
        vf_store_cold_n(p, v, n);
    else
        vf_store_n(p, v, n);
}

/* Loads n lanes. The elements of a pair lie beside each other in `got`. */
static void load_elements(const struct test *test, const void *p, int64_t n, float *got)
{
    float a[WIDEST], b[WIDEST];
    vf x, y;

    if (per_lane(test) == 1) {
        vf_store(got, load_lanes(test, p, n));
        return;
    }
    if (test->type == POSENC_DTYPE_BF16)
        vf_load_bf16_pairs(p, &x, &y);
    else
        vf_load2_n(p, n, &x, &y);
    vf_store(a, x);
    vf_store(b, y);
    for (int64_t k = 0; k < vf_lanes(); k++) {
        got[2 * k] = a[k];
        got[2 * k + 1] = b[k];
    }
}

static void store_elements(const struct test *test, void *p, const float *values, int64_t n)
{
    float a[WIDEST], b[WIDEST];

    for (int64_t k = 0; k < vf_lanes(); k++) {
        a[k] = values[per_lane(test) * k];
        b[k] = values[per_lane(test) * k + per_lane(test) - 1];
    }
    if (per_lane(test) == 1)
        store_lanes(test, p, vf_load(a), n);
    else if (test->type == POSENC_DTYPE_BF16)
        vf_store_bf16_pairs(p, vf_load(a), vf_load(b));
    else
        vf_store2_n(p, vf_load(a), vf_load(b), n);
    if (test->access == STREAM)
        vf_stream_end();
}

static const char *edge_name(enum edge edge)
{
    return edge == AT_END ? "at the end of memory" : "at the start of memory";
}

/* Loads n lanes at p; further lanes have to be zero. */
static void try_load(const struct test *test, const void *p, int64_t n)
{
    float got[2 * WIDEST], wanted[2 * WIDEST] = { 0 };
    const int64_t all = vf_lanes() * per_lane(test), elements = n * per_lane(test);

    load_elements(test, p, n, got);
    if (test->type == POSENC_DTYPE_F32) {
        memcpy(wanted, p, (size_t)elements * sizeof *wanted);
        expect_bits32(got, wanted, all);
        return;
    }
    for (int64_t k = 0; k < elements; k++)
        wanted[k] = plain_widen(test->type, ((const uint16_t *)p)[k]);
    expect_f32(got, wanted, all);
}

/* Loads of each number of lanes at either end of a page; then every pattern of 16 bits. The second pass of pairs starts one
 * pattern later, so that each pattern is also the second of a pair. */
static void loads(const struct test *test)
{
    uint64_t bits[WIDEST];
    uint16_t halves[2 * WIDEST];
    const int64_t w = vf_lanes(), per = per_lane(test);

    for (int64_t n = least_lanes(test); n <= w; n++)
        for (enum edge edge = AT_END; edge <= AT_START; edge++) {
            size_t size = (size_t)(n * per) * posenc_dtype_size(test->type);
            void *p = edge_memory(edge, size);
            draw_u64(bits, 1, WIDEST);
            memcpy(p, bits, size);
            trying(edge_name(edge), n);
            try_load(test, p, n);
        }
    trying("each pattern of 16 bits", 0);
    for (int64_t from = 0; from < per * (UINT16_MAX + 1) && test->type != POSENC_DTYPE_F32;
         from += w) {
        for (int64_t k = 0; k < w * per; k++)
            halves[k] = (uint16_t)(from + k + from / (UINT16_MAX + 1));
        try_load(test, halves, w);
    }
}

/* Stores n lanes to p. */
static void try_store(const struct test *test, void *p, const float *values, int64_t n)
{
    uint16_t wanted[2 * WIDEST];
    const int64_t elements = n * per_lane(test);

    store_elements(test, p, values, n);
    if (test->type == POSENC_DTYPE_F32) {
        expect_bits32(p, values, elements);
        return;
    }
    for (int64_t k = 0; k < elements; k++)
        wanted[k] = plain_narrow(test->type, values[k]);
    expect_halves(p, wanted, elements, test->type);
}

/* Returns four numbers around a 16-bit pattern: its value, the tie above it, and the neighbours of the tie. */
static void around(enum posenc_dtype type, uint16_t half, float *four)
{
    float value = plain_widen(type, half), next = plain_widen(type, (uint16_t)(half + 1));
    double tie = ((double)value + (double)next) / 2.0;

    if (isinf(next) && !isinf(value)) /* the tie below infinity, as if exponents continued */
        tie = (double)value +
              ((double)value - (double)plain_widen(type, (uint16_t)(half - 1))) / 2.0;
    four[0] = value;
    four[1] = (float)tie;
    four[2] = nextafterf(four[1], INFINITY);
    four[3] = nextafterf(four[1], -INFINITY);
}

/* NaNs that rounding as a number would make zero, that truncation would make infinite, and others. */
static const uint32_t some_nans[] = { 0x7fffffff, 0xffffffff, 0x7f800001, 0xff800001,
                                      0x7f808000, 0xff80ffff, 0x7fbfffff, 0xffc00000 };
enum { SOME_NANS = sizeof some_nans / sizeof *some_nans };

/* Fills n ordinary numbers with one of these NaNs in lane k. */
static void one_nan_of(float *values, int64_t n, int nan, int64_t k)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = 1.0f;
    memcpy(values + k, some_nans + nan, sizeof *values);
    trying("one NaN among numbers", k);
}

/* A streaming store needs an address that is a multiple of its size. */
static void stores(const struct test *test)
{
    float values[8 * WIDEST + 1];
    _Alignas(2 * WIDEST) uint16_t halves[2 * WIDEST];
    const int64_t w = vf_lanes(), per = per_lane(test), all = w * per;

    for (int64_t n = least_lanes(test); n <= w; n++)
        for (enum edge edge = test->access == STREAM ? AT_START : AT_END; edge <= AT_START;
             edge++) {
            size_t size = (size_t)(n * per) * posenc_dtype_size(test->type);
            void *p = edge_memory(edge, size);
            draw_f32(values, 1, all);
            trying(edge_name(edge), n);
            try_store(test, p, values, n);
            expect_untouched(p, size);
        }
    if (test->type == POSENC_DTYPE_F32)
        return;
    for (int nan = 0; nan < SOME_NANS; nan++)
        for (int64_t k = 0; k < all; k++) {
            one_nan_of(values, all, nan, k);
            try_store(test, halves, values, w);
        }
    trying("at and around each pattern of 16 bits", 0);
    for (int64_t from = 0; from <= UINT16_MAX; from += all) {
        for (int64_t k = 0; k < all; k++)
            around(test->type, (uint16_t)(from + k), values + 4 * k);
        values[4 * all] = *values;
        for (int64_t part = 0; part < 4; part++)
            for (int64_t start = 0; start < per; start++) /* each once even, once odd */
                try_store(test, halves, values + start + part * all, w);
    }
}

/* With one lane there is nothing to check. */
static void load_twice(const struct test *test)
{
    uint64_t bits[WIDEST];
    float got[WIDEST], wanted[WIDEST];
    int64_t w = vf_lanes(), half = w / 2;

    for (enum edge edge = AT_END; edge <= AT_START && half > 0; edge++) {
        float *p = edge_memory(edge, (size_t)half * sizeof *p);
        draw_u64(bits, 1, WIDEST);
        memcpy(p, bits, (size_t)half * sizeof *p);
        for (int64_t k = 0; k < w; k++)
            memcpy(wanted + k, p + k / 2, sizeof *p);
        trying(edge_name(edge), half);
        vf_store(got, vf_load_twice(p));
        expect_bits32(got, wanted, w);
    }
    (void)test;
}

/* Gathers from a near base, and from one so far below the data that byte offsets exceed 32 bits. */
static void gathers(const struct test *test)
{
    enum { ELEMENTS = 100 };
    int64_t w = vf_lanes();

    for (int64_t i = 0; i < 64 * w; i++) {
        int64_t n = i % w + 1;
        int32_t far = i / w % 2 ? INT32_MAX - ELEMENTS : 0;
        float *data = edge_memory(i / w % 4 < 2 ? AT_END : AT_START, ELEMENTS * sizeof *data);
        int32_t *index = other_edge_memory(AT_END, (size_t)n * sizeof *index);
        float got[WIDEST], wanted[WIDEST] = { 0 }, x[WIDEST];

        for (int64_t k = 0; k < ELEMENTS; k++) {
            draw_f32(x, 1, 1);
            data[k] = x[0];
        }
        for (int64_t k = 0; k < n; k++) {
            uint64_t element =
                k % 3 ? draw_below(ELEMENTS) : (uint64_t)(k % 2 ? 0 : ELEMENTS - 1);
            index[k] = far + (int32_t)element;
            wanted[k] = data[element];
        }
        trying(far ? "from a far base" : "from a near base", n);
        vf_store(got,
                 vf_gather_n((const float *)((uintptr_t)data - (uintptr_t)far * sizeof *data),
                             index, n));
        expect_bits32(got, wanted, w);
    }
    (void)test;
}

static void expect_rows(vf a, vf b, vf c, vf d, float wanted[4][WIDEST])
{
    float got[4][WIDEST];

    vf_store(got[0], a);
    vf_store(got[1], b);
    vf_store(got[2], c);
    vf_store(got[3], d);
    for (int part = 0; part < 4; part++)
        expect_bits32(got[part], wanted[part], vf_lanes());
}

/* Gathers rows of four elements between inaccessible pages, the first and the last row included. */
static void gathers_rows(const struct test *test)
{
    enum { ROWS = 50 };
    int64_t w = vf_lanes();

    for (int i = 0; i < 64; i++) {
        float *data = edge_memory(i % 2 ? AT_END : AT_START, ROWS * 4 * sizeof *data);
        int32_t *index = other_edge_memory(AT_END, (size_t)w * sizeof *index);
        float wanted[4][WIDEST], x[WIDEST];
        vf a, b, c, d;

        for (int64_t k = 0; k < ROWS * 4; k++) {
            draw_f32(x, 1, 1);
            data[k] = x[0];
        }
        for (int64_t k = 0; k < w; k++) {
            index[k] = k % 3 ? (int32_t)draw_below(ROWS) : k % 2 ? 0 : ROWS - 1;
            for (int64_t part = 0; part < 4; part++)
                wanted[part][k] = data[4 * index[k] + part];
        }
        trying("rows of four", w);
        vf_gather4(data, index, &a, &b, &c, &d);
        expect_rows(a, b, c, d, wanted);
    }
    (void)test;
}

/* Loads rows of four at a stride, from the first float of a page on or up to its last one. 64 rows fit into a page. */
static void loads_rows(const struct test *test)
{
    const int64_t strides[] = { 1, 4, 5, 16, 15, 0, -1, -4, -13 }, w = vf_lanes();

    for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
        for (int end = 0; end < 2; end++) {
            const int64_t stride = strides[s], before = stride < 0 ? -stride * (w - 1) : 0;
            const int64_t n = (stride < 0 ? before : stride * (w - 1)) + 4;
            float *data = edge_memory(end ? AT_END : AT_START, (size_t)n * sizeof *data);
            float wanted[4][WIDEST];
            vf a, b, c, d;

            draw_f32(data, 1, n);
            for (int64_t k = 0; k < w; k++)
                for (int64_t part = 0; part < 4; part++)
                    wanted[part][k] = data[before + k * stride + part];
            trying("rows of four at a stride of", stride);
            vf_load4(data + before, stride, &a, &b, &c, &d);
            expect_rows(a, b, c, d, wanted);
        }
    (void)test;
}

/* A store of n lanes in the middle of an array writes these alone, with masks or without. vf_has_masks() is constant. */
static void masks(const struct test *test)
{
    const bool has = vf_has_masks();
    float values[WIDEST], around[3 * WIDEST], wanted[3 * WIDEST];
    const int64_t w = vf_lanes();

    draw_f32(values, 1, w);
    for (int64_t n = 1; n <= w; n++) {
        for (int64_t k = 0; k < 3 * w; k++)
            around[k] = wanted[k] = -7.0f;
        memcpy(wanted + w, values, (size_t)n * sizeof *values);
        vf_store_cold_n(around + w, vf_load(values), n);
        expect_bits32(around, wanted, w);
        expect_bits32(around + w, wanted + w, w);
        expect_bits32(around + 2 * w, wanted + 2 * w, w);
    }
    expect(vf_has_masks() == has, "two calls return different values");
    (void)test;
}

/* Choices between ways of storing are the same at each call. */
static void choices(const struct test *test)
{
    const bool streams = vf_has_streams(), pairs = vf_prefers_bf16_pairs();

    for (int i = 0; i < 8; i++)
        expect(vf_has_streams() == streams && vf_prefers_bf16_pairs() == pairs,
               "two calls return different values");
    (void)test;
}

/* Loads and stores whole vectors of f64 and u64. */
static void wide_memory(const struct test *test)
{
    uint64_t bits[WIDEST], got[WIDEST];
    size_t size = (size_t)vf_lanes() * sizeof *bits;

    for (enum edge edge = AT_END; edge <= AT_START; edge++) {
        void *p = edge_memory(edge, size);
        draw_u64(bits, 1, WIDEST);
        trying(edge_name(edge), 0);
        if (test->name[3] == 's') {
            vd_store(p, vd_load((const double *)bits));
            expect_untouched(p, size);
            expect_bits64(p, bits, vf_lanes());
            continue;
        }
        memcpy(p, bits, size);
        if (test->name[1] == 'd')
            vd_store((double *)got, vd_load(p));
        else
            lanes_of(vq_load(p), got);
        expect_bits64(got, bits, vf_lanes());
    }
}

#endif
