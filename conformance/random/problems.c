/* Draws problems, and makes sets of them in which classes of values meet. */
#include "problems.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, QUICK_PROBLEMS = 32, CLASS_TRIES = 1000, DRAW_TRIES = 64 };
/* Pairs of classes are visited STEP apart, so that a quick run, which stops early, sees pairs of all factors. */
enum { STEP = 7919 };
/* Tries for a pair of classes that the front-end may reject; problems in which two large sizes meet, fewer for
 * kernels with frequencies, whose oracle is slow. */
enum { PAIR_TRIES = 12, LARGE_ROUNDS = 6, PLANNED_ROUNDS = 2 };
/* Limits of the work of a problem: elements, those of outputs weighted by the time of the oracle. For large
 * sizes elements alone count, in the first problem and in others. */
enum { QUICK_COST = 8000, FULL_COST = 60000, LARGE_COST = 4000000, LARGE_AGAIN = 1000000 };

/* ---- What the front-end accepts ---- */

unsigned long problems_entered;

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status enter_##name(const struct posenc_##signature##_args *args)       \
    {                                                                                          \
        (void)args;                                                                            \
        problems_entered++;                                                                    \
        return POSENC_OK;                                                                      \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

const struct posenc_backend problems_idle = {
    .size = sizeof problems_idle,
    .abi = POSENC_ABI,
    .name = "idle",
    .family = "idle",
    .description = "computes nothing",
    .needs = "",
    .f16_bf16 = true,
#define POSENC_KERNEL(kernel_name, ...) .kernel_name = enter_##kernel_name,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
};

/* A call without elements is accepted before it reaches a kernel. */
enum acceptance { REJECTED, ACCEPTED_EMPTY, ACCEPTED };

static enum acceptance accept_problem(const struct problem *p)
{
    struct call call;
    const unsigned long before = problems_entered;
    if (call_create(&call, p, NULL) != POSENC_OK)
        return REJECTED;
    const enum posenc_status status = call_run(&call, &problems_idle);
    call_destroy(&call);
    return status != POSENC_OK          ? REJECTED
           : problems_entered == before ? ACCEPTED_EMPTY
                                        : ACCEPTED;
}

/* ---- Choices of classes ---- */

/* A class of each factor, or NONE.  Two of them are held: the problem is drawn to have those. */
struct choice {
    int of[MOST_FACTORS], held[2];
    bool large;  /* both that are held are large sizes */
    bool greedy; /* others are chosen to meet for the first time, which may never be accepted */
    int round;
};

static struct choice no_choice(void)
{
    struct choice choice = { .held = { NONE, NONE } };
    for (int f = 0; f < MOST_FACTORS; f++)
        choice.of[f] = NONE;
    return choice;
}

static bool is_held(const struct choice *choice, int f)
{
    return f == choice->held[0] || f == choice->held[1];
}

/* Chooses a scaling that takes the parameter. */
static void choose_scaling(const struct factors *factors, struct choice *choice,
                           const struct factor *parameter, struct draws *d)
{
    const char *name = parameter->field.name, *last = strstr(name, "_last");
    const size_t length = last ? (size_t)(last - name) : strlen(name);
    for (int f = 0; f < factors->n; f++) {
        const int n = factors->all[f].n, from = (int)draw_between(d, 0, n - 1);
        if (factors->all[f].field.names != scaling_names || choice->of[f] != NONE)
            continue;
        for (int k = 0; k < n && choice->of[f] == NONE; k++)
            if (scaling_takes((enum posenc_scaling)((from + k) % n), name, length))
                choice->of[f] = (from + k) % n;
    }
}

static void hold(const struct factors *factors, struct choice *choice, int place, int number,
                 struct draws *d)
{
    const struct factor *factor = factors_find(factors, number);
    choice->held[place] = (int)(factor - factors->all);
    choice->of[choice->held[place]] = number - factor->first;
    if (factor_scales(factor))
        choose_scaling(factors, choice, factor, d);
}

/* A size of 0 is chosen only where it is held: an empty call shows nothing else. */
static bool is_zero_size(const struct factor *f, int c)
{
    return f->size && f->classes[c].most == 0.0 && !f->classes[c].relative;
}

static unsigned char *pair_met(const struct problem_set *set, int a, int b)
{
    const int n = set->factors.n_classes;
    return &set->met[a < b ? a * n + b : b * n + a];
}

/* How many classes that are chosen this one would meet for the first time. */
static int count_new(const struct problem_set *set, const struct choice *choice, int number)
{
    int n = 0;
    for (int g = 0; g < set->factors.n; g++)
        n += choice->of[g] != NONE &&
             !*pair_met(set, number, set->factors.all[g].first + choice->of[g]);
    return n;
}

static int choose_class(const struct problem_set *set, const struct choice *choice,
                        const struct factor *f, struct draws *d)
{
    const int from = (int)draw_between(d, 0, f->n - 1);
    int best = from, most = 0;
    for (int k = 0; k < f->n && choice->greedy; k++) {
        const int c = (from + k) % f->n, worth = count_new(set, choice, f->first + c);
        best = worth > most ? c : best;
        most = worth > most ? worth : most;
    }
    return best;
}

/* Chooses all other classes.  Beside two large sizes the others are large, too, and types and flags
 * take turns. */
static void choose_others(const struct problem_set *set, struct choice *choice, struct draws *d)
{
    for (int f = 0; f < set->factors.n; f++) {
        const struct factor *factor = &set->factors.all[f];
        if (choice->large && choice->of[f] == NONE)
            choice->of[f] = factor->kind == FACTOR_MEMBER ? choice->round % factor->n
                                                          : factor_large(factor);
        if (choice->of[f] == NONE)
            choice->of[f] = choose_class(set, choice, factor, d);
        if (is_zero_size(factor, choice->of[f]) && !is_held(choice, f))
            choice->of[f] = (choice->of[f] + 1) % factor->n;
    }
}

/* ---- Costs ---- */

/* Times of a value of the oracle, in those of a plain one. */
enum { FREQS_WEIGHT = 100, GATHER_WEIGHT = 60 };

/* Returns the elements of all tensors, those of outputs weighted. */
static int64_t cost_of(const struct choice *choice, const struct problem *problem)
{
    struct problem p = *problem;
    const struct signature *s = signature_of(p.kernel);
    const int64_t weight = choice->large ? 1
                           : s->freqs    ? FREQS_WEIGHT
                           : s->gathers  ? GATHER_WEIGHT
                                         : 1;
    int64_t cost = 0;
    problem_settle(&p);
    p.rows = p.rows > p.tokens ? p.rows : p.tokens; /* where it has any */
    for (EACH_TENSOR(row, s))
        if (tensor_present(&p, row))
            cost += tensor_elements(&p, row) * (row->role == ROLE_OUTPUT ? weight : 1);
    return cost +
           (signature_argument(s, MEMBER(accumulate)) ? p.rows * p.batch * p.tokens / 2 : 0);
}

/* Halves the size that costs most; returns false if each is as small as it may be. */
static bool halve_one(const struct factors *factors, const struct choice *choice,
                      struct problem *p)
{
    struct problem best = *p;
    int64_t least_cost = cost_of(choice, p);
    for (int f = 0; f < factors->n; f++) {
        const struct factor *factor = &factors->all[f];
        const int64_t size = factor->size ? (int64_t)field_get(&factor->field, p, 0) : 0,
                      floor = factor->even ? 2 : 1,
                      half = factor->even ? size / 4 * 2 : size / 2,
                      least = is_held(choice, f) && factor->size
                                  ? factor_least(factor, choice->of[f], p)
                                  : floor;
        struct problem smaller = *p;
        if (size <= least)
            continue;
        field_set(&factor->field, &smaller, (uint64_t)(half > least ? half : least));
        if (cost_of(choice, &smaller) < least_cost) {
            least_cost = cost_of(choice, &smaller);
            best = smaller;
        }
    }
    const bool any = least_cost < cost_of(choice, p);
    *p = best;
    return any;
}

static bool make_affordable(const struct problem_set *set, const struct choice *choice,
                            struct problem *p)
{
    const int64_t most = choice->large   ? choice->round ? LARGE_AGAIN : LARGE_COST
                         : set->ask.full ? FULL_COST
                                         : QUICK_COST;
    while (cost_of(choice, p) > most)
        if (!halve_one(&set->factors, choice, p))
            return cost_of(choice, p) <= 4 * most;
    return true;
}

/* ---- Problems of given classes ---- */

/* Gives the table as many rows as the positions ask for. */
static void provide_rows(struct problem *p)
{
    int64_t most = 0;
    if (kernel_has_freqs(p->kernel))
        return;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t t = 0; t < p->tokens; t++) {
            const int64_t position = problem_position(p, b, t);
            most = position > most ? position : most;
        }
    p->rows = p->rows > most ? p->rows : most + 1;
}

