/*
 * Laws of parts: a row's value does not depend on how the call was cut.
 *
 *   slices      parts of the tensors, by batch, token or query, head, key and channel, give the
 *               same bits
 *   wide        so do parts of rows of more keys, or into more columns, than tiles have
 *   large       so do parts of what exceeds the caches
 *   threads     so do parts computed by four threads at once into one output
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"
#include "conformance/problem/storage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Cutting a call ---- */

/* Dimensions counted from the last one: of rope [.., token, head, dim], of scores [.., head,
 * query, key], of the others [batch, token, dim]. */
static void tensor_cut(struct posenc_tensor *t, int from_last, int64_t from, int64_t count)
{
    int d = t->rank - 1 - from_last;
    t->data = (char *)t->data + from * t->stride[d] * (int64_t)storage_size(t->dtype);
    t->shape[d] = count;
}

static void positions_cut(struct posenc_positions *p, bool by_token, int64_t from)
{
    if (p->kind == POSENC_OFFSET) {
        p->offset += by_token ? from : 0;
        return;
    }
    int64_t steps = from * (by_token ? p->stride_token : p->stride_batch);
    p->data = (const char *)p->data + steps * (p->kind == POSENC_POSITIONS_I64 ? 8 : 4);
}

enum { BY_KEY, BY_QUERY, BY_HEAD, BY_BATCH };

static void offset_cut(int64_t *query_offset, int dim, int64_t from)
{
    *query_offset += dim == BY_QUERY ? from : dim == BY_KEY ? -from : 0;
}

static void alibi_cut(struct posenc_alibi_args *a, int dim, int64_t from)
{
    offset_cut(&a->query_offset, dim, from);
    a->slopes += dim == BY_HEAD ? from : dim == BY_BATCH ? from * a->slopes_stride_batch : 0;
}

/* Terms belong to queries and to keys; the index is by i - j + keys - 1. */
static void relative_cut(struct posenc_relative_args *a, int dim, int64_t from, int64_t count,
                         int64_t keys)
{
    if (a->c2p.data && dim != BY_KEY)
        tensor_cut(owned(&a->c2p), dim, from, count);
    if (a->p2c.data && dim != BY_QUERY)
        tensor_cut(owned(&a->p2c), dim == BY_KEY ? 1 : dim, from, count);
    a->index += dim == BY_QUERY ? from : dim == BY_KEY ? keys - from - count : 0;
}

/* What else of a call on scores is cut with its output. */
static void scores_cut(struct call *c, int dim, int64_t from, int64_t count)
{
    switch (kernel_signature(c->problem.kernel)) {
    case SIGNATURE_alibi:
        alibi_cut(&c->args.alibi, dim, from);
        break;
    case SIGNATURE_t5:
        offset_cut(&c->args.t5.query_offset, dim, from);
        if (dim == BY_HEAD)
            tensor_cut(owned(&c->args.t5.table), 0, from, count);
        break;
    case SIGNATURE_distance:
        offset_cut(&c->args.distance.query_offset, dim, from);
        if (dim == BY_HEAD)
            tensor_cut(owned(&c->args.distance.values), 1, from, count);
        break;
    case SIGNATURE_window:
        c->args.window.index += dim == BY_QUERY ? from * c->problem.keys : 0;
        if (dim == BY_HEAD)
            tensor_cut(owned(&c->args.window.table), 0, from, count);
        break;
    case SIGNATURE_relative:
        relative_cut(&c->args.relative, dim, from, count, c->problem.keys);
        break;
    case SIGNATURE_relative_sum:
        c->args.relative_sum.index += dim == BY_QUERY ? from : 0;
        break;
    default:
        break;
    }
}

/* The part [from, from + count) of a call along one dimension. */
static struct call call_cut(const struct call *whole, int from_last, int64_t from,
                            int64_t count)
{
    struct call c = *whole;
    struct posenc_positions *positions = call_positions(&c);
    bool heads = kernel_signature(c.problem.kernel) == SIGNATURE_rope;
    int by_token = heads ? 2 : 1;
    if (call_x(&c)->data)
        tensor_cut(call_x(&c), from_last, from, count);
    tensor_cut(call_out(&c), from_last, from, count);
    if (kernel_signature(c.problem.kernel) == SIGNATURE_rope_table)
        tensor_cut(&c.args.rope_table.sin, from_last, from, count);
    if (positions && from_last >= by_token) /* by heads or channels they stay */
        positions_cut(positions, from_last == by_token, from);
    if (kernel_on_scores(c.problem.kernel))
        scores_cut(&c, from_last, from, count);
    return c;
}

/* The dimensions a kernel may be cut along, [first, past): keys only where each is told its
 * column, channels of a gradient alone. */
