/*
 * One maker for each signature: its arguments, with tensors, tables and indices filled.  Which
 * kernel has which comes from posenc_kernels.def.
 */
#include "call_parts.h"

#include <string.h>

/* ---- What makers share ---- */

/* Output tensor, and x where the kernel takes one: the same tensor when in place. */
static enum posenc_status make_activations(struct call *call, const struct posenc_tensor *shape,
                                           struct posenc_tensor *x, struct posenc_tensor *out)
{
    const enum posenc_kernel kernel = call->problem.kernel;
    bool same = kernel_in_place(kernel) && call->problem.in_place;
    *out = *shape;
    enum posenc_status status = make_output(call, "out", out, same ? 'b' : 'o');
    if (status != POSENC_OK || !kernel_takes_x(kernel))
        return status;
    *x = same ? *out : *shape;
    return make_input(call, x, STREAM_X, &call->x);
}

/* [batch, tokens, 1, dim], without the 1: of encodings that are added. */
static enum posenc_status make_tokens(struct call *call, int64_t dim, struct posenc_tensor *x,
                                      struct posenc_tensor *out)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    enum posenc_status status = make_shape(
        call, &shape, p->dtype, (int64_t[]){ p->batch, p->tokens, 1, dim }, p->token_major);
    if (status == POSENC_OK)
        status = make_activations(call, &shape, x, out);
    if (status != POSENC_OK)
        return status;
    *out = tensor_squeezed(out, 2);
    if (x->data)
        *x = tensor_squeezed(x, 2);
    return POSENC_OK;
}

/* Whether tensors by queries and keys have no batch: where nothing says otherwise. */
static bool without_batch(const struct problem *p)
{
    return !kernel_takes_x(p->kernel) && p->batch == 1 && !p->slopes_by_batch;
}

/* Scores [batch, heads, queries, keys].  Without x only biases that can differ by batch have
 * one: `batched`. */
static enum posenc_status make_scores(struct call *call, bool batched, struct posenc_tensor *x,
                                      struct posenc_tensor *out)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    if (!kernel_takes_x(p->kernel) && p->batch != 1 && !batched)
        return call_refuse(call, POSENC_ERR_SHAPE, "batch of a bias", p->batch, 1, 1);
    enum posenc_status status =
        make_shape(call, &shape, p->dtype,
                   (int64_t[]){ p->batch, p->heads, p->queries, p->keys }, p->token_major);
    if (status == POSENC_OK)
        status = make_activations(call, &shape, x, out);
    if (status == POSENC_OK && without_batch(p))
        *out = tensor_squeezed(out, 0);
    return status;
}

/* Memory for n integers that the kernel reads. */
static enum posenc_status make_integers(struct call *call, const char *what, int64_t n,
                                        int32_t **to)
{
    *to = call_memory(call, n, sizeof **to, 'i');
    return *to ? POSENC_OK : call_refuse(call, POSENC_ERR_MEMORY, what, n, 1, 0);
}

/* ---- By tokens ---- */

static enum posenc_status make_sinusoidal(struct call *call,
                                          struct posenc_sinusoidal_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_sinusoidal_args)POSENC_SINUSOIDAL_ARGS;
    if ((status = make_plan(call)) != POSENC_OK ||
        (status = make_tokens(call, p->freqs.dim, owned(&args->x), &args->out)) != POSENC_OK)
        return status;
    args->freqs = call->freqs;
    args->layout = p->layout;
    args->scale = p->scale;
    args->x_scale = p->x_scale;
    return make_positions(call, &args->positions);
}

static enum posenc_status make_learned(struct call *call, struct posenc_learned_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_learned_args)POSENC_LEARNED_ARGS;
    if ((status = make_tokens(call, p->dim, owned(&args->x), &args->out)) != POSENC_OK ||
        (status = make_random_table(call, owned(&args->table), p->rows, p->dim)) != POSENC_OK)
        return status;
    args->x_scale = p->x_scale;
    return make_positions(call, &args->positions);
}

