/*
 * Bare loops: each does what its name says, so that it is a limit of what does so, too.
 */
#include "roofs.h"
#include "conformance/problem/storage.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <string.h>

enum { MOST_FLOATS = 2 * BARE_STEP, GUARD = 64 };
static float out[MOST_FLOATS + GUARD], added[MOST_FLOATS + GUARD], x[MOST_FLOATS];

static bool within(double a, double b, double off)
{
    return fabs(a - b) <= off * (1.0 + fabs(b));
}
static bool near(double a, double b) { return within(a, b, 1e-6); }

/* Each of the cosines and sines of the eight angles of a group, as often as any other, and pairs of both:
 * `apart` floats lie between their two numbers. */
static bool is_table(const float *values, int apart, int n)
{
    int met[16] = { 0 };
    bool each = true;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < 8; a++) {
            const double angle = 0.55 + 0.05 * a;
            met[a] += near((double)values[i], cos(angle));
            met[8 + a] += near((double)values[i], sin(angle));
        }
    for (int k = 0; k < 16; k++)
        each = each && met[k] == n / 16;
    for (int i = 0; i < n; i += i % apart == apart - 1 ? apart + 1 : 1)
        each = each && near(hypot((double)values[i], (double)values[i + apart]), 1.0);
    return each;
}

/* Sines first: all angles are below a quarter of a half turn. */
static bool is_by_turns(const float *values, int n)
{
    bool sines = is_table(values, 1, n);
    for (int i = 0; i < n; i += 2)
        sines = sines && (double)values[i] < 0.785;
    return sines;
}

/* Whether each row has one angle, and eight rows have all. */
static bool is_in_rows(const float *values, int row, bool by_turns, int n)
{
    bool all = true;
    for (int i = 0; i < n; i += BARE_ROWS * row) {
        all = all && (by_turns ? is_by_turns(values + i, BARE_ROWS * row)
                               : is_table(values + i, row / 2, BARE_ROWS * row));
        for (int k = 0; k < BARE_ROWS * row; k++)
            all = all &&
                  near((double)values[i + k],
                       (double)values[i + k / row * row +
                                      (by_turns ? k % 2 : k % row / (row / 2) * (row / 2))]);
    }
    return all;
}

static bool is_angles(const float *values, int n)
{
    double squares = 0.0, most = 0.0;
    for (int i = 0; i < n; i++) {
        squares += (double)values[i] * (double)values[i];
        most = fmax(most, fabs((double)values[i]));
    }
    return near(squares, n / 2) && most <= 1.0 && most > 0.9;
}

/* Elements of x and of what is made of it, of n floats of some storage. */
struct stored {
    enum posenc_dtype type;
    const float *values;
    int n;
};

static struct stored stored_as(enum roof_kind kind, const float *values, int n)
{
    const bool f16 = kind == ROOF_BARE_turn_f16 || kind == ROOF_BARE_pairs_f16;
    const bool bf16 = kind == ROOF_BARE_turn_bf16 || kind == ROOF_BARE_pairs_bf16;
    const enum posenc_dtype type = f16 ? POSENC_F16 : bf16 ? POSENC_BF16 : POSENC_F32;
    return (struct stored){ type, values, n * (int)(sizeof(float) / storage_size(type)) };
}

/* Whether elements i and j are those of x turned, each rounded once. */
static bool is_pair(const struct stored *s, int i, int j)
{
    static const double off[] = {
        [POSENC_F32] = 1e-6, [POSENC_F16] = 0x1p-11, [POSENC_BF16] = 0x1p-8
    };
    const double a = (double)storage_get(s->type, x, i), b = (double)storage_get(s->type, x, j);
    const double first = (double)storage_get(s->type, s->values, i),
                 second = (double)storage_get(s->type, s->values, j);
    return within(first, 0.8 * a - 0.6 * b, off[s->type]) &&
           within(second, 0.8 * b + 0.6 * a, off[s->type]);
}

/* Each head of 128 in halves. */
static bool is_turned(struct stored s)
{
    const int half = 64;
    bool all = true;
    for (int i = 0; i < s.n; i += i % half == half - 1 ? half + 1 : 1)
        all = all && is_pair(&s, i, i + half);
    return all;
}

static bool is_turned_in_pairs(struct stored s)
{
    bool all = true;
    for (int i = 0; i < s.n; i += 2)
        all = all && is_pair(&s, i, i + 1);
    return all;
}

/* Of equal numbers, 0.75: halves are as 0.8 - 0.6 and 0.8 + 0.6, and grow with the root of what is
 * added up in a lane. */