struct cuts {
    int first, past;
};

static struct cuts cuts_of(enum posenc_kernel kernel, int rank)
{
    switch (kernel_signature(kernel)) {
    case SIGNATURE_alibi:
    case SIGNATURE_t5:
    case SIGNATURE_distance:
    case SIGNATURE_relative:
        return (struct cuts){ 0, rank };
    case SIGNATURE_learned_grad:
        return (struct cuts){ 0, 1 };
    default:
        return (struct cuts){ 1, rank };
    }
}

/* Two shapes of windows, two kinds of columns. */
static void cut_scores(struct problem *p, bool arrays)
{
    p->queries = 11;
    p->keys = 37;
    p->query_offset = 26;
    p->causal = arrays;
    p->slopes_by_batch = arrays && kernel_signature(p->kernel) == SIGNATURE_alibi;
    p->bidirectional = !arrays;
    p->window_height = arrays ? 3 : 4;
    p->window_width = arrays ? 7 : 5;
    p->window_class = arrays;
    p->relative = arrays ? RELATIVE_SHAW : RELATIVE_DEBERTA;
    p->with_p2c = !arrays;
    if (kernel_signature(p->kernel) == SIGNATURE_window)
        p->queries = p->keys = problem_window(p);
    if (kernel_signature(p->kernel) == SIGNATURE_relative)
        p->scale = 0.3;
    if (kernel_signature(p->kernel) == SIGNATURE_relative_sum)
        p->relative = arrays ? RELATIVE_TRANSFORMER_XL : RELATIVE_SHAW;
}

struct problem cut_problem(enum posenc_kernel kernel, enum given given)
{
    const bool arrays = given != GIVEN_OFFSET;
    struct problem p = problem_default(kernel);
    enum signature s = kernel_signature(kernel);
    p.tokens = 13;
    p.first =
        s == SIGNATURE_learned || s == SIGNATURE_learned_grad || s == SIGNATURE_rope ? 2 : 57;
    p.rows = 32;
    cut_scores(&p, arrays);
    p.rotary_offset = p.rotary_dim && arrays ? 3 : 0;
    p.dim = p.rotary_dim ? 70 : 37;
    p.freqs.dim = s == SIGNATURE_rope_table ? 74 : 37;
    p.x_scale = 0.75f;
    bool alone = !kernel_takes_x(kernel) && kernel_on_scores(kernel) && s != SIGNATURE_relative;
    p.batch = alone && !p.slopes_by_batch ? 1 : 3;
    p.token_major = p.accumulate = arrays;
    p.pad = arrays ? 3 : 0;
    p.position_kind = arrays ? POSENC_POSITIONS_I32 : POSENC_OFFSET;
    p.batch_shift = arrays ? 4 : 0;
    if (given == GIVEN_PLACES && s == SIGNATURE_rope_table) {
        p.mrope_grid = 5;
        p.freqs.mrope_layout = POSENC_MROPE_INTERLEAVED;
        p.freqs.mrope_section[0] = 20;
        p.freqs.mrope_section[1] = 9;
        p.freqs.mrope_section[2] = 8;
    } else if (given == GIVEN_PLACES) {
        p.position_kind = POSENC_POSITIONS_F32;
        p.time_step = 0.25;                           /* every fourth is whole */
    } else if (arrays && s == SIGNATURE_sinusoidal) { /* two axes */
        p.mrope_grid = 5;
        p.freqs.dim = 38;
        p.freqs.mrope_layout = POSENC_MROPE_RESTARTED;
        p.freqs.mrope_section[0] = 7;
        p.freqs.mrope_section[1] = 12;
    }
    return p;
}

/* ---- Slices ---- */

