/*
 * A plug-in with your own kernel, which posenc verifies and times like its own.
 *
 *     cc -std=c11 -O3 -march=native -shared -fPIC plugin.c $(pkg-config --cflags posenc) -lm -o plugin.so
 *
 *     posenc verify --plugin ./plugin.so --problem 'rope_half tokens=7 heads=4 head_dim=128 rotary_dim=128 rows=7'
 *     posenc verify --plugin ./plugin.so
 *     posenc bench --plugin ./plugin.so --kernel rope_half
 *
 * The first command checks one plain call; the second also checks partial rotations, whose other channels a kernel copies,
 * the transpose, arrays of positions, work in place, and memory. If posenc is not installed, pass -I impl/include to cc and
 * run build/posenc.
 *
 * A plug-in exports one struct, posenc_plugin, with its kernels as members. Kernels that are NULL are reported as not
 * provided. Before it calls a kernel, the library checks the arguments and normalises them: x and out are [batch,
 * tokens, heads, head_dim], and the tables cos and sin have a row for every position.
 */
#include <math.h>
#include <posenc/backend.h>
#include <string.h>

/* Returns the position of a token, which is its row in the tables cos and sin. */
static int64_t position_of(const struct posenc_positions *p, int64_t batch, int64_t token)
{
    if (p->kind == POSENC_POSITIONS_OFFSET) /* the other members are unchecked then */
        return p->offset + token;
    const int64_t i = batch * p->stride_batch + token * p->stride_token;
    return p->kind == POSENC_POSITIONS_I32 ? ((const int32_t *)p->data)[i]
                                           : ((const int64_t *)p->data)[i];
}

/* Rotates the pairs of channels i and i + half; `sign` -1 rotates backwards:
 *
 *     y[i]        = x[i] cos - x[i + half] sin
 *     y[i + half] = x[i + half] cos + x[i] sin
 *
 * x and y may be the same array, because both channels are read before one is written. fmaf() rounds only one of the
 * two products, whatever the compiler would contract. The member `fused` below declares this; verify then allows an
 * error of 1.5 ulp instead of 2. With -march=native, fmaf() is one instruction on most CPUs; otherwise it is a slow
 * call. */
static void rotate_pairs(const float *x, float *y, const float *cosines, const float *sines,
                         int64_t half, float sign)
{
    for (int64_t i = 0; i < half; i++) {
        const float x0 = x[i], x1 = x[i + half], c = cosines[i], s = sign * sines[i];
        y[i] = fmaf(x0, c, -(x1 * s));
        y[i + half] = fmaf(x1, c, x0 * s);
    }
}

/* Rotates one head by a row of the tables, and copies its channels outside of the rotation. */
static void rotate_head(const struct posenc_rope_args *args, const float *x, float *y,
                        int64_t row)
{
    const int64_t half = args->cos.shape[1], first = args->rotary_offset;
    const int64_t end = first + 2 * half, head_dim = args->x.shape[3];
    const float *cosines = (const float *)args->cos.data + row * args->cos.stride[0];
    const float *sines = (const float *)args->sin.data + row * args->sin.stride[0];
    rotate_pairs(x + first, y + first, cosines, sines, half, args->transpose ? -1.0f : 1.0f);
    if (x != y) {
        memcpy(y, x, (size_t)first * sizeof *y);
        memcpy(y + end, x + end, (size_t)(head_dim - end) * sizeof *y);
    }
}

static enum posenc_status rope_half(const struct posenc_rope_args *args)
{
    const int64_t *shape = args->x.shape;
    const int64_t *x_stride = args->x.stride, *out_stride = args->out.stride;
    const float *x = args->x.data;
    float *out = args->out.data;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++)
            for (int64_t h = 0; h < shape[2]; h++)
                rotate_head(args, x + b * x_stride[0] + t * x_stride[1] + h * x_stride[2],
                            out + b * out_stride[0] + t * out_stride[1] + h * out_stride[2],
                            position_of(&args->positions, b, t));
    return POSENC_OK;
}

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "mine",   /* in --backend, records and reports */
    .family = "mine", /* backends of one family share error limits */
    .description = "a plain loop over pairs",
    .required_features =
        "",            /* required CPU features, e.g. "avx2 fma"; see posenc_cpu_features() */
    .fused = true,     /* rotations round only one of their products */
    .f16_bf16 = false, /* supports f32 alone, and is never called with other types */
    .rope_half = rope_half,
};
