/*
 * A backend of somebody else, for the tests: the kernel alibi as plain loops,
 *     out[h,i,j] = -slopes[h] |i + query_offset - j|, -infinity for later keys when causal
 * (Press et al. 2108.12409).  PLUGIN_WRONG is off by one position, PLUGIN_ABI claims another
 * header, PLUGIN_NONE exports nothing of the right name.
 */
#include <math.h>
#include <posenc.h>
#include <stdlib.h>

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
    const struct posenc_tensor *out = &args->out;
    for (int64_t h = 0; h < out->shape[1]; h++) {
        for (int64_t i = 0; i < out->shape[2]; i++) {
            float *row = (float *)out->data + h * out->stride[1] + i * out->stride[2];
            for (int64_t j = 0; j < out->shape[3]; j++) {
                int64_t distance = i + args->query_offset - j;
#ifdef PLUGIN_WRONG
                distance++;
#endif
                row[j] =
                    args->causal && distance < 0
                        ? -(float)INFINITY
                        : args->slopes[h] * (float)-llabs((long long)distance); /* +0 at 0 */
            }
        }
    }
    return POSENC_OK;
}

#ifdef PLUGIN_ABI
#define ABI 999u
#else
#define ABI POSENC_ABI
#endif
#ifdef PLUGIN_NONE
#define posenc_plugin some_other_name
#endif

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = ABI,
    .name = "example",
    .family = "example",
#ifndef PLUGIN_MUTE
    .description = "a plug-in of the tests",
#endif
    .needs = "",
    .alibi = alibi,
};