/* With `accumulate` out holds the values of a learned table: call_reset() puts them there. */
static enum posenc_status make_learned_grad(struct call *call,
                                            struct posenc_learned_grad_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor x, out;
    enum posenc_status status;
    *args = (struct posenc_learned_grad_args)POSENC_LEARNED_GRAD_ARGS;
    if ((status = make_shape(call, &x, p->dtype, (int64_t[]){ p->batch, p->tokens, 1, p->dim },
                             p->token_major)) != POSENC_OK ||
        (status = make_shape(call, &out, POSENC_F32, (int64_t[]){ 1, 1, p->rows, p->dim },
                             false)) != POSENC_OK ||
        (status = make_output(call, "out", &out, p->accumulate ? 'b' : 'o')) != POSENC_OK ||
        (p->accumulate &&
         (status = make_input(call, &out, STREAM_TABLE, &call->table)) != POSENC_OK) ||
        (status = make_input(call, &x, STREAM_X, &call->x)) != POSENC_OK)
        return status;
    args->accumulate = p->accumulate;
    args->x = posenc_view(tensor_squeezed(&x, 2));
    out = tensor_squeezed(&out, 0);
    args->out = tensor_squeezed(&out, 0);
    return make_positions(call, &args->positions);
}

static enum posenc_status make_rope_table(struct call *call,
                                          struct posenc_rope_table_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    enum posenc_status status;
    *args = (struct posenc_rope_table_args)POSENC_ROPE_TABLE_ARGS;
    if ((status = make_plan(call)) != POSENC_OK)
        return status;
    int64_t pairs = posenc_freqs_view(call->freqs).n_pairs;
    if ((status = make_shape(call, &shape, p->dtype,
                             (int64_t[]){ p->batch, p->tokens, 1, pairs }, p->token_major)) !=
        POSENC_OK)
        return status;
    struct posenc_tensor *const to[2] = { &args->cos, &args->sin };
    for (int o = 0; o < 2; o++) {
        struct posenc_tensor t = shape;
        if ((status = make_output(call, o ? "sin" : "cos", &t, 'o')) != POSENC_OK)
            return status;
        *to[o] = tensor_squeezed(&t, 2);
    }
    args->freqs = call->freqs;
    return make_positions(call, &args->positions);
}

/* cos and sin [rows, rotary_dim / 2]. */
static enum posenc_status make_rotations(struct call *call, struct posenc_rope_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    if (p->rotary_dim % 2)
        return call_refuse(call, POSENC_ERR_ODD, "rotary_dim", p->rotary_dim, 2, p->dim);
    if (p->rotary_dim < 2 || p->rotary_dim > p->dim)
        return call_refuse(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, p->dim);
    int64_t half = p->rotary_dim / 2;
    enum posenc_status status =
        make_shape(call, &shape, p->table_dtype, (int64_t[]){ 1, 1, p->rows, half }, false);
    if (status != POSENC_OK)
        return status;
    float *cosines = call_keep_floats(call, p->rows * half),
          *sines = call_keep_floats(call, p->rows * half);
    if (!cosines || !sines || !fill_rotations(p, cosines, sines))
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for cos and sin", p->rows, 1, 0);
    call->cos = cosines;
    call->sin = sines;
    status = make_table(call, owned(&args->cos), p->table_dtype, p->rows, half, cosines);
    if (status == POSENC_OK)
        status = make_table(call, owned(&args->sin), p->table_dtype, p->rows, half, sines);
    return status;
}

static enum posenc_status make_rope(struct call *call, struct posenc_rope_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    enum posenc_status status;
    *args = (struct posenc_rope_args)POSENC_ROPE_ARGS;
    if ((status = make_rotations(call, args)) != POSENC_OK ||
        (status = make_shape(call, &shape, p->dtype,
                             (int64_t[]){ p->batch, p->tokens, p->heads, p->dim },
                             p->token_major)) != POSENC_OK ||
        (status = make_activations(call, &shape, owned(&args->x), &args->out)) != POSENC_OK)
        return status;
    args->transpose = p->transpose;
    args->rotary_offset = p->rotary_offset;
    return make_positions(call, &args->positions);
}

/* ---- By queries and keys ---- */

/* Far beyond what kernels take: those refuse, and sums with it do not overflow here. */
#define MOST_OFFSET (INT64_C(1) << 40)

