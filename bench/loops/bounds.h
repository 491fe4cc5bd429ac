/*
 * Lower-bound loops: each does what the inner loop of some kernel cannot avoid, and nothing else. Where memory is not
 * the limit of a kernel, its loop is: by the ports that arithmetic goes through, by conversions, or by the latency of a
 * chain.
 *
 * Each kind exists for every instruction set that has the primitives of impl/simd. The build lists them in BOUND_ISAS,
 * ISA(name) for each, named as the backend.
 *
 * A loop writes n floats from dst on.  n is a multiple of BOUND_STEP, except for conversions.
 *
 *   src     as many floats to which results are added, as biases are to scores, or NULL for a call
 *           that only writes. Rotations and sums read nothing but src
 *   third   biases and tables: the end of the first row. All rows are as long, and a table's are
 *           written BOUND_ROWS side by side, each of whole pairs of vectors. NULL: rows are long.
 *           What is left of n after whole rows, or groups of rows, is not written
 *           conversions: 128 numbers in f32 that a call makes, if src is NULL; NULL: they are in f64
 */
#ifndef POSENC_BENCH_LOOPS_BOUNDS_H
#define POSENC_BENCH_LOOPS_BOUNDS_H

#include <stddef.h>

/* Rows of a table that are written side by side. BOUND_STEP holds two of the longest vectors for each of them. */
enum { BOUND_ROWS = 8, BOUND_STEP = 1024 };

/* Kinds, in the order in which they are listed:
 *
 *   from_f64    f64 numbers rounded to f32, and added to src: tables
 *   f16, bf16   src, or numbers of f64 or f32, by way of f32
 *   table       eight rows of cosines and sines in f64: two rotated from an anchor that serves eight
 *               times and six by the recurrence, rounded, and stored by halves
 *   by_turns    the same, cosines and sines stored by turns
 *   angles      the evaluation of f32 angles
 *   turn        a rotation of halves of src whose angles stay in registers
 *   turn_f16    the same of elements of 16 bits, widened before and rounded after it
 *   pairs       a rotation of interleaved pairs
 *   norm        the rotation of halves with sums of squares and two factors before it
 *   slope       rows of a slope times the distance
 *   line        rows of a short line read backwards, from a start that moves by one from row to row
 *   runs        a line read forwards, with one value on and on before it
 *   heads       the same of a single query: a line of 32 buckets, made bucket by bucket, and of each
 *               four heads their columns of a table, looked up along the line
 *   fetch       four heads' elements by an index
 *   c2p         a row's elements by columns that rise by one at most
 *   p2c         the same one by one, as each is in a row of its own
 *   both        c2p and p2c
 *   sums        sixteen rows side by side, each added up in its order; as many floats are written
 *   chain       a single row, added up in its order
 */
#define BOUND_KINDS(KIND, isa)                                                                 \
    KIND(from_f64, isa)                                                                        \
    KIND(f16, isa)                                                                             \
    KIND(bf16, isa)                                                                            \
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

/* Rooflines of memory, each by plain stores, with prefetches and by streaming stores:
 *
 *   store       writes a constant: tables and biases
 *   in_place    dst = -src, where src is dst: rotations and scores in place
 *   copy        dst = src: out of place
 *   add         dst = src + third: out of place with a second stream, such as learned_add
 */
#define MOVE_KINDS(KIND, isa)                                                                  \
    KIND(store, isa) KIND(in_place, isa) KIND(copy, isa) KIND(add, isa)

/* The store roofline writes this number, whose four bytes are equal, so that memset() writes it, too. */
enum { ROOFLINE_BYTE = 0x3f };
#define ROOFLINE_CONSTANT 0x1.7e7e7ep-1f /* bits 0x3f3f3f3f */

/* Ways in which an instruction set moves memory: none that is its own, plainly, or also by prefetches and streaming
 * stores. Without the latter, prefetches are hints that its CPUs may lack, too. */
enum bound_moves { MOVES_NONE, MOVES_PLAIN, MOVES_WITH_HINTS };

#define BOUND_NAME(kind, isa) bound_##kind##_##isa
#define BOUND(kind, isa)                                                                       \
    void BOUND_NAME(kind, isa)(float *dst, const float *src, const float *third, size_t n)
#ifdef BOUND_ISAS /* otherwise the kinds alone are needed */
#define DECLARED(kind, isa) BOUND(kind, isa);
#define MOVES(kind, isa)                                                                       \
    BOUND(kind, isa);                                                                          \
    BOUND(kind##_prefetch, isa);                                                               \
    BOUND(kind##_stream, isa);
#define ISA(name)                                                                              \
    BOUND_KINDS(DECLARED, name)                                                                \
    MOVE_KINDS(MOVES, name) enum bound_moves BOUND_NAME(moves, name)(void);
BOUND_ISAS
#undef ISA
#undef MOVES
#undef DECLARED
#endif

#endif
