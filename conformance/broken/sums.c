/*
 * Broken kernels of the sums, learned_grad and relative_sum: see broken.def.  What they are
 * told of one element is its terms in the promised order.
 */
#include "broken.h"

#include "conformance/problem/storage.h"
#include "wide.h"

#include <stdlib.h>

struct sum {
    const float *terms;
    int64_t n;
    float held;               /* what the element holds */
    bool onto;                /* and whether the sum goes onto that */
    enum posenc_dtype stored; /* of the terms */
};
typedef float summation(const struct sum *s);

static void *room_for(int64_t n, size_t size)
{
    void *room = malloc((size_t)(n + 1) * size);
    if (!room)
        exit(2);
    return room;
}

static enum posenc_status for_gradient(const struct posenc_learned_grad_args *args,
                                       summation *sum)
{
    struct wide wide = { 0 };
    struct posenc_learned_grad_args a = *args;
    const int64_t tokens = a.x.shape[1], all = a.x.shape[0] * tokens;
    const float **rows = room_for(all, sizeof *rows); /* of x, at one position */
    float *terms = room_for(all, sizeof *terms);
    wide_input(&wide, &a.x);
    for (int64_t r = 0; r < a.out.shape[0]; r++) {
        float *out = storage_row(&a.out, r);
        struct sum s = { terms, 0, 0.0f, a.accumulate, args->x.dtype };
        for (int64_t k = 0; k < all; k++)
            if (broken_position(&a.positions, k / tokens, k % tokens) == r)
                rows[s.n++] = broken_input(&a.x, k / tokens, k % tokens, 0);
        for (int64_t c = 0; c < a.out.shape[1]; c++) {
            for (int64_t k = 0; k < s.n; k++)
                terms[k] = rows[k][c];
            s.held = out[c];
            out[c] = sum(&s);
        }
    }
    wide_close(&wide);
    free(terms);
    free(rows);
    return POSENC_OK;
}

static enum posenc_status for_columns(const struct posenc_relative_sum_args *args,
                                      summation *sum)
{
    struct wide wide = { 0 };
    struct posenc_relative_sum_args a = *args;
    const int64_t keys = a.x.shape[3], queries = a.x.shape[2];
    float *terms = room_for(keys, sizeof *terms);
    wide_input(&wide, &a.x);
    wide_output(&wide, &a.out);
    for (int64_t r = 0; r < storage_rows(&a.out); r++)
        for (int64_t c = 0; c < a.out.shape[3]; c++) {
            const float *x = storage_row(owned(&a.x), r);
            float *out = (float *)storage_row(&a.out, r) + c;
            struct sum s = { terms, 0, *out, false, args->x.dtype };
            for (int64_t j = 0; j < keys; j++)
                if (a.index[r % queries - j + keys - 1] == c)
                    terms[s.n++] = x[j];
            *out = sum(&s);
        }
    wide_close(&wide);
    free(terms);
    return POSENC_OK;
}

static float start(const struct sum *s) { return s->onto ? s->held : 0.0f; }

/* As promised. */
static float ascending(const struct sum *s)
{
    float sum = start(s);
    for (int64_t k = 0; k < s->n; k++)
        sum += s->terms[k];
    return sum;
}

/* ---- Orders and widths ---- */

static float descending(const struct sum *s)
{
    float sum = start(s);
    for (int64_t k = s->n; k-- > 0;)
        sum += s->terms[k];
    return sum;
}
enum posenc_status learned_grad_descending(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, descending);
}
enum posenc_status relative_sum_descending(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, descending);
}

static float halves(const float *terms, int64_t n)
{
    return n == 0   ? 0.0f
           : n == 1 ? terms[0]
                    : halves(terms, n / 2) + halves(terms + n / 2, n - n / 2);
}
static float pairwise(const struct sum *s) { return start(s) + halves(s->terms, s->n); }
enum posenc_status learned_grad_pairwise(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, pairwise);
}
enum posenc_status relative_sum_pairwise(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, pairwise);
}

static float in_f64(const struct sum *s)
{
    double sum = (double)start(s);
    for (int64_t k = 0; k < s->n; k++)
        sum += (double)s->terms[k];
    return (float)sum;
}
enum posenc_status learned_grad_in_f64(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, in_f64);
}
enum posenc_status relative_sum_in_f64(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, in_f64);
}

static float in_storage(const struct sum *s)
{
    float sum = start(s);
    for (int64_t k = 0; k < s->n; k++)
        sum = round_to(s->stored, sum + s->terms[k]);
    return sum;
}
enum posenc_status learned_grad_in_storage(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, in_storage);
}
enum posenc_status relative_sum_in_storage(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, in_storage);
}

/* The sum by itself, then onto what is held. */
static float apart(const struct sum *s)
{
    const struct sum alone = { s->terms, s->n, 0.0f, false, s->stored };
    return s->onto ? s->held + ascending(&alone) : ascending(&alone);
}
enum posenc_status learned_grad_apart(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, apart);
}

/* ---- What belongs to a sum ---- */

static float last_wins(const struct sum *s) { return s->n ? s->terms[s->n - 1] : start(s); }
enum posenc_status learned_grad_last_wins(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, last_wins);
}
enum posenc_status relative_sum_last_wins(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, last_wins);
}

/* A single -0 stays -0. */
static float first_stored(const struct sum *s)
{
    float sum = s->onto || s->n == 0 ? start(s) : s->terms[0];
    for (int64_t k = s->onto ? 0 : 1; k < s->n; k++)
        sum += s->terms[k];
    return sum;
}
enum posenc_status learned_grad_first_stored(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, first_stored);
}
enum posenc_status relative_sum_first_stored(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, first_stored);
}

static float left_alone(const struct sum *s) { return s->n ? ascending(s) : s->held; }
enum posenc_status learned_grad_not_zeroed(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, left_alone);
}
enum posenc_status relative_sum_not_zeroed(const struct posenc_relative_sum_args *args)
{
    return for_columns(args, left_alone);
}

static float onto_always(const struct sum *s)
{
    const struct sum onto = { s->terms, s->n, s->held, true, s->stored };
    return ascending(&onto);
}
enum posenc_status learned_grad_always_onto(const struct posenc_learned_grad_args *args)
{
    return for_gradient(args, onto_always);
}

enum posenc_status learned_grad_never_onto(const struct posenc_learned_grad_args *args)
{
    struct posenc_learned_grad_args a = *args;
    a.accumulate = false;
    return broken_base->learned_grad(&a);
}

enum posenc_status learned_grad_first_batch(const struct posenc_learned_grad_args *args)
{
    struct posenc_learned_grad_args a = *args;
    a.x.shape[0] = a.x.shape[0] < 1 ? a.x.shape[0] : 1;
    return broken_base->learned_grad(&a);
}
