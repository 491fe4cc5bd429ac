/*
 * Properties of the sinusoidal table, and of cos and sin of the rotary angles. E is TABLE_ERROR times
 * the scale. In a sum of products of two entries, such as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E. The bound is 3 E,
 * to cover E^2. For the f32 modes, pairs.h has E, and holds_frequency() the error of a frequency.
 *
 *   linear-map                 PE(p+k) is a linear function of PE(p) for any fixed k (Vaswani et al.
 *                              1706.03762 section 3.5)
 *   frequency                  the angle of that map is k w
 *   layouts-are-permutations   all layouts have the same values
 *   neutral-scaling            a scaling with neutral parameters has the bits of none
 *   xpos-relative              products of queries and keys depend on m - n alone
 *
 * xPos (Sun et al. 2212.10554) scales queries by zeta^((m - centre)/base) and keys by one over
 * that, so that a pair contributes
 *
 *     c(m) c'(n) + s(m) s'(n) = zeta^((m - n)/base) cos((m - n) omega)
 *
 * to the product of a query at m and a key at n, within 3 E of what they are scaled by.
 *
 * Properties of positions with several axes or with fractions, all to the bit: the values of a pair
 * are a function of its own position alone, and a time without a fraction is the integer.
 *
 *   offset-alone       with an offset, data and strides of an array are not read
 *   stride-unsaid      an array of positions whose token stride is 0 is dense
 *   axes-apart         each pair has the values of its own axis' position
 *   axes-restarted     sections that restart are encodings of their own
 *   sections           a sinusoidal encoding of several axes has those of its sections side by side
 *   whole-times        a time without a fraction is the integer; -0 is 0
 *   times-mirror       a negative time negates the sine and keeps the cosine
 *
 * Su et al. 2104.09864; Wang et al. 2409.12191 (axes).
 */
#include "pairs.h"

#include "conformance/problem/signature.h"

#include <math.h>
#include <string.h>

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* Returns the rotation from row a to row b of pair i. */
static double complex rotation_between(const struct call *table, int64_t a, int64_t b,
                                       int64_t i)
{
    return pair_of(table, b, i) * conj(pair_of(table, a, i));
}

/* Compares two maps, each with an error of at most 3 E; k is the row. */
static void holds_linear_map(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table))
        if (at.row >= 1 && at.row <= 7) {
            at.z = rotation_between(table, 12, 12 + at.row, at.i);
            require_pair(t, &at, rotation_between(table, 5, 5 + at.row, at.i),
                         6 * table_error(&table->problem),
                         "the map from 12 to 12+k and from 5 to 5+k");
        }
}

/* Checks the angle of the rotation: from p to p+1 the pair rotates by w. */
static void holds_frequency(struct tally *t, const struct call *table)
{
    const struct posenc_freqs_spec *spec = &table->problem.freqs;
    const double n = (double)(spec->dim / 2);
    /* hf_f32: exponent, power and reciprocal are rounded, at most 9 units of 2^-24 of w;
     * torch_exp_f32: the exponent twice, then its exp, less than that.  ggml_f32: its exponent
     * and power are, i times over: 2^-24 w (i + (2i/d) ln theta), at most d/50 + 1/e units. */
    const double bound =
        3 * table_error(&table->problem) + (spec->profile == POSENC_EXACT ? 0.0 : 16 * 0x1p-24);
    for (EACH_PAIR(at, table)) {
        const double steps = spec->convention == POSENC_ENDPOINT ? fmax(n - 1, 1) : n;
        const double omega = pow(spec->rope_theta, -(double)at.i / steps);
        if (at.row < 4)
            continue;
        require_pair(t, &at, pair_of_angle(4 * omega), 4 * bound, "position 4");
        at.z = rotation_between(table, 3, 4, at.i);
        require_pair(t, &at, pair_of_angle(omega), bound, "the step from position 3 to 4");
    }
}

/* ---- Layouts ---- */

static void compare_layouts(struct tally *t, const struct call *halves,
                            const struct call *interleaved)
{
    for (EACH_PAIR(at, halves))
        require_pair(t, &at, pair_of(interleaved, at.row, at.i), 0.0, "in another layout");
}

/* ---- xPos: queries, and keys that are scaled the other way ---- */

static void compare_relative(struct tally *t, const struct call *queries,
                             const struct call *keys)
{
    const struct problem *p = &queries->problem;
    const double dim = (double)p->freqs.dim;
    for (EACH_PAIR(query, queries))
        for (int64_t n = 0; n < p->tokens && query.row % 3 == 0; n++) {
            const double zeta = (2.0 * (double)query.i + 0.4 * dim) / (1.4 * dim),
                         omega = pow(10000.0, -2.0 * (double)query.i / dim),
                         d = (double)(query.row - n),
                         scale = pow(zeta, d / p->freqs.xpos_scale_base);
            require_within(t, creal(query.z * conj(pair_of(keys, n, query.i))),
                           scale * cos(d * omega), 3 * TABLE_ERROR * scale,
                           "the product of a query and a key");
        }
}

/* Runs a problem without axes at the positions that a problem has on one axis. */
static const struct call *run_axis(struct tally *t, const struct problem *of, int axis,
                                   call_edit *edit, const void *user)
{
    static int64_t positions[3][37]; /* of a picture; a failure prints them */
    struct problem p = *of;
    memset(p.freqs.mrope_section, 0, sizeof p.freqs.mrope_section);
    p.freqs.mrope_layout = POSENC_MROPE_CHUNKED;
    p.mrope_grid = 0;
    for (int64_t token = 0; token < of->tokens; token++)
        positions[axis][token] = problem_axis_position(of, 0, token, axis);
    p.positions = positions[axis];
    return tally_run(t, &p, edit, user);
}

