/*
 * What binds a row: of samples made up, the limit that takes longest; of every kernel, that something
 * binds it.  That the bare loops do what their names say: test_bare.c.
 */
#include "emulation.h"
#include "limits.h"
#include "conformance/problem/signature.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Samples made up ---- */

enum { ROUNDS = 9, ROW, OTHER, ROOF, CONVERSION, LOOP, PART, ENTERED, ENTERED_LOOP, MADE_UP };

/* A race of two backends, whose call of the second is not timed without rows. */
struct made_up {
    struct timed_call timed;
    struct roof_variant roofs[3];
    struct contender contenders[MADE_UP];
    double samples[MADE_UP * ROUNDS];
    struct turns turns;
};

static void make_up(struct made_up *m, const double times[MADE_UP])
{
    static const struct posenc_backend row = { .name = "row" }, other = { .name = "other" };
    const enum roof_kind kinds[] = { ROOF_STORE, ROOF_FROM_F64, ROOF_BARE_table };
    *m = (struct made_up){ .timed = { .roof = ROOF_STORE, .part_share = 0.25 } };
    m->timed.conversion.kind = ROOF_FROM_F64;
    m->timed.work.kind = ROOF_BARE_table;
    m->turns = (struct turns){
        .contenders = m->contenders, .n = MADE_UP, .rounds = ROUNDS, .samples = m->samples
    };
    for (int k = 0; k < MADE_UP; k++) {
        m->contenders[k] = (struct contender){ .timed = &m->timed, .outcome = BENCH_LACKS_IT };
        for (int r = 0; r < ROUNDS; r++)
            m->samples[k * ROUNDS + r] = times[k] * (1.0 + 0.01 * r);
        if (times[k] > 0.0)
            m->contenders[k].outcome = BENCH_TIMED;
    }
    for (int k = 0; k < 3; k++) {
        m->roofs[k] = (struct roof_variant){ .kind = kinds[k], .name = "paper" };
        m->contenders[ROOF + k].roof = &m->roofs[k];
    }
    m->contenders[CONVERSION].looped = &m->timed.conversion;
    m->contenders[LOOP].looped = &m->timed.work;
    m->contenders[ROW].backend = m->contenders[PART].backend = &row;
    m->contenders[OTHER].backend = &other;
    m->contenders[PART].part = true;
    m->contenders[ENTERED].roof = &m->roofs[0];
    m->contenders[ENTERED].entered = true;
    m->contenders[ENTERED_LOOP].roof = &m->roofs[2];
    m->contenders[ENTERED_LOOP].looped = &m->timed.work;
    m->contenders[ENTERED_LOOP].entered = true;
}

struct bound {
    const char *sentence;
    double times[MADE_UP];
    enum resource resource;
    double share;
};

