/*
 * Access patterns: lines of memory that a kernel reads and writes, in its order, and next to nothing else.
 * Where a kernel stays below a roof, which takes memory in order, its pattern tells how much of that is the
 * order's (docs/performance.md).
 *
 * One of each kind for each instruction set, as the bare loops (bare.h).
 */
#ifndef POSENC_PATTERNS_H
#define POSENC_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>

/* out and x: rows * row floats that begin on lines; more: as many as x, of `both` and `p2c`.  row: whole
 * lines, at most PATTERN_ROW.  far: no cache holds it, so that it is stored past them and asked for, as the
 * kernels do. */
enum { PATTERN_ROW = 2048 };
struct pattern_data {
    float *out;
    const float *x, *more;
    int64_t rows, row;
    bool far;
};

/* Windows of 7 by 7 and their heads: rows * row floats are as many whole ones as there are. */
enum { PATTERN_PLANE = 49 * 49, PATTERN_HEADS = 12 };

/* The column of a distance below `row`, of relative_bias: of row / 2 and of those nearer than row / 4 each its
 * own, of three one beyond, as DeBERTa's logarithmic buckets would have it, and none of the last sixteen. */
enum { PATTERN_BLOCK = 16 };
static inline int32_t pattern_column(int64_t distance, int64_t row)
{
    const int64_t most = row / 2, near = row / 4, far = distance < 0 ? -distance : distance;
    const int64_t c = far <= near ? far : near + (far - near) / 3;
    const int64_t column = most + (distance < 0 ? -c : c);

    return (int32_t)(column < row - PATTERN_BLOCK ? column : row - PATTERN_BLOCK);
}

/* Kinds, in the order in which they are listed:
 *
 *   copy      x to out, in the order of memory
 *   eights    the same, eight rows side by side
 *   near      eight rows written nearby, side by side, and sent to out from there in the order of memory
 *   near_add  the same, added to x on their way
 *   windows   one plane after the other added in place: from DRAM of four heads in each window, then of the
 *             next four, in a cache of one head, and the next window's asked for
 *   c2p       relative_bias, row queries of as many keys and columns, rows / row heads, the columns of DeBERTa:
 *             a vector for each vector of keys, from the query's row of x,
 *   p2c       for each 16 queries a vector from each key's row of `more`,
 *   both      and both,
 *   turned    and all that is done with what they have: elements in the order of keys, scaled and added; all
 *             write out in order
 *   turned_add  the same, added to out
 */
#define PATTERN_KINDS(KIND, isa)                                                               \
    KIND(copy, isa)                                                                            \
    KIND(eights, isa)                                                                          \
    KIND(near, isa)                                                                            \
    KIND(near_add, isa)                                                                        \
    KIND(windows, isa)                                                                         \
    KIND(c2p, isa)                                                                             \
    KIND(p2c, isa)                                                                             \
    KIND(both, isa)                                                                            \
    KIND(turned, isa)                                                                          \
    KIND(turned_add, isa)

#define PATTERN_NAME(kind, isa) pattern_##kind##_##isa
#define PATTERN(kind, isa)      void PATTERN_NAME(kind, isa)(const struct pattern_data *data)
#ifdef BARE_ISAS
#define DECLARED(kind, isa) PATTERN(kind, isa);
#define ISA(name)           PATTERN_KINDS(DECLARED, name)
BARE_ISAS
#undef ISA
#undef DECLARED
#endif

#endif
