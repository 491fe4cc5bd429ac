/*
 * Error limits of the tables of each backend family, by numerics mode and range of positions.
 *
 * error_limits.txt holds the built-in ones. A row is
 *
 *     kernel family numerics range ulp|abs limit worst-case
 *
 * and the worst case is the rest of the line. Empty lines and lines that begin with # are comments.
 */
#ifndef POSENC_ERROR_LIMITS_H
#define POSENC_ERROR_LIMITS_H

#include "engine.h"

/* Ranges of |position|: below 2^10, 2^17, 2^20, 2^24, 2^31. RANGE_FARTHEST stands for the range of
 * the farthest position of a problem. */
enum { RANGE_FARTHEST = -1, N_RANGES = 5 };
extern const char *const range_name[N_RANGES]; /* "2^10" */
extern const char *const range_id[N_RANGES];   /* "p2e10", for case ids */
int64_t range_end(int range);
int range_of_position(int64_t position);

enum { ERROR_LIMIT_ROW = 80, ERROR_LIMITS_MESSAGE = 512 };

struct error_limit {
    char row[ERROR_LIMIT_ROW]; /* "sinusoidal native exact 2^10" */
    char family[32];
    bool is_absolute; /* otherwise in ulp */
    double limit;
};

/* Returns the error limit of a table kernel, or NULL. Families without rows, such as plug-ins, have
 * the limits of libm. */
const struct error_limit *error_limits_find(enum posenc_kernel table,
                                            const struct posenc_backend *backend,
                                            const char *numerics, int range);

/* Registers further backends whose families may have rows. The array is not copied. */
void error_limits_add_backends(const struct posenc_backend *const *backends, size_t n);

/* Replaces the error limits by those of a file, or by the built-in ones if path is NULL. Returns
 * false and a message if the file has a wrong row; the limits then stay. */
bool error_limits_read(const char *path, char message[ERROR_LIMITS_MESSAGE]);

/* Lowers the limits of a file to the largest errors of these results, rounded up to three digits,
 * and updates their worst cases; never raises a limit. Order and comments stay, and the file is
 * replaced atomically. Returns the number of lowered limits, or -1 and a message. */
int error_limits_lower(const char *path, const struct conf_result *results, size_t n,
                       char message[ERROR_LIMITS_MESSAGE]);

#endif
