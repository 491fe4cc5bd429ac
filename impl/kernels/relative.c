/*
 * Kernels relative_bias and relative_bias_add: terms of the attention scores by relative position, with column c =
 * index[i - j + keys - 1] for query i and key j:
 *
 *   relative_bias      out[b, h, i, j] = fma(scale, p2c[b, h, j, c], fl(scale c2p[b, h, i, c]))
 *   relative_bias_add  out = fma(x, x_scale, the same)
 *
 * Shapes: x and out [batch, heads, queries, keys]; c2p ("content to position") [batch, heads, queries, columns]; p2c
 * [batch, heads, keys, columns]; index [queries + keys - 1], int32. Either of c2p and p2c may be absent.
 *
 * Sources: He et al. 2006.03654 (DeBERTa); Shaw et al. 1803.02155; Dai et al. 1901.02860 (Transformer-XL).
 *
 * The columns depend only on i - j. They are copied once for a panel of some hundred queries and keys, and all heads
 * read them, each query from a start that moves by one. From key to key columns rise or fall by one at most in all
 * models. The columns of a vector of keys therefore lie within one vector of a row of c2p: one load and one permutation
 * fetch them.
 *
 * A row of p2c belongs to a key, so its elements are read along the queries of a block, and the block is transposed to
 * rows of queries. Where columns advance by one from key to key, the elements are a matrix in memory with a constant
 * stride, which is transposed without a lookup. The blocks of a head follow one another, so that a line of p2c is still
 * in a cache when the next block needs the rest of it. With few keys blocks have more queries, as each block reads most
 * lines of p2c again.
 */
#include "biases.h"

/* Sizes. Rows in buffers are padded, because a power of two from row to row would map a column to few sets of the
 * cache. RELATIVE_KEY_PITCH, the floats from key to key before the transposition, is one constant for both sizes of
 * blocks, so that the loop over it has constant addresses. */
enum {
    RELATIVE_QUERIES = 512, /* size of a panel */
    RELATIVE_KEYS = 1024,
    RELATIVE_BLOCK = 16, /* queries and keys of p2c that are transposed at a time */
    RELATIVE_BLOCK_KEYS = 512,
    RELATIVE_LONG_BLOCK = 64, /* the same if keys are few */
    RELATIVE_LONG_BLOCK_KEYS = 128,
    RELATIVE_PADDING = 16, /* floats added to rows in buffers */
    RELATIVE_KEY_PITCH = RELATIVE_LONG_BLOCK + RELATIVE_PADDING,
    RELATIVE_PREFETCH_KEYS = 32,  /* distance of the prefetched row of p2c, */
    RELATIVE_PREFETCH_QUERIES = 2 /* and of c2p */
};

/* The columns of a panel: query i and key j have columns[i1 - 1 - i + j - j0]; past the end the last column
 * repeats. A vector of keys whose columns begin at columns[k] lies within the vector at start[k] of a row; start[k]
 * is -1 if they do not rise or fall steadily. */
struct relative_panel {
    int64_t i0, i1, j0, j1;
    int64_t block, pitch; /* queries per block; floats from one transposed row to the next */
    int32_t columns[RELATIVE_QUERIES + RELATIVE_KEYS + 2 * POSENC_FREQS_PAD +
                    RELATIVE_PREFETCH_KEYS];
    int32_t start[RELATIVE_QUERIES + RELATIVE_KEYS + POSENC_FREQS_PAD];
};

/* Fills the columns of a panel, and finds where vectors of keys begin. */
static void relative_columns(const struct posenc_relative_args *args,
                             const struct posenc_const_tensor *terms,
                             struct relative_panel *panel)
{
    const int64_t n = (panel->i1 - panel->i0) + (panel->j1 - panel->j0) - 1, w = vf_lanes();
    const int64_t last_start = terms->shape[3] - w;
    const int32_t *last = args->index + panel->i1 - 1 - panel->j0 + args->out.shape[3] - 1;
    int32_t *columns = panel->columns;
    int64_t rising = w, falling = w;

