/*
 * Tests the tests: runs the engine with every mistake, each with the suite meant to catch it.  A mistake
 * that any kernel can make has a row for each type, and its case has to fail in every kernel that it
 * concerns.
 *
 *     broken [--suite NAME] [PACK OF VECTORS]
 *
 * --suite runs only the mistakes meant for that suite.  Mistakes meant for the vectors are not judged where no
 * pack is given.  Exits 1 when a loop that stands in for a kernel fails without its slip; when a mistake is
 * never made, or not caught; or when a kernel has none.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/suites/suites.h"

#include <stdio.h>
#include <string.h>

/* What all runs have in common. */
struct broken {
    const struct posenc_backend *base;
    const struct vectors *vectors;
    const char *suite; /* NULL: mistakes meant for any */
};

/* A mistake's run: how many cases failed, and the kernels in which one did. */
struct outcome {
    unsigned failed;
    bool caught[POSENC_KERNEL_COUNT];
    bool unseen; /* the case that has to fail is skipped on this machine */
};

static bool is_failure(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

static void on_right(void *user, const struct conf_result *r)
{
    (void)user;
    if (is_failure(r))
        fprintf(stderr, "broken: without a mistake %s fails: %s\n", r->id, r->reason);
}

static void on_mistaken(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    outcome->failed += is_failure(r);
    outcome->caught[r->kernel] |= is_failure(r);
    outcome->unseen |= r->status == CONF_SKIPPED;
}

enum verdict { CAUGHT, SURVIVES, NEVER_MADE, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  SURVIVES", "  NEVER ENTERED",
                                                    "  cannot be judged here" };

static void print_outcome(const struct mistake *m, const struct outcome *outcome,
                          const char *dtype, enum verdict verdict)
{
    printf("%-32s %-5s %-10s %6u%s", m->name, dtype, m->suite, outcome->failed,
           verdict_text[verdict]);
    for (int k = 0; k < POSENC_KERNEL_COUNT && verdict == SURVIVES; k++)
        if (mistake_concerns(m, (enum posenc_kernel)k) && !outcome->caught[k])
            printf(" in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
}

static enum verdict run_mistake(const struct broken *b, const struct mistake *m,
                                const char *dtype)
{
    char glob[96];
    struct outcome outcome = { 0 };
    struct conf_options options = { .vectors = b->vectors,
                                    .suite = m->suite,
                                    .case_glob = m->property ? glob : NULL };
    bool caught = true;
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype, m->suite, m->property ? m->property : "");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        options.kernels[k] = mistake_concerns(m, (enum posenc_kernel)k);
    conf_run_implementation(mistaken(m, b->base), &options, on_mistaken, &outcome);
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
static bool run_without_slip(const struct broken *b, const struct mistake *m)
{
    struct mistake right = *m;
    struct conf_options options = { .vectors = b->vectors, .no_accuracy = true };
    right.slip = SLIPS;
    if (m->how == HOW_conduct)
        options.suite = m->suite; /* that a mistake is entered is none, in any kernel */
    else
        options.except[0] = "*/conduct/*"; /* loops allocate copies */
    if (m->kernel < POSENC_KERNEL_COUNT)
        options.kernels[m->kernel] = true;
    return conf_run_implementation(mistaken(&right, b->base), &options, on_right, NULL) == 0;
}

static bool run_mistakes(const struct broken *b, int verdicts[VERDICTS])
{
    bool right = true;
    printf("%-32s %-5s %-10s failed cases\n", "broken kernel", "type", "meant for");
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

int main(int argc, char **argv)
{
    const bool one_suite = argc > 2 && strcmp(argv[1], "--suite") == 0;
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
    bool fine = run_mistakes(&b, verdicts);
    fine = each_kernel_has_one() && fine;
    for (int v = 0; v < VERDICTS; v++)
        rows += verdicts[v];
    printf("\n%d of %d mistakes are caught by the suite meant for them\n", verdicts[CAUGHT],
           rows);
    if (pack)
        vectors_free(&vectors);
    return fine && verdicts[CAUGHT] + verdicts[UNJUDGED] == rows ? 0 : 1;
}
