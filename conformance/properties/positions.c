/*
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
    return at->call->n_outputs == 2          ? at->output == 1
           : p->layout == POSENC_INTERLEAVED ? at->column % 2 == 0
           : p->layout == POSENC_SIN_COS     ? at->column < half
                                             : at->column >= half && at->column < 2 * half;
}

static void compare_mirror(struct tally *t, const struct call *right, const struct call *left)
{
    for (EACH_ELEMENT(at, left))
        if (at.row > 0)
            require_element(t, &at, is_sine(&at) ? -twin_of(&at, right) : twin_of(&at, right),
                            "of the time without its sign");
}

const struct property properties_positions[] = {
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
