/*
 * Laws of every kernel: a row's value depends on its own position and parameters, not on how
 * the call was cut, threaded, placed or numbered.
 *
 *   slices      parts of the tensors, by batch, token or query, head and key, give the same
 *               bits
 *   large       so do parts of what exceeds the caches
 *   threads     so do parts computed by four threads at once into one output
 *   in-place    so does the output on top of the input
 *   numbering   so do positions as offset, i32, i64 and f32 arrays, in any order
 *   batches     every batch of a call with an offset has the encoding of the first: the
 *               position is the token's, never the batch's index
 *   add         x + encoding equals building the encoding, then one fma per element
 */
#define _POSIX_C_SOURCE 200809L
#include "inputs.h"
#include "laws.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Cutting a call ---- */

/* Dimensions counted from the last one: of rope [.., token, head, dim], of scores [.., head,
 * query, key], of the others [batch, token, dim]. */
static void tensor_cut(struct posenc_tensor *t, int from_last, int64_t from, int64_t count)
{
    int d = t->rank - 1 - from_last;
    t->data = (float *)t->data + from * t->stride[d];
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

static void cut_scores(struct call *c, int from_last, int64_t from, int64_t count,
                       int64_t *query_offset)
{
    if (from_last == 1)
        *query_offset += from;
    if (from_last == 0)
        *query_offset -= from;
    if (from_last == 2 && kernel_signature(c->problem.kernel) == SIGNATURE_alibi)
        c->args.alibi.slopes += from;
    if (from_last == 2 && kernel_signature(c->problem.kernel) == SIGNATURE_t5)
        tensor_cut(&c->args.t5.table, 0, from, count);
}

/* The part [from, from + count) of a call along one dimension. */
static struct call call_cut(const struct call *whole, int from_last, int64_t from,
                            int64_t count)
{
    struct call c = *whole;
    if (call_x(&c)->data)
        tensor_cut(call_x(&c), from_last, from, count);
    switch (kernel_signature(c.problem.kernel)) {
    case SIGNATURE_sinusoidal:
        tensor_cut(&c.args.sinusoidal.out, from_last, from, count);
        positions_cut(&c.args.sinusoidal.positions, from_last == 1, from);
        break;
    case SIGNATURE_learned:
        tensor_cut(&c.args.learned.out, from_last, from, count);
        positions_cut(&c.args.learned.positions, from_last == 1, from);
        break;
    case SIGNATURE_rope_table:
        tensor_cut(&c.args.rope_table.cos, from_last, from, count);
        tensor_cut(&c.args.rope_table.sin, from_last, from, count);
        positions_cut(&c.args.rope_table.positions, from_last == 1, from);
        break;
    case SIGNATURE_rope:
        tensor_cut(&c.args.rope.out, from_last, from, count);
        if (from_last > 1) /* by heads the positions stay */
            positions_cut(&c.args.rope.positions, from_last == 2, from);
        break;
    case SIGNATURE_alibi:
        tensor_cut(&c.args.alibi.out, from_last, from, count);
        cut_scores(&c, from_last, from, count, &c.args.alibi.query_offset);
        break;
    case SIGNATURE_t5:
        tensor_cut(&c.args.t5.out, from_last, from, count);
        cut_scores(&c, from_last, from, count, &c.args.t5.query_offset);
        break;
    }
    return c;
}

/* The dimensions a kernel may be cut along: channels only where an element knows its column. */
static int first_cut(enum posenc_kernel kernel)
{
    enum signature s = kernel_signature(kernel);
    return s == SIGNATURE_alibi || s == SIGNATURE_t5 ? 0 : 1;
}

/* Whether positions are computed with, and may be times, rather than rows of a table. */
static bool computes(enum posenc_kernel kernel)
{
    enum signature s = kernel_signature(kernel);
    return s == SIGNATURE_sinusoidal || s == SIGNATURE_rope_table;
}

/* How the positions of a problem to cut are given. */
enum given { OFFSET, ARRAY, PLACES, GIVENS };

/* Enough rows to cut, a tail in the last vector, and a block boundary of tables (64) inside.
 * PLACES are times, or a picture's on three axes, of those that compute(). */
static struct problem cut_problem(enum posenc_kernel kernel, enum given given)
{
    const bool arrays = given != OFFSET;
    struct problem p = problem_default(kernel);
    bool has_x = kernel_takes_x(kernel);
    enum signature s = kernel_signature(kernel);
    p.tokens = 13;
    p.first = s == SIGNATURE_learned || s == SIGNATURE_rope ? 2 : 57;
    p.rows = 32;
    p.queries = 11;
    p.keys = 37;
    p.query_offset = 26;
    p.causal = arrays;
    p.bidirectional = !arrays;
    p.dim = p.rotary_dim ? 70 : 37;
    p.freqs.dim = s == SIGNATURE_rope_table ? 74 : 37;
    p.x_scale = 0.75f;
    p.batch = has_x || s == SIGNATURE_sinusoidal || s == SIGNATURE_rope_table ? 3 : 1;
    p.token_major = arrays;
    p.pad = arrays ? 3 : 0;
    p.position_kind = arrays ? POSENC_POSITIONS_I32 : POSENC_OFFSET;
    p.batch_shift = arrays ? 4 : 0;
    if (given == PLACES && s == SIGNATURE_rope_table) {
        p.mrope_grid = 5;
        p.freqs.mrope_layout = POSENC_MROPE_INTERLEAVED;
        p.freqs.mrope_section[0] = 20;
        p.freqs.mrope_section[1] = 9;
        p.freqs.mrope_section[2] = 8;
    } else if (given == PLACES) {
        p.position_kind = POSENC_POSITIONS_F32;
        p.time_step = 0.25; /* every fourth is whole */
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
    if (!require(t, call_create(&whole, p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (!require_clean(t, &g) || !copy_outputs(&want, &whole)) {
        call_destroy(&whole);
        return;
    }
    const struct posenc_tensor *out = call_out(&whole);
    for (int dim = first_cut(p->kernel); dim < out->rank; dim++) {
        call_reset(&whole);
        int64_t n = out->shape[out->rank - 1 - dim];
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
    for (int given = OFFSET; given < (computes(kernel) ? GIVENS : PLACES); given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check_slices_of(t, &p, 5);
        p.in_place = kernel_takes_x(kernel);
        check_slices_of(t, &p, 5);
    }
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
    int dim = kernel_signature(kernel) == SIGNATURE_rope ? 2 : 1;
    struct call whole;
    struct copy want, got;
    t->problem = &p;
    p.tokens = 20;
    p.queries = 20;
    if (!require(t, call_create(&whole, &p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (require_clean(t, &g) && copy_outputs(&want, &whole)) {
        for (int round = 0; round < rounds; round++) {
            call_reset(&whole);
            if (!run_threads(t, &whole, dim, p.tokens) || !copy_outputs(&got, &whole))
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
    check_threads(t, kernel, OFFSET, ROUNDS);
    if (computes(kernel))
        check_threads(t, kernel, PLACES, ROUNDS / 4);
}

/* ---- In place, numbering, batches ---- */

static void require_same_problems(struct tally *t, const struct problem *a,
                                  const struct problem *b, call_edit *edit, const char *what)
{
    struct copy got = { .n = 0 }, want = { .n = 0 };
    if (run_problem(t, b, edit, NULL, &want) && run_problem(t, a, edit, NULL, &got))
        require_same_copy(t, &got, &want, what);
    copy_free(&got);
    copy_free(&want);
    t->problem = NULL;
}

static void law_in_place(struct tally *t, enum posenc_kernel kernel)
{
    for (int arrays = 0; arrays < 2; arrays++)
        for (int transpose = 0; transpose < 2; transpose++) {
            struct problem apart = cut_problem(kernel, arrays ? ARRAY : OFFSET), same = apart;
            apart.transpose = same.transpose = transpose;
            same.in_place = true;
            require_same_problems(t, &same, &apart, NULL, "in place");
        }
}

void edit_same_rows(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 1, n = x->data ? tensor_rows(x) : 0; r < n; r++)
        memcpy(tensor_row(x, r), tensor_row(x, 0),
               (size_t)x->shape[x->rank - 1] * sizeof(float));
}

static void law_numbering(struct tally *t, enum posenc_kernel kernel)
{
    struct problem offset = cut_problem(kernel, OFFSET), array = offset, shuffled = offset;
    array.position_kind = POSENC_POSITIONS_I32;
    require_same_problems(t, &array, &offset, NULL, "positions as an i32 array");
    array.position_kind = POSENC_POSITIONS_I64;
    require_same_problems(t, &array, &offset, NULL, "positions as an i64 array");
    array.position_kind = POSENC_POSITIONS_F32;
    if (computes(kernel))
        require_same_problems(t, &array, &offset, NULL, "positions as an f32 array");
    int64_t positions[13];
    for (int64_t i = 0; i < 13; i++)
        positions[i] = offset.first + i * 5 % 13; /* out of order, far jumps both ways */
    shuffled.position_kind = POSENC_POSITIONS_I64;
    shuffled.positions = positions;
    shuffled.batch = offset.batch = 1;
    int64_t heads = kernel_signature(kernel) == SIGNATURE_rope ? offset.heads : 1;
    struct copy straight = { .n = 0 }, mixed = { .n = 0 };
    if (run_problem(t, &offset, edit_same_rows, NULL, &straight) &&
        run_problem(t, &shuffled, edit_same_rows, NULL, &mixed))
        for (int o = 0; o < mixed.n; o++)
            for (int64_t r = 0; r < mixed.rows[o]; r++)
                require_same_bits(
                    t, copy_row(&mixed, o, r),
                    copy_row(&straight, o, r / heads * 5 % 13 * heads + r % heads),
                    mixed.width[o], "positions out of order");
    copy_free(&straight);
    copy_free(&mixed);
    t->problem = NULL;
}

static void law_batches(struct tally *t, enum posenc_kernel kernel)
{
    for (int token_major = 0; token_major < 2; token_major++) {
        struct problem p = cut_problem(kernel, OFFSET);
        struct copy out = { .n = 0 };
        p.token_major = token_major;
        if (run_problem(t, &p, edit_same_rows, NULL, &out))
            for (int o = 0; o < out.n; o++) {
                int64_t rows = out.rows[o] / p.batch;
                bool tokens_differ = memcmp(copy_row(&out, o, 0), copy_row(&out, o, rows - 1),
                                            (size_t)out.width[o] * sizeof(float)) != 0;
                require(t, tokens_differ, "first and last token have the same encoding");
                for (int64_t r = rows; r < out.rows[o]; r++)
                    require_same_bits(t, copy_row(&out, o, r), copy_row(&out, o, r % rows),
                                      out.width[o], "same token of another batch");
            }
        copy_free(&out);
        t->problem = NULL;
    }
}

/* ---- Adds ---- */

static void law_add(struct tally *t, enum posenc_kernel kernel)
{
    static const enum posenc_kernel build_of[POSENC_KERNEL_COUNT] = {
        [POSENC_KERNEL_sinusoidal_add] = POSENC_KERNEL_sinusoidal,
        [POSENC_KERNEL_alibi_add] = POSENC_KERNEL_alibi,
        [POSENC_KERNEL_t5_bias_add] = POSENC_KERNEL_t5_bias,
    };
    if (!law_needs(t, build_of[kernel]))
        return;
    for (int v = 0; v < 6; v++) {
        struct problem p = cut_problem(kernel, v & 1 ? ARRAY : OFFSET), table = p;
        table.kernel = build_of[kernel];
        p.layout = table.layout = (enum posenc_layout)(v % 3);
        p.scale = table.scale = v == 4 ? 0.125 : 1.0;
        p.freqs.profile = table.freqs.profile = v > 3 ? POSENC_HF_F32 : POSENC_EXACT;
        p.special = table.special = v == 3; /* NaN and infinities go through */
        if (kernel != POSENC_KERNEL_sinusoidal_add)
            table.batch = 1;
        struct copy got = { .n = 0 }, built = { .n = 0 };
        struct call pristine;
        if (run_problem(t, &p, NULL, NULL, &got) &&
            run_problem(t, &table, NULL, NULL, &built) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < got.rows[0]; r++)
                for (int64_t c = 0; c < got.width[0]; c++) {
                    float x = pristine.x[r * got.width[0] + c];
                    float want = fmaf(x, p.x_scale, copy_row(&built, 0, r % built.rows[0])[c]);
                    require_same_bits(t, &copy_row(&got, 0, r)[c], &want, 1, "build, then add");
                }
            call_destroy(&pristine);
        }
        copy_free(&got);
        copy_free(&built);
        t->problem = NULL;
    }
}

/* learned_add: out = fma(x, x_scale, row); the rows are inputs, so the whole kernel is one
 * line. */
static void law_learned(struct tally *t, enum posenc_kernel kernel)
{
    for (int special = 0; special < 2; special++) {
        struct problem p = cut_problem(kernel, ARRAY);
        struct copy got = { .n = 0 };
        struct call pristine;
        p.special = special;
        if (run_problem(t, &p, NULL, NULL, &got) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < got.rows[0]; r++) {
                int64_t row = problem_position(&p, r / p.tokens, r % p.tokens);
                for (int64_t c = 0; c < p.dim; c++) {
                    float want = fmaf(pristine.x[r * p.dim + c], p.x_scale,
                                      pristine.table[row * p.dim + c]);
                    require_same_bits(t, &copy_row(&got, 0, r)[c], &want, 1,
                                      "x + row of the table");
                }
            }
            call_destroy(&pristine);
        }
        copy_free(&got);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_call[] = {
    { "slices", law_slices,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(rope_table), K(rope_half),
              K(rope_interleaved), K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add)) },
    { "large", law_large,
      KERNELS_WHEN(true, K(sinusoidal), K(rope_table), K(rope_half), K(rope_interleaved)) },
    { "threads", law_threads,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(rope_table), K(rope_half),
              K(rope_interleaved), K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add)) },
    { "in-place", law_in_place,
      KERNELS(K(sinusoidal_add), K(learned_add), K(rope_half), K(rope_interleaved),
              K(alibi_add), K(t5_bias_add)) },
    { "numbering", law_numbering,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(rope_table), K(rope_half),
              K(rope_interleaved)) },
    { "batches", law_batches,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(rope_table), K(rope_half),
              K(rope_interleaved)) },
    { "add-is-build-then-add", law_add,
      KERNELS(K(sinusoidal_add), K(alibi_add), K(t5_bias_add)) },
    { "row-plus-x", law_learned, KERNELS(K(learned_add)) },
};
const int n_laws_call = sizeof laws_call / sizeof laws_call[0];
