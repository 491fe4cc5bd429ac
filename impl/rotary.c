/*
 * The simple case: a model's rotation as one object, and a sinusoidal encoding in one call.
 *
 * The rows of cosines and sines that a rotation has are made once, for positions 0 up to a power
 * of two, and kept in an immutable table behind one atomic pointer. Whoever needs more makes a
 * larger table; the smaller ones stay until the object is destroyed, for other threads may be
 * reading them, and together they are no larger than the last. Positions that no such table is
 * for (negative ones, and those beyond MOST_ROWS) get their rows for the one call. A row's value
 * depends on its position alone, so all three ways give the same bits.
 */
#include "internal.h"
#include "validate.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { FIRST_ROWS = 512, MOST_ROWS = 1 << 20 };

/* Cosines and sines of the positions 0 ... rows - 1: [rows][pairs] each, one after the other. */
struct rows {
    const struct rows *previous;
    int64_t rows;
    float cosines[];
};

struct posenc_rotary {
    struct posenc_freqs *freqs;
    int64_t head_dim, pairs;
    enum posenc_pairing pairing;
    _Atomic(const struct rows *) rows;
};

/* One call. */
struct turn {
    struct posenc_rotary *rotary;
    enum posenc_dtype dtype;
    int64_t tokens;
    struct posenc_positions positions; /* an offset or int32 */
    int64_t least, most;               /* of the positions */
    struct {
        void *data;
        int64_t n;
    } heads[2]; /* of q and k */
};

static enum posenc_status compute(const struct posenc_rotary *rotary,
                                  struct posenc_positions positions, int64_t n, float *cosines,
                                  float *sines)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.freqs = rotary->freqs;
    args.positions = positions;
    args.cos = posenc_dense(cosines, 2, n, rotary->pairs, 0, 0);
    args.sin = posenc_dense(sines, 2, n, rotary->pairs, 0, 0);
    return posenc_rope_table(NULL, &args);
}

/* NULL without memory, or where n rows exceed the address space. */
static struct rows *allocate_rows(const struct posenc_rotary *rotary, int64_t n)
{
    const size_t pair = 2 * sizeof(float); /* a cosine and a sine */
    size_t most = (PTRDIFF_MAX - sizeof(struct rows)) / pair;
    if ((uint64_t)n > most / (uint64_t)rotary->pairs)
        return NULL;
    struct rows *rows = malloc(sizeof *rows + (size_t)n * (size_t)rotary->pairs * pair);
    if (rows)
        *rows = (struct rows){ .rows = n };
    return rows;
}

/* ---- The object ---- */

enum posenc_status posenc_rotary_create(const struct posenc_freqs_spec *spec, int64_t head_dim,
                                        enum posenc_pairing pairing,
                                        struct posenc_rotary **rotary,
                                        struct posenc_error *error)
{
    struct posenc_freqs *freqs;
    if (!rotary)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "rotary (NULL)", 0.0, 1.0, 0.0);
    if ((unsigned)pairing > POSENC_PAIRS_INTERLEAVED)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "pairing", (double)pairing,
                             POSENC_PAIRS_HALF, POSENC_PAIRS_INTERLEAVED);
    enum posenc_status status = posenc_freqs_create(spec, &freqs, error);
    if (status)
        return status;
    int64_t dim = freqs->view.dim;
    if (dim % 2 != 0)
        status = posenc_refuse(error, POSENC_ERR_ODD, "dim of the spec", (double)dim, 1.0, 0.0);
    else if (head_dim < dim || head_dim > INT32_MAX)
        status =
            posenc_refuse(error, POSENC_ERR_ROTARY_DIM, "head_dim (dim of the spec at least)",
                          (double)head_dim, (double)dim, (double)INT32_MAX);
    struct posenc_rotary *made = status ? NULL : malloc(sizeof *made);
    if (!status && !made)
        status =
            posenc_refuse(error, POSENC_ERR_MEMORY, "memory for a rotation", 0.0, 1.0, 0.0);
    if (status) {
        posenc_freqs_destroy(freqs);
        return status;
    }
    *made = (struct posenc_rotary){
        .freqs = freqs, .head_dim = head_dim, .pairs = dim / 2, .pairing = pairing
    };
    *rotary = made;
    return POSENC_OK;
}

