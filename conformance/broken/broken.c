/*
 * Tests the tests: runs the engine with every mistake and prints the kill matrix, mistake x
 * suite, with the number of cases each suite failed; then, of each mistake that any kernel can
 * make, in how many of the kernels the case meant for it fails.
 *
 *     broken [--weak] [PACK OF VECTORS]
 *
 * Mistakes meant for the vectors are not judged without them.
 * Exit 1 when the unbroken original fails anything, when a mistake is not caught by the suite
 * meant for it, when one was never made, or when a kernel of the list has none.  Cases that are
 * tried but failed with no mistake are counted as weak, and listed with --weak.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/suites/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const suite_names[] = { "vectors", "accuracy", "digests", "memory",
                                           "properties" };
enum { SUITES = sizeof suite_names / sizeof suite_names[0] };

static int suite_index(const char *name)
{
    int s = 0;
    while (s < SUITES && strcmp(suite_names[s], name) != 0)
        s++;
    return s;
}

/* ---- Cases ---- */

/* What the original passed; whether it was tried with a mistake, and failed. */
struct passed_case {
    char id[96];
    int suite;
    bool tried, failed;
};

/* What all runs have in common. */
struct broken {
    const struct posenc_backend *base;
    const struct vectors *vectors;
    struct passed_case *cases;
    size_t n_cases, room;
};

/* One run: how many cases each suite failed, and of which kernels. */
struct outcome {
    struct broken *broken;
    unsigned failed[SUITES + 1];
    bool caught[POSENC_KERNEL_COUNT];
};

static bool is_failure(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

static struct passed_case *find_case(const struct broken *b, const struct conf_result *r)
{
    const int suite = suite_index(r->suite);
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].suite == suite && strcmp(b->cases[i].id, r->id) == 0)
            return &b->cases[i];
    return NULL;
}

static void on_original(void *user, const struct conf_result *r)
{
    struct broken *b = user;
    if (is_failure(r))
        fprintf(stderr, "broken: the original fails %s: %s\n", r->id, r->reason);
    if (r->status != CONF_PASS || find_case(b, r))
        return;
    if (b->n_cases == b->room) {
        b->room = 2 * b->room + 256;
        b->cases = realloc(b->cases, b->room * sizeof *b->cases);
        if (!b->cases)
            exit(2);
    }
    struct passed_case *c = &b->cases[b->n_cases++];
    *c = (struct passed_case){ .suite = suite_index(r->suite) };
    snprintf(c->id, sizeof c->id, "%s", r->id);
}

static void on_mistaken(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    struct passed_case *passed = find_case(outcome->broken, r);
    outcome->failed[suite_index(r->suite)] += is_failure(r);
    outcome->caught[r->kernel] = outcome->caught[r->kernel] || is_failure(r);
    if (passed) {
        passed->tried = true;
        passed->failed = passed->failed || is_failure(r);
    }
}

static bool run_original(struct broken *b)
{
    const struct conf_options options = { .vectors = b->vectors };
    const size_t failed = conf_run(&b->base, 1, &options, on_original, b);
    printf("unbroken %s: %zu cases passed, %zu failed\n\n", b->base->name, b->n_cases, failed);
    return failed == 0;
}

/* ---- The matrix ---- */

enum verdict { CAUGHT, SURVIVES, NEVER_MADE, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  SURVIVES", "  NEVER ENTERED",
                                                    "  no vectors were given" };

/* Suites that are not run with a mistake unless they are meant to catch it: scans of tables,
 * which take longer than all the rest; all, with a plan, of which the kernels know nothing. */
static bool left_out(const struct mistake *m, const char *suite)
{
    bool scans = kernel_has_plan(m->kernel) && strcmp(suite, "accuracy") == 0;
    return (m->how == HOW_plan || scans) && strcmp(suite, m->suite) != 0;
}

static enum verdict run_mistake(struct broken *b, const struct mistake *m)
{
    struct outcome outcome = { .broken = b };
    struct conf_options options = { .vectors = b->vectors,
                                    .suite = m->how == HOW_plan ? m->suite : NULL,
                                    .no_accuracy = left_out(m, "accuracy") };
    const int meant = suite_index(m->suite);
    options.kernels[m->kernel] = true;
    conf_run_subject(mistaken(m, b->base), &options, on_mistaken, &outcome);
    const bool unjudged = !b->vectors && strcmp(m->suite, "vectors") == 0;
    const enum verdict verdict = unjudged                     ? UNJUDGED
                                 : mistake_count() == 0       ? NEVER_MADE
                                 : outcome.failed[meant] == 0 ? SURVIVES
                                                              : CAUGHT;
    printf("%-32s %-10s", m->name, m->suite);
    for (int s = 0; s < SUITES; s++)
        if (left_out(m, suite_names[s]))
            printf(" %9s ", "-");
        else
            printf(" %9u%c", outcome.failed[s], s == meant ? '*' : ' ');
    printf("%s\n", verdict_text[verdict]);
    fflush(stdout);
    return verdict;
}