    for (int64_t k = 0; k < n; k++)
        columns[k] = last[-k];
    for (int64_t k = n; k < n + w + RELATIVE_PREFETCH_KEYS; k++)
        columns[k] = columns[n - 1];
    for (int64_t k = n - 1; k >= 0; k--) {
        const int32_t step = columns[k + 1] - columns[k], end = columns[k + w - 1];

        rising = step == 0 || step == 1 ? rising + 1 : 1;
        falling = step == 0 || step == -1 ? falling + 1 : 1;
        panel->start[k] = -1;
        if (last_start >= 0 && (rising >= w || falling >= w))
            panel->start[k] = (int32_t)min_i64(last_start, columns[k] < end ? columns[k] : end);
    }
}

/* Returns the elements of a row at m columns, at most a vector. `start` is that of struct relative_panel. */
SIMD_INLINE vf load_columns(enum posenc_dtype type, const void *row, const int32_t *columns,
                            int32_t start, int64_t m)
{
    if (__builtin_expect(start >= 0, 1))
        return vf_lookup(load_as(type, row, start, vf_lanes()), columns, start);
    if (type == POSENC_DTYPE_F32)
        return vf_gather_n(row, columns, m);

    /* cleared for compilers that do not see that m is not 0 */
    uint16_t picked[POSENC_FREQS_PAD] = { 0 };
    for (int64_t l = 0; l < m; l++)
        picked[l] = ((const uint16_t *)row)[columns[l]];
    return load_as(type, picked, 0, m);
}

/* ---- A key's terms ---- */

/* Elements of p2c for a block of queries and some keys. Row r belongs to query i1 - 1 - r. */
struct relative_transposed {
    _Alignas(
        64) float rows[RELATIVE_LONG_BLOCK * (RELATIVE_LONG_BLOCK_KEYS + RELATIVE_PADDING)];
};
_Static_assert(RELATIVE_BLOCK *(RELATIVE_BLOCK_KEYS + RELATIVE_PADDING) <=
                   RELATIVE_LONG_BLOCK * (RELATIVE_LONG_BLOCK_KEYS + RELATIVE_PADDING),
               "either form of a block has room");

/* Returns true if n columns, at least a vector, advance by `step` each. */
static inline bool advances_by(int32_t step, const int32_t *columns, const int32_t *start,
                               int64_t n)
{
    const int64_t w = vf_lanes(), last = n - w;

    for (int64_t k = 0;; k = min_i64(k + w - 1, last)) {
        if (start[k] < 0 || columns[k + w - 1] - columns[k] != step * (int32_t)(w - 1))
            return false;
        if (k == last)
            return true;
    }
}

/* Stores a vector of keys for each of four queries. */
SIMD_INLINE void store_queries(float *transposed, int64_t pitch, vf a, vf b, vf c, vf d)
{
    vf_store(transposed, a);
    vf_store(transposed + pitch, b);
    vf_store(transposed + 2 * pitch, c);
    vf_store(transposed + 3 * pitch, d);
}

/* Transposes the elements of a vector of keys whose columns advance by `step` from key to key and from query to
 * query. `next` is the number of floats from key to key. */
SIMD_INLINE void transpose_matrix(int32_t step, const float *p2c, int64_t next, int64_t rows,
                                  int64_t pitch, float *transposed)
{
    for (int64_t r = 0; r < rows; r += 4, transposed += 4 * pitch) {
        vf a, b, c, d;

        if (step > 0)
            vf_load4(p2c + r, next + step, &a, &b, &c, &d);
        else
            vf_load4(p2c - r - 3, next + step, &d, &c, &b, &a);
        store_queries(transposed, pitch, a, b, c, d);
    }
}

