/*
 * Laws of storage in 16 bits, all to the bit (a NaN for a NaN):
 *
 *   rounds-f32-result   what a call stores is what the same backend's f32 call on the same
 *   values
 *                       gives, rounded once more to nearest even
 *   tables-widen        16-bit cosines and sines turn as what they are in f32
 *   every-value         every value of the type goes through loads and stores; every f32 half
 *   way
 *                       between two of them, or next to that, is rounded to the right one (in
 *                       quick runs one in eight)
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/engine/judge.h"
#include "laws.h"
#include "conformance/problem/lengths.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The f32 result, rounded ---- */

/* Which product of a rotation autovec contracts is the compiler's choice, loop by loop: there
 * the two calls are each within 2 pair ulp of the truth, so within 4 of the other.  The norm of
 * a pair is at least its larger product. */
static double apart(const struct tally *t, const struct problem *p, const float *row,
                    int64_t column)
{
    const int64_t half = p->rotary_dim / 2, i = column - p->rotary_offset;
    if (strcmp(t->run->backend->family, "autovec") != 0 || !kernel_turns(p->kernel) || i < 0 ||
        i >= 2 * half)
        return 0.0;
    const int64_t other = p->kernel == POSENC_KERNEL_rope_interleaved ? i ^ 1
                          : i < half                                  ? i + half
                                                                      : i - half;
    return 4.0 * ulp_of(POSENC_F32,
                        hypot((double)row[column], (double)row[p->rotary_offset + other]));
}

static bool same_value(float got, float want)
{
    return bits_of(got) == bits_of(want) ||
           (isnan(got) && isnan(want) && bits_of(got) != CALL_CANARY);
}

/* Rounds what an f32 call gave and compares what the other one stored. */
static void require_rounded(struct tally *t, const struct problem *p, const struct copy *got,
                            const struct copy *f32, const char *what)
{
    const enum posenc_dtype type = output_dtype(p);
    for (int o = 0; o < got->n; o++)
        for (int64_t i = 0; i < got->rows[o] * got->width[o]; i++) {
            const int64_t r = i / got->width[o], column = i % got->width[o];
            const float *row = copy_row(f32, o, r), stored = copy_row(got, o, r)[column];
            const double within = apart(t, p, row, column);
            if (same_value(stored, round_to(type, row[column])))
                continue;
            const struct stored_error e =
                stored_error(type, stored, (double)row[column], within);
            if (within > 0.0 && e.error <= e.limit)
                continue;
            require(t, false,
                    "%s: row %lld element %lld is %.9g, the f32 result %.9g rounds to %.9g",
                    what, (long long)r, (long long)column, (double)stored, (double)row[column],
                    (double)round_to(type, row[column]));
            return;
        }
    require(t, true, "%s", what);
}

static void check_rounded(struct tally *t, struct problem p, enum posenc_dtype dtype,
                          call_edit *edit, const char *what)
{
    struct problem twin = p;
    struct copy got = { .n = 0 }, want = { .n = 0 };
    p.dtype = p.values = twin.values = dtype;
    p.offset_bytes = 2;
    if (run_problem(t, &twin, edit, &dtype, &want) && run_problem(t, &p, edit, &dtype, &got))
        require_rounded(t, &p, &got, &want, what);
    copy_free(&got);
    copy_free(&want);
    t->problem = NULL;
}

/* Values at both ends of a type's range, which it has: multiplied and added they overflow,
 * become subnormal and vanish. */
