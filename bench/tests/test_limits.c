/*
 * Tests limits: the lower-bound loop of a call and the tensors that it goes over; the limit that takes longest, in
 * samples that are made up; and that a slow kernel is not its own limit. Loops themselves are tested in test_bounds.c.
 */
#include "base/machine/machine.h"
#include "bench/harness.h"
#include "conformance/problem/notation.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1.0 + fabs(b)); }

/* ---- Loops of calls ---- */

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

/* A call whose loops can be run. `before` is its first output as it was made; NULL: the call failed. */
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
    const size_t bytes = (size_t)o->timed.n[0] * sizeof(float);
    o->before = malloc(bytes + 1);
    if (o->before)
        memcpy(o->before, o->timed.dst[0], bytes);
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

/* Returns true if a float, or pair of 16 bits, is as the loop of its call makes it in a single pass. */
static bool is_written_once(const struct opened *o, const float *before, const float *after)
{
    const struct problem *p = &o->call.problem;
    if (o->timed.work.kind ==
        BOUND_slope) /* a bias from 0.25 on, larger by 0.25 from key to key */
        return *after - *before > 0.24f && *after - *before < 0.25f * (float)p->keys + 0.01f;
    if (p->kernel != POSENC_KERNEL_ROPE_INTERLEAVED)
        return true;
    const double a = (double)storage_get(p->dtype, before, 0),
                 b = (double)storage_get(p->dtype, before, 1),
                 first = (double)storage_get(p->dtype, after, 0),
                 second = (double)storage_get(p->dtype, after, 1), off = 0x1p-8 * hypot(a, b);
    return fabs(first - (0.8 * a - 0.6 * b)) <= off &&
           fabs(second - (0.8 * b + 0.6 * a)) <= off;
}

/* Runs the loop over the tensors. It must write each float once, except the incomplete last block of each thread. */
static bool covers_tensors(const struct opened *o)
{
    const struct timed_call *timed = &o->timed;
    const int64_t rows = timed->work.row * timed->work.at_once,
                  block = rows > LOOP_BLOCK ? rows : LOOP_BLOCK;
    int64_t written[2] = { 0, 0 };
    bool right = true;
    if (!o->call.problem.in_place)
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < timed->n[k]; i++)
                timed->dst[k][i] = -77.0f;
    memcpy(o->before, timed->dst[0], (size_t)timed->n[0] * sizeof(float));
    const struct contender c = run_loop(o, true);
    for (int64_t i = 0; i < timed->n[0]; i++)
        if (memcmp(&timed->dst[0][i], &o->before[i], sizeof(float)) != 0) {
            written[0]++;
            right = right && is_written_once(o, &o->before[i], &timed->dst[0][i]);
        }
    for (int64_t i = 0; i < timed->n[1]; i++)
        written[1] += timed->dst[1][i] != -77.0f;
    for (int k = 0; k < 2; k++)
        right = right && timed->n[k] - written[k] <= timed->threads * (block - 1);
    return right && c.blocks == 0 &&
           near(c.times * (double)(written[0] + written[1]), (double)timed->work.floats);
}

/* Runs the loop over a block of the element type of the call. Loops of tensors must not be changed. */
static bool covers_block(const struct opened *o)
{
    const struct contender c = run_loop(o, false);
    const struct loop_block *block = &o->timed.blocks[0];
    bool right = c.blocks > 0 &&
                 memcmp(o->before, o->timed.dst[0], (size_t)o->timed.n[0] * sizeof(float)) == 0;
    for (int i = 0; o->timed.work.stored && i < LOOP_BLOCK; i++)
        right = right && is_written_once(o, &block->stored[i], &block->out[i]);
    return right;
}

