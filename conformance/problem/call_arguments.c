/*
 * Arguments of a call, by its signature: the plan, the tensors in the order of its rows, and what
 * is taken over from the problem.
 */
#include "call_parts.h"

#include <string.h>

/* ---- Plans ---- */

/* The factors of longrope that a problem gives by their last: evenly from 1 on. */
static bool make_factors(struct call *call)
{
    struct posenc_freqs_spec *spec = &call->problem.freqs;
    if (spec->scaling != POSENC_SCALING_LONGROPE || spec->short_factor || spec->long_factor ||
        spec->dim < 1 || spec->dim > 1 << 16)
        return true;
    const int64_t n = (spec->dim + 1) / 2;
    double *factors = call_keep(call, 2 * n, sizeof *factors);
    for (int64_t i = 0; factors && i < n; i++) {
        const double way = n > 1 ? (double)i / (double)(n - 1) : 0.0;
        factors[i] = 1.0 + (call->problem.short_factor_last - 1.0) * way;
        factors[n + i] = 1.0 + (call->problem.long_factor_last - 1.0) * way;
    }
    spec->short_factor = factors;
    spec->long_factor = factors ? factors + n : NULL;
    return factors;
}

/* Suites make the same call many times over, elsewhere in memory or by another backend, and a
 * plan is most of what that costs.  The first plans that the library makes of specs that name no
 * arrays are kept until the program ends.  One thread at a time makes calls. */
enum { MOST_KEPT = 512 };
static struct kept {
    struct posenc_freqs_spec spec;
    struct posenc_freqs *freqs;
} kept[MOST_KEPT];
static int n_kept;

static enum posenc_status take_plan(struct call *call)
{
    const struct subject *subject = call->subject;
    const struct posenc_freqs_spec *spec = &call->problem.freqs;
    const bool shared = subject->freqs_create == posenc_freqs_create && !spec->short_factor &&
                        !spec->long_factor && !spec->values;
    for (int i = 0; shared && i < n_kept; i++)
        if (memcmp(&kept[i].spec, spec, sizeof *spec) == 0) {
            call->freqs = kept[i].freqs;
            return POSENC_OK;
        }
    const enum posenc_status status = subject->freqs_create(spec, &call->freqs, &call->error);
    if (shared && status == POSENC_OK && n_kept < MOST_KEPT) {
        memcpy(&kept[n_kept].spec, spec, sizeof *spec);
        kept[n_kept++].freqs = call->freqs;
    }
    return status;
}

void destroy_plan(struct call *call)
{
    for (int i = 0; i < n_kept; i++)
        if (kept[i].freqs == call->freqs)
            return;
    if (call->freqs)
        call->subject->freqs_destroy(call->freqs);
}

bool make_plan(struct call *call, const struct signature *s)
{
    if (!make_factors(call))
        return false;
    call->error.status = take_plan(call);
    memcpy((char *)&call->args + s->freqs, &call->freqs, sizeof call->freqs);
    return call->error.status == POSENC_OK;
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

bool make_arguments(struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    s->blank(&call->args);
    if (!kernel_has_batch(call->problem.kernel) &&
        !call_within(call, POSENC_ERR_SHAPE, "batch of a bias", call->problem.batch, 1, 1))
        return false;
    if (s->check && !s->check(call))
        return false;
    problem_settle(&call->problem);
    if (s->freqs && !make_plan(call, s))
        return false;
    for (EACH_TENSOR(row, s))
        if (tensor_present(&call->problem, row) && !make_tensor(call, row))
            return false;
    for (EACH_PARAMETER(parameter, s))
        take_over(call, parameter);
    if (s->finish)
        s->finish(call);
    return true;
}
