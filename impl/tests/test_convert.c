/*
 * Tests conversions from f32 to f16 and bf16 and back, on all 65 536 values and all ties between them.
 *
 * The fields of the formats give the expected values, in doubles and without rounding. An f32 can hold the middle
 * between two neighbours of 16 bits. Values below it round down, values above it up, and the middle itself to the
 * neighbour whose last bit is 0.
 */
#include <posenc/backend.h>
#include "base/tap/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALL = 1 << 16 };

/* A format: its functions, the bits of its fraction and the bias of its exponent. */
struct conversion {
    const char *name;
    enum posenc_status (*narrow)(int64_t n, const float *from, uint16_t *to,
                                 struct posenc_error *error);
    enum posenc_status (*widen)(int64_t n, const uint16_t *from, float *to,
                                struct posenc_error *error);
    int fraction, bias;
};
static const struct conversion formats[] = {
    { "f16", posenc_f32_to_f16, posenc_f16_to_f32, 10, 15 },
    { "bf16", posenc_f32_to_bf16, posenc_bf16_to_f32, 7, 127 },
};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the magnitude of infinity. */
static int infinity_of(const struct conversion *f)
{
    return 0x7fff >> f->fraction << f->fraction;
}

/* Returns the value of a magnitude, which is the bits without the sign. Infinity counts as the next larger number:
 * values half a last place above the largest number are rounded to it. */
static double value_of(const struct conversion *f, int magnitude)
{
    const int exponent = magnitude >> f->fraction, one = 1 << f->fraction;
    const int fraction = magnitude & (one - 1);
    return ldexp(exponent ? one + fraction : fraction,
                 (exponent ? exponent : 1) - f->bias - f->fraction);
}

static uint16_t narrow_one(const struct conversion *f, float x)
{
    uint16_t narrow = 0x5555;
    return f->narrow(1, &x, &narrow, NULL) == POSENC_OK ? narrow : 0x5555;
}

static uint32_t widen_one(const struct conversion *f, uint16_t x)
{
    float wide = 0.0f;
    return f->widen(1, &x, &wide, NULL) == POSENC_OK ? bits_of(wide) : 0x55555555;
}

/* Widens each pattern of 16 bits, and narrows it again. */
static void test_widening(const struct conversion *f)
{
    static uint16_t narrow[ALL];
    static float wide[ALL];
    int wrong = 0;
    for (int i = 0; i < ALL; i++)
        narrow[i] = (uint16_t)i;
    require(f->widen(ALL, narrow, wide, NULL) == POSENC_OK, f->name);
    for (int i = 0; i < ALL; i++) {
        const int magnitude = i & 0x7fff;
        const double want = value_of(f, magnitude);
        if (magnitude > infinity_of(f)) /* the payload's bits become the first of the f32's */
            wrong += bits_of(wide[i]) != ((uint32_t)(i >> 15) << 31 | 0x7f800000u |
                                          (uint32_t)magnitude << (23 - f->fraction));
        else if (magnitude == infinity_of(f))
            wrong += (double)wide[i] != (i >> 15 ? -(double)INFINITY : (double)INFINITY);
        else
            wrong += (double)fabsf(wide[i]) != want || (signbit(wide[i]) != 0) != (i >> 15);
    }
    require(wrong == 0, "each value of 16 bits is what its fields say");

    static uint16_t back[ALL];
    wrong = f->narrow(ALL, wide, back, NULL) != POSENC_OK;
    for (int i = 0; i < ALL; i++) {
        const int quiet = (i & 0x7fff) > infinity_of(f) ? 1 << (f->fraction - 1) : 0;
        wrong += back[i] != (i | quiet);
    }
    require(wrong == 0, "there and back changes nothing, but that a NaN is quiet");
}

/* Draws a number from first to last - 1. */
static uint32_t draw_between(uint32_t first, uint32_t last, uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return first + (uint32_t)((uint64_t)(last - first) * (*random >> 16) >> 16);
}

/* Rounds values between the magnitudes low and low + 1, of both signs: the middle, neighbours of it and of the ends,
 * and a random one on each side. Returns the number of wrong ones. */
static int count_wrong_between(const struct conversion *f, int low, uint32_t *random)
{
    const double least = value_of(f, low), most = value_of(f, low + 1);
    const uint32_t first = bits_of((float)least), middle = bits_of((float)((least + most) / 2)),
                   last = bits_of((float)most);
    const struct {
        uint32_t bits;
        int want;
    } cases[] = { { first, low },          { draw_between(first, middle, random), low },
                  { middle - 1, low },     { middle, low + low % 2 },
                  { middle + 1, low + 1 }, { draw_between(middle + 1, last, random), low + 1 },
                  { last - 1, low + 1 } };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wrong += narrow_one(f, of_bits(cases[i].bits)) != cases[i].want;
        wrong +=
            narrow_one(f, of_bits(0x80000000u | cases[i].bits)) != (0x8000 | cases[i].want);
    }
    return wrong;
}

