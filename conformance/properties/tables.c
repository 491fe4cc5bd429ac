/*
 * Properties of tables: sinusoidal, rotary, learned.
 *
 * Properties of the sinusoidal table, and of cos and sin of the rotary angles:
 *
 *   linear-map                 PE(p+k) is a linear function of PE(p) for any fixed k (Vaswani et al.
 *                              1706.03762 section 3.5)
 *   frequency                  that function rotates a pair of frequency w by the angle k w
 *   layouts-are-permutations   all layouts have the same values
 *   neutral-scaling            a scaling with neutral parameters has the bits of no scaling
 *   xpos-relative              products of queries and keys depend on m - n alone (Sun et al. 2212.10554)
 *
 * Their bounds follow from E, the largest error of an entry (table_error()). In a sum of products of two entries, as in
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E. The bound is 3 E, to cover E^2.
 *
 * Properties of positions, all to the bit. Models of images have a position on each axis (time, height, width; Wang et
 * al. 2409.12191); a position with a fraction is a time.
 *
 *   offset-alone       with an offset, data and strides of an array are not read
 *   stride-unsaid      an array of positions whose token stride is 0 is dense
 *   sections           if frequencies restart in each section, an encoding of several axes has the encodings of its
 *                      sections side by side
 *   whole-times        a time without a fraction gives the bits of the integer; -0 those of 0
 *   times-mirror       a negative time negates the sine and keeps the cosine
 *
 * Property of learned tables:
 *
 *   padding-positions  positions beside padding are those of fairseq, RoBERTa and OPT (fairseq utils.make_positions;
 *                      Hugging Face modeling_roberta.py, modeling_opt.py)
 */
#include "properties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest accepted error of a sine or cosine in numerics mode exact: 4 ulp just below 1, 4 * 2^-24. The library's
 * backends are within 1 ulp (2 for sleef). Other bounds are multiples of it. */
#define TABLE_ERROR 0x1p-22

/* Returns the largest error E of an entry, for the positions of a problem: TABLE_ERROR in numerics mode exact. The f32
 * modes have frequencies w' of their own, of which the properties hold as well, and round the angle. The error of an
 * entry is at most that of its angle. With u = 2^-24, E grows at position p by      hf_f32, torch_exp_f32   p u
 * the product p w' is rounded once, and w' <= 1     ggml_f32                p u (1 + d/50)  w' = s^i of the f32 scale
 * s, and the product is rounded                                             i times: off by i p s^i u, where i
 * theta^(-2i/d) is at                                             most d/(2 e ln theta), d/50 for theta = 10000; the 1
 * covers (1 + u)^i - 1 - i u */
static double table_error(const struct problem *p)
{
    const double farthest = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.numerics == POSENC_NUMERICS_EXACT)
        return TABLE_ERROR;
    const double powers =
        p->freqs.numerics == POSENC_NUMERICS_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + farthest * (1.0 + powers) * 0x1p-24;
}

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* Returns the rotation from row a to row b of pair i. */
static double complex rotation_between(const struct call *table, int64_t a, int64_t b,
                                       int64_t i)
{
    return pair_from_output(table, b, i) * conj(pair_from_output(table, a, i));
}

static double complex rotation_by(double angle) { return pair_make(cos(angle), sin(angle)); }

/* Compares the rotation from 12 to 12 + k with that from 5 to 5 + k, for k = 1 to 7. Each is within 3 E. */
static void check_linear_map(struct tally *t, const struct call *table)
{
    for (int64_t k = 1; k <= 7; k++)
        for (int64_t i = 0; i < pair_count(&table->problem); i++) {
            const struct pair at = { table, 12 + k, i, rotation_between(table, 12, 12 + k, i) };
            pair_require(t, &at, rotation_between(table, 5, 5 + k, i),
                         6 * table_error(&table->problem),
                         "the map from 12 to 12+k and from 5 to 5+k");
        }
}

/* Requires that a pair rotates by w from position 3 to 4, and has the angle 4 w at position 4. The f32 modes have w
 * within 16 units of 2^-24 w. hf_f32 rounds the exponent, the power and its reciprocal: at most 9 units.
 * torch_exp_f32 rounds the exponent twice, then its exponential: fewer. ggml_f32 applies theta^(-2/d) i times: i +
 * (2i/d) ln theta units of 2^-24 w, which are at most d/50 + 1/e units of 2^-24 if theta is at least 10000. That is
 * below 16 up to d = 780. */