/* Not every scaling exists in each numerics mode, nor where sections restart: one gives way. */
static void reconcile(struct problem *p, struct draws *d)
{
    struct posenc_freqs_spec *freqs = &p->freqs;
    const bool turns = signature_of(p->kernel)->rotary; /* its layout may be any */
    if (freqs->mrope_layout >= POSENC_MROPE_RESTARTED && freqs->scaling && turns &&
        draw_one_in(d, 2))
        freqs->mrope_layout = POSENC_MROPE_CHUNKED;
    if (freqs->mrope_layout >= POSENC_MROPE_RESTARTED && (turns || draw_one_in(d, 4))) {
        freqs->scaling = POSENC_SCALING_NONE;
        freqs->convention = POSENC_EXPONENT;
    }
    if (scaling_in_profile(freqs->scaling, freqs->profile))
        return;
    if (draw_one_in(d, 2))
        freqs->scaling = POSENC_SCALING_NONE;
    else
        freqs->profile = POSENC_EXACT;
}

/* Draws field by field; a field whose class cannot be had keeps its default.  Sizes come first, and
 * are reduced before anything depends on them. */
static bool draw_problem(const struct problem_set *set, const struct choice *choice,
                         struct draws *d, struct arena *arena, struct problem *p)
{
    bool sizes_done = false;
    *p = problem_blank(set->factors.kernel);
    p->seed = draw_bits(d) >> 48;
    for (int f = 0; f < set->factors.n; f++) {
        const struct factor *factor = &set->factors.all[f];
        /* At the first number that is no size, all sizes are drawn: the rows of factors.c are in that order. */
        if (!sizes_done && factor->order >= 0 && !factor->size &&
            factor->kind == FACTOR_NUMBER) {
            problem_settle(p);
            reconcile(p, d);
            sizes_done = true;
            if (!make_affordable(set, choice, p))
                return false;
        }
        if (factor->kind == FACTOR_STRIDES)
            provide_rows(p);
        if (choice->of[f] != NONE &&
            (factor->row ? tensor_present(p, factor->row)
                         : !factor_scales(factor) || factor_seen(factor, p)))
            factor_draw(factor, choice->of[f], p, d, arena);
    }
    provide_rows(p);
    /* The template alone promises an exact zero between whole positions of a whole wavelength. */
    if (p->freqs.scaling == POSENC_SCALING_RESONANCE ||
        p->freqs.scaling == POSENC_SCALING_RESONANCE_YARN)
        p->time_step = 0.0;
    problem_settle(p);
    return true;
}

