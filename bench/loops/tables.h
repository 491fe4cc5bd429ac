/*
 * Lower-bound loops of tables, a part of bounds.c: cosines and sines of groups of eight rows, computed in f64 as in mode
 * exact. A kernel evaluates sine and cosine of an anchor, an angle between the rows of a group. It rotates the anchor to
 * the two middle rows; the others follow by the recurrence f(n + 1) = 2 cos(step) f(n) - f(n - 1). Here anchors, angles
 * and positions are constants. Variables: c, s: cosines and sines of a vector of pairs.
 */
#include "impl/kernels/sincos.h"

/* Returns the value, plus the floats at src + i unless src is NULL. */
SIMD_INLINE vf add_onto(const float *src, int64_t i, vf value)
{
    return src ? vf_add(vf_load(src + i), value) : value;
}

/* The anchor of a group of rows has an angle of 0.725. Rotations by 0.025 to either side give the two middle rows, of 0.7
 * and 0.75. There is a number for each pair of a row and each of the eight groups that share an anchor, since frequencies
 * do not stay in the nearest cache. */
enum { PAIRS = 2048 };
#define FOR_ALL_PAIRS(x)                                                                       \
    {                                                                                          \
        TIMES_16(TIMES_16(TIMES_8(x)))                                                         \
    }
static const double anchor_angle[128] = { TIMES_16(TIMES_8(0.725)) };
static const double anchor_cosine[128] = { TIMES_16(TIMES_8(0.74849942196616515)) };
static const double anchor_sine[128] = { TIMES_16(TIMES_8(0.66313544266334967)) };
/* Cosine and sine of the rotation to the lower row, then those of the rotation to the upper row. */
static const double rotations[4][PAIRS] = { FOR_ALL_PAIRS(0.99968751627570263),
                                            FOR_ALL_PAIRS(-0.024997395914712332),
                                            FOR_ALL_PAIRS(0.99968751627570263),
                                            FOR_ALL_PAIRS(0.024997395914712332) };
static const double twice_cosine = 1.997500520789932621; /* of the 0.05 between two rows */
#undef FOR_ALL_PAIRS

/* Evaluates an anchor of one vector of pairs, once for eight groups. */
SIMD_INLINE void evaluate_anchor(int64_t k)
{
    double cosine[POSENC_FREQS_PAD], sine[POSENC_FREQS_PAD];
    vd c, s;
    sincos_reduced(vd_load(anchor_angle + k), &c, &s);
    vd_store(cosine, c);
    vd_store(sine, s);
    __asm__ volatile("" : : "m"(cosine), "m"(sine));
}

/* Rotates the anchor of the pairs from k on by the angle whose cosines are at `by`; a sine gets the sign of the
 * positions. */
SIMD_INLINE void rotate_anchor(int64_t k, const double *by, vd sign, vd *c, vd *s)
{
    vd from_c = vd_load(anchor_cosine + k), from_s = vd_load(anchor_sine + k);
    vd by_c = vd_load(by), by_s = vd_load(by + PAIRS);
    *c = vd_fnma(from_s, by_s, vd_mul(from_c, by_c));
    *s = vd_mul(sign, vd_fma(from_c, by_s, vd_mul(from_s, by_c)));
}

/* Rounds vectors of cosines and sines to a and b; if `interleaved`, to alternating sines and cosines. */
SIMD_INLINE void round_both(bool interleaved, vd cosine, vd sine, vf *a, vf *b)
{
    if (interleaved) {
        vf_zip_from_vd(sine, cosine, a, b);
        return;
    }
    *a = vf_from_vd(cosine);
    *b = vf_from_vd(sine);
}

/* Position in the tables. All distances are in floats. */
struct table_cursor {
    float *dst;
    const float *src; /* or NULL */
    int64_t second;   /* from the first vector that is written in a row to the second one */
    int64_t row;      /* from a row to the next */
};

/* Writes two vectors of each of two rows, after reading all, and moves the cursor on. Returns false if a number is small.
 * The empty asm keeps the address in a register, as in kernels. */