static void test_places_of_loops(void)
{
    static const struct {
        const char *sentence, *problem;
        enum roofline_kind kind;
        bool in_tensors;
    } calls[] = {
        { "a loop of slopes goes over scores",
          "alibi_add heads=3 queries=64 keys=91 in_place=true", BOUND_slope, true },
        { "a loop goes over halves in f16",
          "rope_half dtype=f16 heads=8 head_dim=128 rotary_dim=128 rows=64 tokens=64 "
          "in_place=true",
          BOUND_rotate_f16, true },
        { "a loop goes over halves in bf16",
          "rope_half dtype=bf16 heads=8 head_dim=128 rotary_dim=128 rows=64 tokens=64 "
          "in_place=true",
          BOUND_rotate_bf16, true },
        { "a loop goes over pairs in f16",
          "rope_interleaved dtype=f16 heads=8 head_dim=128 rotary_dim=128 rows=64 tokens=64 "
          "in_place=true",
          BOUND_rotate_pairs_f16, true },
        { "a loop goes over pairs in bf16",
          "rope_interleaved dtype=bf16 heads=8 head_dim=128 rotary_dim=128 rows=64 tokens=64 "
          "in_place=true",
          BOUND_rotate_pairs_bf16, true },
        { "a loop goes over rows of which eight are more than a block",
          "sinusoidal dim=512 tokens=24 layout=sin_cos", BOUND_table, true },
        { "a loop goes over both tables", "rope_table rotary_dim=128 tokens=128", BOUND_table,
          true },
        { "a loop runs in its block if the call is shorter", "alibi heads=2 queries=4 keys=64",
          BOUND_slope, false },
        { "a loop of norms, which would grow in place, runs in its block",
          "rope_qk_norm heads=8 head_dim=128 rotary_dim=128 rows=16 tokens=16 in_place=true",
          BOUND_norm, false },
        { "a loop that reads more than it writes runs in its block",
          "relative_sum heads=8 queries=64 keys=64 relative=shaw max_distance=32", BOUND_sums,
          false },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct problem_line line;
        struct arena arena = { .last = NULL };
        char error[NOTATION_ERROR] = "";
        bool right = notation_read(calls[i].problem, &line, &arena, error);
        for (int threads = 1; threads < 4 && right; threads++) {
            struct opened o;
            open_timed_call(&o, &line.problem, threads);
            right = o.before && o.timed.work.kind == calls[i].kind && covers_block(&o) &&
                    (calls[i].in_tensors ? covers_tensors(&o) : run_loop(&o, true).blocks > 0);
            close_timed_call(&o);
        }
        if (!right)
            printf("# %s%s\n", calls[i].problem, error);
        require(right, calls[i].sentence);
        arena_free(&arena);
    }
    require(bench_in_caches(4096) && !bench_in_caches(SIZE_MAX),
            "caches hold 4 KiB, and not everything");
}

/* ---- The limit that binds, from given samples ---- */

enum { ROUNDS = 9 };

/* Contenders of a made-up run. */
enum { ROW, OTHER, ROOF, CONVERSION, LOOP, PART, FAKES };

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
    m->contenders[LOOP].work = &m->timed.work;
    m->contenders[ROW].backend = m->contenders[PART].backend = &row;
    m->contenders[OTHER].backend = &other;
    m->contenders[PART].partial = true;
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

static void test_every_kernel(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct problem problem = problem_realistic(kernel, POSENC_DTYPE_F32, 16384);
        const bool works = signature_of(kernel)->work > WORK_NONE;
        struct opened o;
        open_timed_call(&o, &problem, 1);
        require(o.before && (o.timed.work.kind < ROOFLINE_KIND_COUNT) == works,
                posenc_kernel_name(kernel));
        close_timed_call(&o);
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

static void store_result(void *user, const struct bench_result *result)
{
    *(struct bench_result *)user = *result;
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
    const struct bench_case bench_case = { .id = "a case", .level = "L1", .problem = problem };
    const struct bench_options options = { .time_limit_s = 0.02, .seed = 1, .threads = 1 };
    const struct posenc_backend *backend = &slow;
    struct bench_result r = { .limit_ratio = 0.0 };
    char error[256];
    require(bench_run(&bench_case, 1, &backend, 1, &options, store_result, &r, error) == 0 &&
                r.limit_ratio > 0.0 && r.limit_ratio < 1.0 / FAR,
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
    test_sample_scale();
    test_places_of_loops();
    test_longest_limit();
    test_every_kernel();
    if (!machine_emulator()) {
        test_slow_kernel();
        test_multiplied_samples();
    }
    return tap_end();
}
