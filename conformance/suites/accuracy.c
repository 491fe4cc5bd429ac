/*
 * Suite of accuracy: results are compared with the oracle, within the error limits.
 *
 *   scan-<range>      tables at positions of a range: runs of consecutive ones, both ends of the range, powers of two
 *                     and their neighbours, and random ones, half of them negative; then times with a fraction
 *   search-<range>    tables (numerics mode exact) at positions whose angle is closest to a zero of the sine or
 *                     cosine: denominators of the convergents of 2 and 4 omega / 2 pi, for every pair
 *   random-<variant>  other kernels on the random data of each variant; tables in the variants that no scan covers:
 *                     16 bits, xPos, several axes
 *   all-p2e20         with options->exhaustive, every position from 0 to 2^20 - 1
 *   model<i>-...      each problem of options->problem (--model) at its real size
 *   presets           every distinct call of all presets in f32; with options->exhaustive in 16 bits, too
 *
 * The family "native" promises more: in a scan at least 99.99 % of its values are correctly rounded.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The family "native" may misround one value in so many. */
enum { VALUES_PER_MISROUNDED = 10000 };

static int64_t range_start(int range) { return range ? position_range_end(range - 1) : 0; }

/* ---- Scans ---- */

/* Draws of a set of frequencies, each with random numbers of its own. */
enum scan_stream { STREAM_ARRAY = 77, STREAM_TIMES = 78, STREAM_RUNS = 1000000 };

/* Returns the largest power of two up to p, or 1. */
static int64_t power_below(int64_t p)
{
    int64_t power = 1;
    while (power * 2 <= p)
        power *= 2;
    return power;
}

/* Draws n positions in [lo, hi), every other one negative. Each group of 8 has one near an end, one around a multiple of
 * 64, one around a power of two, and five random ones. */
static void draw_positions(int64_t *to, int64_t n, int64_t lo, int64_t hi, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = rng_u64(seed, (uint64_t)i);
        const int64_t beside = (int64_t)(bits >> 60) % 5 - 2;
        int64_t p = lo + (int64_t)((bits >> 8 & 0xffffffffffff) % (uint64_t)(hi - lo));
        if (i % 8 == 0)
            p = i % 16 ? hi - 1 - i / 16 : lo + i / 16;
        else if (i % 8 == 1)
            p = p / 64 * 64 + beside;
        else if (i % 8 == 2)
            p = power_below(p) + beside;
        p = p < lo ? lo : p >= hi ? hi - 1 : p;
        to[i] = i % 2 ? -p : p;
    }
}

/* Scans times with a fraction, which f32 has below 2^23. A quick run takes every other set. */
static void scan_times(struct comparison *c, struct problem p, int range)
{
    enum { MAX_TOKENS = 48 };
    const bool full = c->tally->run->options->full;
    const int64_t lo = range_start(range), end = position_range_end(range),
                  hi = end < 1 << 23 ? end : 1 << 23;
    int64_t times[MAX_TOKENS];
    p.tokens = full ? MAX_TOKENS : 4;
    if (lo >= hi || (!full && p.seed % 2))
        return;
    draw_positions(times, p.tokens, lo, hi - p.tokens, rng_u64(p.seed, STREAM_TIMES));
    p.positions = times;
    p.position_kind = POSENC_POSITIONS_F32;
    p.time_step = 0.37;
    compare_problem(c, &p, range);
}

/* Scans one set of frequencies: runs of consecutive positions (random, at the end, negative), an array, then times. */
static void scan_set(struct comparison *c, struct problem p, int range)
{
    enum { MAX_TOKENS = 256, RANDOM = 0, LAST = 1, NEGATIVE = 2, N_RUNS = 3 };
    static int64_t positions[MAX_TOKENS];
    const bool full = c->tally->run->options->full;
    const int64_t lo = range_start(range), hi = position_range_end(range);
    p.layout = (enum posenc_layout)(p.seed % 3);
    p.tokens = full ? 100 : 16;
    for (uint64_t run = RANDOM; run < (full ? N_RUNS : 1); run++) {
        const uint64_t bits = rng_u64(p.seed, STREAM_RUNS + run) >> 16;
        p.first = lo + (int64_t)(bits % (uint64_t)(hi - lo - p.tokens));
        if (run == LAST)
            p.first = hi - p.tokens;
        if (run == NEGATIVE)
            p.first = 1 - p.tokens - lo;
        compare_problem(c, &p, range);
    }
    p.tokens = full ? MAX_TOKENS : 12;
    draw_positions(positions, p.tokens, lo, hi, rng_u64(p.seed, STREAM_ARRAY));
    p.positions = positions;
    p.position_kind = POSENC_POSITIONS_I64;
    compare_problem(c, &p, range);
    scan_times(c, p, range);
}

