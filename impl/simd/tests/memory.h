/*
 * Tests of primitives that load and store, for one ISA: at the end and at the start of accessible memory, for each n.
 * Conversions of 16 bits are checked for every bit pattern.
 */
#ifndef POSENC_SIMD_TESTS_MEMORY_H
#define POSENC_SIMD_TESTS_MEMORY_H

#include "operations.h"

static vf load_of(const struct test *test, const void *p, int64_t n)
{
    switch (test->type) {
    case POSENC_DTYPE_F16:
        return test->whole ? vf_load_f16(p) : vf_load_f16_n(p, n);
    case POSENC_DTYPE_BF16:
        return test->whole ? vf_load_bf16(p) : vf_load_bf16_n(p, n);
    case POSENC_DTYPE_F32:
        break;
    }
    return test->whole ? vf_load(p) : vf_load_n(p, n);
}

static void store_of(const struct test *test, void *p, vf v, int64_t n)
{
    if (test->type == POSENC_DTYPE_F16 && test->whole)
        vf_store_f16(p, v);
    else if (test->type == POSENC_DTYPE_F16)
        vf_store_f16_n(p, v, n);
    else if (test->type == POSENC_DTYPE_BF16 && test->whole)
        vf_store_bf16(p, v);
    else if (test->type == POSENC_DTYPE_BF16)
        vf_store_bf16_n(p, v, n);
    else if (test->whole)
        vf_store(p, v);
    else if (test->cold)
        vf_store_cold_n(p, v, n);
    else
        vf_store_n(p, v, n);
}

static const char *edge_name(enum edge edge)
{
    return edge == AT_END ? "at the end of memory" : "at the start of memory";
}

/* Loads n elements at p; further lanes have to be zero. */
static void try_load(const struct test *test, const void *p, int64_t n)
{
    float got[WIDEST], wanted[WIDEST] = { 0 };

    vf_store(got, load_of(test, p, n));
    if (test->type == POSENC_DTYPE_F32) {
        memcpy(wanted, p, (size_t)n * sizeof *wanted);
        expect_bits32(got, wanted, vf_lanes());
        return;
    }
    for (int64_t k = 0; k < n; k++)
        wanted[k] = plain_widen(test->type, ((const uint16_t *)p)[k]);
    expect_f32(got, wanted, vf_lanes());
}

static void loads(const struct test *test)
{
    uint64_t bits[WIDEST];
    uint16_t halves[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t n = test->whole ? w : 1; n <= w; n++)
        for (enum edge edge = AT_END; edge <= AT_START; edge++) {
            size_t size = (size_t)n * posenc_dtype_size(test->type);
            void *p = edge_memory(edge, size);
            draw_u64(bits, 1, WIDEST);
            memcpy(p, bits, size);
            trying(edge_name(edge), n);
            try_load(test, p, n);
        }
    trying("each pattern of 16 bits", 0);
    for (int64_t from = 0; from <= UINT16_MAX && test->type != POSENC_DTYPE_F32; from += w) {
        for (int64_t k = 0; k < w; k++)
            halves[k] = (uint16_t)(from + k);
        try_load(test, halves, w);
    }
}

