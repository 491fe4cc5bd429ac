/*
 * Builders of numbers and conversions, as offers: slopes, thresholds, biases by distance, initial values, and
 * arrays between f32 and 16 bits.
 */
#include "offers.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bool is_near(double got, double wanted, double relative)
{
    return got == wanted || fabs(got - wanted) <= relative * fabs(wanted) + 0x1p-149;
}

static bool differs(char *complaint, int64_t at, double got, double wanted)
{
    return complain(complaint, "element %lld is %.9g, by the header %.9g", (long long)at, got,
                    wanted);
}

/* ---- ALiBi ---- */

static wide count_first(const struct trial *t, int i)
{
    (void)i;
    return t->whole[0];
}

static struct verdict judge_alibi(const struct trial *t)
{
    struct verdict v = judge_by_ends(t);
    due(&v, t->real[1] == 0.0, STATUS(PARAMETER));
    return v;
}

static enum posenc_status call_alibi(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_alibi_slopes(t->whole[0], t->real[1], (void *)t->data[2]);
}

static bool right_alibi(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t n = t->whole[0];
    int64_t power = 1;
    while (2 * power <= n)
        power *= 2;
    for (int64_t h = 0; h < n; h++) {
        const double step = h < power ? (double)(h + 1) / (double)power
                                      : (double)(2 * (h - power) + 1) / (double)(2 * power);
        const double wanted = exp2(-t->real[1] * step), got = element_of(t, 2, h);
        if (!is_near(got, wanted, 0x1p-23))
            return differs(complaint, h, got, wanted);
    }
    return true;
}

/* ---- T5 ---- */

static wide count_t5(const struct trial *t, int i)
{
    (void)i;
    return t->whole[2] ? t->whole[0] / 2 : t->whole[0];
}

static void settle_t5(struct draws *d, struct trial *t)
{
    t->whole[0] = t->whole[2] ? 4 + 2 * draw_below(d, 20) : t->whole[0];
    t->whole[1] += t->whole[0];
}

static struct verdict judge_t5(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const int64_t n = t->whole[0];
    const bool both = t->whole[2] != 0, bad = n < (both ? 4 : 2) || n > 4096 || (both && n % 2);
    due(&v, !t->data[3], STATUS(ARGUMENT));
    due(&v, bad, STATUS(SHAPE));
    due(&v, t->whole[1] >= 1 << 24 || (!bad && t->whole[1] <= (both ? n / 2 : n) / 2),
        STATUS(PARAMETER));
    v.may |= bad ? STATUS(PARAMETER) : 0u;
    return v;
}

static enum posenc_status call_t5(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_t5_thresholds(t->whole[0], t->whole[1], t->whole[2] != 0, (void *)t->data[3]);
}

/* Ascending, and each the least distance whose logarithm has come to its bucket. */
static bool right_t5(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t n = (int64_t)count_t5(t, 3), exact = n / 2;
    const double e = (double)exact, span = log((double)t->whole[1] / e),
                 buckets = (double)(n - exact);
    for (int64_t b = 0; b < n; b++) {
        const double got = element_of(t, 3, b), k = (double)(b - exact);
        if (b <= exact && got != (double)b)
            return differs(complaint, b, got, (double)b);
        if (b > 0 && got < element_of(t, 3, b - 1))
            return complain(complaint, "threshold %lld falls", (long long)b);
        if (b > exact && (buckets * log(got / e) / span < k - 1e-6 ||
                          buckets * log((got - 1.0) / e) / span >= k + 1e-6))
            return complain(complaint, "threshold %lld is %g", (long long)b, got);
    }
    return true;
}

/* ---- By distance ---- */

static wide count_distance(const struct trial *t, int i)
{
    const bool sandwich = strcmp(t->offer->name, "sandwich") == 0;
    if (sandwich && (wide)t->whole[2] * t->whole[4] > 1 << 20)
        return (wide)1 << 40; /* takes too long */
    return i == 1 || i == 2 ? t->whole[0] : (wide)t->whole[0] * t->whole[4];
}

static double element_distance(struct draws *d, const struct trial *t, int i)
{
    (void)t;
    (void)i;
    return (double)(1 + draw_below(d, 64)) / 32.0;
}

static void due_distances(struct verdict *v, const struct trial *t)
{
    const wide first = t->whole[3], n = t->whole[4];
    due(v, n < 1 || first <= -(1 << 24) || first + n - 1 >= 1 << 24, STATUS(SHAPE));
}

