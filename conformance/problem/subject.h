/*
 * A subject is what is under test: a backend, and the functions of the library that calls of its
 * kernels are made and run with.  Programs test the library's own; the broken kernels test the
 * suites with others in their place.
 */
#ifndef POSENC_SUBJECT_H
#define POSENC_SUBJECT_H

#include <posenc.h>

struct subject {
    const struct posenc_backend *backend;

    /* What makes plans, and the integers and slopes that kernels are given. */
    enum posenc_status (*freqs_create)(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error);
    enum posenc_status (*alibi_slopes)(int64_t n_heads, double alibi_bias_max, float *slopes);
    enum posenc_status (*t5_thresholds)(int64_t num_buckets, int64_t max_distance,
                                        bool bidirectional, int32_t *thresholds);
    enum posenc_status (*padding_positions)(int64_t batch, int64_t tokens, const uint8_t *mask,
                                            int64_t padding_idx, int32_t *positions);
    enum posenc_status (*swin_index)(int64_t height, int64_t width, int32_t *index);
    enum posenc_status (*beit_index)(int64_t height, int64_t width, int32_t *index);
    enum posenc_status (*shaw_index)(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t max_distance, int32_t *index);
    enum posenc_status (*transformer_xl_index)(int64_t queries, int64_t keys, int32_t *index);
    enum posenc_status (*deberta_index)(int64_t queries, int64_t keys, int64_t query_offset,
                                        int64_t position_buckets, int64_t max_distance,
                                        int32_t *index);

    /* The front-end of each kernel. */
#define POSENC_KERNEL(name, signature, ...)                                                    \
    enum posenc_status (*name)(const struct posenc_backend *backend,                           \
                               const struct posenc_##signature##_args *args);
#include <posenc_kernels.def>
};

/* The functions of the library, without a backend; with one. */
extern const struct subject subject_library;
struct subject subject_of(const struct posenc_backend *backend);

#endif
