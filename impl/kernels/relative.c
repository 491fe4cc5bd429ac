/*
 * Kernels relative_bias and relative_bias_add: terms of attention by relative position, written
 * out or added to scores as they pass, with c = index[i - j + keys - 1]:
 *
 *     fma(scale, p2c[b,h,j,c], fl(scale c2p[b,h,i,c]))    (DeBERTa 2006.03654,
 *                                      Shaw 1803.02155, Transformer-XL 1901.02860)
 *
 * Queries and keys are taken in panels: some hundred queries by some hundred keys. The columns
 * of a panel are one line, made once for all heads and read at a moving start as the biases of
 * t5.c are. Columns of all builders rise or fall by one at most from key to key, so that
 * those of a vector lie within one vector of a row, and one load and one permutation fetch
 * them.
 *
 * A query's row of c2p is read along the keys. A key's row of p2c is read along the queries of
 * a block, and a block's rows of keys are then turned into rows of queries. Where columns go on by one
 * each, as between buckets they do, a block's elements of p2c are a matrix in memory, whose rows lie a
 * key and a column apart, and it is turned as it lies. The blocks of a
 * head follow one another, so that a line of p2c is still near when the next one needs the rest
 * of it. Where keys are few, blocks are long: rows of keys that lie 2 KiB apart share few sets of
 * the nearest cache, and each block reads most of its lines once more (0.9 of the time in L2, Zen 5).
 */
#include "scores.h"

/* Queries and keys of a panel; queries of a block and keys of its rows where p2c is turned, and the same
 * where keys are few. RELATIVE_APART floats more lie from one row to the next, turned or not: a power of two
 * would map a key's elements to the same few lines of a cache. RELATIVE_KEY_PITCH, of those not yet turned, is
 * one for all blocks, so that the loop that turns them knows its addresses. RELATIVE_AHEAD: keys from the row
 * of p2c that is read to the one asked for, at the column of the block's last query, which the block before did
 * not reach, unless keys are few and they are in a cache (1.1 times the time in L2); RELATIVE_SOON: queries, of
 * c2p. */
enum {
    RELATIVE_QUERIES = 512,
    RELATIVE_KEYS = 1024,
    RELATIVE_BLOCK = 16,
    RELATIVE_TERMS = 512,
    RELATIVE_LONG_BLOCK = 64,
    RELATIVE_FEW_TERMS = 128,
    RELATIVE_APART = 16,
    RELATIVE_KEY_PITCH = RELATIVE_LONG_BLOCK + RELATIVE_APART,
    RELATIVE_AHEAD = 32,
    RELATIVE_SOON = 2
};

/* Columns of a panel: that of query i and key j is columns[i1 - 1 - i + j - j0], and past the last one they
 * go on as it is. start[k]: where a vector of a row begins that has the columns of a vector of them from k
 * on, for they rise by one at most each, or fall so; -1: there is none. */
struct relative_panel {
    int64_t i0, i1, j0, j1;
    int64_t block, pitch; /* queries; from one turned row to the next */
    int32_t columns[RELATIVE_QUERIES + RELATIVE_KEYS + 2 * POSENC_PLAN_PAD + RELATIVE_AHEAD];
    int32_t start[RELATIVE_QUERIES + RELATIVE_KEYS + POSENC_PLAN_PAD];
};

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
    for (int64_t k = n; k < n + w + RELATIVE_AHEAD; k++)
        columns[k] = columns[n - 1];
    for (int64_t k = n - 1; k >= 0; k--) {
        const int32_t step = columns[k + 1] - columns[k], end = columns[k + w - 1];

        rising = step == 0 || step == 1 ? rising + 1 : 1;
        falling = step == 0 || step == -1 ? falling + 1 : 1;
        panel->start[k] = -1;
        if (last_start >= 0 && (rising >= w || falling >= w))
            panel->start[k] = (int32_t)least(last_start, columns[k] < end ? columns[k] : end);
    }
}

/* Elements of a row at m columns, at most the lanes; start: see struct relative_panel. */
SIMD_INLINE vf load_columns(enum posenc_dtype type, const void *row, const int32_t *columns,
                            int32_t start, int64_t m)
{
    if (__builtin_expect(start >= 0, 1))
        return vf_lookup(load_as(type, row, start, vf_lanes()), columns, start);
    if (type == POSENC_F32)
        return vf_gather_n(row, columns, m);

    /* Cleared for compilers that do not see that m is not 0. */
    uint16_t picked[POSENC_PLAN_PAD] = { 0 };
    for (int64_t l = 0; l < m; l++)
        picked[l] = ((const uint16_t *)row)[columns[l]];
    return load_as(type, picked, 0, m);
}

