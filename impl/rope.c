/*
 * The simple interface: posenc_rope, a model's rotation as one object, and posenc_add_sinusoids().
 *
 * A posenc_rope caches cosines and sines for the positions from 0 up to a power of two, in an immutable table behind
 * one atomic pointer. A call that needs more rows publishes a larger table. The smaller ones remain until the object is
 * destroyed, as other threads may be reading them; together they are no larger than the last. Calls with positions that
 * are negative, or beyond MAX_ROWS, compute a temporary table. A row depends on its position alone, so cached and
 * temporary rows have equal bits.
 */
#include "internal.h"
#include "validate.h"

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
    int64_t head_dim, pairs;
    enum posenc_pairing pairing;
    _Atomic(const struct angle_table *) cached; /* positions 0 ... n - 1; NULL at first */
};

/* The arguments of posenc_rope_apply() or posenc_rope_apply_at(). */
struct rotary_call {
    struct posenc_rope *rotary;
    enum posenc_dtype dtype;
    int64_t tokens;
    struct posenc_positions positions; /* an offset or int32 */
    int64_t least, most;               /* the extremes of the positions */
    struct {
        void *data;
        int64_t n;
    } heads[2]; /* of q and k */
};

static enum posenc_status compute_rows(const struct posenc_rope *rotary,
                                       struct posenc_positions positions, int64_t n,
                                       float *cosines, float *sines)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.freqs = rotary->freqs;
    args.positions = positions;
    args.cos = posenc_dense(cosines, 2, n, rotary->pairs, 0, 0);
    args.sin = posenc_dense(sines, 2, n, rotary->pairs, 0, 0);
    return posenc_rope_table(NULL, &args);
}

/* Returns NULL if n rows exceed the memory or the address space. */
static struct angle_table *allocate_table(const struct posenc_rope *rotary, int64_t n)
{
    const size_t pair = 2 * sizeof(float); /* a cosine and a sine */
    size_t most = (PTRDIFF_MAX - sizeof(struct angle_table)) / pair;
    if ((uint64_t)n > most / (uint64_t)rotary->pairs)
        return NULL;
    struct angle_table *table =
        malloc(sizeof *table + (size_t)n * (size_t)rotary->pairs * pair);
    if (table)
        *table = (struct angle_table){ .n = n };
    return table;
}

/* ---- The object ---- */

enum posenc_status posenc_rope_create(const struct posenc_freqs_spec *spec, int64_t head_dim,
                                      enum posenc_pairing pairing, struct posenc_rope **rotary,
                                      struct posenc_error *error)
{
    struct posenc_freqs *freqs;
    if (!rotary)
        return reject(error, POSENC_ERR_ARGUMENT, "rotary (NULL)");
    if ((unsigned)pairing > POSENC_PAIRING_INTERLEAVED)
        return reject_range(error, POSENC_ERR_ARGUMENT, "pairing", (double)pairing,
                            POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED);
    enum posenc_status status = posenc_freqs_create(spec, &freqs, error);
    if (status)
        return status;
    int64_t dim = freqs->view.dim;
    if (dim % 2 != 0)
        status = reject_value(error, POSENC_ERR_ODD, "dim of the spec", (double)dim);
    else if (head_dim < dim || head_dim > INT32_MAX)
        status =
            reject_range(error, POSENC_ERR_ROTARY_DIM, "head_dim (dim of the spec at least)",
                         (double)head_dim, (double)dim, (double)INT32_MAX);
    struct posenc_rope *created = status ? NULL : malloc(sizeof *created);
    if (!status && !created)
        status = reject(error, POSENC_ERR_MEMORY, "memory for a rotation");
    if (status) {
        posenc_freqs_destroy(freqs);
        return status;
    }
    *created = (struct posenc_rope){
        .freqs = freqs, .head_dim = head_dim, .pairs = dim / 2, .pairing = pairing
    };
    *rotary = created;
    return POSENC_OK;
}

void posenc_rope_destroy(struct posenc_rope *rotary)
{
    if (!rotary)
        return;
    for (const struct angle_table *table = atomic_load(&rotary->cached), *previous; table;
         table = previous) {
        previous = table->previous;
        free((void *)(uintptr_t)table);
    }
    posenc_freqs_destroy(rotary->freqs);
    free(rotary);
}

const struct posenc_freqs *posenc_rope_freqs(const struct posenc_rope *rotary)
{
    return rotary->freqs;
}

