/* Selects cases, counts the checks of suites, runs problems for them, and names the places of values; see tally.h. Also
 * has the functions of engine.h. */
#define _POSIX_C_SOURCE 200809L
#include "tally.h"
#include "conformance/problem/notation.h"
#include "conformance/problem/signature.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const conf_status_name[] = { "pass",        "fail",    "crash",
                                         "unsupported", "skipped", "elsewhere" };

void conf_print_problem(char line[PROBLEM_LINE], const struct problem *problem)
{
    if (notation_print(problem, NULL, line, PROBLEM_LINE) >= PROBLEM_LINE)
        line[0] = '\0';
}

bool conf_selects(const struct conf_options *options, enum posenc_kernel kernel)
{
    bool any = false;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        any = any || options->kernels[k];
    return !any || options->kernels[kernel];
}

static bool is_excepted(const struct conf_options *options, const char *id)
{
    for (int i = 0; i < MOST_EXCEPT && options->except[i]; i++)
        if (fnmatch(options->except[i], id, 0) == 0)
            return true;
    return false;
}

/* Returns true if this process runs a check. Reports others as CONF_ELSEWHERE, so that the sink gets all ids. */
static bool is_wanted_here(struct suite_run *run, const char *id)
{
    const struct conf_options *options = run->options;
    if (!options->wants || options->wants(options->wants_user, run->backend, id))
        return true;
    struct conf_result r = {
        .kernel = run->kernel, .suite = "all", .backend = run->backend, .status = CONF_ELSEWHERE
    };
    snprintf(r.id, sizeof r.id, "%s", id);
    run->n_elsewhere++;
    run->sink(run->user, &r);
    return false;
}

/* Returns true if the options select a case and the backend supports its type. */
static bool is_selected(struct suite_run *run, const char *id)
{
    const bool is_16_bit = strstr(id, "/f16/") || strstr(id, "/bf16/");
    return (!is_16_bit || run->backend->f16_bf16) &&
           (!run->options->case_glob || fnmatch(run->options->case_glob, id, 0) == 0) &&
           !is_excepted(run->options, id) && is_wanted_here(run, id);
}

/* Counts and forwards a result, after setting its backend. */
static void report(struct suite_run *run, struct conf_result *result)
{
    const bool failed = result->status == CONF_FAIL || result->status == CONF_CRASH;
    result->backend = run->backend;
    run->failed += failed;
    run->n_entered += failed || result->status == CONF_PASS;
    run->sink(run->user, result);
}

void suite_announce(struct suite_run *run, const struct conf_result *result)
{
    struct conf_result early = *result;
    early.backend = run->backend;
    if (run->options->fails)
        run->options->fails(run->options->wants_user, &early);
}

void suite_report_kernel(struct suite_run *run, enum conf_status status, const char *reason)
{
    struct conf_result r = { .kernel = run->kernel,
                             .suite = run->options->suite ? run->options->suite : "all",
                             .numerics = "given",
                             .status = status };
    snprintf(r.id, sizeof r.id, "%s/f32/%s", posenc_kernel_name(run->kernel),
             status == CONF_UNSUPPORTED ? "unsupported" : "never-entered");
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    if (is_wanted_here(run, r.id))
        report(run, &r);
}

void require_known_lines(enum cases_file file, const char *name,
                         bool (*is_known)(const struct problem_line *line))
{
    for (EACH_CASE(line, file)) {
        if (is_known(line) && (!*line->flags || strcmp(line->flags, "full") == 0))
            continue;
        fprintf(stderr, "%s:%d: %s | %s: expected the name of a case, and full or no flag\n",
                name, line->number, line->name, line->flags);
        abort();
    }
}

/* ---- Tallies ---- */

bool tally_begin(struct tally *t, struct suite_run *run, enum posenc_kernel kernel,
                 enum posenc_dtype dtype, const char *suite, const char *numerics,
                 const char *name, ...)
{
    struct conf_result *r = &t->result;
    va_list list;
    *t = (struct tally){ .run = run };
    *r = (struct conf_result){ .kernel = kernel, .suite = suite, .coverage = "sampled" };
    r->numerics = numerics ? numerics : kernel_has_freqs(kernel) ? "exact" : "given";
    r->metric = numerics ? NULL : "exact";
    size_t n = (size_t)snprintf(r->id, sizeof r->id, "%s/%s/%s/", posenc_kernel_name(kernel),
                                dtype_names[dtype], numerics ? numerics : suite);
    va_start(list, name);
    vsnprintf(r->id + n, sizeof r->id - n, name, list);
    va_end(list);
    return t->selected = is_selected(run, r->id);
}

bool tally_begin_problem(struct tally *t, struct suite_run *run, const struct problem *p,
                         const char *suite, const char *prefix, const char *name)
{
    *t = (struct tally){ .run = run };
    if ((!run->backend->f16_bf16 && !problem_is_f32(p)) ||
        !tally_begin(t, run, p->kernel, p->dtype, suite, problem_numerics_name(p), "%s%s",
                     prefix, name))
        return false;
    t->result.scale = kernel_has_freqs(p->kernel) ? p->scale : 0.0;
    return true;
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
    const bool same =
        n == 0 || memcmp(got, want, (size_t)n * sizeof *got) == 0; /* saves time */
    for (int64_t i = 0; i < n && !same; i++)
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
    report(t->run, &t->result);
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

/* ---- Problems and places of values ---- */

const char *problem_numerics_name(const struct problem *problem)
{
    return kernel_has_freqs(problem->kernel) ? numerics_names[problem->freqs.numerics]
                                             : "given";
}

enum posenc_dtype problem_output_dtype(const struct problem *problem)
{
    return tensor_dtype(problem, signature_output(signature_of(problem->kernel), 0));
}

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
    struct pair_place place = { column, false };
    if (!is_rope_table) {
        place = find_pair(p, column);
        is_cosine = place.is_second == (p->layout != POSENC_LAYOUT_COS_SIN);
    }
    int64_t position = problem_axis_position(p, b, t, exact_axis(&p->freqs, place.pair));
    snprintf(text, size, "position %" PRId64 " pair %" PRId64 " %s of dim %" PRId64 " theta %g",
             position, place.pair, is_cosine ? "cos" : "sin", p->freqs.dim,
             p->freqs.rope_theta);
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
    int64_t index[MOST_DIMS] = { 0 };
    size_t used = 0;
    const int n = tensor_dims(row);
    index[n - 1] = column;
    for (int d = n - 2; d >= 0; d--) {
        const int64_t extent = problem_extent(p, row->dims[d]);
        index[d] = d ? r % extent : r;
        r /= extent;
    }
    if (kernel_has_freqs(p->kernel)) {
        describe_angle(p, row, index[0], index[1], column, text, size);
        return;
    }
    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%s %" PRId64, d ? " " : "",
                                 dim_names[row->dims[d]], index[d]);
}
