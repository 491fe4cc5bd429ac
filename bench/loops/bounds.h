/*
 * Lower-bound loops and rooflines, for each instruction set. A roofline moves the bytes of a kernel and does nothing
 * else. A lower-bound loop performs only the unavoidable operations of the inner loop of a kernel, on data in cache. The
 * slower one of the two limits the kernel: memory, or execution ports, conversions and dependency chains.
 *
 * `bound_rotate_avx2(dst, src, NULL, 1024)` rotates 1024 floats as rope_half does on AVX2. If it takes 80 ns and the
 * kernel takes 85 ns for as many floats, `posenc bench` reports that execution ports limit the kernel.
 *
 * loop(dst, src, third, n) writes n floats from dst on. n is a multiple of BOUND_STEP, except for conversions and
 * rooflines.
 *
 *   src     n floats to which results are added, as biases are to scores; NULL for a kernel that only writes. Rotations,
 *           sums and rooflines read src alone.
 *   third   rooflines: the second input of `add`
 *           biases and tables: end of the first row, which sets the length of all rows; NULL: long rows. Tables are
 *           written BOUND_ROWS rows at a time. The rest of n after whole rows, or groups of rows, is not written.
 *           conversions without src: 128 numbers in f32 to convert; NULL: the numbers are in f64.
 *
 * bounds.c implements the loops, with rotations.h, tables.h and moves.h as parts; bench/rooflines.c chooses among them.
 */
#ifndef POSENC_BENCH_LOOPS_BOUNDS_H
#define POSENC_BENCH_LOOPS_BOUNDS_H

#include <stddef.h>

/* Rows of a table that are written in parallel. BOUND_STEP holds two of the longest vectors for each of them. */
enum { BOUND_ROWS = 8, BOUND_STEP = 1024 };

/* Kinds of lower-bound loops: KIND(kind, name in records, isa). */
#define BOUND_KINDS(KIND, isa)                                                                 \
    KIND(from_f64, "f64 to f32", isa) /* rounds numbers from f64 to f32, adds them to src */   \
    KIND(f16, "f16", isa)   /* converts src, or numbers in f64 or f32, through f32 */          \
    KIND(bf16, "bf16", isa) /* the same in bf16 */                                             \
    /* Eight rows of cosines and sines in f64. Two are rotated from an anchor that is */       \
    /* evaluated once for eight groups, six follow by the recurrence. */                       \
    KIND(table, "table", isa)                      /* cosines in one half of a row */          \
    KIND(table_interleaved, "table by turns", isa) /* alternating sines and cosines */         \
    KIND(angles, "angles", isa)          /* evaluates sines and cosines of f32 angles */       \
    KIND(rotate, "turn", isa)            /* rotates halves of src by angles in registers */    \
    KIND(rotate_f16, "turn in f16", isa) /* in 16 bits, converted to f32 and back */           \
    KIND(rotate_bf16, "turn in bf16", isa)                                                     \
    KIND(rotate_pairs, "turn of pairs", isa) /* rotates interleaved pairs */                   \
    KIND(rotate_pairs_f16, "turn of pairs in f16", isa)                                        \
    KIND(rotate_pairs_bf16, "turn of pairs in bf16", isa)                                      \
    KIND(norm, "norm and turn", isa) /* RMS norm, then a rotation of halves */                 \
    KIND(slope, "slope", isa)        /* rows of slope times distance: ALiBi */                 \
    KIND(line, "line", isa)          /* rows that read a line backwards, each one further */   \
    KIND(runs, "runs", isa)          /* a run of one value, then a line read forwards: T5 */   \
    KIND(fetch, "fetch", isa)        /* table lookups of four heads by an index */             \
    KIND(c2p, "c2p", isa) /* lookups in one row by columns that rise by at most one */         \
    KIND(p2c, "p2c", isa) /* lookups one by one, each in another row */                        \
    KIND(both, "c2p and p2c", isa)                                                             \
    KIND(sums, "sums", isa)   /* sixteen rows in parallel, each summed in order */             \
    KIND(chain, "chain", isa) /* one row summed in order, a dependency chain */

/* Kinds of rooflines. Each has a variant with plain stores, one with software prefetch, and one with streaming stores. */
#define MOVE_KINDS(KIND, isa)                                                                  \
    KIND(store, "store", isa)       /* dst = a constant: tables and biases */                  \
    KIND(in_place, "in place", isa) /* dst = -src, src is dst: rotations in place */           \
    KIND(copy, "copy", isa)         /* dst = src: out of place */                              \
    KIND(add, "add", isa)           /* dst = src + third: a second input, as learned_add */

/* Number of the store roofline. Its four bytes are equal, so that memset() can write it. */
enum { ROOFLINE_BYTE = 0x3f };
#define ROOFLINE_CONSTANT 0x1.7e7e7ep-1f /* bits 0x3f3f3f3f */

/* Rooflines that an instruction set has: none of its own, with plain stores, or also with prefetches and streaming
 * stores. */
enum bound_moves { MOVES_NONE, MOVES_PLAIN, MOVES_WITH_HINTS };

/* Name of a loop, such as bound_rotate_avx2, and its prototype. */
#define BOUND_NAME(kind, isa) bound_##kind##_##isa
#define BOUND(kind, isa)                                                                       \
    void BOUND_NAME(kind, isa)(float *dst, const float *src, const float *third, size_t n)

/* Declares all loops. The build defines BOUND_ISAS as `ISA(scalar) ISA(avx2) ...`: a line for each instruction set. */
#ifdef BOUND_ISAS
#define DECLARE_BOUND(kind, name, isa) BOUND(kind, isa);
#define DECLARE_MOVES(kind, name, isa)                                                         \
    BOUND(kind, isa);                                                                          \
    BOUND(kind##_prefetch, isa);                                                               \
    BOUND(kind##_stream, isa);
#define ISA(isa)                                                                               \
    BOUND_KINDS(DECLARE_BOUND, isa)                                                            \
    MOVE_KINDS(DECLARE_MOVES, isa) enum bound_moves BOUND_NAME(moves, isa)(void);
BOUND_ISAS
#undef ISA
#undef DECLARE_MOVES
#undef DECLARE_BOUND
#endif

#endif
