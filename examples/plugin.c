/*
 * A plug-in: a kernel of one's own, held to the same tests and timed beside the same competitors
 * as posenc's.
 *
 *     cc -std=c11 -O3 -march=native -shared -fPIC plugin.c $(pkg-config --cflags posenc) -lm -o plugin.so
 *
 *     posenc verify --plugin ./plugin.so
 *     posenc bench --plugin ./plugin.so --kernel rope_half
 *
 * It exports one struct, posenc_plugin, whose functions are its kernels.  A kernel it lacks is
 * NULL, and then reported as not provided.  The library has checked the arguments before they
 * come here, and brought them to one form: x and out are [batch, tokens, heads, head_dim], and
 * rows of cos and sin exist for every position.
 */
#include <math.h>
#include <posenc.h>
#include <string.h>

/* The row of cosines and sines that a token has: its position. */
static int64_t row_of(const struct posenc_positions *p, int64_t batch, int64_t token)
{
    if (p->kind == POSENC_OFFSET) /* then nobody has checked the strides */
        return p->offset + token;
    const int64_t at = batch * p->stride_batch + token * p->stride_token;
    return p->kind == POSENC_POSITIONS_I32 ? ((const int32_t *)p->data)[at]
                                           : ((const int64_t *)p->data)[at];
}

/* Channel i turns with channel i + half.  x and y may be the same: both channels are read before
 * one is written.
 *
 * Of two products one is rounded, the other not.  fmaf() says which, whatever a compiler would
 * contract on its own, and `fused` below says that it is so: verify then allows 1.5 ulp of a
 * pair, and 2 where every operation is rounded.  It is one instruction where the CPU has it
 * (-march=native), else a call. */
static void turn(const float *x, float *y, const float *cosines, const float *sines,
                 int64_t half, float sign)
{
    for (int64_t i = 0; i < half; i++) {
        const float x0 = x[i], x1 = x[i + half], c = cosines[i], s = sign * sines[i];
        y[i] = fmaf(x0, c, -(x1 * s));
        y[i + half] = fmaf(x1, c, x0 * s);
    }
}

/* One head: the channels of the rotation turn, the others are copied. */
static void turn_head(const struct posenc_rope_args *args, const float *x, float *y,
                      int64_t row)
{
    const int64_t half = args->cos.shape[1], first = args->rotary_offset;
    const int64_t end = first + 2 * half, head_dim = args->x.shape[3];
    const float *cosines = (const float *)args->cos.data + row * args->cos.stride[0];
    const float *sines = (const float *)args->sin.data + row * args->sin.stride[0];
    turn(x + first, y + first, cosines, sines, half, args->transpose ? -1.0f : 1.0f);
    if (x != y) {
        memcpy(y, x, (size_t)first * sizeof *y);
        memcpy(y + end, x + end, (size_t)(head_dim - end) * sizeof *y);
    }
}

static enum posenc_status rope_half(const struct posenc_rope_args *args)
{
    const int64_t *shape = args->x.shape, *from = args->x.stride, *to = args->out.stride;
    const float *x = args->x.data;
    float *out = args->out.data;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++)
            for (int64_t h = 0; h < shape[2]; h++)
                turn_head(args, x + b * from[0] + t * from[1] + h * from[2],
                          out + b * to[0] + t * to[1] + h * to[2],
                          row_of(&args->positions, b, t));
    return POSENC_OK;
}

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "mine",   /* what --backend, records and reports call it */
    .family = "mine", /* limits are a family's */
    .description = "a plain loop over pairs",
    .needs = "",       /* of the CPU, e.g. "avx2 fma"; posenc_cpu_features() has the words */
    .fused = true,     /* one product of a rotation is not rounded */
    .f16_bf16 = false, /* f32 alone: tensors of other types are never handed to it */
    .rope_half = rope_half,
};
