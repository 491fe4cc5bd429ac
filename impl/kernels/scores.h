/*
 * What the kernels that write or add biases share.
 *
 * What their rows need of the arguments is in copies: for all the compiler and the CPU know, a store to
 * `out` could change the caller's, and what is read for the next row would wait for it.
 */
#ifndef POSENC_KERNELS_SCORES_H
#define POSENC_KERNELS_SCORES_H

#include "stores.h"

/* A bias, onto the score of key j where there are some. */
SIMD_INLINE vf add_bias(enum posenc_dtype type, enum how how, const void *x, vf x_scale,
                        int64_t j, vf bias, int64_t n)
{
    if (!adds(how))
        return bias;
    return onto(how, (const char *)x + j * (int64_t)posenc_dtype_size(type),
                load_as(type, x, j, n), x_scale, bias);
}

/* n biases to out from key j on, onto scores where there are some. */
SIMD_INLINE void put_bias(enum posenc_dtype type, enum how how, const void *x, vf x_scale,
                          void *out, int64_t j, vf bias, int64_t n)
{
    store_as(type, out, j, add_bias(type, how, x, x_scale, j, bias, n), n);
}

/* The same of four whole vectors; streamed, from where a line begins. All are read before one is
 * written: where each load waits for the store before it, which CPUs assume of addresses that look
 * alike, this took up to 2.6 times as long (Zen 3). */
SIMD_INLINE void put_four(enum posenc_dtype type, enum how how, const void *x, vf x_scale,
                          void *out, int64_t j, vf a, vf b, vf c, vf d)
{
    int64_t w = vf_lanes();

    a = vf_keep(add_bias(type, how, x, x_scale, j, a, w));
    b = vf_keep(add_bias(type, how, x, x_scale, j + w, b, w));
    c = vf_keep(add_bias(type, how, x, x_scale, j + 2 * w, c, w));
    d = vf_keep(add_bias(type, how, x, x_scale, j + 3 * w, d, w));
    put_vectors(type, how, out, j, a, b, c, d);
}

/* Layout of the biases of a row: one for all keys, in the order of the keys, the same followed by those of
 * the next row, in reverse order, or each at an index in two vectors. */
enum biases { SAME, ALONG, FOLLOWED, AGAINST, LOOKED_UP };

/* The lanes of the longest vector from the last to the first; those of a shorter one are at the end. As an
 * array on the stack they cost a row of 91 keys a twentieth and one of 96 a sixth (Zen 5, L2). */
#define EIGHT(k) (k) + 7, (k) + 6, (k) + 5, (k) + 4, (k) + 3, (k) + 2, (k) + 1, (k)
static const int32_t backwards[POSENC_PLAN_PAD] = { EIGHT(56), EIGHT(48), EIGHT(40), EIGHT(32),
                                                    EIGHT(24), EIGHT(16), EIGHT(8),  EIGHT(0) };
#undef EIGHT
SIMD_INLINE const int32_t *lanes_backwards(void)
{
    return backwards + POSENC_PLAN_PAD - vf_lanes();
}

/* n of them from key k on. SAME: `a`, in a register, as a store could change what is in memory and each
 * load of it would wait. AGAINST: index is lanes_backwards(). LOOKED_UP: what index[k] ... are in a and b,
 * a whole vector of them. FOLLOWED: from DRAM, where each vector asks for what is 4 KiB further on. */
SIMD_INLINE vf load_biases(enum biases biases, const float *bias, const int32_t *index, vf a,
                           vf b, int64_t k, int64_t n)
{
    switch (biases) {
    case SAME:
        break;
    case FOLLOWED:
        ask_ahead(bias + k, 4096);
        return load_as(POSENC_F32, bias, k, n);
    case ALONG:
        return load_as(POSENC_F32, bias, k, n);
    case AGAINST:
        return vf_lookup(load_as(POSENC_F32, bias - k - n + 1, 0, n), index,
                         (int32_t)(vf_lanes() - n));
    case LOOKED_UP:
        return vf_lookup2(a, b, index + k);
    }
    return a;
}

/* Vectors from bias k on up to n of them, the last one in part. */
SIMD_INLINE void put_some(enum posenc_dtype type, enum how how, enum biases biases,
                          const float *bias, const int32_t *index, vf a, vf b, vf scale,
                          const void *x, void *out, int64_t j, int64_t k, int64_t n)
{
    int64_t w = vf_lanes();

    for (; k + w <= n; k += w)
        put_bias(type, how, x, scale, out, j + k, load_biases(biases, bias, index, a, b, k, w),
                 w);
    if (k < n)
        put_bias(type, how, x, scale, out, j + k,
                 load_biases(biases, bias, index, a, b, k, n - k), n - k);
}

