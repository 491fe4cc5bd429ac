/*
 * Tests limits: the lower-bound loop of a call and the tensors that it goes over; the limit that takes longest, in
 * samples that are made up; and for every kernel, that some limit binds it. Loops themselves are tested in
 * test_bounds.c.
 */
#include "base/machine/machine.h"
#include "bench/harness.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1.0 + fabs(b)); }

/* ---- Which loops ---- */

static enum roofline_kind loop_of(const struct problem *problem)
{
    struct call call;
    if (call_create(&call, problem, &tensor_allocator_default) != POSENC_OK)
        return ROOFLINE_KIND_COUNT;
    const struct loop_work work = loop_work_of_kernel(&call);
    call_destroy(&call);
    return work.floats > 0 ? work.kind : ROOFLINE_KIND_COUNT;
}

static void test_rotation_loops(void)
{
    static const enum roofline_kind kinds[2][3] = {
        { BOUND_rotate, BOUND_rotate_f16, BOUND_rotate_bf16 },
        { BOUND_rotate_pairs, BOUND_rotate_pairs_f16, BOUND_rotate_pairs_bf16 }
    };
    static const enum posenc_dtype dtypes[] = { POSENC_DTYPE_F32, POSENC_DTYPE_F16,
                                                POSENC_DTYPE_BF16 };
    for (int pairs = 0; pairs < 2; pairs++)
        for (int d = 0; d < 3; d++) {
            struct problem problem = problem_default(pairs ? POSENC_KERNEL_ROPE_INTERLEAVED
                                                           : POSENC_KERNEL_ROPE_HALF);
            problem.dtype = dtypes[d];
            problem_derive(&problem);
            require(loop_of(&problem) == kinds[pairs][d],
                    "a rotation has the loop of its pairs and of its dtype");
        }
}

static void test_sample_scale(void)
{
    static const int64_t floats[] = { 1, 2048, 5000, 1 << 26 };
    bool all = true;
    for (int threads = 1; threads < 4; threads++)
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            const int64_t row = i % 2 == 0 ? 0 : 91,
                          block = row ? LOOP_BLOCK / row * row : LOOP_BLOCK;
            const struct loop_work work = {
                .kind = BOUND_line, .floats = floats[i], .wide = true, .row = row, .at_once = 1
            };
            double times = 0.0;
            const int64_t blocks = loop_sample_blocks(&work, threads, &times);
            all = all && blocks > 0 && blocks <= 32 &&
                  near(times * (double)(blocks * block * threads), (double)floats[i]);
        }
    require(all, "a sample of a loop, so many times for each thread, is all of the call");
}

/* ---- What loops go over ---- */

/* A call whose loops can be run; `before`: its first output as it was made; NULL: it failed. */
struct opened {
    struct call call;
    struct timed_call timed;
    struct team *team;
    float *before;
};

static void open_timed_call(struct opened *o, const struct problem *problem, int threads)
{
    *o = (struct opened){ .team = team_create(threads) };
    if (!o->team || call_create(&o->call, problem, &tensor_allocator_default) != POSENC_OK ||
        !timed_call_open(&o->timed, &o->call, o->team, threads))
        return;
    o->before = malloc((size_t)o->timed.n[0] * sizeof(float) + 1);
    if (o->before)
        memcpy(o->before, o->timed.dst[0], (size_t)o->timed.n[0] * sizeof(float));
}

static void close_timed_call(struct opened *o)
{
    free(o->before);
    timed_call_close(&o->timed);
    call_destroy(&o->call);
    team_destroy(o->team);
}

/* Runs the loop of the call's work by plain C once, over its tensors if it can go there. */
static struct contender run_loop(const struct opened *o, bool in_tensors)
{
    size_t i = 0;
    while (roofline_variant_at(i)->kind != o->timed.work.kind ||
           strcmp(roofline_variant_at(i)->name, "scalar") != 0)
        i++;
    struct contender c = (in_tensors ? contender_of_loop_in_tensors : contender_of_loop)(
        &o->timed, roofline_variant_at(i), &o->timed.work);
    contender_call(&c);
    return c;
}

