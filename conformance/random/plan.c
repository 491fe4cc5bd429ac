/*
 * Problems with given classes, and a covering array of all pairs of them: see plan.h.
 *
 * Rows are made one at a time (as AETG does, Cohen et al. 1997): each begins with a pair that no
 * problem has yet, and takes of every other field the class that meets most others for the first
 * time.  What is counted is what the problem that came of it has.
 */
#include "plan.h"

#include "arrival.h"
#include "weight.h"
#include "conformance/problem/notation.h"

#include <stdlib.h>
#include <string.h>

enum { MET = 255, NONE_CHOSEN = -1, KEEP = -2 };
enum { QUICK_PROBLEMS = 32, FULL_TRIES = 12, CLASS_TRIES = 1000, STEP = 7919 };
/* Of problems in which two large sizes meet: elements of the first and of the others, and how many. */
enum { LARGE_COST = 4000000, LARGE_AGAIN_COST = 1000000, LARGE_ROUNDS = 6, PLANNED_ROUNDS = 2 };

/* ---- Costs ---- */

/* The classes of a problem: of each factor, NONE_CHOSEN at first; two of them are held. */
struct choice {
    int of[MOST_FACTORS];
    int held[2];
    int round; /* of two large sizes: how often they were held before */
};

/* Whether two large sizes are held, which have to meet. */
static bool holds_large(const struct plan *plan, const struct choice *choice)
{
    bool large = true;
    for (int i = 0; i < 2 && large; i++) {
        const int f = choice->held[i];
        large = f != NONE_CHOSEN && factor_large(&plan->space.factors[f]) != NONE_CHOSEN &&
                factor_large(&plan->space.factors[f]) == choice->of[f];
    }
    return large;
}

/* Where large sizes meet, elements alone count. */
static int64_t cost_of(const struct plan *plan, const struct choice *choice,
                       const struct problem *p)
{
    return problem_cost(p, holds_large(plan, choice) ? 1 : problem_weight(p));
}

static int64_t most_cost(const struct plan *plan, const struct choice *choice)
{
    const int64_t large = choice->round > 0 ? LARGE_AGAIN_COST : LARGE_COST,
                  usual = plan->ask.full ? 60000 : 8000;
    return holds_large(plan, choice) ? large : usual;
}

/* The size that it is best to halve; false: all are as small as they may be. */
static bool make_smaller(const struct plan *plan, const struct choice *choice,
                         struct problem *p)
{
    struct problem best = *p;
    int64_t least_cost = cost_of(plan, choice, p);
    for (const struct factor *f = plan->space.factors;
         f < plan->space.factors + plan->space.n_factors; f++) {
        const int at = (int)(f - plan->space.factors);
        const int64_t now = f->size ? (int64_t)field_get(&f->field, p, 0) : 0;
        int64_t least = f->even ? 2 : 1, half = f->even ? now / 4 * 2 : now / 2;
        if ((at == choice->held[0] || at == choice->held[1]) && f->size)
            class_least(f, choice->of[at], p, &least);
        half = half > least ? half : least;
        if (now <= half)
            continue;
        struct problem smaller = *p;
        field_set(&f->field, &smaller, (uint64_t)half);
        const int64_t cost = cost_of(plan, choice, &smaller);
        if (cost < least_cost) {
            least_cost = cost;
            best = smaller;
        }
    }
    const bool any = least_cost < cost_of(plan, choice, p);
    *p = best;
    return any;
}

/* ---- Problems of given classes ---- */

/* Rows that the positions ask for. */
static void provide_rows(struct problem *p)
{
    int64_t most = 0;
    if (kernel_has_freqs(p->kernel))
        return;
    for (int64_t b = 0; b<p->batch; b += p->batch> 1 ? p->batch - 1 : 1)
        for (int64_t t = 0; t < p->tokens; t++) {
            const int64_t position = problem_position(p, b, t);
            most = position > most ? position : most;
        }
    p->rows = p->rows > most ? p->rows : most + 1;
}