static struct verdict judge_kerple(const struct trial *t)
{
    struct verdict v = judge_by_ends(t);
    const double most = strcmp(t->offer->name, "kerple_power") == 0 ? 2.0 : (double)FLT_MAX;
    due_distances(&v, t);
    due(&v, !all_between(t, 1, 0x1p-149, most) || !all_between(t, 2, 0x1p-149, (double)FLT_MAX),
        STATUS(PARAMETER));
    return v;
}

static enum posenc_status call_kerple_log(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_kerple_log(t->whole[0], (void *)t->data[1], (void *)t->data[2], t->whole[3],
                             t->whole[4], (void *)t->data[5]);
}

static enum posenc_status call_kerple_power(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_kerple_power(t->whole[0], (void *)t->data[1], (void *)t->data[2], t->whole[3],
                               t->whole[4], (void *)t->data[5]);
}

static bool right_kerple(const struct trial *t, char complaint[MOST_TEXT])
{
    const bool power = strcmp(t->offer->name, "kerple_power") == 0;
    for (int64_t e = 0; e < t->whole[0] * t->whole[4]; e++) {
        const int64_t h = e / t->whole[4];
        const double p = element_of(t, 1, h), a = element_of(t, 2, h),
                     d = fabs((double)(t->whole[3] + e % t->whole[4]));
        const double exact = d == 0.0 ? 0.0 : power ? -a * pow(d, p) : -p * log1p(a * d);
        const double wanted = (double)(float)exact, got = element_of(t, 5, e);
        if (!is_near(got, wanted, 0x1p-22))
            return differs(complaint, e, got, wanted);
    }
    return true;
}

static struct verdict judge_sandwich(const struct trial *t)
{
    struct verdict v = judge_by_ends(t);
    due_distances(&v, t);
    due(&v, t->whole[2] % 2 != 0, STATUS(SHAPE));
    due(&v, !all_between(t, 1, -(double)FLT_MAX, (double)FLT_MAX), STATUS(PARAMETER));
    return v;
}

static void settle_sandwich(struct draws *d, struct trial *t)
{
    t->whole[2] = 2 + 2 * draw_below(d, 20);
}

static enum posenc_status call_sandwich(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_sandwich(t->whole[2], t->whole[0], (void *)t->data[1], t->whole[3],
                           t->whole[4], (void *)t->data[5]);
}

static bool right_sandwich(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t dim = t->whole[2], n = t->whole[4];
    for (int64_t e = 0; dim <= 64 && e < t->whole[0] * n; e++) {
        const double d = (double)(t->whole[3] + e % n), scale = element_of(t, 1, e / n);
        double sum = 0.0;
        for (int64_t i = 0; i < dim / 2; i++) {
            const double sine = sin(0.5 * d * pow(10000.0, -2.0 * (double)i / (double)dim));
            sum -= 2.0 * sine * sine;
        }
        const double wanted = (double)(float)(sum * scale), got = element_of(t, 5, e);
        if (!is_near(got, wanted, 1e-5) && fabs(got - wanted) > fabs(scale) * 1e-7)
            return differs(complaint, e, got, wanted);
    }
    return true;
}

/* ---- Initial values ---- */

static wide count_normal(const struct trial *t, int i)
{
    (void)i;
    return (wide)t->whole[2] * t->whole[3];
}

static struct verdict judge_normal(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const wide first = t->whole[1], rows = t->whole[2];
    due(&v, !t->data[5], STATUS(ARGUMENT));
    due(&v, first < 0 || rows < 0 || first + rows > (wide)1 << 31, STATUS(SHAPE));
    due(&v, t->whole[3] < 1 || t->whole[3] > 65536, STATUS(SHAPE));
    due(&v, !(t->real[4] > 0.0 && t->real[4] <= (double)FLT_MAX), STATUS(PARAMETER));
    return v;
}

static enum posenc_status call_normal(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_normal((uint64_t)t->whole[0], t->whole[1], t->whole[2], t->whole[3],
                         t->real[4], (void *)t->data[5]);
}

