/*
 * The primitives of simd.h for RISC-V Vector 1.0, of any length: one register of f32, groups of two registers for f64
 * and u64. SEW/LMUL is then the same for all types. One vl therefore holds for all of them,
 * a mask of one type is a mask of another, and a change of type leaves vl alone.
 *
 * Lanes: those of a register, at most POSENC_FREQS_PAD, as no array of the library is padded further. Registers of more
 * than 2048 bits are filled in part. So no primitive may take the second register of a group for the second half of its
 * lanes.
 *
 * Rounding: by the dynamic mode, which is to nearest even unless the caller has set another.
 *
 * References: The RISC-V "V" Vector Extension 1.0; RISC-V Vector C Intrinsics 1.0. Choices between instructions follow
 * cycles measured on seven cores, github.com/camel-cdr/rvv-bench-results.
 */
#ifndef POSENC_SIMD_RVV_H
#define POSENC_SIMD_RVV_H

#include <riscv_vector.h>

#include "impl/internal.h" /* POSENC_FREQS_PAD */

typedef vfloat32m1_t vf;
typedef vfloat64m2_t vd;
typedef vuint64m2_t vq;

/* ---- f32, loads and stores ---- */

/* Returns vl for all operations on whole vectors. Compilers know that a repeated vsetvl gives the same result. They
 * do not know that V has at least 128 bits, hence 4 lanes. */
SIMD_INLINE size_t vf_vl(void)
{
    size_t vl = __riscv_vsetvl_e32m1(POSENC_FREQS_PAD);

    if (vl < 4)
        __builtin_unreachable();
    return vl;
}
SIMD_INLINE int64_t vf_lanes(void) { return (int64_t)vf_vl(); }

SIMD_INLINE vf vf_set1(float x) { return __riscv_vfmv_v_f_f32m1(x, vf_vl()); }
SIMD_INLINE vf vf_iota(void)
{
    return __riscv_vfcvt_f_xu_v_f32m1(__riscv_vid_v_u32m1(vf_vl()), vf_vl());
}
SIMD_INLINE vf vf_load(const float *p) { return __riscv_vle32_v_f32m1(p, vf_vl()); }
SIMD_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return __riscv_vle32_v_f32m1_tu(vf_set1(0.0f), p, (size_t)n);
}
SIMD_INLINE void vf_store(float *p, vf v) { __riscv_vse32_v_f32m1(p, v, vf_vl()); }
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    __riscv_vse32_v_f32m1(p, v, (size_t)n);
}
SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n) { vf_store_n(p, v, n); }
SIMD_INLINE bool vf_has_masks(void) { return false; }

/* ---- 16 bits ---- */

/* V alone cannot convert f16. It is widened as in half.h. Narrowing: from 2^-14 on (0x38800000), the exponent bias
 * falls by 112, and vnclipu rounds to 10 bits, to nearest even; 2^16 (0x47800000) and more become infinity. Below
 * 2^-14, |v| + 0.5 lies in [0.5, 1), whose last place is 2^-24, that of f16's subnormals: the low 16 bits of the
 * rounded sum are the result. */
