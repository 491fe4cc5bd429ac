/*
 * Tests the public conversions between f32 and 16 bits: loops over arrays, which compilers vectorise, give the bits of
 * half.h for one element. The tests of the primitives compare half.h with the definition of the formats.
 */
#include <posenc/backend.h>
#include "base/tap/tap.h"
#include "impl/simd/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALL = 1 << 16, AROUND = 4 };

/* A format: its functions for arrays and for one element, and the number of bits that it lacks. */
struct conversion {
    const char *name;
    enum posenc_status (*narrow)(int64_t n, const float *from, uint16_t *to,
                                 struct posenc_error *error);
    enum posenc_status (*widen)(int64_t n, const uint16_t *from, float *to,
                                struct posenc_error *error);
    uint16_t (*narrow_one)(float x);
    float (*widen_one)(uint16_t x);
    int lost_bits;
};
static const struct conversion formats[] = {
    { "f16", posenc_f32_to_f16, posenc_f16_to_f32, f16_from_f32, f32_from_f16, 13 },
    { "bf16", posenc_f32_to_bf16, posenc_bf16_to_f32, bf16_from_f32, f32_from_bf16, 16 },
};

/* Widens each pattern of 16 bits, and narrows numbers at it and about the middle between it and the next one. */
static void test_values(const struct conversion *f)
{
    static uint16_t narrow[AROUND * ALL];
    static float wide[AROUND * ALL];
    const uint32_t middle = 1u << (f->lost_bits - 1),
                   above[AROUND] = { 0, middle - 1, middle, middle + 1 };
    int wrong = 0;
    for (int i = 0; i < ALL; i++)
        narrow[i] = (uint16_t)i;
    wrong += f->widen(ALL, narrow, wide, NULL) != POSENC_OK;
    for (int i = 0; i < ALL; i++)
        wrong += posenc_f32_bits(wide[i]) != posenc_f32_bits(f->widen_one((uint16_t)i));
    require(wrong == 0, "each value of 16 bits widens as alone");

    for (int i = 0; i < AROUND * ALL; i++)
        wide[i] = posenc_f32_from_bits(posenc_f32_bits(f->widen_one((uint16_t)(i / AROUND))) +
                                       above[i % AROUND]);
    wrong = f->narrow((int64_t)AROUND * ALL, wide, narrow, NULL) != POSENC_OK;
    for (int i = 0; i < AROUND * ALL; i++)
        wrong += narrow[i] != f->narrow_one(wide[i]);
    require(wrong == 0, "each value, and numbers about ties, narrow as alone");

    const int fraction = 23 - f->lost_bits, infinity = 0x7fff >> fraction << fraction;
    wrong = 0;
    for (int i = 0; i < ALL; i++) {
        const int magnitude = i & 0x7fff;
        if (magnitude <= infinity)
            continue;
        const uint32_t nan = posenc_f32_bits(f->widen_one((uint16_t)i));
        wrong += nan != ((uint32_t)(i >> 15) << 31 | 0x7f800000u |
                         (uint32_t)magnitude << f->lost_bits);
        wrong += f->narrow_one(posenc_f32_from_bits(nan)) != (i | 1 << (fraction - 1));
    }
    require(wrong == 0, "a NaN keeps its sign and its payload, and narrows to a quiet one");
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
            wrong += to[i] != (inside ? f->narrow_one(from[i]) : 0x5555);
            wrong += posenc_f32_bits(back[i]) !=
                     (inside ? posenc_f32_bits(f->widen_one(to[i])) : 0x55555555);
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
        test_values(&formats[i]);
        test_lengths(&formats[i]);
        test_rejections(&formats[i]);
    }
    return tap_end();
}
