/*
 * What binds a row: of samples made up, the limit that takes longest; of bare loops, that each does
 * what its name says, so that it is one; of every kernel, that something binds it.
 */
#include "emulation.h"
#include "limits.h"
#include "conformance/problem/signature.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Samples made up ---- */

enum { ROUNDS = 9, ROW, OTHER, ROOF, CONVERSION, LOOP, PART, MADE_UP };

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

/* ---- Bare loops ---- */

enum { MOST_FLOATS = 2 * BARE_STEP, GUARD = 64 };
static float out[MOST_FLOATS + GUARD], added[MOST_FLOATS + GUARD], x[MOST_FLOATS];

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1.0 + fabs(b)); }

/* Each of the cosines and sines of the eight angles of a group, as often as any other. */
static bool is_table(const float *values, int n)
{
    int met[16] = { 0 };
    bool each = true;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < 8; a++) {
            const double angle = 0.55 + 0.05 * a;
            met[a] += near((double)values[i], cos(angle));
            met[8 + a] += near((double)values[i], sin(angle));
        }
    for (int k = 0; k < 16; k++)
        each = each && met[k] == n / 16;
    return each;
}

static bool is_by_turns(const float *values, int n)
{
    bool pairs = is_table(values, n);
    for (int i = 0; i < n; i += 2)
        pairs = pairs && near(hypot((double)values[i], (double)values[i + 1]), 1.0) &&
                (double)values[i] < 0.785;
    return pairs;
}

static bool is_angles(const float *values, int n)
{
    double squares = 0.0, most = 0.0;
    for (int i = 0; i < n; i++) {
        squares += (double)values[i] * (double)values[i];
        most = fmax(most, fabs((double)values[i]));
    }
    return near(squares, n / 2) && most <= 1.0 && most > 0.9;
}

static bool is_turned(const float *values, int n)
{
    bool all = true;
    for (int i = 0; i < n / 2; i++) {
        const double a = (double)x[i], b = (double)x[i + n / 2];
        all = all && near((double)values[i], 0.8 * a - 0.6 * b) &&
              near((double)values[i + n / 2], 0.8 * b + 0.6 * a);
    }
    return all;
}

/* Of equal numbers, 0.75: halves are as 0.8 - 0.6 and 0.8 + 0.6, and grow with the root of what is
 * added up in a lane. */
static bool is_normed(const float *values, int n)
{
    const double lanes = 1024.0 / pow((double)values[0] / (0.2 * 1.5 * 0.75 * 0.75), 2.0);
    bool all = lanes > 0.99 && lanes < 64.01;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i],
                          (double)values[0] * (i % BARE_STEP < BARE_STEP / 2 ? 1.0 : 7.0));
    return all;
}

static bool is_slope(const float *values, int row, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i], 0.25 * (i % row + 1));
    return all;
}

/* Each row a key later than the one before, from the 32nd on. */
static bool is_line(const float *values, int row, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all = all && near((double)values[i], (i % row + 64 - i / row % 32) % 8 + 1);
    return all;
}

/* Four heads beside each other, of sixteen rows. */
static bool is_fetch(const float *values, int n)
{
    const int head = n / 4;
    int met[2] = { 0 };
    bool all = true;
    for (int i = 0; i < head; i++) {
        met[0] += near((double)values[i], 1.0);
        met[1] += near((double)values[i], 5.0);
        for (int h = 1; h < 4; h++)
            all = all && near((double)values[h * head + i], (double)values[i] + h);
    }
    return all && met[0] == head / 2 && met[1] == head / 2;
}

static bool is_terms(const float *values, int n, double factor)
{
    bool all = true;
    for (int i = 0; i < n; i++) {
        const int column = (i % 64 + i % BARE_STEP / 64) / 2;
        all = all && near((double)values[i], factor * (column % 8 + 1));
    }
    return all;
}

static bool is_sums(const float *values, int n, int rows)
{
    bool all = true;
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int k = 0; k < n / rows; k++)
            sum += x[r * (n / rows) + k];
        all = all && memcmp(&values[r], &sum, sizeof sum) == 0;
    }
    return all;
}

static bool does_its_work(enum roof_kind kind, const float *values, int n)
{
    switch (kind) {
    case ROOF_BARE_table:
        return is_table(values, n);
    case ROOF_BARE_by_turns:
        return is_by_turns(values, n);
    case ROOF_BARE_angles:
        return is_angles(values, n);
    case ROOF_BARE_turn:
        return is_turned(values, n);
    case ROOF_BARE_norm:
        return is_normed(values, n);
    case ROOF_BARE_slope:
        return is_slope(values, n, n);
    case ROOF_BARE_line:
        return is_line(values, 256, n);
    case ROOF_BARE_fetch:
        return is_fetch(values, n);
    case ROOF_BARE_c2p:
    case ROOF_BARE_p2c:
        return is_terms(values, n, 0.5);
    case ROOF_BARE_both:
        return is_terms(values, n, 1.0);
    default:
        return is_sums(values, n, kind == ROOF_BARE_sums ? 8 : 1);
    }
}