/* ---- A key's terms ---- */

/* The elements of p2c of a block of queries and some keys: query i1 - 1 - r has row r. */
struct relative_turned {
    _Alignas(64) float rows[RELATIVE_LONG_BLOCK * (RELATIVE_FEW_TERMS + RELATIVE_APART)];
};
_Static_assert(RELATIVE_BLOCK *(RELATIVE_TERMS + RELATIVE_APART) <=
                   RELATIVE_LONG_BLOCK * (RELATIVE_FEW_TERMS + RELATIVE_APART),
               "either form of a block has room");

/* Returns true if n columns, at least a vector, advance by `step` each; start: see struct relative_panel. */
static inline bool go_on_by(int32_t step, const int32_t *columns, const int32_t *start,
                            int64_t n)
{
    const int64_t w = vf_lanes(), last = n - w;

    for (int64_t k = 0;; k = least(k + w - 1, last)) {
        if (start[k] < 0 || columns[k + w - 1] - columns[k] != step * (int32_t)(w - 1))
            return false;
        if (k == last)
            return true;
    }
}

/* Four queries' elements, a vector of keys of each. */
SIMD_INLINE void store_queries(float *turned, int64_t pitch, vf a, vf b, vf c, vf d)
{
    vf_store(turned, a);
    vf_store(turned + pitch, b);
    vf_store(turned + 2 * pitch, c);
    vf_store(turned + 3 * pitch, d);
}

/* The elements of a vector of keys, whose first row is p2c, where their columns go on by `step` from key to key
 * and from query to query: four queries at a time. next: floats. */
SIMD_INLINE void turn_matrix(int32_t step, const float *p2c, int64_t next, int64_t rows,
                             int64_t pitch, float *turned)
{
    for (int64_t r = 0; r < rows; r += 4, turned += 4 * pitch) {
        vf a, b, c, d;

        if (step > 0)
            vf_load4(p2c + r, next + step, &a, &b, &c, &d);
        else
            vf_load4(p2c - r - 3, next + step, &d, &c, &b, &a);
        store_queries(turned, pitch, a, b, c, d);
    }
}

/* The same where they do; false: they do not. */
SIMD_INLINE bool turned_matrix(enum posenc_dtype type, const char *p2c, int64_t next, int64_t m,
                               int64_t rows, const int32_t *columns, const int32_t *start,
                               int64_t pitch, float *turned)
{
    enum { FARTHEST = 1 << 24 }; /* that vf_load4 goes from row to row, in floats */
    const int64_t w = vf_lanes(), floats = next / (int64_t)sizeof(float), n = rows + w - 1;

    if (type != POSENC_F32 || w == 1 || m < w || rows % 4 != 0 || floats >= FARTHEST - 1 ||
        floats <= 1 - FARTHEST)
        return false;
    const float *first = (const float *)p2c + *columns;
    if (go_on_by(-1, columns, start, n))
        turn_matrix(-1, first, floats, rows, pitch, turned);
    else if (go_on_by(1, columns, start, n))
        turn_matrix(1, first, floats, rows, pitch, turned);
    else
        return false;
    return true;
}

/* Transposes the terms of m keys, at most a vector, whose first row is p2c. They are read as vectors of
 * queries, and from there, four queries at a time, as vectors of keys. */
SIMD_INLINE void turn_keys(enum posenc_dtype type, bool asks, const char *p2c, int64_t next,
                           int64_t m, int64_t rows, const struct relative_panel *panel,
                           int64_t at, float *turned)
{
    _Alignas(64) float keys[POSENC_PLAN_PAD * RELATIVE_KEY_PITCH + POSENC_PLAN_PAD];
    const int64_t w = vf_lanes(), size = (int64_t)posenc_dtype_size(type);
    const int64_t pitch = panel->pitch;
    const int32_t *columns = panel->columns + at, *start = panel->start + at;

    for (int64_t k = 0; asks && k < m; k++)
        ask_for(p2c, (RELATIVE_AHEAD + k) * next + columns[RELATIVE_AHEAD + k] * size);
    if (turned_matrix(type, p2c, next, m, rows, columns, start, pitch, turned))
        return;
    for (int64_t k = 0; k < m; k++, p2c += next)
        for (int64_t r = 0; r < rows; r += w)
            vf_store(
                keys + k * RELATIVE_KEY_PITCH + r,
                load_columns(type, p2c, columns + k + r, start[k + r], least(rows - r, w)));
    for (int64_t r = 0; r < rows; r += 4, turned += 4 * pitch) {
        vf a, b, c, d;

        vf_load4(keys + r, RELATIVE_KEY_PITCH, &a, &b, &c, &d);
        store_queries(turned, pitch, a, b, c, d);
    }
}

