/*
 * Tests the tests: runs the engine on every broken kernel, and with every broken plan and
 * function, and prints the kill matrix, broken kernel x suite, with the number of cases each
 * suite failed it in; then, of each mistake that any kernel can make, in how many of the
 * kernels the case meant for it fails.
 *
 *     broken [--weak] [PACK OF VECTORS]
 *
 * Broken kernels meant for the vectors are not judged without them.
 * Exit 1 when the unbroken original fails anything, when a broken kernel is not caught by the
 * suite meant for it, when one was never entered, or when a kernel of the list has no broken
 * version.  Cases that are tried but failed by none are counted as weak, and listed with
 * --weak.
 */
#define _POSIX_C_SOURCE 200809L
#include "broken.h"

#include "conformance/suites/suites.h"
#include "everywhere.h"
#include "functions.h"
#include "conformance/problem/inputs.h"
#include "conformance/readers/vectors.h"

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
#define BROKEN_PLAN(name, suite, what)                                                         \
    static void install_##name(struct posenc_backend *backend)                                 \
    {                                                                                          \
        (void)backend;                                                                         \
        broken_plan = name;                                                                    \
    }
#define BROKEN_FUNCTION(name, function, kernel, suite, what)                                   \
    static void install_##name(struct posenc_backend *backend)                                 \
    {                                                                                          \
        (void)backend;                                                                         \
        broken_functions.function = name;                                                      \
    }
#include "broken.def"

static void remove_broken(void)
{
    broken_plan = NULL;
    broken_functions = (struct broken_functions){ 0 };
}