/* Caches the rows of the positions 0 ... n - 1, n <= MAX_ROWS. */
static enum posenc_status cache_rows(struct posenc_rope *rotary, int64_t n)
{
    const struct angle_table *cached =
        atomic_load_explicit(&rotary->cached, memory_order_acquire);
    int64_t size = INITIAL_ROWS;
    if (cached && cached->n >= n)
        return POSENC_OK;
    while (size < n)
        size *= 2;
    struct angle_table *table = allocate_table(rotary, size);
    if (!table)
        return POSENC_ERR_MEMORY;
    enum posenc_status status =
        compute_rows(rotary, (struct posenc_positions){ 0 }, size, table->cosines,
                     table->cosines + size * rotary->pairs);
    if (status) {
        free(table);
        return status;
    }
    /* If another thread has published a table meanwhile, link this one in front of it, or drop this one if that is
     * large enough. */
    table->previous = cached;
    while (!atomic_compare_exchange_weak(&rotary->cached, &table->previous, table))
        if (table->previous && table->previous->n >= size) {
            free(table);
            break;
        }
    return POSENC_OK;
}

enum posenc_status posenc_rope_reserve(struct posenc_rope *rotary, int64_t positions)
{
    if (!rotary)
        return POSENC_ERR_ARGUMENT;
    if (positions < 0 || positions > MAX_ROWS)
        return POSENC_ERR_POSITION;
    return cache_rows(rotary, positions);
}

/* ---- Rotations ---- */

/* Rotates q and k by a table, whose rows call->positions selects. */
static enum posenc_status rotate_by_table(const struct rotary_call *call,
                                          const struct angle_table *table)
{
    const struct posenc_rope *rotary = call->rotary;
    enum posenc_status status = POSENC_OK;
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions = call->positions;
    args.cos = posenc_const_dense(table->cosines, 2, table->n, rotary->pairs, 0, 0);
    args.sin = posenc_const_dense(table->cosines + table->n * rotary->pairs, 2, table->n,
                                  rotary->pairs, 0, 0);
    for (int i = 0; i < 2 && !status; i++) {
        args.out = posenc_dense(call->heads[i].data, 3, call->tokens, call->heads[i].n,
                                rotary->head_dim, 0);
        args.out.dtype = call->dtype;
        args.x = posenc_view(args.out);
        if (call->heads[i].n != 0)
            status = rotary->pairing == POSENC_PAIRING_HALF
                         ? posenc_rope_half(NULL, &args)
                         : posenc_rope_interleaved(NULL, &args);
    }
    return status;
}

/* Rotates by a temporary table with one row for each token. */
static enum posenc_status rotate_once(struct rotary_call *call)
{
    int64_t n = call->tokens;
    struct angle_table *table = allocate_table(call->rotary, n);
    if (!table)
        return POSENC_ERR_MEMORY;
    enum posenc_status status = compute_rows(call->rotary, call->positions, n, table->cosines,
                                             table->cosines + n * call->rotary->pairs);
    call->positions = (struct posenc_positions){ 0 };
    if (!status)
        status = rotate_by_table(call, table);
    free(table);
    return status;
}

/* Rotates by the cached table if it can hold all positions. With xPos, a table from position 0 on may leave the
 * accepted range (POSITION), though the positions of this call do not. */
static enum posenc_status rotate(struct rotary_call *call)
{
    if (call->heads[0].n == 0 && call->heads[1].n == 0)
        return POSENC_OK;
    if (call->least < 0 || call->most >= MAX_ROWS)
        return rotate_once(call);
    enum posenc_status status = cache_rows(call->rotary, call->most + 1);
    if (status)
        return status == POSENC_ERR_POSITION ? rotate_once(call) : status;
    return rotate_by_table(call,
                           atomic_load_explicit(&call->rotary->cached, memory_order_acquire));
}

/* Finds the span of q (i = 0) or k (i = 1), which is empty without heads. */
static enum posenc_status find_span(const struct rotary_call *call, int i, struct span *span)
{
    int64_t n = call->heads[i].n;
    size_t item = posenc_dtype_size(call->dtype);
    uintptr_t first = (uintptr_t)call->heads[i].data;
    *span = (struct span){ 0, 0 };
    if (n < 0 || n > INT32_MAX)
        return POSENC_ERR_SHAPE;
    if (n == 0)
        return POSENC_OK;
    if (first == 0 || first % item != 0)
        return POSENC_ERR_ARGUMENT;
    uint64_t row = (uint64_t)n * (uint64_t)call->rotary->head_dim * item; /* below 2^64 */
    uint64_t most = UINTPTR_MAX - first < INT64_MAX ? UINTPTR_MAX - first : INT64_MAX;
    if (row > most / (uint64_t)call->tokens)
        return POSENC_ERR_OVERFLOW;
    *span = (struct span){ first, first + (uintptr_t)(row * (uint64_t)call->tokens) };
    return POSENC_OK;
}

