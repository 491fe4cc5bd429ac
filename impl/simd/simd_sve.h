/*
 * The primitives of simd.h for the Scalable Vector Extension, of any length that is a power of two. vd and vq are pairs
 * of registers, the first with the first half of the lanes. The types have no size, hence tuples instead of structs.
 */
#ifndef POSENC_SIMD_SVE_H
#define POSENC_SIMD_SVE_H

#include <arm_sve.h>

typedef svfloat32_t vf;
typedef svfloat64x2_t vd;
typedef svuint64x2_t vq;

#define SIMD_ALL32 svptrue_b32()
#define SIMD_ALL64 svptrue_b64()

SIMD_INLINE int64_t vf_lanes(void) { return (int64_t)svcntw(); }
SIMD_INLINE svbool_t vf_first(int64_t n) { return svwhilelt_b32_s64(0, n); }

SIMD_INLINE vf vf_set1(float x) { return svdup_n_f32(x); }
SIMD_INLINE vf vf_iota(void) { return svcvt_f32_u32_x(SIMD_ALL32, svindex_u32(0, 1)); }
SIMD_INLINE vf vf_load(const float *p) { return svld1_f32(SIMD_ALL32, p); }
SIMD_INLINE vf vf_load_n(const float *p, int64_t n) { return svld1_f32(vf_first(n), p); }
SIMD_INLINE void vf_store(float *p, vf v) { svst1_f32(SIMD_ALL32, p, v); }
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n) { svst1_f32(vf_first(n), p, v); }
SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n) { vf_store_n(p, v, n); }
SIMD_INLINE bool vf_has_masks(void) { return false; }

/* A 16-bit element is the low half of its lane in a register. */
SIMD_INLINE vf vf_from_f16(svuint32_t half)
{
    return svcvt_f32_f16_x(SIMD_ALL32, svreinterpret_f16_u32(half));
}
SIMD_INLINE svuint32_t f16_from_vf(vf v)
{
    return svreinterpret_u32_f16(svcvt_f16_f32_x(SIMD_ALL32, v));
}
SIMD_INLINE vf vf_load_f16(const uint16_t *p)
{
    return vf_from_f16(svld1uh_u32(SIMD_ALL32, p));
}
SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    return vf_from_f16(svld1uh_u32(vf_first(n), p));
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v) { svst1h_u32(SIMD_ALL32, p, f16_from_vf(v)); }
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    svst1h_u32(vf_first(n), p, f16_from_vf(v));
}

SIMD_INLINE vf vf_from_bf16(svuint32_t half)
{
    return svreinterpret_f32_u32(svlsl_n_u32_x(SIMD_ALL32, half, 16));
}
/* Rounds as bf16_from_f32(). */
SIMD_INLINE svuint32_t bf16_from_vf(vf v)
{
    svuint32_t bits = svreinterpret_u32_f32(v);
    svuint32_t odd = svand_n_u32_x(SIMD_ALL32, svlsr_n_u32_x(SIMD_ALL32, bits, 16), 1);
    svuint32_t rounded = svadd_u32_x(SIMD_ALL32, svadd_n_u32_x(SIMD_ALL32, bits, 0x7fff), odd);
    svuint32_t quiet = svorr_n_u32_x(SIMD_ALL32, bits, 0x400000);
    svuint32_t chosen = svsel_u32(svcmpuo_f32(SIMD_ALL32, v, v), quiet, rounded);
    return svlsr_n_u32_x(SIMD_ALL32, chosen, 16);
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_from_bf16(svld1uh_u32(SIMD_ALL32, p));
}
SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    return vf_from_bf16(svld1uh_u32(vf_first(n), p));
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    svst1h_u32(SIMD_ALL32, p, bf16_from_vf(v));
}
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    svst1h_u32(vf_first(n), p, bf16_from_vf(v));
}

SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return true; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    svuint32_t both = svreinterpret_u32_u16(svld1_u16(svptrue_b16(), p));
    *a = vf_from_bf16(both);
    *b = svreinterpret_f32_u32(svand_n_u32_x(SIMD_ALL32, both, 0xffff0000));
}
/* Returns the bits of v; a NaN becomes quiet, and its lower half zero, so that rounding cannot change it. */
SIMD_INLINE svuint32_t short_nan(vf v)
{
    svbool_t nan = svcmpuo_f32(SIMD_ALL32, v, v);
    svuint32_t quiet = svorr_n_u32_m(nan, svreinterpret_u32_f32(v), 0x400000);
    return svand_n_u32_m(nan, quiet, 0xffff0000);
}
/* Rounds as in simd_avx2.h. */
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
    svuint32_t even = svreinterpret_u32_f32(a), odd = svreinterpret_u32_f32(b);

    if (__builtin_expect(svptest_any(SIMD_ALL32, svcmpuo_f32(SIMD_ALL32, a, b)), 0)) {
        even = short_nan(a);
        odd = short_nan(b);
    }
    svuint16_t x = svreinterpret_u16_u32(even), y = svreinterpret_u16_u32(odd);
    svuint16_t upper = svtrn2_u16(x, y), lower = svtrn1_u16(x, y);
    svuint16_t tie = svbic_u16_x(svptrue_b16(), svdup_n_u16(1), upper);
    lower = svlsr_n_u16_x(svptrue_b16(), svqsub_u16(lower, tie), 15);
    svst1_u16(svptrue_b16(), p, svadd_u16_x(svptrue_b16(), upper, lower));
}

SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    return svld1_gather_s32index_f32(vf_first(n), base, svld1_s32(vf_first(n), index));
}

SIMD_INLINE void vf_gather_fours(const float *base, svint32_t index, vf *a, vf *b, vf *c, vf *d)
{
    *a = svld1_gather_s32index_f32(SIMD_ALL32, base, index);
    *b = svld1_gather_s32index_f32(SIMD_ALL32, base + 1, index);
    *c = svld1_gather_s32index_f32(SIMD_ALL32, base + 2, index);
    *d = svld1_gather_s32index_f32(SIMD_ALL32, base + 3, index);
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    svint32_t row = svld1_s32(SIMD_ALL32, index);

    vf_gather_fours(base, svlsl_n_s32_x(SIMD_ALL32, row, 2), a, b, c, d);
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    vf_gather_fours(base, svindex_s32(0, (int32_t)stride), a, b, c, d);
}

/* STNT1 is ordered as other stores are, so vf_stream_end() has nothing to do. */
SIMD_INLINE bool vf_has_streams(void) { return true; }
SIMD_INLINE void vf_stream(float *p, vf v) { svstnt1_f32(SIMD_ALL32, p, v); }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v) { vf_store_f16(p, v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) { vf_store_bf16(p, v); }
SIMD_INLINE void vf_stream_end(void) {}
SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    svfloat32x2_t pairs = svld2_f32(vf_first(n), p);
    *a = svget2_f32(pairs, 0);
    *b = svget2_f32(pairs, 1);
}
SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    svst2_f32(vf_first(n), p, svcreate2_f32(a, b));
}