/* Below 8.6 sigma, finite where that is, and a row by itself the same. */
static bool right_normal(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t dim = t->whole[3], n = t->whole[2] * dim;
    float row[64];
    for (int64_t e = 0; e < n; e++)
        if (!(fabs(element_of(t, 5, e)) <= 8.6 * t->real[4]) && t->real[4] < 1e37)
            return complain(complaint, "element %lld is %g", (long long)e, element_of(t, 5, e));
    if (n == 0 || dim > 64)
        return true;
    if (posenc_normal((uint64_t)t->whole[0], t->whole[1] + t->whole[2] - 1, 1, dim, t->real[4],
                      row) != POSENC_OK)
        return complain(complaint, "its last row alone is refused");
    return memcmp(row, t->data[5] + (size_t)(n - dim) * sizeof *row,
                  (size_t)dim * sizeof *row) == 0 ||
           complain(complaint, "its last row alone is another one");
}

/* ---- Conversions ---- */

static double element_bits(struct draws *d, const struct trial *t, int i)
{
    return t->offer->of[i].kind == KIND_FLOATS ? draw_real(d, (double)draw_below(d, 70000))
                                               : (double)draw_below(d, 65536);
}

static struct verdict judge_conversion(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const wide n = t->whole[0];
    for (int i = 1; i <= 2; i++) {
        const size_t item = kind_size(t->offer->of[i].kind);
        const uintptr_t at = (uintptr_t)t->data[i];
        due(&v, n > 0 && (at == 0 || at % item != 0), STATUS(ARGUMENT));
        due(&v, n > 0 && (wide)at + n * (wide)item > UINTPTR_MAX, STATUS(OVERFLOW));
        v.may |= n * (wide)item > INT64_MAX ? STATUS(OVERFLOW) : 0u;
    }
    const wide from = (wide)(uintptr_t)t->data[1], to = (wide)(uintptr_t)t->data[2];
    due(&v, n < 0, STATUS(SHAPE));
    due(&v,
        n > 0 && from && to && from < to + n * (wide)kind_size(t->offer->of[2].kind) &&
            to < from + n * (wide)kind_size(t->offer->of[1].kind),
        STATUS(OVERLAP));
    return v;
}

#define CONVERSION(name, from, to)                                                             \
    static enum posenc_status call_##name(struct trial *t, struct posenc_error *error)         \
    {                                                                                          \
        (void)error;                                                                           \
        return posenc_##name(t->whole[0], (from *)(void *)t->data[1],                          \
                             (to *)(void *)t->data[2]);                                        \
    }
CONVERSION(f32_to_f16, const float, uint16_t)
CONVERSION(f16_to_f32, const uint16_t, float)
CONVERSION(f32_to_bf16, const float, uint16_t)
CONVERSION(bf16_to_f32, const uint16_t, float)

/* What 16 bits with so many of the exponent mean. */
static double meaning(unsigned bits, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const double fraction = (double)(bits & ((1u << fraction_bits) - 1u));
    const double implied = exponent ? ldexp(1.0, fraction_bits) : 0.0;
    const double value =
        exponent == (1 << exponent_bits) - 1
            ? (fraction != 0.0 ? (double)NAN : (double)INFINITY)
            : ldexp(implied + fraction, (exponent ? exponent : 1) - bias - fraction_bits);
    return bits >> 15 ? -value : value;
}

/* The neighbours of what was made lie no nearer, infinity being the next power of two. */
static bool is_nearest(double from, unsigned to, int exponent_bits)
{
    const double beyond = ldexp(1.0, 1 << (exponent_bits - 1));
    double near[3];
    if (isnan(from))
        return isnan(meaning(to, exponent_bits));
    if (isnan(meaning(to, exponent_bits)) || !signbit(from) != !(to >> 15))
        return false;
    if (isinf(from))
        return meaning(to, exponent_bits) == from;
    for (int i = 0; i < 3; i++) {
        const unsigned magnitude = to & 0x7fffu;
        const double value = meaning(magnitude + (unsigned)i - 1u, exponent_bits);
        near[i] = fabs((isinf(value) ? beyond : value) - fabs(from));
        if (isnan(value) || (magnitude == 0 && i == 0))
            near[i] = (double)INFINITY;
    }
    return near[1] < near[0] && near[1] < near[2]
               ? true
               : near[1] <= near[0] && near[1] <= near[2] && (to & 1u) == 0;
}

