/* The primitives of simd.h for Advanced SIMD of AArch64 (NEON): 4 lanes; vd and vq are pairs of registers. */
#ifndef POSENC_SIMD_NEON_H
#define POSENC_SIMD_NEON_H

#include <arm_neon.h>

typedef float32x4_t vf;
typedef struct {
    float64x2_t lo, hi;
} vd;
typedef struct {
    uint64x2_t lo, hi;
} vq;

#define SIMD_LANES 4
SIMD_INLINE int64_t vf_lanes(void) { return SIMD_LANES; }

SIMD_INLINE vf vf_set1(float x) { return vdupq_n_f32(x); }
SIMD_INLINE vf vf_iota(void)
{
    const float lanes[SIMD_LANES] = { 0, 1, 2, 3 };
    return vld1q_f32(lanes);
}
SIMD_INLINE vf vf_load(const float *p) { return vld1q_f32(p); }

/* NEON has no masks: partial vectors are loaded and stored as two and one elements. */
SIMD_INLINE vf vf_load_n(const float *p, int64_t n)
{
    float32x2_t none = vdup_n_f32(0.0f);

    if (n == SIMD_LANES)
        return vf_load(p);
    if (n == 1)
        return vcombine_f32(vld1_lane_f32(p, none, 0), none);
    return vcombine_f32(vld1_f32(p), n == 3 ? vld1_lane_f32(p + 2, none, 0) : none);
}
SIMD_INLINE void vf_store(float *p, vf v) { vst1q_f32(p, v); }
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    if (n == SIMD_LANES) {
        vf_store(p, v);
        return;
    }
    if (n & 2)
        vst1_f32(p, vget_low_f32(v));
    if (n == 1)
        vst1q_lane_f32(p, v, 0);
    if (n == 3)
        vst1q_lane_f32(p + 2, v, 2);
}
SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n) { vf_store_n(p, v, n); }
SIMD_INLINE bool vf_has_masks(void) { return false; }

SIMD_INLINE uint16x4_t half_load_n(const uint16_t *p, int64_t n)
{
    if (n == SIMD_LANES)
        return vld1_u16(p);
    uint16x4_t part = vld1_lane_u16(p, vdup_n_u16(0), 0);
    if (n > 1)
        part = vld1_lane_u16(p + 1, part, 1);
    if (n > 2)
        part = vld1_lane_u16(p + 2, part, 2);
    return part;
}
SIMD_INLINE void half_store_n(uint16_t *p, uint16x4_t v, int64_t n)
{
    if (n == SIMD_LANES) {
        vst1_u16(p, v);
        return;
    }
    vst1_lane_u16(p, v, 0);
    if (n > 1)
        vst1_lane_u16(p + 1, v, 1);
    if (n > 2)
        vst1_lane_u16(p + 2, v, 2);
}

SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(half_load_n(p, n)));
}
SIMD_INLINE vf vf_load_f16(const uint16_t *p) { return vf_load_f16_n(p, SIMD_LANES); }
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    half_store_n(p, vreinterpret_u16_f16(vcvt_f16_f32(v)), n);
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v) { vf_store_f16_n(p, v, SIMD_LANES); }

SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    return vreinterpretq_f32_u32(vshll_n_u16(half_load_n(p, n), 16));
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p) { return vf_load_bf16_n(p, SIMD_LANES); }
/* Returns the bits of v; every NaN becomes the same quiet NaN, whose lower half is zero. */
SIMD_INLINE uint32x4_t bits_with_canonical_nan(vf v)
{
    return vbslq_u32(vceqq_f32(v, v), vreinterpretq_u32_f32(v), vdupq_n_u32(0x7fc00000));
}
/* Rounds as bf16_from_f32(). The test of the last place gives -1 or 0, hence the subtraction. */
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    uint32x4_t bits = bits_with_canonical_nan(v);
    uint32x4_t odd = vtstq_u32(bits, vdupq_n_u32(0x10000));
    half_store_n(p, vaddhn_u32(vsubq_u32(bits, odd), vdupq_n_u32(0x7fff)), n);
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v) { vf_store_bf16_n(p, v, SIMD_LANES); }

SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return true; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    uint32x4_t both = vreinterpretq_u32_u16(vld1q_u16(p));
    *a = vreinterpretq_f32_u32(vshlq_n_u32(both, 16));
    *b = vreinterpretq_f32_u32(vandq_u32(both, vdupq_n_u32(0xffff0000)));
}
/* Rounds as in simd_avx2.h. */
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
    uint16x8_t even = vreinterpretq_u16_u32(bits_with_canonical_nan(a));
    uint16x8_t odd = vreinterpretq_u16_u32(bits_with_canonical_nan(b));
    uint16x8_t upper = vtrn2q_u16(even, odd), lower = vtrn1q_u16(even, odd);
    lower = vqsubq_u16(lower, vbicq_u16(vdupq_n_u16(1), upper));
    vst1q_u16(p, vsraq_n_u16(upper, lower, 15));
}

SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    vf lanes = vld1q_lane_f32(base + index[0], vdupq_n_f32(0.0f), 0);

    if (n > 1)
        lanes = vld1q_lane_f32(base + index[1], lanes, 1);
    if (n > 2)
        lanes = vld1q_lane_f32(base + index[2], lanes, 2);
    if (n > 3)
        lanes = vld1q_lane_f32(base + index[3], lanes, 3);
    return lanes;
}

SIMD_INLINE void vf_transpose_rows(const float *row0, const float *row1, const float *row2,
                                   const float *row3, vf *a, vf *b, vf *c, vf *d)
{
    float32x4x2_t rows01 = vtrnq_f32(vld1q_f32(row0), vld1q_f32(row1));
    float32x4x2_t rows23 = vtrnq_f32(vld1q_f32(row2), vld1q_f32(row3));

    *a = vcombine_f32(vget_low_f32(rows01.val[0]), vget_low_f32(rows23.val[0]));
    *b = vcombine_f32(vget_low_f32(rows01.val[1]), vget_low_f32(rows23.val[1]));
    *c = vcombine_f32(vget_high_f32(rows01.val[0]), vget_high_f32(rows23.val[0]));
    *d = vcombine_f32(vget_high_f32(rows01.val[1]), vget_high_f32(rows23.val[1]));
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    vf_transpose_rows(base + 4 * (int64_t)index[0], base + 4 * (int64_t)index[1],
                      base + 4 * (int64_t)index[2], base + 4 * (int64_t)index[3], a, b, c, d);
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    vf_transpose_rows(base, base + stride, base + 2 * stride, base + 3 * stride, a, b, c, d);
}

/* Streaming stores gain nothing, as a vector is a quarter of a cache line. */
SIMD_INLINE bool vf_has_streams(void) { return false; }
SIMD_INLINE void vf_stream(float *p, vf v) { vf_store(p, v); }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v) { vf_store_f16(p, v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) { vf_store_bf16(p, v); }
SIMD_INLINE void vf_stream_end(void) {}

SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    float32x2_t none = vdup_n_f32(0.0f);
    float32x2x2_t lo = { { none, none } }, hi = { { none, none } };

    if (n == SIMD_LANES) {
        float32x4x2_t pairs = vld2q_f32(p);
        *a = pairs.val[0];
        *b = pairs.val[1];
        return;
    }
    if (n & 2)
        lo = vld2_f32(p);
    if (n == 1)
        lo = vld2_lane_f32(p, lo, 0);
    if (n == 3)
        hi = vld2_lane_f32(p + 4, hi, 0);
    *a = vcombine_f32(lo.val[0], hi.val[0]);
    *b = vcombine_f32(lo.val[1], hi.val[1]);
}
SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    float32x4x2_t pairs = { { a, b } };

    if (n == SIMD_LANES) {
        vst2q_f32(p, pairs);
        return;
    }
    if (n & 2) {
        float32x2x2_t two = { { vget_low_f32(a), vget_low_f32(b) } };
        vst2_f32(p, two);
    }
    if (n == 1)
        vst2q_lane_f32(p, pairs, 0);
    if (n == 3)
        vst2q_lane_f32(p + 4, pairs, 2);
}

