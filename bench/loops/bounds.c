/*
 * Loops of bounds.h for one instruction set. bench/meson.build compiles this file once for each, with the compiler flags
 * of its backend, and sets POSENC_ISA to its name, such as avx2, and POSENC_SIMD to its header. Vector operations (vf_*:
 * f32, vd_*: the same number of f64) are those of impl/simd; `w` is the number of lanes.
 *
 * A kernel's constants are constants here, too. Data that a kernel reads are read here at an address that differs in
 * each iteration, so that no compiler moves them out of the loop. That is why arrays hold repeated numbers.
 */
#include "bounds.h"
#include "impl/kernels/biases.h"
#include "impl/kernels/dtype.h"

/* Initialisers of an array: numbers that are repeated 8 or 16 times. */
#define TIMES_4(...)  __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define TIMES_8(...)  TIMES_4(__VA_ARGS__, __VA_ARGS__)
#define TIMES_16(...) TIMES_4(TIMES_4(__VA_ARGS__))

/* LOOP(rotate) is the head of the function bound_rotate_avx2(). The macros in between expand POSENC_ISA. */
#define BOUND_NAME_OF(kind, isa) BOUND_NAME(kind, isa)
#define LOOP_OF(kind, isa)       BOUND(kind, isa)
#define LOOP(kind)               LOOP_OF(kind, POSENC_ISA)

#include "rotations.h"
#include "tables.h"
#include "moves.h"

/* ---- Conversions: tables from f64 to f32, elements of 16 bits to f32 and back ---- */

/* Numbers of a table before rounding. */
static const double conversion_source[128] = { TIMES_16(0.7, -0.71, 0.72, -0.73, 0.74, -0.75,
                                                        0.76, -0.77) };

/* Returns numbers of a table, rounded from f64 to f32. */
SIMD_INLINE vf load_rounded_constants(int64_t i)
{
    return vf_from_vd(vd_load(conversion_source + i % 64));
}

/* Returns numbers that a kernel computed: those at `wide` in f32, or without `wide` numbers rounded from f64. */
SIMD_INLINE vf load_constants(const float *wide, int64_t i)
{
    return wide ? vf_load(wide + i % 64) : load_rounded_constants(i);
}

/* Returns n numbers to store as `type`: in f32 the sum of src and a table, in 16 bits src; without src, constants. */
SIMD_INLINE vf load_numbers(enum posenc_dtype type, const void *src, const float *wide,
                            int64_t i, int64_t n)
{
    vf value = src ? load_as(type, src, i, n) : load_constants(wide, i);
    return src && type == POSENC_DTYPE_F32 ? vf_add(value, load_rounded_constants(i)) : value;
}

/* Converts n elements to `type`, four vectors at a time, after reading all of them. */
SIMD_INLINE void convert(enum posenc_dtype type, void *dst, const void *src, const float *wide,
                         int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;
    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = vf_pin(load_numbers(type, src, wide, i, w)),
           b = vf_pin(load_numbers(type, src, wide, i + w, w));
        vf c = vf_pin(load_numbers(type, src, wide, i + 2 * w, w));
        vf d = vf_pin(load_numbers(type, src, wide, i + 3 * w, w));
        store_as(type, dst, i, a, w);
        store_as(type, dst, i + w, b, w);
        store_as(type, dst, i + 2 * w, c, w);
        store_as(type, dst, i + 3 * w, d, w);
    }
    for (; i < n; i += w) {
        const int64_t part = n - i < w ? n - i : w;
        store_as(type, dst, i, load_numbers(type, src, wide, i, part), part);
    }
}

/* Converts n elements to bf16, in pairs of adjacent elements if that is faster. */
SIMD_INLINE void convert_bf16(uint16_t *dst, const uint16_t *src, const float *wide, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;
    for (; vf_prefers_bf16_pairs() && i + 2 * w <= n; i += 2 * w) {
        vf even = load_constants(wide, i), odd = load_constants(wide, i + w);
        if (src)
            vf_load_bf16_pairs(src + i, &even, &odd);
        vf_store_bf16_pairs(dst + i, even, odd);
    }
    convert(POSENC_DTYPE_BF16, dst + i, src ? src + i : NULL, wide, n - i);
}

