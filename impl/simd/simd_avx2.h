/* The primitives of simd.h for AVX2 with FMA and F16C: 8 lanes; vd and vq are pairs of registers. */
#ifndef POSENC_SIMD_AVX2_H
#define POSENC_SIMD_AVX2_H

#include <immintrin.h>

typedef __m256 vf;
typedef struct {
    __m256d lo, hi;
} vd;
typedef struct {
    __m256i lo, hi;
} vq;

#define SIMD_LANES 8
SIMD_INLINE int64_t vf_lanes(void) { return SIMD_LANES; }

SIMD_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vf vf_iota(void) { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
SIMD_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }

/* Partial vectors are loaded and stored as four, two and one elements. Masked stores are slow on AMD, and some
 * emulators' masked loads touch masked elements. */
SIMD_INLINE vf vf_load_n(const float *p, int64_t n)
{
    const float *q = p + (n & 4);
    __m128 tail = _mm_setzero_ps();

    if (n == SIMD_LANES)
        return vf_load(p);
    if (n & 2)
        tail = _mm_castsi128_ps(_mm_loadu_si64(q));
    if ((n & 3) == 3)
        tail = _mm_movelh_ps(tail, _mm_load_ss(q + 2));
    else if (n & 1)
        tail = _mm_load_ss(q);
    return n & 4 ? _mm256_set_m128(tail, _mm_loadu_ps(p))
                 : _mm256_set_m128(_mm_setzero_ps(), tail);
}
SIMD_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
SIMD_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
    __m128 part = _mm256_castps256_ps128(v);

    if (n == SIMD_LANES) {
        vf_store(p, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storeu_si64(p, _mm_castps_si128(part));
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, part);
}
SIMD_INLINE void vf_store_cold_n(float *p, vf v, int64_t n) { vf_store_n(p, v, n); }
SIMD_INLINE bool vf_has_masks(void) { return false; }

/* Do the same with 16-bit elements. */
SIMD_INLINE __m128i half_load_n(const uint16_t *p, int64_t n)
{
    const uint16_t *q = p + (n & 4);
    uint32_t two = 0;
    uint64_t tail;

    if (n == SIMD_LANES)
        return _mm_loadu_si128((const __m128i *)p);
    if (n & 2)
        memcpy(&two, q, sizeof two);
    tail = two;
    if (n & 1)
        tail |= (uint64_t)q[n & 2] << 16 * (n & 2);
    __m128i part = _mm_cvtsi64_si128((int64_t)tail);
    return n & 4 ? _mm_unpacklo_epi64(_mm_loadu_si64(p), part) : part;
}
SIMD_INLINE void half_store_n(uint16_t *p, __m128i v, int64_t n)
{
    if (n == SIMD_LANES) {
        _mm_storeu_si128((__m128i *)p, v);
        return;
    }
    uint64_t part = (uint64_t)_mm_cvtsi128_si64(v);
    if (n & 4) {
        memcpy(p, &part, sizeof part);
        part = (uint64_t)_mm_extract_epi64(v, 1);
        p += 4;
    }
    if (n & 2) {
        uint32_t two = (uint32_t)part;
        memcpy(p, &two, sizeof two);
        part >>= 32;
        p += 2;
    }
    if (n & 1)
        *p = (uint16_t)part;
}

SIMD_INLINE vf vf_load_f16_n(const uint16_t *p, int64_t n)
{
    return _mm256_cvtph_ps(half_load_n(p, n));
}
SIMD_INLINE vf vf_load_f16(const uint16_t *p) { return vf_load_f16_n(p, SIMD_LANES); }
SIMD_INLINE void vf_store_f16_n(uint16_t *p, vf v, int64_t n)
{
    half_store_n(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), n);
}
SIMD_INLINE void vf_store_f16(uint16_t *p, vf v) { vf_store_f16_n(p, v, SIMD_LANES); }