static void edit_extremes(struct call *call, const void *user)
{
    static const float f16[] = { 65504.0f, 49152.0f,   0x1p-14f,    0x1.004p-14f,
                                 0x1p-24f, 0x1.8p-22f, 0x1.ff8p-15f };
    static const float bf16[] = { 0x1.fep127f, 0x1.8p127f,  0x1p-126f,   0x1.02p-126f,
                                  0x1p-133f,   0x1.8p-131f, 0x1.fcp-127f };
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = x->data ? storage_rows(x) : 0; r < n; r++)
        for (int64_t c = 0; c < x->shape[x->rank - 1]; c++) {
            const uint64_t z = mix64((uint64_t)r, (uint64_t)c);
            const float value = (dtype == POSENC_F16 ? f16 : bf16)[z % 7];
            storage_put(x->dtype, storage_row(x, r), c, z >> 63 ? -value : value);
        }
}

static void check_rounds(struct tally *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    const int64_t lanes = memory_lanes(t->run->backend);
    const int64_t lengths[] = { 2 * lanes + 3, 1, lanes - 1, lanes + 1, 4 * lanes };
    for (int i = 0; i < (t->run->options->full ? 5 : 1); i++)
        for (int v = 0; v < MEMORY_VARIANTS; v++)
            check_rounded(t, memory_problem(kernel, lengths[i], v), dtype, NULL,
                          "stored in 16 bits");
    for (int given = GIVEN_OFFSET; given < (kernel_has_plan(kernel) ? GIVENS : GIVEN_PLACES);
         given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check_rounded(t, p, dtype, NULL, "stored in 16 bits");
        p.x_scale = 1.5f;
        if (kernel_takes_x(kernel) && (t->run->options->full || !kernel_in_place(kernel)))
            check_rounded(t, p, dtype, edit_extremes, "stored in 16 bits, near the ends");
        p.in_place = kernel_in_place(kernel);
        if (p.in_place)
            check_rounded(t, p, dtype, edit_extremes, "stored in 16 bits, in place");
    }
}

static void law_rounds_f16(struct tally *t, enum posenc_kernel kernel)
{
    check_rounds(t, kernel, POSENC_F16);
}

static void law_rounds_bf16(struct tally *t, enum posenc_kernel kernel)
{
    check_rounds(t, kernel, POSENC_BF16);
}

/* ---- 16-bit cosines and sines ---- */

static void edit_rounded_tables(struct call *call, const void *user)
{
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    struct posenc_tensor *const tables[] = { owned(&call->args.rope.cos),
                                             owned(&call->args.rope.sin) };
    for (int k = 0; k < 2; k++)
        for (int64_t r = 0, n = storage_rows(tables[k]); r < n; r++)
            for (int64_t i = 0; i < tables[k]->shape[1]; i++)
                tensor_row(tables[k], r)[i] = round_to(dtype, tensor_row(tables[k], r)[i]);
}

static void check_tables(struct tally *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    const int64_t lanes = memory_lanes(t->run->backend);
    const int64_t lengths[] = { lanes - 1, 2 * lanes + 1 };
    for (int i = 0; i < 2 * MEMORY_VARIANTS * 3; i++) {
        struct problem p = memory_problem(kernel, lengths[i % 2], i / 2 % MEMORY_VARIANTS),
                       twin;
        struct copy got = { .n = 0 }, want = { .n = 0 };
        p.dtype = p.values = (enum posenc_dtype)(i / 2 / MEMORY_VARIANTS);
        twin = p; /* of the same storage: its results are rounded already */
        p.table_dtype = dtype;
        p.offset_bytes = 2;
        if (run_problem(t, &twin, edit_rounded_tables, &dtype, &want) &&
            run_problem(t, &p, NULL, NULL, &got))
            require_rounded(t, &p, &got, &want, "cos and sin in 16 bits");
        copy_free(&got);
        copy_free(&want);
        t->problem = NULL;
    }
}

static void law_tables_f16(struct tally *t, enum posenc_kernel kernel)
{
    check_tables(t, kernel, POSENC_F16);
}

static void law_tables_bf16(struct tally *t, enum posenc_kernel kernel)
{
    check_tables(t, kernel, POSENC_BF16);
}

/* ---- Every value ---- */

