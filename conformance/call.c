/*
 * From a problem to a call: tensors, positions, plans and inputs in the caller's kind of
 * memory.  Everything is per signature; which kernel has which comes from posenc_kernels.def.
 */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>

/* owned[0..7] came from struct memory, the rest from malloc. */
enum { BOUNDARY = 64, OWNED_MEMORY = 8 };

/* ---- Memory ---- */

static void *plain_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    (void)user, (void)role;
    size_t offset = (size_t)offset_bytes % BOUNDARY;
    size_t size = BOUNDARY + offset + bytes;
    if (size < bytes)
        return NULL;
    char *base = aligned_alloc(BOUNDARY, (size + BOUNDARY - 1) / BOUNDARY * BOUNDARY);
    return base ? base + BOUNDARY + offset : NULL;
}

/* The first boundary below the data is one boundary after the start of the allocation. */
static void plain_free(void *user, void *data)
{
    (void)user;
    if (data)
        free((char *)data - (uintptr_t)data % BOUNDARY - BOUNDARY);
}

const struct memory memory_plain = { .get = plain_get, .free = plain_free };

/* ---- Making a call ---- */

static enum posenc_status refuse(struct call *call, enum posenc_status status, const char *what,
                                 int64_t value, int64_t least, int64_t most)
{
    call->error =
        (struct posenc_error){ status, what, (double)value, (double)least, (double)most };
    return status;
}

static void *own(struct call *call, int from, int to, void *data)
{
    for (int i = from; i < to && data; i++)
        if (!call->owned[i])
            return call->owned[i] = data;
    return NULL;
}

static void *get(struct call *call, size_t bytes, char role, int64_t alignment)
{
    int64_t offset = call->problem.offset_bytes / alignment * alignment;
    void *data = call->memory.get(call->memory.user, bytes, offset, role);
    return own(call, 0, OWNED_MEMORY, data);
}

static void *get_pristine(struct call *call, int64_t elements)
{
    size_t bytes = elements ? (size_t)elements * sizeof(float) : 1;
    return own(call, OWNED_MEMORY, 16, malloc(bytes));
}

/* A tensor with `pad` unused elements after each row but the last; strides of tokens and
 * batches exchanged for token_major.  Its data is still NULL. */
static enum posenc_status tensor_shape(struct call *call, struct posenc_tensor *tensor,
                                       int64_t d0, int64_t d1, int64_t d2, int64_t width,
                                       bool token_major)
{
    const int64_t shape[4] = { d0, d1, d2, width };
    int64_t row = width + call->problem.pad, inner, all, tokens, bytes;
    for (int i = 0; i < 4; i++)
        if (shape[i] < 0 || shape[i] > INT64_C(1) << 40)
            return refuse(call, POSENC_ERR_SHAPE, "a dimension", shape[i], 0, INT64_C(1) << 40);
    if (row < width)
        return refuse(call, POSENC_ERR_STRIDE, "pad", call->problem.pad, 0, INT64_MAX);
    if (__builtin_mul_overflow(d2, row, &inner) || __builtin_mul_overflow(inner, d1, &all) ||
        __builtin_mul_overflow(all, d0, &all) || __builtin_mul_overflow(inner, d0, &tokens) ||
        __builtin_mul_overflow(all, 4, &bytes))
        return refuse(call, POSENC_ERR_OVERFLOW, "elements of a tensor", d0, 0, 0);
    *tensor = (struct posenc_tensor){ .dtype = call->problem.dtype, .rank = 4 };
    memcpy(tensor->shape, shape, sizeof shape);
    tensor->stride[3] = 1;
    tensor->stride[2] = row;
    tensor->stride[1] = token_major ? tokens : inner;
    tensor->stride[0] = token_major ? inner : d1 * inner;
    return POSENC_OK;
}

/* Elements from the first to the last, both included. */
static int64_t tensor_extent(const struct posenc_tensor *tensor)
{
    int64_t last = 0;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            return 0;
        last += (tensor->shape[i] - 1) * tensor->stride[i];
    }
    return last + 1;
}

static int64_t tensor_rows(const struct posenc_tensor *t)
{
    return t->shape[0] * t->shape[1] * t->shape[2];
}

