/*
 * Broken kernels of terms by relative position: see broken.def.
 */
#include "broken.h"

#include "wide.h"

#include <math.h>

/* An element of the bias: its query and key, the column they have, its two terms' rows; a term
 * that is absent is NULL. */
struct element {
    int64_t i, j, column, columns, keys;
    const float *c2p, *p2c;
    const struct posenc_relative_args *args;
};
typedef float term_bias(const struct element *e);

static enum posenc_status for_terms(const struct posenc_relative_args *args, term_bias *bias)
{
    struct wide wide = { 0 };
    struct posenc_relative_args a = *args;
    const struct posenc_const_tensor *terms = args->c2p.data ? &args->c2p : &args->p2c;
    struct posenc_const_tensor *const inputs[] = { &a.c2p, &a.p2c, &a.x };
    for (int k = 0; k < 3; k++)
        wide_input(&wide, inputs[k]);
    wide_output(&wide, &a.out);
    const int64_t heads = a.out.shape[1], queries = a.out.shape[2], keys = a.out.shape[3];
    for (int64_t r = 0; r < a.out.shape[0] * heads * queries; r++)
        for (int64_t j = 0; j < keys; j++) {
            const int64_t b = r / queries / heads, h = r / queries % heads, i = r % queries;
            const struct element e = { i,
                                       j,
                                       a.index[i - j + keys - 1],
                                       terms->shape[3],
                                       keys,
                                       a.c2p.data ? broken_input(&a.c2p, b, h, i) : NULL,
                                       a.p2c.data ? broken_input(&a.p2c, b, h, j) : NULL,
                                       &a };
            const float value = bias(&e);
            broken_row(&a.out, b, h, i)[j] =
                a.x.data ? fmaf(broken_input(&a.x, b, h, i)[j], a.x_scale, value) : value;
        }
    wide_close(&wide);
    return POSENC_OK;
}

/* The bias of a value from each term. */
static float joined(const struct element *e, float c2p, float p2c)
{
    const float scale = e->args->scale;
    return !e->p2c ? scale * c2p : !e->c2p ? scale * p2c : fmaf(scale, p2c, scale * c2p);
}

/* The bias of a column of each. */
static float gathered(const struct element *e, int64_t c2p, int64_t p2c)
{
    return joined(e, e->c2p ? e->c2p[c2p] : 0.0f, e->p2c ? e->p2c[p2c] : 0.0f);
}

static int64_t within(const struct element *e, int64_t column)
{
    return column < 0 ? 0 : column >= e->columns ? e->columns - 1 : column;
}

/* ---- Columns ---- */

/* Of the same element counted from the other end: keys after the query for those before it. */
static float index_turned(const struct element *e)
{
    const int64_t last = e->args->out.shape[2] + e->keys - 2, at = e->i - e->j + e->keys - 1;
    const int64_t column = e->args->index[last - at];
    return gathered(e, column, column);
}
enum posenc_status relative_bias_index_turned(const struct posenc_relative_args *args)
{
    return for_terms(args, index_turned);
}
enum posenc_status relative_bias_add_index_turned(const struct posenc_relative_args *args)
{
    return for_terms(args, index_turned);
}

/* Transformer-XL's terms before their shift: column j for key j. */
static float unshifted(const struct element *e)
{
    const bool by_key = e->columns == e->keys;
    return gathered(e, by_key ? e->j : e->column, e->column);
}
enum posenc_status relative_bias_unshifted(const struct posenc_relative_args *args)
{
    return for_terms(args, unshifted);
}
enum posenc_status relative_bias_add_unshifted(const struct posenc_relative_args *args)
{
    return for_terms(args, unshifted);
}

static float next_column(const struct element *e)
{
    const int64_t column = within(e, e->column + 1);
    return gathered(e, column, column);
}
enum posenc_status relative_bias_add_next_column(const struct posenc_relative_args *args)
{
    return for_terms(args, next_column);
}

/* ---- The keys' term ---- */

/* Gathered for the query: not transposed. */
static float at_query(const struct element *e)
{
    const struct posenc_const_tensor *p2c = &e->args->p2c;
    if (!e->p2c)
        return gathered(e, e->column, 0);
    const float *row = e->p2c + (e->i % e->keys - e->j) * p2c->stride[2];
    return joined(e, e->c2p ? e->c2p[e->column] : 0.0f, row[e->column]);
}
enum posenc_status relative_bias_p2c_at_query(const struct posenc_relative_args *args)
{
    return for_terms(args, at_query);
}

/* Gathered by the distance of the key from the query, not of the query from the key. */
static float p2c_turned(const struct element *e)
{
    return gathered(e, e->column, within(e, e->columns - e->column));
}
enum posenc_status relative_bias_p2c_turned(const struct posenc_relative_args *args)
{
    return for_terms(args, p2c_turned);
}

static float no_p2c(const struct element *e)
{
    const float scale = e->args->scale;
    return scale * (e->c2p ? e->c2p : e->p2c)[e->column];
}
enum posenc_status relative_bias_no_p2c(const struct posenc_relative_args *args)
{
    return for_terms(args, no_p2c);
}

/* ---- Scales ---- */

static float c2p_twice(const struct element *e)
{
    const float scale = e->args->scale;
    return joined(e, e->c2p ? scale * e->c2p[e->column] : 0.0f,
                  e->p2c ? e->p2c[e->column] : 0.0f);
}
enum posenc_status relative_bias_c2p_scaled_twice(const struct posenc_relative_args *args)
{
    return for_terms(args, c2p_twice);
}

static float p2c_unscaled(const struct element *e)
{
    const float scale = e->args->scale;
    return (e->c2p ? scale * e->c2p[e->column] : 0.0f) + (e->p2c ? e->p2c[e->column] : 0.0f);
}
enum posenc_status relative_bias_p2c_unscaled(const struct posenc_relative_args *args)
{
    return for_terms(args, p2c_unscaled);
}

static float rounded_twice(const struct element *e)
{
    const float scale = e->args->scale;
    return e->c2p && e->p2c ? scale * e->c2p[e->column] + scale * e->p2c[e->column]
                            : gathered(e, e->column, e->column);
}
enum posenc_status relative_bias_rounded_twice(const struct posenc_relative_args *args)
{
    return for_terms(args, rounded_twice);
}

enum posenc_status relative_bias_add_no_scale(const struct posenc_relative_args *args)
{
    struct posenc_relative_args a = *args;
    a.scale = 1.0f;
    return broken_base->relative_bias_add(&a);
}

/* Onto scores before they are scaled: what is added is scaled with them. */
static float scaled_with_x(const struct element *e)
{
    return e->args->x_scale * gathered(e, e->column, e->column);
}
enum posenc_status relative_bias_add_scaled_with_x(const struct posenc_relative_args *args)
{
    return for_terms(args, scaled_with_x);
}