SIMD_INLINE vuint16mf2_t half_load_n(const uint16_t *p, int64_t n)
{
    return __riscv_vle16_v_u16mf2_tu(__riscv_vmv_v_x_u16mf2(0, vf_vl()), p, (size_t)n);
}
SIMD_INLINE vf vf_from_f16(vuint16mf2_t half)
{
    vuint32m1_t wide = __riscv_vzext_vf2_u32m1(half, vf_vl());
    vuint32m1_t magnitude =
        __riscv_vsll_vx_u32m1(__riscv_vand_vx_u32m1(wide, 0x7fff, vf_vl()), 13, vf_vl());
    vuint32m1_t sign =
        __riscv_vsll_vx_u32m1(__riscv_vand_vx_u32m1(wide, 0x8000, vf_vl()), 16, vf_vl());
    vf scaled = __riscv_vfmul_vf_f32m1(__riscv_vreinterpret_v_u32m1_f32m1(magnitude), 0x1p112f,
                                       vf_vl());
    vuint32m1_t bits =
        __riscv_vor_vv_u32m1(__riscv_vreinterpret_v_f32m1_u32m1(scaled), sign, vf_vl());
    vbool32_t special = __riscv_vmsgeu_vx_u32m1_b32(magnitude, 0x0f800000, vf_vl());
    return __riscv_vreinterpret_v_u32m1_f32m1(
        __riscv_vor_vx_u32m1_mu(special, bits, bits, 0x7f800000, vf_vl()));
}
SIMD_INLINE vuint16mf2_t f16_from_vf(vf v)
{
    vf positive = __riscv_vfabs_v_f32m1(v, vf_vl());
    vuint32m1_t magnitude = __riscv_vreinterpret_v_f32m1_u32m1(positive);
    vuint32m1_t capped = __riscv_vminu_vx_u32m1(magnitude, 0x47800000, vf_vl());
    vuint16mf2_t half =
        __riscv_vnclipu_wx_u16mf2(__riscv_vsub_vx_u32m1(capped, UINT32_C(112) << 23, vf_vl()),
                                  13, __RISCV_VXRM_RNE, vf_vl());
    vf sum = __riscv_vfadd_vf_f32m1(positive, 0.5f, vf_vl());
    vuint16mf2_t small =
        __riscv_vnsrl_wx_u16mf2(__riscv_vreinterpret_v_f32m1_u32m1(sum), 0, vf_vl());
    vuint16mf2_t sign = __riscv_vand_vx_u16mf2(
        __riscv_vnsrl_wx_u16mf2(__riscv_vreinterpret_v_f32m1_u32m1(v), 16, vf_vl()), 0x8000,
        vf_vl());

    half = __riscv_vmerge_vvm_u16mf2(
        half, small, __riscv_vmsltu_vx_u32m1_b32(magnitude, 0x38800000, vf_vl()), vf_vl());
    half = __riscv_vmerge_vxm_u16mf2(
        half, 0x7e00, __riscv_vmsgtu_vx_u32m1_b32(magnitude, 0x7f800000, vf_vl()), vf_vl());
    return __riscv_vor_vv_u16mf2(half, sign, vf_vl());
}
SIMD_INLINE vf vf_load_f16(const uint16_t *p)
{
    return vf_from_f16(__riscv_vle16_v_u16mf2(p, vf_vl()));
}
SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    return vf_from_f16(half_load_n(p, n));
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v)
{
    __riscv_vse16_v_u16mf2(p, f16_from_vf(v), vf_vl());
}
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    __riscv_vse16_v_u16mf2(p, f16_from_vf(v), (size_t)n);
}

SIMD_INLINE vf vf_from_bf16(vuint16mf2_t half)
{
    vuint32m1_t wide = __riscv_vzext_vf2_u32m1(half, vf_vl());
    return __riscv_vreinterpret_v_u32m1_f32m1(__riscv_vsll_vx_u32m1(wide, 16, vf_vl()));
}
/* Returns the bits of v; every NaN becomes the canonical NaN, whose lower half is zero. */
SIMD_INLINE vuint32m1_t bits_with_canonical_nan(vf v)
{
    return __riscv_vreinterpret_v_f32m1_u32m1(__riscv_vfmax_vv_f32m1(v, v, vf_vl()));
}
SIMD_INLINE vuint16mf2_t bf16_from_vf(vf v)
{
    return __riscv_vnclipu_wx_u16mf2(bits_with_canonical_nan(v), 16, __RISCV_VXRM_RNE, vf_vl());
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_from_bf16(__riscv_vle16_v_u16mf2(p, vf_vl()));
}
SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    return vf_from_bf16(half_load_n(p, n));
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    __riscv_vse16_v_u16mf2(p, bf16_from_vf(v), vf_vl());
}
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    __riscv_vse16_v_u16mf2(p, bf16_from_vf(v), (size_t)n);
}

/* A function, because clang 19 keeps a cast in memory if it is stored through a pointer. */
SIMD_INLINE vf vf_of_bits(vuint32m1_t bits) { return __riscv_vreinterpret_v_u32m1_f32m1(bits); }
SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return true; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    vuint32m1_t both =
        __riscv_vreinterpret_v_u16m1_u32m1(__riscv_vle16_v_u16m1(p, 2 * vf_vl()));
    *a = vf_of_bits(__riscv_vsll_vx_u32m1(both, 16, vf_vl()));
    *b = vf_of_bits(__riscv_vand_vx_u32m1(both, 0xffff0000, vf_vl()));
}
/* One multiplication-addition joins both halves; on a C908 it takes half the time of a shift. */
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
    vuint32m1_t even =
        __riscv_vssrl_vx_u32m1(bits_with_canonical_nan(a), 16, __RISCV_VXRM_RNE, vf_vl());
    vuint32m1_t odd =
        __riscv_vssrl_vx_u32m1(bits_with_canonical_nan(b), 16, __RISCV_VXRM_RNE, vf_vl());
    vuint32m1_t both = __riscv_vmacc_vx_u32m1(even, 0x10000, odd, vf_vl());
    __riscv_vse16_v_u16m1(p, __riscv_vreinterpret_v_u32m1_u16m1(both), 2 * vf_vl());
}

