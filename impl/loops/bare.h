/*
 * Bare loops: each does what the inner loop of some kernel cannot avoid and nothing else.  It is a limit
 * of such kernels where memory is not: the ports that arithmetic goes through, or the latency of a
 * chain.
 *
 * One of each kind for each instruction set that has the primitives of impl/simd; the build says
 * which: BARE_ISAS, ISA(name) for each of them, named as the backend.  They write n floats from dst
 * on, n a multiple of BARE_STEP.  src: as many floats that what they make is added to, as biases
 * are to scores, or NULL where a call only writes; those that turn or sum have nothing but src.
 * row_end: where the first of rows ends that are as long as it, of biases and of tables, which write
 * BARE_ROWS of them side by side, each of whole pairs of vectors; NULL where rows are long, and for all
 * others.  What is left of n when all rows are whole, or all eights of them, is not written.
 */
#ifndef POSENC_BARE_H
#define POSENC_BARE_H

#include <stddef.h>

/* Rows of a table that are written side by side, and what they fill with the longest vectors: two of
 * them for each row. */
enum { BARE_ROWS = 8, BARE_STEP = 1024 };

/* Kinds, in the order in which they are listed:
 *
 *   table     eight rows of cosines and sines in f64, two turned from an anchor that serves eight times and
 *             six by the recurrence, rounded, looked at and stored by halves,
 *   by_turns  and stored by turns
 *   angles    the evaluation of f32 angles
 *   turn      a rotation whose angles stay in registers, of halves of src
 *   turn_f16  the same of elements of 16 bits, widened before and rounded after it,
 *   turn_bf16
 *   pairs     and of interleaved pairs
 *   pairs_f16
 *   pairs_bf16
 *   norm      that of halves with sums of squares and two factors before it
 *   slope     rows of a slope times the distance
 *   line      rows of a short line read backwards, from a start that moves by one from row to row
 *   runs      one read forwards, with one value on and on before it
 *   heads     the same of a single query: a line of 32 buckets, made bucket by bucket, and of each four heads
 *             their columns of a table, looked up along the line
 *   fetch     four heads' elements by an index
 *   c2p       a row's elements by columns that rise by one at most,
 *   p2c       the same one by one, as each is in a row of its own,
 *   both      and both
 *   sums      sixteen rows side by side, each added up in its order (as many floats are written),
 *   chain     and a single one
 */
#define BARE_KINDS(KIND, isa)                                                                  \
    KIND(table, isa)                                                                           \
    KIND(by_turns, isa)                                                                        \
    KIND(angles, isa)                                                                          \
    KIND(turn, isa)                                                                            \
    KIND(turn_f16, isa)                                                                        \
    KIND(turn_bf16, isa)                                                                       \
    KIND(pairs, isa)                                                                           \
    KIND(pairs_f16, isa)                                                                       \
    KIND(pairs_bf16, isa)                                                                      \
    KIND(norm, isa)                                                                            \
    KIND(slope, isa)                                                                           \
    KIND(line, isa)                                                                            \
    KIND(runs, isa)                                                                            \
    KIND(heads, isa)                                                                           \
    KIND(fetch, isa)                                                                           \
    KIND(c2p, isa)                                                                             \
    KIND(p2c, isa)                                                                             \
    KIND(both, isa)                                                                            \
    KIND(sums, isa)                                                                            \
    KIND(chain, isa)

#define BARE_NAME(kind, isa) bare_##kind##_##isa
#define BARE(kind, isa)                                                                        \
    void BARE_NAME(kind, isa)(float *dst, const float *src, const float *row_end, size_t n)
#ifdef BARE_ISAS /* else the kinds alone */
#define DECLARED(kind, isa) BARE(kind, isa);
#define ISA(name)           BARE_KINDS(DECLARED, name)
BARE_ISAS
#undef ISA
#undef DECLARED
#endif

#endif
