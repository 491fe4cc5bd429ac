/*
 * Arguments of a call, by its signature: the plan, the tensors in the order of its rows, and what
 * is taken over from the problem.
 */
#include "call_parts.h"
#include "plans.h"

#include <string.h>

/* ---- Plans ---- */

/* The factors of longrope that a problem gives by their last: evenly from 1 on. */
static enum posenc_status make_factors(struct call *call)
{
    struct posenc_freqs_spec *spec = &call->problem.freqs;
    if (spec->scaling != POSENC_SCALING_LONGROPE || spec->short_factor || spec->long_factor ||
        spec->dim < 1 || spec->dim > 1 << 16)
        return POSENC_OK;
    int64_t n = (spec->dim + 1) / 2;
    double *factors = call_keep(call, 2 * (size_t)n * sizeof *factors);
    if (!factors)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for factors", n, 1, 0);
    for (int64_t i = 0; i < n; i++) {
        double way = n > 1 ? (double)i / (double)(n - 1) : 0.0;
        factors[i] = 1.0 + (call->problem.short_factor_last - 1.0) * way;
        factors[n + i] = 1.0 + (call->problem.long_factor_last - 1.0) * way;
    }
    spec->short_factor = factors;
    spec->long_factor = factors + n;
    return POSENC_OK;
}

/* call->freqs. */
static enum posenc_status make_plan(struct call *call)
{
    enum posenc_status status = make_factors(call);
    if (status != POSENC_OK)
        return status;
    struct posenc_freqs_spec spec = call->problem.freqs;
    if (!spec.size)
        spec.size = sizeof spec;
    return plan_take(call_subject(call), &spec, &call->freqs, &call->error);
}

/* ---- Arguments ---- */

/* f64 becomes f32 where the argument is one. */
static void take_over(struct call *call, const struct parameter *parameter)
{
    const char *from = (const char *)&call->problem + parameter->from;
    char *to = (char *)&call->args + parameter->to;
    if (parameter->from_size == parameter->to_size) {
        memcpy(to, from, parameter->to_size);
        return;
    }
    double value;
    memcpy(&value, from, sizeof value);
    const float narrow = (float)value;
    memcpy(to, &narrow, sizeof narrow);
}

/* Without x only biases that can differ by batch have one. */
static enum posenc_status check_batch(struct call *call, const struct signature *s)
{
    const struct problem *p = &call->problem;
    bool alone = kernel_on_scores(p->kernel) && !kernel_takes_x(p->kernel) && p->batch != 1;
    for (EACH_TENSOR(row, s))
        alone = alone && !(row->role == ROLE_INPUT && row->dims[0] == DIM_BATCH);
    return alone ? call_refuse(call, POSENC_ERR_SHAPE, "batch of a bias", p->batch, 1, 1)
                 : POSENC_OK;
}

static enum posenc_status make_tensors(struct call *call, const struct signature *s)
{
    static enum posenc_status (*const make[])(struct call *, const struct tensor_row *) = {
        [FORM_TENSOR] = make_tensor,
        [FORM_POSITIONS] = make_positions,
        [FORM_FLOATS] = make_pointer,
        [FORM_INTEGERS] = make_pointer,
    };
    enum posenc_status status = POSENC_OK;
    for (EACH_TENSOR(row, s))
        if (status == POSENC_OK && tensor_present(&call->problem, row))
            status = make[row->form](call, row);
    return status;
}

enum posenc_status make_arguments(struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    enum posenc_status status = check_batch(call, s);
    s->blank(&call->args);
    if (status == POSENC_OK && s->check)
        status = s->check(call);
    if (status == POSENC_OK)
        problem_settle(&call->problem);
    if (status == POSENC_OK && s->freqs) {
        status = make_plan(call);
        memcpy((char *)&call->args + s->freqs, &call->freqs, sizeof call->freqs);
    }
    if (status == POSENC_OK)
        status = make_tensors(call, s);
    if (status != POSENC_OK)
        return status;
    for (EACH_PARAMETER(parameter, s))
        take_over(call, parameter);
    if (s->finish)
        s->finish(call);
    return POSENC_OK;
}
