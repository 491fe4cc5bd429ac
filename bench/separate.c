/*
 * The steps of kernels that do two things in one pass.
 *
 *   rope_qk_norm   RMS norm of each head, written here for vectors of 64 bytes, of which the compiler makes
 *                  what the CPU has; then rope_half of the backend, in place
 *
 * The norm is that of an engine beside a library of rotations: sixteen sums a vector, four vectors at a
 * time, one pass to sum and one to scale a head that is in the nearest cache by then.
 */
#include "contender.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, WIDE = 4, STEP = LANES * WIDE };
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

#if defined(__clang__)
#define WHOLE_VECTORS /* as they are written */
#else
#define WHOLE_VECTORS ",prefer-vector-width=512"
#endif
#if defined(__x86_64__)
#define FOR_AVX2   __attribute__((target("avx2,fma")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512vl,avx2,fma" WHOLE_VECTORS)))
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE float sum_of(const float *x, int64_t n)
{
    vector sums[WIDE] = { { 0.0f } };
    float all[LANES], sum = 0.0f;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < WIDE; k++) {
            vector v;
            memcpy(&v, x + i + k * LANES, sizeof v);
            sums[k] += v * v;
        }
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    memcpy(all, &sums[0], sizeof all);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            all[k] += all[half + k];
    for (; i < n; i++)
        sum += x[i] * x[i];
    return sum + all[0];
}

/* Scales one head into the channels of another, or its own. */
INLINE void scale_head(const float *x, float *out, const float *weight, float offset, float r,
                       int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v, w;
        memcpy(&v, x + i, sizeof v);
        memcpy(&w, weight + i, sizeof w);
        v = v * r * (w + offset);
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++)
        out[i] = x[i] * r * (weight[i] + offset);
}

INLINE void norm_token(const struct posenc_rope_qk_norm_args *a, const float *x, float *out)
{
    const int64_t heads = a->x.shape[2], dim = a->x.shape[3];
    const int64_t n = a->across_heads ? heads * dim : dim;
    float sum = 0.0f;
    for (int64_t h = 0; a->across_heads && h < heads; h++)
        sum += sum_of(x + h * a->x.stride[2], dim);
    for (int64_t h = 0; h < heads; h++) {
        const float *head = x + h * a->x.stride[2];
        const float squares = a->across_heads ? sum : sum_of(head, dim);
        scale_head(head, out + h * a->out.stride[2],
                   (const float *)a->weight.data + h * a->weight.stride[0], a->weight_offset,
                   1.0f / sqrtf(squares / (float)n + a->epsilon), dim);
    }
}

INLINE void norm(const struct posenc_rope_qk_norm_args *a)
{
    for (int64_t b = 0; b < a->x.shape[0]; b++)
        for (int64_t t = 0; t < a->x.shape[1]; t++)
            norm_token(a, (const float *)a->x.data + b * a->x.stride[0] + t * a->x.stride[1],
                       (float *)a->out.data + b * a->out.stride[0] + t * a->out.stride[1]);
}

static void norm_plain(const struct posenc_rope_qk_norm_args *a) { norm(a); }
#if defined(__x86_64__)
FOR_AVX2 static void norm_avx2(const struct posenc_rope_qk_norm_args *a) { norm(a); }
FOR_AVX512 static void norm_avx512(const struct posenc_rope_qk_norm_args *a) { norm(a); }
#endif

/* Runs the norm for this CPU. */
static void run_norm(const struct posenc_rope_qk_norm_args *a)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        norm_avx512(a);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        norm_avx2(a);
    else
#endif
        norm_plain(a);
}

static enum posenc_status norm_then_rope(const union arguments *args,
                                         const struct posenc_backend *backend)
{
    const struct posenc_rope_qk_norm_args *a = &args->rope_qk_norm;
    struct posenc_rope_args rope = posenc_rope_args_init();
    rope.rotary_offset = a->rotary_offset;
    rope.positions = a->positions;
    rope.cos = a->cos;
    rope.sin = a->sin;
    rope.out = a->out;
    rope.x = posenc_view(a->out);
    run_norm(a);
    return posenc_rope_half(backend, &rope);
}

separate_steps *separate_steps_of(const struct problem *problem)
{
    return problem->kernel == POSENC_KERNEL_rope_qk_norm && problem->dtype == POSENC_F32
               ? norm_then_rope
               : NULL;
}