/* ---- Offsets ---- */

/* Sets members that must not be read to values that would fail. */
static void edit_no_array(struct call *call, const void *user)
{
    (void)user;
    struct posenc_positions *p = call_positions(call);
    p->data = (const void *)(uintptr_t)1;
    p->stride_batch = p->stride_token = INT64_MAX - 1;
    p->stride_axis = INT64_MIN;
}

/* ---- Strides ---- */

static void edit_no_stride(struct call *call, const void *user)
{
    (void)user;
    call_positions(call)->stride_token = 0;
}

/* ---- Axes ---- */

/* Axis of each pair, as each model defines it: t, h or w. */
static const struct {
    int64_t temporal; /* pairs */
    const char *axis_of_pair;
} models[] = {
    { 16, "tttttttttttttttthhhhhhhhhhhhhhhhhhhhhhhhwwwwwwwwwwwwwwwwwwwwwwww" },
    { 24, "thwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwtttt" },
    { 11, "thwthwthwthwthwthwthwthwthwthwth" },
};

static void holds_apart(struct tally *t, const struct call *got)
{
    const struct problem *p = &got->problem;
    int model = 0;
    while (models[model].temporal != p->freqs.mrope_section[0])
        model++;
    for (int axis = 0; axis < 3; axis++) {
        const struct call *want = run_axis(t, p, axis, NULL, NULL);
        for (EACH_ELEMENT(at, want ? got : NULL))
            if (models[model].axis_of_pair[at.column] == "thw"[axis])
                require_element(t, &at, twin_of(&at, want), "at its axis' position");
    }
}

/* The plan of one section, and its columns of a call with all sections. */
struct section_plan {
    struct posenc_freqs *freqs;
    int64_t from, columns;
};

static void edit_section_plan(struct call *call, const void *user)
{
    const struct section_plan *own = user;
    const bool table = call->n_outputs == 2;
    *call = call_cut(call, table ? DIM_PAIR : DIM_CHANNEL, own->from, own->columns);
    *(table ? &call->args.rope_table.freqs : &call->args.sinusoidal.freqs) = own->freqs;
}

/* Compares the columns of each section with a call of the plan of that axis alone. */
static void holds_sections(struct tally *t, const struct call *got)
{
    const struct problem *p = &got->problem;
    const int64_t *sections = p->freqs.mrope_section, width = 3 - got->n_outputs;
    struct section_plan own = { NULL, 0, 0 };
    for (int axis = 0; axis < 3 && sections[axis]; axis++, own.from += own.columns) {
        struct posenc_freqs_spec spec = p->freqs;
        memset(spec.mrope_section, 0, sizeof spec.mrope_section);
        spec.mrope_layout = POSENC_MROPE_CHUNKED;
        spec.dim = 2 * sections[axis];
        own.columns = width * sections[axis];
        if (!require(t, posenc_freqs_create(&spec, &own.freqs, NULL) == POSENC_OK,
                     "no plan for a section"))
            return;
        const struct call *want = run_axis(t, p, axis, edit_section_plan, &own);
        for (EACH_ELEMENT(at, want ? got : NULL))
            if (at.column >= own.from && at.column < own.from + own.columns)
                require_element(t, &at, twin_of(&at, want), "as its own encoding");
        posenc_freqs_destroy(own.freqs);
    }
}

/* ---- Times ---- */

static void edit_negative_zero(struct call *call, const void *user)
{
    (void)user;
    float *data = (float *)(uintptr_t)call_positions(call)->data;
    data[call->problem.tokens - 1] = -0.0f; /* the last time was 0 */
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
    if (p->layout == POSENC_INTERLEAVED)
        return at->column % 2 == 0;
    return p->layout == POSENC_SIN_COS ? in_first : in_second;
}

static void compare_mirror(struct tally *t, const struct call *right, const struct call *left)
{
    for (EACH_ELEMENT(at, left))
        if (at.row > 0)
            require_element(t, &at, is_sine(&at) ? -twin_of(&at, right) : twin_of(&at, right),
                            "of the time without its sign");
}

/* ---- All of them ---- */

const struct property properties_tables[] = {
    { "linear-map", .holds = holds_linear_map, .problems = "tables", .with = "tokens=20" },
    { "frequency", .holds = holds_frequency, .problems = "tables", .with = "tokens=5" },
    { "layouts-are-permutations", .compares = compare_layouts, .twin = "layout=interleaved" },
    { "neutral-scaling", .twin = "scaling=none" },
    { "xpos-relative", .compares = compare_relative, .problems = "xpos",
      .twin = "xpos_inverse=true" },
    { "offset-alone", .concerns = has_positions, .with = "position_kind=offset batch=3",
      .twin = "", .twin_edit = edit_no_array },
    { "stride-unsaid", .concerns = has_positions, .with = "position_kind=i64 batch=3",
      .twin = "", .twin_edit = edit_no_stride },
    { "axes-apart", .holds = holds_apart, .problems = "pictures" },
    { "axes-restarted", .holds = holds_sections },
    { "sections", .holds = holds_sections },
    { "whole-times", .twin = "position_kind=f32", .with = "position_kind=i64",
      .twin_edit = edit_negative_zero },
    { "times-mirror", .compares = compare_mirror, .twin = "", .twin_edit = edit_negative },
    { 0 },
};
