/*
 * Problems with given classes, and a covering array of all pairs of them: see plan.h.
 *
 * Rows are made one at a time (as AETG does, Cohen et al. 1997): each begins with a pair that no
 * problem has yet, and takes of every other field the class that meets most others for the first
 * time.  What is counted is what the problem that came of it has.
 */
#include "plan.h"

#include "arrival.h"
#include "conformance/problem/notation.h"

#include <stdlib.h>
#include <string.h>

enum {
    MET = 255,
    NONE_CHOSEN = -1,
    QUICK_PROBLEMS = 32,
    FULL_TRIES = 12,
    CLASS_TRIES = 1000,
    STEP = 7919
};

/* ---- Costs ---- */

/* What a value of an output takes of the oracle, in copies of a number. */
static int64_t weight_of(const struct problem *p)
{
    return kernel_has_plan(p->kernel) ? 100 : signature_of(p->kernel)->gathers ? 60 : 1;
}

static int64_t cost_of(const struct problem *problem)
{
    struct problem p = *problem;
    const struct signature *s = signature_of(p.kernel);
    int64_t cost = 0;
    problem_settle(&p);
    p.rows = p.rows > p.tokens ? p.rows : p.tokens; /* where it has any */
    for (EACH_TENSOR(row, s))
        if (tensor_present(&p, row))
            cost += tensor_elements(&p, row) * (row->role == ROLE_OUTPUT ? weight_of(&p) : 1);
    return cost +
           (signature_argument(s, MEMBER(accumulate)) ? p.rows * p.batch * p.tokens / 2 : 0);
}

static int64_t most_cost(const struct plan *plan) { return plan->ask.full ? 60000 : 8000; }

/* The classes of a problem: of each factor, NONE_CHOSEN at first; two of them are held. */
struct choice {
    int of[MOST_FACTORS];
    int held[2];
};

/* The size that it is best to halve; false: all are as small as they may be. */
static bool make_smaller(const struct plan *plan, const struct choice *choice,
                         struct problem *p)
{
    struct problem best = *p;
    int64_t least_cost = cost_of(p);
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
        const int64_t cost = cost_of(&smaller);
        if (cost < least_cost) {
            least_cost = cost;
            best = smaller;
        }
    }
    const bool any = least_cost < cost_of(p);
    *p = best;
    return any;
}

/* ---- Problems of given classes ---- */

/* Rows that the positions ask for. */
static void provide_rows(struct problem *p)
{
    int64_t most = 0;
    if (kernel_has_plan(p->kernel))
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
    while (cost_of(p) > most_cost(plan))
        if (!make_smaller(plan, choice, p))
            return cost_of(p) <= 4 * most_cost(plan);
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
        } else if (signature_of(p->kernel)->turning &&
                   p->freqs.scaling != POSENC_SCALING_NONE) {
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

/* Whether a problem has the class of that number; NONE_CHOSEN: any will do. */
static bool has_class(const struct space *space, int number, const struct problem *p)
{
    const struct factor *f = space->factors;
    while (number >= f->first + f->n)
        f++;
    return number == NONE_CHOSEN ||
           (factor_reaches(f, p) && class_has(f, number - f->first, p));
}

/* A problem of these classes, unless it is refused; kept where it has what none before it had. */
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
    if (arrival != ARRIVAL_REFUSED && has_class(&plan->space, wanted, &p) &&
        count_met(plan, &p, arrival == ARRIVAL_EMPTY) && !keep_problem(plan, &p))
        return false;
    count_doubt(plan, choice);
    return true;
}

static bool same_factor(const struct space *space, int a, int b)
{
    for (int f = 0; f < space->n_factors; f++) {
        const struct factor *factor = &space->factors[f];
        if (a >= factor->first && a < factor->first + factor->n)
            return b >= factor->first && b < factor->first + factor->n;
    }
    return false;
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
    int f = 0;
    while (number >= space->factors[f].first + space->factors[f].n)
        f++;
    choice->of[f] = number - space->factors[f].first;
    choice->held[place] = f;
    if (space->factors[f].parameter)
        choose_scaling(space, choice, space->factors[f].parameter, d);
}

/* Of every factor. */
static struct choice no_choice(void)
{
    struct choice choice = { .held = { NONE_CHOSEN, NONE_CHOSEN } };
    for (int f = 0; f < MOST_FACTORS; f++)
        choice.of[f] = NONE_CHOSEN;
    return choice;
}

/* A pair that has not met, so often; false without memory. */
static bool cover_pair(struct plan *plan, int a, int b, struct drawing *d)
{
    const int most = plan->ask.full ? FULL_TRIES : 1;
    for (int i = 0; i < most && *pair_of(plan, a, b) != MET; i++) {
        struct choice choice = no_choice();
        choose(&plan->space, &choice, 0, a, d);
        choose(&plan->space, &choice, 1, b, d);
        complete(plan, &choice, i == 0, d);
        if (!try_choice(plan, &choice, NONE_CHOSEN, d))
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
        if (a < b && !same_factor(&plan->space, a, b) && !cover_pair(plan, a, b, &d))
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
    if (!space_make(&kept->space, ask->kernel, ask->narrow, kept->wrong))
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
