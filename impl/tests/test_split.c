/*
 * Tests that parts of a call share no cache line if any axis can be cut so, write each element once, and are empty if
 * nothing is left; and that calls that cannot be cut are rejected. A property of the conformance suite checks for every
 * kernel that parts give the bits of the whole.
 */
#include <posenc/experimental.h>
#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16, LINE = 64, NO_PART = -1 };

static _Alignas(LINE) char memory[BYTES];
static int owner[BYTES]; /* the part that writes a byte */

/* ---- Bytes that parts write ---- */

struct shape {
    int64_t batch, tokens, heads, dim;
    int64_t pad; /* elements behind each head */
    int base;    /* bytes before the first element */
    bool backward;
    enum posenc_dtype dtype;
};

static struct posenc_rope_args make_args(const struct shape *s)
{
    struct posenc_rope_args args = posenc_rope_args_init();
    struct posenc_tensor *out = &args.out;
    const int64_t head = s->dim + s->pad, token = s->heads * head;
    *out = posenc_tensor_4d(POSENC_DTYPE_F32, memory + s->base, s->batch, s->tokens, s->heads,
                            s->dim);
    out->dtype = s->dtype;
    out->stride[2] = head;
    out->stride[1] = s->backward ? -token : token;
    out->stride[0] = s->tokens * token;
    if (s->backward)
        out->data = (char *)out->data +
                    (s->tokens - 1) * token * (s->dtype == POSENC_DTYPE_F32 ? 4 : 2);
    args.x = posenc_const_view(*out);
    args.positions.offset = 5;
    return args;
}

/* Marks the elements of a tensor; returns false if another part has one. */
static bool mark_elements(const struct posenc_tensor *t, int part)
{
    const int item = t->dtype == POSENC_DTYPE_F32 ? 4 : 2;
    bool alone = true;
    for (int64_t i = 0; i < t->shape[0]; i++)
        for (int64_t j = 0; j < t->shape[1]; j++)
            for (int64_t k = 0; k < t->shape[2]; k++)
                for (int64_t c = 0; c < t->shape[3]; c++) {
                    int64_t at = i * t->stride[0] + j * t->stride[1] + k * t->stride[2] + c;
                    for (int b = 0; b < item; b++) {
                        int64_t byte = ((char *)t->data - memory) + at * item + b;
                        alone = alone && owner[byte] == NO_PART;
                        owner[byte] = part;
                    }
                }
    return alone;
}

static int64_t count_shared_lines(void)
{
    int64_t shared = 0;
    for (int line = 0; line < BYTES; line += LINE) {
        int first = NO_PART;
        bool one = true;
        for (int b = line; b < line + LINE; b++) {
            one = one && (owner[b] == NO_PART || first == NO_PART || owner[b] == first);
            first = owner[b] == NO_PART ? first : owner[b];
        }
        shared += !one;
    }
    return shared;
}

static void clear_marks(void)
{
    for (int b = 0; b < BYTES; b++)
        owner[b] = NO_PART;
}

/* Returns true if some axis has a cut that shares no line, by trying all. */
static bool has_clean_cut(const struct posenc_tensor *whole)
{
    for (int d = 0; d < 3; d++)
        for (int64_t f = 1; f < whole->shape[d]; f++) {
            struct posenc_tensor a = *whole, b = *whole;
            a.shape[d] = f;
            b.shape[d] -= f;
            b.data = (char *)b.data + f * b.stride[d] * (b.dtype == POSENC_DTYPE_F32 ? 4 : 2);
            clear_marks();
            (void)mark_elements(&a, 0);
            (void)mark_elements(&b, 1);
            if (count_shared_lines() == 0)
                return true;
        }
    return false;
}

static bool has_good_parts(const struct shape *s, int n)
{
    const struct posenc_rope_args whole = make_args(s);
    const bool clean = has_clean_cut(&whole.out);
    int64_t elements = 0;
    bool good = true;
    clear_marks();
    for (int k = 0; k < n; k++) {
        struct posenc_rope_args part;
        good = good && !posenc_split(POSENC_KERNEL_ROPE_HALF, &whole, k, n, &part, NULL);
        good = good && mark_elements(&part.out, k) &&
               memcmp(part.x.shape, part.out.shape, 32) == 0;
        int64_t all = 1;
        for (int d = 0; d < 4; d++)
            all *= part.out.shape[d];
        elements += all;
        good = good && (all == 0 || part.x.data == part.out.data);
    }
    good = good && elements == s->batch * s->tokens * s->heads * s->dim;
    if (good && (!clean || count_shared_lines() == 0))
        return true;
    printf("# [%d %d %d %d] pad %d base %d backward %d dtype %d, %d parts: %d lines shared\n",
           (int)s->batch, (int)s->tokens, (int)s->heads, (int)s->dim, (int)s->pad, s->base,
           s->backward, (int)s->dtype, n, (int)count_shared_lines());
    return false;
}