static enum posenc_status make_alibi(struct call *call, struct posenc_alibi_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_alibi_args)POSENC_ALIBI_ARGS;
    if ((status = make_scores(call, true, owned(&args->x), &args->out)) != POSENC_OK)
        return status;
    int64_t n;
    if (__builtin_mul_overflow(p->heads, p->slopes_by_batch ? p->batch : 1, &n))
        return call_refuse(call, POSENC_ERR_OVERFLOW, "slopes", p->heads, 1, 0);
    float *pristine = call_keep_floats(call, n), *slopes;
    if (!pristine || !(slopes = call_memory(call, n, sizeof *slopes, 'i')))
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for slopes", n, 1, 0);
    if ((status = call_subject(call)->alibi_slopes(n, p->alibi_bias_max, pristine)) !=
        POSENC_OK) {
        call->error = (struct posenc_error){ status, "n_heads or alibi_bias_max",
                                             p->alibi_bias_max, 0, 64 };
        return status;
    }
    memcpy(slopes, pristine, (size_t)n * sizeof *slopes);
    call->slopes = pristine;
    args->slopes = slopes;
    args->slopes_stride_batch = p->slopes_by_batch ? p->heads : 0;
    args->causal = p->causal;
    args->query_offset = p->query_offset;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

static enum posenc_status make_t5(struct call *call, struct posenc_t5_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    int32_t *thresholds;
    *args = (struct posenc_t5_args)POSENC_T5_ARGS;
    if (p->num_buckets < 2 || p->num_buckets > 4096)
        return call_refuse(call, POSENC_ERR_SHAPE, "num_buckets", p->num_buckets, 2, 4096);
    int64_t n = p->bidirectional ? p->num_buckets / 2 : p->num_buckets;
    if ((status = make_scores(call, false, owned(&args->x), &args->out)) != POSENC_OK ||
        (status = make_random_table(call, owned(&args->table), p->num_buckets, p->heads)) !=
            POSENC_OK ||
        (status = make_integers(call, "memory for thresholds", n, &thresholds)) != POSENC_OK)
        return status;
    status = call_subject(call)->t5_thresholds(p->num_buckets, p->max_distance,
                                               p->bidirectional, thresholds);
    if (status != POSENC_OK)
        return call_refuse(call, status, "num_buckets or max_distance", p->max_distance, n / 2,
                           1 << 24);
    args->num_buckets = p->num_buckets;
    args->bidirectional = p->bidirectional;
    args->thresholds = thresholds;
    args->query_offset = p->query_offset;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

static enum posenc_status make_distance(struct call *call, struct posenc_distance_args *args)
{
    struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_distance_args)POSENC_DISTANCE_ARGS;
    if (p->query_offset < -MOST_OFFSET || p->query_offset > MOST_OFFSET)
        return call_refuse(call, POSENC_ERR_SHAPE, "query_offset", p->query_offset,
                           -MOST_OFFSET, MOST_OFFSET);
    if ((status = make_scores(call, false, owned(&args->x), &args->out)) != POSENC_OK)
        return status;
    p->distances = call->columns = problem_columns(p);
    if ((status = make_random_table(call, owned(&args->values), p->heads, p->distances)) !=
        POSENC_OK)
        return status;
    args->query_offset = p->query_offset;
    args->first = p->query_offset - (p->keys - 1); /* of query 0 and the last key */
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

static enum posenc_status make_window(struct call *call, struct posenc_window_args *args)
{
    struct problem *p = &call->problem;
    const int64_t height = p->window_height, width = p->window_width;
    enum posenc_status status;
    int32_t *index;
    *args = (struct posenc_window_args)POSENC_WINDOW_ARGS;
    if (height < 1 || height > 256 || width < 1 || width > 256)
        return call_refuse(call, POSENC_ERR_SHAPE, "window_height or window_width",
                           height < 1 || height > 256 ? height : width, 1, 256);
    p->queries = p->keys = problem_window(p);
    if ((status = make_scores(call, false, owned(&args->x), &args->out)) != POSENC_OK ||
        (status = make_random_table(call, owned(&args->table), problem_rows(p), p->heads)) !=
            POSENC_OK ||
        (status = make_integers(call, "memory for an index", p->queries * p->keys, &index)) !=
            POSENC_OK)
        return status;
    status = p->window_class ? call_subject(call)->beit_index(height, width, index)
                             : call_subject(call)->swin_index(height, width, index);
    if (status != POSENC_OK)
        return call_refuse(call, status, "window_height or window_width", height, 1, 256);
    args->index = index;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

/* The columns of each distance; an empty call has those of one query or one key. */
static enum posenc_status make_columns(struct call *call, const int32_t **to)
{
    const struct problem *p = &call->problem;
    const int64_t queries = p->queries > 0 ? p->queries : 1, keys = p->keys > 0 ? p->keys : 1;
    int32_t *index;
    enum posenc_status status =
        make_integers(call, "memory for an index", problem_distances(queries, keys), &index);
    if (status != POSENC_OK)
        return status;
    switch (p->relative) {
    case RELATIVE_DEBERTA:
        status = call_subject(call)->deberta_index(queries, keys, p->query_offset,
                                                   p->num_buckets, p->max_distance, index);
        break;
    case RELATIVE_SHAW:
        status = call_subject(call)->shaw_index(queries, keys, p->query_offset, p->max_distance,
                                                index);
        break;
    case RELATIVE_TRANSFORMER_XL:
        if (p->query_offset != p->keys - p->queries)
            return call_refuse(call, POSENC_ERR_ARGUMENT, "query_offset of Transformer-XL",
                               p->query_offset, p->keys - p->queries, p->keys - p->queries);
        status = call_subject(call)->transformer_xl_index(queries, keys, index);
        break;
    }
    if (status != POSENC_OK)
        return call_refuse(call, status, "max_distance, num_buckets or a distance",
                           p->max_distance, 1, 1 << 20);
    call->columns = problem_columns(p);
    *to = index;
    return POSENC_OK;
}

/* Terms [batch, heads, rows, columns]. */
static enum posenc_status make_terms(struct call *call, int64_t rows, uint64_t stream,
                                     const float **pristine, struct posenc_tensor *terms)
{
    const struct problem *p = &call->problem;
    enum posenc_status status =
        make_shape(call, terms, p->dtype,
                   (int64_t[]){ p->batch, p->heads, rows, call->columns }, p->token_major);
    if (status == POSENC_OK)
        status = make_input(call, terms, stream, pristine);
    if (status == POSENC_OK && without_batch(p))
        *terms = tensor_squeezed(terms, 0);
    return status;
}

static enum posenc_status make_relative(struct call *call, struct posenc_relative_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_relative_args)POSENC_RELATIVE_ARGS;
    if ((status = make_scores(call, true, owned(&args->x), &args->out)) != POSENC_OK ||
        (status = make_columns(call, &args->index)) != POSENC_OK)
        return status;
    if (!p->without_c2p && (status = make_terms(call, p->queries, STREAM_C2P, &call->c2p,
                                                owned(&args->c2p))) != POSENC_OK)
        return status;
    if (p->with_p2c && (status = make_terms(call, p->keys, STREAM_P2C, &call->p2c,
                                            owned(&args->p2c))) != POSENC_OK)
        return status;
    args->scale = (float)p->scale;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

static enum posenc_status make_relative_sum(struct call *call,
                                            struct posenc_relative_sum_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_relative_sum_args)POSENC_RELATIVE_SUM_ARGS;
    if ((status = make_shape(call, owned(&args->x), p->dtype,
                             (int64_t[]){ p->batch, p->heads, p->queries, p->keys },
                             p->token_major)) != POSENC_OK ||
        (status = make_columns(call, &args->index)) != POSENC_OK ||
        (status = make_shape(call, &args->out, p->dtype,
                             (int64_t[]){ p->batch, p->heads, p->queries, call->columns },
                             p->token_major)) != POSENC_OK ||
        (status = make_output(call, "out", &args->out, 'o')) != POSENC_OK)
        return status;
    return make_input(call, owned(&args->x), STREAM_X, &call->x);
}

enum posenc_status make_arguments(struct call *call)
{
    switch (kernel_signature(call->problem.kernel)) {
#define MAKE(signature)                                                                        \
    case SIGNATURE_##signature:                                                                \
        return make_##signature(call, &call->args.signature);
        MAKE(sinusoidal)
        MAKE(learned)
        MAKE(learned_grad)
        MAKE(rope_table)
        MAKE(rope)
        MAKE(alibi)
        MAKE(t5)
        MAKE(distance)
        MAKE(window)
        MAKE(relative)
        MAKE(relative_sum)
#undef MAKE
    }
    return POSENC_ERR_ARGUMENT;
}