SIMD_INLINE vf vf_load_bf16_n(const uint16_t *p, int64_t n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half_load_n(p, n)), 16));
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p) { return vf_load_bf16_n(p, SIMD_LANES); }
/* Returns the bits of bf16_from_f32() in the upper half of each lane. */
SIMD_INLINE __m256i upper_from_vf(vf v)
{
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256 quiet = _mm256_or_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x400000)));
    __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded), quiet, nan));
}
SIMD_INLINE __m128i bf16_from_vf(vf v)
{
    __m256i high = _mm256_srli_epi32(upper_from_vf(v), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
SIMD_INLINE void vf_store_bf16_n(uint16_t *p, vf v, int64_t n)
{
    half_store_n(p, bf16_from_vf(v), n);
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v) { vf_store_bf16_n(p, v, SIMD_LANES); }

/* Returns the bits of v; a NaN becomes quiet, and its lower half zero, so that rounding cannot change it. */
SIMD_INLINE __m256i short_nan(vf v)
{
    __m256 quiet = _mm256_or_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x400000)));
    quiet = _mm256_and_ps(quiet, _mm256_castsi256_ps(_mm256_set1_epi32(-0x10000)));
    return _mm256_castps_si256(_mm256_blendv_ps(v, quiet, _mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}

/* Pairs need one shift, mask and blend in place of widening and packing, and one test for NaN. */
SIMD_INLINE bool vf_prefers_bf16_pairs(void) { return true; }
SIMD_INLINE void vf_load_bf16_pairs(const uint16_t *p, vf *a, vf *b)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)p);
    *a = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
    *b = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(-0x10000)));
}
/* Rounds upper and lower halves of even and odd elements side by side. One is subtracted from the lower half if the
 * upper half is even, so that a tie rounds to even; the top bit of the lower half is then the rounding increment. */
SIMD_INLINE void vf_store_bf16_pairs(uint16_t *p, vf a, vf b)
{
    __m256i even = _mm256_castps_si256(a), odd = _mm256_castps_si256(b);

    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)), 0)) {
        even = short_nan(a);
        odd = short_nan(b);
    }
    __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
    __m256i lower = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa);
    lower = _mm256_subs_epu16(lower, _mm256_andnot_si256(upper, _mm256_set1_epi16(1)));
    _mm256_storeu_si256((__m256i *)p, _mm256_add_epi16(upper, _mm256_srli_epi16(lower, 15)));
}

/* Returns eight single loads, which are faster than VGATHERDPS on Zen 4, and on Intel CPUs with the microcode
 * against Downfall. Lanes past n load element 0 again. */
SIMD_INLINE vf vf_gather_n(const float *base, const int32_t *index, int64_t n)
{
    vf lanes = _mm256_setr_ps(base[index[0]], base[index[n > 1 ? 1 : 0]],
                              base[index[n > 2 ? 2 : 0]], base[index[n > 3 ? 3 : 0]],
                              base[index[n > 4 ? 4 : 0]], base[index[n > 5 ? 5 : 0]],
                              base[index[n > 6 ? 6 : 0]], base[index[n > 7 ? 7 : 0]]);

    if (n == SIMD_LANES)
        return lanes;
    return _mm256_and_ps(lanes, _mm256_cmp_ps(vf_iota(), _mm256_set1_ps((float)n), _CMP_LT_OQ));
}

/* Returns two rows of four elements side by side. */
SIMD_INLINE vf vf_two_rows(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high),
                                1);
}
/* Transposes: rows[k] holds rows k and k + 4 of four elements. Each of a, b, c, d gets a column. */
SIMD_INLINE void vf_transpose_rows(const vf *rows, vf *a, vf *b, vf *c, vf *d)
{
    __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[0], rows[1]));
    __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[0], rows[1]));
    __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[2], rows[3]));
    __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[2], rows[3]));

    *a = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    *b = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    *c = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    *d = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}