/* Four vectors at a time from key j + k on, then one by one; returns the first bias that is left. Long runs
 * of one value go by sixteens: a loop of some thirty turns ends in a branch that is missed, and that shows
 * where nothing but stores is done (0.9 of the time in L2, and in place from DRAM, Zen 5). */
SIMD_INLINE int64_t put_whole(enum posenc_dtype type, enum how how, enum biases biases,
                              const float *bias, const int32_t *index, vf a, vf b, vf scale,
                              const void *x, void *out, int64_t j, int64_t k, int64_t n)
{
    const int64_t w = vf_lanes();
    const bool by_sixteens = biases == SAME && (how == STORED || how == ADDED_FAR);

    for (; by_sixteens && k + 16 * w <= n; k += 16 * w)
        for (int64_t m = k; m < k + 16 * w; m += 4 * w)
            put_four(type, how, x, scale, out, j + m, a, a, a, a);
    for (; k + 4 * w <= n; k += 4 * w)
        put_four(type, how, x, scale, out, j + k, load_biases(biases, bias, index, a, b, k, w),
                 load_biases(biases, bias, index, a, b, k + w, w),
                 load_biases(biases, bias, index, a, b, k + 2 * w, w),
                 load_biases(biases, bias, index, a, b, k + 3 * w, w));
    for (; k + w <= n; k += w)
        put_bias(type, how, x, scale, out, j + k, load_biases(biases, bias, index, a, b, k, w),
                 w);
    return k;
}

/* n biases of f32, a vector of them or more, to a row of which nothing is read: parts of vectors at either
 * end are masked, so that no store lies across lines or over another (0.8 of the time for rows of 91 keys,
 * L2, Zen 5; shorter rows than a vector take longer so). */
SIMD_INLINE void put_masked(enum biases biases, const float *bias, const int32_t *index, vf a,
                            vf b, void *out, int64_t j, int64_t n)
{
    const int64_t w = vf_lanes(), begin = to_vector(POSENC_F32, out, j);
    float *to = (float *)out + j;

    if (begin > 0)
        vf_store_alone(to, load_biases(biases, bias, index, a, b, 0, w), begin);
    const int64_t k = put_whole(POSENC_F32, STORED, biases, bias, index, a, b, vf_set1(1.0f),
                                NULL, out, j, begin, n);
    if (k < n)
        vf_store_alone(to + k, load_biases(biases, bias, index, a, b, k, n - k), n - k);
}

/* n biases to keys j ... of one row, onto scores where there are some. bias: that of key j; index, a,
 * b: see load_biases().
 *
 * Between whole vectors at either end, which may have some keys in common with them, vectors are
 * written where their own size has its multiples: one that crosses a line takes two turns. A part
 * of a vector would be worse: a masked store holds up the loads of the next row that it spans (24
 * cycles for a row of 15 keys, Zen 5). The ends are read first, for what is between them may be
 * written in place. */
SIMD_INLINE void put_in_vectors(enum posenc_dtype type, enum how how, enum biases biases,
                                const float *bias, const int32_t *index, vf a, vf b,
                                float x_scale, const void *x, void *out, int64_t j, int64_t n)
{
    const int64_t w = vf_lanes(), end = n - w;
    const vf scale = vf_set1(x_scale);
    int64_t begin, k;

    if (end < 0) {
        put_some(type, how, biases, bias, index, a, b, scale, x, out, j, 0, n);
        return;
    }
    if (vf_masks() && how == STORED && type == POSENC_F32) {
        put_masked(biases, bias, index, a, b, out, j, n);
        return;
    }
    begin = k = streams(how) ? to_line(type, out, j, n) : to_vector(type, out, j);
    vf first = scale, last = scale;
    if (begin > 0 && !streams(how))
        first =
            add_bias(type, how, x, scale, j, load_biases(biases, bias, index, a, b, 0, w), w);
    if ((n - k) % w > 0)
        last = add_bias(type, how, x, scale, j + end,
                        load_biases(biases, bias, index, a, b, end, w), w);
    if (streams(how))
        put_some(type, how, biases, bias, index, a, b, scale, x, out, j, 0, k);
    k = put_whole(type, how, biases, bias, index, a, b, scale, x, out, j, k, n);
    if (begin > 0 && !streams(how))
        store_as(type, out, j, first, w);
    if (k < n)
        store_as(type, out, j + end, last, w);
}

/* Puts the biases of a line, or one for all keys. */
SIMD_INLINE void put_biases(enum posenc_dtype type, enum how how, enum biases biases,
                            const float *bias, float x_scale, const void *x, void *out,
                            int64_t j, int64_t n)
{
    const vf same = vf_set1(biases == SAME ? *bias : 0.0f);

    put_in_vectors(type, how, biases, bias, lanes_backwards(), same, same, x_scale, x, out, j,
                   n);
}

#endif