SIMD_INLINE vf vf_load_twice(const float *p)
{
    const float32x2_t both = vld1_f32(p);
    return vcombine_f32(vdup_lane_f32(both, 0), vdup_lane_f32(both, 1));
}
SIMD_INLINE vf vf_zip_lo(vf a, vf b) { return vzip1q_f32(a, b); }
SIMD_INLINE vf vf_zip_hi(vf a, vf b) { return vzip2q_f32(a, b); }
/* Looks up bytes: those of lane l are 4 l to 4 l + 3. */
SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    uint32x4_t lane = vreinterpretq_u32_s32(vsubq_s32(vld1q_s32(index), vdupq_n_s32(first)));
    uint32x4_t byte = vmlaq_u32(vdupq_n_u32(0x03020100), lane, vdupq_n_u32(0x04040404));
    return vreinterpretq_f32_u8(
        vqtbl1q_u8(vreinterpretq_u8_f32(v), vreinterpretq_u8_u32(byte)));
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index)
{
    const uint8x16x2_t both = { { vreinterpretq_u8_f32(a), vreinterpretq_u8_f32(b) } };
    uint32x4_t lane = vreinterpretq_u32_s32(vld1q_s32(index));
    uint32x4_t byte = vmlaq_u32(vdupq_n_u32(0x03020100), lane, vdupq_n_u32(0x04040404));
    return vreinterpretq_f32_u8(vqtbl2q_u8(both, vreinterpretq_u8_u32(byte)));
}
SIMD_INLINE vf vf_swap_pairs(vf a) { return vrev64q_f32(a); }
SIMD_INLINE vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
/* NEON has no fused form of a b - c, so d is negated; loops keep -d in a register. */
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d)
{
    return vfmaq_f32(vmulq_f32(c, vnegq_f32(d)), a, b);
}
SIMD_INLINE vf vf_abs(vf a) { return vabsq_f32(a); }
SIMD_INLINE vf vf_min_abs(vf a, vf b) { return vminq_f32(vf_abs(a), vf_abs(b)); }
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y) { return vbslq_f32(vcltq_f32(a, b), x, y); }
SIMD_INLINE bool vf_any_lt(vf a, vf b) { return vmaxvq_u32(vcltq_f32(a, b)) != 0; }
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    const uint32x4_t bits = vdupq_n_u32(POSENC_NOT_SMALL);
    uint32x4_t x = vandq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b));
    uint32x4_t y = vandq_u32(vreinterpretq_u32_f32(c), vreinterpretq_u32_f32(d));

    return vmaxvq_u32(vbicq_u32(bits, vandq_u32(x, y))) == 0;
}

#define SIMD_PAIRWISE(type, lo_value, hi_value) ((type){ lo_value, hi_value })
SIMD_INLINE vd vd_set1(double x) { return SIMD_PAIRWISE(vd, vdupq_n_f64(x), vdupq_n_f64(x)); }
SIMD_INLINE vd vd_load(const double *p)
{
    return SIMD_PAIRWISE(vd, vld1q_f64(p), vld1q_f64(p + 2));
}
SIMD_INLINE void vd_store(double *p, vd v)
{
    vst1q_f64(p, v.lo);
    vst1q_f64(p + 2, v.hi);
}
SIMD_INLINE vd vd_add(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi));
}
SIMD_INLINE vd vd_sub(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, vsubq_f64(a.lo, b.lo), vsubq_f64(a.hi, b.hi));
}
SIMD_INLINE vd vd_mul(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, vmulq_f64(a.lo, b.lo), vmulq_f64(a.hi, b.hi));
}
SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, vfmaq_f64(c.lo, a.lo, b.lo), vfmaq_f64(c.hi, a.hi, b.hi));
}
SIMD_INLINE vd vd_fms(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, vfmaq_f64(vnegq_f64(c.lo), a.lo, b.lo),
                         vfmaq_f64(vnegq_f64(c.hi), a.hi, b.hi));
}
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, vfmsq_f64(c.lo, a.lo, b.lo), vfmsq_f64(c.hi, a.hi, b.hi));
}
SIMD_INLINE vd vd_from_vf(vf v)
{
    return SIMD_PAIRWISE(vd, vcvt_f64_f32(vget_low_f32(v)), vcvt_high_f64_f32(v));
}
SIMD_INLINE vf vf_from_vd(vd v) { return vcvt_high_f32_f64(vcvt_f32_f64(v.lo), v.hi); }
/* Rounds, then zips. */
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    vf x = vf_from_vd(a), y = vf_from_vd(b);

    *lo = vf_zip_lo(x, y);
    *hi = vf_zip_hi(x, y);
}
SIMD_INLINE vd vd_from_i64(vq q)
{
    return SIMD_PAIRWISE(vd, vcvtq_f64_s64(vreinterpretq_s64_u64(q.lo)),
                         vcvtq_f64_s64(vreinterpretq_s64_u64(q.hi)));
}
SIMD_INLINE vd vd_from_u32(vq q)
{
    return SIMD_PAIRWISE(vd, vcvtq_f64_u64(q.lo), vcvtq_f64_u64(q.hi));
}

