/*
 * A whole backend of the family template: the kernels over the primitives of one ISA.  The file
 * that includes this defines POSENC_SIMD and the four TEMPLATE_ words.
 */
#include "apply.tmpl.h"
#include "bias.tmpl.h"
#include "relative.tmpl.h"
#include "relative_sum.tmpl.h"
#include "table.tmpl.h"

static int32_t lanes(void) { return (int32_t)vf_lanes(); }

const struct posenc_backend TEMPLATE_BACKEND = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = TEMPLATE_NAME,
    .family = "template",
    .description = TEMPLATE_DESCRIPTION,
    .needs = TEMPLATE_NEEDS,
    .lanes = lanes,
    .fused = true,
    .f16_bf16 = true,
    .sinusoidal = sinusoidal,
    .sinusoidal_add = sinusoidal_add,
    .learned_add = learned_add,
    .learned_grad = learned_grad,
    .rope_table = rope_table,
    .rope_half = rope_half,
    .rope_interleaved = rope_interleaved,
    .alibi = alibi,
    .alibi_add = alibi_add,
    .t5_bias = t5_bias,
    .t5_bias_add = t5_bias_add,
    .distance_bias = distance_bias,
    .distance_bias_add = distance_bias_add,
    .window_bias = window_bias,
    .window_bias_add = window_bias_add,
    .relative_bias = relative_bias,
    .relative_bias_add = relative_bias_add,
    .relative_sum = relative_sum,
};