static const struct bound bounds[] = {
    { "the roof binds where it takes longest",
      { [ROW] = 100.0, [ROOF] = 80.0, [CONVERSION] = 70.0, [LOOP] = 60.0, [PART] = 25.0 },
      RESOURCE_MEMORY,
      0.8 },
    { "a conversion binds where it does",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 70.0, [LOOP] = 60.0 },
      RESOURCE_CONVERSION,
      0.7 },
    { "and a bare loop",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 70.0, [LOOP] = 90.0, [PART] = 80.0 },
      RESOURCE_PORTS,
      0.9 },
    { "a call binds by what is left of it without rows",
      { [ROW] = 100.0, [ROOF] = 60.0, [LOOP] = 70.0, [PART] = 85.0 },
      RESOURCE_CALLS,
      0.8 },
    { "which is nothing where each row takes long",
      { [ROW] = 100.0, [ROOF] = 1.0, [PART] = 25.0 },
      RESOURCE_MEMORY,
      0.01 },
    { "and nothing where a part takes longer than the whole",
      { [ROW] = 100.0, [ROOF] = 60.0, [PART] = 120.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "a loop slower than the row is no limit",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 50.0, [LOOP] = 120.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "neither is one slower than another backend",
      { [ROW] = 100.0, [OTHER] = 70.0, [ROOF] = 60.0, [LOOP] = 90.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "but noise is not held against it",
      { [ROW] = 100.0, [OTHER] = 92.0, [ROOF] = 60.0, [LOOP] = 95.0 },
      RESOURCE_PORTS,
      0.95 },
    { "a roof counts with the checks before it",
      { [ROW] = 100.0, [ROOF] = 60.0, [LOOP] = 70.0, [PART] = 25.0, [ENTERED] = 80.0 },
      RESOURCE_MEMORY,
      0.8 },
    { "which make no other loop longer",
      { [ROW] = 100.0, [ROOF] = 20.0, [LOOP] = 60.0, [ENTERED] = 30.0 },
      RESOURCE_PORTS,
      0.6 },
    { "and are no roof by themselves",
      { [ROW] = 100.0, [ROOF] = 60.0, [ENTERED] = 50.0 },
      RESOURCE_MEMORY,
      0.5 },
    { "a loop counts without checks where it is slower than the row with them",
      { [ROW] = 100.0, [ROOF] = 20.0, [LOOP] = 90.0, [ENTERED_LOOP] = 130.0 },
      RESOURCE_PORTS,
      0.9 },
    { "a roof that is not reached counts even so",
      { [ROW] = 100.0, [ROOF] = 130.0 },
      RESOURCE_MEMORY,
      1.3 },
};

static void pick(void)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        static struct made_up m;
        make_up(&m, bounds[i].times);
        const struct limit limit = limits_of(&m.turns, &m.contenders[ROW]);
        const bool good = limit.resource == bounds[i].resource && limit.kind && limit.variant &&
                          fabs(limit.share - bounds[i].share) < 1e-9 &&
                          fabs(limit.seconds - bounds[i].share * 104.0) < 1e-6;
        require(good, bounds[i].sentence);
        if (!good)
            printf("# %g of %s\n", limit.share, resource_name[limit.resource]);
    }
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1.0 + fabs(b)); }

/* ---- Kernels ---- */

struct seen {
    struct bench_result result[2];
    int n;
};

static void keep(void *user, const struct bench_result *result)
{
    struct seen *seen = user;
    if (seen->n < 2)
        seen->result[seen->n++] = *result;
}

static bool is_resource(const char *name)
{
    static const char *const names[] = { "memory", "conversion", "ports", "latency", "calls" };
    bool known = false;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        known = known || strcmp(name, names[i]) == 0;
    return known;
}

/* Times a problem on the one backend; what is seen has no result where it is not timed. */
static struct seen timed(struct problem problem, const struct posenc_backend *backend,
                         int threads)
{
    struct bench_case c = { .id = "a case", .footprint = "L1", .problem = problem };
    struct bench_options options = { .budget_s = 0.02, .seed = 1, .threads = threads };
    struct seen seen = { .n = 0 };
    char error[256];
    if (bench_run(&c, 1, &backend, 1, &options, keep, &seen, error) != 0)
        seen.n = 0;
    return seen;
}

/* The work that a kernel's signature names is a loop of its own. */
static bool has_loop(const struct problem *problem)
{
    const bool works = signature_of(problem->kernel)->work > WORK_NONE;
    struct call call;
    if (call_create(&call, problem, &memory_plain) != POSENC_OK)
        return false;
    const struct looped work = looped_work(&call);
    call_destroy(&call);
    return works
               ? work.kind >= ROOF_BARE_table && work.kind < ROOF_KIND_COUNT && work.floats > 0
               : work.kind == ROOF_KIND_COUNT;
}

static void every_kernel(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct problem problem =
            problem_realistic((enum posenc_kernel)k, POSENC_F32, 16384);
        char sentence[96];
        snprintf(sentence, sizeof sentence, "%s has the loop of its work",
                 posenc_kernel_name((enum posenc_kernel)k));
        require(has_loop(&problem), sentence);
        if (bench_emulator())
            continue;
        for (int threads = 1; threads < 3; threads++) {
            const struct seen seen = timed(problem, posenc_backend_find("scalar"), threads);
            const struct bench_result *r = &seen.result[0];
            const bool good = seen.n == 1 && is_resource(r->limit_resource) && r->limit_kind &&
                              r->limit_variant && r->limit_gbps > 0.0 && r->limit_ratio > 0.0 &&
                              r->limit_ratio < 1.5 && r->limit_ratio >= 0.99 * r->roof_ratio;
            snprintf(sentence, sizeof sentence, "%s, %d threads: something binds it",
                     posenc_kernel_name((enum posenc_kernel)k), threads);
            require(good, sentence);
            if (seen.n == 1)
                printf("# %.2f of %s (%s)\n", r->limit_ratio,
                       r->limit_resource ? r->limit_resource : "-",
                       r->limit_kind ? r->limit_kind : "-");
        }
    }
}