/* What 16 bits say, by the definition of the formats: (-1)^s 2^(e - bias) 1.f, below the least
 * e 2^(1 - bias) 0.f, above the largest infinity or NaN. */
static double value_of(enum posenc_dtype dtype, unsigned bits)
{
    const int fraction_bits = dtype == POSENC_F16 ? 10 : 7;
    const int bias = dtype == POSENC_F16 ? 15 : 127;
    const int exponent = (int)(bits >> fraction_bits) & (2 * bias + 1);
    const int fraction = (int)(bits & ((1u << fraction_bits) - 1));
    const double sign = bits & 0x8000u ? -1.0 : 1.0;
    if (exponent == 2 * bias + 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    const int whole = exponent ? fraction + (1 << fraction_bits) : fraction;
    return sign * ldexp((double)whole, (exponent ? exponent : 1) - bias - fraction_bits);
}

/* What is stored for input i of INPUTS: a value of the type, the f32 half way to the next one,
 * or the f32 below or above that; a NaN; and what that should be.  A number of inputs in a row
 * are spread over all of them. */
enum { INPUTS = 4 << 16 };
struct input {
    float value, want;
};

static struct input input_of(enum posenc_dtype dtype, int64_t i)
{
    const unsigned at = (unsigned)(i * 40503 % INPUTS), bits = at >> 2;
    const unsigned last = dtype == POSENC_F16 ? 0x7bffu : 0x7f7fu; /* the largest finite one */
    const double value = value_of(dtype, bits);
    if (isnan(value)) { /* a payload that a carry, or a cut, would make something else of */
        static const uint32_t nans[] = { 0x7f800001u, 0x7fffffffu, 0xff807fffu, 0xffffffffu };
        return (struct input){ of_bits(nans[at % 4]), NAN };
    }
    if (isinf(value) || at % 4 == 0)
        return (struct input){ (float)value, (float)value };
    const double step = (bits & 0x7fffu) == last
                            ? fabs(value) - fabs(value_of(dtype, bits - 1))
                            : fabs(value_of(dtype, bits + 1)) - fabs(value);
    const float half = (float)copysign(fabs(value) + step / 2, value);
    const float next = (float)((bits & 0x7fffu) == last ? copysign((double)INFINITY, value)
                                                        : value_of(dtype, bits + 1));
    if (at % 4 == 1)
        return (struct input){ nextafterf(half, 0.0f), (float)value };
    if (at % 4 == 2) /* a tie goes to the even one */
        return (struct input){ half, bits % 2 ? next : (float)value };
    return (struct input){ nextafterf(half, copysignf(INFINITY, half)), next };
}

/* Inputs [0, n) into the rows of a table; x a zero that changes none of them. */
static void edit_inputs(struct call *call, const void *user)
{
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    const bool learned = kernel_signature(call->problem.kernel) == SIGNATURE_learned;
    struct posenc_tensor *table =
        owned(learned ? &call->args.learned.table : &call->args.distance.values);
    const int64_t width = table->shape[1];
    for (int64_t i = 0; i < table->shape[0] * width; i++)
        tensor_row(table, i / width)[i % width] = input_of(dtype, i).value;
    for (int64_t r = 0, n = learned ? storage_rows(call_x(call)) : 0; r < n; r++)
        for (int64_t c = 0; c < width; c++)
            storage_put(dtype, storage_row(call_x(call), r), c, -0.0f);
}

/* A learned table of the inputs onto zeros, or values by distance, the last key's first. */
static void check_stores(struct tally *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    enum { WIDTH = 4096 };
    const int64_t inputs = t->run->options->full ? INPUTS : INPUTS / 16;
    const bool learned = kernel_signature(kernel) == SIGNATURE_learned;
    struct problem p = problem_default(kernel);
    struct copy got = { .n = 0 };
    p.dtype = p.values = dtype;
    p.tokens = p.rows = p.heads = inputs / WIDTH;
    p.dim = p.keys = WIDTH;
    p.queries = 1;
    p.query_offset = 0;
    if (run_problem(t, &p, edit_inputs, &dtype, &got))
        for (int64_t i = 0; i < inputs; i++) {
            const struct input input = input_of(dtype, i);
            const int64_t column = learned ? i % WIDTH : WIDTH - 1 - i % WIDTH;
            const float stored = copy_row(&got, 0, i / WIDTH)[column];
            require(t, same_value(stored, input.want), "%a (%08x) is stored as %a, not %a",
                    (double)input.value, bits_of(input.value), (double)stored,
                    (double)input.want);
        }
    copy_free(&got);
    t->problem = NULL;
}

/* x is every pattern of 16 bits; a table is -0, which changes no value. */
static void edit_patterns(struct call *call, const void *user)
{
    (void)user;
    const struct posenc_tensor *x = call_x(call);
    const int64_t width = x->shape[x->rank - 1];
    for (int64_t i = 0; i < 1 << 16; i++)
        ((uint16_t *)storage_row(x, i / width))[i % width] = (uint16_t)i;
    for (int64_t r = 0;
         r < call->problem.rows && kernel_signature(call->problem.kernel) == SIGNATURE_learned;
         r++)
        for (int64_t c = 0; c < width; c++)
            tensor_row(owned(&call->args.learned.table), r)[c] = -0.0f;
}

/* Onto -0 a value stays what it is; into a gradient it goes as f32, onto +0. */
static void check_loads(struct tally *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    enum { WIDTH = 256 };
    struct problem p = problem_default(kernel);
    struct copy got = { .n = 0 };
    p.dtype = p.values = dtype;
    p.dim = WIDTH;
    p.tokens = p.rows = (1 << 16) / WIDTH;
    const bool sum = kernel_signature(kernel) == SIGNATURE_learned_grad;
    if (run_problem(t, &p, edit_patterns, NULL, &got))
        for (unsigned i = 0; i < 1 << 16; i++) {
            const double value = value_of(dtype, i);
            const float want = sum && value == 0 ? 0.0f : (float)value;
            const float loaded = copy_row(&got, 0, i / WIDTH)[i % WIDTH];
            require(t, isnan(want) ? isnan(loaded) : bits_of(loaded) == bits_of(want),
                    "the bits %04x became %a, not %a", i, (double)loaded, (double)want);
        }
    copy_free(&got);
    t->problem = NULL;
}

static void check_every(struct tally *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    const enum signature_id s = kernel_signature(kernel);
    if (s != SIGNATURE_learned_grad)
        check_stores(t, kernel, dtype);
    if (s != SIGNATURE_distance)
        check_loads(t, kernel, dtype);
}

static void law_every_f16(struct tally *t, enum posenc_kernel kernel)
{
    check_every(t, kernel, POSENC_F16);
}

static void law_every_bf16(struct tally *t, enum posenc_kernel kernel)
{
    check_every(t, kernel, POSENC_BF16);
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_storage[] = {
    { "rounds-f32-result", law_rounds_f16, EVERY_KERNEL_OF(POSENC_F16) },
    { "rounds-f32-result", law_rounds_bf16, EVERY_KERNEL_OF(POSENC_BF16) },
    { "tables-widen", law_tables_f16,
      KERNELS_OF(POSENC_F16, false, K(rope_half), K(rope_interleaved)) },
    { "tables-widen", law_tables_bf16,
      KERNELS_OF(POSENC_BF16, false, K(rope_half), K(rope_interleaved)) },
    { "every-value", law_every_f16,
      KERNELS_OF(POSENC_F16, false, K(learned_add), K(learned_grad), K(distance_bias)) },
    { "every-value", law_every_bf16,
      KERNELS_OF(POSENC_BF16, false, K(learned_add), K(learned_grad), K(distance_bias)) },
};
const int n_laws_storage = sizeof laws_storage / sizeof laws_storage[0];
