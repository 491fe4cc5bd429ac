/*
 * Calls what posenc.h has with arguments of every kind: see caller.h.
 *
 *     call [SETS] [--seed N] [--only NAME] [--set N [--changes MASK]]
 *
 * SETS of each kernel, and of each thing that the header offers beside them.  The first that fails of each ends it, is reduced to the changes
 * that it takes, and printed with the words that repeat it.
 */
#include "offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
    uint64_t sets, seed, first;
    unsigned changes;
    const char *only, *program;
};

static struct grounds grounds;

enum { NOWHERE = POSENC_ERR_MEMORY + 1, ANSWERS };
static unsigned long answered[ANSWERS]; /* statuses, and what went where no memory is */

/* Whether it is fine; what is wrong with it, and its changes in words. */
static bool try_set(enum posenc_kernel kernel, uint64_t seed, uint64_t number, unsigned kept,
                    char complaint[MOST_TEXT], char words[MOST_TEXT])
{
    static struct set set;
    strcpy(words, "nothing changed");
    if (!set_make(&set, &grounds, kernel, seed, number, kept)) {
        snprintf(complaint, MOST_TEXT, "a valid problem is refused");
        return false;
    }
    set_check(&set, &grounds, complaint);
    if (*complaint)
        set_print(&set, words, MOST_TEXT);
    set_free(&set, &grounds);
    answered[set.answer < 0 ? NOWHERE : set.answer]++;
    return !*complaint;
}

/* Leaves out what it fails without. */
static void report(const struct wanted *w, enum posenc_kernel kernel, uint64_t number,
                   unsigned kept)
{
    char complaint[MOST_TEXT], words[MOST_TEXT];
    for (int i = 0; i < MOST_CHANGES; i++)
        if ((kept >> i & 1u) &&
            !try_set(kernel, w->seed, number, kept & ~(1u << i), complaint, words))
            kept &= ~(1u << i);
    try_set(kernel, w->seed, number, kept, complaint, words);
    printf("# %s with %s: %s\n# repeat: %s --seed %llu --only %s --set %llu --changes %u\n",
           posenc_kernel_name(kernel), words, complaint, w->program,
           (unsigned long long)w->seed, posenc_kernel_name(kernel), (unsigned long long)number,
           kept);
}

static void print_answers(void)
{
    printf("# %lu accepted, %lu of them without memory",
           answered[POSENC_OK] + answered[NOWHERE], answered[NOWHERE]);
    for (int status = POSENC_OK + 1; status < POSENC_ERR_MEMORY; status++)
        if (answered[status])
            printf(", %lu %s", answered[status],
                   posenc_status_string((enum posenc_status)status));
    printf("\n");
    memset(answered, 0, sizeof answered);
}

static int call_kernel(const struct wanted *w, enum posenc_kernel kernel)
{
    char complaint[MOST_TEXT], words[MOST_TEXT];
    for (uint64_t number = w->first; number < w->first + w->sets; number++)
        if (!try_set(kernel, w->seed, number, w->changes, complaint, words)) {
            report(w, kernel, number, w->changes);
            return 1;
        }
    print_answers();
    return 0;
}

/* ---- Beside kernels ---- */

static int call_offer(const struct wanted *w, const struct offer *offer)
{
    char complaint[MOST_TEXT], words[MOST_TEXT];
    int answer;
    for (uint64_t n = w->first; n < w->first + w->sets; n++) {
        unsigned kept = w->changes;
        if (offer_try(offer, &grounds, w->seed, n, kept, &answer, complaint, words)) {
            answered[answer < 0 ? NOWHERE : answer]++;
            continue;
        }
        for (int i = 0; i < MOST_CHANGES; i++)
            if (!offer_try(offer, &grounds, w->seed, n, kept & ~(1u << i), &answer, complaint,
                           words))
                kept &= ~(1u << i);
        offer_try(offer, &grounds, w->seed, n, kept, &answer, complaint, words);
        printf("# %s%s: %s\n# repeat: %s --seed %llu --only %s --set %llu --changes %u\n",
               offer->name, words, complaint, w->program, (unsigned long long)w->seed,
               offer->name, (unsigned long long)n, kept);
        return 1;
    }
    print_answers();
    return 0;
}

static int ask_query(const struct wanted *w, const struct query *query)
{
    char complaint[MOST_TEXT] = "";
    for (uint64_t n = w->first; n < w->first + w->sets; n++) {
        struct draws d = { .seed = mix64(w->seed, n) };
        if (query->ask(&d, complaint))
            continue;
        printf("# %s: %s\n# repeat: %s --seed %llu --only %s --set %llu\n", query->name,
               complaint, w->program, (unsigned long long)w->seed, query->name,
               (unsigned long long)n);
        return 1;
    }
    return 0;
}

/* ---- The command line ---- */

static bool read_number(const char *text, uint64_t *value)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    *value = strtoull(text, &end, 10);
    return !*end;
}

static bool read_arguments(struct wanted *w, int argc, char **argv)
{
    bool good = true;
    for (int i = 1; i < argc && good; i++) {
        uint64_t value = 0;
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (read_number(argv[i], &w->sets))
            continue;
        good = next && (strcmp(argv[i], "--only") == 0 || read_number(next, &value));
        if (strcmp(argv[i], "--only") == 0) {
            w->only = next;
        } else if (strcmp(argv[i], "--seed") == 0) {
            w->seed = value;
        } else if (strcmp(argv[i], "--set") == 0) {
            w->first = value;
            w->sets = 1;
        } else if (strcmp(argv[i], "--changes") == 0) {
            w->changes = (unsigned)value;
        } else {
            good = false;
        }
        i++;
    }
    return good;
}

static bool is_wanted(const struct wanted *w, const char *name)
{
    return !w->only || strcmp(w->only, name) == 0;
}

/* Says how one of them went. */
static void tell(int bad, const char *name, int *run, int *failed)
{
    *failed += bad;
    printf("%s %d - %s\n", bad ? "not ok" : "ok", ++*run, name);
    fflush(stdout);
}

static void call_others(const struct wanted *w, int *run, int *failed)
{
    const struct offer *const lists[] = { offers_builders, offers_indices, offers_plans };
    for (int i = 0; i < (int)(sizeof lists / sizeof *lists); i++)
        for (const struct offer *o = lists[i]; o->name; o++)
            if (is_wanted(w, o->name))
                tell(call_offer(w, o), o->name, run, failed);
    for (const struct query *q = queries; q->name; q++)
        if (is_wanted(w, q->name))
            tell(ask_query(w, q), q->name, run, failed);
}

int main(int argc, char **argv)
{
    struct wanted w = { .sets = 1000, .seed = 1, .changes = ~0u, .program = argv[0] };
    int run = 0, failed = 0;
    if (!read_arguments(&w, argc, argv) || !grounds_make(&grounds)) {
        fprintf(stderr, "call: [SETS] [--seed N] [--only NAME] "
                        "[--set N [--changes MASK]]\n");
        return 2;
    }
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const char *name = posenc_kernel_name((enum posenc_kernel)k);
        if (!is_wanted(&w, name))
            continue;
        tell(call_kernel(&w, (enum posenc_kernel)k), name, &run, &failed);
    }
    call_others(&w, &run, &failed);
    printf("1..%d\n", run);
    sets_end();
    guard_destroy(grounds.guard);
    return failed ? 1 : run ? 0 : 2;
}