/* Returns true if a quick run takes set i of the frequencies of a numerics mode: one of the first seven
 * in each range and one of the others; in the f32 modes a fifth of them. */
static bool is_quick_set(enum posenc_numerics numerics, int i, int sets, int range)
{
    enum { N_FIRST = 7 };
    if (numerics != POSENC_NUMERICS_EXACT)
        return i % N_RANGES == range % sets;
    return i < N_FIRST ? i == range : i - N_FIRST == range % (sets - N_FIRST);
}

static void check_scan(struct suite_run *run, enum posenc_kernel kernel,
                       enum posenc_numerics numerics, int range)
{
    struct tally t;
    struct comparison c;
    if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "accuracy", numerics_names[numerics],
                     "scan-%s", range_id[range]))
        return;
    compare_begin(&c, &t);
    int sets = 0, i = 0;
    for (EACH_CASE(line, CASES_SCANS))
        sets += line->problem.freqs.numerics == numerics;
    for (EACH_CASE(line, CASES_SCANS)) {
        struct problem p = line->problem;
        p.kernel = kernel;
        if (p.freqs.numerics == numerics &&
            (is_quick_set(numerics, i++, sets, range) || run->options->full))
            scan_set(&c, p, range);
    }
    compare_end(&c);
    const struct conf_result *r = &t.result;
    if (strcmp(run->backend->family, "native") == 0 &&
        r->misrounded > r->checked / VALUES_PER_MISROUNDED)
        require(&t, false,
                "%llu of %llu values not correctly rounded, limit %llu, worst %.4g ulp at %s",
                (unsigned long long)r->misrounded, (unsigned long long)r->checked,
                (unsigned long long)(r->checked / VALUES_PER_MISROUNDED), r->max, r->worst_at);
    tally_end(&t);
}

/* ---- Searches ---- */

/* Finds at most n denominators in [lo, hi) of the convergents of fraction / 2^128. No smaller position
 * comes closer to a multiple of the unit. Returns their number. */
static int find_convergents(u128 fraction, int64_t lo, int64_t hi, int64_t *to, int n)
{
    /* Euclid's algorithm on a = 2^128, which wraps to 0, and the fraction */
    u128 a = 0, b = fraction;
    int64_t previous_q = 0, q = 1;
    int found = 0;
    while (b != 0 && found < n) {
        u128 quotient = a == 0 ? -b / b + 1 : a / b, rest = a - quotient * b;
        if (quotient > (u128)hi)
            break;
        int64_t next = previous_q + (int64_t)quotient * q;
        if (next >= hi)
            break;
        previous_q = q;
        q = next;
        if (q >= lo && q > 0)
            to[found++] = q;
        a = b;
        b = rest;
    }
    return found;
}

enum { MOST_PAIRS = 512, PER_PAIR = 64, MOST_HARD = MOST_PAIRS * PER_PAIR };
/* Positions at which the angle of a pair comes close to a zero of its sine or cosine. */
struct hard_positions {
    int64_t position[MOST_HARD], pair[MOST_HARD];
    int64_t n;
};

/* Finds those of all pairs in a range; turn[i] is the frequency of pair i in turns. */
static void find_hard_positions(struct hard_positions *hard, uint64_t (*turn)[3], int64_t pairs,
                                int range)
{
    hard->n = 0;
    for (int64_t i = 0; i < pairs; i++) {
        u128 t = (u128)turn[i][0] << 64 | turn[i][1];
        for (int units = 1; units <= 2; units++) { /* zeros at half turns, then at quarters */
            int64_t found[PER_PAIR / 2];
            int n = find_convergents(t << units, range_start(range), position_range_end(range),
                                     found, PER_PAIR / 2);
            for (int k = 0; k < n; k++) {
                hard->position[hard->n] = (k + units) % 2 ? found[k] : -found[k];
                hard->pair[hard->n++] = i;
            }
        }
    }
}

