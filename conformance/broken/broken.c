/*
 * Tests the tests: runs the engine on every broken kernel, and with every broken plan, and prints
 * the kill matrix, broken kernel x suite, with the number of cases each suite failed it in; then, of each mistake that
 * any kernel can make, in how many of the kernels the case meant for it fails.
 *
 *     broken [--weak] [PACK OF VECTORS]
 *
 * Broken kernels meant for the vectors are not judged without them.
 * Exit 1 when the unbroken original fails anything, when a broken kernel is not caught by the
 * suite meant for it, when one was never entered, or when a kernel of the list has no broken
 * version.  Cases that no broken kernel fails are counted as weak, and listed with --weak.
 */
#define _POSIX_C_SOURCE 200809L
#include "broken.h"

#include "engine.h"
#include "everywhere.h"
#include "inputs.h"
#include "vectors.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct posenc_backend *broken_base;
bool (*broken_plan)(struct posenc_freqs_spec *spec);

/* ---- The broken backends ---- */

static atomic_ulong entries;

void broken_enter(void) { atomic_fetch_add(&entries, 1); }

#define BROKEN(name, kernel, signature, suite, what)                                           \
    static enum posenc_status enter_##name(const struct posenc_##signature##_args *args)       \
    {                                                                                          \
        broken_enter();                                                                        \
        return name(args);                                                                     \
    }                                                                                          \
    static void install_##name(struct posenc_backend *backend)                                 \
    {                                                                                          \
        backend->kernel = enter_##name;                                                        \
    }
#include "broken.def"

