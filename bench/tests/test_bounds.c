/*
 * Tests rooflines and lower-bound loops (bench/loops/bounds.h) on every instruction set that runs here: each one writes what
 * its kind promises, for rows of any length, and nothing else. A loop that did less would be too low a limit. The loop of
 * slopes, for example, must write 0.25, 0.5, 0.75, ... to each row, or add these numbers to x.
 */
#include "bench/rooflines.h"
#include "conformance/problem/storage.h"
#include "base/tap/tap.h"

#include <math.h>
#include <string.h>

enum { MOST_FLOATS = 2 * BOUND_STEP, GUARD = 64 };
static const float UNTOUCHED = -77.0f; /* value of `out` before a loop runs */
static float out[MOST_FLOATS + GUARD], x[MOST_FLOATS];

static bool is_within(double value, double want, double tolerance)
{
    return fabs(value - want) <= tolerance * (1.0 + fabs(want));
}
static bool is_near(float value, double want) { return is_within((double)value, want, 1e-6); }

/* ---- Tables ---- */

/* Checks a group of eight rows. They have the angles 0.55, 0.6, ... 0.9 in any order, and all pairs of a row are alike. */
static bool has_table_rows(const float *values, int row, bool interleaved)
{
    bool found[BOUND_ROWS] = { false };
    const int second = interleaved ? 1 : row / 2; /* element of the first pair */
    for (int r = 0; r < BOUND_ROWS; r++, values += row) {
        const double cosine = (double)values[interleaved ? second : 0],
                     sine = (double)values[interleaved ? 0 : second];
        const int nth = (int)lround((atan2(sine, cosine) - 0.55) / 0.05);
        if (nth < 0 || nth >= BOUND_ROWS || found[nth])
            return false;
        found[nth] = true;
        const double angle = 0.55 + 0.05 * nth;
        for (int i = 0; i < row; i++) {
            const bool is_cosine = interleaved ? i % 2 : i < second;
            if (!is_near(values[i], is_cosine ? cos(angle) : sin(angle)))
                return false;
        }
    }
    return true;
}

static bool has_tables(const float *values, int row, int n, bool interleaved)
{
    for (int i = 0; i < n; i += BOUND_ROWS * row)
        if (!has_table_rows(values + i, row, interleaved))
            return false;
    return true;
}

