/*
 * The SIMD primitives: vector operations that kernels are written in. simd_<isa>.h implements them for one instruction
 * set, and simd_scalar.h defines their results in plain C. tests/ checks every ISA against plain C, and that the names
 * below, the tests and the headers agree.
 *
 * Types. vf: f32 lanes. vd: f64 lanes, vq: unsigned 64-bit lanes, each with AS MANY LANES AS vf, in one or several
 * registers. On some ISAs the types have no size: kernels put no vector into a struct, an array or a global.
 *
 * Lanes. vf_lanes() is a constant or, on SVE and RVV, known at run time only. It is 1 or even, at most POSENC_FREQS_PAD.
 * Suffix _n: 0 < n <= lanes; the operation touches the first n elements of memory only, and further lanes load as zero.
 *
 * Rounding. Every arithmetic primitive is one IEEE operation, rounded once to nearest even, so that all ISAs give the
 * same bits. vf_fma(a, b, c) = a b + c is fused everywhere, and so is a b - fl(c d) in vf_cross(a, b, c, d).
 *
 * f32, loads and stores
 *   vf_lanes()
 *   vf_set1(x)  vf_iota()                      x in all lanes; i in lane i
 *   vf_load(p)  vf_load_n(p, n)  vf_store(p, v)  vf_store_n(p, v, n)
 *   vf_store_cold_n(p, v, n)                   as vf_store_n, for memory that is not read soon: may use masks
 *   vf_has_masks()                             true if this is as fast as a whole vector
 *   vf_stream(p, v)                            streaming store; p is a multiple of the vector's size
 *   vf_stream_f16(p, v)  vf_stream_bf16        the same in 16 bits, p a multiple of half that size; or a normal store
 *   vf_has_streams()                           true if vf_stream differs from a store
 *   vf_stream_end()                            fence: orders streaming stores before later stores
 * 16 bits, at uint16_t *p: exact to f32, rounded once from it (half.h)
 *   vf_load_f16(p)  vf_load_f16_n(p, n)  vf_store_f16(p, v)  vf_store_f16_n(p, v, n)
 *   vf_load_bf16(p)  vf_load_bf16_n(p, n)  vf_store_bf16(p, v)  vf_store_bf16_n(p, v, n)
 *   vf_load_bf16_pairs(p, &a, &b)              a[i] = p[2i], b[i] = p[2i+1], whole vectors
 *   vf_store_bf16_pairs(p, a, b)               the reverse
 *   vf_prefers_bf16_pairs()                    true if these are faster than two separate vectors
 * Gathers and permutations; index: int32_t, not negative
 *   vf_gather_n(base, index, n)                base[index[k]] in lane k
 *   vf_gather4(base, index, &a, &b, &c, &d)    base[4 index[k] + 0, 1, 2, 3] in lane k of a, b, c, d; index < 2^28
 *   vf_load4(base, stride, &a, &b, &c, &d)     base[k stride + 0, 1, 2, 3], the same way; |stride| < 2^24
 *   vf_load2_n(p, n, &a, &b)                   a[i] = p[2i], b[i] = p[2i+1], n pairs
 *   vf_store2_n(p, a, b, n)                    the reverse
 *   vf_load_twice(p)                           p[0] p[0] p[1] p[1] ...: lanes / 2 elements; two lanes or more
 *   vf_zip_lo(a, b)  vf_zip_hi(a, b)           first and second half of a0 b0 a1 b1 ...; two lanes or more
 *   vf_swap_pairs(a)                           a1 a0 a3 a2 ...; two lanes or more
 *   vf_lookup(v, index, first)                 lane index[k] - first of v in lane k; anything where v has no such lane
 *   vf_lookup2(a, b, index)                    lane index[k] of the lanes of a followed by those of b
 * Arithmetic and comparison
 *   vf_add  vf_sub  vf_mul  vf_div  vf_sqrt  vf_fma  vf_cross
 *   vf_abs(a)  vf_min_abs(a, b)                |a|; the smaller of |a| and |b|, not for NaN
 *   vf_select_lt(a, b, x, y)                   a < b ? x : y, lane by lane
 *   vf_any_lt(a, b)                            true if a < b in some lane
 *   vf_none_small(a, b, c, d)                  true if 2^-15 <= |x| < 2 in all lanes of all four; only for |x| < 2^113,
 *                                              as it tests bits 27 to 29
 *   vf_pin(v)                                  v, held in a register: gcc may else load it from memory at each use
 *   vf_pin_here(v)                             the same, and loaded before the stores that follow
 * f64
 *   vd_set1  vd_load(p)  vd_store(p, v)  vd_add  vd_sub  vd_mul  vd_fma
 *   vd_fms(a, b, c)  vd_fnma(a, b, c)          a b - c; c - a b
 *   vd_from_vf(v)  vf_from_vd(v)               exact; rounded once
 *   vf_zip_from_vd(a, b, &lo, &hi)             vf_zip_lo and vf_zip_hi of a and b, rounded once
 *   vd_from_i64(q)  vd_from_u32(q)             of signed lanes, rounded once; of lanes below 2^32, exact
 * Unsigned 64-bit
 *   vq_set1  vq_load(p)  vq_add  vq_sub
 *   vq_mul32(a, b)                             product of the low 32 bits of each lane
 *   vq_shl(q, k)  vq_shr(q, k)                 shifts by a constant, 0 < k < 64
 *   vq_from_bits(v)                            the bits of f64 lanes
 *   vd_select_bit0(q, x, y)  vf_select_bit0    bit 0 of q set ? x : y
 *   vd_flip_bit1(v, q)  vf_flip_bit1           v with its sign flipped where bit 1 of q is set
 */
#ifndef POSENC_SIMD_H
#define POSENC_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

#define POSENC_NOT_SMALL UINT32_C(0x38000000) /* bits 27 to 29, for vf_none_small */

/* The build defines the header of an ISA for each backend. */
#include POSENC_SIMD

/* Primitives are always inlined. With POSENC_PARTS_CALLED the functions of kernels are not (POSENC_PART). */
#ifdef POSENC_PARTS_CALLED
#undef SIMD_INLINE
#define SIMD_INLINE POSENC_PART
#endif

#endif
