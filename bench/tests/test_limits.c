/*
 * Tests the limits of calls (bench/limits.c, bench/rooflines.c): the lower-bound loop of a call and the tensors over which
 * it runs; the limit that binds, in given samples; and that a slow kernel is not its own limit. test_bounds.c tests the
 * results of loops.
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

static const float UNTOUCHED = -77.0f; /* of outputs, before a loop runs */

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
            const struct loop_work work = { .kind = BOUND_line,
                                            .floats = floats[i],
                                            .wide = true,
                                            .row_floats = row,
                                            .rows_at_once = 1 };
            double times = 0.0;
            const int64_t blocks = loop_sample_blocks(&work, threads, &times);
            all = all && blocks > 0 && blocks <= 32 &&
                  near(times * (double)(blocks * block * threads), (double)floats[i]);
        }
    require(all, "the blocks of a sample, scaled, are all floats of the call");
}

/* Call whose loops can be run. */
struct opened {
    struct call call;
    struct timed_call timed;
    struct team *team;
    float *before; /* first output, before a loop runs; NULL: the call failed */
};

static void open_timed_call(struct opened *o, const struct problem *problem, int threads)
{
    *o = (struct opened){ .team = team_create(threads) };
    if (!o->team || call_create(&o->call, problem, &tensor_allocator_default) != POSENC_OK ||
        !timed_call_open(&o->timed, &o->call, o->team, threads))
        return;
    const size_t bytes = (size_t)o->timed.dst_floats[0] * sizeof(float);
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

/* Runs the scalar loop of the call's kernel once, over the tensors if it can and `in_tensors`; otherwise over a block. */
static struct contender run_loop(const struct opened *o, bool in_tensors)
{
    size_t i = 0;
    while (bound_variant_at(i)->kind != o->timed.work.kind ||
           strcmp(bound_variant_at(i)->name, "scalar") != 0)
        i++;
    struct contender c = contender_of_bound(&o->timed, bound_variant_at(i), &o->timed.work);
    if (in_tensors)
        contender_move_to_tensors(&c);
    contender_call(&c);
    return c;
}

/* Returns true if a float, or a pair of 16-bit elements, is what one pass of the call's loop makes of it. */
static bool is_written_once(const struct opened *o, const float *before, const float *after)
{
    const struct problem *p = &o->call.problem;
    if (o->timed.work.kind == BOUND_slope) /* biases 0.25, 0.5, 0.75, ... of the keys */
        return *after - *before > 0.24f && *after - *before < 0.25f * (float)p->keys + 0.01f;
    if (p->kernel != POSENC_KERNEL_ROPE_INTERLEAVED)
        return true;
    const double a = (double)storage_get(p->dtype, before, 0),
                 b = (double)storage_get(p->dtype, before, 1),
                 first = (double)storage_get(p->dtype, after, 0),
                 second = (double)storage_get(p->dtype, after, 1),
                 tolerance = 0x1p-8 * hypot(a, b);
    return fabs(first - (0.8 * a - 0.6 * b)) <= tolerance &&
           fabs(second - (0.8 * b + 0.6 * a)) <= tolerance;
}

/* Runs the loop over the tensors. It must write each float once, except the incomplete last block of each thread, and the
 * scale of the sample must count the floats that are written. */
static bool covers_tensors(const struct opened *o)
{
    const struct timed_call *timed = &o->timed;
    const int64_t rows = timed->work.row_floats * timed->work.rows_at_once,
                  block = rows > LOOP_BLOCK ? rows : LOOP_BLOCK;
    int64_t written[2] = { 0, 0 };
    bool right = true;
    if (!o->call.problem.in_place)
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < timed->dst_floats[k]; i++)
                timed->dst[k][i] = UNTOUCHED;
    memcpy(o->before, timed->dst[0], (size_t)timed->dst_floats[0] * sizeof(float));
    const struct contender c = run_loop(o, true);
    for (int64_t i = 0; i < timed->dst_floats[0]; i++)
        if (memcmp(&timed->dst[0][i], &o->before[i], sizeof(float)) != 0) {
            written[0]++;
            right = right && is_written_once(o, &o->before[i], &timed->dst[0][i]);
        }
    for (int64_t i = 0; i < timed->dst_floats[1]; i++)
        written[1] += timed->dst[1][i] != UNTOUCHED;
    for (int k = 0; k < 2; k++)
        right = right && timed->dst_floats[k] - written[k] <= timed->threads * (block - 1);
    return right && c.blocks == 0 &&
           near(c.sample_scale * (double)(written[0] + written[1]), (double)timed->work.floats);
}

