/*
 * The simple interface: posenc_rope, a model's rotation as one object, and posenc_sinusoidal_add_dense().
 *
 * A posenc_rope caches cosines and sines for the positions from 0 up to a power of two, in an immutable table behind
 * one atomic pointer. A call that needs more rows publishes a larger table. The smaller ones remain until the object is
 * destroyed, as other threads may be reading them; together they are no larger than the last. Calls with positions that
 * are negative, or beyond MAX_ROWS, compute a temporary table. A row depends on its position alone, so cached and
 * temporary rows have equal bits.
 */
#include "checks.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { INITIAL_ROWS = 512, MAX_ROWS = 1 << 20 };

/* The cosines of n rows, [n][pairs], and behind them their sines. */
struct angle_table {
    const struct angle_table *previous;
    int64_t n;
    float cosines[];
};

struct posenc_rope {
    struct posenc_freqs *freqs;
    int64_t pairs;
    enum posenc_pairing pairing;
    _Atomic(const struct angle_table *) cached; /* positions 0 ... n - 1; NULL at first */
};

/* Fills a table with the rows of batch * tokens positions. */
static enum posenc_status compute_rows(const struct posenc_rope *rope,
                                       struct posenc_positions positions, int64_t batch,
                                       int64_t tokens, struct angle_table *table,
                                       struct posenc_error *error)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    float *sines = table->cosines + table->n * rope->pairs;
    args.freqs = rope->freqs;
    args.positions = positions;
    args.cos = posenc_tensor_3d(POSENC_DTYPE_F32, table->cosines, batch, tokens, rope->pairs);
    args.sin = posenc_tensor_3d(POSENC_DTYPE_F32, sines, batch, tokens, rope->pairs);
    return posenc_rope_table(NULL, &args, error);
}

/* Returns NULL, and reports it, if n rows exceed the memory or the address space. */
static struct angle_table *allocate_table(const struct posenc_rope *rope, int64_t n,
                                          struct posenc_error *error)
{
    const size_t pair = 2 * sizeof(float); /* a cosine and a sine */
    size_t most = (PTRDIFF_MAX - sizeof(struct angle_table)) / pair;
    struct angle_table *table = NULL;
    if ((uint64_t)n <= most / (uint64_t)rope->pairs)
        table = malloc(sizeof *table + (size_t)n * (size_t)rope->pairs * pair);
    if (table)
        *table = (struct angle_table){ .n = n };
    else
        (void)reject_value(error, POSENC_ERR_MEMORY, "rows of cosines and sines", (double)n);
    return table;
}

/* ---- The object ---- */

enum posenc_status posenc_rope_create(const struct posenc_freqs_spec *spec,
                                      enum posenc_pairing pairing, struct posenc_rope **rope,
                                      struct posenc_error *error)
{
    struct posenc_freqs *freqs;
    if (!rope)
        return reject(error, POSENC_ERR_ARGUMENT, "rope (NULL)");
    if ((unsigned)pairing > POSENC_PAIRING_INTERLEAVED)
        return reject_range(error, POSENC_ERR_ARGUMENT, "pairing", (double)pairing,
                            POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED);
    enum posenc_status status = posenc_freqs_create(spec, &freqs, error);
    if (status)
        return status;
    int64_t dim = freqs->view.dim;
    if (dim % 2 != 0)
        status = reject_value(error, POSENC_ERR_ODD, "dim of the spec", (double)dim);
    struct posenc_rope *created = status ? NULL : malloc(sizeof *created);
    if (!status && !created)
        status = reject(error, POSENC_ERR_MEMORY, "memory for a rotation");
    if (status) {
        posenc_freqs_destroy(freqs);
        return status;
    }
    *created = (struct posenc_rope){ .freqs = freqs, .pairs = dim / 2, .pairing = pairing };
    *rope = created;
    return POSENC_OK;
}

void posenc_rope_destroy(struct posenc_rope *rope)
{
    if (!rope)
        return;
    for (const struct angle_table *table = atomic_load(&rope->cached), *previous; table;
         table = previous) {
        previous = table->previous;
        free((void *)(uintptr_t)table);
    }
    posenc_freqs_destroy(rope->freqs);
    free(rope);
}