static float *tensor_row(const struct posenc_tensor *t, int64_t r)
{
    int64_t i2 = r % t->shape[2], i1 = r / t->shape[2] % t->shape[1],
            i0 = r / t->shape[2] / t->shape[1];
    return (float *)t->data + i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
}

static void tensor_scatter(const struct posenc_tensor *t, const float *dense)
{
    for (int64_t r = 0, n = t->shape[3] ? tensor_rows(t) : 0; r < n; r++)
        memcpy(tensor_row(t, r), dense + r * t->shape[3], (size_t)t->shape[3] * sizeof(float));
}

static enum posenc_status tensor_memory(struct call *call, struct posenc_tensor *tensor,
                                        char role)
{
    tensor->data = get(call, (size_t)tensor_extent(tensor) * sizeof(float), role, 4);
    return tensor->data ? POSENC_OK
                        : refuse(call, POSENC_ERR_MEMORY, "memory for a tensor", 0, 1, 0);
}

/* The same tensor without one of its dimensions, which is 1. */
static struct posenc_tensor squeeze(const struct posenc_tensor *t, int axis)
{
    struct posenc_tensor s = { .data = t->data, .dtype = t->dtype, .rank = t->rank - 1 };
    for (int i = 0, to = 0; i < t->rank; i++) {
        if (i == axis)
            continue;
        s.shape[to] = t->shape[i];
        s.stride[to++] = t->stride[i];
    }
    return s;
}

/* A two-dimensional input table, filled from its pristine copy. */
static enum posenc_status make_table(struct call *call, struct posenc_tensor *table,
                                     const float *dense, int64_t rows, int64_t width)
{
    struct posenc_tensor t;
    enum posenc_status status = tensor_shape(call, &t, 1, 1, rows, width, false);
    if (status == POSENC_OK)
        status = tensor_memory(call, &t, 'i');
    if (status != POSENC_OK)
        return status;
    tensor_scatter(&t, dense);
    t = squeeze(&t, 0);
    *table = squeeze(&t, 0);
    return POSENC_OK;
}

static enum posenc_status make_positions(struct call *call, struct posenc_positions *positions)
{
    const struct problem *p = &call->problem;
    *positions = (struct posenc_positions){ .kind = p->position_kind, .offset = p->first };
    if (p->position_kind == POSENC_OFFSET)
        return POSENC_OK;
    bool own = p->batch_shift || problem_draws_positions(p); /* each batch its own */
    int axes = problem_axes(p);
    int64_t size = p->position_kind == POSENC_POSITIONS_I64 ? 8 : 4;
    int64_t all = (own ? p->batch : 1) * p->tokens, n = axes * all;
    void *data = get(call, (size_t)(n * size), 'i', size);
    if (!data)
        return refuse(call, POSENC_ERR_MEMORY, "memory for positions", n, 1, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t b = i % all / p->tokens, t = i % p->tokens;
        int64_t position = problem_axis_position(p, b, t, (int)(i / all));
        if (p->position_kind == POSENC_POSITIONS_F32)
            ((float *)data)[i] = (float)problem_time(p, b, t, (int)(i / all));
        else if (p->position_kind == POSENC_POSITIONS_I64)
            ((int64_t *)data)[i] = position;
        else if (position < INT32_MIN || position > INT32_MAX)
            return refuse(call, POSENC_ERR_POSITION, "position", position, INT32_MIN,
                          INT32_MAX);
        else
            ((int32_t *)data)[i] = (int32_t)position;
    }
    positions->data = data;
    positions->stride_batch = own ? p->tokens : 0;
    positions->stride_token = 1;
    positions->stride_axis = axes > 1 ? all : 0;
    return POSENC_OK;
}