/* Runs the loop over a block, in the element type of the call. It must leave the tensors unchanged. */
static bool covers_block(const struct opened *o)
{
    const struct contender c = run_loop(o, false);
    const struct loop_block *block = &o->timed.blocks[0];
    bool right = c.blocks > 0 && memcmp(o->before, o->timed.dst[0],
                                        (size_t)o->timed.dst_floats[0] * sizeof(float)) == 0;
    for (int i = 0; o->timed.work.stored && i < LOOP_BLOCK; i++)
        right = right && is_written_once(o, &block->stored[i], &block->out[i]);
    return right;
}

static void test_places_of_loops(void)
{
#define ROTATION(kernel, dtype)                                                                \
    kernel " dtype=" dtype                                                                     \
           " heads=8 head_dim=128 rotary_dim=128 rows=64 tokens=64 in_place=true"
    static const struct {
        const char *problem;
        enum bound_kind kind;
        bool in_tensors;
    } calls[] = {
        { "alibi_add heads=3 queries=64 keys=91 in_place=true", BOUND_slope, true },
        { ROTATION("rope_half", "f16"), BOUND_rotate_f16, true },
        { ROTATION("rope_half", "bf16"), BOUND_rotate_bf16, true },
        { ROTATION("rope_interleaved", "f16"), BOUND_rotate_pairs_f16, true },
        { ROTATION("rope_interleaved", "bf16"), BOUND_rotate_pairs_bf16, true },
        { "sinusoidal dim=512 tokens=24 layout=sin_cos", BOUND_table, true }, /* long rows */
        { "rope_table rotary_dim=128 tokens=128", BOUND_table, true },        /* two outputs */
        { "alibi heads=2 queries=4 keys=64", BOUND_slope, false }, /* shorter than a block */
        /* Norms in place would grow; sums read more than they write. */
        { "rope_qk_norm heads=8 head_dim=128 rotary_dim=128 rows=16 tokens=16 in_place=true",
          BOUND_norm, false },
        { "relative_sum heads=8 queries=64 keys=64 relative=shaw max_distance=32", BOUND_sums,
          false },
    };
#undef ROTATION
    char sentence[NOTATION_ERROR + 160];
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
        snprintf(sentence, sizeof sentence, "the loop of %s runs over %s%s", calls[i].problem,
                 calls[i].in_tensors ? "its tensors" : "blocks", error);
        require(right, sentence);
        arena_free(&arena);
    }
    require(strcmp(bench_level(4096), "DRAM") != 0 &&
                strcmp(bench_level(SIZE_MAX), "DRAM") == 0,
            "caches hold 4 KiB, and not everything");
}

/* ---- The limit that binds, from given samples ---- */

enum { ROUNDS = 9 };

/* Contenders of the rounds: two backends, the bounds of their call, and the partial call of the first backend. */
enum { FIRST, SECOND, ROOFLINE, CONVERSION, LOOP, PARTIAL, CONTENDERS };

struct fake_rounds {
    struct timed_call timed;
    struct bound_variant variants[3];
    struct contender contenders[CONTENDERS];
    double samples[CONTENDERS * ROUNDS];
    struct rounds rounds;
};

/* Sets up rounds with given times of the contenders, which rise by 1 % from round to round; 0: not timed. */
static void set_samples(struct fake_rounds *m, const double times[CONTENDERS])
{
    static const struct posenc_backend first = { .name = "first" },
                                       second = { .name = "second" };
    static const enum bound_kind kinds[] = { BOUND_store, BOUND_from_f64, BOUND_table };
    *m = (struct fake_rounds){ .timed = { .roofline = BOUND_store, .partial_share = 0.25 } };
    m->timed.conversion.kind = BOUND_from_f64;
    m->timed.work.kind = BOUND_table;
    m->rounds = (struct rounds){
        .contenders = m->contenders, .n = CONTENDERS, .n_rounds = ROUNDS, .samples = m->samples
    };
    for (int k = 0; k < CONTENDERS; k++) {
        m->contenders[k] =
            (struct contender){ .timed = &m->timed,
                                .outcome = times[k] > 0.0 ? BENCH_TIMED : BENCH_NOT_PROVIDED };
        for (int r = 0; r < ROUNDS; r++)
            m->samples[k * ROUNDS + r] = times[k] * (1.0 + 0.01 * r);
    }
    for (int k = 0; k < 3; k++) {
        m->variants[k] = (struct bound_variant){ .kind = kinds[k], .name = "variant" };
        m->contenders[ROOFLINE + k].bound = &m->variants[k];
    }
    m->contenders[CONVERSION].work = &m->timed.conversion;
    m->contenders[LOOP].work = &m->timed.work;
    m->contenders[FIRST].backend = m->contenders[PARTIAL].backend = &first;
    m->contenders[SECOND].backend = &second;
    m->contenders[PARTIAL].partial = true;
}

