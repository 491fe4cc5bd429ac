/* Runs a problem in guarded memory and judges the result, and shrinks a problem that fails; see random.h. One that fails
 * with 5 heads and 9 tokens, for example, may end as heads=1 tokens=1. */
#include "random.h"
#include "conformance/engine/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_values(const struct call *call)
{
    bool has = false;
    for (int o = 0; o < call->n_outputs; o++)
        has = has || (call->outputs[o].rows > 0 && call->outputs[o].width > 0);
    return has;
}

/* Returns a factor for the error limits of families other than "native". Their limits were measured without xPos, at
 * up to one radian per position. An angle k times as large has k times the error in f64, and xPos has one more
 * rounded factor. */
static double find_tolerance(const struct posenc_backend *backend, const struct call *call)
{
    double fastest = 1.0;
    if (!call->freqs || strcmp(backend->family, "native") == 0)
        return 1.0;
    const struct posenc_freqs_view view = posenc_freqs_view_of(call->freqs);
    for (int64_t i = 0; i < view.n_pairs; i++)
        fastest = fmax(fastest, fabs(view.omega[i]));
    return call->problem.freqs.xpos_scale_base != 0.0 ? 2.0 * fastest : fastest;
}

/* Compares the values with the oracle, in a tally of their own. */
static void judge_values(struct trial *trial, const struct call *call)
{
    struct tally t = { .run = trial->run };
    struct comparison c;
    t.result.kernel = call->problem.kernel;
    t.result.numerics = problem_numerics_name(&call->problem);
    compare_begin(&c, &t);
    c.skips_rounded = true;
    compare_next(&c, call, t.run->backend, RANGE_FARTHEST);
    const double tolerance = find_tolerance(t.run->backend, call);
    c.limit *= tolerance;
    c.table_abs *= tolerance;
    compare_call(&c, NULL);
    compare_end(&c);
    trial->result = t.result;
}

void trial_run(struct trial *trial, const struct problem *problem)
{
    const struct tensor_allocator memory = guard_memory(trial->guard, trial->mode);
    struct guard_result *g = &trial->ended;
    struct call call;
    trial->result = (struct conf_result){ .status = CONF_FAIL };
    *g = (struct guard_result){ .status = call_create_by(trial->run->implementation, &call,
                                                         problem, &memory) };
    const bool made = g->status == POSENC_OK;
    if (made)
        *g = guard_run(&call, trial->run->backend, trial->guard);
    if (g->reason[0])
        snprintf(trial->result.reason, sizeof trial->result.reason, "%s", g->reason);
    else if (g->status != POSENC_OK)
        posenc_error_text(&call.error, trial->result.reason, sizeof trial->result.reason);
    else
        trial->result.status = CONF_PASS;
    if (trial->result.status == CONF_PASS && has_values(&call))
        judge_values(trial, &call);
    if (made)
        call_destroy(&call);
}

/* ---- Shrinking ---- */

/* Limits of shrinking: attempts and not seconds, so that all machines give the same result. A program may take 0.3 s to
 * answer, thus 30 s at most. */
enum { MOST_ATTEMPTS = 500, MOST_ATTEMPTS_OF_PROGRAM = 100 };

struct shrinking {
    struct trial *trial; /* the original failure */
    struct problem *problem;
    int attempts;
    bool has_shrunk; /* in this round over all fields */
};

static bool same_failure(const struct trial *a, const struct trial *b)
{
    const struct guard_result *x = &a->ended, *y = &b->ended;
    return a->result.status == b->result.status && x->status == y->status &&
           x->crashed == y->crashed && x->input_written == y->input_written &&
           x->overwritten == y->overwritten && x->control_left == y->control_left;
}

/* Replaces the problem by another one if that fails in the same way. */
static bool attempt(struct shrinking *s, const struct problem *other)
{
    struct trial again = *s->trial;
    const bool is_program = again.run->options->program != NO_PROGRAM;
    if (s->attempts++ >= (is_program ? MOST_ATTEMPTS_OF_PROGRAM : MOST_ATTEMPTS))
        return false;
    trial_run(&again, other);
    if (!same_failure(&again, s->trial))
        return false;
    *s->problem = *other;
    s->has_shrunk = true;
    return true;
}

static bool attempt_value(struct shrinking *s, const struct field *field, uint64_t bits)
{
    struct problem other = *s->problem;
    field_set(field, &other, bits);
    return attempt(s, &other);
}

/* Tries the default of a field. The default of a list is a NULL pointer, of strides a count of 0, and of sections an
 * array in the problem. */
static bool attempt_default(struct shrinking *s, const struct field *field)
{
    const struct problem blank = problem_blank(s->problem->kernel);
    struct problem other = *s->problem;
    if (field->list == LIST_NONE)
        return attempt_value(s, field, field_get(field, &blank, 0));
    memcpy((char *)&other + field->offset, (const char *)&blank + field->offset,
           field->list == LIST_SECTIONS ? sizeof blank.freqs.mrope_section : sizeof(int64_t));
    return attempt(s, &other);
}

/* Tries the default of a field. Then halves an integer, or moves it by one towards 0, while the problem fails. */
static void shrink_field(struct shrinking *s, const struct field *field)
{
    const bool is_integer = field->list == LIST_NONE && !field_is_real(field) && !field->names;
    if (field_is_blank(field, s->problem) || attempt_default(s, field))
        return;
    for (bool shrunk = is_integer; shrunk;) {
        const int64_t value = (int64_t)field_get(field, s->problem, 0),
                      near = value < 0 ? value + 1 : value - 1;
        shrunk = value != 0 && (attempt_value(s, field, (uint64_t)(value / 2)) ||
                                (near != value / 2 && attempt_value(s, field, (uint64_t)near)));
    }
}

void trial_shrink(struct trial *trial, struct problem *problem)
{
    const struct problem original = *problem;
    struct trial again = *trial;
    struct shrinking s = { .trial = trial, .problem = problem, .has_shrunk = true };
    struct field field;
    while (s.has_shrunk) {
        s.has_shrunk = false;
        for (int i = 0; kernel_field(problem->kernel, i, &field); i++)
            shrink_field(&s, &field);
    }
    trial_run(&again, problem);
    if (same_failure(&again, trial))
        *trial = again;
    else /* the failure is not repeatable */
        *problem = original;
}