void posenc_rotary_destroy(struct posenc_rotary *rotary)
{
    if (!rotary)
        return;
    for (const struct rows *rows = atomic_load(&rotary->rows), *previous; rows;
         rows = previous) {
        previous = rows->previous;
        free((void *)(uintptr_t)rows);
    }
    posenc_freqs_destroy(rotary->freqs);
    free(rotary);
}

const struct posenc_freqs *posenc_rotary_freqs(const struct posenc_rotary *rotary)
{
    return rotary->freqs;
}

/* Rows for the positions 0 ... n - 1, n up to MOST_ROWS. */
static enum posenc_status grow_to(struct posenc_rotary *rotary, int64_t n)
{
    const struct rows *have = atomic_load_explicit(&rotary->rows, memory_order_acquire);
    int64_t want = FIRST_ROWS;
    if (have && have->rows >= n)
        return POSENC_OK;
    while (want < n)
        want *= 2;
    struct rows *rows = allocate_rows(rotary, want);
    if (!rows)
        return POSENC_ERR_MEMORY;
    enum posenc_status status = compute(rotary, (struct posenc_positions){ 0 }, want,
                                        rows->cosines, rows->cosines + want * rotary->pairs);
    if (status) {
        free(rows);
        return status;
    }
    /* Another thread's may have come in between: behind this one, or, if it suffices, instead. */
    rows->previous = have;
    while (!atomic_compare_exchange_weak(&rotary->rows, &rows->previous, rows))
        if (rows->previous && rows->previous->rows >= want) {
            free(rows);
            break;
        }
    return POSENC_OK;
}

enum posenc_status posenc_rotary_reserve(struct posenc_rotary *rotary, int64_t positions)
{
    if (!rotary)
        return POSENC_ERR_ARGUMENT;
    if (positions < 0 || positions > MOST_ROWS)
        return POSENC_ERR_POSITION;
    return grow_to(rotary, positions);
}

/* ---- A turn ---- */

/* By `n` rows of cosines, then as many of sines. */
static enum posenc_status turn_by(const struct turn *turn, const float *rows, int64_t n)
{
    const struct posenc_rotary *rotary = turn->rotary;
    enum posenc_status status = POSENC_OK;
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions = turn->positions;
    args.cos = posenc_const_dense(rows, 2, n, rotary->pairs, 0, 0);
    args.sin = posenc_const_dense(rows + n * rotary->pairs, 2, n, rotary->pairs, 0, 0);
    for (int i = 0; i < 2 && !status; i++) {
        args.out = posenc_dense(turn->heads[i].data, 3, turn->tokens, turn->heads[i].n,
                                rotary->head_dim, 0);
        args.out.dtype = turn->dtype;
        args.x = posenc_view(args.out);
        if (turn->heads[i].n != 0)
            status = rotary->pairing == POSENC_PAIRS_HALF
                         ? posenc_rope_half(NULL, &args)
                         : posenc_rope_interleaved(NULL, &args);
    }
    return status;
}

/* By rows for these tokens alone. */
static enum posenc_status turn_once(struct turn *turn)
{
    int64_t n = turn->tokens;
    struct rows *rows = allocate_rows(turn->rotary, n);
    if (!rows)
        return POSENC_ERR_MEMORY;
    enum posenc_status status = compute(turn->rotary, turn->positions, n, rows->cosines,
                                        rows->cosines + n * turn->rotary->pairs);
    turn->positions = (struct posenc_positions){ 0 };
    if (!status)
        status = turn_by(turn, rows->cosines, n);
    free(rows);
    return status;
}

/* By the rows that are kept, unless xPos or the distance make none for all positions up to it. */
static enum posenc_status turn(struct turn *turn)
{
    if (turn->heads[0].n == 0 && turn->heads[1].n == 0)
        return POSENC_OK;
    if (turn->least < 0 || turn->most >= MOST_ROWS)
        return turn_once(turn);
    enum posenc_status status = grow_to(turn->rotary, turn->most + 1);
    if (status)
        return status == POSENC_ERR_POSITION ? turn_once(turn) : status;
    const struct rows *rows = atomic_load_explicit(&turn->rotary->rows, memory_order_acquire);
    return turn_by(turn, rows->cosines, rows->rows);
}