/* Checks that the n floats are sines and cosines of n / 2 angles, by the sum of their squares. */
static bool has_sines_and_cosines(const float *values, int n)
{
    double squares = 0.0, largest = 0.0;
    for (int i = 0; i < n; i++) {
        squares += (double)values[i] * (double)values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    return is_within(squares, n / 2, 1e-6) && largest <= 1.0 && largest > 0.9;
}

/* ---- Rotations ---- */

static enum posenc_dtype dtype_of(enum bound_kind kind)
{
    if (kind == BOUND_rotate_f16 || kind == BOUND_rotate_pairs_f16)
        return POSENC_DTYPE_F16;
    const bool is_bf16 = kind == BOUND_rotate_bf16 || kind == BOUND_rotate_pairs_bf16;
    return is_bf16 ? POSENC_DTYPE_BF16 : POSENC_DTYPE_F32;
}

/* Checks that pairs of elements, `apart` from each other, are those of x rotated, each rounded once. n counts floats. */
static bool is_rotated(const float *values, enum posenc_dtype type, int apart, int n)
{
    static const double tolerance[] = {
        [POSENC_DTYPE_F32] = 1e-6, [POSENC_DTYPE_F16] = 0x1p-11, [POSENC_DTYPE_BF16] = 0x1p-8
    };
    n *= (int)(sizeof(float) / storage_size(type));
    for (int i = 0; i < n; i += i % apart == apart - 1 ? apart + 1 : 1) {
        const double a = (double)storage_get(type, x, i),
                     b = (double)storage_get(type, x, i + apart),
                     first = (double)storage_get(type, values, i),
                     second = (double)storage_get(type, values, i + apart);
        if (!is_within(first, 0.8 * a - 0.6 * b, tolerance[type]) ||
            !is_within(second, 0.8 * b + 0.6 * a, tolerance[type]))
            return false;
    }
    return true;
}

/* Checks heads of equal elements, 0.75. They become f (0.8 - 0.6) and f (0.8 + 0.6), where f contains the root of the
 * squares that one lane adds up. The number of lanes that follows must be from 1 to 64. */
static bool has_norm(const float *values, int n)
{
    const double lanes = 1024.0 / pow((double)values[0] / (0.2 * 1.5 * 0.75 * 0.75), 2.0);
    for (int i = 0; i < n; i++)
        if (!is_near(values[i],
                     (double)values[0] * (i % BOUND_STEP < BOUND_STEP / 2 ? 1.0 : 7.0)))
            return false;
    return lanes > 0.99 && lanes < 64.01;
}

/* ---- Biases ---- */

/* Checks row r of T5: 0.5, then a line of 112 keys, or up to a vector more. */
static bool has_run(const float *values, int row, int r)
{
    int before = 0;
    while (before < row && values[before] == 0.5f)
        before++;
    for (int k = before; k < row; k++)
        if (!is_near(values[k], (k - before + r % 32) % 8 + 1))
            return false;
    return row - before >= (row < 112 ? row : 112) && row - before < 112 + 64;
}

/* Returns element i of the output of a loop of biases or terms. */
static double bias_at(enum bound_kind kind, int row, int i)
{
    const int column = (i % 64 + i % BOUND_STEP / 64) / 2;
    switch (kind) {
    case BOUND_slope:
        return 0.25 * (i % row + 1);
    case BOUND_line: /* backwards, each row from a key later than the one before */
        return (i / row % 32 + row - i % row) % 8 + 1;
    case BOUND_both:
        return column % 8 + 1;
    default:
        return 0.5 * (column % 8 + 1);
    }
}

/* Checks lookups of four heads. The first head has 1 and 5 equally often; each further head has 1 more. */
static bool has_fetched(const float *values, int n)
{
    const int head = n / 4;
    int ones = 0, fives = 0;
    for (int i = 0; i < head; i++) {
        ones += is_near(values[i], 1.0);
        fives += is_near(values[i], 5.0);
        for (int h = 1; h < 4; h++)
            if (!is_near(values[h * head + i], (double)values[i] + h))
                return false;
    }
    return ones == head / 2 && fives == head / 2;
}

/* Checks the sum of each row of x, bit by bit: loops must add in order. */
static bool has_sums(const float *values, int n, int rows)
{
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int k = 0; k < n / rows; k++)
            sum += x[r * (n / rows) + k];
        if (memcmp(&values[r], &sum, sizeof sum) != 0)
            return false;
    }
    return true;
}

/* ---- Any loop ---- */

/* Checks n floats that a loop wrote, less x if it adds to x. */
static bool has_right_values(enum bound_kind kind, const float *values, int row, int n)
{
    switch (kind) {
    case BOUND_table:
    case BOUND_table_interleaved:
        return has_tables(values, row, n, kind == BOUND_table_interleaved);
    case BOUND_angles:
        return has_sines_and_cosines(values, n);
    case BOUND_rotate:
    case BOUND_rotate_f16:
    case BOUND_rotate_bf16:
        return is_rotated(values, dtype_of(kind), 64, n);
    case BOUND_rotate_pairs:
    case BOUND_rotate_pairs_f16:
    case BOUND_rotate_pairs_bf16:
        return is_rotated(values, dtype_of(kind), 1, n);
    case BOUND_norm:
        return has_norm(values, n);
    case BOUND_runs:
        for (int r = 0; r < n / row; r++)
            if (!has_run(values + r * row, row, r))
                return false;
        return true;
    case BOUND_fetch:
        return has_fetched(values, n);
    case BOUND_sums:
    case BOUND_chain:
        return has_sums(values, n, kind == BOUND_sums ? 16 : 1);
    default:
        for (int i = 0; i < n; i++)
            if (!is_near(values[i], bias_at(kind, row, i)))
                return false;
        return true;
    }
}

/* Rotations and sums read x; the others add to it, if it is given. */
static bool reads_x_alone(enum bound_kind kind)
{
    return (kind >= BOUND_rotate && kind <= BOUND_norm) || kind == BOUND_sums ||
           kind == BOUND_chain;
}

/* Runs a loop of n floats with and without x. Rows have `row` floats, which the loop gets only if `is_given`. It writes
 * `at_once` rows in parallel. */
