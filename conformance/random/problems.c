/*
 * Draws problems, and sets of problems in which classes of values meet; see random.h.
 *
 * A problem is drawn from a choice of one class for each factor. To make two classes meet, such as "heads from 2 to 8"
 * and "x.stride backward", the choice holds both; the other classes are random. Problems that the front-end rejects are
 * dropped.
 */
#include "random.h"

/* Size of a set in quick runs; attempts to draw a problem with a given class, or any problem. */
enum { QUICK_PROBLEMS = 48, CLASS_TRIES = 1000, DRAW_TRIES = 64 };
/* Pairs of classes are visited in steps of this prime, so that even a quick run has pairs of all factors. */
enum { PAIR_STEP = 7919 };
/* Attempts to make a pair of classes meet in a full run. Numbers of problems for two large sizes; fewer for kernels
 * with frequencies, whose oracle is slow. */
enum { PAIR_TRIES = 12, LARGE_ROUNDS = 6, LARGE_ROUNDS_WITH_FREQS = 2 };
/* Limits of find_cost(), which is about a number of elements. Problems of two large sizes have higher ones. */
enum { QUICK_COST = 8000, FULL_COST = 60000, LARGE_COST = 4000000, LARGE_COST_AGAIN = 1000000 };
/* Time of the oracle for one value of these kernels, relative to other kernels. */
enum { FREQS_WEIGHT = 100, GATHER_WEIGHT = 60 };

/* ---- What the front-end accepts ---- */