/* Whether each is caught, as far as that can be judged. */
static bool run_matrix(struct broken *b, int verdicts[VERDICTS])
{
    printf("%-32s %-10s", "broken kernel", "meant for");
    for (int s = 0; s < SUITES; s++)
        printf(" %10s", suite_names[s]);
    printf("\n");
    for (int i = 0; i < n_mistakes; i++)
        verdicts[run_mistake(b, &mistakes[i])]++;
    return verdicts[SURVIVES] == 0 && verdicts[NEVER_MADE] == 0;
}

/* ---- Mistakes in every kernel ---- */

static bool run_everywhere(struct broken *b, const struct mistake *m, enum posenc_dtype dtype)
{
    char glob[96];
    struct outcome outcome = { .broken = b };
    struct conf_options options = { .suite = m->suite, .case_glob = glob };
    int meant = 0, caught = 0;
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype_names[dtype], m->suite, m->property);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        meant += options.kernels[k] = m->concerns((enum posenc_kernel)k);
    conf_run_subject(mistaken(m, b->base), &options, on_mistaken, &outcome);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        caught += outcome.caught[k];
    printf("%-24s %-5s %-10s %-32s %4d of %d%s", m->name, dtype_names[dtype], m->suite,
           m->property, caught, meant, mistake_count() ? "" : "  NEVER ENTERED");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (options.kernels[k] && !outcome.caught[k])
            printf("  SURVIVES in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
    return caught == meant && mistake_count() > 0;
}

/* How many of them, each in each of its types, are caught in every kernel, of `*made`. */
static int run_all_everywhere(struct broken *b, int *made)
{
    int caught = 0;
    printf("\n%-24s %-5s %-10s %-32s %s\n", "in every kernel", "type", "meant for", "case",
           "caught in kernels");
    for (int i = 0; i < n_mistakes_everywhere; i++) {
        const struct mistake *m = &mistakes_everywhere[i];
        for (int type = (int)m->dtype; type <= (int)m->last; type++, ++*made)
            caught += run_everywhere(b, m, (enum posenc_dtype)type);
    }
    return caught;
}

static bool each_kernel_has_one(void)
{
    bool all = true;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        int i = 0;
        while (i < n_mistakes && mistakes[i].kernel != (enum posenc_kernel)k)
            i++;
        if (i == n_mistakes)
            printf("%s has no broken version\n", posenc_kernel_name((enum posenc_kernel)k));
        all = all && i < n_mistakes;
    }
    return all;
}

/* Refusals are the front-end's, before any kernel is entered: no mistake can fail those
 * cases. */
static void print_weak(const struct broken *b, bool all)
{
    for (int s = 0; s < SUITES; s++) {
        size_t n = 0, weak = 0;
        for (size_t i = 0; i < b->n_cases; i++) {
            const struct passed_case *c = &b->cases[i];
            n += c->suite == s && c->tried;
            weak += c->suite == s && c->tried && !c->failed;
            if (all && c->suite == s && !c->failed)
                printf("    %s %s\n", c->id, c->tried ? "" : "(not tried)");
        }
        printf("weak: %zu of %zu cases of %s are failed by no broken kernel\n", weak, n,
               suite_names[s]);
    }
}

int main(int argc, char **argv)
{
    bool list_weak = argc > 1 && strcmp(argv[1], "--weak") == 0;
    const char *pack = argc > 1 + list_weak ? argv[1 + list_weak] : NULL;
    struct vectors vectors;
    struct broken b = { .base = posenc_backend_find("scalar") };
    char error[VECTORS_ERROR];
    int verdicts[VERDICTS] = { 0 }, made = 0;
    if (pack && !vectors_load_pack(pack, &vectors, error)) {
        fprintf(stderr, "broken: %s\n", error);
        return 2;
    }
    b.vectors = pack ? &vectors : NULL;
    bool fine = run_original(&b);
    fine = run_matrix(&b, verdicts) && fine;
    const int caught = run_all_everywhere(&b, &made);
    fine = each_kernel_has_one() && caught == made && fine;
    printf("\n");
    print_weak(&b, list_weak);
    printf("\n%d of %d broken kernels are caught by the suite meant for them (*)\n",
           verdicts[CAUGHT], n_mistakes);
    printf("%d of %d mistakes are caught in every kernel\n", caught, made);
    free(b.cases);
    if (pack)
        vectors_free(&vectors);
    return fine ? 0 : 1;
}