/* Times of the contenders, in the order of their enumeration, and the limit that must bind the first backend. */
static const struct {
    double times[CONTENDERS];
    enum resource resource;
    double share;
    const char *sentence;
} bounds[] = {
    { { 100, 0, 80, 70, 60, 25 }, RESOURCE_MEMORY, 0.8, "the roofline takes longest" },
    { { 100, 0, 60, 70, 60, 0 }, RESOURCE_CONVERSION, 0.7, "the conversion takes longest" },
    { { 100, 0, 60, 70, 90, 80 }, RESOURCE_PORTS, 0.9, "the lower-bound loop takes longest" },
    { { 100, 0, 60, 0, 70, 85 }, RESOURCE_CALLS, 0.8, "the call without rows takes longest" },
    { { 100, 0, 1, 0, 0, 25 }, RESOURCE_MEMORY, 0.01, "each row takes long" },
    { { 100, 0, 60, 0, 0, 120 }, RESOURCE_MEMORY, 0.6, "a part takes longer than the whole" },
    { { 100, 0, 60, 50, 120, 0 }, RESOURCE_MEMORY, 0.6, "the loop is slower than the first" },
    { { 100, 70, 60, 0, 90, 0 }, RESOURCE_MEMORY, 0.6, "the loop is slower than the second" },
    { { 100, 92, 60, 0, 95, 0 }, RESOURCE_PORTS, 0.95, "the same, but by noise" },
    { { 100, 0, 130, 0, 0, 0 }, RESOURCE_MEMORY, 1.3, "the roofline is beaten, and counts" },
};

/* Median of the samples 100 (1 + r / 100) that set_samples() makes of FIRST, for nine rounds r. */
static const double MEDIAN_OF_FIRST = 104.0;

static void test_longest_limit(void)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        static struct fake_rounds m;
        set_samples(&m, bounds[i].times);
        const struct lower_bound limit = limits_find(&m.rounds, &m.contenders[FIRST]);
        printf("# %g of %s\n", limit.share, resource_name[limit.resource]);
        require(limit.resource == bounds[i].resource && limit.kind && limit.variant &&
                    fabs(limit.share - bounds[i].share) < 1e-9 &&
                    fabs(limit.seconds - bounds[i].share * MEDIAN_OF_FIRST) < 1e-6,
                bounds[i].sentence);
    }
}

/* ---- What binds kernels ---- */

/* Factor between two times that noise never reaches, however busy the machine. */
static const double FAR = 30.0;

/* Each kernel whose signature names its work has a loop; the others have none. */
static void test_every_kernel(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct problem problem = problem_realistic(kernel, POSENC_DTYPE_F32, 16384);
        const bool works = signature_of(kernel)->work > WORK_NONE;
        struct opened o;
        open_timed_call(&o, &problem, 1);
        require(o.before && (o.timed.work.kind < BOUND_KIND_COUNT) == works,
                posenc_kernel_name(kernel));
        close_timed_call(&o);
    }
}

/* Computes all rows a thousand times, which makes each row slow, and not the call without rows. */
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

/* Times two equal contenders, one of which claims that a sample is a millionth of the call. */
static void test_scaled_samples(void)
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
    two[1].sample_scale = 1e6;
    const double ratio = o.before && rounds_calibrate(&rounds) && rounds_time(&rounds)
                             ? rounds_speed(&rounds, &two[0], &two[1])
                             : 0.0;
    require(ratio > 1e6 / FAR && ratio < 1e6 * FAR, "samples are multiplied by their scale");
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
        test_scaled_samples();
    }
    return tap_end();
}
