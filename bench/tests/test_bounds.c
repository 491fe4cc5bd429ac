/*
 * Lower-bound loops do what their names say, on every instruction set, in rows of any length, and write nothing else. A
 * loop that did less would be too low a limit.
 */
#include "bench/rooflines.h"
#include "conformance/problem/storage.h"
#include "base/tap/tap.h"

#include <math.h>
#include <string.h>

enum { MOST_FLOATS = 2 * BOUND_STEP, GUARD = 64 };
static const float UNTOUCHED = -77.0f;
static float out[MOST_FLOATS + GUARD], x[MOST_FLOATS];

static bool is_within(double a, double b, double off)
{
    return fabs(a - b) <= off * (1.0 + fabs(b));
}
static bool is_near(double a, double b) { return is_within(a, b, 1e-6); }

/* ---- Tables ---- */

/* Checks eight rows side by side: each has one of eight angles, and its sine lies `apart` floats from its cosine. */
static bool has_table_rows(const float *values, int row, bool interleaved)
{
    int found[8] = { 0 };
    const int apart = interleaved ? 1 : row / 2;
    bool all = true;
    for (int r = 0; r < BOUND_ROWS; r++, values += row) {
        const double cosine = (double)values[interleaved],
                     sine = (double)values[interleaved ? 0 : apart];
        const int a = (int)lround((atan2(sine, cosine) - 0.55) / 0.05);
        if (a < 0 || a > 7)
            return false;
        found[a]++;
        for (int i = 0; i < row; i++) {
            const bool is_cosine = interleaved ? i % 2 : i < apart;
            const double angle = 0.55 + 0.05 * a;
            all = all && is_near((double)values[i], is_cosine ? cos(angle) : sin(angle));
        }
    }
    for (int a = 0; a < 8; a++)
        all = all && found[a] == 1;
    return all;
}

static bool has_tables(const float *values, int row, int n, bool interleaved)
{
    bool all = true;
    for (int i = 0; i < n; i += BOUND_ROWS * row)
        all = all && has_table_rows(values + i, row, interleaved);
    return all;
}

static bool has_angles(const float *values, int n)
{
    double squares = 0.0, most = 0.0;
    for (int i = 0; i < n; i++) {
        squares += (double)values[i] * (double)values[i];
        most = fmax(most, fabs((double)values[i]));
    }
    return is_near(squares, n / 2) && most <= 1.0 && most > 0.9;
}

/* ---- Rotations ---- */

static enum posenc_dtype dtype_of(enum roofline_kind kind)
{
    return kind == BOUND_rotate_f16 || kind == BOUND_rotate_pairs_f16     ? POSENC_DTYPE_F16
           : kind == BOUND_rotate_bf16 || kind == BOUND_rotate_pairs_bf16 ? POSENC_DTYPE_BF16
                                                                          : POSENC_DTYPE_F32;
}

/* Elements `apart` from each other are those of x rotated, each rounded once. */
static bool is_rotated(const float *values, enum posenc_dtype type, int apart, int n)
{
    static const double off[] = {
        [POSENC_DTYPE_F32] = 1e-6, [POSENC_DTYPE_F16] = 0x1p-11, [POSENC_DTYPE_BF16] = 0x1p-8
    };
    bool all = true;
    n *= (int)(sizeof(float) / storage_size(type));
    for (int i = 0; i < n; i += i % apart == apart - 1 ? apart + 1 : 1) {
        const double a = (double)storage_get(type, x, i),
                     b = (double)storage_get(type, x, i + apart);
        all = all &&
              is_within((double)storage_get(type, values, i), 0.8 * a - 0.6 * b, off[type]) &&
              is_within((double)storage_get(type, values, i + apart), 0.8 * b + 0.6 * a,
                        off[type]);
    }
    return all;
}

/* Equal numbers, 0.75, become 0.8 - 0.6 and 0.8 + 0.6 times a root of what is added up in a lane. */
static bool has_norm(const float *values, int n)
{
    const double lanes = 1024.0 / pow((double)values[0] / (0.2 * 1.5 * 0.75 * 0.75), 2.0);
    bool all = lanes > 0.99 && lanes < 64.01;
    for (int i = 0; i < n; i++)
        all = all && is_near((double)values[i],
                             (double)values[0] * (i % BOUND_STEP < BOUND_STEP / 2 ? 1.0 : 7.0));
    return all;
}

/* ---- Biases ---- */

/* Each row ends in a line of 112 keys or up to a vector more, with 0.5 before it. */
static bool has_run(const float *values, int row, int r)
{
    int before = 0;
    while (before < row && values[before] == 0.5f)
        before++;
    bool all = row - before >= (row < 112 ? row : 112) && row - before < 112 + 64;
    for (int k = before; k < row; k++)
        all = all && is_near((double)values[k], (k - before + r % 32) % 8 + 1);
    return all;
}

