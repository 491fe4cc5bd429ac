/*
 * What binds a row: of samples made up, the limit that takes longest; of every kernel, that something
 * binds it.  Of which loops, and over what: test_looped.c.
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

/* ---- Kernels ---- */

/* Further apart than this by noise no two times are, however busy the machine. */
static const double FAR = 30.0;

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
                              r->limit_ratio < FAR && r->limit_ratio >= 0.99 * r->roof_ratio;
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
    /* Where a block is not taken so many times as there are more of them, it is a factor of 64. */
    require(gbps[0] > 0.0 && gbps[1] < FAR * gbps[0] && gbps[0] < FAR * gbps[1],
            "64 times the angles take a loop 64 times as long");
    printf("# %.2f and %.2f GB/s\n", gbps[0], gbps[1]);
}

/* ---- A slow kernel ---- */

/* Not a call that is slow: each row takes as many times as long. */
static enum posenc_status often(const struct posenc_distance_args *args)
{
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 1000 && status == POSENC_OK; i++)
        status = posenc_backend_find("scalar")->distance_bias(args);
    return status;
}

static void slow_kernel(void)
{
    const struct posenc_backend slow = {
        .size = sizeof slow,
        .abi = POSENC_ABI,
        .name = "slow",
        .family = "native",
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
    require(seen.n == 1 && r->limit_ratio > 0.0 && r->limit_ratio < 1.0 / FAR,
            "a kernel that is slow in each row is not its own limit");
    if (seen.n == 1)
        printf("# %.0f ns, %.3f of %s\n", r->median_ns, r->limit_ratio, r->limit_resource);
}

int main(void)
{
    pick();
    for (int k = 0; k < RESOURCE_COUNT; k++)
        require(is_resource(resource_name[k]), "resources are those five");
    every_kernel();
    if (!bench_emulator()) {
        sizes();
        slow_kernel();
    }
    return tap_end();
}