/* The factors of longrope that a problem gives by their last: evenly from 1 on. */
static enum posenc_status make_factors(struct call *call)
{
    struct posenc_freqs_spec *spec = &call->problem.freqs;
    if (spec->scaling != POSENC_SCALING_LONGROPE || spec->short_factor || spec->long_factor ||
        spec->dim < 1 || spec->dim > 1 << 16)
        return POSENC_OK;
    int64_t n = (spec->dim + 1) / 2;
    double *factors = own(call, OWNED_MEMORY, 16, malloc(2 * (size_t)n * sizeof *factors));
    if (!factors)
        return refuse(call, POSENC_ERR_MEMORY, "memory for factors", n, 1, 0);
    for (int64_t i = 0; i < n; i++) {
        double way = n > 1 ? (double)i / (double)(n - 1) : 0.0;
        factors[i] = 1.0 + (call->problem.short_factor_last - 1.0) * way;
        factors[n + i] = 1.0 + (call->problem.long_factor_last - 1.0) * way;
    }
    spec->short_factor = factors;
    spec->long_factor = factors + n;
    return POSENC_OK;
}

static enum posenc_status make_plan(struct call *call)
{
    enum posenc_status status = make_factors(call);
    if (status != POSENC_OK)
        return status;
    struct posenc_freqs_spec spec = call->problem.freqs;
    if (!spec.size)
        spec.size = sizeof spec;
    return posenc_freqs_create(&spec, &call->freqs, &call->error);
}

/* ---- One maker for each signature ---- */

/* Output tensor, and x where the kernel takes one: the same tensor when in place. */
static enum posenc_status make_activations(struct call *call, const struct posenc_tensor *shape,
                                           struct posenc_tensor *x, struct posenc_tensor *out)
{
    bool with_x = kernel_takes_x(call->problem.kernel), same = with_x && call->problem.in_place;
    enum posenc_status status;
    *out = *shape;
    if ((status = tensor_memory(call, out, same ? 'b' : 'o')) != POSENC_OK)
        return status;
    call->outputs[call->n_outputs++] =
        (struct output){ "out", *out, tensor_rows(out), out->shape[3] };
    if (!with_x)
        return POSENC_OK;
    *x = *out;
    if (!same && (status = tensor_memory(call, x, 'i')) != POSENC_OK)
        return status;
    int64_t n = tensor_rows(x) * x->shape[3];
    float *pristine = get_pristine(call, n);
    if (!pristine)
        return refuse(call, POSENC_ERR_MEMORY, "memory for activations", n, 1, 0);
    fill_inputs(pristine, n, &call->problem, STREAM_X);
    tensor_scatter(x, pristine);
    call->x = pristine;
    return POSENC_OK;
}

static enum posenc_status make_random_table(struct call *call, int64_t rows, int64_t width,
                                            struct posenc_tensor *table)
{
    struct posenc_tensor t;
    enum posenc_status status = tensor_shape(call, &t, 1, 1, rows, width, false);
    if (status != POSENC_OK)
        return status;
    float *pristine = get_pristine(call, rows * width);
    if (!pristine)
        return refuse(call, POSENC_ERR_MEMORY, "memory for a table", rows, 1, 0);
    fill_inputs(pristine, rows * width, &call->problem, STREAM_TABLE);
    call->table = pristine;
    return make_table(call, table, pristine, rows, width);
}

static enum posenc_status make_sinusoidal(struct call *call,
                                          struct posenc_sinusoidal_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape, x = { 0 }, out;
    enum posenc_status status;
    *args = (struct posenc_sinusoidal_args)POSENC_SINUSOIDAL_ARGS;
    if ((status = make_plan(call)) != POSENC_OK ||
        (status = tensor_shape(call, &shape, p->batch, p->tokens, 1, p->freqs.dim,
                               p->token_major)) != POSENC_OK ||
        (status = make_activations(call, &shape, &x, &out)) != POSENC_OK)
        return status;
    args->freqs = call->freqs;
    args->layout = p->layout;
    args->scale = p->scale;
    args->x_scale = p->x_scale;
    args->out = squeeze(&out, 2);
    if (x.data)
        args->x = squeeze(&x, 2);
    return make_positions(call, &args->positions);
}