static bool is_normed(const float *values, int n)
{
    const double lanes = 1024.0 / pow((double)values[0] / (0.2 * 1.5 * 0.75 * 0.75), 2.0);
    bool all = lanes > 0.99 && lanes < 64.01;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i],
                          (double)values[0] * (i % BARE_STEP < BARE_STEP / 2 ? 1.0 : 7.0));
    return all;
}

static bool is_slope(const float *values, int row, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i], 0.25 * (i % row + 1));
    return all;
}

/* Backwards, each row from a key later than the one before. */
static bool is_line(const float *values, int row, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i], (i / row % 32 + row - i % row) % 8 + 1);
    return all;
}

/* Each row ends in a line of 112 keys or up to a vector more, with 0.5 before it. */
static bool is_runs(const float *values, int row, int n)
{
    bool all = true;
    for (int i = 0; i < n; i += row) {
        int before = 0;
        while (before < row && values[i + before] == 0.5f)
            before++;
        all = all && row - before >= (row < 112 ? row : 112) && row - before < 112 + 64;
        for (int k = before; k < row; k++)
            all = all && near((double)values[i + k], (k - before + i / row % 32) % 8 + 1);
    }
    return all;
}

/* Of four heads each key's bucket, of T5's 32 up to 128: in steps of four, heads one apart. */
static bool is_heads(const float *values, int row, int n)
{
    static const int nearest[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                   11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                   35, 40, 46, 52, 59, 67, 77, 87, 99, 113 };
    bool all = true;
    for (int i = 0; i < n; i++) {
        int bucket = 31;
        while (nearest[bucket] > row - 1 - i % row)
            bucket--;
        all = all && near((double)values[i], 4 * bucket + i / row % 4 + 1);
    }
    return all;
}

/* Four heads beside each other, of sixteen rows. */
static bool is_fetch(const float *values, int n)
{
    const int head = n / 4;
    int met[2] = { 0 };
    bool all = true;
    for (int i = 0; i < head; i++) {
        met[0] += near((double)values[i], 1.0);
        met[1] += near((double)values[i], 5.0);
        for (int h = 1; h < 4; h++)
            all = all && near((double)values[h * head + i], (double)values[i] + h);
    }
    return all && met[0] == head / 2 && met[1] == head / 2;
}

static bool is_terms(const float *values, int n, double factor)
{
    bool all = true;
    for (int i = 0; i < n; i++) {
        const int column = (i % 64 + i % BARE_STEP / 64) / 2;
        all = all && near((double)values[i], factor * (column % 8 + 1));
    }
    return all;
}

static bool is_sums(const float *values, int n, int rows)
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

static bool does_its_work(enum roof_kind kind, const float *values, int n)
{
    switch (kind) {
    case ROOF_BARE_table:
        return is_table(values, n / BARE_ROWS / 2, n);
    case ROOF_BARE_by_turns:
        return is_by_turns(values, n);
    case ROOF_BARE_angles:
        return is_angles(values, n);
    case ROOF_BARE_turn:
    case ROOF_BARE_turn_f16:
    case ROOF_BARE_turn_bf16:
        return is_turned(stored_as(kind, values, n));
    case ROOF_BARE_pairs:
    case ROOF_BARE_pairs_f16:
    case ROOF_BARE_pairs_bf16:
        return is_turned_in_pairs(stored_as(kind, values, n));
    case ROOF_BARE_norm:
        return is_normed(values, n);
    case ROOF_BARE_slope:
        return is_slope(values, n, n);
    case ROOF_BARE_line:
        return is_line(values, 256, n);
    case ROOF_BARE_runs:
        return is_runs(values, n, n);
    case ROOF_BARE_heads:
        return is_heads(values, n / 4, n);
    case ROOF_BARE_fetch:
        return is_fetch(values, n);
    case ROOF_BARE_c2p:
    case ROOF_BARE_p2c:
        return is_terms(values, n, 0.5);
    case ROOF_BARE_both:
        return is_terms(values, n, 1.0);
    default:
        return is_sums(values, n, kind == ROOF_BARE_sums ? 16 : 1);
    }
}

/* Those read x alone. */
static bool adds_nothing(enum roof_kind kind)
{
    return (kind >= ROOF_BARE_turn && kind <= ROOF_BARE_norm) || kind == ROOF_BARE_sums ||
           kind == ROOF_BARE_chain;
}

