/* The primitives of simd.h in plain C, with one lane: the results that wider ISAs have to equal. */
#ifndef POSENC_SIMD_SCALAR_H
#define POSENC_SIMD_SCALAR_H

#include "half.h"

typedef float vf;
typedef double vd;
typedef uint64_t vq;

SIMD_INLINE int64_t vf_lanes(void) { return 1; }
SIMD_INLINE vf vf_set1(float x) { return x; }
SIMD_INLINE vf vf_iota(void) { return 0.0f; }
SIMD_INLINE vf vf_load(const float *p) { return *p; }
SIMD_INLINE vf vf_load_n(const float *p, int64_t n)
{
    (void)n;
    return *p;
}
SIMD_INLINE void vf_store(float *p, vf v) { *p = v; }
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    (void)n;
    *p = v;
}
SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n) { vf_store_n(p, v, n); }
SIMD_INLINE bool vf_has_masks(void) { return false; }
SIMD_INLINE vf vf_load_f16(const uint16_t *p) { return f32_from_f16(*p); }
SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    (void)n;
    return f32_from_f16(*p);
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v) { *p = f16_from_f32(v); }
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    (void)n;
    *p = f16_from_f32(v);
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p) { return f32_from_bf16(*p); }
SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    (void)n;
    return f32_from_bf16(*p);
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v) { *p = bf16_from_f32(v); }
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    (void)n;
    *p = bf16_from_f32(v);
}
SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return false; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    *a = f32_from_bf16(p[0]);
    *b = f32_from_bf16(p[1]);
}
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
    p[0] = bf16_from_f32(a);
    p[1] = bf16_from_f32(b);
}
SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    (void)n;
    return base[*index];
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    (void)stride;
    *a = base[0];
    *b = base[1];
    *c = base[2];
    *d = base[3];
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    vf_load4(base + 4 * (int64_t)*index, 0, a, b, c, d);
}
SIMD_INLINE bool vf_has_streams(void) { return false; }
SIMD_INLINE void vf_stream(float *p, vf v) { *p = v; }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v) { vf_store_f16(p, v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) { vf_store_bf16(p, v); }
SIMD_INLINE void vf_stream_end(void) {}
SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    (void)n;
    *a = p[0];
    *b = p[1];
}
SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    (void)n;
    p[0] = a;
    p[1] = b;
}
SIMD_INLINE vf vf_load_twice(const float *p) { return *p; }
SIMD_INLINE vf vf_zip_lo(vf a, vf b)
{
    (void)b;
    return a;
}
SIMD_INLINE vf vf_zip_hi(vf a, vf b)
{
    (void)a;
    return b;
}
SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    (void)index;
    (void)first;
    return v;
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index) { return *index == 0 ? a : b; }
SIMD_INLINE vf vf_swap_pairs(vf a) { return a; }
SIMD_INLINE vf vf_add(vf a, vf b) { return a + b; }
SIMD_INLINE vf vf_sub(vf a, vf b) { return a - b; }
SIMD_INLINE vf vf_mul(vf a, vf b) { return a * b; }
SIMD_INLINE vf vf_div(vf a, vf b) { return a / b; }
SIMD_INLINE vf vf_sqrt(vf a) { return sqrtf(a); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d) { return fmaf(a, b, -(c * d)); }
SIMD_INLINE vf vf_abs(vf a) { return fabsf(a); }
SIMD_INLINE vf vf_min_abs(vf a, vf b) { return fabsf(a) < fabsf(b) ? fabsf(a) : fabsf(b); }
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y) { return a < b ? x : y; }
SIMD_INLINE bool vf_any_lt(vf a, vf b) { return a < b; }
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    const float x[4] = { a, b, c, d };
    uint32_t all = POSENC_NOT_SMALL, bits;

    for (int k = 0; k < 4; k++) {
        memcpy(&bits, &x[k], sizeof bits);
        all &= bits;
    }
    return all == POSENC_NOT_SMALL;
}

SIMD_INLINE vd vd_set1(double x) { return x; }
SIMD_INLINE vd vd_load(const double *p) { return *p; }
SIMD_INLINE void vd_store(double *p, vd v) { *p = v; }
SIMD_INLINE vd vd_add(vd a, vd b) { return a + b; }
SIMD_INLINE vd vd_sub(vd a, vd b) { return a - b; }
SIMD_INLINE vd vd_mul(vd a, vd b) { return a * b; }
SIMD_INLINE vd vd_fma(vd a, vd b, vd c) { return fma(a, b, c); }
SIMD_INLINE vd vd_fms(vd a, vd b, vd c) { return fma(a, b, -c); }
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c) { return fma(-a, b, c); }
SIMD_INLINE vd vd_from_vf(vf v) { return (double)v; }
SIMD_INLINE vf vf_from_vd(vd v) { return (float)v; }
/* With one lane, lo is a and hi is b. */
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    vf x = vf_from_vd(a), y = vf_from_vd(b);

    *lo = vf_zip_lo(x, y);
    *hi = vf_zip_hi(x, y);
}
SIMD_INLINE vd vd_from_i64(vq q) { return (double)(int64_t)q; }
SIMD_INLINE vd vd_from_u32(vq q) { return (double)q; }

SIMD_INLINE vq vq_set1(uint64_t x) { return x; }
SIMD_INLINE vq vq_load(const uint64_t *p) { return *p; }
SIMD_INLINE vq vq_add(vq a, vq b) { return a + b; }
SIMD_INLINE vq vq_sub(vq a, vq b) { return a - b; }
SIMD_INLINE vq vq_mul32(vq a, vq b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#define vq_shl(q, k) ((q) << (k))
#define vq_shr(q, k) ((q) >> (k))
SIMD_INLINE vq vq_from_bits(vd v)
{
    vq q;
    memcpy(&q, &v, sizeof q);
    return q;
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y) { return q & 1 ? x : y; }
SIMD_INLINE vd vd_flip_bit1(vd v, vq q) { return q & 2 ? -v : v; }

SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y) { return q & 1 ? x : y; }
SIMD_INLINE vf vf_flip_bit1(vf v, vq q) { return q & 2 ? -v : v; }

SIMD_INLINE vf vf_pin(vf v) { return v; }
SIMD_INLINE vf vf_pin_here(vf v) { return v; }
#endif