static unsigned long null_calls; /* calls that reached a kernel */

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    static enum posenc_status null_##name(const struct posenc_##signature##_args *args)        \
    {                                                                                          \
        (void)args;                                                                            \
        null_calls++;                                                                          \
        return POSENC_OK;                                                                      \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

const struct posenc_backend null_backend = {
    .size = sizeof null_backend,
    .abi = POSENC_ABI,
    .name = "idle",
    .family = "idle",
    .description = "computes nothing",
    .required_features = "",
    .f16_bf16 = true,
#define POSENC_KERNEL(ID, kernel_name, ...) .kernel_name = null_##kernel_name,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
};

/* Answers of the front-end. A call without elements is accepted without a call of the kernel. */
enum acceptance { REJECTED, ACCEPTED_EMPTY, ACCEPTED };

static enum acceptance accept_problem(const struct problem *p)
{
    struct call call;
    const unsigned long before = null_calls;
    if (call_create(&call, p, NULL) != POSENC_OK)
        return REJECTED;
    const enum posenc_status status = call_run(&call, &null_backend);
    call_destroy(&call);
    if (status != POSENC_OK)
        return REJECTED;
    return null_calls == before ? ACCEPTED_EMPTY : ACCEPTED;
}

/* ---- Choices of classes ---- */

/* A class for each factor, of which one or two are held. */
struct choice {
    const struct value_class *classes[MOST_FACTORS];
    const struct value_class *held[2]; /* or NULL */
    bool both_large;                   /* the held classes are large sizes */
    int round; /* number of earlier choices with the same held classes */
};

/* Returns the held class of a factor, or NULL. */
static const struct value_class *find_held(const struct choice *choice, const struct factor *f)
{
    for (int i = 0; i < 2; i++)
        if (choice->held[i] && choice->held[i]->factor == f)
            return choice->held[i];
    return NULL;
}

static bool are_large(const struct value_class *a, const struct value_class *b)
{
    return a && b && a->kind == CLASS_LARGE && b->kind == CLASS_LARGE;
}

/* Returns true for a size of 0. It is chosen only if it is held, since an empty call tests no other class. */
static bool is_zero_size(const struct value_class *c)
{
    return c->factor->is_size && c->most == 0.0 && c->kind != CLASS_ABOVE_BOUND;
}

/* Returns the scalings that have each held parameter of scalings, as bits. */
static unsigned fitting_scalings(const struct choice *choice)
{
    unsigned found = ~0u;
    for (int i = 0; i < 2; i++)
        if (choice->held[i] && choice->held[i]->factor->scalings)
            found &= choice->held[i]->factor->scalings;
    return found;
}

/* Chooses the class of a factor. Beside two large sizes the others are large too, and types and flags change from round
 * to round. */
static const struct value_class *choose_class(const struct choice *choice,
                                              const struct factor *f, struct random_state *d)
{
    const struct value_class *held = find_held(choice, f),
                             *last = f->classes + f->n_classes - 1;
    if (held || (choice->both_large && last->kind == CLASS_LARGE))
        return held ? held : last;
    int i = choice->both_large && field_value_names(&f->field)
                ? choice->round % f->n_classes
                : (int)draw_between(d, 0, f->n_classes - 1);
    const unsigned fitting = f->field.names == scaling_names ? fitting_scalings(choice) : ~0u;
    while (fitting && !(fitting >> i & 1u))
        i = (i + 1) % f->n_classes;
    return &f->classes[is_zero_size(&f->classes[i]) ? (i + 1) % f->n_classes : i];
}

/* Holds the classes a and b, unless they are NULL, and chooses the others. */
static struct choice make_choice(const struct factors *factors, const struct value_class *a,
                                 const struct value_class *b, int round, struct random_state *d)
{
    struct choice choice = { .held = { a, b }, .both_large = are_large(a, b), .round = round };
    for (int f = 0; f < factors->n; f++)
        choice.classes[f] = choose_class(&choice, &factors->all[f], d);
    return choice;
}

/* ---- Costs ---- */

/* Returns the elements of all tensors. Elements of outputs are weighted by the time of the
 * oracle, except for two large sizes. */
static int64_t find_cost(const struct choice *choice, const struct problem *problem)
{
    struct problem p = *problem;
    const struct signature *s = signature_of(p.kernel);
    int64_t weight = 1, cost = 0;
    if (s->freqs && !choice->both_large)
        weight = FREQS_WEIGHT;
    else if (s->uses_head && !choice->both_large)
        weight = GATHER_WEIGHT;
    problem_derive(&p);
    p.rows = p.rows > p.tokens ? p.rows : p.tokens; /* if it has any */
    for (EACH_TENSOR(row, s))
        if (tensor_present(&p, row))
            cost += tensor_elements(&p, row) * (row->role == ROLE_OUTPUT ? weight : 1);
    const bool accumulates = signature_argument(s, MEMBER(accumulate));
    return cost + (accumulates ? p.rows * p.batch * p.tokens / 2 : 0);
}

/* Halves the size that reduces the cost most. Returns false if all sizes are at their minimum. */
static bool halve_one_size(const struct factors *factors, const struct choice *choice,
                           struct problem *p)
{
    const int64_t old_cost = find_cost(choice, p);
    int64_t least_cost = old_cost;
    struct problem best = *p;
    for (int f = 0; f < factors->n; f++) {
        const struct factor *factor = &factors->all[f];
        const struct value_class *held = find_held(choice, factor);
        if (!factor->is_size)
            continue;
        const int64_t size = (int64_t)field_get(&factor->field, p, 0),
                      half = factor->is_even ? size / 4 * 2 : size / 2;
        int64_t least = factor->is_even ? 2 : 1;
        if (held && held->least > (double)least)
            least = (int64_t)held->least;
        if (size <= least || (held && held->kind == CLASS_ABOVE_BOUND))
            continue;
        struct problem smaller = *p;
        field_set(&factor->field, &smaller, (uint64_t)(half > least ? half : least));
        const int64_t cost = find_cost(choice, &smaller);
        if (cost < least_cost) {
            least_cost = cost;
            best = smaller;
        }
    }
    *p = best;
    return least_cost < old_cost;
}

/* Halves sizes until the cost is within its limit. With held sizes, up to four times the limit is allowed. */
static bool reduce_cost(const struct problem_set *set, const struct choice *choice,
                        struct problem *p)
{
    int64_t most = set->key.full ? FULL_COST : QUICK_COST;
    if (choice->both_large)
        most = choice->round ? LARGE_COST_AGAIN : LARGE_COST;
    while (find_cost(choice, p) > most)
        if (!halve_one_size(&set->factors, choice, p))
            return find_cost(choice, p) <= 4 * most;
    return true;
}

/* ---- Problems of given classes ---- */

/* Enlarges the table so that each position has a row. */
static void enlarge_table(struct problem *p)
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

/* Drops the scaling, the layout of axes or the numerics mode if the library lacks the combination. */
static void reconcile_freqs(struct problem *p, struct random_state *d)
{
    struct posenc_freqs_spec *freqs = &p->freqs;
    const bool any_layout = signature_of(p->kernel)->rotary;
    if (freqs->mrope_layout >= POSENC_MROPE_LAYOUT_QWEN2_VL_VISION && freqs->scaling &&
        any_layout && draw_one_in(d, 2))
        freqs->mrope_layout = POSENC_MROPE_LAYOUT_QWEN2_VL;
    if (freqs->mrope_layout >= POSENC_MROPE_LAYOUT_QWEN2_VL_VISION &&
        (any_layout || draw_one_in(d, 4))) {
        freqs->scaling = POSENC_SCALING_NONE;
        freqs->spacing = POSENC_SPACING_EXPONENT;
    }
    if (scaling_supports(freqs->scaling, freqs->numerics))
        return;
    if (draw_one_in(d, 2))
        freqs->scaling = POSENC_SCALING_NONE;
    else
        freqs->numerics = POSENC_NUMERICS_EXACT;
}

static bool can_be_drawn(const struct factor *factor, const struct problem *p)
{
    if (factor->row)
        return tensor_present(p, factor->row);
    return !factor->scalings || factor_matters(factor, p);
}

/* Draws field by field. A field keeps its default if the problem leaves the class no value. Sizes
 * come first, and are reduced before the first number that may depend on them. */
static bool draw_problem(const struct problem_set *set, const struct choice *choice,
                         struct random_state *d, struct arena *arena, struct problem *p)
{
    bool sizes_done = false;
    *p = problem_blank(set->factors.kernel);
    p->seed = draw_bits(d) >> 48;
    for (int f = 0; f < set->factors.n; f++) {
        const struct factor *factor = &set->factors.all[f];
        const bool is_number = !factor->classes->name;
        if (!sizes_done && factor->rule >= 0 && !factor->is_size && is_number) {
            problem_derive(p);
            reconcile_freqs(p, d);
            sizes_done = true;
            if (!reduce_cost(set, choice, p))
                return false;
        }
        if (factor->field.list == LIST_STRIDES)
            enlarge_table(p);
        if (can_be_drawn(factor, p))
            value_class_draw(choice->classes[f], p, d, arena);
    }
    enlarge_table(p);
    /* With whole wavelengths, times between positions hit exact zeros, for which only native kernels are right. */
    if (p->freqs.scaling == POSENC_SCALING_RESONANCE ||
        p->freqs.scaling == POSENC_SCALING_RESONANCE_YARN)
        p->time_step = 0.0;
    problem_derive(p);
    return true;
}

/* ---- Sets ---- */

/* Returns the entry of two classes in the table of pairs. */
static unsigned char *pair_entry(const struct problem_set *set, const struct value_class *a,
                                 const struct value_class *b)
{
    const struct value_class *first = set->factors.classes;
    return &set->pairs[a < b ? (a - first) * set->factors.n_classes + (b - first)
                             : (b - first) * set->factors.n_classes + (a - first)];
}

/* Records the classes of a problem and their pairs; of an empty one only sizes of 0. Returns true if a pair is new. */
static bool record_pairs(struct problem_set *set, const struct choice *choice,
                         const struct problem *p, bool empty)
{
    const struct value_class *held[MOST_FACTORS];
    int n = 0;
    bool any = false;
    for (int f = 0; f < set->factors.n; f++)
        if (value_class_holds(choice->classes[f], p) &&
            (!empty || is_zero_size(choice->classes[f])))
            held[n++] = choice->classes[f];
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            unsigned char *pair = pair_entry(set, held[i], held[k]);
            any = any || !*pair;
            set->n_classes_reached += i == k && !*pair;
            set->n_pairs_reached += i != k && !*pair;
            *pair = 1;
        }
    return any;
}

