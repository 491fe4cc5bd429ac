/*
 * Tests that posenc_fast_check_rope() agrees with the full checks: they accept all calls that it accepts, and give the
 * kernel the same arguments. Calls are random, and some of their members are replaced by small, huge or negative
 * values, or by addresses of other tensors.
 */
#include "impl/checks.h"
#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 400000, MEMORY = 1 << 16 };

static _Alignas(64) char memory[MEMORY];
static uint64_t state = 1;

/* Returns a random number below n. */
static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static int64_t draw_member(void)
{
    static const int64_t edges[] = { INT32_MAX, INT64_C(1) << 31, INT64_C(1) << 40, INT64_MAX,
                                     INT64_MIN };
    static const int32_t values[] = { 0,  1,  2,  3,  4,   5,   8,       16,     64,
                                      96, -1, -8, 63, 128, 256, 1 << 29, 1 << 30 };
    enum { EDGES = sizeof edges / sizeof *edges, VALUES = sizeof values / sizeof *values };
    const uint64_t i = draw(EDGES + VALUES);
    return i < EDGES ? edges[i] : values[i - EDGES];
}

static void *draw_address(void)
{
    static const uintptr_t edges[] = { 0, 1, 4, UINTPTR_MAX - 63, UINTPTR_MAX / 2 - 255 };
    enum { EDGES = sizeof edges / sizeof *edges };
    const uint64_t i = draw(40);
    if (i < EDGES)
        return (void *)edges[i];
    /* One statement for each draw, so that calls do not depend on the compiler's order. */
    char *const line = memory + draw(MEMORY / 64) * 64;
    const bool aligned = draw(2) == 0;
    return aligned ? line : line + draw(8);
}

static void corrupt_tensor(enum posenc_dtype *dtype, int32_t *rank, int64_t *shape,
                           int64_t *stride)
{
    switch (draw(5)) {
    case 0:
        *dtype = (enum posenc_dtype)draw(4);
        break;
    case 1:
        *rank = (int32_t)draw(7) - 1;
        break;
    case 2:
        shape[draw(4)] = draw_member();
        break;
    default:
        stride[draw(4)] = draw_member();
    }
}

static void corrupt(struct posenc_rope_args *a)
{
    struct posenc_const_tensor *inputs[] = { &a->cos, &a->sin, &a->x };
    uint64_t i = draw(12);
    if (i < 3)
        corrupt_tensor(&inputs[i]->dtype, &inputs[i]->rank, inputs[i]->shape,
                       inputs[i]->stride);
    else if (i < 6)
        inputs[i - 3]->data = draw_address();
    else if (i == 6)
        a->out.data = draw_address();
    else if (i == 7)
        a->positions.offset = draw_member();
    else if (i == 8)
        a->rotary_offset = draw_member();
    else if (i == 9)
        a->positions.kind = (enum posenc_position_kind)draw(5);
    else
        corrupt_tensor(&a->out.dtype, &a->out.rank, a->out.shape, a->out.stride);
}

/* Draws a call that the fast check must accept: rank 3 or 4, in place or not, any dtypes, disjoint tensors. */
static struct posenc_rope_args draw_common_call(void)
{
    struct posenc_rope_args a = posenc_rope_args_init();
    int64_t tokens = 1 + (int64_t)draw(2), heads = 1 + (int64_t)draw(3);
    int64_t dim = 16 * (1 + (int64_t)draw(2)), rows = 4 + (int64_t)draw(3);
    a.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, memory, rows, 8);
    a.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, memory + 4096, rows, 8);
    a.cos.dtype = a.sin.dtype = (enum posenc_dtype)draw(3);
    a.out = draw(2) ? posenc_tensor_3d(POSENC_DTYPE_F32, memory + 8192, tokens, heads, dim)
                    : posenc_tensor_4d(POSENC_DTYPE_F32, memory + 8192, 1 + (int64_t)draw(2),
                                       tokens, heads, dim);
    a.out.dtype = (enum posenc_dtype)draw(3);
    const uint64_t where = draw(3); /* in place, apart, or left zero, which is also in place */
    if (where != 2)
        a.x = posenc_const_view(a.out);
    if (where == 1)
        a.x.data = memory + 32768;
    a.positions.offset = (int64_t)draw(3);
    return a;
}

static bool same_tensor(const struct posenc_const_tensor *a,
                        const struct posenc_const_tensor *b)
{
    size_t n = (size_t)a->rank * sizeof *a->shape;
    return a->data == b->data && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, n) == 0 && memcmp(a->stride, b->stride, n) == 0 &&
           (a->reserved[0] | a->reserved[1] | b->reserved[0] | b->reserved[1]) == 0;
}

/* Compares all that a kernel reads of calls without an array of positions. */
static bool same_call(const struct posenc_rope_args *a, const struct posenc_rope_args *b)
{
    const struct posenc_const_tensor out_a = posenc_const_view(a->out),
                                     out_b = posenc_const_view(b->out);
    return a->size == b->size && a->positions.data == b->positions.data &&
           a->transpose == b->transpose && a->rotary_offset == b->rotary_offset &&
           a->positions.kind == b->positions.kind &&
           a->positions.offset == b->positions.offset && same_tensor(&a->cos, &b->cos) &&
           same_tensor(&a->sin, &b->sin) && same_tensor(&a->x, &b->x) &&
           same_tensor(&out_a, &out_b);
}

int main(void)
{
    int missed = 0, accepted = 0, rejected = 0, wrong = 0, differing = 0;
    for (int i = 0; i < DRAWS; i++) {
        struct posenc_rope_args args = draw_common_call(), call, checked;
        struct call_summary fast = { .empty = false }, full = { .empty = false };
        int corruptions = (int)draw(4);
        for (int k = 0; k < corruptions; k++)
            corrupt(&args);
        checked = args;
        bool valid = posenc_check_rope(&checked, true, &full, NULL) == POSENC_OK && !full.empty;
        if (!posenc_fast_check_rope(&args, &call, &fast)) {
            missed += corruptions == 0;
            /* The fast check may also leave a valid call to the full checks. */
            rejected += !valid;
            continue;
        }
        accepted++;
        wrong += !valid;
        differing += valid && (!same_call(&call, &checked) || fast.dtypes != full.dtypes);
    }
    printf("# %d accepted by the fast check, %d rejected by both\n", accepted, rejected);
    require(missed == 0, "every usual call is accepted");
    require(wrong == 0, "no call is accepted that the checks reject");
    require(differing == 0, "and the kernel gets the same arguments");
    require(accepted > DRAWS / 4 && rejected > DRAWS / 4, "there were many of both");
    return tap_end();
}
