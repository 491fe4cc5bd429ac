/*
 * Plug-in that is slower by a known amount of work: it calls the default kernel, then runs SLOWED_STEPS steps without
 * effect. ./run verdicts compares such plug-ins: posenc compare must report a slower one, and nothing for equal ones.
 *
 *     cc -std=c11 -O3 -shared -fPIC -DSLOWED_STEPS=1000 slowed.c $(pkg-config --cflags posenc) -o slowed.so
 *
 * Each step depends on the one before it and takes a fixed number of cycles, so that other programs do not change the
 * delay.
 *
 * SLOWED_TAG makes the machine code of equal plug-ins different, since equal machine code is not timed.
 */
#include <posenc/backend.h>
#include <stdint.h>

#ifndef SLOWED_STEPS
#define SLOWED_STEPS 0
#endif
#ifndef SLOWED_TAG
#define SLOWED_TAG 1
#endif

/* Unknown to the compiler. */
static volatile uint64_t kept = SLOWED_TAG;

static void delay(uint64_t steps)
{
    uint64_t state = kept;
    for (uint64_t i = 0; i < steps; i++)
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    kept = state + SLOWED_TAG;
}

static enum posenc_status rope_half(const struct posenc_rope_args *args)
{
    const enum posenc_status status =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0)
            .backend->rope_half(args);
    delay(SLOWED_STEPS);
    return status;
}

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "slowed",
    .family = "native", /* its results are those of the kernel that it calls */
    .description = "the kernel that serves here, and a delay",
    .required_features = "",
    .fused = true,
    .f16_bf16 = true,
    .rope_half = rope_half,
};
