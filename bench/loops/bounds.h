/*
 * Lower-bound loops: each performs only the unavoidable operations of the inner loop of a kernel. If memory does not
 * limit a kernel, its loop does: by execution ports, by conversions, or by the latency of a dependency chain.
 *
 * Each kind is compiled for every instruction set of impl/simd. The build lists these in BOUND_ISAS as ISA(backend).
 *
 * loop(dst, src, third, n) writes n floats from dst on. n is a multiple of BOUND_STEP, except for conversions.
 *
 *   src     n floats to which results are added, as biases are to scores; NULL for a kernel that only writes. Rotations
 *           and sums read src alone.
 *   third   biases and tables: end of the first row, which sets the length of all rows; NULL: long rows. Tables are
 *           written BOUND_ROWS rows at a time. The rest of n after whole rows, or groups of rows, is not written.
 *           conversions without src: 128 numbers in f32 to convert; NULL: the numbers are in f64.
 */
#ifndef POSENC_BENCH_LOOPS_BOUNDS_H
#define POSENC_BENCH_LOOPS_BOUNDS_H

#include <stddef.h>

/* Rows of a table that are written in parallel. BOUND_STEP holds two of the longest vectors for each of them. */
enum { BOUND_ROWS = 8, BOUND_STEP = 1024 };

/* Kinds of lower-bound loops, with their names in records:
 *
 *   from_f64            rounds numbers from f64 to f32, and adds them to src: tables
 *   f16, bf16           converts src, or numbers in f64 or f32, through f32
 *   table               eight rows of cosines and sines in f64: two rotated from an anchor that is evaluated once for eight
 *                       groups, six by the recurrence; cosines in one half of a row, sines in the other
 *   table_interleaved   the same with alternating sines and cosines
 *   angles              evaluates sines and cosines of f32 angles
 *   rotate              rotates halves of src by angles in registers
 *   rotate_f16, _bf16   the same in 16 bits, converted to f32 and back
 *   rotate_pairs, ...   rotates interleaved pairs
 *   norm                RMS norm, then a rotation of halves
 *   slope               rows of slope times distance: ALiBi
 *   line                rows that read a short line backwards, each from one element further
 *   runs                rows that read a line forwards after a run of one value: T5
 *   fetch               table lookups of four heads by an index
 *   c2p                 lookups in one row by columns that rise by at most one
 *   p2c                 lookups one by one, each in another row
 *   both                c2p and p2c
 *   sums                sixteen rows in parallel, each summed in order; as many floats are written
 *   chain               one row summed in order, a dependency chain
 */
#define BOUND_KINDS(KIND, isa)                                                                 \
    KIND(from_f64, "f64 to f32", isa)                                                          \
    KIND(f16, "f16", isa)                                                                      \
    KIND(bf16, "bf16", isa)                                                                    \
    KIND(table, "table", isa)                                                                  \
    KIND(table_interleaved, "table by turns", isa)                                             \
    KIND(angles, "angles", isa)                                                                \
    KIND(rotate, "turn", isa)                                                                  \
    KIND(rotate_f16, "turn in f16", isa)                                                       \
    KIND(rotate_bf16, "turn in bf16", isa)                                                     \
    KIND(rotate_pairs, "turn of pairs", isa)                                                   \
    KIND(rotate_pairs_f16, "turn of pairs in f16", isa)                                        \
    KIND(rotate_pairs_bf16, "turn of pairs in bf16", isa)                                      \
    KIND(norm, "norm and turn", isa)                                                           \
    KIND(slope, "slope", isa)                                                                  \
    KIND(line, "line", isa)                                                                    \
    KIND(runs, "runs", isa)                                                                    \
    KIND(fetch, "fetch", isa)                                                                  \
    KIND(c2p, "c2p", isa)                                                                      \
    KIND(p2c, "p2c", isa)                                                                      \
    KIND(both, "c2p and p2c", isa)                                                             \
    KIND(sums, "sums", isa)                                                                    \
    KIND(chain, "chain", isa)

/* Kinds of rooflines, each by plain stores, with software prefetch, and by streaming stores:
 *
 *   store       writes a constant: tables and biases
 *   in_place    dst = -src with src equal to dst: rotations and scores in place
 *   copy        dst = src: out of place
 *   add         dst = src + third: a second input, such as learned_add
 */
#define MOVE_KINDS(KIND, isa)                                                                  \
    KIND(store, "store", isa)                                                                  \
    KIND(in_place, "in place", isa) KIND(copy, "copy", isa) KIND(add, "add", isa)

/* Number of the store roofline. Its four bytes are equal, so that memset() can write it. */
enum { ROOFLINE_BYTE = 0x3f };
#define ROOFLINE_CONSTANT 0x1.7e7e7ep-1f /* bits 0x3f3f3f3f */

/* Ways in which an instruction set moves memory: as another one does, by plain stores, or also by prefetches and
 * streaming stores. */
enum bound_moves { MOVES_NONE, MOVES_PLAIN, MOVES_WITH_HINTS };

#define BOUND_NAME(kind, isa) bound_##kind##_##isa
#define BOUND(kind, isa)                                                                       \
    void BOUND_NAME(kind, isa)(float *dst, const float *src, const float *third, size_t n)
#ifdef BOUND_ISAS /* otherwise the kinds alone are needed */
#define DECLARED(kind, unused, isa) BOUND(kind, isa);
#define MOVES(kind, unused, isa)                                                               \
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