/* ---- Loops do a part of the work ---- */

static void samples(void)
{
    static const int64_t floats[] = { 1, 2048, 5000, 1 << 26 };
    bool all = true;
    for (int threads = 1; threads < 4; threads++)
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            const int64_t row = i % 2 == 0 ? 0 : 91,
                          block = row ? LOOPED_BLOCK / row * row : LOOPED_BLOCK;
            const struct looped looped = { .kind = ROOF_BARE_line,
                                           .floats = floats[i],
                                           .wide = true,
                                           .row = row,
                                           .at_once = 1 };
            double times = 0.0;
            const int64_t blocks = looped_sample(&looped, threads, &times);
            all = all && blocks > 0 && blocks <= 32 &&
                  near(times * (double)(blocks * block * threads), (double)floats[i]);
        }
    require(all, "a sample of a loop, so many times for each thread, is all of the call");
}

/* The loop of a kind by plain C, which runs on every CPU. */
static const struct roof_variant *scalar_loop(enum roof_kind kind)
{
    for (size_t i = 0; roof_variant_at(i); i++)
        if (roof_variant_at(i)->kind == kind && strcmp(roof_variant_at(i)->name, "scalar") == 0)
            return roof_variant_at(i);
    return NULL;
}

/* Slopes onto the scores of a call: all that loops of whole blocks cover, each once, and nothing else. */
static bool goes_over_scores(int threads)
{
    struct problem problem = problem_default(POSENC_KERNEL_alibi_add);
    problem.heads = 3;
    problem.queries = 64;
    problem.keys = 91;
    problem.in_place = true;
    problem_settle(&problem);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(threads);
    bool right = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    right = right && timed_call_open(&timed, &call, team, threads);
    const int64_t n = right ? timed.n[0] : 0;
    float *before = right ? malloc((size_t)n * sizeof *before) : NULL;
    int64_t written = 0;
    if (before) {
        const float *scores = timed.dst[0];
        memcpy(before, scores, (size_t)n * sizeof *before);
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(ROOF_BARE_slope), &timed.work);
        contender_call(&c);
        for (int64_t i = 0, at = 0; i < n; i++) {
            const bool changed = memcmp(&scores[i], &before[i], sizeof *before) != 0;
            written += changed;
            at = changed && i > 0 && (scores[i] - before[i]) < 0.3f ? 0
                                                                    : at; /* a thread's first */
            right = right && (!changed || near((double)scores[i] - (double)before[i],
                                               0.25 * (double)(at + 1)));
            at = at + 1 < problem.keys ? at + 1 : 0;
        }
        right = right && c.blocks == 0 && written > n - threads * LOOPED_BLOCK &&
                near(c.times * (double)written, (double)timed.work.floats);
    }
    free(before);
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return right && before;
}

/* Whether a kernel's loop goes over its tensors, of so many bytes, each of those that are written. */
static bool is_over_tensors(enum posenc_kernel kernel, size_t bytes)
{
    const struct problem problem = problem_realistic(kernel, POSENC_F32, bytes);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(1);
    bool over = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    if (over && timed_call_open(&timed, &call, team, 1)) {
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(timed.work.kind), &timed.work);
        for (int o = 0; o < 2 && timed.n[o] > 0; o++)
            timed.dst[o][0] = -77.0f;
        contender_call(&c);
        over = c.blocks == 0;
        for (int o = 0; o < 2 && timed.n[o] > 0; o++)
            over = over && timed.dst[o][0] != -77.0f;
    }
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return over;
}

static enum roof_kind loop_of(enum posenc_kernel kernel)
{
    const struct problem problem = problem_default(kernel);
    struct call call;
    const bool made = call_create(&call, &problem, &memory_plain) == POSENC_OK;
    const enum roof_kind kind = made ? looped_work(&call).kind : ROOF_KIND_COUNT;
    if (made)
        call_destroy(&call);
    return kind;
}