SIMD_INLINE void vf_gather4(const float *base, const int32_t *index, vf *a, vf *b, vf *c, vf *d)
{
    vf rows[4];

    for (int k = 0; k < 4; k++)
        rows[k] = vf_two_rows(base + 4 * (int64_t)index[k], base + 4 * (int64_t)index[k + 4]);
    vf_transpose_rows(rows, a, b, c, d);
}
SIMD_INLINE void vf_load4(const float *base, int64_t stride, vf *a, vf *b, vf *c, vf *d)
{
    vf rows[4];

    for (int k = 0; k < 4; k++, base += stride)
        rows[k] = vf_two_rows(base, base + 4 * stride);
    vf_transpose_rows(rows, a, b, c, d);
}

SIMD_INLINE bool vf_has_streams(void) { return true; }
SIMD_INLINE void vf_stream(float *p, vf v) { _mm256_stream_ps(p, v); }
SIMD_INLINE void vf_stream_f16(uint16_t *p, vf v)
{
    _mm_stream_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v)
{
    _mm_stream_si128((__m128i *)p, bf16_from_vf(v));
}
SIMD_INLINE void vf_stream_end(void) { _mm_sfence(); }

/* Returns how many of the 2 n floats at p belong to the first register. */
SIMD_INLINE int64_t vf_in_first(int64_t n) { return 2 * n < SIMD_LANES ? 2 * n : SIMD_LANES; }

SIMD_INLINE void vf_load2_n(const float *p, int64_t n, vf *a, vf *b)
{
    vf lo, hi;

    if (n == SIMD_LANES) {
        lo = vf_load(p);
        hi = vf_load(p + SIMD_LANES);
    } else {
        int64_t first = vf_in_first(n);
        lo = vf_load_n(p, first);
        hi = 2 * n > first ? vf_load_n(p + SIMD_LANES, 2 * n - first) : _mm256_setzero_ps();
    }
    vf outer = _mm256_permute2f128_ps(lo, hi, 0x20),
       inner = _mm256_permute2f128_ps(lo, hi, 0x31);
    *a = _mm256_shuffle_ps(outer, inner, 0x88);
    *b = _mm256_shuffle_ps(outer, inner, 0xdd);
}

SIMD_INLINE vf vf_load_twice(const float *p)
{
    const __m256i order = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), order);
}
SIMD_INLINE vf vf_zip_lo(vf a, vf b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}
SIMD_INLINE vf vf_zip_hi(vf a, vf b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

SIMD_INLINE void vf_store2_n(float *p, vf a, vf b, int64_t n)
{
    vf lo = vf_zip_lo(a, b), hi = vf_zip_hi(a, b);

    if (n == SIMD_LANES) {
        vf_store(p, lo);
        vf_store(p + SIMD_LANES, hi);
    } else {
        int64_t first = vf_in_first(n);
        vf_store_n(p, lo, first);
        if (2 * n > first)
            vf_store_n(p + SIMD_LANES, hi, 2 * n - first);
    }
}

SIMD_INLINE vf vf_lookup(vf v, const int32_t *index, int32_t first)
{
    __m256i lane = _mm256_loadu_si256((const __m256i *)index);
    return _mm256_permutevar8x32_ps(v, _mm256_sub_epi32(lane, _mm256_set1_epi32(first)));
}
SIMD_INLINE vf vf_lookup2(vf a, vf b, const int32_t *index)
{
    const __m256i lane = _mm256_loadu_si256((const __m256i *)index);
    const __m256 in_b =
        _mm256_castsi256_ps(_mm256_slli_epi32(lane, 28)); /* bit 3 of the lane as the sign */
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, lane),
                            _mm256_permutevar8x32_ps(b, lane), in_b);
}
SIMD_INLINE vf vf_swap_pairs(vf a) { return _mm256_permute_ps(a, 0xb1); }
SIMD_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE vf vf_cross(vf a, vf b, vf c, vf d) { return _mm256_fmsub_ps(a, b, vf_mul(c, d)); }
SIMD_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
SIMD_INLINE vf vf_min_abs(vf a, vf b) { return _mm256_min_ps(vf_abs(a), vf_abs(b)); }
SIMD_INLINE vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
SIMD_INLINE bool vf_any_lt(vf a, vf b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) != 0;
}
SIMD_INLINE bool vf_none_small(vf a, vf b, vf c, vf d)
{
    __m256 all = _mm256_and_ps(_mm256_and_ps(a, b), _mm256_and_ps(c, d));

    return _mm256_testc_si256(_mm256_castps_si256(all), _mm256_set1_epi32(POSENC_NOT_SMALL)) !=
           0;
}