SIMD_INLINE vq vq_set1(uint64_t x) { return SIMD_PAIRWISE(vq, vdupq_n_u64(x), vdupq_n_u64(x)); }
SIMD_INLINE vq vq_load(const uint64_t *p)
{
    return SIMD_PAIRWISE(vq, vld1q_u64(p), vld1q_u64(p + 2));
}
SIMD_INLINE vq vq_add(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, vaddq_u64(a.lo, b.lo), vaddq_u64(a.hi, b.hi));
}
SIMD_INLINE vq vq_sub(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, vsubq_u64(a.lo, b.lo), vsubq_u64(a.hi, b.hi));
}
SIMD_INLINE vq vq_mul32(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, vmull_u32(vmovn_u64(a.lo), vmovn_u64(b.lo)),
                         vmull_u32(vmovn_u64(a.hi), vmovn_u64(b.hi)));
}
#define vq_shl(q, k) SIMD_PAIRWISE(vq, vshlq_n_u64((q).lo, k), vshlq_n_u64((q).hi, k))
#define vq_shr(q, k) SIMD_PAIRWISE(vq, vshrq_n_u64((q).lo, k), vshrq_n_u64((q).hi, k))
SIMD_INLINE vq vq_from_bits(vd v)
{
    return SIMD_PAIRWISE(vq, vreinterpretq_u64_f64(v.lo), vreinterpretq_u64_f64(v.hi));
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y)
{
    const uint64x2_t one = vdupq_n_u64(1);
    return SIMD_PAIRWISE(vd, vbslq_f64(vtstq_u64(q.lo, one), x.lo, y.lo),
                         vbslq_f64(vtstq_u64(q.hi, one), x.hi, y.hi));
}
SIMD_INLINE float64x2_t vd_half_flip(float64x2_t v, uint64x2_t q)
{
    uint64x2_t sign = vshlq_n_u64(vshrq_n_u64(q, 1), 63);
    return vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(v), sign));
}
SIMD_INLINE vd vd_flip_bit1(vd v, vq q)
{
    return SIMD_PAIRWISE(vd, vd_half_flip(v.lo, q.lo), vd_half_flip(v.hi, q.hi));
}
/* Returns the low word of each 64-bit lane. */
SIMD_INLINE uint32x4_t vq_narrow(vq q)
{
    return vuzp1q_u32(vreinterpretq_u32_u64(q.lo), vreinterpretq_u32_u64(q.hi));
}
SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y)
{
    return vbslq_f32(vtstq_u32(vq_narrow(q), vdupq_n_u32(1)), x, y);
}
SIMD_INLINE vf vf_flip_bit1(vf v, vq q)
{
    uint32x4_t sign = vshlq_n_u32(vshrq_n_u32(vq_narrow(q), 1), 31);
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), sign));
}

SIMD_INLINE vf vf_pin(vf v)
{
    __asm__("" : "+w"(v));
    return v;
}
SIMD_INLINE vf vf_pin_here(vf v)
{
    __asm__ volatile("" : "+w"(v));
    return v;
}
#endif