static const struct broken {
    const char *name;
    enum posenc_kernel kernel; /* that is run with it */
    const char *suite, *what;
    void (*install)(struct posenc_backend *backend);
    bool plan;
} list[] = {
#define ENTRY(name, kernel, suite, what, plan)                                                 \
    { #name, POSENC_KERNEL_##kernel, #suite, what, install_##name, plan },
#define BROKEN(name, kernel, signature, suite, what) ENTRY(name, kernel, suite, what, false)
#define BROKEN_PLAN(name, suite, what)               ENTRY(name, rope_table, suite, what, true)
#define BROKEN_FUNCTION(name, function, kernel, suite, what)                                   \
    ENTRY(name, kernel, suite, what, false)
#include "broken.def"
#undef ENTRY
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

/* What the original passed; whether a broken kernel was run through it, and failed it. */
struct known_case {
    char id[96];
    int suite;
    bool tried, killed;
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
    c->tried = c->killed = false;
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
    if (failed && outcome->mistake) /* the one case that was asked for */
        outcome->caught[r->kernel] = true;
    struct known_case *known = case_find(outcome->cases, r->id, suite);
    if (known && !outcome->original) {
        known->tried = true;
        known->killed = known->killed || failed;
    }
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
    printf("%-32s %-10s", "broken kernel", "meant for");
    for (int s = 0; s < SUITES; s++)
        printf(" %10s", suite_names[s]);
    printf("\n");
}

enum verdict { CAUGHT, SURVIVES, NEVER_ENTERED, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  SURVIVES", "  NEVER ENTERED",
                                                    "  no vectors were given" };

/* Suites through which a broken one is not run, unless it is meant for them: scans of tables,
 * which take longer than all the rest; all, with a plan, of which the kernels know nothing. */
static bool left_out(const struct broken *b, const char *suite)
{
    bool scans = kernel_has_plan(b->kernel) && strcmp(suite, "accuracy") == 0;
    return (b->plan || scans) && strcmp(suite, b->suite) != 0;
}

static enum verdict run_broken(const struct broken *b, struct cases *cases,
                               const struct vectors *vectors)
{
    struct outcome outcome = { .cases = cases };
    struct conf_options options = { .vectors = vectors,
                                    .suite = b->plan ? b->suite : NULL,
                                    .no_accuracy = left_out(b, "accuracy") };
    struct posenc_backend backend = *broken_base;
    struct subject subject = subject_of(&backend);
    functions_install(&subject);
    backend.name = b->name;
    options.kernels[b->kernel] = true;
    atomic_store(&entries, 0);
    b->install(&backend);
    conf_run_subject(&subject, &options, on_result, &outcome);
    remove_broken();
    int meant = suite_index(b->suite);
    bool unjudged = !vectors && strcmp(b->suite, "vectors") == 0;
    enum verdict verdict = unjudged                     ? UNJUDGED
                           : atomic_load(&entries) == 0 ? NEVER_ENTERED
                           : outcome.failed[meant] == 0 ? SURVIVES
                                                        : CAUGHT;
    printf("%-32s %-10s", b->name, b->suite);
    for (int s = 0; s < SUITES; s++)
        if (left_out(b, suite_names[s]))
            printf(" %9s ", "-");
        else
            printf(" %9u%c", outcome.failed[s], s == meant ? '*' : ' ');
    printf("%s\n", verdict_text[verdict]);
    fflush(stdout);
    return verdict;
}

/* ---- Mistakes in every kernel ---- */

static bool concerns(const struct mistake *mistake, enum posenc_kernel kernel)
{
    switch (mistake->needs) {
    case NEEDS_X:
        return kernel_takes_x(kernel);
    case NEEDS_IN_PLACE:
        return kernel_in_place(kernel);
    case NEEDS_POSITIONS:
        return !kernel_on_scores(kernel);
    case NEEDS_ENCODING:
    case NEEDS_STORED:
        return kernel != POSENC_KERNEL_learned_grad;
    case NEEDS_STORED_X:
        return kernel_takes_x(kernel) && kernel != POSENC_KERNEL_learned_grad;
    case NEEDS_STORES:
        return kernel == POSENC_KERNEL_learned_add || kernel == POSENC_KERNEL_distance_bias;
    case NEEDS_COPIES:
        return kernel == POSENC_KERNEL_distance_bias;
    case NEEDS_LOADS:
        return kernel == POSENC_KERNEL_learned_add || kernel == POSENC_KERNEL_learned_grad;
    case NEEDS_NOTHING:
        break;
    }
    return true;
}

static bool run_mistake(const struct mistake *mistake, enum posenc_dtype dtype,
                        struct cases *cases)
{
    char glob[96];
    struct outcome outcome = { .cases = cases, .mistake = mistake };
    struct conf_options options = { .suite = mistake->suite, .case_glob = glob };
    struct posenc_backend backend = mistaken_backend(mistake);
    const struct posenc_backend *one = &backend;
    int meant = 0, caught = 0;
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype_names[dtype], mistake->suite,
             mistake->property);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        meant += options.kernels[k] = concerns(mistake, (enum posenc_kernel)k);
    conf_run(&one, 1, &options, on_result, &outcome);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        caught += outcome.caught[k];
    printf("%-24s %-5s %-10s %-32s %4d of %d%s", mistake->name, dtype_names[dtype],
           mistake->suite, mistake->property, caught, meant,
           mistaken_entries() ? "" : "  NEVER ENTERED");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (options.kernels[k] && !outcome.caught[k])
            printf("  SURVIVES in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
    return caught == meant && mistaken_entries() > 0;
}

/* Of how many mistakes, each in each type, and how many of them are caught in every kernel. */
struct mistaken {
    int made, caught;
};

static void run_mistakes(const struct mistake *some, int n, struct cases *cases,
                         struct mistaken *count)
{
    for (int i = 0; i < n; i++)
        for (int type = (int)some[i].dtype; type <= (int)some[i].last; type++) {
            count->made++;
            count->caught += run_mistake(&some[i], (enum posenc_dtype)type, cases);
        }
}

static struct mistaken run_everywhere(struct cases *cases)
{
    struct mistaken count = { 0, 0 };
    printf("\n%-24s %-5s %-10s %-32s %s\n", "in every kernel", "type", "meant for", "case",
           "caught in kernels");
    run_mistakes(mistakes, n_mistakes, cases, &count);
    run_mistakes(storage_mistakes, n_storage_mistakes, cases, &count);
    return count;
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
            const struct known_case *c = &cases->at[i];
            n += c->suite == s && c->tried;
            weak += c->suite == s && c->tried && !c->killed;
            if (all && c->suite == s && !c->killed)
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
    struct mistaken everywhere = run_everywhere(&cases);
    bool complete = each_kernel_broken();
    printf("\n");
    print_weak(&cases, list_weak);
    printf("\n%d of %d broken kernels are caught by the suite meant for them (*)\n",
           verdicts[CAUGHT], (int)LIST);
    printf("%d of %d mistakes are caught in every kernel\n", everywhere.caught,
           everywhere.made);
    free(cases.at);
    if (pack)
        vectors_free(&vectors);
    bool all = verdicts[SURVIVES] == 0 && verdicts[NEVER_ENTERED] == 0 &&
               everywhere.caught == everywhere.made;
    return original && complete && all ? 0 : 1;
}