/* ---- Streaming stores ---- */

/* V has no streaming stores. */
SIMD_INLINE bool vf_has_streams(void) { return false; }
SIMD_INLINE void vf_stream(float *p, vf v) { vf_store(p, v); }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v) { vf_store_f16(p, v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) { vf_store_bf16(p, v); }
SIMD_INLINE void vf_stream_end(void) {}

/* ---- Gathers and permutations ---- */

/* Indices of vluxei count bytes and are unsigned, hence 64 bits wide. */
SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    vuint32m1_t element = __riscv_vle32_v_u32m1((const uint32_t *)index, (size_t)n);
    vuint64m2_t byte = __riscv_vwmulu_vx_u64m2(element, sizeof(float), (size_t)n);
    return __riscv_vluxei64_v_f32m1_tu(vf_set1(0.0f), base, byte, (size_t)n);
}

SIMD_INLINE void vf_unpack_fours(vfloat32m1x4_t fours, vf *a, vf *b, vf *c, vf *d)
{
    *a = __riscv_vget_v_f32m1x4_f32m1(fours, 0);
    *b = __riscv_vget_v_f32m1x4_f32m1(fours, 1);
    *c = __riscv_vget_v_f32m1x4_f32m1(fours, 2);
    *d = __riscv_vget_v_f32m1x4_f32m1(fours, 3);
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    vuint32m1_t row = __riscv_vle32_v_u32m1((const uint32_t *)index, vf_vl());
    vuint32m1_t byte = __riscv_vsll_vx_u32m1(row, 4, vf_vl());

    vf_unpack_fours(__riscv_vluxseg4ei32_v_f32m1x4(base, byte, vf_vl()), a, b, c, d);
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    const ptrdiff_t bytes = (ptrdiff_t)(stride * (int64_t)sizeof(float));

    vf_unpack_fours(__riscv_vlsseg4e32_v_f32m1x4(base, bytes, vf_vl()), a, b, c, d);
}

SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    vfloat32m1x2_t pairs;

    if (n == vf_lanes())
        pairs = __riscv_vlseg2e32_v_f32m1x2(p, vf_vl());
    else
        pairs = __riscv_vlseg2e32_v_f32m1x2_tu(
            __riscv_vcreate_v_f32m1x2(vf_set1(0.0f), vf_set1(0.0f)), p, (size_t)n);
    *a = __riscv_vget_v_f32m1x2_f32m1(pairs, 0);
    *b = __riscv_vget_v_f32m1x2_f32m1(pairs, 1);
}
SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    __riscv_vsseg2e32_v_f32m1x2(p, __riscv_vcreate_v_f32m1x2(a, b), (size_t)n);
}

/* Computes each pair of lanes as 64 bits: (a + b) + (2^32 - 1) b = a + 2^32 b. */
SIMD_INLINE vf vf_zip_lo(vf a, vf b)
{
    vuint32mf2_t x = __riscv_vlmul_trunc_v_u32m1_u32mf2(__riscv_vreinterpret_v_f32m1_u32m1(a));
    vuint32mf2_t y = __riscv_vlmul_trunc_v_u32m1_u32mf2(__riscv_vreinterpret_v_f32m1_u32m1(b));
    vuint64m1_t pairs = __riscv_vwaddu_vv_u64m1(x, y, vf_vl() / 2);

    pairs = __riscv_vwmaccu_vx_u64m1(pairs, UINT32_MAX, y, vf_vl() / 2);
    return __riscv_vreinterpret_v_u32m1_f32m1(__riscv_vreinterpret_v_u64m1_u32m1(pairs));
}
SIMD_INLINE vf vf_zip_hi(vf a, vf b)
{
    return vf_zip_lo(__riscv_vslidedown_vx_f32m1(a, vf_vl() / 2, vf_vl()),
                     __riscv_vslidedown_vx_f32m1(b, vf_vl() / 2, vf_vl()));
}
SIMD_INLINE vf vf_load_twice(const float *p)
{
    const vf half = vf_load_n(p, vf_lanes() / 2);
    return vf_zip_lo(half, half);
}
SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    vuint32m1_t lane = __riscv_vle32_v_u32m1((const uint32_t *)index, vf_vl());
    lane = __riscv_vsub_vx_u32m1(lane, (uint32_t)first, vf_vl());
    return __riscv_vrgather_vv_f32m1(v, lane, vf_vl());
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index)
{
    const vuint32m1_t lane = __riscv_vle32_v_u32m1((const uint32_t *)index, vf_vl());
    const uint32_t lanes = (uint32_t)vf_lanes();
    const vuint32m1_t in_b = __riscv_vsub_vx_u32m1(lane, lanes, vf_vl());
    return __riscv_vmerge_vvm_f32m1(__riscv_vrgather_vv_f32m1(a, lane, vf_vl()),
                                    __riscv_vrgather_vv_f32m1(b, in_b, vf_vl()),
                                    __riscv_vmsgeu_vx_u32m1_b32(lane, lanes, vf_vl()), vf_vl());
}
/* One gather is faster than two slides, except on cores that gather lane by lane, such as SiFive's X280. */
SIMD_INLINE vf vf_swap_pairs(vf a)
{
    vuint32m1_t other = __riscv_vxor_vx_u32m1(__riscv_vid_v_u32m1(vf_vl()), 1, vf_vl());
    return __riscv_vrgather_vv_f32m1(a, other, vf_vl());
}