/* Compares the pair of each position alone, not whole rows. */
static void compare_hard_pairs(struct comparison *c, const struct call *call,
                               const struct hard_positions *hard, uint64_t (*turn)[3])
{
    bool interleaved = call->n_outputs == 1;
    for (int64_t t = 0; t < hard->n; t++) {
        double sc[2];
        int64_t i = hard->pair[t];
        exact_sincos_turn(turn[i], hard->position[t], &sc[0], &sc[1]);
        if (interleaved)
            compare_values(c, 0, t, 2 * i, 2 * i + 1 < call->outputs[0].width ? 2 : 1, sc,
                           NULL);
        else {
            compare_values(c, 0, t, i, 1, &sc[1], NULL);
            compare_values(c, 1, t, i, 1, &sc[0], NULL);
        }
    }
}

static void search_set(struct comparison *c, struct problem p, int range,
                       struct hard_positions *hard)
{
    static uint64_t turn[MOST_PAIRS][3];
    if (p.freqs.scaling == POSENC_SCALING_YARN || p.freqs.scaling == POSENC_SCALING_LONGROPE)
        return; /* their attention factors are not 1 */
    int64_t pairs = exact_freqs(&p.freqs, MOST_PAIRS, turn, NULL, NULL);
    find_hard_positions(hard, turn, pairs, range);
    p.tokens = hard->n;
    p.positions = hard->position;
    p.position_kind = POSENC_POSITIONS_I64;
    const struct call *call = hard->n > 0 ? tally_run(c->tally, &p, NULL, NULL) : NULL;
    if (!call)
        return;
    compare_next(c, call, c->tally->run->backend, range);
    compare_hard_pairs(c, call, hard, turn);
    compare_end_call(c);
}

static void check_search(struct suite_run *run, enum posenc_kernel kernel, int range)
{
    struct tally t;
    struct comparison c;
    if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "accuracy", "exact", "search-%s",
                     range_id[range]))
        return;
    t.result.coverage = "searched";
    compare_begin(&c, &t);
    struct hard_positions *hard = malloc(sizeof *hard);
    require(&t, hard != NULL, "out of memory");
    for (EACH_CASE(line, CASES_SCANS)) {
        struct problem p = line->problem;
        p.kernel = kernel;
        if (p.freqs.numerics == POSENC_NUMERICS_EXACT && hard &&
            (run->options->full || strcmp(line->name, "dim-128") == 0))
            search_set(&c, p, range, hard);
    }
    free(hard);
    compare_end(&c);
    tally_end(&t);
}

/* ---- Variants, exhaustive scans ---- */

/* Returns true if scans do not cover a variant of a table. */
static bool is_beyond_scans(const struct problem *p)
{
    return p->dtype != POSENC_DTYPE_F32 || p->freqs.xpos_scale_base != 0.0 ||
           p->freqs.mrope_section[0] != 0;
}

/* Compares a problem with the oracle, as the case of this name, with the inputs of several seeds. */
static void check_accuracy(struct suite_run *run, struct problem p, const char *prefix,
                           const char *name, uint64_t seeds)
{
    struct tally t;
    struct comparison c;
    if (!tally_begin_problem(&t, run, &p, "accuracy", prefix, name))
        return;
    compare_begin(&c, &t);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        p.seed += 100 * seed;
        compare_problem(&c, &p, RANGE_FARTHEST);
    }
    compare_end(&c);
    tally_end(&t);
}

/* Checks the variants. A quick run takes a third of those in each f32 mode. */
static void check_variants(struct suite_run *run, enum posenc_kernel kernel)
{
    const uint64_t seeds = run->options->full && !is_table_kernel(kernel) ? 8 : 1;
    int v = 0, last = 0; /* number of the variant in its numerics mode; that mode */
    for (EACH_CASE(line, CASES_VARIANTS)) {
        const struct problem *p = &line->problem;
        const int numerics = (int)p->freqs.numerics;
        if (p->kernel != kernel)
            continue;
        v = numerics == last ? v : 0;
        last = numerics;
        if ((run->options->full || numerics == POSENC_NUMERICS_EXACT ||
             v % 3 == numerics % 3) &&
            (!is_table_kernel(kernel) || is_beyond_scans(p)))
            check_accuracy(run, *p, "random-", line->name, seeds);
        v++;
    }
}