/* Adds slopes to the scores of a call: all that loops of whole blocks cover, each once, nothing else. */
static void test_loop_over_scores(int threads)
{
    struct problem problem = problem_default(POSENC_KERNEL_ALIBI_ADD);
    problem.heads = 3;
    problem.queries = 64;
    problem.keys = 91;
    problem.in_place = true;
    problem_derive(&problem);
    struct opened o;
    open_timed_call(&o, &problem, threads);
    bool right = true;
    int64_t written = 0;
    require(o.before, "a call with scores is opened");
    if (o.before) {
        const float *scores = o.timed.dst[0];
        const struct contender c = run_loop(&o, true);
        for (int64_t i = 0, at = 0; i < o.timed.n[0]; i++) {
            const bool changed = memcmp(&scores[i], &o.before[i], sizeof *scores) != 0;
            written += changed;
            /* The rows of each thread begin at distance 1, whose bias is 0.25. */
            if (changed && i > 0 && scores[i] - o.before[i] < 0.3f)
                at = 0;
            right = right && (!changed || near((double)scores[i] - (double)o.before[i],
                                               0.25 * (double)(at + 1)));
            at = at + 1 < problem.keys ? at + 1 : 0;
        }
        require(right, "each score that a loop changes gets the bias of its distance, once");
        require(o.timed.work.kind == BOUND_slope && c.blocks == 0,
                "the loop of slopes goes over the scores of its call");
        require(written > o.timed.n[0] - threads * LOOP_BLOCK,
                "a loop goes over all scores that whole blocks cover");
        require(near(c.times * (double)written, (double)o.timed.work.floats),
                "a loop is scaled from the scores that it covers to all");
    }
    close_timed_call(&o);
}

/* Returns how many of n interleaved pairs of 16 bits are rotated by (0.8, 0.6), a pair in the room of each float; the
 * others are as they were. */
static int64_t count_rotated_pairs(enum posenc_dtype type, const float *before,
                                   const float *after, int64_t n, bool *right)
{
    int64_t rotated = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)storage_get(type, before + i, 0),
                     b = (double)storage_get(type, before + i, 1),
                     first = (double)storage_get(type, after + i, 0),
                     second = (double)storage_get(type, after + i, 1),
                     off = 0x1p-8 * hypot(a, b);
        const bool changed = memcmp(before + i, after + i, sizeof *before) != 0;
        *right = *right && (!changed || (fabs(first - (0.8 * a - 0.6 * b)) <= off &&
                                         fabs(second - (0.8 * b + 0.6 * a)) <= off));
        rotated += changed;
    }
    return rotated;
}

/* Rotates what is stored in 16 bits, over a call's tensor and over a block. */
static bool runs_over_16_bits(enum posenc_dtype type, int threads)
{
    struct problem problem = problem_realistic(POSENC_KERNEL_ROPE_INTERLEAVED, type, 1 << 18);
    problem.in_place = true;
    struct opened o;
    open_timed_call(&o, &problem, threads);
    bool right = o.before;
    if (right) {
        const struct timed_call *timed = &o.timed;
        const int64_t n = timed->n[0];
        struct contender c = run_loop(&o, true);
        const int64_t rotated = count_rotated_pairs(type, o.before, timed->dst[0], n, &right);
        right = right && c.blocks == 0 && timed->work.floats == n &&
                rotated > n - threads * LOOP_BLOCK &&
                near(c.times * (double)rotated, (double)n);
        c = run_loop(&o, false);
        right = right && c.blocks > 0 &&
                count_rotated_pairs(type, timed->blocks[0].stored, timed->blocks[0].out,
                                    LOOP_BLOCK, &right) == LOOP_BLOCK;
    }
    close_timed_call(&o);
    return right;
}

/* Writes a table of which eight rows, written at once, are more than a block: sines are half a row from cosines. */
static bool runs_over_rows(void)
{
    enum { TOKENS = 24, WIDTH = 512, HALF = WIDTH / 2 };
    struct problem problem = problem_default(POSENC_KERNEL_SINUSOIDAL);
    problem.batch = 1;
    problem.tokens = TOKENS;
    problem.freqs.dim = WIDTH;
    problem.layout = POSENC_LAYOUT_SIN_COS;
    problem_derive(&problem);
    struct opened o;
    open_timed_call(&o, &problem, 1);
    bool right = o.before && o.timed.n[0] == TOKENS * WIDTH;
    if (right) {
        const float *table = o.timed.dst[0];
        memset(o.timed.dst[0], 0, TOKENS * WIDTH * sizeof *table);
        const struct contender c = run_loop(&o, true);
        right = c.blocks == 0 && near(c.times, 1.0);
        for (int row = 0; row < TOKENS; row++)
            for (const float *sine = table + row * WIDTH; sine < table + row * WIDTH + HALF;
                 sine++)
                right = right && near(hypot((double)sine[0], (double)sine[HALF]), 1.0);
    }
    close_timed_call(&o);
    return right;
}