/* ---- Arithmetic and comparison ---- */

SIMD_INLINE vf vf_add(vf a, vf b) { return __riscv_vfadd_vv_f32m1(a, b, vf_vl()); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return __riscv_vfsub_vv_f32m1(a, b, vf_vl()); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return __riscv_vfmul_vv_f32m1(a, b, vf_vl()); }
SIMD_INLINE vf vf_div(vf a, vf b) { return __riscv_vfdiv_vv_f32m1(a, b, vf_vl()); }
SIMD_INLINE vf vf_sqrt(vf a) { return __riscv_vfsqrt_v_f32m1(a, vf_vl()); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return __riscv_vfmadd_vv_f32m1(a, b, c, vf_vl()); }
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d)
{
    return __riscv_vfmsub_vv_f32m1(a, b, vf_mul(c, d), vf_vl());
}
SIMD_INLINE vf vf_abs(vf a) { return __riscv_vfabs_v_f32m1(a, vf_vl()); }
/* vfmin of a number and a NaN returns the number, where plain C returns b. Kernels have no NaN here. */
SIMD_INLINE vf vf_min_abs(vf a, vf b)
{
    return __riscv_vfmin_vv_f32m1(vf_abs(a), vf_abs(b), vf_vl());
}
/* A comparison with NaN is false, as in C. */
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return __riscv_vmerge_vvm_f32m1(y, x, __riscv_vmflt_vv_f32m1_b32(a, b, vf_vl()), vf_vl());
}
SIMD_INLINE bool vf_any_lt(vf a, vf b)
{
    return __riscv_vfirst_m_b32(__riscv_vmflt_vv_f32m1_b32(a, b, vf_vl()), vf_vl()) >= 0;
}
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    vuint32m1_t x = __riscv_vand_vv_u32m1(__riscv_vreinterpret_v_f32m1_u32m1(a),
                                          __riscv_vreinterpret_v_f32m1_u32m1(b), vf_vl());
    vuint32m1_t y = __riscv_vand_vv_u32m1(__riscv_vreinterpret_v_f32m1_u32m1(c),
                                          __riscv_vreinterpret_v_f32m1_u32m1(d), vf_vl());
    vuint32m1_t all =
        __riscv_vand_vx_u32m1(__riscv_vand_vv_u32m1(x, y, vf_vl()), POSENC_NOT_SMALL, vf_vl());

    return __riscv_vfirst_m_b32(__riscv_vmsne_vx_u32m1_b32(all, POSENC_NOT_SMALL, vf_vl()),
                                vf_vl()) < 0;
}

/* No RVV instruction takes an operand from memory, so there is nothing to pin. */
SIMD_INLINE vf vf_pin(vf v) { return v; }
SIMD_INLINE vf vf_pin_here(vf v) { return v; }

/* ---- f64 ---- */

/* The empty asm makes a constant anew at each use. The polynomials have more constants than there are register
 * groups, and clang 19 would keep them on the stack, from where a load costs more. */