/* Draws a problem that may have the classes a and b. Adds it to the set if it is accepted and has a new pair, or two
 * large sizes; if b is NULL, it must have class a. Returns false if out of memory. */
static bool add_problem(struct problem_set *set, const struct value_class *a,
                        const struct value_class *b, int round, struct random_state *d)
{
    const struct choice choice = make_choice(&set->factors, a, b, round, d);
    struct problem p;
    if (!draw_problem(set, &choice, d, &set->arena, &p))
        return true;
    const enum acceptance accepted = accept_problem(&p);
    if (accepted == REJECTED || (!b && !value_class_holds(a, &p)))
        return true;
    const bool is_new = record_pairs(set, &choice, &p, accepted == ACCEPTED_EMPTY);
    if (!is_new && !(choice.both_large && accepted == ACCEPTED))
        return true;
    struct problem *grown =
        arena_grow(&set->arena, set->problems, set->n, &set->room, sizeof *grown);
    if (!grown)
        return false;
    set->problems = grown;
    grown[set->n++] = p;
    return true;
}

/* Makes two classes meet, two large sizes several times. */
static bool add_pair(struct problem_set *set, const struct value_class *a,
                     const struct value_class *b, struct random_state *d)
{
    int rounds = are_large(a, b) ? LARGE_ROUNDS : 0;
    if (rounds && kernel_has_freqs(set->key.kernel))
        rounds = LARGE_ROUNDS_WITH_FREQS;
    bool good = true;
    for (int i = 0; i < (set->key.full ? PAIR_TRIES : 1) && good; i++)
        good = (*pair_entry(set, a, b) && i >= rounds) || add_problem(set, a, b, i, d);
    return good;
}