/* Those read x alone. */
static bool adds_nothing(enum roof_kind kind)
{
    return kind == ROOF_BARE_turn || kind == ROOF_BARE_norm || kind == ROOF_BARE_sums ||
           kind == ROOF_BARE_chain;
}

static bool is_right(const struct roof_variant *loop, int n)
{
    const bool alone = adds_nothing(loop->kind);
    const int written = loop->kind == ROOF_BARE_sums    ? 8
                        : loop->kind == ROOF_BARE_chain ? 1
                                                        : n;
    bool right = true;
    for (int i = 0; i < MOST_FLOATS; i++)
        x[i] = loop->kind == ROOF_BARE_norm ? 0.75f : 0.5f + (float)(i % 37) / 64.0f;
    for (int i = 0; i < MOST_FLOATS + GUARD; i++)
        out[i] = added[i] = -77.0f;
    loop->function(out, alone ? x : NULL, NULL, (size_t)n);
    right = does_its_work(loop->kind, out, n);
    for (int i = written; i < n + GUARD && i < MOST_FLOATS + GUARD; i++)
        right = right && out[i] == -77.0f;
    if (alone)
        return right;
    loop->function(added, x, NULL, (size_t)n);
    for (int i = 0; i < n; i++)
        right = right && near((double)added[i], (double)out[i] + (double)x[i]);
    return right && added[n] == -77.0f;
}

/* Biases in rows that are given, and nothing behind the last whole one. */
static bool is_right_in_rows(const struct roof_variant *loop, int row, int n)
{
    const int whole = n / row * row;
    bool right = true;
    for (int reads = 0; reads < 2; reads++) {
        for (int i = 0; i < MOST_FLOATS + GUARD; i++)
            out[i] = -77.0f;
        for (int i = 0; i < MOST_FLOATS; i++)
            x[i] = reads ? (float)(i % 37) / 64.0f : 0.0f;
        loop->function(out, reads ? x : NULL, out + row, (size_t)n);
        for (int i = 0; i < whole; i++)
            out[i] -= x[i];
        right = right && (loop->kind == ROOF_BARE_slope ? is_slope(out, row, whole)
                                                        : is_line(out, row, whole));
        for (int i = whole; i < n + GUARD; i++)
            right = right && out[i] == -77.0f;
    }
    return right;
}

static void bare_loops(void)
{
    char sentence[96];
    bool kinds[ROOF_KIND_COUNT] = { false }, all = true;
    for (size_t i = 0; roof_variant_at(i); i++) {
        const struct roof_variant *loop = roof_variant_at(i);
        if (loop->kind < ROOF_BARE_table || !loop->runs())
            continue;
        kinds[loop->kind] = true;
        snprintf(sentence, sizeof sentence, "the loop %s, %s does what it is named after",
                 roof_kind_name[loop->kind], loop->name);
        require(is_right(loop, BARE_STEP) && is_right(loop, 2 * BARE_STEP), sentence);
        if (loop->kind != ROOF_BARE_slope && loop->kind != ROOF_BARE_line)
            continue;
        bool in_rows = true;
        for (int row = 1; row < 100; row += row < 20 ? 1 : 13)
            in_rows = in_rows && is_right_in_rows(loop, row, 2 * BARE_STEP);
        snprintf(sentence, sizeof sentence, "the loop %s, %s does so in rows of any length",
                 roof_kind_name[loop->kind], loop->name);
        require(in_rows, sentence);
    }
    for (int kind = ROOF_BARE_table; kind < ROOF_KIND_COUNT; kind++)
        all = all && kinds[kind] && roof_kind_name[kind];
    require(all, "each kind of loop has one that runs here, and a name");
}

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
            const struct looped looped = { ROOF_BARE_line, floats[i], false, true, row };
            double times = 0.0;
            const int64_t blocks = looped_sample(&looped, threads, &times);
            all = all && blocks > 0 && blocks <= 32 &&
                  near(times * (double)(blocks * block * threads), (double)floats[i]);
        }
    require(all, "a sample of a loop, so many times for each thread, is all of the call");
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
    bare_loops();
    for (int k = 0; k < RESOURCE_COUNT; k++)
        require(is_resource(resource_name[k]), "resources are those five");
    samples();
    every_kernel();
    if (!bench_emulator()) {
        sizes();
        slow_kernel();
    }
    return tap_end();
}