static void test_narrowing(const struct conversion *f)
{
    uint32_t random = 1;
    int wrong = 0;
    for (int low = 0; low < infinity_of(f); low++)
        wrong += count_wrong_between(f, low, &random);
    require(wrong == 0, "ties go to even, all else to the nearer neighbour");
    require(narrow_one(f, of_bits(1)) == 0 && narrow_one(f, of_bits(0x80000001)) == 0x8000,
            "the least f32 is a zero of its sign");
    require(narrow_one(f, INFINITY) == infinity_of(f) &&
                narrow_one(f, -INFINITY) == (0x8000 | infinity_of(f)) &&
                narrow_one(f, of_bits(0x7f7fffff)) == infinity_of(f),
            "infinity, and the largest f32");
    require(narrow_one(f, of_bits(0x7f800001)) == (infinity_of(f) | 1 << (f->fraction - 1)) &&
                narrow_one(f, of_bits(0xffffffff)) == 0xffff,
            "a NaN whose payload is lost stays a NaN, and a sign stays");
}

/* Converts arrays of each small length: every element is that of a call of its own, and nothing beside the array is
 * written. */
static void test_lengths(const struct conversion *f)
{
    enum { MOST = 70 };
    float from[MOST + 2], back[MOST + 2];
    uint16_t to[MOST + 2];
    int wrong = 0;
    for (int i = 0; i < MOST + 2; i++)
        from[i] = ldexpf(1.0f + (float)i / 61.0f, i - 30) * (i % 3 ? 1.0f : -1.0f);
    for (int n = 0; n <= MOST; n++) {
        for (int i = 0; i < MOST + 2; i++)
            to[i] = 0x5555;
        memset(back, 0x55, sizeof back);
        wrong += f->narrow(n, from + 1, to + 1, NULL) != POSENC_OK;
        wrong += f->widen(n, to + 1, back + 1, NULL) != POSENC_OK;
        for (int i = 0; i < MOST + 2; i++) {
            const bool inside = i > 0 && i <= n;
            wrong += to[i] != (inside ? narrow_one(f, from[i]) : 0x5555);
            wrong += bits_of(back[i]) != (inside ? widen_one(f, to[i]) : 0x55555555);
        }
    }
    require(wrong == 0, "every length, and nothing beside it");
}

static void test_rejections(const struct conversion *f)
{
    static union {
        float wide[16];
        uint16_t narrow[32];
    } both;
    uint16_t to[4] = { 7, 7, 7, 7 };
    float from[4] = { 1, 2, 3, 4 };
    require(f->narrow(0, NULL, NULL, NULL) == POSENC_OK &&
                f->widen(0, NULL, NULL, NULL) == POSENC_OK,
            "nothing to do");
    require(f->narrow(1, NULL, to, NULL) == POSENC_ERR_ARGUMENT &&
                f->narrow(1, from, NULL, NULL) == POSENC_ERR_ARGUMENT &&
                f->widen(1, NULL, from, NULL) == POSENC_ERR_ARGUMENT &&
                f->widen(1, to, NULL, NULL) == POSENC_ERR_ARGUMENT,
            "NULL");
    require(f->narrow(-1, from, to, NULL) == POSENC_ERR_SHAPE &&
                f->widen(-1, to, from, NULL) == POSENC_ERR_SHAPE,
            "fewer than no elements");
    require(f->narrow(INT64_MAX / 2, from, to, NULL) == POSENC_ERR_OVERFLOW,
            "more than an address space holds");
    require(f->narrow(1, from, (uint16_t *)(void *)((char *)to + 1), NULL) ==
                POSENC_ERR_ARGUMENT,
            "an array that is not aligned");
    require(f->narrow(4, both.wide, both.narrow, NULL) == POSENC_ERR_OVERLAP &&
                f->narrow(4, both.wide, both.narrow + 7, NULL) == POSENC_ERR_OVERLAP &&
                f->narrow(4, both.wide, both.narrow + 8, NULL) == POSENC_OK &&
                f->widen(4, both.narrow + 8, both.wide + 5, NULL) == POSENC_ERR_OVERLAP,
            "arrays that overlap, and arrays side by side");
    require(to[0] == 7 && to[3] == 7, "rejected arrays are untouched");
}

int main(void)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        printf("# %s\n", formats[i].name);
        test_widening(&formats[i]);
        test_narrowing(&formats[i]);
        test_lengths(&formats[i]);
        test_rejections(&formats[i]);
    }
    return tap_end();
}