static enum posenc_status make_learned(struct call *call, struct posenc_learned_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape, x = { 0 }, out;
    enum posenc_status status;
    *args = (struct posenc_learned_args)POSENC_LEARNED_ARGS;
    if ((status = tensor_shape(call, &shape, p->batch, p->tokens, 1, p->dim, p->token_major)) !=
            POSENC_OK ||
        (status = make_activations(call, &shape, &x, &out)) != POSENC_OK ||
        (status = make_random_table(call, p->rows, p->dim, &args->table)) != POSENC_OK)
        return status;
    args->x_scale = p->x_scale;
    args->x = squeeze(&x, 2);
    args->out = squeeze(&out, 2);
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
    if ((status = tensor_shape(call, &shape, p->batch, p->tokens, 1, pairs, p->token_major)) !=
        POSENC_OK)
        return status;
    struct posenc_tensor *const to[2] = { &args->cos, &args->sin };
    for (int o = 0; o < 2; o++) {
        struct posenc_tensor t = shape;
        if ((status = tensor_memory(call, &t, 'o')) != POSENC_OK)
            return status;
        call->outputs[call->n_outputs++] =
            (struct output){ o ? "sin" : "cos", t, tensor_rows(&t), pairs };
        *to[o] = squeeze(&t, 2);
    }
    args->freqs = call->freqs;
    return make_positions(call, &args->positions);
}

static enum posenc_status make_rope(struct call *call, struct posenc_rope_args *args)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    enum posenc_status status;
    *args = (struct posenc_rope_args)POSENC_ROPE_ARGS;
    if (p->rotary_dim % 2)
        return refuse(call, POSENC_ERR_ODD, "rotary_dim", p->rotary_dim, 2, p->dim);
    if (p->rotary_dim < 2 || p->rotary_dim > p->dim)
        return refuse(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, p->dim);
    int64_t half = p->rotary_dim / 2;
    if ((status = tensor_shape(call, &shape, 1, 1, p->rows, half, false)) != POSENC_OK)
        return status;
    float *cosines = get_pristine(call, p->rows * half),
          *sines = get_pristine(call, p->rows * half);
    if (!cosines || !sines || !fill_rotations(p, cosines, sines))
        return refuse(call, POSENC_ERR_MEMORY, "memory for cos and sin", p->rows, 1, 0);
    call->cos = cosines;
    call->sin = sines;
    if ((status = make_table(call, &args->cos, cosines, p->rows, half)) != POSENC_OK ||
        (status = make_table(call, &args->sin, sines, p->rows, half)) != POSENC_OK ||
        (status = tensor_shape(call, &shape, p->batch, p->tokens, p->heads, p->dim,
                               p->token_major)) != POSENC_OK ||
        (status = make_activations(call, &shape, &args->x, &args->out)) != POSENC_OK)
        return status;
    args->transpose = p->transpose;
    return make_positions(call, &args->positions);
}

/* Scores [batch, heads, queries, keys]; a bias alone has no batch. */
static enum posenc_status make_scores(struct call *call, struct posenc_tensor *x,
                                      struct posenc_tensor *out)
{
    const struct problem *p = &call->problem;
    struct posenc_tensor shape;
    enum posenc_status status;
    bool with_x = kernel_takes_x(p->kernel);
    if (!with_x && p->batch != 1)
        return refuse(call, POSENC_ERR_SHAPE, "batch of a bias", p->batch, 1, 1);
    if ((status = tensor_shape(call, &shape, p->batch, p->heads, p->queries, p->keys,
                               p->token_major)) == POSENC_OK)
        status = make_activations(call, &shape, x, out);
    if (status == POSENC_OK && !with_x)
        *out = squeeze(out, 0);
    return status;
}

static enum posenc_status make_alibi(struct call *call, struct posenc_alibi_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_alibi_args)POSENC_ALIBI_ARGS;
    if ((status = make_scores(call, &args->x, &args->out)) != POSENC_OK)
        return status;
    float *pristine = get_pristine(call, p->heads), *slopes;
    if (!pristine || !(slopes = get(call, (size_t)p->heads * sizeof *slopes, 'i', 4)))
        return refuse(call, POSENC_ERR_MEMORY, "memory for slopes", p->heads, 1, 0);
    if ((status = posenc_alibi_slopes(p->heads, p->alibi_bias_max, pristine)) != POSENC_OK) {
        call->error = (struct posenc_error){ status, "n_heads or alibi_bias_max",
                                             p->alibi_bias_max, 0, 64 };
        return status;
    }
    memcpy(slopes, pristine, (size_t)p->heads * sizeof *slopes);
    call->slopes = pristine;
    args->slopes = slopes;
    args->causal = p->causal;
    args->query_offset = p->query_offset;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