static bool fits(const struct plan *plan, const struct choice *choice, struct problem *p)
{
    while (cost_of(plan, choice, p) > most_cost(plan, choice))
        if (!make_smaller(plan, choice, p))
            return cost_of(plan, choice, p) <= 4 * most_cost(plan, choice);
    return true;
}

static bool is_held(const struct plan *plan, const struct choice *choice, const char *name)
{
    bool held = false;
    for (int i = 0; i < 2; i++)
        held = held || (choice->held[i] != NONE_CHOSEN &&
                        strcmp(plan->space.factors[choice->held[i]].field.name, name) == 0);
    return held;
}

/* Not every family of scaling exists in every profile, and none where sections restart or are dealt: one of the
 * two gives way. */
static void agree(const struct plan *plan, const struct choice *choice, struct problem *p)
{
    if (p->freqs.mrope_layout >= POSENC_MROPE_RESTARTED) {
        if (is_held(plan, choice, "mrope_layout") || is_held(plan, choice, "mrope_section") ||
            is_held(plan, choice, "mrope_grid")) {
            p->freqs.scaling = POSENC_SCALING_NONE;
            p->freqs.convention = POSENC_EXPONENT;
        } else if (signature_of(p->kernel)->rotary && p->freqs.scaling != POSENC_SCALING_NONE) {
            p->freqs.mrope_layout = POSENC_MROPE_CHUNKED;
        }
    }
    if (scaling_in_profile(p->freqs.scaling, p->freqs.profile))
        return;
    if (is_held(plan, choice, "profile"))
        p->freqs.scaling = POSENC_SCALING_NONE;
    else
        p->freqs.profile = POSENC_EXACT;
}

/* A field whose class cannot be had is left as nothing says otherwise: it may be that of a family
 * of scaling, of which there is none. */
static bool realise(const struct plan *plan, const struct choice *choice, struct drawing *d,
                    struct problem *p)
{
    const struct space *space = &plan->space;
    bool sized = false;
    *p = problem_blank(space->kernel);
    p->seed = draw_bits(d) >> 48;
    for (int f = 0; f < space->n_factors; f++) {
        const struct factor *factor = &space->factors[f];
        if (!sized && factor->line >= 0 && !factor->size && factor->how == DRAWN_NUMBER) {
            problem_settle(p);
            agree(plan, choice, p);
            if (!fits(plan, choice, p))
                return false;
            sized = true;
        }
        if (factor->how == DRAWN_STRIDES)
            provide_rows(p);
        if (factor->row ? tensor_present(p, factor->row)
                        : !factor->parameter || factor_reaches(factor, p))
            class_draw(factor, choice->of[f], p, d);
    }
    provide_rows(p);
    /* Between whole positions an exact zero of a whole wavelength takes more than f64: what is
     * promised there is of the template alone. */
    if (p->freqs.scaling == POSENC_SCALING_RESONANCE ||
        p->freqs.scaling == POSENC_SCALING_RESONANCE_YARN)
        p->time_step = 0.0;
    problem_settle(p);
    return true;
}

/* ---- Pairs ---- */

static unsigned char *pair_of(const struct plan *plan, int a, int b)
{
    return &plan->doubt[a < b ? a * plan->space.n_classes + b : b * plan->space.n_classes + a];
}

/* What it is worth that these meet: less, the more often it was tried. */
static int worth(const struct plan *plan, int a, int b)
{
    const unsigned char doubt = *pair_of(plan, a, b);
    return doubt > 3 ? 0 : 8 >> doubt;
}

static int number_of(const struct space *space, const struct choice *choice, int f)
{
    return space->factors[f].first + choice->of[f];
}

/* A size of 0 is chosen only where it is held: two of them leave nothing to look at. */
static bool is_none(const struct factor *factor, int c)
{
    return factor->size && strcmp(factor->classes[c].name, "none") == 0;
}

