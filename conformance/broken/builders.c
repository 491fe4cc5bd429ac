/*
 * Wrong values of what the library builds for its kernels: slopes, thresholds, positions among
 * padding, and indices.  Each function gives element e in place of the right one (see
 * mistake.h).
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---- Slopes ---- */

/* One geometric sequence however many heads. */
double geometric_slopes(const struct built *b, int64_t e)
{
    return exp2(-b->bias_max * (double)(e + 1) / (double)b->rows);
}

/* Exponents from h = 0, where the number of heads is a power of two. */
double slopes_from_zero(const struct built *b, int64_t e)
{
    return (b->rows & (b->rows - 1)) == 0 ? geometric_slopes(b, e - 1) : (double)b->slopes[e];
}

/* ---- T5 ---- */

/* The least distance whose bucket, as a logarithm in floating point makes it, is e or more:
 * exact + trunc(log(n / exact) / log(max_distance / exact) (n_buckets - exact)). */
static double by_log(const struct built *b, int64_t e, float (*log_of)(float))
{
    const int64_t exact = b->n / 2;
    const float all = (float)(b->n - exact), span = logf((float)b->most / (float)exact);
    const int64_t from = e > exact ? b->index[e - 1] : exact; /* where the one before begins */
    for (int64_t n = from; exact > 0 && e >= exact && n <= 2 * b->most; n++)
        if (exact + (int64_t)(log_of((float)n / (float)exact) / span * all) >= e)
            return (double)n;
    return (double)b->index[e];
}

/* The logarithm one step too low, but not below 0. */
static float low_log(float x) { return x > 1.0f ? nextafterf(logf(x), 0.0f) : 0.0f; }
static float bf16_log(float x) { return round_to(POSENC_BF16, logf(x)); }

double low_thresholds(const struct built *b, int64_t e) { return by_log(b, e, low_log); }
double bf16_thresholds(const struct built *b, int64_t e) { return by_log(b, e, bf16_log); }

/* ---- Padding ---- */

/* Tokens of its batch so far, this one included. */
static int64_t count(const struct built *b, int64_t e)
{
    int64_t n = 0;
    for (int64_t t = e - e % b->columns; t <= e; t++)
        n += b->mask[t] != 0;
    return n;
}

double padding_from_zero(const struct built *b, int64_t e)
{
    return (double)(b->mask[e] ? count(b, e) - 1 : b->offset);
}

double padding_counted(const struct built *b, int64_t e)
{
    return (double)(b->mask[e] ? b->offset + e % b->columns + 1 : b->offset);
}

double padding_keeps_count(const struct built *b, int64_t e)
{
    return (double)(b->offset + count(b, e));
}

/* ---- Rows of a window, columns by relative position ---- */

/* From the last to the first: key - query for query - key, distances in ascending order. */
double turned_index(const struct built *b, int64_t e)
{
    return (double)(b->last - b->index[e]);
}

/* Width and height exchanged. */
double sides_swapped(const struct built *b, int64_t e)
{
    const int64_t tokens = b->rows * b->columns, i = e / tokens, j = e % tokens;
    const int64_t down = i / b->rows - j / b->rows, right = i % b->rows - j % b->rows;
    return (double)((down + b->columns - 1) * (2 * b->rows - 1) + right + b->rows - 1);
}

/* Of the three last rows those for the class token as a query and as a key. */
double class_swapped(const struct built *b, int64_t e)
{
    const int64_t row = b->index[e], first = b->last - 2;
    return (double)(row == first ? first + 1 : row == first + 1 ? first : row);
}

double clipped_early(const struct built *b, int64_t e)
{
    return (double)clip(b->index[e], 1, b->last - 1);
}

/* Shifted by one column too many. */
double one_column_off(const struct built *b, int64_t e)
{
    return (double)clip(b->index[e] - 1, 0, b->last);
}

double one_bucket_short(const struct built *b, int64_t e)
{
    return (double)clip(b->index[e], 0, b->last - 1);
}

/* ---- DeBERTa's buckets beyond m = position_buckets/2 ---- */

static int64_t distance(const struct built *b, int64_t e)
{
    return e - (b->columns - 1) + b->offset;
}

/* How many buckets beyond m, as a real number; f64 is within 1e-9 of where it is whole. */
static double beyond(const struct built *b, int64_t far)
{
    const double m = (double)(b->buckets / 2);
    return log((double)far / m) / log((double)(b->most - 1) / m) * (m - 1.0);
}

/* The column of so many buckets beyond m, on the side of the distance or after the query. */
static double column(const struct built *b, int64_t e, double buckets, bool with_sign)
{
    const int64_t m = b->buckets / 2, far = distance(b, e);
    if (m == 0 || llabs(far) <= m)
        return (double)b->index[e];
    const int64_t bucket = with_sign && far < 0 ? -m - (int64_t)buckets : m + (int64_t)buckets;
    return (double)clip(b->buckets + bucket, 0, b->last);
}

double truncated_bucket(const struct built *b, int64_t e)
{
    return column(b, e, trunc(beyond(b, llabs(distance(b, e))) + 1e-9), true);
}

double unsigned_bucket(const struct built *b, int64_t e)
{
    return column(b, e, ceil(beyond(b, llabs(distance(b, e))) - 1e-9), false);
}

/* The last distance before max_distance is a whole bucket, and its logarithm 1 ulp high. */
double high_bucket(const struct built *b, int64_t e)
{
    const float m = (float)(b->buckets / 2), far = (float)llabs(distance(b, e));
    const float log_position =
        nextafterf(logf(far / m), INFINITY) / logf((float)(b->most - 1) / m) * (m - 1.0f);
    return column(b, e, (double)ceilf(log_position), true);
}

/* Distances beyond the last cut to it first, as in the table of the authors' code. */
double clamped_bucket(const struct built *b, int64_t e)
{
    const int64_t far = clip(llabs(distance(b, e)), 0, b->most - 1);
    return column(b, e, ceil(beyond(b, far) - 1e-9), true);
}
