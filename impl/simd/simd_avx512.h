/* The primitives of simd.h for AVX-512 (F, BW, DQ, VL): 16 lanes; vd and vq are pairs of registers. */
#ifndef POSENC_SIMD_AVX512_H
#define POSENC_SIMD_AVX512_H

#include <immintrin.h>

typedef __m512 vf;
typedef struct {
    __m512d lo, hi;
} vd;
typedef struct {
    __m512i lo, hi;
} vq;

#define SIMD_LANES 16
SIMD_INLINE int64_t vf_lanes(void) { return SIMD_LANES; }
SIMD_INLINE __mmask16 vf_first(int64_t n) { return (__mmask16)((1u << n) - 1u); }

SIMD_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vf vf_iota(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
SIMD_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(vf_first(n), p);
}
SIMD_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
/* Stores the first n lanes as two parts of equal size that may overlap. A masked store would delay each load that
 * it spans, even of masked elements: the next row's, which follows in memory. */
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    const int64_t part = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
    const __m512i lanes =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i from = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)(n - part)));
    vf last = _mm512_permutexvar_ps(from, v);

    if (n >= 8) {
        _mm256_storeu_ps(p, _mm512_castps512_ps256(v));
        _mm256_storeu_ps(p + n - 8, _mm512_castps512_ps256(last));
    } else if (n >= 4) {
        _mm_storeu_ps(p, _mm512_castps512_ps128(v));
        _mm_storeu_ps(p + n - 4, _mm512_castps512_ps128(last));
    } else if (n >= 2) {
        _mm_storel_pi((__m64 *)p, _mm512_castps512_ps128(v));
        _mm_storel_pi((__m64 *)(p + n - 2), _mm512_castps512_ps128(last));
    } else {
        _mm_store_ss(p, _mm512_castps512_ps128(v));
    }
}

SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n)
{
    _mm512_mask_storeu_ps(p, vf_first(n), v);
}
SIMD_INLINE bool vf_has_masks(void) { return true; }

SIMD_INLINE vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_first(n), p));
}
/* The empty asm makes this two instructions: on Zen 5 the form of VCVTPS2PH that stores is slower than both. */
SIMD_INLINE __m256i half_from_vf(vf v)
{
    __m256i half = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    __asm__("" : "+v"(half));
    return half;
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, half_from_vf(v));
}
/* Stores the first n elements; see vf_store_n(). */
SIMD_INLINE void store_halves_n(uint16_t *p, __m256i v, int64_t n)
{
    const int64_t part = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
    const __m256i lanes =
        _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i from = _mm256_add_epi16(lanes, _mm256_set1_epi16((short)(n - part)));
    const __m128i first = _mm256_castsi256_si128(v);
    const __m128i last = _mm256_castsi256_si128(_mm256_permutexvar_epi16(from, v));

    if (n >= 8) {
        _mm_storeu_si128((__m128i *)p, first);
        _mm_storeu_si128((__m128i *)(p + n - 8), last);
    } else if (n >= 4) {
        _mm_storel_epi64((__m128i *)p, first);
        _mm_storel_epi64((__m128i *)(p + n - 4), last);
    } else if (n >= 2) {
        _mm_storeu_si32(p, first);
        _mm_storeu_si32(p + n - 2, last);
    } else {
        _mm_storeu_si16(p, first);
    }
}
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    store_halves_n(p, half_from_vf(v), n);
}

SIMD_INLINE vf vf_from_upper(__m256i upper)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_from_upper(_mm256_loadu_si256((const __m256i *)p));
}
SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    return vf_from_upper(_mm256_maskz_loadu_epi16(vf_first(n), p));
}
/* Returns the bits of bf16_from_f32() in the upper half of each lane. */
SIMD_INLINE __m512i upper_of_any(vf v)
{
    __m512i bits = _mm512_castps_si512(v), one = _mm512_set1_epi32(1);
    __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    rounded = _mm512_mask_add_epi32(rounded, odd, rounded, one);
    return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), bits,
                                _mm512_set1_epi32(0x400000));
}
/* VCVTNEPS2BF16 treats subnormals as zero, so vectors with subnormals take the long way. */
SIMD_INLINE __m256i upper_from_vf(vf v)
{
#ifdef __AVX512BF16__
    if (__builtin_expect(_mm512_fpclass_ps_mask(v, 0x20) == 0, 1))
        return (__m256i)_mm512_cvtneps_pbh(v);
#endif
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper_of_any(v), 16));
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, upper_from_vf(v));
}
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    store_halves_n(p, upper_from_vf(v), n);
}

