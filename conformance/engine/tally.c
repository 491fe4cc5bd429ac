/* Counts checks, and runs problems for them; see tally.h. */
#define _POSIX_C_SOURCE 200809L
#include "tally.h"

#include "conformance/problem/notation.h"
#include "conformance/problem/signature.h"
#include "judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *numerics_of(enum posenc_kernel kernel)
{
    return kernel_has_freqs(kernel) ? "exact" : "given";
}

/* Begins a case. `has_dtypes` is false if the backend lacks a dtype of the case. */
static bool begin_case(struct tally *t, struct suite_run *run, enum posenc_kernel kernel,
                       enum posenc_dtype dtype, const char *suite, const char *numerics,
                       bool has_dtypes, const char *name, va_list list)
{
    struct conf_result *r = &t->result;
    *t = (struct tally){ .run = run };
    *r = (struct conf_result){ .kernel = kernel, .suite = suite, .coverage = "sampled" };
    r->numerics = numerics ? numerics : numerics_of(kernel);
    r->metric = numerics ? NULL : "exact";
    size_t n = (size_t)snprintf(r->id, sizeof r->id, "%s/%s/%s/", posenc_kernel_name(kernel),
                                dtype_names[dtype], numerics ? numerics : suite);
    vsnprintf(r->id + n, sizeof r->id - n, name, list);
    return t->selected = has_dtypes && suite_selected(run, r->id);
}

bool tally_begin(struct tally *t, struct suite_run *run, enum posenc_kernel kernel,
                 enum posenc_dtype dtype, const char *suite, const char *numerics,
                 const char *name, ...)
{
    va_list list;
    va_start(list, name);
    const bool selected = begin_case(t, run, kernel, dtype, suite, numerics, true, name, list);
    va_end(list);
    return selected;
}

bool tally_begin_problem(struct tally *t, struct suite_run *run, const struct problem *p,
                         const char *suite, const char *name, ...)
{
    va_list list;
    va_start(list, name);
    const bool selected =
        begin_case(t, run, p->kernel, p->dtype, suite, problem_numerics_name(p),
                   run->backend->f16_bf16 || problem_is_f32(p), name, list);
    va_end(list);
    t->result.scale = kernel_has_freqs(p->kernel) ? p->scale : 0.0;
    return selected;
}

void tally_set_problem(struct tally *t, const struct problem *problem)
{
    conf_print_problem(t->result.problem, problem);
    if (notation_print(problem, NULL, t->line, sizeof t->line) >= sizeof t->line)
        t->line[0] = '\0';
}

bool require(struct tally *t, bool ok, const char *format, ...)
{
    t->result.checked++;
    if (ok || t->result.status != CONF_PASS)
        return ok;
    t->result.status = CONF_FAIL;
    va_list list;
    va_start(list, format);
    vsnprintf(t->result.reason, sizeof t->result.reason, format, list);
    va_end(list);
    if (t->problem)
        tally_set_problem(t, t->problem);
    return false;
}

bool require_clean(struct tally *t, const struct guard_result *g)
{
    if (g->crashed) {
        if (t->result.status == CONF_PASS) {
            require(t, false, "%s", g->reason);
            t->result.status = CONF_CRASH;
        }
        return false;
    }
    if (g->cause != GUARD_WRONG) {
        tally_decline(t, g->reason);
        return false;
    }
    if (g->status != POSENC_OK && g->reason[0])
        return require(t, false, "%s", g->reason);
    return require(t, !g->control_left, "%s", g->reason) &&
           require(t, g->status == POSENC_OK, "rejected: %s", posenc_status_string(g->status));
}

uint32_t canonical_bits(float value)
{
    const uint32_t bits = float_to_bits(value);
    return isnan(value) && bits != CALL_CANARY ? 0x7fc00000u : bits;
}

bool require_same_bits(struct tally *t, const float *got, const float *want, int64_t n,
                       const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (canonical_bits(got[i]) != canonical_bits(want[i]))
            return require(t, false, "%s: element %lld is %.9g (%08x), not %.9g (%08x)", what,
                           (long long)i, (double)got[i], float_to_bits(got[i]), (double)want[i],
                           float_to_bits(want[i]));
    return require(t, true, "%s", what);
}

bool require_within(struct tally *t, double got, double want, double bound, const char *what)
{
    return require(t, fabs(got - want) <= bound,
                   "%s: %.9g is %.3g from %.9g, at most %.3g is explained", what, got,
                   fabs(got - want), want, bound);
}