#define SIMD_PAIRWISE(type, lo_value, hi_value) ((type){ lo_value, hi_value })
SIMD_INLINE vd vd_set1(double x)
{
    return SIMD_PAIRWISE(vd, _mm256_set1_pd(x), _mm256_set1_pd(x));
}
SIMD_INLINE vd vd_load(const double *p)
{
    return SIMD_PAIRWISE(vd, _mm256_loadu_pd(p), _mm256_loadu_pd(p + 4));
}
SIMD_INLINE void vd_store(double *p, vd v)
{
    _mm256_storeu_pd(p, v.lo);
    _mm256_storeu_pd(p + 4, v.hi);
}
SIMD_INLINE vd vd_add(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_sub(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_mul(vd a, vd b)
{
    return SIMD_PAIRWISE(vd, _mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi));
}
SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm256_fmadd_pd(a.lo, b.lo, c.lo),
                         _mm256_fmadd_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_fms(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm256_fmsub_pd(a.lo, b.lo, c.lo),
                         _mm256_fmsub_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_fnma(vd a, vd b, vd c)
{
    return SIMD_PAIRWISE(vd, _mm256_fnmadd_pd(a.lo, b.lo, c.lo),
                         _mm256_fnmadd_pd(a.hi, b.hi, c.hi));
}
SIMD_INLINE vd vd_from_vf(vf v)
{
    return SIMD_PAIRWISE(vd, _mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                         _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
}
SIMD_INLINE vf vf_from_vd(vd v)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(v.hi), _mm256_cvtpd_ps(v.lo));
}

SIMD_INLINE vf vf_half_zip(__m256d a, __m256d b)
{
    __m128 x = _mm256_cvtpd_ps(a), y = _mm256_cvtpd_ps(b);

    return _mm256_set_m128(_mm_unpackhi_ps(x, y), _mm_unpacklo_ps(x, y));
}
SIMD_INLINE void vf_zip_from_vd(vd a, vd b, vf *lo, vf *hi)
{
    *lo = vf_half_zip(a.lo, b.lo);
    *hi = vf_half_zip(a.hi, b.hi);
}

/* Returns lanes below 2^32 as f64, exactly: the bits of 2^52 + value, minus 2^52. */
SIMD_INLINE __m256d vd_half_from_u32(__m256i q)
{
    const __m256d two52 = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(q, _mm256_castpd_si256(two52))),
                         two52);
}

/* Returns signed lanes high 2^32 + low as f64. The bits of 2^84 with high + 2^31 in the low word are the number
 * 2^84 + 2^63 + high 2^32. Subtracting 2^84 + 2^63 is exact, and adding low rounds once. */
SIMD_INLINE __m256d vd_half_from_i64(__m256i q)
{
    const __m256d two84 = _mm256_set1_pd(0x1p84 + 0x1p63);
    __m256i bits = _mm256_xor_si256(_mm256_srli_epi64(q, 32), _mm256_castpd_si256(two84));
    __m256d base = _mm256_sub_pd(_mm256_castsi256_pd(bits), two84);
    __m256d low =
        vd_half_from_u32(_mm256_and_si256(q, _mm256_set1_epi64x(INT64_C(0xffffffff))));
    return _mm256_add_pd(base, low);
}
SIMD_INLINE vd vd_from_i64(vq q)
{
    return SIMD_PAIRWISE(vd, vd_half_from_i64(q.lo), vd_half_from_i64(q.hi));
}
SIMD_INLINE vd vd_from_u32(vq q)
{
    return SIMD_PAIRWISE(vd, vd_half_from_u32(q.lo), vd_half_from_u32(q.hi));
}

