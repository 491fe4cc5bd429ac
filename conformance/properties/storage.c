/*
 * Properties of 16-bit dtypes, to the bit (a NaN for a NaN), except for rotations of backends whose compiler contracts:
 *
 *   rounds-f32-result   a call stores the result of the same backend's f32 call on the same values, rounded once more
 *                       to nearest even: 1.003 is stored in bf16 as 1
 *   every-value         loads and stores keep every value of the dtype; every f32 half way between two values, or next
 *                       to half way, is rounded to the right one (quick runs store one in sixteen)
 */
#include "properties.h"
#include "conformance/engine/judge.h"

#include <math.h>

/* ---- The f32 result, rounded ---- */

/* Returns the largest difference of two rotations if the compiler contracted them differently. Each is within 2 ulp
 * of its larger product, so they differ by at most 4. The norm of the pair is at least as large as that product. */
static double contraction_bound(const struct problem *p, const float *row, int64_t column)
{
    const struct channel_rotation rotation = problem_rotation(p, column);
    if (!rotation.rotates)
        return 0.0;
    return 4.0 * exact_ulp(POSENC_DTYPE_F32,
                           hypot((double)row[column], (double)row[rotation.partner]));
}

/* Returns true for equal bits and for two NaN, except the canary of unwritten values. */
static bool is_same_value(float got, float want)
{
    return float_to_bits(got) != CALL_CANARY &&
           (float_to_bits(got) == float_to_bits(want) || (isnan(got) && isnan(want)));
}

/* Requires that a call stored the results of the call `f32`, rounded. */
static void require_rounded(struct tally *t, const struct call *got, const struct call *f32,
                            const char *what)
{
    const enum posenc_dtype type = problem_output_dtype(&got->problem);
    for (EACH_ELEMENT(at, got)) {
        const float *row = call_row(f32, at.output, at.row), result = row[at.column],
                    rounded = storage_round(type, result);
        if (is_same_value(at.value, rounded))
            continue;
        const double within = contraction_bound(&got->problem, row, at.column);
        const struct stored_error e =
            exact_stored_error(type, at.value, (double)result, within);
        const bool contracted = within > 0.0 && e.error <= e.limit;
        if (!require(t, contracted && t->run->backend->allows_contraction,
                     "%s: row %lld element %lld is %.9g, the f32 result %.9g rounds to %.9g%s",
                     what, (long long)at.row, (long long)at.column, (double)at.value,
                     (double)result, (double)rounded,
                     contracted ? " (a compiler that contracts may do so: a backend says it by "
                                  ".allows_contraction, or is built with -ffp-contract=off)"
                                : ""))
            return;
    }
    require(t, true, "%s", what);
}

/* Runs a problem in its dtype and in f32, with the same values. Both calls get the same edit. */
static void check_rounded(struct tally *t, struct problem p, call_edit *edit, const char *what)
{
    p.values_dtype = p.dtype;
    struct problem twin = p;
    twin.dtype = POSENC_DTYPE_F32;
    p.offset_bytes = 2;
    const struct call *want = tally_run(t, &twin, edit, &p.dtype),
                      *got = tally_run(t, &p, edit, &p.dtype);
    if (want && got)
        require_rounded(t, got, want, what);
    tally_free_calls(t);
}

/* Fills x with values at both ends of the range of the dtype, to which `user` points. Products and sums of them
 * overflow, become subnormal or vanish. */
static void edit_extremes(struct call *call, const void *user)
{
    static const float f16[] = { 65504.0f, 49152.0f,   0x1p-14f,    0x1.004p-14f,
                                 0x1p-24f, 0x1.8p-22f, 0x1.ff8p-15f };
    static const float bf16[] = { 0x1.fep127f, 0x1.8p127f,  0x1p-126f,   0x1.02p-126f,
                                  0x1p-133f,   0x1.8p-131f, 0x1.fcp-127f };
    const enum posenc_dtype dtype = *(const enum posenc_dtype *)user;
    for (EACH_TENSOR_ELEMENT(at, call_x(call))) {
        const uint64_t z = rng_u64((uint64_t)at.row, (uint64_t)at.column);
        const float value = (dtype == POSENC_DTYPE_F16 ? f16 : bf16)[z % 7];
        tensor_element_put(at, z >> 63 ? -value : value);
    }
}

static void property_rounds(struct tally *t, const struct problem *p)
{
    struct problem extremes = *p;
    extremes.x_scale = 1.5f;
    /* Quick runs check the ends once, in place if the kernel can. */
    const bool checks_ends =
        p->in_place || !kernel_in_place(p->kernel) || t->run->options->full;
    if (!p->in_place)
        check_rounded(t, *p, NULL, "stored in 16 bits");
    if (kernel_takes_x(p->kernel) && checks_ends)
        check_rounded(t, extremes, edit_extremes, "stored in 16 bits, near the ends");
}

/* ---- Every value ---- */

/* Returns the value of 16 bits by the definition of the formats: (-1)^s 2^(e - bias) 1.f, or (-1)^s 2^(1 - bias) 0.f
 * if e = 0. Infinities and NaN count as numbers of the next larger exponent. */
static double grid_value(enum posenc_dtype dtype, unsigned bits)
{
    const int fraction_bits = dtype == POSENC_DTYPE_F16 ? 10 : 7;
    const int bias = dtype == POSENC_DTYPE_F16 ? 15 : 127;
    const int exponent = (int)(bits >> fraction_bits) & (2 * bias + 1);
    const int fraction = (int)(bits & ((1u << fraction_bits) - 1));
    const int whole = exponent ? fraction + (1 << fraction_bits) : fraction;
    return (bits & 0x8000u ? -1.0 : 1.0) *
           ldexp((double)whole, (exponent ? exponent : 1) - bias - fraction_bits);
}