/* Checks all that the kernel could reject. Otherwise an error in k would be found only after q has been rotated. */
static enum posenc_status check_memory(const struct rotary_call *call)
{
    struct span spans[2], positions = { 0, 0 };
    enum posenc_status status = find_span(call, 0, &spans[0]);
    if (!status)
        status = find_span(call, 1, &spans[1]);
    if (!status)
        status = posenc_check_disjoint(spans[0], spans[1], "", NULL);
    if (call->positions.kind != POSENC_POSITIONS_OFFSET)
        positions =
            (struct span){ (uintptr_t)call->positions.data,
                           (uintptr_t)((const int32_t *)call->positions.data + call->tokens) };
    for (int i = 0; i < 2 && !status; i++)
        status = posenc_check_disjoint(spans[i], positions, "", NULL);
    return status;
}

/* Checks what is needed before positions are read. */
static enum posenc_status check_scalars(const struct rotary_call *call)
{
    if (!call->rotary)
        return POSENC_ERR_ARGUMENT;
    if ((unsigned)call->dtype > POSENC_DTYPE_BF16)
        return POSENC_ERR_DTYPE;
    return call->tokens < 0 || call->tokens > INT32_MAX ? POSENC_ERR_SHAPE : POSENC_OK;
}

enum posenc_status posenc_rope_apply(struct posenc_rope *rotary, enum posenc_dtype dtype,
                                     int64_t tokens, int64_t first_position, void *q,
                                     int64_t q_heads, void *k, int64_t k_heads)
{
    struct rotary_call call = { .rotary = rotary,
                                .dtype = dtype,
                                .tokens = tokens,
                                .positions.offset = first_position,
                                .heads = { { q, q_heads }, { k, k_heads } } };
    enum posenc_status status = check_scalars(&call);
    if (status || tokens == 0)
        return status;
    if (first_position < -INT32_MAX || first_position > INT32_MAX - (tokens - 1))
        return POSENC_ERR_POSITION;
    call.least = first_position;
    call.most = first_position + tokens - 1;
    status = check_memory(&call);
    return status ? status : rotate(&call);
}

enum posenc_status posenc_rope_apply_at(struct posenc_rope *rotary, enum posenc_dtype dtype,
                                        int64_t tokens, const int32_t *positions, void *q,
                                        int64_t q_heads, void *k, int64_t k_heads)
{
    struct rotary_call call = {
        .rotary = rotary,
        .dtype = dtype,
        .tokens = tokens,
        .positions = { .kind = POSENC_POSITIONS_I32, .data = positions, .stride_token = 1 },
        .least = INT32_MAX,
        .most = INT32_MIN,
        .heads = { { q, q_heads }, { k, k_heads } }
    };
    enum posenc_status status = check_scalars(&call);
    if (status || tokens == 0)
        return status;
    if (!positions || (uintptr_t)positions % sizeof *positions != 0)
        return POSENC_ERR_ARGUMENT;
    for (int64_t t = 0; t < tokens; t++) {
        call.least = positions[t] < call.least ? positions[t] : call.least;
        call.most = positions[t] > call.most ? positions[t] : call.most;
    }
    if (call.least < -INT32_MAX)
        return POSENC_ERR_POSITION;
    status = check_memory(&call);
    return status ? status : rotate(&call);
}

/* ---- Sinusoidal encodings ---- */

enum posenc_status posenc_add_sinusoids(const struct posenc_freqs *freqs,
                                        enum posenc_layout layout, enum posenc_dtype dtype,
                                        int64_t tokens, int64_t first_position, float x_scale,
                                        void *x)
{
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    if (!freqs)
        return POSENC_ERR_ARGUMENT;
    args.freqs = freqs;
    args.layout = layout;
    args.x_scale = x_scale;
    args.positions.offset = first_position;
    args.out = posenc_dense(x, 2, tokens, freqs->view.dim, 0, 0);
    args.out.dtype = dtype;
    args.x = posenc_view(args.out);
    return posenc_sinusoidal_add(NULL, &args);
}