/* The loops get n in floats: 2 n elements of 16 bits. */
LOOP(from_f64)
{
    (void)third;
    convert(POSENC_DTYPE_F32, dst, src, NULL, (int64_t)n);
}

LOOP(f16) { convert(POSENC_DTYPE_F16, dst, src, third, 2 * (int64_t)n); }
LOOP(bf16) { convert_bf16((uint16_t *)dst, (const uint16_t *)src, third, 2 * (int64_t)n); }

/* Defines a loop that adds to src, or writes its results without src. The call is written twice, so that the compiler
 * makes separate code for both. */
#define LOOP_ADDING(kind, call)                                                                \
    LOOP(kind)                                                                                 \
    {                                                                                          \
        (void)third;                                                                           \
        if (src) {                                                                             \
            call;                                                                              \
            return;                                                                            \
        }                                                                                      \
        src = NULL;                                                                            \
        call;                                                                                  \
    }

/* Writes four vectors from dst + i on, `step` floats apart, each added to src; reads src before it writes. */
SIMD_INLINE void put_strided(float *dst, const float *src, int64_t i, int64_t step, vf a, vf b,
                             vf c, vf d)
{
    a = vf_pin(add_onto(src, i, a));
    b = vf_pin(add_onto(src, i + step, b));
    c = vf_pin(add_onto(src, i + 2 * step, c));
    d = vf_pin(add_onto(src, i + 3 * step, d));
    vf_store(dst + i, a);
    vf_store(dst + i + step, b);
    vf_store(dst + i + 2 * step, c);
    vf_store(dst + i + 3 * step, d);
}

/* ---- Tables ---- */

#define TABLE_ROW (third ? third - dst : (int64_t)n / BOUND_ROWS)
LOOP_ADDING(table, write_table(false, dst, src, TABLE_ROW, (int64_t)n))
LOOP_ADDING(table_interleaved, write_table(true, dst, src, TABLE_ROW, (int64_t)n))
#undef TABLE_ROW

static const float some_angles[128] = { TIMES_16(0.3f, 1.7f, 2.9f, 4.4f, 5.9f, 100.6f, 1000.2f,
                                                 1e5f) };

/* Like kernels, it works on three vectors at once: scales and stores one, evaluates the next, reduces the third. */
LOOP(angles)
{
    const int64_t w = vf_lanes();
    const vf one = vf_set1(1.0f);
    vq q, q_second, q_third;
    vd c, s;
    (void)third;
    sincos_short(angles_reduced(vf_load(some_angles), &q), &c, &s);
    vd r = angles_reduced(vf_load(some_angles + w), &q_second);
    for (int64_t i = 0; i + 2 * w <= (int64_t)n; i += 2 * w) {
        vd r_third = angles_reduced(vf_load(some_angles + i / 2 % 64), &q_third);
        vf cosine, sine;
        sincos_scaled(q, c, s, one, one, &cosine, &sine);
        vf_store(dst + i, add_onto(src, i, sine));
        vf_store(dst + i + w, add_onto(src, i + w, cosine));
        sincos_short(r, &c, &s);
        r = r_third;
        q = q_second;
        q_second = q_third;
    }
}

/* ---- Rotations ---- */

/* Defines a loop that reads src alone. */
#define LOOP_OF_SRC(kind, call)                                                                \
    LOOP(kind)                                                                                 \
    {                                                                                          \
        (void)third;                                                                           \
        call;                                                                                  \
    }
LOOP_OF_SRC(rotate, rotate_halves_as(POSENC_DTYPE_F32, dst, src, (int64_t)n))
LOOP_OF_SRC(rotate_f16, rotate_halves_as(POSENC_DTYPE_F16, dst, src, 2 * (int64_t)n))
LOOP_OF_SRC(rotate_bf16, rotate_halves_as(POSENC_DTYPE_BF16, dst, src, 2 * (int64_t)n))
LOOP_OF_SRC(rotate_pairs, rotate_pairs_as(POSENC_DTYPE_F32, dst, src, (int64_t)n))
LOOP_OF_SRC(rotate_pairs_f16, rotate_pairs_as(POSENC_DTYPE_F16, dst, src, 2 * (int64_t)n))
LOOP_OF_SRC(rotate_pairs_bf16, rotate_pairs_as(POSENC_DTYPE_BF16, dst, src, 2 * (int64_t)n))
LOOP_OF_SRC(norm, normalize(dst, src, (int64_t)n))
#undef LOOP_OF_SRC