/* ---- Sets ---- */

/* Notes which classes the problem has and which meet for the first time; of an empty problem that
 * it is empty is all it shows.  Returns true if any does. */
static bool note_met(struct problem_set *set, const struct choice *choice,
                     const struct problem *p, bool empty)
{
    int found[MOST_FACTORS], n = 0;
    bool any = false;
    for (int f = 0; f < set->factors.n; f++) {
        const struct factor *factor = &set->factors.all[f];
        const int c = choice->of[f];
        if (c != NONE && factor_holds(factor, c, p) && (!empty || is_zero_size(factor, c)))
            found[n++] = factor->first + c;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            unsigned char *met = pair_met(set, found[i], found[k]);
            any = any || !*met;
            set->n_met += i == k && !*met;
            set->n_pairs += i != k && !*met;
            *met = 1;
        }
    return any;
}

/* Draws a problem of the classes and keeps it if it is accepted and has the wanted class, or, if that
 * is NONE, shows something new; large ones are kept anyway.  Returns false without memory. */
static bool add_problem(struct problem_set *set, struct choice *choice, int wanted,
                        struct draws *d)
{
    struct problem p;
    choose_others(set, choice, d);
    if (!draw_problem(set, choice, d, &set->arena, &p))
        return true;
    const enum acceptance accepted = accept_problem(&p);
    const struct factor *f = wanted == NONE ? NULL : factors_find(&set->factors, wanted);
    if (accepted == REJECTED || (f && !factor_holds(f, wanted - f->first, &p)) ||
        (!note_met(set, choice, &p, accepted == ACCEPTED_EMPTY) &&
         !(choice->large && accepted == ACCEPTED)))
        return true;
    struct problem *grown =
        arena_grow(&set->arena, set->problems, set->n, &set->room, sizeof *grown);
    if (!grown)
        return false;
    set->problems = grown;
    grown[set->n++] = p;
    return true;
}