/* Adds problems for all pairs of classes, in a quick run up to QUICK_PROBLEMS. Then adds problems for classes that are
 * still missing. Returns false if out of memory. */
static bool fill_set(struct problem_set *set)
{
    const struct value_class *classes = set->factors.classes;
    const int64_t n = set->factors.n_classes, all = n * n,
                  step = all % PAIR_STEP ? PAIR_STEP : 1;
    struct random_state d = { .seed = rng_u64(set->key.seed, (uint64_t)set->key.kernel) };
    int64_t at =
        draw_between(&d, 0, all - 1); /* so that quick runs of other seeds hold other pairs */
    for (int64_t i = 0; i < all && (set->key.full || set->n < QUICK_PROBLEMS);
         i++, at = (at + step) % all) {
        const struct value_class *a = &classes[at / n], *b = &classes[at % n];
        if (a < b && a->factor != b->factor && !add_pair(set, a, b, &d))
            return false;
    }
    for (const struct value_class *a = classes; a < classes + n; a++)
        for (int i = 0; i < CLASS_TRIES && !*pair_entry(set, a, a); i++)
            if (!add_problem(set, a, NULL, 0, &d))
                return false;
    return true;
}

bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem)
{
    struct random_state d = { .seed = rng_u64(set->key.seed,
                                              (i + 1) << 8 | (uint64_t)set->key.kernel) };
    for (int k = 0; k < DRAW_TRIES; k++) {
        const struct choice choice = make_choice(&set->factors, NULL, NULL, 0, &d);
        if (draw_problem(set, &choice, &d, arena, problem) &&
            accept_problem(problem) == ACCEPTED)
            return true;
    }
    return false;
}

struct problem_set *problem_set_get(const struct problem_set_key *key)
{
    static struct problem_set kept; /* without pairs: none */
    if (kept.pairs && kept.key.kernel == key->kernel && kept.key.seed == key->seed &&
        kept.key.full == key->full && kept.key.with_16_bits == key->with_16_bits)
        return &kept;
    arena_free(&kept.arena);
    kept = (struct problem_set){ .key = *key };
    factors_init(&kept.factors, key->kernel, key->with_16_bits, key->full);
    const size_t n = (size_t)kept.factors.n_classes;
    kept.pairs = arena_get(&kept.arena, n * n);
    if (kept.pairs && fill_set(&kept))
        return &kept;
    kept.pairs = NULL;
    return NULL;
}

bool problem_set_find_missing(const struct problem_set *set, const struct value_class **a,
                              const struct value_class **b)
{
    const struct value_class *classes = set->factors.classes,
                             *end = classes + set->factors.n_classes;
    *b = NULL;
    for (*a = classes; *a < end; ++*a)
        if (!*pair_entry(set, *a, *a))
            return true;
    for (*a = classes; *a < end; ++*a)
        for (*b = classes; *b < *a; ++*b)
            if (are_large(*a, *b) && !*pair_entry(set, *a, *b))
                return true;
    return false;
}
