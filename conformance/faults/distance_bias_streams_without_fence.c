/*
 * Large outputs are stored past the caches, and no fence orders that before what the caller does next.
 * (A CPU that has no such stores changes errno, which its suite has to see instead.)
 *
 * detected by: distance_bias/f32/conduct/streaming-stores
 */
#include "fault.h"

#include <errno.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static enum posenc_status faulty_distance_bias(const struct posenc_distance_args *args)
{
    const struct posenc_tensor *out = &args->out;
    const int64_t n = out->shape[3], rows = out->shape[0] * out->shape[1] * out->shape[2];
    const enum posenc_status status = plain_distance_bias(args);
    if (out->dtype != POSENC_F32 || rows * n < 1 << 20)
        return status;
#if defined(__SSE2__)
    for (int64_t r = 0; r < rows; r++) {
        float *row = row_at(out, r / out->shape[2] / out->shape[1],
                            r / out->shape[2] % out->shape[1], r % out->shape[2]);
        int64_t i = 0;
        while (i < n && (uintptr_t)(row + i) % 16)
            i++;
        for (; i + 4 <= n; i += 4)
            _mm_stream_ps(row + i, _mm_load_ps(row + i));
    }
#else
    errno = EDOM;
#endif
    return status;
}

FAULT(distance_bias);