void tally_skip(struct tally *t, const char *reason)
{
    t->skipped = true;
    if (t->result.status == CONF_PASS)
        snprintf(t->result.reason, sizeof t->result.reason, "%s", reason);
}

void tally_decline(struct tally *t, const char *reason)
{
    char text[sizeof t->result.reason];
    snprintf(text, sizeof text, "not offered: %.280s", reason);
    tally_skip(t, text);
}

/* Names the mistake that explains a failed problem. */
static void explain_failure(struct tally *t)
{
    struct conf_result *r = &t->result;
    struct problem_line line;
    struct arena arena = { NULL };
    char error[NOTATION_ERROR];
    if (r->status != CONF_FAIL || !t->line[0])
        return;
    suite_announce(t->run, r);
    if (notation_read(t->line, &line, &arena, error))
        r->searched = mistakes_find(t->run->implementation, &line.problem, r->mistake);
    arena_free(&arena);
}

void tally_end(struct tally *t)
{
    tally_free_calls(t);
    if (!t->selected)
        return;
    if (t->skipped && t->result.status == CONF_PASS)
        t->result.status = CONF_SKIPPED;
    else if (!t->result.checked)
        require(t, false, "nothing was checked");
    explain_failure(t);
    suite_report(t->run, &t->result);
}

/* ---- Calls of a tally ---- */

struct kept_call {
    struct kept_call *before; /* the next older call */
    bool made;
    struct call call;
};

/* Requires a status of POSENC_OK; otherwise reports the library's message. */
static bool require_status(struct tally *t, const char *what, enum posenc_status status,
                           const struct posenc_error *error)
{
    char text[sizeof t->result.reason];
    posenc_error_text(error, text, sizeof text);
    return require(t, status == POSENC_OK, "%s: %s", what, text);
}

struct call *tally_create_call(struct tally *t, const struct implementation *implementation,
                               const struct problem *p)
{
    struct kept_call *kept = calloc(1, sizeof *kept);
    if (!require(t, kept != NULL, "out of memory"))
        return NULL;
    kept->before = t->kept;
    t->kept = kept;
    enum posenc_status made =
        call_create_by(implementation, &kept->call, p, &tensor_allocator_default);
    t->problem = &kept->call.problem;
    kept->made = made == POSENC_OK;
    return require_status(t, "the call was not made", made, &kept->call.error) ? &kept->call
                                                                               : NULL;
}

const struct call *tally_run(struct tally *t, const struct problem *p, call_edit *edit,
                             const void *user)
{
    struct call *call = tally_create_call(t, t->run->implementation, p);
    if (!call)
        return NULL;
    if (edit)
        edit(call, user);
    struct guard_result g = guard_run(call, t->run->backend, NULL);
    const bool clean = g.reason[0] ? require_clean(t, &g)
                                   : require_status(t, "rejected", g.status, &call->error);
    return clean ? call : NULL;
}

bool tally_run_guarded(struct tally *t, struct guard *guard, enum guard_mode mode,
                       const struct problem *p, struct call *call, bool *has_memory)
{
    const struct tensor_allocator memory = guard_memory(guard, mode);
    const enum posenc_status made = call_create_by(t->run->implementation, call, p, &memory);
    t->problem = p;
    if (has_memory)
        *has_memory = made != POSENC_ERR_MEMORY;
    if (has_memory && !*has_memory)
        return false;
    if (!require_status(t, "the call was not made", made, &call->error))
        return false;
    const struct guard_result g = guard_run(call, t->run->backend, guard);
    const bool clean = require_clean(t, &g) && require(t, !g.overwritten, "%s", g.reason);
    if (!clean)
        call_destroy(call);
    return clean;
}

void tally_free_calls(struct tally *t)
{
    t->problem = NULL;
    for (struct kept_call *kept = t->kept, *before; kept; kept = before) {
        before = kept->before;
        if (kept->made)
            call_destroy(&kept->call);
        free(kept);
    }
    t->kept = NULL;
}

bool require_same_outputs(struct tally *t, const struct call *got, const struct call *want,
                          const char *what)
{
    bool same = true;
    for (int o = 0; o < got->n_outputs; o++)
        for (int64_t r = 0; r < got->outputs[o].rows; r++)
            same = require_same_bits(t, call_row(got, o, r), call_row(want, o, r),
                                     got->outputs[o].width, what) &&
                   same;
    return same;
}