/* The same of a few queries, one by one. */
SIMD_INLINE void pick_keys(enum posenc_dtype type, bool asks, const char *p2c, int64_t next,
                           int64_t n, int64_t rows, const int32_t *columns, int64_t pitch,
                           float *turned)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);

    for (int64_t k = 0; k < n; k++, p2c += next) {
        if (asks)
            ask_for(p2c, RELATIVE_AHEAD * next + columns[RELATIVE_AHEAD + k] * size);
        for (int64_t r = 0; r < rows; r++)
            turned[r * pitch + k] = posenc_get(type, p2c, columns[k + r]);
    }
}

/* Transposes the terms of queries i0 to i1 - 1, at most a block, and n keys from j0 on. */
SIMD_INLINE void turn_p2c(enum posenc_dtype type, bool asks,
                          const struct posenc_relative_args *args,
                          const struct relative_panel *panel, int64_t b, int64_t h, int64_t i0,
                          int64_t i1, int64_t j0, int64_t n, struct relative_turned *turned)
{
    enum { FEW = 4 };
    const int64_t at = panel->i1 - i1 + j0 - panel->j0, w = vf_lanes(), rows = i1 - i0;
    const int64_t next = args->p2c.stride[2] * (int64_t)posenc_dtype_size(type);
    const char *p2c = input_at(&args->p2c, b, h, j0);

    if (rows <= FEW) {
        pick_keys(type, asks, p2c, next, n, rows, panel->columns + at, panel->pitch,
                  turned->rows);
        return;
    }
    for (int64_t k = 0; k < n; k += w) { /* the last vector takes some keys again */
        const int64_t j = n < w ? k : least(k, n - w);

        turn_keys(type, asks, p2c + j * next, next, least(n - j, w), rows, panel, at + j,
                  turned->rows + j);
    }
}

/* ---- A query's row ---- */

/* Terms of a call. */
enum terms { C2P = 1, P2C = 2, C2P_AND_P2C = C2P | P2C };

/* Addresses of the terms of some keys, and their columns: rows of c2p and, transposed, of p2c. soon:
 * bytes to the row of c2p to prefetch. */
struct relative_terms {
    const char *c2p;
    const float *p2c;
    const int32_t *columns, *start;
    int64_t soon;
};

/* Biases of m keys from k on. */
SIMD_INLINE vf relative_keys(enum posenc_dtype type, enum terms which,
                             const struct relative_terms *terms, vf scale, int64_t k, int64_t m)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    vf bias = scale;

    if (which & C2P) {
        const int32_t start = terms->start[k];

        ask_for(terms->c2p, terms->soon + start * size);
        bias = vf_mul(scale, load_columns(type, terms->c2p, terms->columns + k, start, m));
    }
    if (which & P2C) {
        vf p2c = load_as(POSENC_F32, terms->p2c, k, m);
        bias = which & C2P ? vf_fma(scale, p2c, bias) : vf_mul(scale, p2c);
    }
    return bias;
}

/* Vectors from k on up to n biases, the last one in part. */
SIMD_INLINE void relative_some(enum posenc_dtype type, enum how how, enum terms which,
                               const struct relative_terms *terms, vf scale, vf x_scale,
                               const void *x, void *out, int64_t j, int64_t k, int64_t n)
{
    int64_t w = vf_lanes();

    for (; k + w <= n; k += w)
        put_bias(type, how, x, x_scale, out, j + k,
                 relative_keys(type, which, terms, scale, k, w), w);
    if (k < n)
        put_bias(type, how, x, x_scale, out, j + k,
                 relative_keys(type, which, terms, scale, k, n - k), n - k);
}

SIMD_INLINE void relative_row(enum posenc_dtype type, enum how how, enum terms which,
                              const struct relative_terms *terms, vf scale, vf x_scale,
                              const void *x, void *out, int64_t j, int64_t n)
{
    int64_t w = vf_lanes(), k = streams(how) ? to_line(type, out, j, n) : 0;

    if (streams(how))
        relative_some(type, how, which, terms, scale, x_scale, x, out, j, 0, k);
    for (; k + 4 * w <= n; k += 4 * w)
        put_four(type, how, x, x_scale, out, j + k,
                 relative_keys(type, which, terms, scale, k, w),
                 relative_keys(type, which, terms, scale, k + w, w),
                 relative_keys(type, which, terms, scale, k + 2 * w, w),
                 relative_keys(type, which, terms, scale, k + 3 * w, w));
    relative_some(type, how, which, terms, scale, x_scale, x, out, j, k, n);
}