/* Transposes the elements as a matrix if columns advance by 1 or -1 throughout. Returns false if they do not. */
SIMD_INLINE bool try_transpose_matrix(enum posenc_dtype type, const char *p2c, int64_t next,
                                      int64_t m, int64_t rows, const int32_t *columns,
                                      const int32_t *start, int64_t pitch, float *transposed)
{
    enum { FARTHEST = 1 << 24 }; /* largest stride of vf_load4, in floats */
    const int64_t w = vf_lanes(), floats = next / (int64_t)sizeof(float), n = rows + w - 1;

    if (type != POSENC_DTYPE_F32 || w == 1 || m < w || rows % 4 != 0 ||
        floats >= FARTHEST - 1 || floats <= 1 - FARTHEST)
        return false;
    const float *first = (const float *)p2c + *columns;
    if (advances_by(-1, columns, start, n))
        transpose_matrix(-1, first, floats, rows, pitch, transposed);
    else if (advances_by(1, columns, start, n))
        transpose_matrix(1, first, floats, rows, pitch, transposed);
    else
        return false;
    return true;
}

/* Transposes the elements of m keys, at most a vector, for `rows` queries; p2c is the first key's row. Without a
 * constant stride they are first read as vectors of queries. */
SIMD_INLINE void transpose_keys(enum posenc_dtype type, bool prefetches, const char *p2c,
                                int64_t next, int64_t m, int64_t rows,
                                const struct relative_panel *panel, int64_t at,
                                float *transposed)
{
    _Alignas(64) float keys[POSENC_FREQS_PAD * RELATIVE_KEY_PITCH + POSENC_FREQS_PAD];
    const int64_t w = vf_lanes(), size = (int64_t)posenc_dtype_size(type);
    const int64_t pitch = panel->pitch;
    const int32_t *columns = panel->columns + at, *start = panel->start + at;

    for (int64_t k = 0; prefetches && k < m; k++)
        prefetch_at(p2c, (RELATIVE_PREFETCH_KEYS + k) * next +
                             columns[RELATIVE_PREFETCH_KEYS + k] * size);
    if (try_transpose_matrix(type, p2c, next, m, rows, columns, start, pitch, transposed))
        return;
    for (int64_t k = 0; k < m; k++, p2c += next)
        for (int64_t r = 0; r < rows; r += w)
            vf_store(
                keys + k * RELATIVE_KEY_PITCH + r,
                load_columns(type, p2c, columns + k + r, start[k + r], min_i64(rows - r, w)));
    for (int64_t r = 0; r < rows; r += 4, transposed += 4 * pitch) {
        vf a, b, c, d;

        vf_load4(keys + r, RELATIVE_KEY_PITCH, &a, &b, &c, &d);
        store_queries(transposed, pitch, a, b, c, d);
    }
}

/* Transposes the elements of n keys for a few queries, one by one. */
SIMD_INLINE void transpose_few(enum posenc_dtype type, bool prefetches, const char *p2c,
                               int64_t next, int64_t n, int64_t rows, const int32_t *columns,
                               int64_t pitch, float *transposed)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);

    for (int64_t k = 0; k < n; k++, p2c += next) {
        if (prefetches)
            prefetch_at(p2c, RELATIVE_PREFETCH_KEYS * next +
                                 columns[RELATIVE_PREFETCH_KEYS + k] * size);
        for (int64_t r = 0; r < rows; r++)
            transposed[r * pitch + k] = posenc_get(type, p2c, columns[k + r]);
    }
}

/* Transposes the elements of queries [i0, i1), at most a block, and of keys [j0, j0 + n). */
SIMD_INLINE void transpose_p2c(enum posenc_dtype type, bool prefetches,
                               const struct posenc_relative_args *args,
                               const struct relative_panel *panel, int64_t b, int64_t h,
                               int64_t i0, int64_t i1, int64_t j0, int64_t n,
                               struct relative_transposed *transposed)
{
    enum { FEW = 4 };
    const int64_t at = panel->i1 - i1 + j0 - panel->j0, w = vf_lanes(), rows = i1 - i0;
    const int64_t next = args->p2c.stride[2] * (int64_t)posenc_dtype_size(type);
    const char *p2c = input_row(&args->p2c, b, h, j0);

    if (rows <= FEW) {
        transpose_few(type, prefetches, p2c, next, n, rows, panel->columns + at, panel->pitch,
                      transposed->rows);
        return;
    }
    for (int64_t k = 0; k < n; k += w) { /* the last vector may overlap the one before */
        const int64_t j = n < w ? k : min_i64(k, n - w);

        transpose_keys(type, prefetches, p2c + j * next, next, min_i64(n - j, w), rows, panel,
                       at + j, transposed->rows + j);
    }
}

