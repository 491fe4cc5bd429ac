/*
 * The suite of random tests; see random.h. It has three cases for each kernel:
 *
 *     pairs   a set of problems in which classes of values meet, each compared with the oracle
 *     draws   further random problems: a few, or as many as fit into options->random_s seconds
 *     calls   calls of the set's problems with changed arguments, judged by the rules of posenc.h,
 *             and the calls in cases/rejected.txt, which must be rejected
 *
 * Tensors lie in guarded memory, alternately at the start and the end of their pages. The first failure is shrunk.
 */
#include "calls.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* A problem with more bytes is tried at one end of its pages; calls of small problems are changed. */
enum { LARGE_BYTES = 1 << 20, SMALL_BYTES = 1 << 17 };
enum { QUICK_DRAWS = 8, FULL_DRAWS = 200, QUICK_CALLS = 120, FULL_CALLS = 4000 };
/* Changed calls for each problem, because its inputs take longer to compute than a call. */
enum { CALLS_PER_PROBLEM = 4 };

struct random_suite {
    struct suite_run *run;
    struct guard *guard;
    struct problem_set *set;
    struct tally tally; /* of the current case */
    bool pairs_failed;
    size_t n_answered, n_not_offered; /* problems of the current case */
    bool was_declined;                /* by the answer to one of them */
    char reason[200];                 /* of the last one that was not offered */
};

/* ---- Problems ---- */

/* Sets the reason and the problem of the case's failure. */
static void fail_with(struct random_suite *r, const struct trial *trial,
                      const struct problem *problem)
{
    r->tally.result.status = CONF_PASS; /* of the checks before this failure */
    r->tally.problem = problem;
    require(&r->tally, false, "%s", trial->result.reason);
    r->tally.problem = NULL;
}

/* Reports a problem that failed, then shrinks it and reports what is left. */
static void report_failure(struct random_suite *r, struct trial *trial,
                           const struct problem *problem)
{
    const bool crashed = trial->ended.crashed && !trial->ended.input_written;
    struct problem least = *problem;
    fail_with(r, trial, problem);
    suite_announce(r->run, &r->tally.result);
    trial_shrink(trial, &least);
    fail_with(r, trial, &least);
    r->tally.result.status = crashed ? CONF_CRASH : CONF_FAIL;
}

/* Runs a problem at the end or, for an odd `index`, the start of its pages; in full runs at both. Returns false for a
 * problem that fails, after a report. */
static bool check_problem(struct random_suite *r, const struct problem *problem, uint64_t index)
{
    struct trial trial = { .run = r->run,
                           .guard = r->guard,
                           .mode = index % 2 ? GUARD_START : GUARD_END };
    const bool is_large = problem_memory_estimate(problem) > LARGE_BYTES;
    const int modes = r->run->options->full && !is_large ? 2 : 1;
    for (int i = 0; i < modes; i++) {
        trial_run(&trial, problem);
        r->tally.result.checked += trial.result.checked;
        if (trial.ended.cause != GUARD_WRONG) {
            r->n_not_offered++;
            r->was_declined = r->was_declined || trial.ended.cause == GUARD_DECLINED;
            snprintf(r->reason, sizeof r->reason, "%.199s", trial.result.reason);
            return true;
        }
        r->n_answered += trial.result.checked > 0; /* a call without an element asks nothing */
        if (trial.result.status != CONF_PASS) {
            report_failure(r, &trial, problem);
            return false;
        }
        trial.mode = trial.mode == GUARD_END ? GUARD_START : GUARD_END;
    }
    return require(&r->tally, true, "checked");
}

/* Says that some problems were not offered. The case is skipped if an answer declined one, or if the hello offers none:
 * a program must not choose the problems that it passes after it has seen them. */
static void report_not_offered(struct random_suite *r)
{
    char text[sizeof r->tally.result.reason];
    if (r->n_not_offered == 0 || r->tally.result.status != CONF_PASS)
        return;
    snprintf(text, sizeof text, "%zu of %zu problems were not offered: %.120s",
             r->n_not_offered, r->n_answered + r->n_not_offered, r->reason);
    if (r->n_answered == 0)
        tally_decline(&r->tally, r->reason);
    else if (r->was_declined)
        tally_skip(&r->tally, text);
    else
        snprintf(r->tally.result.reason, sizeof r->tally.result.reason, "%s", text);
}

/* Records the coverage. Fails if a class never occurred, or two large sizes never occurred together. */
static void check_coverage(struct tally *t, const struct problem_set *set)
{
    char name[CLASS_TEXT], other[CLASS_TEXT] = "";
    const struct value_class *a, *b;
    t->result.classes = (struct conf_classes){ set->n_classes_reached, set->factors.n_classes,
                                               set->n_pairs_reached };
    if (t->run->options->program || !problem_set_find_missing(set, &a, &b))
        return; /* a program is not to blame for the set */
    value_class_print(a, name);
    if (b)
        value_class_print(b, other);
    require(t, false, "no problem had %s%s%s", name, b ? " and " : "", other);
}