/* ---- Biases ---- */

/* Writes the last elements of a row of `row` floats, no multiple of a vector: a vector that overlaps the one before, or
 * single elements. */
SIMD_INLINE void put_row_end(float *dst, const float *src, int64_t row, vf last)
{
    const int64_t w = vf_lanes();
    if (row >= w)
        vf_store(dst + row - w, add_onto(src, row - w, last));
    else
        vf_store_n(dst, src ? vf_add(vf_load_n(src, row), last) : last, row);
}

SIMD_INLINE vf slope_biases(vf slopes, vf a) { return vf_fma(slopes, a, vf_set1(0.0f)); }

/* Writes slope times distance; a to d are distances of four vectors. */
SIMD_INLINE void write_slope_row(float *dst, const float *src, int64_t row)
{
    const int64_t w = vf_lanes();
    vf slopes = vf_set1(0.25f), width = vf_set1((float)w), four = vf_set1(4.0f * (float)w);
    vf a = vf_add(vf_iota(), vf_set1(1.0f));
    int64_t i = 0;
    for (; i + 4 * w <= row; i += 4 * w, a = vf_add(a, four)) {
        vf b = vf_add(a, width), c = vf_add(a, vf_add(width, width));
        vf d = vf_add(b, vf_add(width, width));
        put_strided(dst, src, i, w, slope_biases(slopes, a), slope_biases(slopes, b),
                    slope_biases(slopes, c), slope_biases(slopes, d));
    }
    for (; i + w <= row; i += w, a = vf_add(a, width))
        vf_store(dst + i, add_onto(src, i, slope_biases(slopes, a)));
    if (i < row) {
        a = vf_add(vf_iota(), vf_set1(row < w ? 1.0f : (float)(row - w + 1)));
        put_row_end(dst, src, row, slope_biases(slopes, a));
    }
}

/* Biases of a row of at most LINE_ROW keys. Each of LINE_STARTS rows starts one element further. */
enum { LINE_ROW = 256, LINE_STARTS = 32 };
#define ONE_TO_EIGHT 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f
static const float short_line[320] = { TIMES_8(ONE_TO_EIGHT), TIMES_16(ONE_TO_EIGHT),
                                       TIMES_16(ONE_TO_EIGHT) };
#undef ONE_TO_EIGHT

/* Writes n keys of a row from key j on, as kernels do: biases of a line, or `value` for all keys. */
SIMD_INLINE void put_keys(enum bias_layout layout, float *dst, const float *src,
                          const float *bias, vf value, int64_t j, int64_t n)
{
    const int32_t *order = reversed_lanes();
    if (src)
        put_bias_row(POSENC_DTYPE_F32, ADD_UNSCALED, layout, bias, order, value, value, 1.0f,
                     src, dst, j, n);
    else
        put_bias_row(POSENC_DTYPE_F32, STORE, layout, bias, order, value, value, 1.0f, NULL,
                     dst, j, n);
}

/* Writes a row of T5: one value for far keys, then a line of at least RUN_LINE keys, from a whole vector on. */
enum { RUN_LINE = 112 };
SIMD_INLINE void write_runs_row(float *dst, const float *src, const float *from, int64_t row)
{
    const vf value = vf_set1(0.5f);
    const int64_t all = row > RUN_LINE ? row - RUN_LINE : 0, before = all - all % vf_lanes();
    if (before > 0)
        put_keys(ONE_VALUE, dst, src, NULL, value, 0, before);
    put_keys(FORWARD, dst, src, from, value, before, row - before);
}

enum row_kind { SLOPES, LINES, RUNS };