/* Rows of a block of queries, n keys from j on. What leads from row to row is in registers. */
SIMD_INLINE void relative_rows(enum posenc_dtype type, enum how how, enum terms which,
                               const struct posenc_relative_args *args,
                               const struct relative_panel *panel, int64_t b, int64_t h,
                               int64_t i0, int64_t i1, int64_t j, int64_t n,
                               const struct relative_turned *turned)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t x_next = args->x.stride[2] * size, out_next = args->out.stride[2] * size;
    const int64_t c2p_next = args->c2p.stride[2] * size, last = panel->i1 - 1 + j - panel->j0;
    const vf scale = vf_keep(vf_set1(args->scale)), x_scale = vf_keep(vf_set1(args->x_scale));
    const char *c2p = which & C2P ? input_at(&args->c2p, b, h, i0) : NULL;
    const char *x = adds(how) ? input_at(&args->x, b, h, i0) : NULL;
    char *out = row_at(&args->out, b, h, i0);

    for (int64_t i = i0; i < i1; i++, out += out_next) {
        const struct relative_terms terms = { .c2p = c2p,
                                              .soon = RELATIVE_SOON * c2p_next,
                                              .columns = panel->columns + last - i,
                                              .start = panel->start + last - i,
                                              .p2c =
                                                  turned->rows + (i1 - 1 - i) * panel->pitch };

        relative_row(type, how, which, &terms, scale, x_scale, x, out, j, n);
        if (adds(how))
            x += x_next;
        if (which & C2P)
            c2p += c2p_next;
    }
}

/* A block of queries and n keys from j on. */
SIMD_INLINE void relative_block(enum posenc_dtype type, enum how how,
                                const struct posenc_relative_args *args,
                                const struct relative_panel *panel, int64_t b, int64_t h,
                                int64_t i0, int64_t i1, int64_t j, int64_t n)
{
    const bool far = how != STORED && how != ADDED && how != SUMMED;
    struct relative_turned turned;

    if (args->p2c.data)
        turn_p2c(type, far || panel->block == RELATIVE_BLOCK, args, panel, b, h, i0, i1, j, n,
                 &turned);
    if (!args->p2c.data)
        relative_rows(type, how, C2P, args, panel, b, h, i0, i1, j, n, &turned);
    else if (!args->c2p.data)
        relative_rows(type, how, P2C, args, panel, b, h, i0, i1, j, n, &turned);
    else
        relative_rows(type, how, C2P_AND_P2C, args, panel, b, h, i0, i1, j, n, &turned);
}

/* A head's share of a panel. */
SIMD_INLINE void relative_blocks(enum posenc_dtype type, enum how how,
                                 const struct posenc_relative_args *args,
                                 const struct relative_panel *panel, int64_t b, int64_t h)
{
    int64_t most = args->p2c.data ? panel->pitch - RELATIVE_APART : RELATIVE_KEYS;

    for (int64_t i = panel->i0; i < panel->i1; i += panel->block)
        for (int64_t j = panel->j0; j < panel->j1; j += most)
            relative_block(type, how, args, panel, b, h, i, least(i + panel->block, panel->i1),
                           j, least(panel->j1 - j, most));
}

SIMD_INLINE void relative_panels(enum posenc_dtype type, enum how how,
                                 const struct posenc_relative_args *given)
{
    const struct posenc_relative_args copy = *given, *args = &copy;
    struct relative_panel panel;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    const bool few = keys <= RELATIVE_FEW_TERMS;

    panel.block = few ? RELATIVE_LONG_BLOCK : RELATIVE_BLOCK;
    panel.pitch = (few ? RELATIVE_FEW_TERMS : RELATIVE_TERMS) + RELATIVE_APART;
    for (int64_t i = 0; i < queries; i += RELATIVE_QUERIES)
        for (int64_t j = 0; j < keys; j += RELATIVE_KEYS) {
            panel.i0 = i;
            panel.i1 = least(i + RELATIVE_QUERIES, queries);
            panel.j0 = j;
            panel.j1 = least(j + RELATIVE_KEYS, keys);
            relative_columns(args, args->c2p.data ? &args->c2p : &args->p2c, &panel);
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                for (int64_t h = 0; h < args->out.shape[1]; h++)
                    relative_blocks(type, how, args, &panel, b, h);
        }
}

FORMS_WRITTEN(relative_panels, posenc_relative_args)
FORMS_ADDED(relative_panels, posenc_relative_args)

enum posenc_status KERNEL(relative_bias)(const struct posenc_relative_args *args)
{
    RUN_WRITTEN(relative_panels, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(relative_bias_add)(const struct posenc_relative_args *args)
{
    RUN_ADDED(relative_panels, args);
    return POSENC_OK;
}