const struct posenc_freqs *posenc_rope_freqs(const struct posenc_rope *rope)
{
    return rope->freqs;
}

/* Caches the rows of the positions 0 ... n - 1, n <= MAX_ROWS. */
static enum posenc_status cache_rows(struct posenc_rope *rope, int64_t n,
                                     struct posenc_error *error)
{
    const struct angle_table *cached =
        atomic_load_explicit(&rope->cached, memory_order_acquire);
    int64_t size = INITIAL_ROWS;
    if (cached && cached->n >= n)
        return POSENC_OK;
    while (size < n)
        size *= 2;
    struct angle_table *table = allocate_table(rope, size, error);
    if (!table)
        return POSENC_ERR_MEMORY;
    enum posenc_status status =
        compute_rows(rope, (struct posenc_positions){ 0 }, 1, size, table, error);
    if (status) {
        free(table);
        return status;
    }
    /* If another thread has published a table meanwhile, link this one in front of it, or drop this one if that is
     * large enough. */
    table->previous = cached;
    while (!atomic_compare_exchange_weak(&rope->cached, &table->previous, table))
        if (table->previous && table->previous->n >= size) {
            free(table);
            break;
        }
    return POSENC_OK;
}

enum posenc_status posenc_rope_reserve(struct posenc_rope *rope, int64_t n,
                                       struct posenc_error *error)
{
    if (!rope)
        return reject(error, POSENC_ERR_ARGUMENT, "rope (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_POSITION, "n (positions)", n, 0, MAX_ROWS);
    return status ? status : cache_rows(rope, n, error);
}

/* ---- Rotations ---- */

/* The texts of messages about q, and about k. */
struct argument_names {
    struct tensor_names tensor;
    const char *head_dim, *positions, *backend;
};
#define ARGUMENT_NAMES(name)                                                                   \
    {                                                                                          \
        TENSOR_NAMES(name), "head_dim of " name " (dim of the spec at least)",                 \
            "positions (overlap " name ")", "dtype of " name " (this backend takes f32)"       \
    }
static const struct argument_names names_q = ARGUMENT_NAMES("q"), names_k = ARGUMENT_NAMES("k");

/* A call of posenc_rope_apply(). */
struct apply_call {
    struct posenc_rope *rope;
    struct posenc_tensor tensors[2]; /* q and k */
    const struct argument_names *names[2];
    int n; /* number of tensors */
    int64_t batch, tokens;
    struct posenc_positions positions;
};

/* Adds q or k, unless it is NULL. Both must have the same batches and tokens. */
static enum posenc_status add_tensor(struct apply_call *call,
                                     const struct posenc_tensor *tensor,
                                     const struct argument_names *names,
                                     struct posenc_error *error)
{
    if (!tensor)
        return POSENC_OK;
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, names->tensor.rank, tensor->rank, 3, 4);
    for (int i = 0; i < tensor->rank && !status; i++)
        status = require_range(error, POSENC_ERR_SHAPE, names->tensor.size, tensor->shape[i], 0,
                               INT32_MAX);
    if (status)
        return status;
    const int64_t batch = tensor->rank == 4 ? tensor->shape[0] : 1,
                  tokens = tensor->shape[tensor->rank - 3];
    if (call->n > 0)
        status = posenc_require_size(batch, call->batch, "batches of k (those of q)", error);
    if (call->n > 0 && !status)
        status = posenc_require_size(tokens, call->tokens, "tokens of k (those of q)", error);
    call->batch = batch;
    call->tokens = tokens;
    call->names[call->n] = names;
    call->tensors[call->n++] = *tensor;
    return status;
}

/* Returns true if there is nothing to rotate. */
static bool is_empty(const struct apply_call *call)
{
    int64_t elements = 0;
    for (int i = 0; i < call->n; i++)
        elements += call->tensors[i].shape[call->tensors[i].rank - 2];
    return elements == 0 || call->batch == 0 || call->tokens == 0;
}

/* Fills the error again, with the name of tensor i, after the kernel's checks rejected it with `status`. They name it
 * `out`. */