/* Returns the element that loops of biases write at i. */
static double bias_at(enum roofline_kind kind, int row, int i)
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

/* Four heads beside each other, of sixteen rows: 1 or 5 equally often, a head more each 1 more. */
static bool has_fetched(const float *values, int n)
{
    const int head = n / 4;
    int found[2] = { 0 };
    bool all = true;
    for (int i = 0; i < head; i++) {
        found[0] += is_near((double)values[i], 1.0);
        found[1] += is_near((double)values[i], 5.0);
        for (int h = 1; h < 4; h++)
            all = all && is_near((double)values[h * head + i], (double)values[i] + h);
    }
    return all && found[0] == head / 2 && found[1] == head / 2;
}

static bool has_sums(const float *values, int n, int rows)
{
    bool all = true;
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int k = 0; k < n / rows; k++)
            sum += x[r * (n / rows) + k];
        all = all && memcmp(&values[r], &sum, sizeof sum) == 0;
    }
    return all;
}

/* ---- Any loop ---- */

static bool has_right_values(enum roofline_kind kind, const float *values, int row, int n)
{
    bool all = true;
    switch (kind) {
    case BOUND_table:
    case BOUND_table_interleaved:
        return has_tables(values, row, n, kind == BOUND_table_interleaved);
    case BOUND_angles:
        return has_angles(values, n);
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
            all = all && has_run(values + r * row, row, r);
        return all;
    case BOUND_fetch:
        return has_fetched(values, n);
    case BOUND_sums:
    case BOUND_chain:
        return has_sums(values, n, kind == BOUND_sums ? 16 : 1);
    default:
        for (int i = 0; i < n; i++)
            all = all && is_near((double)values[i], bias_at(kind, row, i));
        return all;
    }
}

/* Rotations and sums read x; the others add to it, if it is given. */
static bool reads_x_alone(enum roofline_kind kind)
{
    return (kind >= BOUND_rotate && kind <= BOUND_norm) || kind == BOUND_sums ||
           kind == BOUND_chain;
}

/* Runs a loop with and without x, over rows of a given length or of the loop's default length. */
static bool is_right(const struct roofline_variant *loop, int row, bool given, int at_once,
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
        loop->function(out, with_x ? x : NULL, given ? out + row : NULL, (size_t)n);
        for (int i = 0; i < whole && !alone; i++)
            out[i] -= x[i];
        right = right && has_right_values(loop->kind, out, row, whole);
        for (int i = written; i < n + GUARD; i++)
            right = right && out[i] == UNTOUCHED;
    }
    return right;
}

/* Rows of n floats, as a loop has them that is given none. */
static int default_row(enum roofline_kind kind, int n)
{
    return kind == BOUND_table || kind == BOUND_table_interleaved ? n / BOUND_ROWS
           : kind == BOUND_line                                   ? 256
                                                                  : n;
}

static bool is_right_with_rows(const struct roofline_variant *loop)
{
    bool right = true;
    switch (loop->kind) {
    case BOUND_table:
    case BOUND_table_interleaved:
        for (int row = 32; row <= 256; row += 32)
            right = right && is_right(loop, row, true, BOUND_ROWS, MOST_FLOATS);
        return right;
    case BOUND_slope:
    case BOUND_line:
    case BOUND_runs:
        for (int row = 1; row < (loop->kind == BOUND_line ? 256 : 300);
             row += row < 20 ? 1 : 13)
            right = right && is_right(loop, row, true, 1, MOST_FLOATS);
        return right;
    default:
        return true;
    }
}

int main(void)
{
    char sentence[96];
    bool kinds[ROOFLINE_KIND_COUNT] = { false }, all = true;
    for (size_t i = 0; roofline_variant_at(i); i++) {
        const struct roofline_variant *loop = roofline_variant_at(i);
        if (loop->kind < BOUND_table || !loop->runs())
            continue;
        kinds[loop->kind] = true;
        bool right = is_right_with_rows(loop);
        for (int n = BOUND_STEP; n <= MOST_FLOATS; n += BOUND_STEP)
            right = right && is_right(loop, default_row(loop->kind, n), false, 1, n);
        snprintf(sentence, sizeof sentence, "the loop %s, %s does what it is named after",
                 roofline_kind_name[loop->kind], loop->name);
        require(right, sentence);
    }
    for (int kind = BOUND_table; kind < ROOFLINE_KIND_COUNT; kind++)
        all = all && kinds[kind] && roofline_kind_name[kind];
    require(all, "each kind of loop has one that runs here, and a name");
    return tap_end();
}