/* The bytes of q or k; empty: none. */
static enum posenc_status find_span(const struct turn *turn, int i, struct span *span)
{
    int64_t n = turn->heads[i].n;
    size_t item = posenc_dtype_size(turn->dtype);
    uintptr_t first = (uintptr_t)turn->heads[i].data;
    *span = (struct span){ 0, 0 };
    if (n < 0 || n > INT32_MAX)
        return POSENC_ERR_SHAPE;
    if (n == 0)
        return POSENC_OK;
    if (first == 0 || first % item != 0)
        return POSENC_ERR_ARGUMENT;
    uint64_t row = (uint64_t)n * (uint64_t)turn->rotary->head_dim * item; /* below 2^64 */
    uint64_t most = UINTPTR_MAX - first < INT64_MAX ? UINTPTR_MAX - first : INT64_MAX;
    if (row > most / (uint64_t)turn->tokens)
        return POSENC_ERR_OVERFLOW;
    *span = (struct span){ first, first + (uintptr_t)(row * (uint64_t)turn->tokens) };
    return POSENC_OK;
}

/* All that kernels could refuse of k when they have turned q. */
static enum posenc_status check(const struct turn *turn)
{
    struct span spans[2], positions = { 0, 0 };
    enum posenc_status status = find_span(turn, 0, &spans[0]);
    if (!status)
        status = find_span(turn, 1, &spans[1]);
    if (!status)
        status = posenc_check_apart(spans[0], spans[1], "", NULL);
    if (turn->positions.kind != POSENC_OFFSET)
        positions =
            (struct span){ (uintptr_t)turn->positions.data,
                           (uintptr_t)((const int32_t *)turn->positions.data + turn->tokens) };
    for (int i = 0; i < 2 && !status; i++)
        status = posenc_check_apart(spans[i], positions, "", NULL);
    return status;
}

/* Checks a call before its positions are read. */
static enum posenc_status begin(const struct turn *turn)
{
    if (!turn->rotary)
        return POSENC_ERR_ARGUMENT;
    if ((unsigned)turn->dtype > POSENC_BF16)
        return POSENC_ERR_DTYPE;
    return turn->tokens < 0 || turn->tokens > INT32_MAX ? POSENC_ERR_SHAPE : POSENC_OK;
}

enum posenc_status posenc_rotary_turn(struct posenc_rotary *rotary, enum posenc_dtype dtype,
                                      int64_t tokens, int64_t first_position, void *q,
                                      int64_t q_heads, void *k, int64_t k_heads)
{
    struct turn call = { .rotary = rotary,
                         .dtype = dtype,
                         .tokens = tokens,
                         .positions.offset = first_position,
                         .heads = { { q, q_heads }, { k, k_heads } } };
    enum posenc_status status = begin(&call);
    if (status || tokens == 0)
        return status;
    if (first_position < -INT32_MAX || first_position > INT32_MAX - (tokens - 1))
        return POSENC_ERR_POSITION;
    call.least = first_position;
    call.most = first_position + tokens - 1;
    status = check(&call);
    return status ? status : turn(&call);
}

enum posenc_status posenc_rotary_turn_at(struct posenc_rotary *rotary, enum posenc_dtype dtype,
                                         int64_t tokens, const int32_t *positions, void *q,
                                         int64_t q_heads, void *k, int64_t k_heads)
{
    struct turn call = {
        .rotary = rotary,
        .dtype = dtype,
        .tokens = tokens,
        .positions = { .kind = POSENC_POSITIONS_I32, .data = positions, .stride_token = 1 },
        .least = INT32_MAX,
        .most = INT32_MIN,
        .heads = { { q, q_heads }, { k, k_heads } }
    };
    enum posenc_status status = begin(&call);
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
    status = check(&call);
    return status ? status : turn(&call);
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
