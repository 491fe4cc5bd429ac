/*
 * Case "lane-independence" of the suite "memory": an element depends only on its own inputs. Its bits must not change
 * if its neighbours in the vector, the row, or other tokens and heads become NaN, infinite, huge or subnormal. This
 * detects kernels with another result on a fast path "if all lanes are small", and kernels that blend lanes by
 * multiplication, where a neighbour's NaN gets in.
 *
 * A unit is a channel, or a pair of channels that rotate together; units are divided into classes. A call runs first with
 * its own inputs. Then it runs in rounds: each keeps the inputs of one class of units in every second row or head, and
 * poisons all others. The kept elements must keep their bits.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"

#include "conformance/problem/signature.h"

#include <math.h>
#include <stdlib.h>

/* Units belong to classes by their number. A round for each class and each parity of rows or heads compares each element
 * once, while its neighbours in the row and in the rows beside it are poisoned. */
enum { CLASSES = 5, PARITIES = 2, ROUNDS = CLASSES * PARITIES };

static bool is_class_kept(int64_t unit, int round) { return unit % CLASSES == round % CLASSES; }

static bool is_parity_kept(int64_t row_or_head, int round)
{
    return row_or_head % PARITIES == round / CLASSES;
}

static float poison_value(int64_t i)
{
    static const uint32_t kinds[] = { 0x7fc00000u, 0x7f800000u, 0x7f7fffffu, 0xff7fffffu,
                                      0x00000001u };
    return bits_to_float(kinds[i % 5]);
}

/* Returns the unit of a column: a pair for rotations and tables, otherwise the column itself. */
static int64_t unit_of(const struct problem *p, int64_t column)
{
    const struct channel_rotation rotation = problem_rotation(p, column);
    if (rotation.rotates)
        return rotation.pair;
    if (signature_of(p->kernel)->channels != MEMBER(freqs.dim))
        return column;
    const int64_t half = p->freqs.dim / 2;
    if (p->layout == POSENC_LAYOUT_INTERLEAVED)
        return column / 2;
    return column < 2 * half ? column % half : half;
}

/* Returns true for gradients. Each round keeps all of their rows, which are sums over those of x. */
static bool has_summed_rows(const struct problem *p)
{
    return signature_output(signature_of(p->kernel), 0)->dims[0] == DIM_ROW;
}

/* Returns true if a row is kept: by its parity, or by that of its head if inputs belong to heads. */
static bool is_row_kept(const struct problem *p, int64_t row, int round)
{
    const int64_t row_or_head = kernel_on_scores(p->kernel) ? row / p->queries % p->heads : row;
    return has_summed_rows(p) || is_parity_kept(row_or_head, round);
}

/* Returns the unit of an element of x. For relative_sum this is the column of the output that adds the element. */
static int64_t unit_of_x(const struct call *call, int64_t row, int64_t column)
{
    const struct problem *p = &call->problem;
    const struct signature *s = signature_of(p->kernel);
    const struct tensor_spec *out = signature_output(s, 0);
    if (out->dims[tensor_dims(out) - 1] == DIM_COLUMN)
        for (EACH_TENSOR(spec, s))
            if (spec->dims[0] == DIM_DISTANCE)
                return ((const int32_t *)call_data(
                    call, spec))[row % p->queries - column + p->keys - 1];
    return unit_of(p, column);
}

/* Returns the head of an element of a tensor, by its index in dense rows; -1 if it has none, or if its rows are not kept
 * by heads. */
static int64_t head_of(const struct problem *p, const struct tensor_spec *spec, int64_t at)
{
    if (!kernel_on_scores(p->kernel))
        return -1;
    for (int d = tensor_dims(spec); d-- > 0;) {
        if (spec->dims[d] == DIM_HEAD)
            return at % p->heads;
        at /= problem_extent(p, spec->dims[d]);
    }
    return -1;
}

/* Returns true for elements that are not poisoned: of x those of kept rows and units; of a tensor with heads those of
 * kept heads; of others those of kept units or columns. */
static bool is_kept(const struct call *call, const struct tensor_spec *spec, int64_t at,
                    int64_t width, int round)
{
    const struct problem *p = &call->problem;
    const int64_t row = at / width, column = at % width, head = head_of(p, spec, at);
    if (spec->role == ROLE_X)
        return is_row_kept(p, row, round) &&
               (signature_of(p->kernel)->uses_head ||
                is_class_kept(unit_of_x(call, row, column), round));
    if (head >= 0)
        return is_parity_kept(head, round);
    const bool has_channels = spec->dims[tensor_dims(spec) - 1] == DIM_CHANNEL;
    return is_class_kept(has_channels ? unit_of(p, column) : column, round);
}

static void poison_tensor(struct call *call, const struct tensor_spec *spec, int round)
{
    const struct posenc_tensor *t = call_argument(call, spec);
    const int64_t width = t->shape[t->rank - 1];
    for (int64_t r = 0, n = storage_rows(t); r < n; r++)
        for (int64_t c = 0; c < width; c++)
            if (!is_kept(call, spec, r * width + c, width, round))
                storage_row_f32(t, r)[c] = poison_value(r + c);
}

/* Poisons an array of parameters, which must be finite, by huge numbers. The call owns the array, so that its `const`
 * may be cast away. */
static void poison_floats(struct call *call, const struct tensor_spec *spec, int round)
{
    float *data = (float *)(uintptr_t)call_data(call, spec);
    const int64_t n = tensor_elements(&call->problem, spec);
    for (int64_t i = 0; i < n; i++)
        if (!is_kept(call, spec, i, n, round))
            data[i] = 3e38f;
}