static bool is_right(const struct roof_variant *loop, int n)
{
    const bool alone = adds_nothing(loop->kind);
    const int written = loop->kind == ROOF_BARE_sums    ? 16
                        : loop->kind == ROOF_BARE_chain ? 1
                                                        : n;
    bool right = true;
    const struct stored stored = stored_as(loop->kind, x, MOST_FLOATS);
    for (int i = 0; i < stored.n; i++)
        storage_put(stored.type, x, i,
                    loop->kind == ROOF_BARE_norm ? 0.75f : 0.5f + (float)(i % 37) / 64.0f);
    for (int i = 0; i < MOST_FLOATS + GUARD; i++)
        out[i] = added[i] = -77.0f;
    loop->function(out, alone ? x : NULL, NULL, (size_t)n);
    right = does_its_work(loop->kind, out, n);
    for (int i = written; i < n + GUARD && i < MOST_FLOATS + GUARD; i++)
        right = right && out[i] == -77.0f;
    if (alone)
        return right;
    loop->function(added, x, NULL, (size_t)n);
    for (int i = 0; i < n; i++)
        right = right && near((double)added[i], (double)out[i] + (double)x[i]);
    return right && added[n] == -77.0f;
}

/* Rows that were written as long as they were given. */
static bool is_as_long(enum roof_kind kind, const float *values, int row, int n)
{
    switch (kind) {
    case ROOF_BARE_table:
    case ROOF_BARE_by_turns:
        return is_in_rows(values, row, kind == ROOF_BARE_by_turns, n);
    case ROOF_BARE_slope:
        return is_slope(values, row, n);
    case ROOF_BARE_line:
        return is_line(values, row, n);
    case ROOF_BARE_heads:
        return is_heads(values, row, n);
    default:
        return is_runs(values, row, n);
    }
}

/* Rows that are given, so many at once, and nothing behind the last whole one. */
static bool is_right_in_rows(const struct roof_variant *loop, int row, int at_once, int n)
{
    const int whole = n / (row * at_once) * row * at_once;
    bool right = true;
    for (int reads = 0; reads < 2; reads++) {
        for (int i = 0; i < MOST_FLOATS + GUARD; i++)
            out[i] = -77.0f;
        for (int i = 0; i < MOST_FLOATS; i++)
            x[i] = reads ? (float)(i % 37) / 64.0f : 0.0f;
        loop->function(out, reads ? x : NULL, out + row, (size_t)n);
        for (int i = 0; i < whole; i++)
            out[i] -= x[i];
        right = right && is_as_long(loop->kind, out, row, whole);
        for (int i = whole; i < n + GUARD; i++)
            right = right && out[i] == -77.0f;
    }
    return right;
}

static void bare_loops(void)
{
    char sentence[96];
    bool kinds[ROOF_KIND_COUNT] = { false }, all = true;
    for (size_t i = 0; roof_variant_at(i); i++) {
        const struct roof_variant *loop = roof_variant_at(i);
        if (loop->kind < ROOF_BARE_table || !loop->runs())
            continue;
        kinds[loop->kind] = true;
        snprintf(sentence, sizeof sentence, "the loop %s, %s does what it is named after",
                 roof_kind_name[loop->kind], loop->name);
        require(is_right(loop, BARE_STEP) && is_right(loop, 2 * BARE_STEP), sentence);
        const bool table = loop->kind == ROOF_BARE_table || loop->kind == ROOF_BARE_by_turns;
        const bool heads = loop->kind == ROOF_BARE_heads, whole = table || heads;
        if (!whole && (loop->kind < ROOF_BARE_slope || loop->kind > ROOF_BARE_runs))
            continue;
        bool in_rows = true;
        for (int row = 32; table && row <= 256; row += 32)
            in_rows = in_rows && is_right_in_rows(loop, row, BARE_ROWS, 2 * BARE_STEP);
        for (int row = 64; heads && row <= 512; row += 64)
            in_rows = in_rows && is_right_in_rows(loop, row, 4, 2 * BARE_STEP);
        for (int row = 1; !whole && row < (loop->kind == ROOF_BARE_line ? 256 : 300);
             row += row < 20 ? 1 : 13)
            in_rows = in_rows && is_right_in_rows(loop, row, 1, 2 * BARE_STEP);
        snprintf(sentence, sizeof sentence, "the loop %s, %s does so in rows of any length",
                 roof_kind_name[loop->kind], loop->name);
        require(in_rows, sentence);
    }
    for (int kind = ROOF_BARE_table; kind < ROOF_KIND_COUNT; kind++)
        all = all && kinds[kind] && roof_kind_name[kind];
    require(all, "each kind of loop has one that runs here, and a name");
}

int main(void)
{
    bare_loops();
    return tap_end();
}
