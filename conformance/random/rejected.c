/*
 * Problems and frequencies that have to be rejected: lines of cases/refused.txt, for what no draw is
 * likely to meet, and each scaling in the numerics modes that have it.
 */
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"
#include "random.h"

#include <stdio.h>
#include <string.h>

/* Returns true if a status is one of those named; no name stands for success. */
static bool is_among(enum posenc_status status, const char *names)
{
    static const char *const name[] = {
        "OK",         "ARGUMENT",    "SHAPE",        "STRIDE",   "DTYPE",   "ODD",
        "ROTARY_DIM", "THETA",       "PARAMETER",    "POSITION", "OVERLAP", "OVERFLOW",
        "UNKNOWN",    "UNSUPPORTED", "NOT_PROVIDED", "MEMORY",
    };
    const char *at = strstr(*names ? names : "OK", name[status]);
    return at && strchr(" ", at[strlen(name[status])]);
}

/* A rejected call has a reason, and its outputs hold what they held. */
static void check_problem(struct tally *t, const struct problem_line *line,
                          enum posenc_kernel kernel)
{
    struct problem p = line->problem;
    p.kernel = kernel;
    struct call *call = tally_call(t, t->run->implementation, &p),
                *before = call ? tally_call(t, t->run->implementation, &p) : NULL;
    if (!before)
        return;
    const struct guarded g = guarded_run(call, t->run->backend, NULL);
    require(t, !g.crashed && is_among(g.status, line->flags), "%s: answered \"%s\"%s",
            line->name, posenc_status_string(g.status), g.reason);
    require(t, call->error.what, "%s: no reason", line->name);
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++)
            require(t,
                    memcmp(call_row(call, o, r), call_row(before, o, r),
                           (size_t)call->outputs[o].width * sizeof(float)) == 0,
                    "%s: output %d was written", line->name, o);
    tally_forget(t);
}

static void check_freqs(struct tally *t, const char *name, const char *allowed,
                        const struct posenc_freqs_spec *spec)
{
    struct posenc_error error = { .what = NULL };
    struct posenc_freqs *freqs = NULL;
    const enum posenc_status status = posenc_freqs_create(spec, &freqs, &error);
    require(t, is_among(status, allowed), "%s: answered \"%s\"", name,
            posenc_status_string(status));
    require(t, !status || (status == error.status && error.what), "%s: no reason", name);
    require(t, !freqs == (status != POSENC_OK), "%s: frequencies of a rejected spec", name);
    posenc_freqs_destroy(freqs);
}

/* Makes each scaling in each mode, a spec of unknown size, and enums without such a member. */
static void check_specs(struct tally *t, struct problem valid)
{
    struct field field;
    char name[2 * FIELD_TEXT];
    struct posenc_freqs_spec spec = valid.freqs;
    for (int s = 0; scaling_names[s]; s++)
        for (int m = 0; profile_names[m]; m++) {
            spec.scaling = (enum posenc_scaling)s;
            spec.profile = (enum posenc_profile)m;
            snprintf(name, sizeof name, "%s in %s", scaling_names[s], profile_names[m]);
            check_freqs(t, name,
                        scaling_in_profile(spec.scaling, spec.profile) ? "" : "ARGUMENT",
                        &spec);
        }
    spec = valid.freqs;
    spec.size--;
    check_freqs(t, "unknown size", "ARGUMENT", &spec);
    for (int i = 0; kernel_field(valid.kernel, i, &field); i++) {
        struct problem p = valid;
        if (field.kind != FIELD_ENUM || field.offset - MEMBER(freqs) >= sizeof p.freqs)
            continue;
        field_set(&field, &p, 77);
        check_freqs(t, field.name, "ARGUMENT", &p.freqs);
    }
}

void random_check_rejected(struct tally *t, enum posenc_kernel kernel)
{
    const struct signature *s = signature_of(kernel);
    const bool specs = s->rotary && s->freqs;
    size_t n = 0;
    for (EACH_CASE(line, CASES_REFUSED)) {
        const char *of = *line->note ? line->note : signature_of(line->problem.kernel)->name;
        const bool spec = strcmp(of, "plan") == 0;
        if (spec && specs && n == 0)
            check_specs(t, line->problem);
        if (spec && specs)
            check_freqs(t, line->name, line->flags, &line->problem.freqs);
        else if (!spec && strcmp(of, s->name) == 0)
            check_problem(t, line, kernel);
        n += spec ? specs : strcmp(of, s->name) == 0;
    }
    require(t, n > 0 || kernel_on_scores(kernel), "refused.txt has no problem of %s",
            posenc_kernel_name(kernel));
}
