/*
 * The contract of the SIMD primitives. simd_<isa>.h implements it, kernels/ is
 * written over it and nothing else; tests/ holds each of them to it, ISA by ISA.
 *
 * Types. vf: f32 lanes. vd: f64, vq: unsigned 64-bit, each with AS MANY LANES AS vf, whatever
 * registers that takes. They may be sizeless: a kernel never puts one into a struct, an array
 * or a global, and never asks for its size.
 *
 * Lanes. vf_lanes() is a function: on some ISAs it is known at run time only. It is even, at
 * least 2 or exactly 1, and at most POSENC_PLAN_PAD. Where a primitive takes n, 0 < n <=
 * lanes, it touches the first n elements of memory and nothing else; lanes past n read as zero.
 *
 * Rounding. Every arithmetic primitive is one IEEE operation, rounded once to nearest even, so
 * that all ISAs give the same bits: vf_fma(a, b, c) = a b + c is fused everywhere, and so are
 * the product a b and the difference in vf_cross(a, b, c, d) = a b - fl(c d).
 *
 *   vf_lanes()
 *   vf_set1(x)  vf_iota()                      lane i holds i
 *   vf_load(p)  vf_load_n(p, n)  vf_store(p, v)  vf_store_n(p, v, n)
 *   vf_store_alone(p, v, n)                    as vf_store_n, of what nothing reads soon
 *   vf_masks()                                 whether that costs no more than a whole vector
 *   vf_load_f16(p)  vf_load_f16_n(p, n)  vf_store_f16(p, v)  vf_store_f16_n(p, v, n)
 *   vf_load_bf16(p)  vf_load_bf16_n(p, n)  vf_store_bf16(p, v)  vf_store_bf16_n(p, v, n)
 *                                              elements of 16 bits at uint16_t *p: exact to
 *                                              f32, rounded once from it, as in half.h
 *   vf_load_bf16_pairs(p, &a, &b)              a[i] of p[2i], b[i] of p[2i+1], as many as lanes
 *   vf_store_bf16_pairs(p, a, b)               the reverse
 *   vf_pairs_bf16()                            whether these take less time than two vectors, each
 *                                              by itself
 *   vf_gather_n(base, index, n)                base[index[k]] in lane k; int32_t *index, none
 *                                              negative
 *   vf_gather4(base, index, &a, &b, &c, &d)    rows of four: base[4 index[k]] in lane k of a, and
 *                                              of b, c, d what follows it; int32_t index[lanes],
 *                                              none negative, none of 2^28 or more
 *   vf_load4(base, stride, &a, &b, &c, &d)     the same of base[k stride], the stride between -2^24
 *                                              and 2^24
 *   vf_stream(p, v)                            store past the caches, p on a multiple of the
 *                                              vector's size
 *   vf_stream_f16(p, v)  vf_stream_bf16        the same of rounded elements, or as vf_store_f16;
 *                                              p on a multiple of half that size
 *   vf_streams()                               whether vf_stream is more than a store
 *   stream_end()                               makes such stores visible in order
 *   vf_load2_n(p, n, &a, &b)                   a[i] = p[2i], b[i] = p[2i+1], n pairs
 *   vf_store2_n(p, a, b, n)                    the reverse
 *   vf_load_twice(p)                           p[0] p[0] p[1] p[1] ...: of half as many as lanes
 *                                              (two lanes or more)
 *   vf_zip_lo(a, b)  vf_zip_hi(a, b)           first and second half of a0 b0 a1 b1 ...
 *   vf_lookup(v, index, first)                 lane index[k] - first of v in lane k, where that
 *                                              is a lane; int32_t index[lanes]
 *   vf_lookup2(a, b, index)                    the same of a's lanes and then b's, each index one
 *                                              of these
 *   vf_swap_pairs(a)                           a1 a0 a3 a2 ... (two lanes or more, as the zips)
 *   vf_add  vf_sub  vf_mul  vf_div  vf_sqrt  vf_fma  vf_cross
 *   vf_abs(a)  vf_min_abs(a, b)                |a|; the smaller of |a| and |b|, not of NaN
 *   vf_select_lt(a, b, x, y)                   a < b ? x : y, lane by lane
 *   vf_any_lt(a, b)                            whether a < b in some lane
 *   vf_none_small(a, b, c, d)                  whether bits 27 to 29 of all lanes of the four are
 *                                              set: 2^-15 <= |x| < 2, if |x| is below 2^113
 *   vf_keep(v)                                 v, in a register: gcc else loads it at each use
 *   vf_keep_here(v)                            the same, and read before what is written below
 *   vd_set1  vd_load(p)  vd_store(p, v)  vd_add  vd_sub  vd_mul  vd_fma
 *   vd_fms(a, b, c)  vd_fnma(a, b, c)          a b - c; c - a b
 *   vd_from_vf(v)  vf_from_vd(v)               exact; rounded once
 *   vf_turns_from_vd(a, b, &lo, &hi)           both halves of a0 b0 a1 b1 ..., rounded once
 *   vd_from_i64(q)  vd_from_u32(q)             signed, rounded once; below 2^32, exact
 *   vq_set1  vq_load(p)  vq_add  vq_sub
 *   vq_mul32(a, b)                             product of the low 32 bits of each lane
 *   vq_shl(q, k)  vq_shr(q, k)                 by a constant, 0 < k < 64
 *   vq_from_bits(v)                            the bits of f64 lanes
 *   vd_select_bit0(q, x, y)  vf_select_bit0    bit 0 of q set ? x : y
 *   vd_flip_bit1(v, q)  vf_flip_bit1           sign of v flipped where bit 1 of q is set
 */
#ifndef POSENC_SIMD_H
#define POSENC_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

#define POSENC_NOT_SMALL UINT32_C(0x38000000) /* vf_none_small */

/* A backend names its header before it includes the templates. */
#include POSENC_SIMD

/* Primitives stand wherever they are used; what is written over them may be called (POSENC_PART). */
#ifdef POSENC_PARTS_CALLED
#undef SIMD_INLINE
#define SIMD_INLINE POSENC_PART
#endif

#endif