/* ---- A query's row ---- */

/* Terms that a call has. */
enum terms { C2P = 1, P2C = 2, C2P_AND_P2C = C2P | P2C };

/* Rows of the terms at the first of some keys, with their columns: c2p as it lies, p2c transposed. c2p_prefetch:
 * bytes to the row of c2p to prefetch. */
struct relative_terms {
    const char *c2p;
    const float *p2c;
    const int32_t *columns, *start;
    int64_t c2p_prefetch;
};

/* Returns the biases of m keys from the k-th on, at most a vector. */
SIMD_INLINE vf relative_vector(enum posenc_dtype type, enum terms which,
                               const struct relative_terms *terms, vf scale, int64_t k,
                               int64_t m)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    vf bias = scale;

    if (which & C2P) {
        const int32_t start = terms->start[k];

        prefetch_at(terms->c2p, terms->c2p_prefetch + start * size);
        bias = vf_mul(scale, load_columns(type, terms->c2p, terms->columns + k, start, m));
    }
    if (which & P2C) {
        vf p2c = load_as(POSENC_DTYPE_F32, terms->p2c, k, m);
        bias = which & C2P ? vf_fma(scale, p2c, bias) : vf_mul(scale, p2c);
    }
    return bias;
}

/* Puts biases k to n - 1 vector by vector, the last vector in part. */
SIMD_INLINE void relative_single_vectors(enum posenc_dtype type, enum store_mode mode,
                                         enum terms which, const struct relative_terms *terms,
                                         vf scale, vf x_scale, const void *x, void *out,
                                         int64_t j, int64_t k, int64_t n)
{
    int64_t w = vf_lanes();

    for (; k + w <= n; k += w)
        put_bias(type, mode, x, x_scale, out, j + k,
                 relative_vector(type, which, terms, scale, k, w), w);
    if (k < n)
        put_bias(type, mode, x, x_scale, out, j + k,
                 relative_vector(type, which, terms, scale, k, n - k), n - k);
}

/* Puts a row of n keys from j on. */
SIMD_INLINE void relative_row(enum posenc_dtype type, enum store_mode mode, enum terms which,
                              const struct relative_terms *terms, vf scale, vf x_scale,
                              const void *x, void *out, int64_t j, int64_t n)
{
    int64_t w = vf_lanes(), k = mode_streams(mode) ? to_line_boundary(type, out, j, n) : 0;

    if (mode_streams(mode))
        relative_single_vectors(type, mode, which, terms, scale, x_scale, x, out, j, 0, k);
    for (; k + 4 * w <= n; k += 4 * w)
        put_four(type, mode, x, x_scale, out, j + k,
                 relative_vector(type, which, terms, scale, k, w),
                 relative_vector(type, which, terms, scale, k + w, w),
                 relative_vector(type, which, terms, scale, k + 2 * w, w),
                 relative_vector(type, which, terms, scale, k + 3 * w, w));
    relative_single_vectors(type, mode, which, terms, scale, x_scale, x, out, j, k, n);
}

/* Puts n keys from j on for the queries [i0, i1). Pointers advance from row to row and stay in registers. */
SIMD_INLINE void relative_rows(enum posenc_dtype type, enum store_mode mode, enum terms which,
                               const struct posenc_relative_args *args,
                               const struct relative_panel *panel, int64_t b, int64_t h,
                               int64_t i0, int64_t i1, int64_t j, int64_t n,
                               const struct relative_transposed *transposed)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t x_next = args->x.stride[2] * size, out_next = args->out.stride[2] * size;
    const int64_t c2p_next = args->c2p.stride[2] * size, last = panel->i1 - 1 + j - panel->j0;
    const vf scale = vf_pin(vf_set1(args->scale)), x_scale = vf_pin(vf_set1(args->x_scale));
    const char *c2p = which & C2P ? input_row(&args->c2p, b, h, i0) : NULL;
    const char *x = mode_adds(mode) ? input_row(&args->x, b, h, i0) : NULL;
    char *out = output_row(&args->out, b, h, i0);

    for (int64_t i = i0; i < i1; i++, out += out_next) {
        const struct relative_terms terms = {
            .c2p = c2p,
            .c2p_prefetch = RELATIVE_PREFETCH_QUERIES * c2p_next,
            .columns = panel->columns + last - i,
            .start = panel->start + last - i,
            .p2c = transposed->rows + (i1 - 1 - i) * panel->pitch
        };

        relative_row(type, mode, which, &terms, scale, x_scale, x, out, j, n);
        if (mode_adds(mode))
            x += x_next;
        if (which & C2P)
            c2p += c2p_next;
    }
}