/* See simd_avx2.h. VCVTNE2PS2BF16 of AVX512_BF16 rounds two vectors at once. */
SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return true; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    __m512i both = _mm512_loadu_si512(p);
    *a = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    *b = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-0x10000)));
}
/* Returns the bits of v; a NaN becomes quiet, and its lower half zero, so that rounding cannot change it. */
SIMD_INLINE __m512i short_nan(vf v)
{
    __m512i bits = _mm512_castps_si512(v);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    bits = _mm512_mask_or_epi32(bits, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_and_epi32(bits, nan, bits, _mm512_set1_epi32(-0x10000));
}
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
#ifdef __AVX512BF16__
    const __m512i by_turns =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    /* Only an element that became zero may have been a subnormal. */
    if (__builtin_expect(_mm512_testn_epi16_mask(both, _mm512_set1_epi16(0x7fff)) == 0, 1) ||
        _kortestz_mask16_u8(_mm512_fpclass_ps_mask(a, 0x20), _mm512_fpclass_ps_mask(b, 0x20))) {
        _mm512_storeu_si512(p, _mm512_permutexvar_epi16(by_turns, both));
        return;
    }
    _mm512_storeu_si512(p, _mm512_mask_mov_epi16(_mm512_srli_epi32(upper_of_any(a), 16),
                                                 0xaaaaaaaa, upper_of_any(b)));
#else
    __m512i even = _mm512_castps_si512(a), odd = _mm512_castps_si512(b);

    if (__builtin_expect(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), 0)) {
        even = short_nan(a);
        odd = short_nan(b);
    }
    __m512i upper = _mm512_mask_mov_epi16(_mm512_srli_epi32(even, 16), 0xaaaaaaaa, odd);
    __m512i lower = _mm512_mask_mov_epi16(_mm512_slli_epi32(odd, 16), 0x55555555, even);
    lower = _mm512_subs_epu16(lower, _mm512_andnot_si512(upper, _mm512_set1_epi16(1)));
    _mm512_storeu_si512(p, _mm512_add_epi16(upper, _mm512_srli_epi16(lower, 15)));
#endif
}

/* Whole vectors use single loads, for the reasons in simd_avx2.h. */
SIMD_INLINE __m256 vf_half_gather(const float *base, const int32_t *index)
{
    return _mm256_setr_ps(base[index[0]], base[index[1]], base[index[2]], base[index[3]],
                          base[index[4]], base[index[5]], base[index[6]], base[index[7]]);
}
SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    __mmask16 first = vf_first(n);

    if (n == SIMD_LANES)
        return _mm512_insertf32x8(_mm512_castps256_ps512(vf_half_gather(base, index)),
                                  vf_half_gather(base, index + 8), 1);
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), first,
                                    _mm512_maskz_loadu_epi32(first, index), base, 4);
}

/* Returns four rows of four elements side by side. */
SIMD_INLINE vf vf_four_rows(const float *first, const float *second, const float *third,
                            const float *fourth)
{
    __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(first)),
                                      _mm_loadu_ps(second), 1);
    __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(third)),
                                       _mm_loadu_ps(fourth), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
/* Transposes: rows[k] holds rows k, k + 4, k + 8 and k + 12 of four elements. Each of a, b, c, d gets a column. */
SIMD_INLINE void vf_transpose_rows(const vf *rows, vf *a, vf *b, vf *c, vf *d)
{
    __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[0], rows[1]));
    __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[0], rows[1]));
    __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[2], rows[3]));
    __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[2], rows[3]));

    *a = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    *b = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    *c = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    *d = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    vf rows[4];

    for (int k = 0; k < 4; k++, index++)
        rows[k] = vf_four_rows(base + 4 * (int64_t)index[0], base + 4 * (int64_t)index[4],
                               base + 4 * (int64_t)index[8], base + 4 * (int64_t)index[12]);
    vf_transpose_rows(rows, a, b, c, d);
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    vf rows[4];

    for (int k = 0; k < 4; k++, base += stride)
        rows[k] = vf_four_rows(base, base + 4 * stride, base + 8 * stride, base + 12 * stride);
    vf_transpose_rows(rows, a, b, c, d);
}

