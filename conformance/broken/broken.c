/*
 * Tests the tests: runs the engine with every mistake and prints the kill matrix, mistake x
 * suite, with the number of cases each suite failed.  A mistake that any kernel can make has a
 * row for each type, and its case has to fail in every kernel that it concerns.
 *
 *     broken [--weak] [--suite NAME] [PACK OF VECTORS]
 *
 * With --suite those alone that are meant for it, and no run of the original.
 * Mistakes meant for the vectors are not judged where no pack is given.  Exits 1 when the
 * original fails a case, or a loop that stands in for a kernel does without its slip; when a
 * mistake is never made, or not caught by the suite meant for it; or when a kernel has none.
 * Cases that were tried but that no mistake made fail are counted as weak, listed with --weak.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/suites/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const suite_names[] = { "vectors",    "accuracy", "digests", "memory",
                                           "properties", "conduct",  "random" };
enum { SUITES = sizeof suite_names / sizeof suite_names[0] };

/* The column of a suite; SUITES for a result of none of them. */
static int suite_index(const char *name)
{
    int s = 0;
    while (s < SUITES && strcmp(suite_names[s], name) != 0)
        s++;
    return s;
}

/* ---- Cases ---- */

/* A case that the original passes; whether it was tried with a mistake, and failed with one. */
struct passed_case {
    struct passed_case *next;
    char id[96];
    int suite;
    bool tried, failed;
};

/* What all runs have in common. */
struct broken {
    const struct posenc_backend *base;
    const struct vectors *vectors;
    struct passed_case *cases;
    const char *suite; /* NULL: mistakes meant for any */
};

/* A mistake's run: failed cases by suite, and kernels in which the meant suite caught it. */
struct outcome {
    struct broken *broken;
    int meant;
    unsigned failed[SUITES + 1];
    bool caught[POSENC_KERNEL_COUNT];
    bool unseen; /* the case that has to fail is skipped on this machine */
};

static bool is_failure(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

/* Where the case is, or the NULL after the last. */
static struct passed_case **find_case(struct broken *b, const struct conf_result *r)
{
    const int suite = suite_index(r->suite);
    struct passed_case **at = &b->cases;
    while (*at && ((*at)->suite != suite || strcmp((*at)->id, r->id) != 0))
        at = &(*at)->next;
    return at;
}

static void on_original(void *user, const struct conf_result *r)
{
    struct passed_case **at = find_case(user, r), *c = NULL;
    if (is_failure(r))
        fprintf(stderr, "broken: without a mistake %s fails: %s\n", r->id, r->reason);
    if (r->status != CONF_PASS || *at)
        return;
    *at = c = calloc(1, sizeof *c);
    if (!c)
        exit(2);
    c->suite = suite_index(r->suite);
    snprintf(c->id, sizeof c->id, "%s", r->id);
}

static void on_mistaken(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    struct passed_case *passed = *find_case(outcome->broken, r);
    const int suite = suite_index(r->suite);
    outcome->failed[suite] += is_failure(r);
    outcome->caught[r->kernel] |= is_failure(r) && suite == outcome->meant;
    outcome->unseen |= r->status == CONF_SKIPPED && suite == outcome->meant;
    if (passed) {
        passed->tried = true;
        passed->failed |= is_failure(r);
    }
}

static bool run_original(struct broken *b)
{
    const struct conf_options options = { .vectors = b->vectors };
    const size_t failed = conf_run(&b->base, 1, &options, on_original, b);
    int passed = 0;
    for (const struct passed_case *c = b->cases; c; c = c->next)
        passed++;
    printf("unbroken %s: %d cases passed, %zu failed\n\n", b->base->name, passed, failed);
    return failed == 0;
}

/* ---- The matrix ---- */

enum verdict { CAUGHT, SURVIVES, NEVER_MADE, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  SURVIVES", "  NEVER ENTERED",
                                                    "  cannot be judged here" };

/* The only suite that is run, or NULL for all: kernels know nothing of a plan, and where a
 * mistake names its case no other has to fail. */
static const char *only_suite(const struct mistake *m)
{
    return m->how == HOW_plan || m->property ? m->suite : NULL;
}

/* Suites that are not run with a mistake unless they are meant to catch it: scans of tables take
 * longer than all the rest. */
static bool left_out(const struct mistake *m, const char *suite)
{
    return strcmp(suite, m->suite) != 0 &&
           (only_suite(m) || (kernel_has_plan(m->kernel) && strcmp(suite, "accuracy") == 0));
}

static void print_outcome(const struct mistake *m, const struct outcome *outcome,
                          const char *dtype, enum verdict verdict)
{
    printf("%-32s %-5s %-10s", m->name, dtype, m->suite);
    for (int s = 0; s < SUITES; s++)
        if (left_out(m, suite_names[s]))
            printf(" %9s ", "-");
        else
            printf(" %9u%c", outcome->failed[s], s == outcome->meant ? '*' : ' ');
    printf("%s", verdict_text[verdict]);
    for (int k = 0; k < POSENC_KERNEL_COUNT && verdict == SURVIVES; k++)
        if (mistake_concerns(m, (enum posenc_kernel)k) && !outcome->caught[k])
            printf(" in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
}

static enum verdict run_mistake(struct broken *b, const struct mistake *m, const char *dtype)
{
    char glob[96];
    struct outcome outcome = { .broken = b, .meant = suite_index(m->suite) };
    struct conf_options options = { .vectors = b->vectors,
                                    .suite = only_suite(m),
                                    .no_accuracy = left_out(m, "accuracy"),
                                    .case_glob = m->property ? glob : NULL };
    bool caught = true;
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype, m->suite, m->property ? m->property : "");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        options.kernels[k] = mistake_concerns(m, (enum posenc_kernel)k);
    conf_run_subject(mistaken(m, b->base), &options, on_mistaken, &outcome);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        caught = caught && (outcome.caught[k] || !options.kernels[k]);
    const bool unjudged =
        (!b->vectors && strcmp(m->suite, "vectors") == 0) || (m->property && outcome.unseen);
    const enum verdict verdict = unjudged               ? UNJUDGED
                                 : mistake_count() == 0 ? NEVER_MADE
                                 : caught               ? CAUGHT
                                                        : SURVIVES;
    print_outcome(m, &outcome, dtype, verdict);
    return verdict;
}

/* Whether a loop in place of a kernel is right without the slip, so that the slip is caught. */
static bool run_without_slip(struct broken *b, const struct mistake *m)
{
    struct mistake right = *m;
    struct conf_options options = { .vectors = b->vectors, .no_accuracy = true };
    right.slip = SLIPS;
    if (m->how == HOW_conduct)
        options.suite = m->suite; /* that a mistake is entered is none, in any kernel */
    else
        options.except[0] = "*/conduct/*"; /* loops allocate copies */
    options.kernels[m->kernel] = m->kernel < POSENC_KERNEL_COUNT;
    return conf_run_subject(mistaken(&right, b->base), &options, on_original, b) == 0;
}

static bool run_matrix(struct broken *b, int verdicts[VERDICTS])
{
    bool right = true;
    printf("%-32s %-5s %-10s", "broken kernel", "type", "meant for");
    for (int s = 0; s < SUITES; s++)
        printf(" %10s", suite_names[s]);
    printf("\n");
    for (const struct mistake *m = mistakes; m < mistakes + n_mistakes; m++) {
        if (b->suite && strcmp(b->suite, m->suite) != 0)
            continue;
        const bool stands_in = m->how == HOW_element || m->how == HOW_rotation ||
                               m->how == HOW_norm || m->how == HOW_sum || m->how == HOW_conduct;
        if (stands_in && (m == mistakes || m[-1].kernel != m->kernel || m[-1].how != m->how))
            right = run_without_slip(b, m) && right;
        for (int type = (int)m->dtype; type <= (int)m->last; type++)
            verdicts[run_mistake(b, m, m->property ? dtype_names[type] : "")]++;
    }
    return right;
}

static bool each_kernel_has_one(void)
{
    bool missing[POSENC_KERNEL_COUNT + 1], all = true;
    memset(missing, true, sizeof missing);
    for (int i = 0; i < n_mistakes; i++)
        missing[mistakes[i].kernel] = false;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        if (missing[k])
            printf("%s has no broken version\n", posenc_kernel_name((enum posenc_kernel)k));
        all = all && !missing[k];
    }
    return all;
}