/* Stores n values to p. */
static void try_store(const struct test *test, void *p, const float *values, int64_t n)
{
    uint16_t wanted[WIDEST];

    store_of(test, p, vf_load(values), n);
    if (test->type == POSENC_DTYPE_F32) {
        expect_bits32(p, values, n);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        wanted[k] = plain_narrow(test->type, values[k]);
    expect_halves(p, wanted, n, test->type);
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

static void stores(const struct test *test)
{
    float values[4 * WIDEST];
    uint16_t halves[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t n = test->whole ? w : 1; n <= w; n++)
        for (enum edge edge = AT_END; edge <= AT_START; edge++) {
            size_t size = (size_t)n * posenc_dtype_size(test->type);
            void *p = edge_memory(edge, size);
            draw_f32(values, 1, w);
            trying(edge_name(edge), n);
            try_store(test, p, values, n);
            expect_untouched(p, size);
        }
    if (test->type == POSENC_DTYPE_F32)
        return;
    for (int nan = 0; nan < SOME_NANS; nan++)
        for (int64_t k = 0; k < w; k++) {
            one_nan_of(values, w, nan, k);
            try_store(test, halves, values, w);
        }
    trying("at and around each pattern of 16 bits", 0);
    for (int64_t from = 0; from <= UINT16_MAX; from += w) {
        for (int64_t k = 0; k < w; k++)
            around(test->type, (uint16_t)(from + k), values + 4 * k);
        for (int64_t part = 0; part < 4; part++)
            try_store(test, halves, values + part * w, w);
    }
}

/* Stores and loads whole vectors of bf16 pairs: at edges of memory, for each pattern and numbers around it. */
static void try_pairs(uint16_t *p, const float *values)
{
    float even[WIDEST], odd[WIDEST], a[WIDEST], b[WIDEST];
    uint16_t wanted[2 * WIDEST];
    vf x, y;
    int64_t w = vf_lanes();

    for (int64_t k = 0; k < w; k++) {
        a[k] = values[2 * k];
        b[k] = values[2 * k + 1];
        wanted[2 * k] = plain_narrow(POSENC_DTYPE_BF16, a[k]);
        wanted[2 * k + 1] = plain_narrow(POSENC_DTYPE_BF16, b[k]);
    }
    vf_store_bf16_pairs(p, vf_load(a), vf_load(b));
    expect_halves(p, wanted, 2 * w, POSENC_DTYPE_BF16);
    vf_load_bf16_pairs(p, &x, &y);
    vf_store(even, x);
    vf_store(odd, y);
    for (int64_t k = 0; k < w; k++) {
        a[k] = plain_widen(POSENC_DTYPE_BF16, wanted[2 * k]);
        b[k] = plain_widen(POSENC_DTYPE_BF16, wanted[2 * k + 1]);
    }
    expect_f32(even, a, w);
    expect_f32(odd, b, w);
}

static void bf16_pairs(const struct test *test)
{
    float values[4 * WIDEST + 1], rows[2 * WIDEST];
    uint16_t halves[2 * WIDEST];
    int64_t w = vf_lanes();
    size_t size = (size_t)(2 * w) * sizeof *halves;
    bool pairs = vf_prefers_bf16_pairs();

    for (int i = 0; i < 256; i++) {
        const enum edge edge = i % 2 ? AT_END : AT_START;
        uint16_t *p = edge_memory(edge, size);
        draw_f32(rows, 2, w);
        memcpy(values, rows, (size_t)w * sizeof *rows);
        memcpy(values + w, rows + WIDEST, (size_t)w * sizeof *rows);
        trying(edge_name(edge), i);
        try_pairs(p, values);
        expect_untouched(p, size);
    }
    for (int nan = 0; nan < SOME_NANS; nan++)
        for (int64_t k = 0; k < 2 * w; k++) {
            one_nan_of(values, 2 * w, nan, k);
            try_pairs(halves, values);
        }
    trying("at and around each pattern of 16 bits", 0);
    for (int64_t from = 0; from <= UINT16_MAX; from += w) {
        for (int64_t k = 0; k < w; k++)
            around(POSENC_DTYPE_BF16, (uint16_t)(from + k), values + 4 * k);
        values[4 * w] = *values;
        for (int64_t start = 0; start < 2; start++) { /* each number once even, once odd */
            try_pairs(halves, values + start);
            try_pairs(halves, values + start + 2 * w);
        }
    }
    expect(vf_prefers_bf16_pairs() == pairs, "two calls return different values");
    (void)test;
}

static void load_pairs(const struct test *test)
{
    uint64_t bits[WIDEST];
    float a[WIDEST], b[WIDEST], a_wanted[WIDEST], b_wanted[WIDEST];
    int64_t w = vf_lanes();

    for (int64_t n = 1; n <= w; n++)
        for (enum edge edge = AT_END; edge <= AT_START; edge++) {
            float *p = edge_memory(edge, (size_t)n * sizeof *bits);
            vf even, odd;
            draw_u64(bits, 1, WIDEST);
            memcpy(p, bits, (size_t)n * sizeof *bits);
            memset(a_wanted, 0, sizeof a_wanted);
            memset(b_wanted, 0, sizeof b_wanted);
            for (int64_t k = 0; k < n; k++) {
                memcpy(a_wanted + k, p + 2 * k, sizeof *p);
                memcpy(b_wanted + k, p + 2 * k + 1, sizeof *p);
            }
            trying(edge_name(edge), n);
            vf_load2_n(p, n, &even, &odd);
            vf_store(a, even);
            vf_store(b, odd);
            expect_bits32(a, a_wanted, w);
            expect_bits32(b, b_wanted, w);
        }
    (void)test;
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

static void store_pairs(const struct test *test)
{
    float x[2 * WIDEST], wanted[2 * WIDEST];
    int64_t w = vf_lanes();

    for (int64_t n = 1; n <= w; n++)
        for (enum edge edge = AT_END; edge <= AT_START; edge++) {
            float *p = edge_memory(edge, (size_t)n * 2 * sizeof *p);
            draw_f32(x, 2, w);
            for (int64_t k = 0; k < n; k++) {
                wanted[2 * k] = x[k];
                wanted[2 * k + 1] = x[k + WIDEST];
            }
            trying(edge_name(edge), n);
            vf_store2_n(p, vf_load(x), vf_load(x + WIDEST), n);
            expect_untouched(p, (size_t)n * 2 * sizeof *p);
            expect_bits32(p, wanted, 2 * n);
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

/* Where masked stores are fast, one between two others writes its lanes only. */
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

static void streaming(const struct test *test)
{
    float values[2 * WIDEST];
    int64_t w = vf_lanes();
    size_t size = (size_t)w * sizeof *values;
    bool streams = vf_has_streams();

    for (int64_t i = 0; i < 64; i++) {
        char *p = edge_memory(AT_START, 2 * size);
        draw_f32(values, 2, w);
        vf_stream((float *)p, vf_load(values));
        vf_stream((float *)(p + size), vf_load(values + WIDEST));
        vf_stream_end();
        expect_untouched(p, 2 * size);
        expect_bits32(p, values, w);
        expect_bits32(p + size, values + WIDEST, w);
        uint16_t wanted[2][WIDEST];
        vf_store_f16(wanted[0], vf_load(values));
        vf_store_bf16(wanted[1], vf_load(values + WIDEST));
        p = edge_memory(AT_START, size);
        vf_stream_f16((uint16_t *)p, vf_load(values));
        vf_stream_bf16((uint16_t *)(p + size / 2), vf_load(values + WIDEST));
        vf_stream_end();
        expect_untouched(p, size);
        expect(memcmp(p, wanted[0], size / 2) == 0, "f16 is another than is stored");
        expect(memcmp(p + size / 2, wanted[1], size / 2) == 0,
               "bf16 is another than is stored");
    }
    expect(vf_has_streams() == streams, "two calls return different values");
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