static bool is_right(const struct bound_variant *loop, int row, bool is_given, int at_once,
                     int n)
{
    const bool alone = reads_x_alone(loop->kind);
    const int whole = n / (row * at_once) * row * at_once;
    const int written = loop->kind == BOUND_sums ? 16 : loop->kind == BOUND_chain ? 1 : whole;
    bool right = true;
    for (int with_x = alone; with_x < 2; with_x++) {
        for (int i = 0; i < MOST_FLOATS + GUARD; i++)
            out[i] = UNTOUCHED;
        const enum posenc_dtype type = dtype_of(loop->kind);
        for (int i = 0; i < MOST_FLOATS * (int)(sizeof(float) / storage_size(type)); i++)
            storage_put(type, x, i,
                        loop->kind == BOUND_norm ? 0.75f
                        : with_x                 ? 0.5f + (float)(i % 37) / 64.0f
                                                 : 0.0f);
        loop->function(out, with_x ? x : NULL, is_given ? out + row : NULL, (size_t)n);
        for (int i = 0; i < whole && !alone; i++)
            out[i] -= x[i];
        right = right && has_right_values(loop->kind, out, row, whole);
        for (int i = written; i < n + GUARD; i++)
            right = right && out[i] == UNTOUCHED;
    }
    return right;
}

static bool is_table(enum bound_kind kind)
{
    return kind == BOUND_table || kind == BOUND_table_interleaved;
}

/* Runs a loop for rows of many lengths, if it takes a length, and for its own length: one row of n floats, or
 * BOUND_ROWS. */
static bool is_right_loop(const struct bound_variant *loop)
{
    const bool is_bias = loop->kind >= BOUND_slope && loop->kind <= BOUND_runs;
    const int longest = loop->kind == BOUND_line ? 256 : 300;
    bool right = true;
    for (int row = 32; is_table(loop->kind) && row <= 256; row += 32)
        right = right && is_right(loop, row, true, BOUND_ROWS, MOST_FLOATS);
    for (int row = 1; is_bias && row < longest; row += row < 20 ? 1 : 13)
        right = right && is_right(loop, row, true, 1, MOST_FLOATS);
    for (int n = BOUND_STEP; n <= MOST_FLOATS; n += BOUND_STEP) {
        const int row = is_table(loop->kind) ? n / BOUND_ROWS : n;
        right = right && is_right(loop, loop->kind == BOUND_line ? 256 : row, false, 1, n);
    }
    return right;
}

/* ---- Rooflines and conversions ---- */

/* Runs a roofline of n floats, of which the first is `offset` floats behind an aligned address. */
static bool is_right_at(const struct bound_variant *roofline, int offset, int n)
{
    enum { ALL = 640 };
    static const double table[] = { 0.7, -0.71, 0.72, -0.73, 0.74, -0.75, 0.76, -0.77 };
    static _Alignas(64) float dst[ALL], src[ALL], add[ALL], want[ALL];
    const enum bound_kind kind = roofline->kind;
    for (int i = 0; i < ALL; i++) {
        dst[i] = want[i] = 3.0f + (float)i;
        src[i] = 1.0f + (float)i;
        add[i] = 0.5f * (float)i;
    }
    const float *from = kind == BOUND_in_place ? dst + offset : src + 1;
    for (int i = 0; i < n; i++)
        want[offset + i] = kind == BOUND_store      ? 0x1.7e7e7ep-1f
                           : kind == BOUND_in_place ? -from[i]
                           : kind == BOUND_add      ? from[i] + add[i + 2]
                           : kind == BOUND_from_f64 ? from[i] + (float)table[i % 8]
                                                    : from[i];
    roofline->function(dst + offset, from, add + 2, (size_t)n);
    return memcmp(dst, want, sizeof dst) == 0;
}

static bool is_right_roofline(const struct bound_variant *roofline)
{
    bool right = true;
    for (int offset = 0; offset < 17; offset++)
        for (int n = 0; n < 600; n += n < 70 ? 1 : 13)
            right = right && is_right_at(roofline, offset, n);
    return right;
}

int main(void)
{
    char sentence[96];
    bool has_variant[BOUND_KIND_COUNT] = { false }, all = true;
    for (size_t i = 0; bound_variant_at(i); i++) {
        const struct bound_variant *variant = bound_variant_at(i);
        if (!bound_variant_runs(variant))
            continue;
        has_variant[variant->kind] = true;
        snprintf(sentence, sizeof sentence, "%s, %s: writes what it should, and nothing else",
                 bound_kind_name[variant->kind], variant->name);
        require(variant->kind < BOUND_table ? is_right_roofline(variant)
                                            : is_right_loop(variant),
                sentence);
    }
    for (int kind = 0; kind < BOUND_KIND_COUNT; kind++)
        all = all && has_variant[kind] && bound_kind_name[kind];
    require(all, "each kind has a variant that runs here, and a name");
    return tap_end();
}
