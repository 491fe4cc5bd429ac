/*
 * Laws of rotations of a part of each head, to the bit:
 *
 *   partial-copies-tail   channels past rotary_dim are a copy of the input's bits, NaN and all
 *   window-in-head        a window at an offset turns as the same channels do in a tensor of
 *   their
 *                         own; channels before it are copies
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <string.h>

static const int64_t rotary_dims[] = { 2, 6, 64, 130 };
enum { ROTARY_DIMS = sizeof rotary_dims / sizeof rotary_dims[0] };

/* rotary_dims[d] channels that turn, and `others`. */
static struct problem partial_problem(enum posenc_kernel kernel, int d, int64_t others,
                                      int64_t tokens)
{
    struct problem p = problem_default(kernel);
    p.rotary_dim = rotary_dims[d];
    p.dim = p.rotary_dim + others;
    p.first = 1;
    p.tokens = tokens;
    p.rows = 64;
    return p;
}

/* ---- Channels past those that turn ---- */

/* Quiet and signalling NaN with payloads, subnormals, negative zero: a copy keeps them. */
static void edit_tail(struct call *call, const void *user)
{
    (void)user;
    static const uint32_t kinds[] = { 0x7fc12345u, 0xffa00001u, 0x80000000u,
                                      0x00000001u, 0x7f812345u, 0xff800000u };
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = tensor_rows(x); r < n; r++)
        for (int64_t c = call->problem.rotary_dim; c < call->problem.dim; c++)
            memcpy(tensor_row(x, r) + c, &kinds[(r + c) % 6], sizeof(float));
}

static void law_partial(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t tails[] = { 1, 2, 3, 8, 16, 17, 40 };
    for (int d = 0; d < ROTARY_DIMS; d++)
        for (int k = 0; k < 14; k++) {
            struct problem p = partial_problem(kernel, d, tails[k % 7], 3);
            struct call call;
            t->problem = &p;
            p.in_place = k >= 7;
            if (!require(t,
                         call_create_by(t->run->subject, &call, &p, &memory_plain) == POSENC_OK,
                         "the call was not made"))
                continue;
            edit_tail(&call, NULL);
            struct call before = call; /* its x holds the tail, in place until the call */
            size_t bytes = (size_t)tails[k % 7] * sizeof(float);
            unsigned char want[3 * 3 * 40 * sizeof(float)];
            for (int64_t r = 0; r < 9; r++)
                memcpy(want + (size_t)r * bytes, tensor_row(call_x(&before), r) + p.rotary_dim,
                       bytes);
            struct guarded g = guarded_run(&call, t->run->backend, NULL);
            require_clean(t, &g);
            for (int64_t r = 0; r < 9; r++)
                require(t,
                        memcmp(call_row(&call, 0, r) + p.rotary_dim, want + (size_t)r * bytes,
                               bytes) == 0,
                        "the channels past rotary_dim are not a copy of the input's bits");
            call_destroy(&call);
        }
    t->problem = NULL;
}

/* ---- A window in the head ---- */

/* The channels from the offset on are a tensor of their own. */
static void edit_slice(struct call *call, const void *user)
{
    const int64_t from = *(const int64_t *)user;
    struct posenc_tensor *const tensors[] = { call_x(call), call_out(call) };
    for (int k = 0; k < 2; k++) {
        tensors[k]->data = (float *)tensors[k]->data + from;
        tensors[k]->shape[tensors[k]->rank - 1] -= from;
    }
    call->args.rope.rotary_offset = 0;
}

static void law_window(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t offsets[] = { 1, 7, 64 };
    for (int d = 0; d < ROTARY_DIMS; d++)
        for (int k = 0; k < 6; k++) {
            const int64_t from = offsets[k % 3];
            struct problem p = partial_problem(kernel, d, from + 3, 5);
            struct copy got = { .n = 0 }, want = { .n = 0 };
            struct call pristine;
            p.rotary_offset = from;
            p.transpose = k >= 3;
            p.in_place = k % 2;
            if (run_problem(t, &p, NULL, NULL, &got) &&
                run_problem(t, &p, edit_slice, &from, &want) &&
                call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
                for (int64_t r = 0; r < got.rows[0]; r++) {
                    require_same_bits(t, copy_row(&got, 0, r), pristine.x + r * p.dim, from,
                                      "channels before the window");
                    require_same_bits(t, copy_row(&got, 0, r) + from,
                                      copy_row(&want, 0, r) + from, p.dim - from,
                                      "the window, and the same channels as a tensor");
                }
                call_destroy(&pristine);
            }
            copy_free(&got);
            copy_free(&want);
            t->problem = NULL;
        }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_partial[] = {
    { "partial-copies-tail", law_partial, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "window-in-head", law_window, KERNELS(K(rope_half), K(rope_interleaved)) },
};
const int n_laws_partial = sizeof laws_partial / sizeof laws_partial[0];
