/*
 * Error limits of tables (sinusoidal, rope_table) by backend family, numerics mode and range of positions. They are the
 * rows of error_limits.txt, which the build compiles in.
 */
#ifndef POSENC_ERROR_LIMITS_H
#define POSENC_ERROR_LIMITS_H

#include "engine.h"

/* Ranges of |position|: below 2^10, 2^17, 2^20, 2^24, 2^31. RANGE_FARTHEST is the range of a problem's largest
 * |position|. */
enum { RANGE_FARTHEST = -1, N_RANGES = 5 };
extern const int range_exponent[N_RANGES]; /* 10, 17, ... */
/* Returns the first position beyond a range. */
int64_t position_range_end(int range);
int range_of_position(int64_t position);

struct error_limit {
    const char *kernel, *family, *numerics;
    int exponent; /* of the range */
    enum { LIMIT_ulp, LIMIT_abs } metric;
    double limit;
};

/* Returns true for kernels that compute tables. Only these have error limits. */
bool is_table_kernel(enum posenc_kernel kernel);
/* Returns the error limit of a table kernel, or NULL. Families without any row, such as those of plug-ins, get the limits
 * of libm. */
const struct error_limit *error_limits_find(enum posenc_kernel table,
                                            const struct posenc_backend *backend,
                                            const char *numerics, int range);

#endif