static const struct broken {
    const char *name;
    enum posenc_kernel kernel;
    const char *suite, *what;
    void (*install)(struct posenc_backend *backend);
    bool (*plan)(struct posenc_freqs_spec *spec); /* or this: a broken plan */
} list[] = {
#define BROKEN(name, kernel, signature, suite, what)                                           \
    { #name, POSENC_KERNEL_##kernel, #suite, what, install_##name, NULL },
#define BROKEN_PLAN(name, suite, what)                                                         \
    { #name, POSENC_KERNEL_rope_table, #suite, what, NULL, name },
#include "broken.def"
};
enum { LIST = sizeof list / sizeof list[0] };

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

/* What the original passed; `killed` once a broken kernel has failed it. */
struct known_case {
    char id[96];
    int suite;
    bool killed;
};

struct cases {
    struct known_case *at;
    size_t n, room;
};

/* One run: how many cases each suite failed, and for which kernels the one of this property. */
struct outcome {
    struct cases *cases;
    bool original;
    unsigned failed[SUITES + 1];
    const struct mistake *mistake;
    bool caught[POSENC_KERNEL_COUNT];
};

static struct known_case *case_find(struct cases *cases, const char *id, int suite)
{
    for (size_t i = 0; i < cases->n; i++)
        if (cases->at[i].suite == suite && strcmp(cases->at[i].id, id) == 0)
            return &cases->at[i];
    return NULL;
}

static void case_add(struct cases *cases, const char *id, int suite)
{
    if (case_find(cases, id, suite))
        return;
    if (cases->n == cases->room) {
        cases->room = cases->room ? 2 * cases->room : 256;
        cases->at = realloc(cases->at, cases->room * sizeof *cases->at);
        if (!cases->at)
            exit(2);
    }
    struct known_case *c = &cases->at[cases->n++];
    snprintf(c->id, sizeof c->id, "%s", id);
    c->suite = suite;
    c->killed = false;
}

static void on_result(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    bool failed = r->status == CONF_FAIL || r->status == CONF_CRASH;
    int suite = suite_index(r->suite);
    if (failed)
        outcome->failed[suite]++;
    if (failed && outcome->original)
        fprintf(stderr, "broken: the original fails %s: %s\n", r->id, r->reason);
    if (outcome->original && r->status == CONF_PASS)
        case_add(outcome->cases, r->id, suite);
    if (failed && outcome->mistake) {
        char id[96];
        snprintf(id, sizeof id, "%s/f32/%s/%s", posenc_kernel_name(r->kernel),
                 outcome->mistake->suite, outcome->mistake->property);
        outcome->caught[r->kernel] = outcome->caught[r->kernel] || strcmp(id, r->id) == 0;
    }
    struct known_case *known = failed ? case_find(outcome->cases, r->id, suite) : NULL;
    if (known)
        known->killed = true;
}

/* ---- The matrix ---- */

static bool run_original(struct cases *cases, const struct vectors *vectors)
{
    struct outcome outcome = { .cases = cases, .original = true };
    struct conf_options options = { .vectors = vectors };
    size_t failed = conf_run(&broken_base, 1, &options, on_result, &outcome);
    printf("unbroken %s: %zu cases passed, %zu failed\n\n", broken_base->name, cases->n,
           failed);
    return failed == 0;
}

static void print_heading(void)
{
    printf("%-30s %-10s", "broken kernel", "meant for");
    for (int s = 0; s < SUITES; s++)
        printf(" %10s", suite_names[s]);
    printf("\n");
}

enum verdict { CAUGHT, SURVIVES, NEVER_ENTERED, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  SURVIVES", "  NEVER ENTERED",
                                                    "  no vectors were given" };

static enum verdict run_broken(const struct broken *b, struct cases *cases,
                               const struct vectors *vectors)
{
    struct outcome outcome = { .cases = cases };
    struct conf_options options = { .vectors = vectors };
    struct posenc_backend backend = *broken_base;
    const struct posenc_backend *one = &backend;
    backend.name = b->name;
    if (b->install)
        b->install(&backend);
    options.kernels[b->kernel] = true;
    options.kernels[POSENC_KERNEL_sinusoidal] |= b->plan != NULL;
    atomic_store(&entries, 0);
    broken_plan = b->plan;
    conf_run(&one, 1, &options, on_result, &outcome);
    broken_plan = NULL;
    int meant = suite_index(b->suite);
    bool unjudged = !vectors && strcmp(b->suite, "vectors") == 0;
    enum verdict verdict = atomic_load(&entries) == 0  ? NEVER_ENTERED
                           : outcome.failed[meant] > 0 ? CAUGHT
                           : unjudged                  ? UNJUDGED
                                                       : SURVIVES;
    printf("%-30s %-10s", b->name, b->suite);
    for (int s = 0; s < SUITES; s++)
        printf(" %9u%c", outcome.failed[s], s == meant ? '*' : ' ');
    printf("%s\n", verdict_text[verdict]);
    fflush(stdout);
    return verdict;
}

/* ---- Mistakes in every kernel ---- */

static bool concerns(const struct mistake *mistake, enum posenc_kernel kernel)
{
    bool positions =
        kernel_signature(kernel) != SIGNATURE_alibi && kernel_signature(kernel) != SIGNATURE_t5;
    return mistake->needs == NEEDS_X           ? kernel_takes_x(kernel)
           : mistake->needs == NEEDS_POSITIONS ? positions
                                               : true;
}

static bool run_mistake(const struct mistake *mistake, struct cases *cases)
{
    struct outcome outcome = { .cases = cases, .mistake = mistake };
    struct conf_options options = { .suite = mistake->suite };
    struct posenc_backend backend = mistaken_backend(mistake);
    const struct posenc_backend *one = &backend;
    int meant = 0, caught = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        meant += options.kernels[k] = concerns(mistake, (enum posenc_kernel)k);
    conf_run(&one, 1, &options, on_result, &outcome);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        caught += outcome.caught[k];
    printf("%-24s %-10s %-32s %4d of %d%s", mistake->name, mistake->suite, mistake->property,
           caught, meant, mistaken_entries() ? "" : "  NEVER ENTERED");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (options.kernels[k] && !outcome.caught[k])
            printf("  SURVIVES in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
    return caught == meant && mistaken_entries() > 0;
}

static int run_mistakes(struct cases *cases)
{
    int caught = 0;
    printf("\n%-24s %-10s %-32s %s\n", "in every kernel", "meant for", "case",
           "caught in kernels");
    for (int i = 0; i < n_mistakes; i++)
        caught += run_mistake(&mistakes[i], cases);
    return caught;
}

static bool each_kernel_broken(void)
{
    bool all = true;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        bool any = false;
        for (int i = 0; i < LIST; i++)
            any = any || list[i].kernel == (enum posenc_kernel)k;
        if (!any)
            printf("%s has no broken version\n", posenc_kernel_name((enum posenc_kernel)k));
        all = all && any;
    }
    return all;
}

/* Refusals are the front-end's, before any kernel is entered: no broken kernel can fail those
 * cases. */
static void print_weak(const struct cases *cases, bool all)
{
    for (int s = 0; s < SUITES; s++) {
        size_t n = 0, weak = 0;
        for (size_t i = 0; i < cases->n; i++) {
            n += cases->at[i].suite == s;
            weak += cases->at[i].suite == s && !cases->at[i].killed;
        }
        printf("weak: %zu of %zu cases of %s are failed by no broken kernel\n", weak, n,
               suite_names[s]);
        for (size_t i = 0; all && i < cases->n; i++)
            if (cases->at[i].suite == s && !cases->at[i].killed)
                printf("    %s\n", cases->at[i].id);
    }
}

int main(int argc, char **argv)
{
    bool list_weak = argc > 1 && strcmp(argv[1], "--weak") == 0;
    const char *pack = argc > 1 + list_weak ? argv[1 + list_weak] : NULL;
    struct vectors vectors;
    char error[512];
    if (pack && vectors_load_pack(pack, &vectors, error)) {
        fprintf(stderr, "broken: %s\n", error);
        return 2;
    }
    broken_base = posenc_backend_find("scalar");
    struct cases cases = { .n = 0 };
    const struct vectors *given = pack ? &vectors : NULL;
    bool original = run_original(&cases, given);
    int verdicts[VERDICTS] = { 0 };
    print_heading();
    for (int i = 0; i < LIST; i++)
        verdicts[run_broken(&list[i], &cases, given)]++;
    int caught_everywhere = run_mistakes(&cases);
    bool complete = each_kernel_broken();
    printf("\n");
    print_weak(&cases, list_weak);
    printf("\n%d of %d broken kernels are caught by the suite meant for them (*)\n",
           verdicts[CAUGHT], (int)LIST);
    printf("%d of %d mistakes are caught in every kernel\n", caught_everywhere, n_mistakes);
    free(cases.at);
    if (pack)
        vectors_free(&vectors);
    bool all = verdicts[SURVIVES] == 0 && verdicts[NEVER_ENTERED] == 0 &&
               caught_everywhere == n_mistakes;
    return original && complete && all ? 0 : 1;
}
