/*
 * Laws of positions that are more than an integer a token, all to the bit: a pair's values are
 * a function of its own position alone, however many others the token has, and a whole time is
 * the integer.
 *
 *   axes-of-text       the same position on all axes is that of a plan without sections: text
 *                      in a model of pictures
 *   axes-apart         each pair has the values of its own axis' position
 *   axes-restarted     sections that restart are encodings of their own
 *   sections           a sinusoidal encoding of several axes is those of its sections, side by
 *                      side
 *   whole-times        a time without a fraction is the integer; -0 is 0
 *   times-mirror       a negative time flips the sine and leaves the cosine
 *   times-between      pair 0 turns by a quarter from one quarter to the next
 *
 * Su et al. 2104.09864; Wang et al. 2409.12191 (axes).
 */
#define _POSIX_C_SOURCE 200809L
#include "pairs.h"

#include <math.h>
#include <string.h>

enum { MOST_TOKENS = 37 }; /* of a picture */

/* A plan without axes, of `dim` dimensions, with the positions that a problem has on one. */
static struct problem plain_axis(const struct problem *of, int axis, int64_t dim,
                                 int64_t positions[MOST_TOKENS])
{
    struct problem p = *of;
    memset(p.freqs.mrope_section, 0, sizeof p.freqs.mrope_section);
    p.freqs.mrope_layout = POSENC_MROPE_CHUNKED;
    p.freqs.dim = dim;
    p.mrope_grid = 0;
    for (int64_t t = 0; t < of->tokens; t++)
        positions[t] = problem_axis_position(of, 0, t, axis);
    p.positions = positions;
    return p;
}

/* Columns of all tables: of `got` [to, to + n), of `want` [from, from + n). */
static void require_columns(struct tally *t, const struct call *got, int64_t to,
                            const struct call *want, int64_t from, int64_t n, const char *what)
{
    for (int o = 0; o < got->n_outputs; o++)
        for (int64_t r = 0; r < got->outputs[o].rows; r++)
            require_same_bits(t, call_row(got, o, r) + to, call_row(want, o, r) + from, n,
                              what);
}

/* ---- Axes ---- */

/* Every axis has the positions of the first, in memory of its own. */
static void edit_same_axes(struct call *call, const void *user)
{
    (void)user;
    struct posenc_positions *p = call_positions(call);
    int32_t *data = (int32_t *)(uintptr_t)p->data;
    for (int64_t i = 0; i < 3 * p->stride_axis; i++)
        data[i] = data[i % p->stride_axis];
}

static void law_text(struct tally *t, const struct problem *axes)
{
    int64_t positions[MOST_TOKENS];
    struct problem plain = plain_axis(axes, 0, axes->freqs.dim, positions), text = *axes;
    text.mrope_grid = 0;
    text.positions = positions;
    const struct call *want = tally_run(t, &plain, NULL, NULL),
                      *one = tally_run(t, &text, NULL, NULL),
                      *each = tally_run(t, axes, edit_same_axes, NULL);
    if (want && one && each) {
        require_same_outputs(t, one, want, "one position for all axes");
        require_same_outputs(t, each, want, "the same position on each axis");
    }
}

/* Which axis turns a pair: written down once for each model, a letter a pair. */
static const struct {
    int64_t temporal; /* pairs */
    const char *axis_of_pair;
} models[] = {
    { 16, "tttttttttttttttthhhhhhhhhhhhhhhhhhhhhhhhwwwwwwwwwwwwwwwwwwwwwwww" },
    { 24, "thwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwtttt" },
    { 11, "thwthwthwthwthwthwthwthwthwthwth" },
};

static void law_apart(struct tally *t, const struct problem *axes)
{
    const struct call *got = tally_run(t, axes, NULL, NULL);
    int model = 0;
    while (models[model].temporal != axes->freqs.mrope_section[0])
        model++;
    for (int axis = 0; got && axis < 3; axis++) {
        int64_t positions[MOST_TOKENS];
        struct problem plain = plain_axis(axes, axis, axes->freqs.dim, positions);
        const struct call *want = tally_run(t, &plain, NULL, NULL);
        for (int64_t i = 0; want && i < axes->freqs.dim / 2; i++)
            if (models[model].axis_of_pair[i] == "thw"[axis])
                require_columns(t, got, i, want, i, 1, "a pair at its axis' position");
    }
}

/* Qwen2-VL's pictures, and sections of three sizes. */
static void law_restarted(struct tally *t, const struct problem *axes)
{
    const int64_t *sections = axes->freqs.mrope_section;
    const struct call *got = tally_run(t, axes, NULL, NULL);
    for (int64_t axis = 0, column = 0; got && axis < 3 && sections[axis];
         column += sections[axis++]) {
        int64_t positions[MOST_TOKENS];
        struct problem own = plain_axis(axes, (int)axis, 2 * sections[axis], positions);
        const struct call *want = tally_run(t, &own, NULL, NULL);
        if (want)
            require_columns(t, got, column, want, 0, sections[axis],
                            "a section as its own encoding");
    }
}

