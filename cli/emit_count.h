/*
 * Records of counted instructions.
 */
#ifndef POSENC_EMIT_COUNT_H
#define POSENC_EMIT_COUNT_H

#include "bench/counts.h"
#include "base/records.h"

/* "rope_half/f32/given/count" */
void count_id(const struct problem *problem, char *id, size_t size);

/* `build`: "base" or "head" where two are compared, or NULL. */
json_t *emit_count(const struct kernel_counts *counts, const struct posenc_backend *backend,
                   const char *build);

#endif