static void test_cache_lines(void)
{
    static const int64_t sizes[] = { 1, 2, 3, 5 }, dims[] = { 2, 6, 16, 20 };
    static const int parts[] = { 2, 3, 7 }, bases[] = { 0, 4, 32, 60 };
    uint32_t seed = 1;
    bool good = true;
    for (int i = 0; i < 300; i++) {
        uint32_t r = seed = seed * 1664525u + 1013904223u;
        const struct shape s = { .batch = sizes[r >> 30],
                                 .tokens = sizes[r >> 28 & 3] * 3,
                                 .heads = sizes[r >> 26 & 3],
                                 .dim = dims[r >> 24 & 3],
                                 .pad = r >> 22 & 1 ? 12 : 0,
                                 .base = bases[r >> 20 & 3],
                                 .backward = r >> 19 & 1,
                                 .dtype = r >> 18 & 1 ? POSENC_DTYPE_F16 : POSENC_DTYPE_F32 };
        good = has_good_parts(&s, parts[r % 3]) && good;
    }
    require(good, "no line of two parts where a cut between lines exists, each element once");
}

/* Cuts an array [tokens, 2, half] in which cosines and sines alternate. */
static void test_interleaved_outputs(void)
{
    /* Two tokens are three lines. Cosines and sines alone could be cut at other places. */
    enum { TOKENS = 10, HALF = 12 };
    const int64_t half_bytes = HALF * (int64_t)sizeof(float), pair = 2 * (int64_t)HALF;
    bool apart = true;
    for (int n = 1; n < 8; n++) {
        struct posenc_rope_table_args whole = posenc_rope_table_args_init(), part;
        whole.cos = posenc_tensor_2d(POSENC_DTYPE_F32, memory, TOKENS, HALF);
        whole.sin = posenc_tensor_2d(POSENC_DTYPE_F32, memory + half_bytes, TOKENS, HALF);
        whole.cos.stride[0] = whole.sin.stride[0] = pair;
        int64_t tokens = 0;
        for (int k = 0; k < n; k++) {
            apart = apart &&
                    !posenc_split(POSENC_KERNEL_ROPE_TABLE, &whole, k, n, &part, NULL) &&
                    part.positions.offset == (part.cos.shape[0] ? tokens : 0) &&
                    part.sin.shape[0] == part.cos.shape[0] && tokens % 2 == 0 &&
                    (!part.cos.shape[0] ||
                     (char *)part.sin.data == memory + (2 * tokens + 1) * half_bytes);
            tokens += part.cos.shape[0];
        }
        apart = apart && tokens == TOKENS;
    }
    require(apart, "cosines and sines that are woven into each other are cut as one");
}

/* ---- Empty parts and rejected calls ---- */

static void test_empty_parts(void)
{
    const struct shape s = { 1, 2, 1, 16, 0, 0, false, POSENC_DTYPE_F32 };
    struct posenc_rope_args whole = make_args(&s), part;
    static float angles[16 * 8];
    int run = 0, empty = 0;
    whole.cos = whole.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, angles, 16, 8);
    for (int k = 0; k < 7; k++) {
        if (posenc_split(POSENC_KERNEL_ROPE_HALF, &whole, k, 7, &part, NULL))
            abort();
        empty += part.out.shape[1] == 0;
        run += posenc_rope_half(NULL, &part, NULL) == POSENC_OK;
    }
    require(run == 7 && empty == 5, "empty parts are calls that do nothing");
}

static bool is_rejected(struct posenc_rope_args args, int64_t k, int64_t n,
                        enum posenc_status want)
{
    struct posenc_rope_args part, before;
    struct posenc_error error = { 0 };
    memset(&part, 0x5a, sizeof part);
    memcpy(&before, &part, sizeof part);
    enum posenc_status got = posenc_rope_half_split(&args, k, n, &part, &error);
    return got == want && memcmp(&before, &part, sizeof part) == 0 && error.status == want &&
           *error.what;
}