/* Writes the whole rows of n floats. The asm hides their number and length from the compiler, as in a kernel. */
SIMD_INLINE void write_rows(enum row_kind kind, float *dst, const float *src, int64_t row,
                            int64_t n)
{
    const bool onto = src != NULL;
    int64_t n_rows = n / row;
    __asm__("" : "+r"(row), "+r"(n_rows));
    for (int64_t r = 0; r < n_rows; r++, dst += row, src += onto ? row : 0) {
        const float *from = short_line + r % LINE_STARTS;
        if (kind == SLOPES)
            write_slope_row(dst, onto ? src : NULL, row);
        else if (kind == LINES)
            put_keys(REVERSED, dst, onto ? src : NULL, from + row, vf_set1(0.0f), 0, row);
        else
            write_runs_row(dst, onto ? src : NULL, from, row);
    }
}

#define BIAS_ROW(most) (third && third - dst < (most) ? third - dst : (most))
LOOP_ADDING(slope, write_rows(SLOPES, dst, src, BIAS_ROW((int64_t)n), (int64_t)n))
LOOP_ADDING(line, write_rows(LINES, dst, src, BIAS_ROW(LINE_ROW), (int64_t)n))
LOOP_ADDING(runs, write_rows(RUNS, dst, src, BIAS_ROW((int64_t)n), (int64_t)n))
#undef BIAS_ROW

/* Rows of a table in a random order. */
static const int32_t some_rows[128] = { TIMES_8(3, 14, 7, 0, 11, 5, 9, 12, 1, 15, 6, 10, 2, 13,
                                                8, 4) };

/* Looks up n / 4 indices in a table of four heads; `head` floats separate the outputs of two heads. */
SIMD_INLINE void gather_rows(float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes(), head = n / 4;
    for (int64_t i = 0; i + w <= head; i += w) {
        vf a, b, c, d;
        vf_gather4(short_line, some_rows + i % 64, &a, &b, &c, &d);
        vf_store(dst + i, add_onto(src, i, a));
        vf_store(dst + head + i, add_onto(src, head + i, b));
        vf_store(dst + 2 * head + i, add_onto(src, 2 * head + i, c));
        vf_store(dst + 3 * head + i, add_onto(src, 3 * head + i, d));
    }
}

LOOP_ADDING(fetch, gather_rows(dst, src, (int64_t)n))

/* ---- Terms of disentangled attention ---- */

/* Columns that rise by one with every second key, from 0 to 79: those of 64 keys, one key further for each query. */
#define TWICE(k) k, k
#define TEN_TWICE(k)                                                                           \
    TWICE(k), TWICE((k) + 1), TWICE((k) + 2), TWICE((k) + 3), TWICE((k) + 4), TWICE((k) + 5),  \
        TWICE((k) + 6), TWICE((k) + 7), TWICE((k) + 8), TWICE((k) + 9)
static const int32_t some_columns[160] = { TEN_TWICE(0),  TEN_TWICE(10), TEN_TWICE(20),
                                           TEN_TWICE(30), TEN_TWICE(40), TEN_TWICE(50),
                                           TEN_TWICE(60), TEN_TWICE(70) };
#undef TEN_TWICE
#undef TWICE

/* Queries and keys of a block, and floats from one transposed row to the next. */
enum { TERM_QUERIES = 16, TERM_KEYS = 64, TERM_PITCH = TERM_KEYS + 16 };

/* Reads a vector of elements of a row by their columns. */
SIMD_INLINE vf gather_columns(const int32_t *columns)
{
    return vf_lookup(vf_load(short_line + *columns), columns, *columns);
}

/* Looks up the p2c terms of a block, in vectors of queries, and transposes them to vectors of keys. */
SIMD_INLINE void transpose_terms(float *transposed)
{
    const int64_t w = vf_lanes();
    _Alignas(64) float keys[TERM_KEYS * TERM_QUERIES + TERM_KEYS];
    int32_t order[TERM_KEYS];
    for (int64_t k = 0; k < w; k++)
        order[k] = (int32_t)(k * TERM_QUERIES / 4);
    for (int64_t j = 0; j < TERM_KEYS; j += w, transposed += w) {
        for (int64_t k = 0; k < w; k++)
            for (int64_t r = 0; r < TERM_QUERIES; r += w)
                vf_store(keys + k * TERM_QUERIES + r, gather_columns(some_columns + j + k + r));
        for (int64_t r = 0; r < TERM_QUERIES; r += 4) {
            vf a, b, c, d;
            vf_gather4(keys + r, order, &a, &b, &c, &d);
            vf_store(transposed + r * TERM_PITCH, a);
            vf_store(transposed + (r + 1) * TERM_PITCH, b);
            vf_store(transposed + (r + 2) * TERM_PITCH, c);
            vf_store(transposed + (r + 3) * TERM_PITCH, d);
        }
    }
}