SIMD_INLINE vf vf_load_twice(const float *p)
{
    const vf half = vf_load_n(p, vf_lanes() / 2);
    return svzip1_f32(half, half);
}
SIMD_INLINE vf vf_zip_lo(vf a, vf b) { return svzip1_f32(a, b); }
SIMD_INLINE vf vf_zip_hi(vf a, vf b) { return svzip2_f32(a, b); }
SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    svint32_t lane = svsub_n_s32_x(SIMD_ALL32, svld1_s32(SIMD_ALL32, index), first);
    return svtbl_f32(v, svreinterpret_u32_s32(lane));
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index)
{
    const svint32_t lane = svld1_s32(SIMD_ALL32, index);
    const svint32_t in_b = svsub_n_s32_x(SIMD_ALL32, lane, (int32_t)vf_lanes());
    return svsel_f32(svcmplt_n_s32(SIMD_ALL32, in_b, 0),
                     svtbl_f32(a, svreinterpret_u32_s32(lane)),
                     svtbl_f32(b, svreinterpret_u32_s32(in_b)));
}
/* Not by REVW, which merges into its destination: each iteration of a loop would wait for the one before. */
SIMD_INLINE vf vf_swap_pairs(vf a)
{
    return svtbl_f32(a, sveor_n_u32_x(SIMD_ALL32, svindex_u32(0, 1), 1));
}
SIMD_INLINE vf vf_add(vf a, vf b) { return svadd_f32_x(SIMD_ALL32, a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return svsub_f32_x(SIMD_ALL32, a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return svmul_f32_x(SIMD_ALL32, a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return svdiv_f32_x(SIMD_ALL32, a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return svsqrt_f32_x(SIMD_ALL32, a); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return svmla_f32_x(SIMD_ALL32, c, a, b); }
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d)
{
    return svnmls_f32_x(SIMD_ALL32, vf_mul(c, d), a, b);
}
SIMD_INLINE vf vf_abs(vf a) { return svabs_f32_x(SIMD_ALL32, a); }
SIMD_INLINE vf vf_min_abs(vf a, vf b) { return svmin_f32_x(SIMD_ALL32, vf_abs(a), vf_abs(b)); }
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return svsel_f32(svcmplt_f32(SIMD_ALL32, a, b), x, y);
}
SIMD_INLINE bool vf_any_lt(vf a, vf b)
{
    return svptest_any(SIMD_ALL32, svcmplt_f32(SIMD_ALL32, a, b));
}
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    svuint32_t x = svand_u32_x(SIMD_ALL32, svreinterpret_u32_f32(a), svreinterpret_u32_f32(b));
    svuint32_t y = svand_u32_x(SIMD_ALL32, svreinterpret_u32_f32(c), svreinterpret_u32_f32(d));
    svuint32_t all = svand_n_u32_x(SIMD_ALL32, svand_u32_x(SIMD_ALL32, x, y), POSENC_NOT_SMALL);

    return !svptest_any(SIMD_ALL32, svcmpne_n_u32(SIMD_ALL32, all, POSENC_NOT_SMALL));
}

/* Apply an operation to both halves of pairs. SIMD_LO and SIMD_HI are the halves of an operand. */
#define SIMD_LO(x)        svget2(x, 0)
#define SIMD_HI(x)        svget2(x, 1)
#define SIMD_BOTH1(op, a) svcreate2(op(SIMD_ALL64, SIMD_LO(a)), op(SIMD_ALL64, SIMD_HI(a)))
#define SIMD_BOTH2(op, a, b)                                                                   \
    svcreate2(op(SIMD_ALL64, SIMD_LO(a), SIMD_LO(b)), op(SIMD_ALL64, SIMD_HI(a), SIMD_HI(b)))
#define SIMD_BOTH3(op, a, b, c)                                                                \
    svcreate2(op(SIMD_ALL64, SIMD_LO(a), SIMD_LO(b), SIMD_LO(c)),                              \
              op(SIMD_ALL64, SIMD_HI(a), SIMD_HI(b), SIMD_HI(c)))

SIMD_INLINE vd vd_set1(double x) { return svcreate2(svdup_n_f64(x), svdup_n_f64(x)); }
SIMD_INLINE vd vd_load(const double *p)
{
    return svcreate2(svld1_f64(SIMD_ALL64, p), svld1_vnum_f64(SIMD_ALL64, p, 1));
}
SIMD_INLINE void vd_store(double *p, vd v)
{
    svst1_f64(SIMD_ALL64, p, SIMD_LO(v));
    svst1_vnum_f64(SIMD_ALL64, p, 1, SIMD_HI(v));
}
SIMD_INLINE vd vd_add(vd a, vd b) { return SIMD_BOTH2(svadd_f64_x, a, b); }
SIMD_INLINE vd vd_sub(vd a, vd b) { return SIMD_BOTH2(svsub_f64_x, a, b); }
SIMD_INLINE vd vd_mul(vd a, vd b) { return SIMD_BOTH2(svmul_f64_x, a, b); }
SIMD_INLINE vd vd_fma(vd a, vd b, vd c) { return SIMD_BOTH3(svmla_f64_x, c, a, b); }
SIMD_INLINE vd vd_fms(vd a, vd b, vd c) { return SIMD_BOTH3(svnmls_f64_x, c, a, b); }
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c) { return SIMD_BOTH3(svmls_f64_x, c, a, b); }

/* SVE converts between f32 and f64 in the low word of each 64-bit lane. */
SIMD_INLINE vd vd_from_vf(vf v)
{
    svuint64_t lo = svunpklo_u64(svreinterpret_u32_f32(v));
    svuint64_t hi = svunpkhi_u64(svreinterpret_u32_f32(v));
    return svcreate2(svcvt_f64_f32_x(SIMD_ALL64, svreinterpret_f32_u64(lo)),
                     svcvt_f64_f32_x(SIMD_ALL64, svreinterpret_f32_u64(hi)));
}
SIMD_INLINE vf vf_from_vd(vd v)
{
    return svuzp1_f32(svcvt_f32_f64_x(SIMD_ALL64, SIMD_LO(v)),
                      svcvt_f32_f64_x(SIMD_ALL64, SIMD_HI(v)));
}
/* Rounds, then zips. */
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    vf x = vf_from_vd(a), y = vf_from_vd(b);

    *lo = vf_zip_lo(x, y);
    *hi = vf_zip_hi(x, y);
}
SIMD_INLINE vd vd_from_i64(vq q)
{
    return svcreate2(svcvt_f64_s64_x(SIMD_ALL64, svreinterpret_s64_u64(SIMD_LO(q))),
                     svcvt_f64_s64_x(SIMD_ALL64, svreinterpret_s64_u64(SIMD_HI(q))));
}
SIMD_INLINE vd vd_from_u32(vq q) { return SIMD_BOTH1(svcvt_f64_u64_x, q); }