static enum posenc_status make_t5(struct call *call, struct posenc_t5_args *args)
{
    const struct problem *p = &call->problem;
    enum posenc_status status;
    *args = (struct posenc_t5_args)POSENC_T5_ARGS;
    if (p->num_buckets < 2 || p->num_buckets > 4096)
        return refuse(call, POSENC_ERR_SHAPE, "num_buckets", p->num_buckets, 2, 4096);
    int64_t n = p->bidirectional ? p->num_buckets / 2 : p->num_buckets;
    if ((status = make_scores(call, &args->x, &args->out)) != POSENC_OK ||
        (status = make_random_table(call, p->num_buckets, p->heads, &args->table)) != POSENC_OK)
        return status;
    int32_t *thresholds = get(call, (size_t)n * sizeof *thresholds, 'i', 4);
    if (!thresholds)
        return refuse(call, POSENC_ERR_MEMORY, "memory for thresholds", n, 1, 0);
    status =
        posenc_t5_thresholds(p->num_buckets, p->max_distance, p->bidirectional, thresholds);
    if (status != POSENC_OK) {
        call->error =
            (struct posenc_error){ status, "num_buckets or max_distance",
                                   (double)p->max_distance, (double)(n / 2), 16777216 };
        return status;
    }
    args->num_buckets = p->num_buckets;
    args->bidirectional = p->bidirectional;
    args->thresholds = thresholds;
    args->query_offset = p->query_offset;
    args->x_scale = p->x_scale;
    return POSENC_OK;
}

/* ---- Calls ---- */

enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory)
{
    enum posenc_status status = POSENC_OK;
    *call = (struct call){ .problem = *problem, .memory = memory ? *memory : memory_plain };
    if (problem->offset_bytes < 0 || problem->offset_bytes % 4)
        return refuse(call, POSENC_ERR_ARGUMENT, "offset_bytes", problem->offset_bytes, 0,
                      INT64_MAX);
    switch (kernel_signature(problem->kernel)) {
#define MAKE(signature)                                                                        \
    case SIGNATURE_##signature:                                                                \
        status = make_##signature(call, &call->args.signature);                                \
        break;
        MAKE(sinusoidal)
        MAKE(learned)
        MAKE(rope_table)
        MAKE(rope)
        MAKE(alibi)
        MAKE(t5)
#undef MAKE
    }
    if (status != POSENC_OK) {
        struct posenc_error error = call->error;
        error.status = status;
        call_destroy(call);
        call->error = error;
        return status;
    }
    call_reset(call);
    if (call->memory.seal)
        call->memory.seal(call->memory.user);
    return POSENC_OK;
}

enum posenc_status call_run(struct call *call, const struct posenc_backend *backend)
{
    call->error = (struct posenc_error){ 0 };
    switch (call->problem.kernel) {
#define POSENC_KERNEL(name, signature, stage, summary)                                         \
    case POSENC_KERNEL_##name:                                                                 \
        call->args.signature.error = &call->error;                                             \
        return posenc_##name(backend, &call->args.signature);
#include "posenc_kernels.def"
    case POSENC_KERNEL_COUNT:
        break;
    }
    return POSENC_ERR_ARGUMENT;
}

void call_reset(struct call *call)
{
    if (call->x && call->problem.in_place) {
        tensor_scatter(&call->outputs[0].tensor, call->x);
        return;
    }
    const uint32_t canary = CALL_CANARY;
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows && call->outputs[o].width; r++) {
            float *row = tensor_row(&call->outputs[o].tensor, r);
            for (int64_t c = 0; c < call->outputs[o].width; c++)
                memcpy(row + c, &canary, sizeof canary);
        }
}

void call_destroy(struct call *call)
{
    for (int i = 0; i < 16; i++) {
        if (!call->owned[i])
            continue;
        if (i < OWNED_MEMORY)
            call->memory.free(call->memory.user, call->owned[i]);
        else
            free(call->owned[i]);
    }
    posenc_freqs_destroy(call->freqs);
    *call = (struct call){ 0 };
}

const float *call_row(const struct call *call, int o, int64_t r)
{
    return tensor_row(&call->outputs[o].tensor, r);
}