static bool right_conversion(const struct trial *t, char complaint[MOST_TEXT])
{
    const int bits = strstr(t->offer->name, "bf16") ? 8 : 5;
    const bool narrows = t->offer->of[1].kind == KIND_FLOATS;
    for (int64_t k = 0; k < t->whole[0]; k++) {
        const double from = element_of(t, 1, k), to = element_of(t, 2, k),
                     wide_from = narrows ? from : meaning((unsigned)from, bits);
        if (narrows ? !is_nearest(from, (unsigned)to, bits)
                    : to != wide_from && !(isnan(to) && isnan(wide_from)))
            return differs(complaint, k, to, wide_from);
    }
    return true;
}

/* ---- The list ---- */

#define HEADS                                                                                  \
    {                                                                                          \
        "n_heads", KIND_WHOLE, 1, 65536, false                                                 \
    }
#define FIRST                                                                                  \
    {                                                                                          \
        "first", KIND_WHOLE, -16777215, 16777215, false                                        \
    }
#define N                                                                                      \
    {                                                                                          \
        "n", KIND_WHOLE, 1, 33554431, false                                                    \
    }
#define MAKES(kind, name)                                                                      \
    {                                                                                          \
        name, kind, 0, 0, true                                                                 \
    }
#define READS(kind, name)                                                                      \
    {                                                                                          \
        name, kind, 0, 0, false                                                                \
    }
#define CONVERTS(id, from, to)                                                                 \
    {                                                                                          \
        .name = #id,                                                                           \
        .of = { { "n", KIND_WHOLE, 0, 0x1p61, false }, READS(from, "from"), MAKES(to, "to") }, \
        .anywhere = true, .count = count_first, .element = element_bits,                       \
        .judge = judge_conversion, .call = call_##id, .right = right_conversion                \
    }

const struct offer offers_builders[] = {
    { .name = "alibi_slopes",
      .of = { HEADS,
              { "alibi_bias_max", KIND_REAL, 0, 64, false },
              MAKES(KIND_FLOATS, "slopes") },
      .count = count_first,
      .judge = judge_alibi,
      .call = call_alibi,
      .right = right_alibi },
    { .name = "t5_thresholds",
      .of = { { "num_buckets", KIND_WHOLE, 2, 4096, false },
              { "max_distance", KIND_WHOLE, 2, 16777215, false },
              { "bidirectional", KIND_FLAG, 0, 1, false },
              MAKES(KIND_INTS, "thresholds") },
      .settle = settle_t5,
      .count = count_t5,
      .judge = judge_t5,
      .call = call_t5,
      .right = right_t5 },
    { .name = "kerple_log",
      .of = { HEADS, READS(KIND_FLOATS, "p"), READS(KIND_FLOATS, "a"), FIRST, N,
              MAKES(KIND_FLOATS, "values") },
      .count = count_distance,
      .element = element_distance,
      .judge = judge_kerple,
      .call = call_kerple_log,
      .right = right_kerple },
    { .name = "kerple_power",
      .of = { HEADS, READS(KIND_FLOATS, "p"), READS(KIND_FLOATS, "a"), FIRST, N,
              MAKES(KIND_FLOATS, "values") },
      .count = count_distance,
      .element = element_distance,
      .judge = judge_kerple,
      .call = call_kerple_power,
      .right = right_kerple },
    { .name = "sandwich",
      .of = { HEADS,
              READS(KIND_FLOATS, "scale"),
              { "dim", KIND_WHOLE, 2, 65536, false },
              FIRST,
              N,
              MAKES(KIND_FLOATS, "values") },
      .settle = settle_sandwich,
      .count = count_distance,
      .element = element_distance,
      .judge = judge_sandwich,
      .call = call_sandwich,
      .right = right_sandwich },
    { .name = "normal",
      .of = { { "seed", KIND_WHOLE, -20, 20, false },
              { "first_row", KIND_WHOLE, 0, 0x1p31, false },
              { "rows", KIND_WHOLE, 0, 0x1p31, false },
              { "dim", KIND_WHOLE, 1, 65536, false },
              { "sigma", KIND_REAL, 0, 2, false },
              MAKES(KIND_FLOATS, "table") },
      .count = count_normal,
      .judge = judge_normal,
      .call = call_normal,
      .right = right_normal },
    CONVERTS(f32_to_f16, KIND_FLOATS, KIND_HALVES),
    CONVERTS(f16_to_f32, KIND_HALVES, KIND_FLOATS),
    CONVERTS(f32_to_bf16, KIND_FLOATS, KIND_HALVES),
    CONVERTS(bf16_to_f32, KIND_HALVES, KIND_FLOATS),
    { .name = NULL }
};