SIMD_INLINE bool vf_has_streams(void) { return true; }
SIMD_INLINE void vf_stream(float *p, vf v) { _mm512_stream_ps(p, v); }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v)
{
    _mm256_stream_si256((__m256i *)p, half_from_vf(v));
}
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v)
{
    _mm256_stream_si256((__m256i *)p, upper_from_vf(v));
}
SIMD_INLINE void vf_stream_end(void) { _mm_sfence(); }

SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    vf lo, hi;

    if (n == SIMD_LANES) {
        lo = vf_load(p);
        hi = vf_load(p + SIMD_LANES);
    } else {
        uint32_t first = (1u << (2 * n)) - 1u;
        lo = _mm512_maskz_loadu_ps((__mmask16)first, p);
        hi = _mm512_maskz_loadu_ps((__mmask16)(first >> 16), p + SIMD_LANES);
    }
    *a = _mm512_permutex2var_ps(lo, even, hi);
    *b = _mm512_permutex2var_ps(lo, odd, hi);
}

SIMD_INLINE vf vf_load_twice(const float *p)
{
    const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
SIMD_INLINE vf vf_zip_lo(vf a, vf b)
{
    const __m512i order =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, order, b);
}
SIMD_INLINE vf vf_zip_hi(vf a, vf b)
{
    const __m512i order =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, order, b);
}

SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    vf lo = vf_zip_lo(a, b), hi = vf_zip_hi(a, b);

    if (n == SIMD_LANES) {
        vf_store(p, lo);
        vf_store(p + SIMD_LANES, hi);
    } else {
        uint32_t mask = (1u << (2 * n)) - 1u;
        _mm512_mask_storeu_ps(p, (__mmask16)mask, lo);
        _mm512_mask_storeu_ps(p + SIMD_LANES, (__mmask16)(mask >> 16), hi);
    }
}

SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    __m512i lane = _mm512_loadu_si512(index);
    return _mm512_permutexvar_ps(_mm512_sub_epi32(lane, _mm512_set1_epi32(first)), v);
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index)
{
    return _mm512_permutex2var_ps(a, _mm512_loadu_si512(index), b);
}
SIMD_INLINE vf vf_swap_pairs(vf a) { return _mm512_permute_ps(a, 0xb1); }
SIMD_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d) { return _mm512_fmsub_ps(a, b, vf_mul(c, d)); }
SIMD_INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
SIMD_INLINE vf vf_min_abs(vf a, vf b) { return _mm512_range_ps(a, b, 0xa); }
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
SIMD_INLINE bool vf_any_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) != 0; }
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    const __m512i bits = _mm512_set1_epi32(POSENC_NOT_SMALL);
    __m512i all = _mm512_ternarylogic_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b),
                                            _mm512_castps_si512(c), 0x80);
    all = _mm512_ternarylogic_epi32(all, _mm512_castps_si512(d), bits, 0x80);
    return _mm512_cmpneq_epi32_mask(all, bits) == 0;
}

#define SIMD_PAIRWISE(type, lo_value, hi_value) ((type){ lo_value, hi_value })
SIMD_INLINE vd vd_set1(double x)
{
    return SIMD_PAIRWISE(vd, _mm512_set1_pd(x), _mm512_set1_pd(x));
}
SIMD_INLINE vd vd_load(const double *p)
{
    return SIMD_PAIRWISE(vd, _mm512_loadu_pd(p), _mm512_loadu_pd(p + 8));
}
SIMD_INLINE void vd_store(double *p, vd v)
{
    _mm512_storeu_pd(p, v.lo);
    _mm512_storeu_pd(p + 8, v.hi);
}
SIMD_INLINE vd vd_add(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_sub(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_mul(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm512_fmadd_pd(a.lo, b.lo, c.lo),
                         _mm512_fmadd_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_fms(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm512_fmsub_pd(a.lo, b.lo, c.lo),
                         _mm512_fmsub_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm512_fnmadd_pd(a.lo, b.lo, c.lo),
                         _mm512_fnmadd_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_from_vf(vf v)
{
    return SIMD_PAIRWISE(vd, _mm512_cvtps_pd(_mm512_castps512_ps256(v)),
                         _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
}
SIMD_INLINE vf vf_from_vd(vd v)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(v.lo)),
                              _mm512_cvtpd_ps(v.hi), 1);
}
/* Each half takes a permutation of one register, which is faster on Zen 5 than one of two, as in the zips. */
SIMD_INLINE vf vf_half_zip(__m512d a, __m512d b)
{
    const __m512i order =
        _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);

    return _mm512_permutexvar_ps(
        order,
        _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1));
}
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    *lo = vf_half_zip(a.lo, b.lo);
    *hi = vf_half_zip(a.hi, b.hi);
}
SIMD_INLINE vd vd_from_i64(vq q)
{
    return SIMD_PAIRWISE(vd, _mm512_cvtepi64_pd(q.lo), _mm512_cvtepi64_pd(q.hi));
}
SIMD_INLINE vd vd_from_u32(vq q) { return vd_from_i64(q); }