/* Checks every position below 2^20, with the frequencies of the first model or, without one, the kernel's default. */
static void check_exhaustively(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct conf_options *options = run->options;
    struct problem p = problem_default(kernel);
    for (size_t i = 0; i < options->n_problems; i++)
        if (is_table_kernel(options->problem[i].kernel)) {
            p.freqs = options->problem[i].freqs;
            break;
        }
    struct tally t;
    struct comparison c;
    if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "accuracy", problem_numerics_name(&p),
                     "all-p2e20"))
        return;
    t.result.coverage = "exhaustive";
    compare_begin(&c, &t);
    p.tokens = 4096;
    for (p.first = 0; p.first < 1 << 20; p.first += p.tokens)
        compare_problem(&c, &p, 2);
    compare_end(&c);
    tally_end(&t);
}

void suite_accuracy(struct suite_run *run, enum posenc_kernel kernel)
{
    check_variants(run, kernel);
    for (int range = 0; is_table_kernel(kernel) && range < N_RANGES; range++) {
        for (int numerics = 0; numerics_names[numerics]; numerics++)
            check_scan(run, kernel, (enum posenc_numerics)numerics, range);
        check_search(run, kernel, range);
    }
    if (is_table_kernel(kernel) && run->options->exhaustive)
        check_exhaustively(run, kernel);
}

/* ---- Problems of the options ---- */

void suite_problem(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct problem *p = run->options->only;
    if (!p || p->kernel != kernel)
        return;
    if (!run->options->program) /* first, as a kernel's first call may write static memory */
        side_effects_sweep(run, p);
    check_accuracy(run, *p, "", "problem", 1);
    if (!run->options->program)
        memory_sweep(run, p);
}

void suite_model_id(const struct problem *p, size_t i, char id[96])
{
    const size_t n =
        (size_t)snprintf(id, 96, "%s/%s/%s/model%zu-", posenc_kernel_name(p->kernel),
                         dtype_names[p->dtype], problem_numerics_name(p), i);
    if (kernel_on_scores(p->kernel))
        snprintf(id + n, 96 - n, "q%" PRId64 "-k%" PRId64 "-d%" PRId64, p->queries, p->keys,
                 p->heads);
    else
        snprintf(id + n, 96 - n, "b%" PRId64 "-t%" PRId64 "-d%" PRId64, p->batch, p->tokens,
                 kernel_has_freqs(p->kernel) ? p->freqs.dim : p->dim);
}

/* Checks a call of the presets in a dtype. */
static void check_preset(struct tally *t, struct problem p, enum posenc_dtype dtype)
{
    p.dtype = dtype;
    t->problem = &p;
    const struct call *call = tally_run(t, &p, NULL, NULL);
    if (call)
        require_within_limits(t, call, t->run->backend);
    t->problem = NULL;
    tally_free_calls(t);
}

static void check_presets(struct suite_run *run, enum posenc_kernel kernel,
                          enum posenc_dtype dtype)
{
    const struct conf_options *options = run->options;
    const bool runs_dtype = dtype == POSENC_DTYPE_F32 || options->exhaustive;
    struct tally t;
    size_t n = 0;
    for (size_t i = 0; i < options->n_presets; i++)
        n += options->presets[i].kernel == kernel;
    if (n == 0 || !tally_begin(&t, run, kernel, dtype, "accuracy", NULL, "presets"))
        return;
    for (size_t i = 0; i < options->n_presets && runs_dtype; i++)
        if (options->presets[i].kernel == kernel)
            check_preset(&t, options->presets[i], dtype);
    if (!runs_dtype)
        tally_skip(&t, "16-bit calls of the presets: run --exhaustive, or --model M --full "
                       "--dtype f16,bf16");
    tally_end(&t);
}

void suite_model(struct suite_run *run, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < run->options->n_problems; i++) {
        const struct problem *p = &run->options->problem[i];
        char id[96];
        suite_model_id(p, i, id);
        if (p->kernel == kernel)
            check_accuracy(run, *p, "", strrchr(id, '/') + 1, 1);
    }
    for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++)
        check_presets(run, kernel, (enum posenc_dtype)dtype);
}