static void check_frequency(struct tally *t, const struct call *table)
{
    const struct posenc_freqs_spec *spec = &table->problem.freqs;
    const double n = (double)(spec->dim / 2);
    const double bound = 3 * table_error(&table->problem) +
                         (spec->numerics == POSENC_NUMERICS_EXACT ? 0.0 : 16 * 0x1p-24);
    for (EACH_PAIR(at, table)) {
        if (at.row != 4)
            continue;
        const double steps = spec->spacing == POSENC_SPACING_ENDPOINT ? fmax(n - 1, 1) : n;
        const double omega = pow(spec->rope_theta, -(double)at.i / steps);
        pair_require(t, &at, rotation_by(4 * omega), 4 * bound, "position 4");
        at.z = rotation_between(table, 3, 4, at.i);
        pair_require(t, &at, rotation_by(omega), bound, "the step from position 3 to 4");
    }
}

static void compare_layouts(struct tally *t, const struct call *halves,
                            const struct call *interleaved)
{
    for (EACH_PAIR(at, halves))
        pair_require(t, &at, pair_from_output(interleaved, at.row, at.i), 0.0,
                     "in another layout");
}

/* ---- xPos ---- */

/* xPos scales queries by zeta^((m - centre)/base) and keys by the inverse, so that a pair contributes
 * zeta^((m - n)/base) cos((m - n) omega) to the product of a query at m and a key at n, within 3 E times both scales. */
static void compare_relative(struct tally *t, const struct call *queries,
                             const struct call *keys)
{
    const struct problem *p = &queries->problem;
    const double dim = (double)p->freqs.dim;
    for (EACH_PAIR(query, queries)) {
        const double zeta = (2.0 * (double)query.i + 0.4 * dim) / (1.4 * dim),
                     omega = pow(p->freqs.rope_theta, -2.0 * (double)query.i / dim);
        if (query.row % 3 != 0) /* a third of the queries, as the check is quadratic */
            continue;
        for (int64_t n = 0; n < p->tokens; n++) {
            const double distance = (double)(query.row - n),
                         scale = pow(zeta, distance / p->freqs.xpos_scale_base);
            require_within(t, creal(query.z * conj(pair_from_output(keys, n, query.i))),
                           scale * cos(distance * omega), 3 * TABLE_ERROR * scale,
                           "the product of a query and a key");
        }
    }
}

/* ---- Offsets and strides ---- */

/* Sets members that must not be read to values that would fail. */
static void edit_no_array(struct call *call, const void *user)
{
    (void)user;
    struct posenc_positions *p = call_positions(call);
    p->data = (const void *)(uintptr_t)1;
    p->stride_batch = p->stride_token = INT64_MAX - 1;
    p->stride_axis = INT64_MIN;
}

static void edit_no_stride(struct call *call, const void *user)
{
    (void)user;
    call_positions(call)->stride_token = 0;
}

/* Returns the same element of another call. */
static float element_of_twin(const struct element *at, const struct call *twin)
{
    return call_row(twin, at->output, at->row)[at->column];
}

/* ---- Axes ---- */

/* Frequencies of one section, and its columns of a call with all sections. */
struct section {
    struct posenc_freqs *freqs;
    int64_t from, columns;
};

/* Reduces a call to the columns and frequencies of one section. */
static void edit_section(struct call *call, const void *user)
{
    const struct section *own = user;
    const bool table = call->n_outputs == 2;
    *call = call_cut(call, table ? DIM_PAIR : DIM_CHANNEL, own->from, own->columns);
    *(table ? &call->args.rope_table.freqs : &call->args.sinusoidal.freqs) = own->freqs;
}

/* Compares the columns of a section with a call of that section alone, at the positions on its axis. */
static void check_section(struct tally *t, const struct call *got, int axis,
                          const struct section *own)
{
    enum { MOST_TOKENS = 37 };
    static int64_t positions[MOST_TOKENS]; /* static, as the report of a failure prints them */
    struct problem p = got->problem;
    if (!require(t, p.tokens <= MOST_TOKENS, "more than %d tokens", MOST_TOKENS))
        return;
    for (int64_t token = 0; token < p.tokens; token++)
        positions[token] = problem_axis_position(&got->problem, 0, token, axis);
    memset(p.freqs.mrope_section, 0, sizeof p.freqs.mrope_section);
    p.freqs.mrope_layout = POSENC_MROPE_LAYOUT_QWEN2_VL;
    p.mrope_grid = 0;
    p.positions = positions;
    const struct call *want = tally_run(t, &p, edit_section, own);
    for (EACH_ELEMENT(at, want ? got : NULL))
        if (at.column >= own->from && at.column < own->from + own->columns)
            element_require(t, &at, element_of_twin(&at, want), "as its own encoding");
}

static void check_sections(struct tally *t, const struct call *got)
{
    const struct problem *p = &got->problem;
    const int64_t *sections = p->freqs.mrope_section,
                  columns_per_pair = got->n_outputs == 2 ? 1 : 2;
    struct section own = { NULL, 0, 0 };
    for (int axis = 0; axis < 3 && sections[axis]; axis++, own.from += own.columns) {
        struct posenc_freqs_spec spec = p->freqs;
        memset(spec.mrope_section, 0, sizeof spec.mrope_section);
        spec.mrope_layout = POSENC_MROPE_LAYOUT_QWEN2_VL;
        spec.dim = 2 * sections[axis];
        own.columns = columns_per_pair * sections[axis];
        if (!require(t, got->implementation->freqs_create(&spec, &own.freqs, NULL) == POSENC_OK,
                     "no frequencies for a section"))
            return;
        check_section(t, got, axis, &own);
        got->implementation->freqs_destroy(own.freqs);
    }
}

