/*
 * Plug-in of the tests with one kernel, alibi, in f32:
 *     out[b,h,i,j] = -slopes[b,h] |i + query_offset - j|, -infinity for later keys when causal
 * (Press et al. 2108.12409). Macros select variants:
 *
 *   PLUGIN_WRONG        is off by one position; by two, for 99 keys, from the second one on
 *   PLUGIN_ABI          claims another version of the header
 *   PLUGIN_NONE         exports nothing of the right name
 *   PLUGIN_EXIT         ends the process of its caller by exit(0)
 *   PLUGIN_CRASH        ends it by a signal
 *   PLUGIN_HANG         never returns; makes the file that MISBEHAVED names
 *   PLUGIN_MORE         has one kernel more, which computes nothing
 *   PLUGIN_TIMES=N      computes N times for 16 queries and 16 keys, the shape that is timed
 *   PLUGIN_COUNTED      is an instruction of assembler, or none, for each element
 *   PLUGIN_COUNTED_ROW  is one for each row
 */
#include <math.h>
#include <posenc/backend.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef PLUGIN_TIMES
#define PLUGIN_TIMES 1
#endif

static void alibi_row(const struct posenc_alibi_args *args, int64_t b, int64_t h, int64_t i)
{
    const struct posenc_tensor *out = &args->out;
    const float slope = args->slopes[b * args->slopes_stride_batch + h];
    float *row =
        (float *)out->data + b * out->stride[0] + h * out->stride[1] + i * out->stride[2];
#ifdef PLUGIN_COUNTED_ROW
    __asm__ volatile(PLUGIN_COUNTED_ROW);
#endif
    for (int64_t j = 0; j < out->shape[3]; j++) {
        int64_t distance = i + args->query_offset - j;
#ifdef PLUGIN_WRONG
        distance += out->shape[3] == 99 && j > 0 ? 2 : 1;
#endif
#ifdef PLUGIN_COUNTED
        __asm__ volatile(PLUGIN_COUNTED);
#endif
        row[j] = args->causal && distance < 0
                     ? -(float)INFINITY
                     : slope * (float)-llabs((long long)distance) + 0.0f; /* +0 at 0 */
    }
}

#ifdef PLUGIN_EXIT
/* With STAYS in the environment exit() never returns, as if two threads had deadlocked in it. */
static volatile bool stays;

__attribute__((destructor)) static void stay(void)
{
    while (stays) {
    }
}
#endif

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
#ifdef PLUGIN_CRASH
    abort();
#endif
#ifdef PLUGIN_EXIT
    stays = getenv("STAYS") != NULL;
    exit(0);
#endif
#ifdef PLUGIN_HANG
    const char *path = getenv("MISBEHAVED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file)
        fclose(file);
    for (volatile int forever = 1; forever;)
        ;
#endif
    const bool timed = args->out.shape[2] == 16 && args->out.shape[3] == 16;
    for (int time = 0; time < (timed ? PLUGIN_TIMES : 1); time++)
        for (int64_t b = 0; b < args->out.shape[0]; b++)
            for (int64_t h = 0; h < args->out.shape[1]; h++)
                for (int64_t i = 0; i < args->out.shape[2]; i++)
                    alibi_row(args, b, h, i);
    return POSENC_OK;
}

#ifdef PLUGIN_MORE
static enum posenc_status nothing(const struct posenc_alibi_args *args)
{
    (void)args;
    return POSENC_ERR_PARAMETER;
}
#endif

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
    .description = "a plug-in of the tests",
    .required_features = "",
    .alibi = alibi,
#ifdef PLUGIN_MORE
    .alibi_add = nothing,
#endif
};
