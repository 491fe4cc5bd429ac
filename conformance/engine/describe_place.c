/* Describes the place of a value in words; see judge.h. */
#include "judge.h"

#include "conformance/problem/signature.h"

#include <inttypes.h>
#include <stdio.h>

/* A pair of cosine and sine columns, and which of the two a column is. */
struct pair_place {
    int64_t pair;
    bool is_second;
};

/* Returns the pair of a column. With several axes, the columns of one section are contiguous. */
static struct pair_place find_pair(const struct problem *p, int64_t column)
{
    if (p->layout == POSENC_LAYOUT_INTERLEAVED)
        return (struct pair_place){ column / 2, column % 2 == 1 };
    const struct exact_section section = exact_section(&p->freqs, column / 2);
    const int64_t in_section = column - 2 * section.start, half = section.pairs;
    return (struct pair_place){ half ? section.start + in_section % half : 0,
                                in_section >= half };
}

static void describe_angle(const struct problem *p, const struct tensor_spec *row, int64_t b,
                           int64_t t, int64_t column, char *text, size_t size)
{
    const bool is_rope_table = row->dims[tensor_dims(row) - 1] == DIM_PAIR;
    bool is_cosine = row->name[0] == 'c'; /* "cos" of rope_table */
    struct pair_place at = { column, false };
    if (!is_rope_table) {
        at = find_pair(p, column);
        is_cosine = at.is_second == (p->layout != POSENC_LAYOUT_COS_SIN);
    }
    int64_t position = problem_axis_position(p, b, t, exact_axis(&p->freqs, at.pair));
    snprintf(text, size, "position %" PRId64 " pair %" PRId64 " %s of dim %" PRId64 " theta %g",
             position, at.pair, is_cosine ? "cos" : "sin", p->freqs.dim, p->freqs.rope_theta);
}

void describe_place(const struct call *call, int o, int64_t r, int64_t column, char *text,
                    size_t size)
{
    static const char *const dim_names[] = {
        [DIM_BATCH] = "batch",      [DIM_TOKEN] = "token", [DIM_HEAD] = "head",
        [DIM_QUERY] = "query",      [DIM_KEY] = "key",     [DIM_CHANNEL] = "channel",
        [DIM_PAIR] = "pair",        [DIM_ROW] = "row",     [DIM_COLUMN] = "column",
        [DIM_DISTANCE] = "distance"
    };
    const struct problem *p = &call->problem;
    const struct tensor_spec *row = signature_output(signature_of(p->kernel), o);
    int64_t at[MOST_DIMS] = { 0 };
    size_t used = 0;
    const int n = tensor_dims(row);
    at[n - 1] = column;
    for (int d = n - 2; d >= 0; d--) {
        const int64_t extent = problem_extent(p, row->dims[d]);
        at[d] = d ? r % extent : r;
        r /= extent;
    }
    if (kernel_has_freqs(p->kernel)) {
        describe_angle(p, row, at[0], at[1], column, text, size);
        return;
    }
    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%s %" PRId64, d ? " " : "",
                                 dim_names[row->dims[d]], at[d]);
}