SIMD_INLINE vd vd_set1(double x)
{
    __asm__ volatile("" : "+f"(x));
    return __riscv_vfmv_v_f_f64m2(x, vf_vl());
}
SIMD_INLINE vd vd_load(const double *p) { return __riscv_vle64_v_f64m2(p, vf_vl()); }
SIMD_INLINE void vd_store(double *p, vd v) { __riscv_vse64_v_f64m2(p, v, vf_vl()); }
SIMD_INLINE vd vd_add(vd a, vd b) { return __riscv_vfadd_vv_f64m2(a, b, vf_vl()); }
SIMD_INLINE vd vd_sub(vd a, vd b) { return __riscv_vfsub_vv_f64m2(a, b, vf_vl()); }
SIMD_INLINE vd vd_mul(vd a, vd b) { return __riscv_vfmul_vv_f64m2(a, b, vf_vl()); }
SIMD_INLINE vd vd_fma(vd a, vd b, vd c) { return __riscv_vfmadd_vv_f64m2(a, b, c, vf_vl()); }
SIMD_INLINE vd vd_fms(vd a, vd b, vd c) { return __riscv_vfmsub_vv_f64m2(a, b, c, vf_vl()); }
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c) { return __riscv_vfnmsub_vv_f64m2(a, b, c, vf_vl()); }
SIMD_INLINE vd vd_from_vf(vf v) { return __riscv_vfwcvt_f_f_v_f64m2(v, vf_vl()); }
SIMD_INLINE vf vf_from_vd(vd v) { return __riscv_vfncvt_f_f_w_f32m1(v, vf_vl()); }
/* Rounds, then zips. */
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    vf x = vf_from_vd(a), y = vf_from_vd(b);

    *lo = vf_zip_lo(x, y);
    *hi = vf_zip_hi(x, y);
}
SIMD_INLINE vd vd_from_i64(vq q)
{
    return __riscv_vfcvt_f_x_v_f64m2(__riscv_vreinterpret_v_u64m2_i64m2(q), vf_vl());
}
SIMD_INLINE vd vd_from_u32(vq q) { return __riscv_vfcvt_f_xu_v_f64m2(q, vf_vl()); }

/* ---- Unsigned 64-bit ---- */

SIMD_INLINE vq vq_set1(uint64_t x) { return __riscv_vmv_v_x_u64m2(x, vf_vl()); }
SIMD_INLINE vq vq_load(const uint64_t *p) { return __riscv_vle64_v_u64m2(p, vf_vl()); }
SIMD_INLINE vq vq_add(vq a, vq b) { return __riscv_vadd_vv_u64m2(a, b, vf_vl()); }
SIMD_INLINE vq vq_sub(vq a, vq b) { return __riscv_vsub_vv_u64m2(a, b, vf_vl()); }
SIMD_INLINE vq vq_shl(vq q, size_t k) { return __riscv_vsll_vx_u64m2(q, k, vf_vl()); }
SIMD_INLINE vq vq_shr(vq q, size_t k) { return __riscv_vsrl_vx_u64m2(q, k, vf_vl()); }
/* Returns the low word of each 64-bit lane. */
SIMD_INLINE vuint32m1_t vq_narrow(vq q) { return __riscv_vnsrl_wx_u32m1(q, 0, vf_vl()); }
SIMD_INLINE vq vq_mul32(vq a, vq b)
{
    return __riscv_vwmulu_vv_u64m2(vq_narrow(a), vq_narrow(b), vf_vl());
}
SIMD_INLINE vq vq_from_bits(vd v) { return __riscv_vreinterpret_v_f64m2_u64m2(v); }

/* Returns v times the sign of a number whose sign bit is bit 1 of q. */
SIMD_INLINE vd vd_flip_bit1(vd v, vq q)
{
    vd sign = __riscv_vreinterpret_v_u64m2_f64m2(vq_shl(q, 62));
    return __riscv_vfsgnjx_vv_f64m2(v, sign, vf_vl());
}
SIMD_INLINE vf vf_flip_bit1(vf v, vq q)
{
    vuint32m1_t sign = __riscv_vsll_vx_u32m1(vq_narrow(q), 30, vf_vl());
    return __riscv_vfsgnjx_vv_f32m1(v, __riscv_vreinterpret_v_u32m1_f32m1(sign), vf_vl());
}
SIMD_INLINE vbool32_t vq_bit0(vq q)
{
    vuint32m1_t bit = __riscv_vand_vx_u32m1(vq_narrow(q), 1, vf_vl());
    return __riscv_vmsne_vx_u32m1_b32(bit, 0, vf_vl());
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y)
{
    return __riscv_vmerge_vvm_f64m2(y, x, vq_bit0(q), vf_vl());
}
SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y)
{
    return __riscv_vmerge_vvm_f32m1(y, x, vq_bit0(q), vf_vl());
}
#endif