/* Refusals are always among them: the front-end makes these before a kernel is entered. */
static void print_weak(const struct broken *b, bool all)
{
    for (int s = 0; s < SUITES; s++) {
        int n = 0, weak = 0;
        for (const struct passed_case *c = b->cases; c; c = c->next) {
            n += c->suite == s && c->tried;
            weak += c->suite == s && c->tried && !c->failed;
            if (all && c->suite == s && !c->failed)
                printf("    %s %s\n", c->id, c->tried ? "" : "(not tried)");
        }
        printf("weak: %d of %d cases of %s are failed by no broken kernel\n", weak, n,
               suite_names[s]);
    }
}

int main(int argc, char **argv)
{
    bool list_weak = argc > 1 && strcmp(argv[1], "--weak") == 0;
    argv += list_weak;
    const bool one_suite = argc > 2 + list_weak && strcmp(argv[1], "--suite") == 0;
    const char *pack = argv[one_suite ? 3 : 1];
    struct vectors vectors;
    struct broken b = { .base = posenc_backend_find("scalar") };
    char error[VECTORS_ERROR];
    int verdicts[VERDICTS] = { 0 }, rows = 0;
    if (pack && !vectors_load_pack(pack, &vectors, error)) {
        fprintf(stderr, "broken: %s\n", error);
        return 2;
    }
    b.vectors = pack ? &vectors : NULL;
    b.suite = one_suite ? argv[2] : NULL;
    bool fine = one_suite || run_original(&b);
    fine = run_matrix(&b, verdicts) && fine;
    fine = each_kernel_has_one() && fine;
    printf("\n");
    print_weak(&b, list_weak);
    for (int v = 0; v < VERDICTS; v++)
        rows += verdicts[v];
    printf("\n%d of %d mistakes are caught by the suite meant for them (*)\n", verdicts[CAUGHT],
           rows);
    for (struct passed_case *c = b.cases, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    if (pack)
        vectors_free(&vectors);
    return fine && verdicts[CAUGHT] + verdicts[UNJUDGED] == rows ? 0 : 1;
}