/* Of a factor the class that is worth most beside those that are chosen. */
static int best_class(const struct plan *plan, const struct choice *choice, int f,
                      struct drawing *d)
{
    const struct space *space = &plan->space;
    const int n = space->factors[f].n, from = (int)draw_between(d, 0, n - 1);
    int best = from, most = 0;
    for (int k = 0; k < n; k++) {
        const int c = (from + k) % n;
        int sum = 0;
        for (int g = 0; g < space->n_factors; g++)
            if (g != f && choice->of[g] != NONE_CHOSEN)
                sum += worth(plan, space->factors[f].first + c, number_of(space, choice, g));
        if (sum > most && !is_none(&space->factors[f], c)) {
            most = sum;
            best = c;
        }
    }
    return best;
}

/* The factors that are not chosen, in an order that is drawn. */
static void complete(const struct plan *plan, struct choice *choice, bool by_worth,
                     struct drawing *d)
{
    const struct space *space = &plan->space;
    const int n = space->n_factors;
    int order[MOST_FACTORS];
    for (int f = 0; f < n; f++) {
        const int at = (int)draw_between(d, 0, f);
        order[f] = order[at];
        order[at] = f;
    }
    for (int k = 0; k < n; k++) {
        const int f = order[k];
        if (choice->of[f] == NONE_CHOSEN)
            choice->of[f] = by_worth ? best_class(plan, choice, f, d)
                                     : (int)draw_between(d, 0, space->factors[f].n - 1);
        if (is_none(&space->factors[f], choice->of[f]) && f != choice->held[0] &&
            f != choice->held[1])
            choice->of[f] = (choice->of[f] + 1) % space->factors[f].n;
    }
}

/* Counts the classes that a problem has.  Of an empty one that it is empty is all that is tried. */
static bool count_met(struct plan *plan, const struct problem *p, bool empty)
{
    const struct space *space = &plan->space;
    int found[2 * MOST_FACTORS], n = 0;
    bool none[2 * MOST_FACTORS], any = false;
    for (int f = 0; f < space->n_factors; f++)
        for (int c = 0; c < space->factors[f].n && n < 2 * MOST_FACTORS; c++)
            if (factor_reaches(&space->factors[f], p) && class_has(&space->factors[f], c, p)) {
                none[n] = is_none(&space->factors[f], c);
                found[n++] = space->factors[f].first + c;
            }
    for (int i = 0; i < n; i++) {
        if (empty && !none[i])
            continue;
        plan->classes += !plan->has[found[i]];
        any = any || !plan->has[found[i]];
        plan->has[found[i]] = true;
        for (int k = 0; k < n; k++) {
            unsigned char *pair = pair_of(plan, found[i], found[k]);
            any = any || (k != i && *pair != MET);
            plan->pairs += k != i && *pair != MET;
            *pair = k != i ? MET : *pair;
        }
    }
    return any;
}

/* What was to meet and did not is tried less and less often. */
static void count_doubt(struct plan *plan, const struct choice *choice)
{
    const struct space *space = &plan->space;
    for (int f = 0; f < space->n_factors; f++)
        for (int g = f + 1; g < space->n_factors; g++) {
            unsigned char *pair =
                pair_of(plan, number_of(space, choice, f), number_of(space, choice, g));
            *pair = (unsigned char)(*pair < MET - 1 ? *pair + 1 : *pair);
        }
}

/* ---- Plans ---- */

static bool keep_problem(struct plan *plan, const struct problem *p)
{
    struct problem *grown =
        arena_grow(&plan->arena, plan->problems, plan->n, &plan->room, sizeof *grown);
    if (!grown)
        return false;
    plan->problems = grown;
    grown[plan->n++] = *p;
    return true;
}

/* The factor of a class; of NONE_CHOSEN the first. */
static int factor_of(const struct space *space, int number)
{
    int f = 0;
    while (number >= space->factors[f].first + space->factors[f].n)
        f++;
    return f;
}

