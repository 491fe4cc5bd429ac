/*
 * Rows of biases: written to `out`, or added to the attention scores x. The kernels of bias.c, t5.c, window.c,
 * relative.c and learned.c share these functions.
 *
 * `put` in a name means: add to x if the mode does, then store. Arguments come in one order: dtype, mode, layout; the
 * source of the biases (bias, index, a, b: see enum bias_layout); x_scale, x, out; the first key j, counted from x and
 * out; the number of keys n. `k` counts biases from key j on. Lists are long because a vector cannot be a member of a
 * struct (simd.h).
 *
 * Callers copy what their rows need from the arguments into locals. Otherwise each store to `out` might change the
 * arguments, and the next row's loads of them would wait for it.
 */
#ifndef POSENC_KERNELS_BIASES_H
#define POSENC_KERNELS_BIASES_H

#include "store_modes.h"

/* Returns a vector of n biases, plus the scores of keys j ... if the mode adds. */
SIMD_INLINE vf add_bias(enum posenc_dtype type, enum store_mode mode, const void *x, vf x_scale,
                        int64_t j, vf bias, int64_t n)
{
    if (!mode_adds(mode))
        return bias;
    return add_to_x(mode, (const char *)x + j * (int64_t)posenc_dtype_size(type),
                    load_as(type, x, j, n), x_scale, bias);
}

/* Puts a vector of n biases to keys j .... */
SIMD_INLINE void put_bias(enum posenc_dtype type, enum store_mode mode, const void *x,
                          vf x_scale, void *out, int64_t j, vf bias, int64_t n)
{
    store_as(type, out, j, add_bias(type, mode, x, x_scale, j, bias, n), n);
}

/* Puts four whole vectors; with a streaming mode, out + j is the start of a cache line. All loads come before the
 * first store: a CPU that takes the addresses of a load and an earlier store for the same lets the load wait. */
SIMD_INLINE void put_four(enum posenc_dtype type, enum store_mode mode, const void *x,
                          vf x_scale, void *out, int64_t j, vf a, vf b, vf c, vf d)
{
    int64_t w = vf_lanes();

    a = vf_pin(add_bias(type, mode, x, x_scale, j, a, w));
    b = vf_pin(add_bias(type, mode, x, x_scale, j + w, b, w));
    c = vf_pin(add_bias(type, mode, x, x_scale, j + 2 * w, c, w));
    d = vf_pin(add_bias(type, mode, x, x_scale, j + 3 * w, d, w));
    store_four(type, mode, out, j, a, b, c, d);
}

/* Where the biases of a row come from. */
enum bias_layout {
    ONE_VALUE,        /* vector a for all keys; in a register, where no store delays it */
    FORWARD,          /* bias[k] for key j + k */
    FORWARD_PREFETCH, /* the same from DRAM, with a prefetch 4 KiB ahead */
    REVERSED,         /* bias[-k] for key j + k */
    INDEXED           /* lane index[k] of the two vectors a, b for key j + k (vf_lookup2) */
};

/* Lane numbers of the widest vector, last to first; a narrower vector uses the end. A static table is cheaper than
 * an array that each row builds on the stack. */
#define EIGHT(k) (k) + 7, (k) + 6, (k) + 5, (k) + 4, (k) + 3, (k) + 2, (k) + 1, (k)
static const int32_t reversed_lane_table[POSENC_FREQS_PAD] = { EIGHT(56), EIGHT(48), EIGHT(40),
                                                               EIGHT(32), EIGHT(24), EIGHT(16),
                                                               EIGHT(8),  EIGHT(0) };
#undef EIGHT
SIMD_INLINE const int32_t *reversed_lanes(void)
{
    return reversed_lane_table + POSENC_FREQS_PAD - vf_lanes();
}

/* Returns n biases from the k-th on. REVERSED: index is reversed_lanes(). INDEXED: n is the number of lanes. */
SIMD_INLINE vf load_biases(enum bias_layout layout, const float *bias, const int32_t *index,
                           vf a, vf b, int64_t k, int64_t n)
{
    switch (layout) {
    case ONE_VALUE:
        break;
    case FORWARD_PREFETCH:
        prefetch_in_order(bias + k, 4096);
        return load_as(POSENC_DTYPE_F32, bias, k, n);
    case FORWARD:
        return load_as(POSENC_DTYPE_F32, bias, k, n);
    case REVERSED:
        return vf_lookup(load_as(POSENC_DTYPE_F32, bias - k - n + 1, 0, n), index,
                         (int32_t)(vf_lanes() - n));
    case INDEXED:
        return vf_lookup2(a, b, index + k);
    }
    return a;
}

/* Puts biases k to n - 1 vector by vector, the last vector in part. */
SIMD_INLINE void put_single_vectors(enum posenc_dtype type, enum store_mode mode,
                                    enum bias_layout layout, const float *bias,
                                    const int32_t *index, vf a, vf b, vf scale, const void *x,
                                    void *out, int64_t j, int64_t k, int64_t n)
{
    int64_t w = vf_lanes();

    for (; k + w <= n; k += w)
        put_bias(type, mode, x, scale, out, j + k, load_biases(layout, bias, index, a, b, k, w),
                 w);
    if (k < n)
        put_bias(type, mode, x, scale, out, j + k,
                 load_biases(layout, bias, index, a, b, k, n - k), n - k);
}