/* Makes two classes meet, large sizes several times. */
static bool add_pair(struct problem_set *set, int a, int b, struct draws *d)
{
    const struct factor *of_a = factors_find(&set->factors, a),
                        *of_b = factors_find(&set->factors, b);
    const bool large = a == of_a->first + factor_large(of_a) && factor_large(of_a) != NONE &&
                       b == of_b->first + factor_large(of_b) && factor_large(of_b) != NONE;
    const int rounds = !large                                  ? 0
                       : kernel_has_freqs(set->factors.kernel) ? PLANNED_ROUNDS
                                                               : LARGE_ROUNDS;
    for (int i = 0; i < (set->ask.full ? PAIR_TRIES : 1); i++) {
        struct choice choice = no_choice();
        if (*pair_met(set, a, b) && i >= rounds)
            return true;
        choice.large = large;
        choice.round = i;
        choice.greedy = i == 0;
        hold(&set->factors, &choice, 0, a, d);
        hold(&set->factors, &choice, 1, b, d);
        if (!add_problem(set, &choice, NONE, d))
            return false;
    }
    return true;
}

/* Adds every pair of classes, in a quick run as many as there is room for; then problems of classes
 * that none has. */
static void fill_set(struct problem_set *set)
{
    const int64_t n = set->factors.n_classes, all = n * n, step = all % STEP ? STEP : 1;
    struct draws d = { .seed = mix64(set->ask.seed, set->ask.kernel) };
    for (int64_t i = 0, at = 0; i < all && (set->ask.full || set->n < QUICK_PROBLEMS);
         i++, at = (at + step) % all) {
        const int a = (int)(at / n), b = (int)(at % n);
        if (a < b && factors_find(&set->factors, a) != factors_find(&set->factors, b) &&
            !add_pair(set, a, b, &d))
            return;
    }
    for (int c = 0; c < n; c++)
        for (int i = 0; i < CLASS_TRIES && !*pair_met(set, c, c); i++) {
            struct choice choice = no_choice();
            hold(&set->factors, &choice, 0, c, &d);
            if (!add_problem(set, &choice, c, &d))
                return;
        }
}

bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem)
{
    struct draws d = { .seed = mix64(set->ask.seed, (i + 1) << 8 | set->ask.kernel) };
    for (int k = 0; k < DRAW_TRIES; k++) {
        struct choice choice = no_choice();
        choose_others(set, &choice, &d);
        if (draw_problem(set, &choice, &d, arena, problem) &&
            accept_problem(problem) == ACCEPTED)
            return true;
    }
    return false;
}

static void problem_set_free(struct problem_set *set)
{
    if (set) {
        arena_free(&set->arena);
        free(set->met);
    }
    free(set);
}

struct problem_set *problem_set_take(const struct problem_set_ask *ask)
{
    static struct problem_set *kept;
    if (kept && memcmp(&kept->ask, ask, sizeof *ask) == 0)
        return kept;
    problem_set_free(kept);
    kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    memcpy(&kept->ask, ask, sizeof *ask);
    factors_list(&kept->factors, ask->kernel, ask->narrow, ask->full);
    kept->met = calloc((size_t)kept->factors.n_classes, (size_t)kept->factors.n_classes);
    if (!kept->met) {
        problem_set_free(kept);
        kept = NULL;
        return NULL;
    }
    fill_set(kept);
    return kept;
}

bool problem_set_lacks(const struct problem_set *set, int *a, int *b)
{
    *b = NONE;
    for (*a = 0; *a < set->factors.n_classes; ++*a)
        if (!*pair_met(set, *a, *a))
            return true;
    for (int f = 0; f < set->factors.n; f++)
        for (int g = 0; g < f; g++) {
            const int of_f = factor_large(&set->factors.all[f]),
                      of_g = factor_large(&set->factors.all[g]);
            *a = set->factors.all[f].first + of_f;
            *b = set->factors.all[g].first + of_g;
            if (of_f != NONE && of_g != NONE && !*pair_met(set, *a, *b))
                return true;
        }
    return false;
}