static double value_of_bits(enum posenc_dtype dtype, unsigned bits)
{
    const unsigned infinity = dtype == POSENC_DTYPE_F16 ? 0x7c00u : 0x7f80u,
                   magnitude = bits & 0x7fffu;
    const double grid = grid_value(dtype, bits);
    if (magnitude > infinity)
        return (double)NAN;
    return magnitude == infinity ? copysign((double)INFINITY, grid) : grid;
}

/* An f32 to store, and the value expected in memory. */
enum { INPUTS = 4 << 16 };
struct input {
    float value, want;
};

/* Returns input i of INPUTS, four for each 16 bits: the value itself, the f32 half way to the next value, its two
 * neighbours. The odd factor permutes them, so that few inputs are spread over all. */
static struct input input_of(enum posenc_dtype dtype, int64_t i)
{
    const unsigned at = (unsigned)(i * 40503 % INPUTS), bits = at >> 2;
    const float value = (float)value_of_bits(dtype, bits),
                next = (float)value_of_bits(dtype, bits + 1);
    if (isnan(value)) { /* truncation or a carry would turn these payloads into another class */
        static const uint32_t nans[] = { 0x7f800001u, 0x7fffffffu, 0xff807fffu, 0xffffffffu };
        return (struct input){ bits_to_float(nans[at % 4]), NAN };
    }
    if (isinf(value) || at % 4 == 0)
        return (struct input){ value, value };
    const float half = (float)((grid_value(dtype, bits) + grid_value(dtype, bits + 1)) / 2);
    if (at % 4 == 1)
        return (struct input){ nextafterf(half, 0.0f), value };
    if (at % 4 == 2) /* a tie goes to the even one */
        return (struct input){ half, bits % 2 ? next : value };
    return (struct input){ nextafterf(half, copysignf(INFINITY, half)), next };
}

/* Returns the f32 table of which a kernel reads rows or columns. */
static struct posenc_tensor *table_of(struct call *call)
{
    for (EACH_TENSOR(row, signature_of(call->problem.kernel)))
        if (row->dense_copy == DENSE_COPY(table))
            return call_argument(call, row);
    return NULL;
}

/* Returns true if the problem checks loads: x holds all 2^16 patterns. Other problems check stores of a table: a
 * learned one, or values by distance, where the last key has the first value. */
static bool checks_loads(const struct problem *p) { return p->dim * p->tokens == 1 << 16; }

/* For loads, x has every pattern and the table is -0, so that the sum is x. For stores, the table has the inputs and
 * x is -0. */
static void edit_every(struct call *call, const void *user)
{
    const struct posenc_tensor *x = call_x(call), *table = table_of(call);
    const bool patterns = checks_loads(&call->problem), is_out = table == call_out(call);
    (void)user;
    for (EACH_TENSOR_ELEMENT(at, patterns && is_out ? NULL : table)) {
        const int64_t i = at.row * table->shape[1] + at.column;
        tensor_element_put(at, patterns ? minus_zero : input_of(call->problem.dtype, i).value);
    }
    if (!patterns)
        edit_fill_x(call, &minus_zero);
    for (EACH_TENSOR_ELEMENT(at, patterns ? x : NULL))
        ((uint16_t *)storage_row(x, at.row))[at.column] =
            (uint16_t)(at.row * x->shape[x->rank - 1] + at.column);
}

/* Returns the value of pattern i in x. A gradient adds it to +0, which turns -0 into +0. */
static struct input pattern_of(const struct problem *p, int64_t i)
{
    const float value = (float)value_of_bits(p->dtype, (unsigned)i);
    const bool is_gradient =
        !kernel_on_scores(p->kernel) && !kernel_has_output_dim(p->kernel, DIM_TOKEN);
    return (struct input){ value, value == 0.0f && is_gradient ? 0.0f : value };
}

/* Requires that each value was kept. */
static void check_every(struct tally *t, const struct call *got)
{
    const struct problem *p = &got->problem;
    const bool loads = checks_loads(p);
    const int64_t width = got->outputs[0].width;
    for (EACH_ELEMENT(at, got)) {
        const int64_t column = kernel_on_scores(p->kernel) ? width - 1 - at.column : at.column,
                      i = at.row * width + column;
        const struct input input = loads ? pattern_of(p, i) : input_of(p->dtype, i);
        const bool is_loaded_nan = loads && isnan(input.want) && isnan(at.value);
        require(t, is_loaded_nan || is_same_value(at.value, input.want),
                "%a (%08x) became %a, not %a", (double)input.value, float_to_bits(input.value),
                (double)at.value, (double)input.want);
    }
}

#define IN_16_BITS(...)                                                                        \
    { __VA_ARGS__, .dtype = POSENC_DTYPE_F16 }, { __VA_ARGS__, .dtype = POSENC_DTYPE_BF16 }

const struct property properties_storage[] = {
    IN_16_BITS("rounds-f32-result", .check_problem = property_rounds, .by_bits = true,
               .applies_to = kernel_is_any, .problems = "parts", .in_place = true),
    IN_16_BITS("every-value", .check_output = check_every, .by_bits = true, .edit = edit_every),
    { 0 },
};