static enum posenc_status name_argument(const struct apply_call *call, int i,
                                        enum posenc_status status, struct posenc_error *error)
{
    const struct argument_names *names = call->names[i];
    const struct tensor_rule rule = {
        .names = &names->tensor, .min_rank = 3, .max_rank = 4, .min_last = 1, .any_dtype = true
    };
    struct posenc_tensor tensor = call->tensors[i];
    struct checked_tensor checked;
    if (posenc_check_output(&tensor, &rule, &checked, error))
        return status;
    if (status == POSENC_ERR_ROTARY_DIM)
        return reject_range(error, status, names->head_dim,
                            (double)tensor.shape[tensor.rank - 1],
                            2.0 * (double)call->rope->pairs, (double)INT32_MAX);
    if (status == POSENC_ERR_OVERLAP)
        return reject(error, status, names->positions);
    if (status == POSENC_ERR_DTYPE)
        return reject_range(error, status, names->backend, (double)tensor.dtype,
                            POSENC_DTYPE_F32, POSENC_DTYPE_F32);
    return status;
}

/* Checks q and k against a table before either is written, and rotates them. */
static enum posenc_status rotate_by_table(const struct apply_call *call,
                                          const struct posenc_positions *rows,
                                          const struct angle_table *table,
                                          struct posenc_error *error)
{
    const bool half = call->rope->pairing == POSENC_PAIRING_HALF;
    const float *sines = table->cosines + table->n * call->rope->pairs;
    const struct posenc_backend *backends[2] = { NULL, NULL };
    struct posenc_rope_args args = posenc_rope_args_init(), calls[2];
    enum posenc_status status = POSENC_OK;
    bool empty[2] = { false, false };

    args.positions = *rows;
    args.cos =
        posenc_const_tensor_2d(POSENC_DTYPE_F32, table->cosines, table->n, call->rope->pairs);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, table->n, call->rope->pairs);
    for (int i = 0; i < call->n; i++) {
        args.out = call->tensors[i];
        status = posenc_setup_rope(
            &backends[i], half ? POSENC_KERNEL_ROPE_HALF : POSENC_KERNEL_ROPE_INTERLEAVED, true,
            &args, &calls[i], &empty[i], error);
        if (status)
            return name_argument(call, i, status, error);
    }
    if (call->n == 2 && !empty[0] && !empty[1] &&
        !posenc_are_apart(&calls[0].out, &calls[1].out))
        status = reject(error, POSENC_ERR_OVERLAP, "k (overlaps q)");
    for (int i = 0; i < call->n && !status; i++)
        if (!empty[i])
            status = half ? backends[i]->rope_half(&calls[i])
                          : backends[i]->rope_interleaved(&calls[i]);
    return status;
}

/* Rotates by a temporary table with one row for each token. */
static enum posenc_status rotate_once(const struct apply_call *call, struct posenc_error *error)
{
    const struct posenc_positions *positions = &call->positions;
    const bool shared =
        positions->kind == POSENC_POSITIONS_OFFSET || positions->stride_batch == 0;
    const int64_t batch = shared ? 1 : call->batch, n = batch * call->tokens;
    if (n > INT32_MAX)
        return reject_value(error, POSENC_ERR_MEMORY, "rows of cosines and sines", (double)n);
    int32_t *index = shared ? NULL : malloc((size_t)n * sizeof *index);
    struct angle_table *table = allocate_table(call->rope, n, error);
    enum posenc_status status = POSENC_ERR_MEMORY;
    struct posenc_positions rows = { 0 };
    if (!shared && !index)
        (void)reject_value(error, POSENC_ERR_MEMORY, "rows of cosines and sines", (double)n);
    else if (table)
        status = compute_rows(call->rope, *positions, batch, call->tokens, table, error);
    if (index) {
        for (int64_t i = 0; i < n; i++)
            index[i] = (int32_t)i;
        rows = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                          .data = index,
                                          .stride_batch = call->tokens };
    }
    if (!status)
        status = rotate_by_table(call, &rows, table, error);
    free(table);
    free(index);
    return status;
}