/* The plan of one section in a call that has room for all of them. */
struct own_plan {
    struct posenc_freqs *freqs;
    int64_t from;
};

static void edit_own_plan(struct call *call, const void *user)
{
    const struct own_plan *own = user;
    call->args.sinusoidal.freqs = own->freqs;
    struct posenc_tensor *const tensors[] = { call_x(call), call_out(call) };
    for (int k = 0; k < 2; k++)
        if (tensors[k]->data) {
            tensors[k]->data = (float *)tensors[k]->data + own->from;
            tensors[k]->shape[tensors[k]->rank - 1] = posenc_freqs_view(own->freqs).dim;
        }
}

/* Columns [from, from + 2n) of an encoding against the plan of that axis alone. */
static void check_section(struct tally *t, const struct call *got, int axis, int64_t from)
{
    const struct problem *p = &got->problem;
    int64_t positions[MOST_TOKENS], n = 2 * p->freqs.mrope_section[axis];
    struct problem one = plain_axis(p, axis, p->freqs.dim, positions);
    struct posenc_freqs_spec spec = one.freqs;
    struct own_plan own = { NULL, from };
    spec.dim = n;
    if (!require(t, posenc_freqs_create(&spec, &own.freqs, NULL) == POSENC_OK,
                 "no plan for a section"))
        return;
    const struct call *want = tally_run(t, &one, edit_own_plan, &own);
    if (want)
        require_columns(t, got, from, want, from, n, "a section as its own encoding");
    posenc_freqs_destroy(own.freqs);
}

static void law_sections(struct tally *t, const struct problem *p)
{
    const int64_t *sections = p->freqs.mrope_section;
    const struct call *got = tally_run(t, p, NULL, NULL);
    for (int64_t axis = 0, from = 0; got && axis < 3 && sections[axis];
         from += 2 * sections[axis++])
        check_section(t, got, (int)axis, from);
}

/* ---- Times ---- */

static void edit_negative_zero(struct call *call, const void *user)
{
    (void)user;
    float *data = (float *)(uintptr_t)call_positions(call)->data;
    for (int64_t i = 0; i < call->problem.tokens; i++)
        data[i] = data[i] == 0.0f ? -0.0f : data[i];
}

static void law_whole_times(struct tally *t, const struct problem *times)
{
    struct problem whole = *times;
    whole.position_kind = POSENC_POSITIONS_I64;
    const struct call *want = tally_run(t, &whole, NULL, NULL),
                      *got = tally_run(t, times, NULL, NULL),
                      *signed_zero = tally_run(t, times, edit_negative_zero, NULL);
    if (want && got && signed_zero) {
        require_same_outputs(t, got, want, "a whole time");
        require_same_outputs(t, signed_zero, want, "time -0");
    }
}

/* An interleaved odd dim ends in a sine without a cosine. */
static void law_times_mirror(struct tally *t, const struct problem *p)
{
    struct problem minus = *p;
    minus.time_step = -p->time_step;
    const struct call *right = tally_run(t, p, NULL, NULL),
                      *left = tally_run(t, &minus, NULL, NULL);
    for (int64_t r = 1; right && left && r < p->tokens; r++) {
        for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
            const struct pair at = pair_at(right, r, i), other = pair_at(left, r, i);
            const float got[2] = { (float)other.s, (float)other.c },
                        want[2] = { -(float)at.s, (float)at.c };
            require_same_bits(t, got, want, 2, "a negative time");
        }
        if (right->n_outputs == 1 && p->freqs.dim % 2) {
            const int64_t last = p->freqs.dim - 1;
            const float entry = call_row(right, 0, r)[last],
                        want = p->layout == POSENC_INTERLEAVED ? -entry : entry;
            require_same_bits(t, call_row(left, 0, r) + last, &want, 1,
                              "a negative time, the odd column");
        }
    }
}

/* Pair 0 turns by 1 a position, so by 1/4 from each of these times to the next: sines and
 * cosines within TABLE_ERROR of those. */
static void law_times_between(struct tally *t, const struct problem *p)
{
    const struct call *table = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; table && r < p->tokens; r++) {
        const struct pair at = pair_at(table, r, 0);
        require_within(t, at.s, sin((double)r / 4.0), TABLE_ERROR, "sine at quarters");
        require_within(t, at.c, cos((double)r / 4.0), TABLE_ERROR, "cosine at quarters");
    }
}

const struct law laws_positions[] = {
    LAW("axes-of-text", law_text, .problems = "pictures"),
    LAW("axes-apart", law_apart, .problems = "pictures"),
    LAW("axes-restarted", law_restarted),
    LAW("sections", law_sections),
    LAW("whole-times", law_whole_times),
    LAW("times-mirror", law_times_mirror),
    LAW("times-between", law_times_between),
    { 0 },
};