/* Whether a problem has the class of that number; NONE_CHOSEN: any will do. */
static bool has_class(const struct space *space, int number, const struct problem *p)
{
    const struct factor *f = &space->factors[factor_of(space, number)];
    return number == NONE_CHOSEN ||
           (factor_reaches(f, p) && class_has(f, number - f->first, p));
}

/* A problem of these classes, unless it is refused; kept where it has what none before it had, and in any
 * case where `wanted` is KEEP. */
static bool try_choice(struct plan *plan, const struct choice *choice, int wanted,
                       struct drawing *d)
{
    struct problem p;
    char wrong[ARRIVAL_TEXT] = "";
    const bool made = realise(plan, choice, d, &p);
    const enum arrival arrival = made ? arrive(&p, wrong) : ARRIVAL_REFUSED;
    if (wrong[0] && !plan->wrong[0]) {
        memcpy(plan->wrong, wrong, sizeof wrong);
        plan->wrong_problem = p;
    }
    const bool has = wanted == KEEP || has_class(&plan->space, wanted, &p),
               is_new = arrival != ARRIVAL_REFUSED && has &&
                        count_met(plan, &p, arrival == ARRIVAL_EMPTY);
    if ((is_new || (wanted == KEEP && arrival == ARRIVAL_ENTERED)) && !keep_problem(plan, &p))
        return false;
    count_doubt(plan, choice);
    return true;
}

/* A family of scaling that takes the parameter, one of them. */
static void choose_scaling(const struct space *space, struct choice *choice,
                           const char *parameter, struct drawing *d)
{
    const char *last = strstr(parameter, "_last");
    const size_t length = last ? (size_t)(last - parameter) : strlen(parameter);
    for (int f = 0; f < space->n_factors; f++) {
        const struct factor *factor = &space->factors[f];
        const int from = (int)draw_between(d, 0, factor->n - 1);
        for (int k = 0; factor->field.names == scaling_names && k < factor->n; k++) {
            const int c = (from + k) % factor->n;
            if (choice->of[f] == NONE_CHOSEN &&
                scaling_takes((enum posenc_scaling)factor->classes[c].member, parameter,
                              length))
                choice->of[f] = c;
        }
    }
}

/* The class of that number is held; a parameter comes with a family that takes it. */
static void choose(const struct space *space, struct choice *choice, int place, int number,
                   struct drawing *d)
{
    const int f = factor_of(space, number);
    choice->of[f] = number - space->factors[f].first;
    choice->held[place] = f;
    if (space->factors[f].parameter)
        choose_scaling(space, choice, space->factors[f].parameter, d);
}

/* Sizes that are not chosen are large, too, and become smaller where the problem would cost too much.  Types
 * and flags take their values by turns. */
static void choose_large(const struct space *space, struct choice *choice)
{
    for (int f = 0; f < space->n_factors; f++) {
        const struct factor *factor = &space->factors[f];
        if (choice->of[f] == NONE_CHOSEN && factor->how == DRAWN_MEMBER)
            choice->of[f] = choice->round % factor->n;
        else if (choice->of[f] == NONE_CHOSEN)
            choice->of[f] = factor_large(factor);
    }
}

/* Of every factor. */
static struct choice no_choice(void)
{
    struct choice choice = { .held = { NONE_CHOSEN, NONE_CHOSEN } };
    for (int f = 0; f < MOST_FACTORS; f++)
        choice.of[f] = NONE_CHOSEN;
    return choice;
}

