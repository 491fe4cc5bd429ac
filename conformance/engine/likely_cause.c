/* Names the likely cause of a wrong rotation; see judge.h. */
#include "judge.h"

#include "conformance/oracle/oracle.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdlib.h>

/* Returns true if each value that was written is near the expected one, compared with the largest of its row. Rounding
 * to bf16 moves a value by 2^-9 of itself. */
static bool is_near(const float *got, const double *want, int64_t width)
{
    double largest = 0.0;
    bool near = true;
    for (int64_t i = 0; i < width; i++)
        if (isfinite(want[i]))
            largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < width; i++)
        if (isfinite(want[i]) && float_to_bits(got[i]) != CALL_CANARY)
            near = near && fabs((double)got[i] - want[i]) <= 0x1p-7 * largest;
    return near;
}

/* Returns true if the outputs of a call are near those that another problem expects of its inputs, `later` positions
 * later. Tokens that have no row of the tables then are left out. */
static bool is_like(const struct call *call, const struct problem *problem, int64_t later)
{
    struct call other = *call;
    other.problem = *problem;
    other.problem.position_kind =
        POSENC_POSITIONS_OFFSET; /* so that `first` can be set for each token */
    const int64_t width = call->outputs[0].width;
    struct oracle *oracle = oracle_create(&other);
    double *want = calloc((size_t)width, sizeof *want);
    bool alike = oracle && want;
    int64_t compared = 0;
    for (int64_t r = 0; alike && r < call->outputs[0].rows; r++) {
        const int64_t token = r / problem->heads, t = token % problem->tokens;
        const int64_t row = problem_position(problem, token / problem->tokens, t) + later;
        if (row < 0 || row >= problem->rows)
            continue;
        other.problem.first = row - t;
        oracle_compute_row(oracle, 0, r, want, NULL);
        alike = is_near(call_row(call, 0, r), want, width);
        compared++;
    }
    free(want);
    oracle_destroy(oracle);
    return alike && compared > 0;
}

/* Returns a cause in the pairs or the angles of a rotation, or NULL. */
static const char *cause_in_rotation(const struct call *call)
{
    const struct problem right = call->problem;
    const bool adjacent = kernel_pairs_adjacent(right.kernel);
    struct problem other = right;
    other.transpose = !right.transpose;
    if (is_like(call, &other, 0))
        return right.transpose ? "as if without transpose"
                               : "as if the sines had the opposite sign";
    other = right;
    other.kernel = adjacent ? POSENC_KERNEL_ROPE_HALF : POSENC_KERNEL_ROPE_INTERLEAVED;
    if (is_like(call, &other, 0))
        return adjacent ? "paired as rope_half" : "paired as rope_interleaved";
    other = right;
    other.rotary_offset = 0;
    if (right.rotary_offset != 0 && is_like(call, &other, 0))
        return "as if rotary_offset were 0";
    other.rotary_dim = 0;
    return is_like(call, &other, 0) ? "x is not rotated" : NULL;
}

const char *likely_cause(const struct call *call)
{
    const struct problem *right = &call->problem;
    if (kernel_signature(right->kernel) != SIGNATURE_rope || is_like(call, right, 0))
        return NULL;
    if (is_like(call, right, 1))
        return "as if each position were one higher";
    if (is_like(call, right, -1))
        return "as if each position were one lower";
    struct problem other = *right;
    other.batch_shift = 0;
    if (right->batch_shift != 0 && is_like(call, &other, 0))
        return "as if every batch had the positions of the first";
    return cause_in_rotation(call);
}
