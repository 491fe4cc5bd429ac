/*
 * Laws of storage in 16 bits, all to the bit (a NaN for a NaN):
 *
 *   rounds-f32-result   what a call stores is what the same backend's f32 call on the same
 *                       values gives, rounded once more to nearest even
 *   tables-widen        16-bit cosines and sines turn as what they are in f32
 *   every-value         every value of the type goes through loads and stores; every f32 half
 *                       way between two of them, or next to that, is rounded to the right one
 *                       (in quick runs one in sixteen)
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
    const struct turning turning = problem_turning(p, column);
    if (strcmp(t->run->backend->family, "autovec") != 0 || !turning.turns)
        return 0.0;
    return 4.0 * ulp_of(POSENC_F32, hypot((double)row[column], (double)row[turning.partner]));
}

static bool same_value(float got, float want)
{
    return bits_of(got) == bits_of(want) ||
           (isnan(got) && isnan(want) && bits_of(got) != CALL_CANARY);
}

/* Rounds what an f32 call gave and compares what the other one stored. */
static void require_rounded(struct tally *t, const struct call *got, const struct call *f32,
                            const char *what)
{
    const struct problem *p = &got->problem;
    const enum posenc_dtype type = output_dtype(p);
    for (int o = 0; o < got->n_outputs; o++)
        for (int64_t r = 0; r < got->outputs[o].rows; r++) {
            const float *row = call_row(f32, o, r), *stored = call_row(got, o, r);
            for (int64_t c = 0; c < got->outputs[o].width; c++) {
                if (same_value(stored[c], round_to(type, row[c])))
                    continue;
                const double within = apart(t, p, row, c);
                const struct stored_error e =
                    stored_error(type, stored[c], (double)row[c], within);
                if (within > 0.0 && e.error <= e.limit)
                    continue;
                require(t, false,
                        "%s: row %lld element %lld is %.9g, the f32 result %.9g rounds to %.9g",
                        what, (long long)r, (long long)c, (double)stored[c], (double)row[c],
                        (double)round_to(type, row[c]));
                return;
            }
        }
    require(t, true, "%s", what);
}