static void check_pairs(struct random_suite *r)
{
    bool right = true;
    for (size_t i = 0; i < r->set->n && right; i++)
        right = check_problem(r, &r->set->problems[i], i);
    r->pairs_failed = !right;
    check_coverage(&r->tally, r->set);
}

static void check_draws(struct random_suite *r)
{
    const uint64_t least = r->run->options->full ? FULL_DRAWS : QUICK_DRAWS;
    const double until = clock_now() + r->run->options->random_s;
    struct arena lists = { NULL };
    bool right = true;
    if (r->pairs_failed) {
        tally_skip(&r->tally, "a problem of the pairs has failed");
        return;
    }
    for (uint64_t i = 0; right && (i < least || clock_now() < until); i++) {
        struct problem problem;
        right = problem_set_draw(r->set, i, &lists, &problem)
                    ? check_problem(r, &problem, i)
                    : require(&r->tally, false, "no problem was accepted at draw %llu",
                              (unsigned long long)i);
        arena_free(&lists);
    }
}

/* ---- Calls that have to be rejected ---- */

/* Returns true if a list of names, such as "SHAPE STRIDE", contains a status; an empty list means success. */
static bool is_among(enum posenc_status status, const char *names)
{
    static const char *const status_names[] = {
        "OK",         "ARGUMENT",    "SHAPE",        "STRIDE",   "DTYPE",   "ODD",
        "ROTARY_DIM", "THETA",       "PARAMETER",    "POSITION", "OVERLAP", "OVERFLOW",
        "UNKNOWN",    "UNSUPPORTED", "NOT_PROVIDED", "MEMORY",
    };
    const char *name = status_names[status], *at = strstr(*names ? names : "OK", name);
    return at && strchr(" ", at[strlen(name)]);
}

/* Makes a call with those of the changes of a seed that are enabled. */
static bool run_call_test(const struct random_suite *r, struct call *base, uint64_t seed,
                          unsigned enabled, struct call_test *test)
{
    *test = (struct call_test){ .implementation = r->run->implementation,
                                .backend = r->run->backend,
                                .guard = r->guard,
                                .base = base,
                                .seed = seed,
                                .enabled = enabled };
    return call_test_run(test);
}

/* Makes a call of a listed problem without changes. Requires a status of the list, which also follows the rules. */
static void check_listed_problem(struct random_suite *r, const struct problem_line *line)
{
    struct tally *t = &r->tally;
    struct problem p = line->problem;
    p.kernel = r->set->key.kernel;
    struct call *call = tally_create_call(t, r->run->implementation, &p);
    if (!call)
        return;
    struct call_test test;
    require(t, run_call_test(r, call, 0, 0, &test), "%s: %s", line->name, test.message);
    require(t, is_among(test.status, line->flags), "%s: answered \"%s\"", line->name,
            posenc_status_string(test.status));
    tally_free_calls(t);
}

static void check_freqs(struct tally *t, const char *name, const char *allowed,
                        const struct posenc_freqs_spec *spec)
{
    struct posenc_error error = { .status = POSENC_OK };
    struct posenc_freqs *freqs = NULL;
    const enum posenc_status status =
        t->run->implementation->freqs_create(spec, &freqs, &error);
    require(t, is_among(status, allowed), "%s: answered \"%s\"", name,
            posenc_status_string(status));
    require(t, !status || (status == error.status && *error.what), "%s: no reason", name);
    require(t, !freqs == (status != POSENC_OK), "%s: frequencies of a rejected spec", name);
    t->run->implementation->freqs_destroy(freqs);
}

/* Creates frequencies of each scaling in each numerics mode, of an unknown size, and with unknown values of enums. */
static void check_variants_of_freqs(struct tally *t, const struct problem *valid)
{
    enum { NO_MEMBER = 77 };
    struct field field;
    char name[2 * FIELD_TEXT];
    struct posenc_freqs_spec spec = valid->freqs;
    for (int s = 0; scaling_names[s]; s++)
        for (int m = 0; numerics_names[m]; m++) {
            spec.scaling = (enum posenc_scaling)s;
            spec.numerics = (enum posenc_numerics)m;
            const bool exists = scaling_supports(spec.scaling, spec.numerics);
            snprintf(name, sizeof name, "%s in %s", scaling_names[s], numerics_names[m]);
            check_freqs(t, name, exists ? "" : "ARGUMENT", &spec);
        }
    spec = valid->freqs;
    spec.size--;
    check_freqs(t, "unknown size", "ARGUMENT", &spec);
    for (int i = 0; kernel_field(valid->kernel, i, &field); i++) {
        struct problem p = *valid;
        if (field.kind != FIELD_ENUM || field.offset - MEMBER(freqs) >= sizeof p.freqs)
            continue;
        field_set(&field, &p, NO_MEMBER);
        check_freqs(t, field.name, "ARGUMENT", &p.freqs);
    }
}