SIMD_INLINE vq vq_set1(uint64_t x)
{
    return SIMD_PAIRWISE(vq, _mm512_set1_epi64((int64_t)x), _mm512_set1_epi64((int64_t)x));
}
SIMD_INLINE vq vq_load(const uint64_t *p)
{
    return SIMD_PAIRWISE(vq, _mm512_loadu_si512(p), _mm512_loadu_si512(p + 8));
}
SIMD_INLINE vq vq_add(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm512_add_epi64(a.lo, b.lo), _mm512_add_epi64(a.hi, b.hi));
}
SIMD_INLINE vq vq_sub(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm512_sub_epi64(a.lo, b.lo), _mm512_sub_epi64(a.hi, b.hi));
}
SIMD_INLINE vq vq_mul32(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm512_mul_epu32(a.lo, b.lo), _mm512_mul_epu32(a.hi, b.hi));
}
#define vq_shl(q, k)                                                                           \
    SIMD_PAIRWISE(vq, _mm512_slli_epi64((q).lo, k), _mm512_slli_epi64((q).hi, k))
#define vq_shr(q, k)                                                                           \
    SIMD_PAIRWISE(vq, _mm512_srli_epi64((q).lo, k), _mm512_srli_epi64((q).hi, k))
SIMD_INLINE vq vq_from_bits(vd v)
{
    return SIMD_PAIRWISE(vq, _mm512_castpd_si512(v.lo), _mm512_castpd_si512(v.hi));
}
SIMD_INLINE __m512d vd_half_select(__m512i q, __m512d x, __m512d y)
{
    return _mm512_mask_blend_pd(_mm512_test_epi64_mask(q, _mm512_set1_epi64(1)), y, x);
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y)
{
    return SIMD_PAIRWISE(vd, vd_half_select(q.lo, x.lo, y.lo),
                         vd_half_select(q.hi, x.hi, y.hi));
}
SIMD_INLINE __m512d vd_half_flip(__m512d v, __m512i q)
{
    const __m512i sign = _mm512_set1_epi64(INT64_MIN);
    __m512i bit = _mm512_slli_epi64(q, 62);
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(_mm512_castpd_si512(v), bit, sign,
                                                         0x78)); /* v ^ (bit & sign) */
}
SIMD_INLINE vd vd_flip_bit1(vd v, vq q)
{
    return SIMD_PAIRWISE(vd, vd_half_flip(v.lo, q.lo), vd_half_flip(v.hi, q.hi));
}
/* Returns the low word of each 64-bit lane. */
SIMD_INLINE __m512i vq_narrow(vq q)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_epi32(q.lo, even, q.hi);
}
SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_test_epi32_mask(vq_narrow(q), _mm512_set1_epi32(1)), y,
                                x);
}
SIMD_INLINE vf vf_flip_bit1(vf v, vq q)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    __m512i bit = _mm512_slli_epi32(vq_narrow(q), 30);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(v), bit, sign,
                                                         0x78)); /* v ^ (bit & sign) */
}

SIMD_INLINE vf vf_pin(vf v)
{
    __asm__("" : "+v"(v));
    return v;
}
SIMD_INLINE vf vf_pin_here(vf v)
{
    __asm__ volatile("" : "+v"(v));
    return v;
}
#endif