/* Puts n keys from j on for a block of queries. p2c is prefetched if it may come from DRAM. */
SIMD_INLINE void relative_block(enum posenc_dtype type, enum store_mode mode,
                                const struct posenc_relative_args *args,
                                const struct relative_panel *panel, int64_t b, int64_t h,
                                int64_t i0, int64_t i1, int64_t j, int64_t n)
{
    const bool exceeds_cache = mode != STORE && mode != ADD && mode != ADD_UNSCALED;
    struct relative_transposed transposed;

    if (args->p2c.data)
        transpose_p2c(type, exceeds_cache || panel->block == RELATIVE_BLOCK, args, panel, b, h,
                      i0, i1, j, n, &transposed);
    if (!args->p2c.data)
        relative_rows(type, mode, C2P, args, panel, b, h, i0, i1, j, n, &transposed);
    else if (!args->c2p.data)
        relative_rows(type, mode, P2C, args, panel, b, h, i0, i1, j, n, &transposed);
    else
        relative_rows(type, mode, C2P_AND_P2C, args, panel, b, h, i0, i1, j, n, &transposed);
}

/* Puts the part of a head that lies in the panel. */
SIMD_INLINE void relative_blocks(enum posenc_dtype type, enum store_mode mode,
                                 const struct posenc_relative_args *args,
                                 const struct relative_panel *panel, int64_t b, int64_t h)
{
    int64_t most = args->p2c.data ? panel->pitch - RELATIVE_PADDING : RELATIVE_KEYS;

    for (int64_t i = panel->i0; i < panel->i1; i += panel->block)
        for (int64_t j = panel->j0; j < panel->j1; j += most)
            relative_block(type, mode, args, panel, b, h, i,
                           min_i64(i + panel->block, panel->i1), j,
                           min_i64(panel->j1 - j, most));
}

/* Puts all scores, panel by panel. */
SIMD_INLINE void relative_panels(enum posenc_dtype type, enum store_mode mode,
                                 const struct posenc_relative_args *given)
{
    const struct posenc_relative_args copy = *given, *args = &copy;
    struct relative_panel panel;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    const bool few = keys <= RELATIVE_LONG_BLOCK_KEYS;

    panel.block = few ? RELATIVE_LONG_BLOCK : RELATIVE_BLOCK;
    panel.pitch = (few ? RELATIVE_LONG_BLOCK_KEYS : RELATIVE_BLOCK_KEYS) + RELATIVE_PADDING;
    for (int64_t i = 0; i < queries; i += RELATIVE_QUERIES)
        for (int64_t j = 0; j < keys; j += RELATIVE_KEYS) {
            panel.i0 = i;
            panel.i1 = min_i64(i + RELATIVE_QUERIES, queries);
            panel.j0 = j;
            panel.j1 = min_i64(j + RELATIVE_KEYS, keys);
            relative_columns(args, args->c2p.data ? &args->c2p : &args->p2c, &panel);
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                for (int64_t h = 0; h < args->out.shape[1]; h++)
                    relative_blocks(type, mode, args, &panel, b, h);
        }
}

INSTANCES_WRITING(relative_panels, posenc_relative_args)
INSTANCES_ADDING(relative_panels, posenc_relative_args)

enum posenc_status KERNEL(relative_bias)(const struct posenc_relative_args *args)
{
    RUN_WRITING(relative_panels, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(relative_bias_add)(const struct posenc_relative_args *args)
{
    RUN_ADDING(relative_panels, args);
    return POSENC_OK;
}