enum place { NOT_OPENED, IN_BLOCKS, IN_TENSORS };

/* Returns where the loop of a kernel runs, on a call of so many bytes. In tensors it must write all outputs. */
static enum place find_place_of_loop(enum posenc_kernel kernel, size_t bytes)
{
    const struct problem problem = problem_realistic(kernel, POSENC_DTYPE_F32, bytes);
    struct opened o;
    open_timed_call(&o, &problem, 1);
    bool over = o.before;
    for (int k = 0; over && k < 2 && o.timed.n[k] > 0; k++)
        o.timed.dst[k][0] = -77.0f;
    over = over && run_loop(&o, true).blocks == 0;
    for (int k = 0; over && k < 2 && o.timed.n[k] > 0; k++)
        over = o.timed.dst[k][0] != -77.0f;
    const enum place place = !o.before ? NOT_OPENED : over ? IN_TENSORS : IN_BLOCKS;
    close_timed_call(&o);
    return place;
}

static void test_loops_over_tensors(void)
{
    for (int threads = 1; threads < 4; threads++) {
        test_loop_over_scores(threads);
        require(runs_over_16_bits(POSENC_DTYPE_F16, threads) &&
                    runs_over_16_bits(POSENC_DTYPE_BF16, threads),
                "a loop goes over elements of 16 bits, once, or over a block of them");
    }
    require(find_place_of_loop(POSENC_KERNEL_ROPE_TABLE, 1 << 16) == IN_TENSORS,
            "a loop goes over both tables of its call");
    require(runs_over_rows(), "a loop goes over rows as long as those of its call");
    require(find_place_of_loop(POSENC_KERNEL_ALIBI, 1 << 12) == IN_BLOCKS,
            "a loop runs in its block if the call is less than a block");
    require(find_place_of_loop(POSENC_KERNEL_ROPE_QK_NORM, 1 << 16) == IN_BLOCKS,
            "a loop runs in its block if the kernel is a norm, which would grow in place");
    require(find_place_of_loop(POSENC_KERNEL_RELATIVE_SUM, 1 << 16) == IN_BLOCKS,
            "a loop runs in its block if the kernel reads more than it writes");
    require(bench_in_caches(4096) && !bench_in_caches(SIZE_MAX),
            "caches hold 4 KiB, and not everything");
}

/* ---- The limit that binds, from given samples ---- */

enum { ROUNDS = 9 };

/* Contenders of a made-up run. */
enum { ROW, OTHER, ROOF, CONVERSION, LOOP, PART, ENTERED, ENTERED_LOOP, FAKES };

struct fake_rounds {
    struct timed_call timed;
    struct roofline_variant variants[3];
    struct contender contenders[FAKES];
    double samples[FAKES * ROUNDS];
    struct rounds rounds;
};

/* Makes up a run of two backends; the second is not timed in part. */
static void set_samples(struct fake_rounds *m, const double times[FAKES])
{
    static const struct posenc_backend row = { .name = "row" }, other = { .name = "other" };
    static const enum roofline_kind kinds[] = { BOUND_store, BOUND_from_f64, BOUND_table };
    *m = (struct fake_rounds){ .timed = { .roofline = BOUND_store, .partial_share = 0.25 } };
    m->timed.conversion.kind = BOUND_from_f64;
    m->timed.work.kind = BOUND_table;
    m->rounds = (struct rounds){
        .contenders = m->contenders, .n = FAKES, .n_rounds = ROUNDS, .samples = m->samples
    };
    for (int k = 0; k < FAKES; k++) {
        m->contenders[k] =
            (struct contender){ .timed = &m->timed,
                                .outcome = times[k] > 0.0 ? BENCH_TIMED : BENCH_NOT_PROVIDED };
        for (int r = 0; r < ROUNDS; r++)
            m->samples[k * ROUNDS + r] = times[k] * (1.0 + 0.01 * r);
    }
    for (int k = 0; k < 3; k++) {
        m->variants[k] = (struct roofline_variant){ .kind = kinds[k], .name = "paper" };
        m->contenders[ROOF + k].roofline = &m->variants[k];
    }
    m->contenders[CONVERSION].work = &m->timed.conversion;
    m->contenders[LOOP].work = m->contenders[ENTERED_LOOP].work = &m->timed.work;
    m->contenders[ROW].backend = m->contenders[PART].backend = &row;
    m->contenders[OTHER].backend = &other;
    m->contenders[PART].partial = true;
    m->contenders[ENTERED].roofline = &m->variants[0];
    m->contenders[ENTERED_LOOP].roofline = &m->variants[2];
    m->contenders[ENTERED].after_checks = m->contenders[ENTERED_LOOP].after_checks = true;
}