static void check_rounded(struct tally *t, struct problem p, enum posenc_dtype dtype,
                          call_edit *edit, const char *what)
{
    struct problem twin = p;
    p.dtype = p.values = twin.values = dtype;
    twin.dtype = POSENC_F32;
    p.offset_bytes = 2;
    const struct call *want = tally_run(t, &twin, edit, &dtype),
                      *got = tally_run(t, &p, edit, &dtype);
    if (want && got)
        require_rounded(t, got, want, what);
    tally_forget(t);
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

static void law_rounds(struct tally *t, const struct problem *of)
{
    const enum posenc_kernel kernel = of->kernel;
    const bool full = t->run->options->full;
    const int64_t lanes = memory_lanes(t->run->backend);
    const int64_t lengths[] = { 2 * lanes + 3, 1, lanes - 1, lanes + 1, 4 * lanes };
    for (int i = 0; i < (full ? 5 : 1); i++)
        for (int v = 0; v < MEMORY_VARIANTS; v++)
            check_rounded(t, memory_problem(kernel, lengths[i], v), of->dtype, NULL,
                          "stored in 16 bits");
    for (int given = GIVEN_OFFSET; given < (kernel_has_plan(kernel) ? GIVENS : GIVEN_PLACES);
         given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check_rounded(t, p, of->dtype, NULL, "stored in 16 bits");
        p.x_scale = 1.5f;
        if (kernel_takes_x(kernel) && (full || !kernel_in_place(kernel)))
            check_rounded(t, p, of->dtype, edit_extremes, "stored in 16 bits, near the ends");
        p.in_place = kernel_in_place(kernel);
        if (p.in_place)
            check_rounded(t, p, of->dtype, edit_extremes, "stored in 16 bits, in place");
    }
}

/* ---- 16-bit cosines and sines ---- */

static void edit_rounded_tables(struct call *call, const void *user)
{
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    for (EACH_TENSOR(row, signature_of(call->problem.kernel))) {
        const struct posenc_tensor *table = call_argument(call, row);
        const bool rounds = row->form == FORM_TENSOR && row->type == TYPE_TABLE;
        for (int64_t r = 0, n = rounds ? storage_rows(table) : 0; r < n; r++)
            for (int64_t i = 0; i < table->shape[1]; i++)
                tensor_row(table, r)[i] = round_to(dtype, tensor_row(table, r)[i]);
    }
}

static void law_tables(struct tally *t, const struct problem *of)
{
    const int64_t lanes = memory_lanes(t->run->backend);
    const int64_t lengths[] = { lanes - 1, 2 * lanes + 1 };
    for (int i = 0; i < 2 * MEMORY_VARIANTS * 3; i++) {
        struct problem p = memory_problem(of->kernel, lengths[i % 2], i / 2 % MEMORY_VARIANTS);
        p.dtype = p.values = (enum posenc_dtype)(i / 2 / MEMORY_VARIANTS);
        struct problem twin = p; /* of the same storage: its results are rounded already */
        p.table_dtype = of->dtype;
        p.offset_bytes = 2;
        const struct call *want = tally_run(t, &twin, edit_rounded_tables, &of->dtype),
                          *got = tally_run(t, &p, NULL, NULL);
        if (want && got)
            require_rounded(t, got, want, "cos and sin in 16 bits");
    }
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

/* The f32 table that a kernel reads rows or columns of. */
static struct posenc_tensor *table_of(struct call *call)
{
    for (EACH_TENSOR(row, signature_of(call->problem.kernel)))
        if (row->pristine == PRISTINE(table))
            return call_argument(call, row);
    return NULL;
}

/* Inputs [0, n) into the rows of a table; x a zero that changes none of them. */
static void edit_inputs(struct call *call, const void *user)
{
    static const float zero = -0.0f;
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    struct posenc_tensor *table = table_of(call);
    const int64_t width = table->shape[1];
    for (int64_t i = 0; i < table->shape[0] * width; i++)
        tensor_row(table, i / width)[i % width] = input_of(dtype, i).value;
    edit_x(call, &zero);
}

/* A learned table of the inputs onto zeros, or values by distance, the last key's first. */
static void law_stores(struct tally *t, const struct problem *of)
{
    const bool by_key = kernel_on_scores(of->kernel);
    const int64_t width = by_key ? of->keys : of->dim;
    const int64_t inputs = t->run->options->full ? INPUTS : INPUTS / 16;
    struct problem p = *of;
    p.values = p.dtype;
    p.tokens = p.rows = p.heads = inputs / width;
    const struct call *got = tally_run(t, &p, edit_inputs, &p.dtype);
    for (int64_t r = 0; got && r < inputs / width; r++) {
        const float *row = call_row(got, 0, r);
        for (int64_t c = 0; c < width; c++) {
            const struct input input = input_of(p.dtype, r * width + c);
            const float stored = row[by_key ? width - 1 - c : c];
            require(t, same_value(stored, input.want), "%a (%08x) is stored as %a, not %a",
                    (double)input.value, bits_of(input.value), (double)stored,
                    (double)input.want);
        }
    }
}

/* x is every pattern of 16 bits; a table is -0, which changes no value. */
static void edit_patterns(struct call *call, const void *user)
{
    (void)user;
    const struct posenc_tensor *x = call_x(call), *table = table_of(call);
    const int64_t width = x->shape[x->rank - 1];
    for (int64_t i = 0; i < 1 << 16; i++)
        ((uint16_t *)storage_row(x, i / width))[i % width] = (uint16_t)i;
    for (int64_t i = 0; table != call_out(call) && i < call->problem.rows * width; i++)
        tensor_row(table, i / width)[i % width] = -0.0f;
}

/* Onto -0 a value stays what it is; into a gradient it goes as f32, onto +0. */
static void law_loads(struct tally *t, const struct problem *of)
{
    struct problem p = *of;
    p.values = p.dtype;
    const struct call *got = tally_run(t, &p, edit_patterns, NULL);
    for (int64_t r = 0; got && r < p.rows; r++) {
        const float *row = call_row(got, 0, r);
        for (int64_t c = 0; c < p.dim; c++) {
            const unsigned bits = (unsigned)(r * p.dim + c);
            const double value = value_of(p.dtype, bits);
            const float want = value == 0 && !encodes(p.kernel) ? 0.0f : (float)value;
            require(t, isnan(want) ? isnan(row[c]) : bits_of(row[c]) == bits_of(want),
                    "the bits %04x became %a, not %a", bits, (double)row[c], (double)want);
        }
    }
}

/* What is stored and what is loaded are problems of their own. */
static void law_every(struct tally *t, const struct problem *p)
{
    const bool gathers = kernel_on_scores(p->kernel) || p->tokens == 0;
    (gathers ? law_stores : law_loads)(t, p);
}

const struct law laws_storage[] = {
    LAW("rounds-f32-result", law_rounds, .concerns = any_kernel, .dtype = POSENC_F16),
    LAW("rounds-f32-result", law_rounds, .concerns = any_kernel, .dtype = POSENC_BF16),
    LAW("tables-widen", law_tables, .concerns = any_kernel, .field = "table_dtype",
        .dtype = POSENC_F16),
    LAW("tables-widen", law_tables, .concerns = any_kernel, .field = "table_dtype",
        .dtype = POSENC_BF16),
    LAW("every-value", law_every, .dtype = POSENC_F16),
    LAW("every-value", law_every, .dtype = POSENC_BF16),
    { 0 },
};