/* Finds the extremes of checked positions that are integers. */
static void find_extremes(const struct apply_call *call, int64_t *least, int64_t *most)
{
    const struct posenc_positions *p = &call->positions;
    const int64_t batch = p->stride_batch == 0 ? 1 : call->batch;
    const int64_t step = p->stride_token == 0 ? 1 : p->stride_token;
    *least = p->offset;
    *most = p->offset + call->tokens - 1;
    if (p->kind == POSENC_POSITIONS_OFFSET)
        return;
    *least = INT64_MAX;
    *most = INT64_MIN;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < call->tokens; t++) {
            const int64_t at = b * p->stride_batch + t * step;
            const int64_t position = p->kind == POSENC_POSITIONS_I32
                                         ? ((const int32_t *)p->data)[at]
                                         : ((const int64_t *)p->data)[at];
            *least = position < *least ? position : *least;
            *most = position > *most ? position : *most;
        }
}

/* Rotates by the cached table if it can hold all positions: whole numbers, the same on all axes. */
static enum posenc_status rotate(const struct apply_call *call, struct posenc_error *error)
{
    const struct posenc_positions *p = &call->positions;
    const bool one_axis = p->kind == POSENC_POSITIONS_OFFSET || p->stride_axis == 0 ||
                          call->rope->freqs->view.n_axes == 1;
    int64_t least, most;
    if (p->kind == POSENC_POSITIONS_F32 || !one_axis)
        return rotate_once(call, error);
    find_extremes(call, &least, &most);
    if (least < 0 || most >= MAX_ROWS)
        return rotate_once(call, error);
    enum posenc_status status = cache_rows(call->rope, most + 1, error);
    if (status == POSENC_ERR_POSITION) /* xPos: a table from 0 on leaves the range */
        return rotate_once(call, error);
    if (status)
        return status;
    return rotate_by_table(
        call, p, atomic_load_explicit(&call->rope->cached, memory_order_acquire), error);
}

enum posenc_status posenc_rope_apply(struct posenc_rope *rope,
                                     const struct posenc_positions *positions,
                                     const struct posenc_tensor *q,
                                     const struct posenc_tensor *k, struct posenc_error *error)
{
    static const struct position_range range = { -(int64_t)INT32_MAX, INT32_MAX,
                                                 "position of a token", true };
    struct apply_call call = { .rope = rope };
    struct span span;
    if (!rope)
        return reject(error, POSENC_ERR_ARGUMENT, "rope (NULL)");
    if (positions)
        call.positions = *positions;
    enum posenc_status status = add_tensor(&call, q, &names_q, error);
    if (!status)
        status = add_tensor(&call, k, &names_k, error);
    if (status || is_empty(&call))
        return status;
    struct posenc_positions dense = call.positions;
    if (dense.stride_token == 0)
        dense.stride_token = 1;
    status = posenc_check_positions(&dense, call.batch, call.tokens, &range, &span, error);
    return status ? status : rotate(&call, error);
}

enum posenc_status posenc_rope_apply_dense(struct posenc_rope *rope, enum posenc_dtype dtype,
                                           int64_t tokens, int64_t head_dim,
                                           int64_t first_position, void *q, int64_t q_heads,
                                           void *k, int64_t k_heads, struct posenc_error *error)
{
    const struct posenc_tensor tensors[2] = {
        posenc_tensor_3d(dtype, q, tokens, q_heads, head_dim),
        posenc_tensor_3d(dtype, k, tokens, k_heads, head_dim)
    };
    const struct posenc_positions positions = { .offset = first_position };
    return posenc_rope_apply(rope, &positions, q_heads ? &tensors[0] : NULL,
                             k_heads ? &tensors[1] : NULL, error);
}

/* ---- Sinusoidal encodings ---- */

enum posenc_status posenc_sinusoidal_add_dense(const struct posenc_freqs *freqs,
                                               enum posenc_layout layout,
                                               enum posenc_dtype dtype, int64_t tokens,
                                               int64_t first_position, float x_scale, void *x,
                                               struct posenc_error *error)
{
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    if (!freqs)
        return reject(error, POSENC_ERR_ARGUMENT, "freqs (NULL)");
    args.freqs = freqs;
    args.layout = layout;
    args.x_scale = x_scale;
    args.positions.offset = first_position;
    args.out = posenc_tensor_2d(dtype, x, tokens, freqs->view.dim);
    return posenc_sinusoidal_add(NULL, &args, error);
}