/* A pair that has not met, so often, and two large sizes a few times; false without memory. */
static bool cover_pair(struct plan *plan, int a, int b, struct drawing *d)
{
    const int most = plan->ask.full ? FULL_TRIES : 1,
              rounds = kernel_has_freqs(plan->space.kernel) ? PLANNED_ROUNDS : LARGE_ROUNDS;
    for (int i = 0; i < most; i++) {
        struct choice choice = no_choice();
        choose(&plan->space, &choice, 0, a, d);
        choose(&plan->space, &choice, 1, b, d);
        choice.round = i;
        const bool large = holds_large(plan, &choice) && i < rounds;
        if (*pair_of(plan, a, b) == MET && !large)
            return true;
        if (large)
            choose_large(&plan->space, &choice);
        complete(plan, &choice, i == 0, d);
        if (!try_choice(plan, &choice, large ? KEEP : NONE_CHOSEN, d))
            return false;
    }
    return true;
}

/* All pairs, or as many as a quick run has problems for, in an order that jumps among them: a step
 * that has no factor in common with their number comes by each.  Then the classes that are
 * missing. */
static void cover(struct plan *plan)
{
    const int64_t n = plan->space.n_classes, all = n * n;
    const int64_t step = all % STEP ? STEP : 1;
    struct drawing d = { .seed = mix64(plan->ask.seed, plan->ask.kernel),
                         .arena = &plan->arena };
    for (int64_t i = 0, at = 0; i < all && (plan->ask.full || plan->n < QUICK_PROBLEMS);
         i++, at = (at + step) % all) {
        const int a = (int)(at / n), b = (int)(at % n);
        if (a < b && factor_of(&plan->space, a) != factor_of(&plan->space, b) &&
            !cover_pair(plan, a, b, &d))
            return;
    }
    for (int c = 0; c < n; c++)
        for (int i = 0; i < CLASS_TRIES && !plan->has[c]; i++) {
            struct choice choice = no_choice();
            choose(&plan->space, &choice, 0, c, &d);
            complete(plan, &choice, false, &d);
            if (!try_choice(plan, &choice, c, &d))
                return;
        }
}

bool plan_draw(struct plan *plan, uint64_t i, struct arena *arena, struct problem *problem)
{
    enum { TRIES = 64 };
    struct drawing d = { .seed = mix64(plan->ask.seed, (i + 1) << 8 | plan->ask.kernel),
                         .arena = arena };
    char wrong[ARRIVAL_TEXT];
    for (int k = 0; k < TRIES; k++) {
        struct choice choice = no_choice();
        complete(plan, &choice, false, &d);
        if (realise(plan, &choice, &d, problem) && arrive(problem, wrong) == ARRIVAL_ENTERED)
            return true;
    }
    return false;
}

static void forget(struct plan *plan)
{
    if (!plan)
        return;
    arena_free(&plan->arena);
    free(plan->doubt);
    free(plan->has);
    free(plan);
}

struct plan *plan_take(const struct plan_ask *ask)
{
    static struct plan *kept;
    if (kept && memcmp(&kept->ask, ask, sizeof *ask) == 0)
        return kept;
    forget(kept);
    kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    memcpy(&kept->ask, ask, sizeof *ask);
    if (!space_make(&kept->space, ask->kernel, ask->narrow, ask->full, kept->wrong))
        return kept;
    const size_t n = (size_t)kept->space.n_classes;
    kept->doubt = calloc(n, n);
    kept->has = calloc(n, sizeof *kept->has);
    if (!kept->doubt || !kept->has) {
        forget(kept);
        kept = NULL;
        return NULL;
    }
    cover(kept);
    return kept;
}

bool plan_lacks_large(const struct plan *plan, int *a, int *b)
{
    const struct space *space = &plan->space;
    for (int f = 0; f < space->n_factors; f++)
        for (int g = 0; g < f; g++) {
            const int of_f = factor_large(&space->factors[f]),
                      of_g = factor_large(&space->factors[g]);
            *a = space->factors[f].first + of_f;
            *b = space->factors[g].first + of_g;
            if (of_f != NONE_CHOSEN && of_g != NONE_CHOSEN && *pair_of(plan, *a, *b) != MET)
                return true;
        }
    return false;
}