static const struct {
    const char *sentence;
    double times[FAKES];
    enum resource resource;
    double share;
} bounds[] = {
    { "the roofline binds where it takes longest",
      { [ROW] = 100.0, [ROOF] = 80.0, [CONVERSION] = 70.0, [LOOP] = 60.0, [PART] = 25.0 },
      RESOURCE_MEMORY,
      0.8 },
    { "a conversion binds where it takes longest",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 70.0, [LOOP] = 60.0 },
      RESOURCE_CONVERSION,
      0.7 },
    { "a lower-bound loop binds where it takes longest",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 70.0, [LOOP] = 90.0, [PART] = 80.0 },
      RESOURCE_PORTS,
      0.9 },
    { "a call binds by what is left of it without rows",
      { [ROW] = 100.0, [ROOF] = 60.0, [LOOP] = 70.0, [PART] = 85.0 },
      RESOURCE_CALLS,
      0.8 },
    { "a call without rows binds nothing where each row takes long",
      { [ROW] = 100.0, [ROOF] = 1.0, [PART] = 25.0 },
      RESOURCE_MEMORY,
      0.01 },
    { "a call without rows binds nothing where a part takes longer than the whole",
      { [ROW] = 100.0, [ROOF] = 60.0, [PART] = 120.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "a loop slower than the row is no limit",
      { [ROW] = 100.0, [ROOF] = 60.0, [CONVERSION] = 50.0, [LOOP] = 120.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "a loop slower than another backend is no limit",
      { [ROW] = 100.0, [OTHER] = 70.0, [ROOF] = 60.0, [LOOP] = 90.0 },
      RESOURCE_MEMORY,
      0.6 },
    { "a loop slower than another backend by noise is a limit",
      { [ROW] = 100.0, [OTHER] = 92.0, [ROOF] = 60.0, [LOOP] = 95.0 },
      RESOURCE_PORTS,
      0.95 },
    { "a roofline counts with the checks before it",
      { [ROW] = 100.0, [ROOF] = 60.0, [LOOP] = 70.0, [PART] = 25.0, [ENTERED] = 80.0 },
      RESOURCE_MEMORY,
      0.8 },
    { "checks make no other loop longer",
      { [ROW] = 100.0, [ROOF] = 20.0, [LOOP] = 60.0, [ENTERED] = 30.0 },
      RESOURCE_PORTS,
      0.6 },
    { "checks are no roofline by themselves",
      { [ROW] = 100.0, [ROOF] = 60.0, [ENTERED] = 50.0 },
      RESOURCE_MEMORY,
      0.5 },
    { "a loop counts without checks where it is slower than the row with them",
      { [ROW] = 100.0, [ROOF] = 20.0, [LOOP] = 90.0, [ENTERED_LOOP] = 130.0 },
      RESOURCE_PORTS,
      0.9 },
    { "a roofline that is not reached counts even so",
      { [ROW] = 100.0, [ROOF] = 130.0 },
      RESOURCE_MEMORY,
      1.3 },
};

/* Median of the samples 100 (1 + r / 100) that set_samples() makes of ROW, for nine rounds r. */
static const double MEDIAN_OF_ROW = 104.0;

static void test_longest_limit(void)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        static struct fake_rounds m;
        set_samples(&m, bounds[i].times);
        const struct lower_bound limit = limits_find(&m.rounds, &m.contenders[ROW]);
        printf("# %g of %s\n", limit.share, resource_name[limit.resource]);
        require(limit.resource == bounds[i].resource && limit.kind && limit.variant &&
                    fabs(limit.share - bounds[i].share) < 1e-9 &&
                    fabs(limit.seconds - bounds[i].share * MEDIAN_OF_ROW) < 1e-6,
                bounds[i].sentence);
    }
}

