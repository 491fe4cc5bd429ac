/*
 * Error limits of tables (sinusoidal, rope_table) by backend family, numerics mode and range of positions.
 *
 * The build compiles error_limits.txt in. In this row, the worst case is the rest of the line:
 *
 *     kernel     family numerics range ulp|abs limit    worst case
 *     sinusoidal libm   exact    2^17  abs     2.99e-08 position 97484 pair 15 cos of dim 768 theta 10000
 *
 * Empty lines and lines that begin with # are comments.
 */
#ifndef POSENC_ERROR_LIMITS_H
#define POSENC_ERROR_LIMITS_H

#include "engine.h"

/* Ranges of |position|: below 2^10, 2^17, 2^20, 2^24, 2^31. RANGE_FARTHEST is the range of a problem's largest
 * |position|. */
enum { RANGE_FARTHEST = -1, N_RANGES = 5 };
extern const char *const range_name[N_RANGES]; /* "2^10" */
extern const char *const range_id[N_RANGES];   /* "p2e10", for case ids */
/* Returns the first position beyond a range. */
int64_t position_range_end(int range);
/* Returns the range of |position|. */
int range_of_position(int64_t position);

enum { ERROR_LIMIT_ROW = 80, ERROR_LIMITS_MESSAGE = 512 };

struct error_limit {
    char row[ERROR_LIMIT_ROW]; /* "sinusoidal native exact 2^10" */
    char family[32];
    bool is_absolute; /* otherwise in ulp */
    double limit;
};

/* Returns true for kernels that compute tables. Only these have error limits. */
bool is_table_kernel(enum posenc_kernel kernel);
/* Returns the error limit of a table kernel, or NULL. Families without rows, such as plug-ins, get the limits of
 * libm. */
const struct error_limit *error_limits_find(enum posenc_kernel table,
                                            const struct posenc_backend *backend,
                                            const char *numerics, int range);

/* Registers further backends, whose families may then have rows. Keeps the pointer to the array. */
void error_limits_add_backends(const struct posenc_backend *const *backends, size_t n);

/* Replaces the error limits by those of a file, or by the built-in ones if `path` is NULL. If a row is wrong, returns
 * false and a message, and changes nothing. */
bool error_limits_read(const char *path, char message[ERROR_LIMITS_MESSAGE]);

/* Lowers the limits of a file to the largest errors of these results, rounded up to three digits,
 * and updates their worst cases; never raises a limit. Order and comments stay, and the file is
 * replaced atomically. Returns the number of lowered limits, or -1 and a message. */
int error_limits_lower(const char *path, const struct conf_result *results, size_t n,
                       char message[ERROR_LIMITS_MESSAGE]);

#endif