/* ---- Times ---- */

static void edit_negative_zero(struct call *call, const void *user)
{
    (void)user;
    float *data = (float *)(uintptr_t)call_positions(call)->data;
    data[call->problem.tokens - 1] = -0.0f; /* the last time of each problem is 0 */
}

static void edit_negative(struct call *call, const void *user)
{
    (void)user;
    float *data = (float *)(uintptr_t)call_positions(call)->data;
    for (int64_t i = 0; i < call->problem.tokens; i++)
        data[i] = -data[i];
}

/* Returns true for sines. An interleaved odd dim ends in a sine, other odd dims in a zero. */
static bool is_sine(const struct element *at)
{
    const struct problem *p = &at->call->problem;
    const int64_t half = p->freqs.dim / 2;
    const bool in_first = at->column < half, in_second = !in_first && at->column < 2 * half;
    if (at->call->n_outputs == 2)
        return at->output == 1;
    if (p->layout == POSENC_LAYOUT_INTERLEAVED)
        return at->column % 2 == 0;
    return p->layout == POSENC_LAYOUT_SIN_COS ? in_first : in_second;
}

static void compare_mirror(struct tally *t, const struct call *right, const struct call *left)
{
    for (EACH_ELEMENT(at, left))
        if (at.row > 0) /* row 0 has time 0, whose sine keeps its sign */
            element_require(t, &at,
                            is_sine(&at) ? -element_of_twin(&at, right)
                                         : element_of_twin(&at, right),
                            "of the time without its sign");
}

/* ---- Learned tables ---- */

enum { BATCH = 4, TOKENS = 6 };
static const uint8_t mask[BATCH * TOKENS] = {
    1, 1, 0, 0, 0, 0, /* padding on the right */
    0, 0, 0, 1, 1, 1, /* on the left */
    1, 1, 1, 1, 1, 1, /* none */
    1, 0, 7, 0, 1, 0, /* within: any byte but 0 is a token */
};

/* Sets the positions that the library computes from the mask for RoBERTa's padding_idx of 1; all 0 if it rejects that. Fills
 * x with -0, so that the output has the rows of the table. */
static void edit_padding(struct call *call, const void *zero)
{
    int32_t *positions = (int32_t *)(uintptr_t)call_positions(call)->data;
    if (call->implementation->padding_positions(BATCH, TOKENS, mask, 1, positions, NULL) !=
        POSENC_OK)
        memset(positions, 0, BATCH * TOKENS * sizeof *positions);
    edit_fill_x(call, zero);
}

/* Compares with the positions that RoBERTa's code computes for the mask. OPT reads the same rows, as its table adds an
 * offset of 2. */
static void check_padding(struct tally *t, const struct call *out)
{
    static const int64_t published[BATCH * TOKENS] = { 2, 3, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4,
                                                       2, 3, 4, 5, 6, 7, 2, 1, 3, 1, 4, 1 };
    for (EACH_ELEMENT(at, out))
        element_require(t, &at, out->table[published[at.row] * out->problem.dim + at.column],
                        "at the published position");
}

const struct property properties_tables[] = {
    { "linear-map", .check_output = check_linear_map, .problems = "tables",
      .fields = "tokens=20" },
    { "frequency", .check_output = check_frequency, .problems = "tables",
      .fields = "tokens=5" },
    { "layouts-are-permutations", .compare_outputs = compare_layouts,
      .twin = "layout=interleaved", .by_bits = true },
    { "neutral-scaling", .twin = "scaling=none" },
    { "xpos-relative", .compare_outputs = compare_relative, .problems = "xpos",
      .twin = "xpos_inverse=true" },
    { "offset-alone", .applies_to = kernel_has_positions,
      .fields = "position_kind=offset batch=3", .twin = "", .twin_edit = edit_no_array },
    { "stride-unsaid", .applies_to = kernel_has_positions,
      .fields = "position_kind=i64 batch=3", .twin = "", .twin_edit = edit_no_stride },
    { "sections", .check_output = check_sections, .by_bits = true },
    { "whole-times", .twin = "position_kind=f32", .fields = "position_kind=i64",
      .twin_edit = edit_negative_zero },
    { "times-mirror", .compare_outputs = compare_mirror, .twin = "", .twin_edit = edit_negative,
      .by_bits = true },
    { "padding-positions", .check_output = check_padding, .edit = edit_padding,
      .user = &minus_zero, .by_bits = true },
    { 0 },
};
