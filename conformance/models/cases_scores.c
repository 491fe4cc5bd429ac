/*
 * What models add to attention scores: biases by distance, by window, terms by relative
 * position.
 */
#include "cases.h"

#include <math.h>
#include <stdio.h>

/* Both as the fused addition and as a tensor of its own. */
static void bias(const struct part *part, struct model *m, struct problem add,
                 struct problem build)
{
    const int64_t length = part->length, n = case_least(CASE_PREFILL, length);
    const int heads = (int)part->heads;
    add.in_place = true;
    add.heads = build.heads = part->heads;
    add.queries = add.keys = build.queries = build.keys = n;
    add.query_offset = build.query_offset = 0;
    case_add(m, part, "given", "prefill", add, "prefill, %d heads, %d x %d scores", heads,
             (int)n, (int)n);
    struct problem decode = add;
    decode.queries = 1;
    decode.keys = length;
    decode.query_offset = length - 1;
    decode.bidirectional = false; /* a decoder sees no later keys */
    if (part->decodes) {
        case_add(m, part, "given", "decode", decode, "decode, %d heads, 1 x %d scores", heads,
                 (int)length);
        case_check(m, decode);
    }
    case_add(m, part, "given", "tensor", build, "as a tensor, %d heads, %d x %d", heads, (int)n,
             (int)n);
    add.queries = build.queries = case_least(CASE_CHECKED, n);
    add.query_offset = build.query_offset =
        part->encoding == TRANSFORMER_XL ? n - add.queries : n / 2;
    case_check(m, add);
    case_check(m, build);
}

void cases_alibi(const struct part *part, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_alibi_add),
                   build = problem_default(POSENC_KERNEL_alibi);
    add.causal = build.causal = true;
    add.alibi_bias_max = build.alibi_bias_max = part->alibi_bias_max;
    add.x_scale = (float)(1.0 / sqrt((double)part->head_dim));
    bias(part, m, add, build);
}

void cases_t5(const struct part *part, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_t5_bias_add),
                   build = problem_default(POSENC_KERNEL_t5_bias);
    add.bidirectional = build.bidirectional = true;
    add.num_buckets = build.num_buckets = part->num_buckets;
    add.max_distance = build.max_distance = part->max_distance;
    bias(part, m, add, build);
}

/* Scores that are not yet scaled: one root for them and for each kind of term. */
void cases_relative(const struct part *part, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_relative_bias_add),
                   build = problem_default(POSENC_KERNEL_relative_bias);
    const double terms = part->relative == RELATIVE_DEBERTA ? 1.0 + part->c2p + part->p2c : 1.0;
    add.relative = build.relative = part->relative;
    add.num_buckets = build.num_buckets = part->num_buckets;
    add.max_distance = build.max_distance = part->max_distance;
    add.without_c2p = build.without_c2p = !part->c2p;
    add.with_p2c = build.with_p2c = part->p2c;
    add.scale = build.scale = 1.0 / sqrt((double)part->head_dim * terms);
    add.x_scale = (float)add.scale;
    bias(part, m, add, build);
}

void cases_window(const struct part *part, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_window_bias_add),
                   build = problem_default(POSENC_KERNEL_window_bias);
    const int side = (int)part->window, heads = (int)part->heads;
    add.heads = build.heads = part->heads;
    add.window_height = add.window_width = build.window_height = build.window_width =
        part->window;
    add.window_class = build.window_class = part->window_class;
    add.queries = add.keys = build.queries = build.keys = part->length;
    add.batch = part->windows;
    add.in_place = true;
    add.x_scale = (float)(1.0 / sqrt((double)part->head_dim));
    case_add(m, part, "given", "image", add, "image, %d windows of %d x %d%s, %d heads",
             (int)part->windows, side, side, part->window_class ? " + 1" : "", heads);
    case_add(m, part, "given", "tensor", build, "as a tensor, a window of %d x %d%s, %d heads",
             side, side, part->window_class ? " + 1" : "", heads);
    case_check(m, build);
    add.batch = case_least(2, part->windows);
    case_check(m, add);
}