/* Puts whole vectors of the biases k to n - 1: four vectors per iteration, then single ones. Returns the first bias
 * that is left. A single value takes 16 vectors per iteration where only stores limit the loop, as a shorter loop
 * of few iterations loses time to its mispredicted end. */
SIMD_INLINE int64_t put_whole_vectors(enum posenc_dtype type, enum store_mode mode,
                                      enum bias_layout layout, const float *bias,
                                      const int32_t *index, vf a, vf b, vf scale, const void *x,
                                      void *out, int64_t j, int64_t k, int64_t n)
{
    const int64_t w = vf_lanes();
    const bool by_sixteens = layout == ONE_VALUE && (mode == STORE || mode == ADD_PREFETCH);

    for (; by_sixteens && k + 16 * w <= n; k += 16 * w)
        for (int64_t m = k; m < k + 16 * w; m += 4 * w)
            put_four(type, mode, x, scale, out, j + m, a, a, a, a);
    for (; k + 4 * w <= n; k += 4 * w)
        put_four(type, mode, x, scale, out, j + k, load_biases(layout, bias, index, a, b, k, w),
                 load_biases(layout, bias, index, a, b, k + w, w),
                 load_biases(layout, bias, index, a, b, k + 2 * w, w),
                 load_biases(layout, bias, index, a, b, k + 3 * w, w));
    for (; k + w <= n; k += w)
        put_bias(type, mode, x, scale, out, j + k, load_biases(layout, bias, index, a, b, k, w),
                 w);
    return k;
}

/* Writes n f32 biases, at least a vector, with masked stores at both ends. Stores then neither overlap nor cross
 * cache lines. Only for mode STORE, since a load of the next row that a masked store spans would wait for it. */
SIMD_INLINE void put_masked_ends(enum bias_layout layout, const float *bias,
                                 const int32_t *index, vf a, vf b, void *out, int64_t j,
                                 int64_t n)
{
    const int64_t w = vf_lanes(), begin = to_vector_boundary(POSENC_DTYPE_F32, out, j);
    float *to = (float *)out + j;

    if (begin > 0)
        vf_store_cold_n(to, load_biases(layout, bias, index, a, b, 0, w), begin);
    const int64_t k = put_whole_vectors(POSENC_DTYPE_F32, STORE, layout, bias, index, a, b,
                                        vf_set1(1.0f), NULL, out, j, begin, n);
    if (k < n)
        vf_store_cold_n(to + k, load_biases(layout, bias, index, a, b, k, n - k), n - k);
}

/* Puts n biases to keys j ... of one row; bias points to that of key j.
 *
 * The row is cut where the output is aligned to vectors, as a store that crosses a cache line costs twice as much.
 * Each end is a whole vector that overlaps the aligned part: a masked store would delay the loads of the next row
 * that it spans. Both ends are loaded before the aligned part is stored, which may be in place. */
SIMD_INLINE void put_bias_row(enum posenc_dtype type, enum store_mode mode,
                              enum bias_layout layout, const float *bias, const int32_t *index,
                              vf a, vf b, float x_scale, const void *x, void *out, int64_t j,
                              int64_t n)
{
    const int64_t w = vf_lanes(), end = n - w;
    const vf scale = vf_set1(x_scale);
    int64_t begin, k;

    if (end < 0) {
        put_single_vectors(type, mode, layout, bias, index, a, b, scale, x, out, j, 0, n);
        return;
    }
    if (vf_has_masks() && mode == STORE && type == POSENC_DTYPE_F32) {
        put_masked_ends(layout, bias, index, a, b, out, j, n);
        return;
    }
    begin = k = mode_streams(mode) ? to_line_boundary(type, out, j, n)
                                   : to_vector_boundary(type, out, j);
    vf first = scale, last = scale;
    if (begin > 0 && !mode_streams(mode))
        first =
            add_bias(type, mode, x, scale, j, load_biases(layout, bias, index, a, b, 0, w), w);
    if ((n - k) % w > 0)
        last = add_bias(type, mode, x, scale, j + end,
                        load_biases(layout, bias, index, a, b, end, w), w);
    if (mode_streams(mode))
        put_single_vectors(type, mode, layout, bias, index, a, b, scale, x, out, j, 0, k);
    k = put_whole_vectors(type, mode, layout, bias, index, a, b, scale, x, out, j, k, n);
    if (begin > 0 && !mode_streams(mode))
        store_as(type, out, j, first, w);
    if (k < n)
        store_as(type, out, j + end, last, w);
}

/* Puts n biases of a row that lie in memory (FORWARD, REVERSED), or *bias for all keys (ONE_VALUE). */
SIMD_INLINE void put_biases(enum posenc_dtype type, enum store_mode mode,
                            enum bias_layout layout, const float *bias, float x_scale,
                            const void *x, void *out, int64_t j, int64_t n)
{
    const vf same = vf_set1(layout == ONE_VALUE ? *bias : 0.0f);

    put_bias_row(type, mode, layout, bias, reversed_lanes(), same, same, x_scale, x, out, j, n);
}

#endif