/* ---- What binds kernels ---- */

/* A factor between two times that noise never reaches, however busy the machine. */
static const double FAR = 30.0;

static void store_result(void *user, const struct bench_result *result)
{
    *(struct bench_result *)user = *result;
}

static struct bench_result time_kernel(const struct problem *problem,
                                       const struct posenc_backend *backend, int threads)
{
    const struct bench_case c = { .id = "a case", .level = "L1", .problem = *problem };
    struct bench_options options = { .time_limit_s = 0.02, .seed = 1, .threads = threads };
    struct bench_result result = { .limit_ratio = 0.0 };
    char error[256];
    require(bench_run(&c, 1, &backend, 1, &options, store_result, &result, error) == 0,
            "it is timed");
    printf("# %.3f of %s\n", result.limit_ratio,
           result.limit_resource ? result.limit_resource : "nothing");
    return result;
}

static void test_every_kernel(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct problem problem = problem_realistic(kernel, POSENC_DTYPE_F32, 16384);
        const bool works = signature_of(kernel)->work > WORK_NONE;
        const enum roofline_kind loop = loop_of(&problem);
        char sentence[96];
        snprintf(sentence, sizeof sentence,
                 "%s has the loop of its work, and something binds it",
                 posenc_kernel_name(kernel));
        bool good = works ? loop >= BOUND_table && loop < ROOFLINE_KIND_COUNT
                          : loop == ROOFLINE_KIND_COUNT;
        for (int threads = 1; threads < 3 && !machine_emulator(); threads++) {
            const struct bench_result r =
                time_kernel(&problem, posenc_backend_find("scalar"), threads);
            good = good && r.limit_resource && r.limit_kind && r.limit_variant &&
                   r.limit_gbps > 0.0 && r.limit_ratio > 0.0 && r.limit_ratio < FAR &&
                   r.limit_ratio >= 0.99 * r.roofline_ratio;
        }
        require(good, sentence);
    }
}

/* Makes each row slow, and not the call: it does all rows a thousand times. */
static enum posenc_status repeat_rows(const struct posenc_distance_args *args)
{
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 1000 && status == POSENC_OK; i++)
        status = posenc_backend_find("scalar")->distance_bias(args);
    return status;
}

static void test_slow_kernel(void)
{
    const struct posenc_backend slow = { .size = sizeof slow,
                                         .abi = POSENC_ABI,
                                         .name = "slow",
                                         .family = "native",
                                         .description = "does all rows again and again",
                                         .required_features = "",
                                         .distance_bias = repeat_rows };
    struct problem problem = problem_default(POSENC_KERNEL_DISTANCE_BIAS);
    problem.heads = 1;
    problem.queries = 16;
    problem.keys = 300;
    problem_derive(&problem);
    const struct bench_result r = time_kernel(&problem, &slow, 1);
    require(r.limit_ratio > 0.0 && r.limit_ratio < 1.0 / FAR,
            "a kernel that is slow in each row is not its own limit");
}

/* A sample of a loop is multiplied by how many times it makes a call: a million times is no noise. */
static void test_multiplied_samples(void)
{
    const struct problem problem =
        problem_realistic(POSENC_KERNEL_ALIBI, POSENC_DTYPE_F32, 16384);
    struct opened o;
    open_timed_call(&o, &problem, 1);
    struct contender two[2];
    double samples[2 * ROUNDS];
    struct rounds rounds = {
        .contenders = two, .n = 2, .n_rounds = ROUNDS, .samples = samples, .least_sample = 1e-4
    };
    two[0] = two[1] = contender_of_backend(&o.timed, posenc_backend_find("scalar"));
    two[0].rounds = two[1].rounds = ROUNDS;
    two[1].times = 1e6;
    const double ratio = o.before && rounds_calibrate(&rounds) && rounds_time(&rounds)
                             ? rounds_speed(&rounds, &two[0], &two[1])
                             : 0.0;
    require(ratio > 1e6 / FAR && ratio < 1e6 * FAR,
            "a scaled loop takes as many times as long");
    close_timed_call(&o);
}

int main(void)
{
    test_rotation_loops();
    test_sample_scale();
    test_loops_over_tensors();
    test_longest_limit();
    test_every_kernel();
    if (!machine_emulator()) {
        test_slow_kernel();
        test_multiplied_samples();
    }
    return tap_end();
}