/* Checks the lines of cases/rejected.txt for the kernel: problems that are rarely drawn. Kernels with rotary
 * frequencies also check its lines of frequencies. */
static void check_listed_rejections(struct random_suite *r)
{
    struct tally *t = &r->tally;
    const enum posenc_kernel kernel = r->set->key.kernel;
    const struct signature *s = signature_of(kernel);
    const bool checks_freqs = s->rotary && s->freqs;
    size_t n = 0;
    for (EACH_CASE(line, CASES_REJECTED)) {
        const char *owner = *line->note ? line->note : signature_of(line->problem.kernel)->name;
        const bool is_freqs = strcmp(owner, "freqs") == 0;
        if (is_freqs ? !checks_freqs : strcmp(owner, s->name) != 0)
            continue;
        if (is_freqs && n == 0)
            check_variants_of_freqs(t, &line->problem);
        if (is_freqs)
            check_freqs(t, line->name, line->flags, &line->problem.freqs);
        else
            check_listed_problem(r, line);
        n++;
    }
    require(t, n > 0 || kernel_on_scores(kernel), "rejected.txt has no problem of %s",
            posenc_kernel_name(kernel));
}

/* ---- Changed calls ---- */

/* Allocates zeros, so that gaps between rows are the same in each call. */
static void *get_zeroed(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    void *data = tensor_allocator_default.get(user, bytes, offset_bytes, role);
    return data ? memset(data, 0, bytes) : NULL;
}

/* Reports a call that failed, with only those changes that the failure needs. */
static void report_call(struct random_suite *r, struct call *base, uint64_t seed)
{
    struct call_test test;
    unsigned enabled = ~0u;
    for (int i = 0; i < MOST_CHANGES; i++)
        if (!run_call_test(r, base, seed, enabled & ~(1u << i), &test))
            enabled &= ~(1u << i);
    run_call_test(r, base, seed, enabled, &test);
    r->tally.problem = &base->problem;
    require(&r->tally, false, "%s: %s", test.changes_text, test.message);
    r->tally.problem = NULL;
}

/* Checks a few changed calls of a problem, which differ by backend. Returns false after a failure. */
static bool check_calls_of(struct random_suite *r, const struct problem *problem,
                           uint64_t first)
{
    const struct tensor_allocator memory = { .get = get_zeroed,
                                             .free = tensor_allocator_default.free };
    uint64_t seed = rng_u64(r->run->options->seed, (uint64_t)problem->kernel);
    for (const char *name = r->run->backend->name; *name; name++)
        seed = rng_u64(seed, (uint64_t)*name);
    struct call base;
    bool right = call_create_by(r->run->implementation, &base, problem, &memory) == POSENC_OK;
    if (!require(&r->tally, right, "a problem of the set was rejected"))
        return false;
    for (uint64_t i = first; right && i < first + CALLS_PER_PROBLEM; i++) {
        struct call_test test;
        right = run_call_test(r, &base, rng_u64(seed, i), ~0u, &test);
        if (!right)
            report_call(r, &base, test.seed);
        r->tally.result.checked += right;
    }
    call_destroy(&base);
    return right;
}

static void check_calls(struct random_suite *r)
{
    const uint64_t least = r->run->options->full ? FULL_CALLS : QUICK_CALLS;
    const double until = clock_now() + r->run->options->random_s;
    size_t next = 0;
    check_listed_rejections(r);
    bool right = r->tally.result.status == CONF_PASS;
    for (uint64_t i = 0; right && (i < least || clock_now() < until); i += CALLS_PER_PROBLEM) {
        const struct problem *problem = &r->set->problems[next++ % r->set->n];
        if (problem_memory_estimate(problem) <= SMALL_BYTES)
            right = check_calls_of(r, problem, i);
    }
}

void suite_random(struct suite_run *run, enum posenc_kernel kernel)
{
    static const struct {
        const char *name;
        void (*check)(struct random_suite *r);
    } cases[] = { { "pairs", check_pairs },
                  { "draws", check_draws },
                  { "calls", check_calls } };
    const struct problem_set_key key = { .kernel = kernel,
                                         .seed = run->options->seed,
                                         .full = run->options->full,
                                         .with_16_bits = run->backend->f16_bf16 };
    struct random_suite r = { .run = run, .guard = guard_create() };
    const size_t n_cases = run->options->program ? 2 : 3; /* the library rejects calls */
    for (size_t i = 0; i < n_cases; i++) {
        if (!tally_begin(&r.tally, run, kernel, POSENC_DTYPE_F32, "random", NULL, "%s",
                         cases[i].name))
            continue;
        r.set = problem_set_get(&key);
        r.n_answered = r.n_not_offered = 0;
        r.was_declined = false;
        if (!r.guard)
            tally_skip(&r.tally, "this system protects no memory");
        else if (require(&r.tally, r.set && r.set->n > 0, "no problem was accepted"))
            cases[i].check(&r);
        report_not_offered(&r);
        tally_end(&r.tally);
    }
    guard_destroy(r.guard);
}
