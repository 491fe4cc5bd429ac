/* Finds error limits of tables; see error_limits.h. */
#include "error_limits.h"

#include <stdlib.h>
#include <string.h>

static const struct error_limit limits[] = {
#define ROW(kernel, family, numerics, exponent, metric, limit)                                 \
    { #kernel, #family, #numerics, exponent, LIMIT_##metric, limit },
#include "error_limits.inc"
};
enum { N_LIMITS = sizeof limits / sizeof *limits };

const int range_exponent[N_RANGES] = { 10, 17, 20, 24, 31 };

int64_t position_range_end(int range) { return INT64_C(1) << range_exponent[range]; }

int range_of_position(int64_t position)
{
    int range = 0;
    while (range < N_RANGES - 1 && llabs(position) >= position_range_end(range))
        range++;
    return range;
}

bool is_table_kernel(enum posenc_kernel kernel)
{
    return kernel != POSENC_KERNEL_NONE && strcmp(kernel_stage(kernel), "table") == 0;
}

const struct error_limit *error_limits_find(enum posenc_kernel table,
                                            const struct posenc_backend *backend,
                                            const char *numerics, int range)
{
    const char *family = "libm";
    for (int i = 0; i < N_LIMITS; i++)
        if (strcmp(limits[i].family, backend->family) == 0)
            family = backend->family;
    for (int i = 0; i < N_LIMITS; i++)
        if (strcmp(limits[i].kernel, posenc_kernel_name(table)) == 0 &&
            strcmp(limits[i].family, family) == 0 &&
            strcmp(limits[i].numerics, numerics) == 0 &&
            limits[i].exponent == range_exponent[range])
            return &limits[i];
    return NULL;
}