static void test_rejections(void)
{
    const struct shape s = { 2, 3, 4, 16, 0, 0, false, POSENC_DTYPE_F32 };
    const struct posenc_rope_args args = make_args(&s);
    struct posenc_rope_args bad = args;
    bool rejected = is_rejected(args, -1, 2, POSENC_ERR_SHAPE) &&
                    is_rejected(args, 2, 2, POSENC_ERR_SHAPE) &&
                    is_rejected(args, 0, 0, POSENC_ERR_SHAPE) &&
                    is_rejected(args, 0, INT64_C(1) << 31, POSENC_ERR_SHAPE);
    bad.size = 3;
    rejected = rejected && is_rejected(bad, 0, 2, POSENC_ERR_ARGUMENT);
    bad = args;
    bad.x.shape[1] = 2;
    rejected = rejected && is_rejected(bad, 0, 2, POSENC_ERR_SHAPE) &&
               is_rejected(bad, 1, 2, POSENC_ERR_SHAPE);
    bad = args;
    bad.out.rank = 5;
    rejected = rejected && is_rejected(bad, 0, 2, POSENC_ERR_SHAPE);
    bad = args;
    bad.out.dtype = (enum posenc_dtype)7;
    rejected = rejected && is_rejected(bad, 0, 2, POSENC_ERR_DTYPE);
    bad = args;
    bad.positions.offset = INT64_MAX;
    rejected = rejected && is_rejected(bad, 0, 2, POSENC_ERR_POSITION);
    require(rejected, "calls that cannot be cut are rejected, and the part stays");
    bad = args;
    struct posenc_rope_args part;
    require(!posenc_split(POSENC_KERNEL_ROPE_HALF, &args, 1, 2, &part, NULL) &&
                !posenc_split(POSENC_KERNEL_ROPE_HALF, &bad, 1, 2, &bad, NULL) &&
                memcmp(&part, &bad, sizeof part) == 0,
            "a part may replace the arguments that it is cut from");
    require(posenc_split(POSENC_KERNEL_COUNT, &args, 0, 1, &part, NULL) ==
                    POSENC_ERR_ARGUMENT &&
                posenc_split(POSENC_KERNEL_ROPE_HALF, NULL, 0, 1, &part, NULL) ==
                    POSENC_ERR_ARGUMENT &&
                posenc_split(POSENC_KERNEL_ROPE_HALF, &args, 0, 1, NULL, NULL) ==
                    POSENC_ERR_ARGUMENT,
            "NULL and an unknown kernel are rejected");
}

/* A part is rejected alone, and reports it to the error of its thread. */
static void test_errors(void)
{
    const struct shape s = { 1, 2, 1, 16, 0, 0, false, POSENC_DTYPE_F32 };
    static float angles[16 * 8];
    struct posenc_rope_args whole = make_args(&s), part;
    bool alone = true;
    whole.cos = whole.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, angles, 16, 8);
    whole.positions.offset = 15; /* that of token 1 is no row */
    for (int n = 1; n <= 3; n++) /* n = 1: nothing is cut */
        for (int k = 0; k < n; k++) {
            struct posenc_error error = { 0 };
            alone = alone && !posenc_rope_half_split(&whole, k, n, &part, &error);
            const bool last = part.out.shape[1] == 2 || part.positions.offset == 16;
            const enum posenc_status status = posenc_rope_half(NULL, &part, &error);
            alone = alone && (status == POSENC_ERR_POSITION) == last &&
                    error.status == status &&
                    (!last || (error.value == 16.0 && error.most == 15.0));
        }
    require(alone, "the part with the position that does not exist is rejected, no other one");
}

/* A token stride of 0 means a dense array in a part, too. */
static void test_dense_positions(void)
{
    static const int32_t positions[7] = { 9, 2, 7, 1, 8, 3, 5 };
    const struct shape s = { 1, 7, 1, 16, 0, 0, false, POSENC_DTYPE_F32 };
    struct posenc_rope_args whole = make_args(&s), part;
    bool dense = true;
    whole.positions =
        (struct posenc_positions){ .kind = POSENC_POSITIONS_I32, .data = positions };
    for (int k = 0, t = 0; k < 3; k++) {
        dense = dense && !posenc_split(POSENC_KERNEL_ROPE_HALF, &whole, k, 3, &part, NULL) &&
                part.positions.data == positions + t;
        t += (int)part.out.shape[1];
    }
    require(dense, "parts of positions without a stride begin at their own");
}

int main(void)
{
    test_errors();
    test_dense_positions();
    test_cache_lines();
    test_interleaved_outputs();
    test_empty_parts();
    test_rejections();
    return tap_end();
}