SIMD_INLINE vq vq_set1(uint64_t x)
{
    return SIMD_PAIRWISE(vq, _mm256_set1_epi64x((int64_t)x), _mm256_set1_epi64x((int64_t)x));
}
SIMD_INLINE vq vq_load(const uint64_t *p)
{
    return SIMD_PAIRWISE(vq, _mm256_loadu_si256((const __m256i *)p),
                         _mm256_loadu_si256((const __m256i *)(p + 4)));
}
SIMD_INLINE vq vq_add(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm256_add_epi64(a.lo, b.lo), _mm256_add_epi64(a.hi, b.hi));
}
SIMD_INLINE vq vq_sub(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm256_sub_epi64(a.lo, b.lo), _mm256_sub_epi64(a.hi, b.hi));
}
SIMD_INLINE vq vq_mul32(vq a, vq b)
{
    return SIMD_PAIRWISE(vq, _mm256_mul_epu32(a.lo, b.lo), _mm256_mul_epu32(a.hi, b.hi));
}
#define vq_shl(q, k)                                                                           \
    SIMD_PAIRWISE(vq, _mm256_slli_epi64((q).lo, k), _mm256_slli_epi64((q).hi, k))
#define vq_shr(q, k)                                                                           \
    SIMD_PAIRWISE(vq, _mm256_srli_epi64((q).lo, k), _mm256_srli_epi64((q).hi, k))
SIMD_INLINE vq vq_from_bits(vd v)
{
    return SIMD_PAIRWISE(vq, _mm256_castpd_si256(v.lo), _mm256_castpd_si256(v.hi));
}
SIMD_INLINE vd vd_select_bit0(vq q, vd x, vd y)
{
    vq sign = vq_shl(q, 63);
    return SIMD_PAIRWISE(vd, _mm256_blendv_pd(y.lo, x.lo, _mm256_castsi256_pd(sign.lo)),
                         _mm256_blendv_pd(y.hi, x.hi, _mm256_castsi256_pd(sign.hi)));
}
SIMD_INLINE __m256d vd_half_flip(__m256d v, __m256i q)
{
    __m256i sign = _mm256_slli_epi64(_mm256_srli_epi64(q, 1), 63);
    return _mm256_xor_pd(v, _mm256_castsi256_pd(sign));
}
SIMD_INLINE vd vd_flip_bit1(vd v, vq q)
{
    return SIMD_PAIRWISE(vd, vd_half_flip(v.lo, q.lo), vd_half_flip(v.hi, q.hi));
}
/* Returns the low word of each 64-bit lane. */
SIMD_INLINE __m256i vq_narrow(vq q)
{
    __m256 words =
        _mm256_shuffle_ps(_mm256_castsi256_ps(q.lo), _mm256_castsi256_ps(q.hi), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(words), 0xd8);
}
SIMD_INLINE vf vf_select_bit0(vq q, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_castsi256_ps(_mm256_slli_epi32(vq_narrow(q), 31)));
}
SIMD_INLINE vf vf_flip_bit1(vf v, vq q)
{
    __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(vq_narrow(q), 1), 31);
    return _mm256_xor_ps(v, _mm256_castsi256_ps(sign));
}

SIMD_INLINE vf vf_pin(vf v)
{
    __asm__("" : "+x"(v));
    return v;
}
SIMD_INLINE vf vf_pin_here(vf v)
{
    __asm__ volatile("" : "+x"(v));
    return v;
}
#endif
