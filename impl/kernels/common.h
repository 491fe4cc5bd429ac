/*
 * Positions, and small helpers that all kernels share. The front end has brought the arguments into one form (struct
 * posenc_backend in posenc.h). Each backend compiles its own static copy.
 */
#ifndef POSENC_KERNELS_COMMON_H
#define POSENC_KERNELS_COMMON_H

#include "impl/internal.h"

static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Activations of more bytes than this are assumed to come from DRAM, and are prefetched. */
enum { CACHED_MAX_BYTES = 16 << 20 };

/* Returns the index of token t's position in batch b. Not for POSENC_POSITIONS_OFFSET, which has no array. */
static inline int64_t posenc_position_index(const struct posenc_positions *p, int64_t b,
                                            int64_t t)
{
    return b * p->stride_batch + t * p->stride_token;
}

/* Return the position of token t in batch b: posenc_position() truncated, posenc_time() with its fraction. */
static inline int64_t posenc_position(const struct posenc_positions *p, int64_t b, int64_t t)
{
    switch (p->kind) {
    case POSENC_POSITIONS_I32:
        return ((const int32_t *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_POSITIONS_I64:
        return ((const int64_t *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_POSITIONS_F32:
        return (int64_t)((const float *)p->data)[posenc_position_index(p, b, t)];
    case POSENC_POSITIONS_OFFSET:
        break;
    }
    return p->offset + t;
}

/* Adding 0.0 turns -0 into +0. */
static inline double posenc_time(const struct posenc_positions *p, int64_t b, int64_t t)
{
    if (p->kind == POSENC_POSITIONS_F32)
        return (double)((const float *)p->data)[posenc_position_index(p, b, t)] + 0.0;
    return (double)posenc_position(p, b, t);
}

/* Returns true if the position of token t in batch b has no fraction. */
static inline bool posenc_is_whole(const struct posenc_positions *p, int64_t b, int64_t t)
{
    return p->kind != POSENC_POSITIONS_F32 ||
           posenc_time(p, b, t) == (double)posenc_position(p, b, t);
}

#endif