SIMD_INLINE bool put_rows(bool interleaved, struct table_cursor *cursor, vd c, vd s, vd other_c,
                          vd other_s)
{
    const int64_t second = cursor->second, row = cursor->row;
    vf a, b, other_a, other_b;
    round_both(interleaved, c, s, &a, &b);
    round_both(interleaved, other_c, other_s, &other_a, &other_b);
    if (__builtin_expect(!vf_none_small(a, b, other_a, other_b), 0))
        return false;
    a = vf_pin(add_onto(cursor->src, 0, a));
    b = vf_pin(add_onto(cursor->src, second, b));
    other_a = vf_pin(add_onto(cursor->src, row, other_a));
    other_b = vf_pin(add_onto(cursor->src, row + second, other_b));
    vf_store(cursor->dst, a);
    vf_store(cursor->dst + second, b);
    cursor->dst += row;
    __asm__("" : "+r"(cursor->dst));
    vf_store(cursor->dst, other_a);
    vf_store(cursor->dst + second, other_b);
    cursor->dst += row;
    cursor->src += cursor->src ? 2 * row : 0;
    return true;
}

/* Writes four rows of a group, from a middle row (c, s) outward; `before` is the other middle row. */
SIMD_INLINE bool put_half(bool interleaved, struct table_cursor *cursor, vd c, vd s,
                          vd c_before, vd s_before)
{
    const vd twice = vd_set1(twice_cosine);
    vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);
    if (!put_rows(interleaved, cursor, c, s, c_next, s_next))
        return false;
    c = vd_fms(twice, c_next, c);
    s = vd_fms(twice, s_next, s);
    c_next = vd_fms(twice, c, c_next);
    s_next = vd_fms(twice, s, s_next);
    return put_rows(interleaved, cursor, c, s, c_next, s_next);
}

/* Writes two vectors of each of eight rows, from the anchor of pair k on. Returns false if a number is so small that a
 * kernel would compute it again. */
SIMD_INLINE bool put_group(bool interleaved, struct table_cursor cursor, int64_t k,
                           const double *by, vd sign)
{
    vd lower_c, lower_s, upper_c, upper_s;
    rotate_anchor(k, by, sign, &lower_c, &lower_s);
    rotate_anchor(k, by + 2 * (int64_t)PAIRS, sign, &upper_c, &upper_s); /* rotations[2] */
    return put_half(interleaved, &cursor, lower_c, lower_s, upper_c, upper_s) &&
           put_half(interleaved, &cursor, upper_c, upper_s, lower_c, lower_s);
}

/* Writes the whole groups of n floats, each of eight rows of `row` floats, one vector of pairs at a time. */
SIMD_INLINE void write_table(bool interleaved, float *dst, const float *src, int64_t row,
                             int64_t n)
{
    const int64_t w = vf_lanes(), second = interleaved ? w : row / 2,
                  step = interleaved ? 2 * w : w;
    const int64_t end = interleaved ? row : row / 2, group_floats = BOUND_ROWS * row;
    const vd sign = vd_from_vf(vf_pin(vf_set1(1.0f)));
    uint64_t group = (uintptr_t)dst / sizeof *dst / (uint64_t)group_floats;
    int64_t vectors = 0;
    for (; n >= group_floats; n -= group_floats, group++) {
        uint64_t pair = /* of `rotations`: another part for each of eight groups */
            group % BOUND_ROWS * (uint64_t)(row / 2) % PAIRS / (uint64_t)w * (uint64_t)w;
        for (int64_t i = 0, k = 0; i < end;
             i += step, k = (k + 8) % 64, pair = (pair + (uint64_t)w) % PAIRS) {
            struct table_cursor cursor = { dst + i, src ? src + i : NULL, second, row };
            if (vectors++ % BOUND_ROWS == 0)
                evaluate_anchor(k);
            if (!put_group(interleaved, cursor, k, rotations[0] + pair, sign))
                return; /* never reached with these angles; a kernel calls fix_small() */
        }
        dst += group_floats;
        src += src ? group_floats : 0;
    }
    (void)fix_small; /* not called here */
}