/* Returns the terms of a vector of keys from element i of a block on, which is counted query by query. */
SIMD_INLINE vf compute_terms(bool c2p, bool p2c, const float *transposed, int64_t i)
{
    const int64_t query = i / TERM_KEYS, key = i % TERM_KEYS;
    const int32_t *columns = some_columns + key + query;
    vf scale = vf_set1(0.5f), bias = scale;
    if (c2p)
        bias = vf_mul(scale, gather_columns(columns));
    if (p2c) {
        vf other = vf_load(transposed + query * TERM_PITCH + key);
        bias = c2p ? vf_fma(scale, other, bias) : vf_mul(scale, other);
    }
    return bias;
}

SIMD_INLINE void write_terms(bool c2p, bool p2c, float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes();
    float transposed[TERM_QUERIES * TERM_PITCH];
    for (int64_t block = 0; block + BOUND_STEP <= n; block += BOUND_STEP) {
        if (p2c)
            transpose_terms(transposed);
        for (int64_t i = 0; i < BOUND_STEP; i += 4 * w)
            put_strided(dst + block, src ? src + block : NULL, i, w,
                        compute_terms(c2p, p2c, transposed, i),
                        compute_terms(c2p, p2c, transposed, i + w),
                        compute_terms(c2p, p2c, transposed, i + 2 * w),
                        compute_terms(c2p, p2c, transposed, i + 3 * w));
    }
}

LOOP_ADDING(c2p, write_terms(true, false, dst, src, (int64_t)n))
LOOP_ADDING(p2c, write_terms(false, true, dst, src, (int64_t)n))
LOOP_ADDING(both, write_terms(true, true, dst, src, (int64_t)n))

/* ---- Sums ---- */

/* Adds up each of `rows` rows of n / rows floats, element by element. */
SIMD_INLINE void add_rows(int64_t rows, float *dst, const float *src, int64_t n)
{
    enum { MOST_ROWS = 16 };
    const int64_t length = n / rows;
    float sum[MOST_ROWS] = { 0.0f };
    for (int64_t k = 0; k < length; k++)
        for (int64_t r = 0; r < rows; r++)
            sum[r] += src[r * length + k];
    for (int64_t r = 0; r < rows; r++)
        dst[r] = sum[r];
}

/* Does the same with as many rows in parallel as a vector has lanes. Four elements of each row are loaded and
 * transposed at a time. */
SIMD_INLINE void add_transposed_rows(int64_t rows, float *dst, const float *src, int64_t n)
{
    enum { STEPS = 4 };
    static const int32_t order[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int64_t w = vf_lanes(), length = n / rows;
    for (int64_t first = 0; first < rows; first += w) {
        _Alignas(64) float steps[sizeof order / sizeof *order * STEPS];
        vf sum = vf_set1(0.0f), a, b, c, d;
        for (int64_t k = 0; k < length; k += STEPS) {
            for (int64_t r = 0; r < w; r++)
                memcpy(steps + r * STEPS, src + (first + r) * length + k,
                       STEPS * sizeof *steps);
            vf_gather4(steps, order, &a, &b, &c, &d);
            sum = vf_add(vf_add(vf_add(vf_add(sum, a), b), c), d);
        }
        vf_store(dst + first, sum);
    }
}

LOOP(sums)
{
    enum { ROWS = 16 };
    (void)third;
    if (vf_lanes() > 1 && vf_lanes() <= ROWS)
        add_transposed_rows(ROWS, dst, src, (int64_t)n);
    else
        add_rows(ROWS, dst, src, (int64_t)n);
}

LOOP(chain)
{
    (void)third;
    add_rows(1, dst, src, (int64_t)n);
}