/* Parts of 1 to `most` along each dimension in turn. */
static void check_slices_of(struct tally *t, const struct problem *p, int64_t most)
{
    struct call whole;
    struct copy want, got;
    t->problem = p;
    if (!require(t, call_create_by(t->run->subject, &whole, p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (!require_clean(t, &g) || !copy_outputs(&want, &whole)) {
        call_destroy(&whole);
        return;
    }
    const struct posenc_tensor *out = call_out(&whole);
    const struct cuts cuts = cuts_of(p->kernel, out->rank);
    for (int dim = cuts.first; dim < cuts.past; dim++) {
        int64_t n = out->shape[out->rank - 1 - dim];
        if (n < 2)
            continue;
        call_reset(&whole);
        for (int64_t from = 0, count; from < n; from += count) {
            count = 1 + (from * 3 + dim) % most;
            count = from + count > n ? n - from : count;
            struct call part = call_cut(&whole, dim, from, count);
            g = guarded_run(&part, t->run->backend, NULL);
            require_clean(t, &g);
        }
        if (copy_outputs(&got, &whole)) {
            char what[64];
            snprintf(what, sizeof what, "cut along dimension %d from the last", dim);
            require_same_copy(t, &got, &want, what);
            copy_free(&got);
        }
    }
    copy_free(&want);
    call_destroy(&whole);
}

static void law_slices(struct tally *t, enum posenc_kernel kernel)
{
    for (int given = GIVEN_OFFSET; given < (kernel_has_plan(kernel) ? GIVENS : GIVEN_PLACES);
         given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check_slices_of(t, &p, 5);
        p.in_place = kernel_in_place(kernel);
        check_slices_of(t, &p, 5);
    }
    t->problem = NULL;
}

/* More keys and queries than kernels take at once. */
static void law_wide(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    bool sums = kernel_signature(kernel) == SIGNATURE_relative_sum;
    p.heads = 1;
    p.queries = 33;
    p.keys = 4200;
    p.query_offset = 2000;
    p.max_distance = sums ? 700 : p.max_distance;
    check_slices_of(t, &p, sums ? 13 : 1999);
    p.queries = 530;
    p.keys = 40;
    check_slices_of(t, &p, sums ? 13 : 1999);
    t->problem = NULL;
}

/* Kernels may take another way for what does not fit a cache: 33 MiB, rows on 64-byte
 * boundaries, against parts that fit. */
static void law_large(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    bool table = kernel_signature(kernel) != SIGNATURE_rope;
    p.first = table ? -500 : 0;
    p.freqs.dim = 512;
    p.heads = 32;
    p.dim = p.rotary_dim = 256;
    p.tokens = p.rows = table ? (33 << 20) / (512 * 4) : (33 << 20) / (32 * 256 * 4);
    p.in_place = !table;
    check_slices_of(t, &p, 1999);
    t->problem = NULL;
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 25 };

struct worker {
    pthread_t thread;
    struct call part;
    const struct posenc_backend *backend;
    struct guarded result;
};

static void *work(void *user)
{
    struct worker *w = user;
    w->result = guarded_run(&w->part, w->backend, NULL);
    return NULL;
}

/* Four quarters of the tokens (queries) at once.  False when one did not go through. */
static bool run_threads(struct tally *t, const struct call *whole, int dim, int64_t n)
{
    struct worker workers[THREADS];
    bool ok = true;
    for (int i = 0; i < THREADS; i++) {
        int64_t from = n * i / THREADS, to = n * (i + 1) / THREADS;
        workers[i].part = call_cut(whole, dim, from, to - from);
        workers[i].backend = t->run->backend;
        workers[i].result = (struct guarded){ .status = POSENC_OK };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return require(t, false, "no thread could be started");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ok = require_clean(t, &workers[i].result) && ok;
    }
    return ok;
}

static void check_threads(struct tally *t, enum posenc_kernel kernel, enum given given,
                          int rounds)
{
    struct problem p = cut_problem(kernel, given);
    enum signature s = kernel_signature(kernel);
    int dim = s == SIGNATURE_rope ? 2 : s == SIGNATURE_learned_grad ? 0 : 1;
    struct call whole;
    struct copy want, got;
    t->problem = &p;
    p.tokens = 20;
    p.queries = s == SIGNATURE_window ? p.queries : 20;
    if (!require(t, call_create_by(t->run->subject, &whole, &p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    const struct posenc_tensor *out = call_out(&whole);
    int64_t n = out->shape[out->rank - 1 - dim];
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (require_clean(t, &g) && copy_outputs(&want, &whole)) {
        for (int round = 0; round < rounds; round++) {
            call_reset(&whole);
            if (!run_threads(t, &whole, dim, n) || !copy_outputs(&got, &whole))
                break;
            require_same_copy(t, &got, &want, "four threads");
            copy_free(&got);
        }
        copy_free(&want);
    }
    call_destroy(&whole);
    t->problem = NULL;
}

static void law_threads(struct tally *t, enum posenc_kernel kernel)
{
    check_threads(t, kernel, GIVEN_OFFSET, ROUNDS);
    if (kernel_has_plan(kernel))
        check_threads(t, kernel, GIVEN_PLACES, ROUNDS / 4);
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_cut[] = {
    { "slices", law_slices, EVERY_KERNEL },
    { "wide", law_wide,
      KERNELS(K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add), K(distance_bias),
              K(distance_bias_add), K(relative_bias), K(relative_bias_add), K(relative_sum)) },
    { "large", law_large,
      KERNELS_OF(POSENC_F32, true, K(sinusoidal), K(rope_table), K(rope_half),
                 K(rope_interleaved)) },
    { "threads", law_threads, EVERY_KERNEL },
};
const int n_laws_cut = sizeof laws_cut / sizeof laws_cut[0];