/* The loop of a table whose rows are longer than a block: in each, sines are half a row from cosines. */
static bool goes_in_rows(void)
{
    enum { TOKENS = 24, DIM = 512 };
    struct problem problem = problem_default(POSENC_KERNEL_sinusoidal);
    problem.batch = 1;
    problem.tokens = TOKENS;
    problem.freqs.dim = DIM;
    problem.layout = POSENC_SIN_COS;
    problem_settle(&problem);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(1);
    bool right = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    right = right && timed_call_open(&timed, &call, team, 1) && timed.n[0] == TOKENS * DIM;
    if (right) {
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(timed.work.kind), &timed.work);
        memset(timed.dst[0], 0, TOKENS * DIM * sizeof *timed.dst[0]);
        contender_call(&c);
        right = c.blocks == 0 && near(c.times, 1.0);
        for (int64_t i = 0; i < timed.n[0]; i += i % (DIM / 2) == DIM / 2 - 1 ? DIM / 2 + 1 : 1)
            right =
                right &&
                near(hypot((double)timed.dst[0][i], (double)timed.dst[0][i + DIM / 2]), 1.0);
    }
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return right;
}

static void tensors(void)
{
    for (int threads = 1; threads < 4; threads++)
        require(goes_over_scores(threads), "a loop goes over the tensors of its call, once");
    require(is_over_tensors(POSENC_KERNEL_rope_table, 1 << 16), "of a table's two, too");
    require(loop_of(POSENC_KERNEL_rope_half) == ROOF_BARE_turn &&
                loop_of(POSENC_KERNEL_rope_interleaved) == ROOF_BARE_pairs,
            "of halves one that turns halves, of interleaved pairs one that swaps them,");
    require(goes_in_rows(), "in rows as long as the call's,");
    require(!is_over_tensors(POSENC_KERNEL_alibi, 1 << 12),
            "but not what is less than a block");
    require(!is_over_tensors(POSENC_KERNEL_rope_qk_norm, 1 << 16), "nor what would grow,");
    require(!is_over_tensors(POSENC_KERNEL_relative_sum, 1 << 16), "nor what reads more,");
    require(bench_in_caches(4096) && !bench_in_caches(SIZE_MAX), "nor what no cache holds");
}

/* Nothing binds f32 angles but their loop, whose rate is one at all sizes. */
static void sizes(void)
{
    double gbps[2] = { 0.0 };
    for (int i = 0; i < 2; i++) {
        struct problem problem =
            problem_realistic(POSENC_KERNEL_sinusoidal, POSENC_F32, i == 0 ? 32768 : 2097152);
        problem.freqs.profile = POSENC_HF_F32;
        const struct seen seen = timed(problem, posenc_backend_find("libm"), 1);
        const struct bench_result *r = &seen.result[0];
        if (seen.n == 1 && r->limit_kind && strcmp(r->limit_kind, "angles") == 0)
            gbps[i] = r->limit_gbps;
    }
    require(gbps[0] > 0.0 && gbps[1] < 1.5 * gbps[0] && gbps[0] < 1.5 * gbps[1],
            "64 times the angles take a loop 64 times as long");
    printf("# %.2f and %.2f GB/s\n", gbps[0], gbps[1]);
}

/* ---- A slow kernel ---- */

/* Not a call that is slow: each row takes as many times as long. */
static enum posenc_status often(const struct posenc_distance_args *args)
{
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 8 && status == POSENC_OK; i++)
        status = posenc_backend_find("scalar")->distance_bias(args);
    return status;
}

static void slow_kernel(void)
{
    const struct posenc_backend slow = {
        .size = sizeof slow,
        .abi = POSENC_ABI,
        .name = "slow",
        .family = "template",
        .description = "does all rows again and again",
        .needs = "",
        .distance_bias = often,
    };
    struct problem problem = problem_default(POSENC_KERNEL_distance_bias);
    problem.heads = 1;
    problem.queries = 16;
    problem.keys = 300;
    problem_settle(&problem);
    const struct seen seen = timed(problem, &slow, 1);
    const struct bench_result *r = &seen.result[0];
    require(seen.n == 1 && r->limit_ratio > 0.0 && r->limit_ratio < 0.25,
            "a kernel that is slow in each row is not its own limit");
    if (seen.n == 1)
        printf("# %.0f ns, %.3f of %s\n", r->median_ns, r->limit_ratio, r->limit_resource);
}

int main(void)
{
    pick();
    for (int k = 0; k < RESOURCE_COUNT; k++)
        require(is_resource(resource_name[k]), "resources are those five");
    samples();
    tensors();
    every_kernel();
    if (!bench_emulator()) {
        sizes();
        slow_kernel();
    }
    return tap_end();
}
