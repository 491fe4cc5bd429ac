/*
 * Sizes of the data caches one core sees.
 */
#ifndef POSENC_CACHES_H
#define POSENC_CACHES_H

#include <stddef.h>

struct bench_caches {
    size_t l1, l2, l3; /* 0 where unknown */
};
struct bench_caches bench_caches(void);

#endif
