/*
 * Laws of every kernel: a row's value depends on its own position and parameters, not on how
 * the call was placed or numbered.
 *
 *   in-place    the same bits with the output on top of the input
 *   numbering   so do positions as offset, i32, i64 and f32 arrays, in any order
 *   batches     every batch of a call with an offset has the encoding of the first: the
 *               position is the token's, never the batch's index; a gradient over all of them
 *               is that over the first, and onto it that over the next
 *   add         x + encoding equals building the encoding, then one fma per element
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <string.h>

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
            struct problem apart = cut_problem(kernel, arrays ? GIVEN_ARRAY : GIVEN_OFFSET),
                           same = apart;
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
    struct problem offset = cut_problem(kernel, GIVEN_OFFSET), array = offset,
                   shuffled = offset;
    array.position_kind = POSENC_POSITIONS_I32;
    require_same_problems(t, &array, &offset, NULL, "positions as an i32 array");
    array.position_kind = POSENC_POSITIONS_I64;
    require_same_problems(t, &array, &offset, NULL, "positions as an i64 array");
    array.position_kind = POSENC_POSITIONS_F32;
    if (kernel_has_plan(kernel))
        require_same_problems(t, &array, &offset, NULL, "positions as an f32 array");
    int64_t positions[13];
    for (int64_t i = 0; i < 13; i++)
        positions[i] = offset.first + i * 5 % 13; /* out of order, far jumps both ways */
    shuffled.position_kind = POSENC_POSITIONS_I64;
    shuffled.positions = positions;
    shuffled.batch = offset.batch = 1;
    int64_t heads = kernel_turns(kernel) ? offset.heads : 1;
    bool sums = kernel_signature(kernel) == SIGNATURE_learned_grad; /* by position already */
    struct copy straight = { .n = 0 }, mixed = { .n = 0 };
    if (run_problem(t, &offset, edit_same_rows, NULL, &straight) &&
        run_problem(t, &shuffled, edit_same_rows, NULL, &mixed))
        for (int o = 0; o < mixed.n; o++)
            for (int64_t r = 0; r < mixed.rows[o]; r++)
                require_same_bits(
                    t, copy_row(&mixed, o, r),
                    copy_row(&straight, o, sums ? r : r / heads * 5 % 13 * heads + r % heads),
                    mixed.width[o], "positions out of order");
    copy_free(&straight);
    copy_free(&mixed);
    t->problem = NULL;
}

static void law_batches(struct tally *t, enum posenc_kernel kernel)
{
    for (int token_major = 0; token_major < 2; token_major++) {
        struct problem p = cut_problem(kernel, GIVEN_OFFSET);
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

/* The rows of x that batch b of a larger call has. */
struct batch {
    const struct call *whole;
    int64_t b;
    const struct copy *onto; /* what out holds, from the second batch on */
};

static void edit_batch(struct call *call, const void *user)
{
    const struct batch *batch = user;
    size_t row = (size_t)call->problem.dim * sizeof(float);
    for (int64_t t = 0; t < call->problem.tokens; t++)
        memcpy(tensor_row(call_x(call), t),
               batch->whole->x + (batch->b * call->problem.tokens + t) * call->problem.dim,
               row);
    for (int64_t r = 0; batch->b > 0 && r < call->problem.rows; r++)
        memcpy(tensor_row(call_out(call), r), copy_row(batch->onto, 0, r), row);
}

static void law_batches_of_gradient(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = cut_problem(kernel, GIVEN_OFFSET), one = p;
    struct copy want = { .n = 0 }, sum = { .n = 0 };
    struct call whole;
    bool ok = run_problem(t, &p, NULL, NULL, &want) &&
              call_create(&whole, &p, &memory_plain) == POSENC_OK;
    one.batch = 1;
    for (int64_t b = 0; ok && b < p.batch; b++) {
        struct copy onto = sum;
        const struct batch batch = { &whole, b, &onto };
        one.accumulate = b > 0;
        if (!run_problem(t, &one, edit_batch, &batch, &sum))
            sum.n = 0;
        copy_free(&onto);
    }
    if (ok) {
        require(t,
                sum.n == 1 && memcmp(copy_row(&sum, 0, p.first), copy_row(&sum, 0, 0),
                                     (size_t)p.dim * sizeof(float)) != 0,
                "a row with tokens is one without");
        require_same_copy(t, &sum, &want, "one batch after the other");
        call_destroy(&whole);
    }
    copy_free(&sum);
    copy_free(&want);
    t->problem = NULL;
}

/* ---- Adds ---- */

static void law_add(struct tally *t, enum posenc_kernel kernel)
{
    static const enum posenc_kernel build_of[POSENC_KERNEL_COUNT] = {
        [POSENC_KERNEL_sinusoidal_add] = POSENC_KERNEL_sinusoidal,
        [POSENC_KERNEL_alibi_add] = POSENC_KERNEL_alibi,
        [POSENC_KERNEL_t5_bias_add] = POSENC_KERNEL_t5_bias,
        [POSENC_KERNEL_distance_bias_add] = POSENC_KERNEL_distance_bias,
        [POSENC_KERNEL_window_bias_add] = POSENC_KERNEL_window_bias,
        [POSENC_KERNEL_relative_bias_add] = POSENC_KERNEL_relative_bias,
    };
    enum signature_id s = kernel_signature(kernel);
    if (!law_needs(t, build_of[kernel]))
        return;
    for (int v = 0; v < 6; v++) {
        struct problem p = cut_problem(kernel, v & 1 ? GIVEN_ARRAY : GIVEN_OFFSET), table = p;
        table.kernel = build_of[kernel];
        p.layout = table.layout = (enum posenc_layout)(v % 3);
        if (s == SIGNATURE_sinusoidal)
            p.scale = table.scale = v == 4 ? 0.125 : 1.0;
        p.freqs.profile = table.freqs.profile = v > 3 ? POSENC_HF_F32 : POSENC_EXACT;
        p.special = table.special = v == 3; /* NaN and infinities go through */
        if (kernel_on_scores(kernel) && s != SIGNATURE_relative && !p.slopes_by_batch)
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
        struct problem p = cut_problem(kernel, GIVEN_ARRAY);
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
    { "in-place", law_in_place,
      KERNELS(K(sinusoidal_add), K(learned_add), K(rope_half), K(rope_interleaved),
              K(alibi_add), K(t5_bias_add), K(distance_bias_add), K(window_bias_add),
              K(relative_bias_add)) },
    { "numbering", law_numbering,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(learned_grad), K(rope_table),
              K(rope_half), K(rope_interleaved)) },
    { "batches", law_batches,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(learned_add), K(rope_table), K(rope_half),
              K(rope_interleaved)) },
    { "batches", law_batches_of_gradient, KERNELS(K(learned_grad)) },
    { "add-is-build-then-add", law_add,
      KERNELS(K(sinusoidal_add), K(alibi_add), K(t5_bias_add), K(distance_bias_add),
              K(window_bias_add), K(relative_bias_add)) },
    { "row-plus-x", law_learned, KERNELS(K(learned_add)) },
};
const int n_laws_call = sizeof laws_call / sizeof laws_call[0];
