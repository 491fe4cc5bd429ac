/*
 * Access to positions, and small helpers that all kernels share. Arguments are canonical (see struct
 * posenc_backend). Each backend compiles its own static copy. Rows are in storage.h.
 */
#ifndef POSENC_KERNELS_COMMON_H
#define POSENC_KERNELS_COMMON_H

#include "impl/internal.h"

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Largest activations, in bytes, that are assumed to be in a cache. Larger ones are prefetched. */
enum { IN_CACHE = 16 << 20 };

/* Returns the index of a position in its array. An offset has no array, and its strides are not
 * checked. */
static inline int64_t posenc_position_index(const struct posenc_positions *p, int64_t b,
                                            int64_t t)
{
    return b * p->stride_batch + t * p->stride_token;
}

/* Returns a position, truncated towards 0 if it has a fraction (POSENC_POSITIONS_F32). */
static inline int64_t posenc_position(const struct posenc_positions *p, int64_t b, int64_t t)
{
    switch (p->kind) {
    case POSENC_POSITIONS_I32:
        return ((const int32_t *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_POSITIONS_I64:
        return ((const int64_t *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_POSITIONS_F32:
        return (int64_t)((const float *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_OFFSET:
        break;
    }
    return p->offset + t;
}

/* Returns a position with its fraction. Adding 0.0 turns -0 into +0. */
static inline double posenc_time(const struct posenc_positions *p, int64_t b, int64_t t)
{
    if (p->kind == POSENC_POSITIONS_F32)
        return (double)((const float *)p->data)[posenc_position_index(p, b, t)] + 0.0;
    return (double)posenc_position(p, b, t);
}

/* Returns true if a position has no fraction. */
static inline bool posenc_is_whole(const struct posenc_positions *p, int64_t b, int64_t t)
{
    return p->kind != POSENC_POSITIONS_F32 ||
           posenc_time(p, b, t) == (double)posenc_position(p, b, t);
}

#endif