SIMD_INLINE vq vq_set1(uint64_t x) { return svcreate2(svdup_n_u64(x), svdup_n_u64(x)); }
SIMD_INLINE vq vq_load(const uint64_t *p)
{
    return svcreate2(svld1_u64(SIMD_ALL64, p), svld1_vnum_u64(SIMD_ALL64, p, 1));
}
SIMD_INLINE vq vq_add(vq a, vq b) { return SIMD_BOTH2(svadd_u64_x, a, b); }
SIMD_INLINE vq vq_sub(vq a, vq b) { return SIMD_BOTH2(svsub_u64_x, a, b); }
SIMD_INLINE vq vq_mul32(vq a, vq b)
{
    a = SIMD_BOTH1(svextw_u64_x, a);
    b = SIMD_BOTH1(svextw_u64_x, b);
    return SIMD_BOTH2(svmul_u64_x, a, b);
}
#define vq_shl(q, k)                                                                           \
    svcreate2(svlsl_n_u64_x(SIMD_ALL64, SIMD_LO(q), k),                                        \
              svlsl_n_u64_x(SIMD_ALL64, SIMD_HI(q), k))
#define vq_shr(q, k)                                                                           \
    svcreate2(svlsr_n_u64_x(SIMD_ALL64, SIMD_LO(q), k),                                        \
              svlsr_n_u64_x(SIMD_ALL64, SIMD_HI(q), k))
SIMD_INLINE vq vq_from_bits(vd v)
{
    return svcreate2(svreinterpret_u64_f64(SIMD_LO(v)), svreinterpret_u64_f64(SIMD_HI(v)));
}
SIMD_INLINE svfloat64_t vd_half_select(svuint64_t q, svfloat64_t x, svfloat64_t y)
{
    return svsel_f64(svcmpne_n_u64(SIMD_ALL64, svand_n_u64_x(SIMD_ALL64, q, 1), 0), x, y);
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y)
{
    return svcreate2(vd_half_select(SIMD_LO(q), SIMD_LO(x), SIMD_LO(y)),
                     vd_half_select(SIMD_HI(q), SIMD_HI(x), SIMD_HI(y)));
}
SIMD_INLINE svfloat64_t vd_half_flip(svfloat64_t v, svuint64_t q)
{
    svuint64_t sign = svlsl_n_u64_x(SIMD_ALL64, svlsr_n_u64_x(SIMD_ALL64, q, 1), 63);
    return svreinterpret_f64_u64(sveor_u64_x(SIMD_ALL64, svreinterpret_u64_f64(v), sign));
}
SIMD_INLINE vd vd_flip_bit1(vd v, vq q)
{
    return svcreate2(vd_half_flip(SIMD_LO(v), SIMD_LO(q)),
                     vd_half_flip(SIMD_HI(v), SIMD_HI(q)));
}
/* Returns the low word of each 64-bit lane. */
SIMD_INLINE svuint32_t vq_narrow(vq q)
{
    return svuzp1_u32(svreinterpret_u32_u64(SIMD_LO(q)), svreinterpret_u32_u64(SIMD_HI(q)));
}
SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y)
{
    svuint32_t bit = svand_n_u32_x(SIMD_ALL32, vq_narrow(q), 1);
    return svsel_f32(svcmpne_n_u32(SIMD_ALL32, bit, 0), x, y);
}
SIMD_INLINE vf vf_flip_bit1(vf v, vq q)
{
    svuint32_t sign = svlsl_n_u32_x(SIMD_ALL32, svlsr_n_u32_x(SIMD_ALL32, vq_narrow(q), 1), 31);
    return svreinterpret_f32_u32(sveor_u32_x(SIMD_ALL32, svreinterpret_u32_f32(v), sign));
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
