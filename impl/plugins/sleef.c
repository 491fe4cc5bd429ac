/*
 * The plug-ins sleef_*: the kernels of table.c with SLEEF's f32 sine and cosine, one shared object for each instruction
 * set. They read struct posenc_freqs, which no public header declares, so each requires the version of posenc that it
 * was built with.
 */
#include "impl/kernels/kernel.h"

#if defined(__AVX512F__)
#define SLEEF_NEEDS "avx512f avx512bw avx512dq avx512vl avx2 fma f16c"
#define SLEEF_LANES "16"
#elif defined(__AVX2__)
#define SLEEF_NEEDS "avx2 fma f16c"
#define SLEEF_LANES "8"
#else
#define SLEEF_NEEDS "neon"
#define SLEEF_LANES "4"
#endif

#define SLEEF_TEXT(name)   #name
#define SLEEF_STRING(name) SLEEF_TEXT(name)

static int32_t lanes(void) { return (int32_t)vf_lanes(); }

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = SLEEF_STRING(POSENC_ISA),
    .family = "sleef",
    .description = "SLEEF f32 sine and cosine on a reduced phase, " SLEEF_LANES " lanes",
    .required_features = SLEEF_NEEDS " posenc-" POSENC_VERSION,
    .lanes = lanes,
    .fused = true,
    .f16_bf16 = true,
    .sinusoidal = KERNEL(sinusoidal),
    .sinusoidal_add = KERNEL(sinusoidal_add),
    .rope_table = KERNEL(rope_table),
};
