/*
 * Storage by MPFR: widening and narrowing of every 16-bit value and of what lies between them;
 * and whether the cases of storage hold what their flags promise, without which a kernel that
 * rounds otherwise would pass them.
 */
#include "published.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Exponents as MPFR counts them: of 1/2 2^e, the least subnormal and the largest number. */
struct narrow {
    int bits, least, largest;
};

static struct narrow narrow_of(enum posenc_dtype type)
{
    return type == POSENC_F16 ? (struct narrow){ 11, -23, 16 }
                              : (struct narrow){ 8, -132, 128 };
}

/* An f64 rounded to a 16-bit type in one direction. */
static double rounded(enum posenc_dtype type, double value, mpfr_rnd_t direction)
{
    const struct narrow n = narrow_of(type);
    const mpfr_exp_t least = mpfr_get_emin(), largest = mpfr_get_emax();
    mpfr_t x;
    mpfr_init2(x, n.bits);
    int inexact = mpfr_set_d(x, value, direction);
    mpfr_set_emin(n.least);
    mpfr_set_emax(n.largest);
    inexact = mpfr_check_range(x, inexact, direction);
    mpfr_subnormalize(x, inexact, direction);
    mpfr_set_emin(least);
    mpfr_set_emax(largest);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return result;
}

static double nearest(enum posenc_dtype type, double value)
{
    return rounded(type, value, MPFR_RNDN);
}

/* ---- storage.c and the metrics ---- */

static void narrow_as_mpfr(enum posenc_dtype type, float value)
{
    const double want = nearest(type, (double)value);
    const float widened = storage_widen(type, storage_narrow(type, value));
    char text[64];
    snprintf(text, sizeof text, "%s of %a", dtype_names[type], (double)value);
    require_that(same_f64((double)widened, want), "narrowed as MPFR narrows", text);
    require_that(same_f64((double)odd_to_type(type, (double)value), want),
                 "the oracle rounds as MPFR does", text);
}

/* The value of 16 bits from its fields. */
static double value_of(enum posenc_dtype type, uint16_t bits)
{
    const struct narrow n = narrow_of(type);
    const int fraction_bits = n.bits - 1, exponents = 1 << (15 - fraction_bits);
    const int fraction = bits & ((1 << fraction_bits) - 1), sign = bits >> 15 ? -1 : 1;
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    if (exponent == exponents - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    const double magnitude =
        exponent == 0 ? ldexp(fraction, n.least - 1)
                      : ldexp((1 << fraction_bits) + fraction, n.least - 2 + exponent);
    return sign < 0 ? -magnitude : magnitude;
}

/* Each value, the middle between it and the next and the f32 values on both sides of that. */
static void types_against_mpfr(void)
{
    for (int type = POSENC_F16; type <= POSENC_BF16; type++)
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            const enum posenc_dtype t = (enum posenc_dtype)type;
            const float value = storage_widen(t, (uint16_t)bits);
            require_that(same_f64((double)value, value_of(t, (uint16_t)bits)),
                         "a 16-bit value widened", dtype_names[type]);
            if (isnan(value) || isinf(value))
                continue;
            const double next = value_of(t, (uint16_t)(bits + 1));
            const double end =
                isinf(next) ? copysign(ldexp(1, narrow_of(t).largest), next) : next;
            const float middle = (float)(((double)value + end) / 2);
            narrow_as_mpfr(t, value);
            narrow_as_mpfr(t, middle);
            narrow_as_mpfr(t, nextafterf(middle, 0));
            narrow_as_mpfr(t, nextafterf(middle, middle < 0 ? -INFINITY : INFINITY));
        }
}

/* ---- Promises of flags ---- */

/* What a value of a case is in f32 and beyond it: whether it is what a flag says. */
typedef bool promise(enum posenc_dtype type, double odd);

static bool is_tie(enum posenc_dtype type, double odd)
{
    const double value = reference_nearest_f32(odd);
    const double up = rounded(type, value, MPFR_RNDU), down = rounded(type, value, MPFR_RNDD);
    return up != down && up - value == value - down;
}

static bool is_subnormal(enum posenc_dtype type, double odd)
{
    const struct narrow n = narrow_of(type);
    const double value = nearest(type, odd);
    return value != 0 && fabs(value) < ldexp(1, n.least + n.bits - 2);
}

static bool overflows(enum posenc_dtype type, double odd)
{
    const double value = reference_nearest_f32(odd);
    return isfinite(value) && isinf(nearest(type, value));
}

static bool rounds_twice(enum posenc_dtype type, double odd)
{
    return isfinite(odd) && nearest(type, odd) != nearest(type, reference_nearest_f32(odd));
}

static const struct {
    const char *flag;
    promise *keeps;
} promises[] = { { "Tie", is_tie },
                 { "Subnormal", is_subnormal },
                 { "Overflow", overflows },
                 { "TwoRoundings", rounds_twice } };

static bool has_flag(const struct vector_case *c, const char *flag)
{
    char flags[160], word[80];
    snprintf(flags, sizeof flags, " %s ", c->flags);
    snprintf(word, sizeof word, " %s ", flag);
    return strstr(flags, word) != NULL;
}

static bool keeps(const struct vector_case *c, promise *keeps_it)
{
    for (int o = 0; o < c->n_outputs; o++)
        for (int64_t i = 0; i < c->rows[o] * c->width[o]; i++)
            if (c->problem.dtype != POSENC_F32 && keeps_it(c->problem.dtype, c->want[o][i]))
                return true;
    return false;
}

/* What follows the type in an id. */
static const char *tail_of(const struct vector_case *c)
{
    return strchr(strchr(c->id, '/') + 1, '/');
}

/* One type of those that share a problem has to have such a value. */
static void flags_are_kept(const struct vectors *vectors)
{
    for (size_t f = 0; f < sizeof promises / sizeof *promises; f++)
        for (size_t i = 0; i < vectors->n; i++) {
            const struct vector_case *c = &vectors->cases[i];
            bool kept = false;
            if (c->problem.dtype == POSENC_F32 || !has_flag(c, promises[f].flag))
                continue;
            for (size_t k = 0; k < vectors->n && !kept; k++) {
                const struct vector_case *other = &vectors->cases[k];
                kept = other->problem.kernel == c->problem.kernel &&
                       strcmp(tail_of(other), tail_of(c)) == 0 &&
                       keeps(other, promises[f].keeps);
            }
            require_that(kept, promises[f].flag, c->id);
        }
}

void check_storage(const struct vectors *vectors)
{
    types_against_mpfr();
    flags_are_kept(vectors);
}