static void edit_poison(struct call *call, const void *user)
{
    const struct problem *p = &call->problem;
    const int round = *(const int *)user;
    for (EACH_TENSOR(spec, signature_of(p->kernel))) {
        const bool read = spec->role != ROLE_OUTPUT || problem_accumulates(p);
        if (read && tensor_present(p, spec) && spec->form == FORM_TENSOR)
            poison_tensor(call, spec, round);
        else if (read && spec->form == FORM_FLOATS)
            poison_floats(call, spec, round);
    }
}

/* Requires the kept elements of a round to have the same bits. Returns their number. */
static int64_t compare_kept(struct tally *t, const struct call *got, const struct call *want,
                            int round)
{
    const struct problem *p = &got->problem;
    int64_t compared = 0;
    for (int64_t r = 0; r < got->outputs[0].rows; r++) {
        const float *now = call_row(got, 0, r), *before = call_row(want, 0, r);
        for (int64_t c = 0; is_row_kept(p, r, round) && c < got->outputs[0].width; c++) {
            if (!is_class_kept(unit_of(p, c), round))
                continue;
            require(t, float_to_bits(now[c]) == float_to_bits(before[c]),
                    "row %lld element %lld moved from %.9g to %.9g when only its "
                    "neighbours changed",
                    (long long)r, (long long)c, (double)before[c], (double)now[c]);
            compared++;
        }
    }
    return compared;
}

static void check_activations(struct tally *t, struct problem p)
{
    p.in_place = false;
    p.special = false;
    const struct call *want = tally_run(t, &p, NULL, NULL), *got;
    const int rounds = has_summed_rows(&p) ? CLASSES : ROUNDS;
    int64_t compared = 0;
    for (int round = 0; want && round < rounds; round++)
        if ((got = tally_run(t, &p, edit_poison, &round)) != NULL)
            compared += compare_kept(t, got, want, round);
    if (want)
        require(t, compared == want->outputs[0].rows * want->outputs[0].width,
                "%lld of %lld elements were compared", (long long)compared,
                (long long)(want->outputs[0].rows * want->outputs[0].width));
}

/* Moves odd tokens to the ends of the range of positions: even tokens must not change. */
static void check_positions(struct tally *t, struct problem p)
{
    int64_t near[7], far[7];
    for (int i = 0; i < 7; i++) {
        near[i] = 3 * i + 1;
        far[i] = i % 2 ? (i % 4 == 1 ? 1 : -1) * (INT64_C(0x7fffffff) - i) : near[i];
    }
    p.position_kind = POSENC_POSITIONS_I64;
    p.batch = 1;
    p.batch_shift = 0;
    p.freqs.xpos_scale_base = 0.0; /* xPos has a smaller range */
    p.tokens = 7;
    p.positions = near;
    const struct call *want = tally_run(t, &p, NULL, NULL);
    p.positions = far;
    const struct call *got = tally_run(t, &p, NULL, NULL);
    for (int o = 0; want && got && o < got->n_outputs; o++)
        for (int64_t r = 0; r < got->outputs[o].rows; r += 2)
            require_same_bits(t, call_row(got, o, r), call_row(want, o, r),
                              got->outputs[o].width, "token beside tokens at far positions");
    tally_free_calls(t); /* the calls refer to near and far */
}

/* Gives other pairs other frequencies: the kept pairs must not change. */
static void check_frequencies(struct tally *t, struct problem p)
{
    enum { MOST = 160 };
    static const double other[] = { 1e-12, 2.5, 1e3, 1.0 };
    double near[MOST], far[MOST];
    int64_t n = (p.freqs.dim + 1) / 2;
    p.freqs.numerics = POSENC_NUMERICS_EXACT;
    p.first = 1000;
    if (!require(t, n <= MOST, "more than %d pairs", MOST))
        return;
    for (int kept_class = 0; kept_class < CLASSES; kept_class++) {
        for (int64_t i = 0; i < n; i++) {
            near[i] = 1.0 / (1.0 + 0.37 * (double)i);
            far[i] = i % CLASSES == kept_class ? near[i] : other[i % 4];
        }
        p.freqs.values = near;
        const struct call *want = tally_run(t, &p, NULL, NULL);
        p.freqs.values = far;
        const struct call *got = tally_run(t, &p, NULL, NULL);
        for (int o = 0; want && got && o < got->n_outputs; o++)
            for (int64_t r = 0; r < got->outputs[o].rows; r++)
                for (int64_t c = 0; c < got->outputs[o].width; c++)
                    require(t,
                            unit_of(&p, c) % CLASSES != kept_class ||
                                float_to_bits(call_row(got, o, r)[c]) ==
                                    float_to_bits(call_row(want, o, r)[c]),
                            "column %lld moved when only other pairs' frequencies changed",
                            (long long)c);
        tally_free_calls(t);
    }
}

void check_lanes(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "memory", NULL, "lane-independence"))
        return;
    int64_t lanes = backend_vector_lanes(run->backend);
    for (int v = 0; v < LENGTH_VARIANTS; v++) {
        struct problem p = problem_of_length(kernel, 2 * lanes + 3, v);
        if (kernel_takes_x(kernel) || kernel_on_scores(kernel))
            check_activations(&t, p);
        if (kernel_has_freqs(kernel)) {
            p.special = false;
            check_positions(&t, p);
            check_frequencies(&t, p);
        }
        tally_free_calls(&t);
    }
    tally_end(&t);
}
