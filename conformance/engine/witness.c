/*
 * Where a value stands, in words a person can repeat it from: the witness of an error.
 */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>

/* The pair a column belongs to, and whether it is the second of the pair's two columns. */
struct column {
    int64_t pair;
    bool second;
};

/* Sections of several axes lie side by side, each in the layout. */
static struct column column_of(const struct problem *p, int64_t column)
{
    int64_t first = 0, half = p->freqs.dim / 2;
    if (p->layout == POSENC_INTERLEAVED)
        return (struct column){ column / 2, column % 2 == 1 };
    for (int axis = 0; axis < 3 && p->freqs.mrope_section[0]; axis++) {
        half = p->freqs.mrope_section[axis];
        if (column < 2 * (first + half))
            break;
        first += half;
    }
    int64_t own = column - 2 * first;
    return (struct column){ half ? first + own % half : 0, own >= half };
}

static void describe_angle(const struct problem *p, int o, int64_t b, int64_t t, int64_t column,
                           char *text, size_t size)
{
    bool rotary = kernel_signature(p->kernel) == SIGNATURE_rope_table;
    struct column at = rotary ? (struct column){ column, o == 0 } : column_of(p, column);
    bool cosine = rotary || p->layout != POSENC_COS_SIN ? at.second : !at.second;
    int64_t position = problem_axis_position(p, b, t, oracle_axis(&p->freqs, at.pair));
    snprintf(text, size, "position %" PRId64 " pair %" PRId64 " %s of dim %" PRId64 " theta %g",
             position, at.pair, cosine ? "cos" : "sin", p->freqs.dim, p->freqs.rope_theta);
}

void describe_place(const struct call *call, int o, int64_t r, int64_t column, char *text,
                    size_t size)
{
    const struct problem *p = &call->problem;
    const struct posenc_tensor *t = &call->outputs[o].tensor;
    int64_t i2 = r % t->shape[2], i1 = r / t->shape[2] % t->shape[1],
            i0 = r / t->shape[2] / t->shape[1];
    enum signature_id s = kernel_signature(p->kernel);
    if (kernel_on_scores(p->kernel)) {
        snprintf(text, size, "batch %" PRId64 " head %" PRId64 " query %" PRId64 " %s %" PRId64,
                 i0, i1, i2, s == SIGNATURE_relative_sum ? "column" : "key", column);
        return;
    }
    if (kernel_has_plan(p->kernel))
        describe_angle(p, o, i0, i1, column, text, size);
    else if (s == SIGNATURE_learned_grad)
        snprintf(text, size, "row %" PRId64 " column %" PRId64, r, column);
    else if (kernel_turns(p->kernel))
        snprintf(text, size,
                 "batch %" PRId64 " token %" PRId64 " head %" PRId64 " channel %" PRId64, i0,
                 i1, i2, column);
    else
        snprintf(text, size, "batch %" PRId64 " token %" PRId64 " column %" PRId64, i0, i1,
                 column);
}
