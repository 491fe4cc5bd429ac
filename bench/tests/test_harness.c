/*
 * Tests the harness (bench/bench.h) on small cases: numbers make sense, some limit binds each kernel, backends that cannot
 * be timed get a reason, and a kernel that is wrong by one part in 2^17 in one element of the output gets no number.
 * Times vary with the load, so tests compare them only with factors that noise never reaches. Under an emulator nothing
 * is timed, and that is tested there.
 */
#include "bench/bench.h"
#include "base/machine/machine.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 8, DIM = 64 }; /* and TOKENS, by meson.build */

/* Factor between two times that a thousand times the work exceeds, and noise never does. */
static const double FAR = 30.0;

/* ---- Backends of the test ---- */

static const struct posenc_backend *scalar(void) { return posenc_backend_find("scalar"); }

/* Is wrong by a factor of 1 + relative_error in one element of one head of one token in the middle. */
static enum posenc_status rope_with_error(float relative_error,
                                          const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    const struct posenc_tensor *out = &args->out;
    float *head = (float *)out->data + out->shape[1] / 2 * out->stride[1] + out->stride[2];
    const int64_t half =
        args->cos.shape[1]; /* the larger element of a pair, as limits follow it */
    head[fabsf(head[5]) > fabsf(head[5 + half]) ? 5 : 5 + half] *= 1.0f + relative_error;
    return status;
}

static enum posenc_status rope_wrong(const struct posenc_rope_args *args)
{
    return rope_with_error(0x1p-17f, args);
}
static enum posenc_status rope_wrong_in_last_bit(const struct posenc_rope_args *args)
{
    return rope_with_error(0x1p-23f, args);
}

/* Right, and a thousand times as slow. The repeats write to scratch memory, so that a call in place rotates once. */
static enum posenc_status rope_thousandfold(const struct posenc_rope_args *args)
{
    static _Thread_local float scratch[TOKENS * HEADS * DIM];
    struct posenc_rope_args repeated = *args;
    enum posenc_status status = POSENC_OK;
    repeated.out.data = scratch;
    for (int i = 1; i < 1000; i++)
        status |= scalar()->rope_half(&repeated);
    return status | scalar()->rope_half(args);
}

static enum posenc_status write_nothing(const struct posenc_sinusoidal_args *args)
{
    (void)args;
    return POSENC_OK;
}

/* Returns the last element of the row before the last, which a check of some rows does not see. */
static float *late_element(const struct posenc_tensor *out)
{
    int64_t offset = 0;
    int row_dim = out->rank - 2;
    while (row_dim > 0 && out->shape[row_dim] == 1)
        row_dim--;
    for (int d = 0; d < out->rank; d++)
        offset += (out->shape[d] - 1 - (d == row_dim)) * out->stride[d];
    return (float *)out->data + offset;
}

static enum posenc_status rope_late_error(const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    *late_element(&args->out) += 0x1p-16f;
    return status;
}

static enum posenc_status sinusoidal_late_error(const struct posenc_sinusoidal_args *args)
{
    const enum posenc_status status = scalar()->sinusoidal(args);
    *late_element(&args->out) += 0x1p-17f;
    return status;
}

static enum posenc_status alibi_late_error(const struct posenc_alibi_args *args)
{
    const enum posenc_status status = scalar()->alibi(args);
    *late_element(&args->out) = nextafterf(*late_element(&args->out), 1e30f);
    return status;
}

/* Returns a backend with one kernel, a rope_half that is slightly wrong. Tests replace or add kernels. Kernels of the family
 * "native" must have the same bits as those of scalar. */
static struct posenc_backend make_backend(const char *family)
{
    return (struct posenc_backend){ .size = sizeof(struct posenc_backend),
                                    .abi = POSENC_ABI,
                                    .name = "other",
                                    .family = family,
                                    .description = "of the test",
                                    .required_features = "",
                                    .rope_half = rope_wrong };
}

/* ---- Runs ---- */

enum { MOST_RESULTS = 12 };
struct stored_results {
    struct bench_result results[MOST_RESULTS];
    char reason[MOST_RESULTS][288]; /* copies, since those of results do not last */
    size_t n;
};

/* Stores a result: a bench_sink. */
static void store_result(void *user, const struct bench_result *result)
{
    struct stored_results *seen = user;
    if (seen->n == MOST_RESULTS)
        return;
    seen->results[seen->n] = *result;
    snprintf(seen->reason[seen->n++], sizeof seen->reason[0], "%s",
             result->reason ? result->reason : "");
}

/* Runs a benchmark that must succeed. Results are in the order of cases, then of backends. */
static struct stored_results run_bench(const struct bench_case *cases, size_t n_cases,
                                       const struct posenc_backend *const *backends,
                                       size_t n_backends, const struct bench_options *options)
{
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    const int failed =
        bench_run(cases, n_cases, backends, n_backends, options, store_result, &seen, error);
    require(failed == 0 && seen.n == n_cases * n_backends, "each backend has a result");
    return seen;
}

/* Returns true if result i is that of a wrong backend: it has a reason, and no number. */
static bool is_wrong(const struct stored_results *seen, size_t i)
{
    printf("# %s\n", seen->reason[i]);
    return seen->results[i].outcome == BENCH_WRONG && seen->results[i].median_ns == 0.0 &&
           strncmp(seen->reason[i], "wrong: ", 7) == 0;
}

static struct bench_case rope_case(int64_t tokens)
{
    struct bench_case c = { .id = "rope_half/f32/given/test", .level = "L2" };
    c.problem = problem_default(POSENC_KERNEL_ROPE_HALF);
    c.problem.tokens = c.problem.rows = tokens;
    c.problem.heads = HEADS;
    c.problem.in_place = true;
    return c;
}

static void test_numbers(int threads)
{
    struct posenc_backend wrong = make_backend("native"), slow = wrong;
    slow.rope_half = rope_thousandfold;
    enum { LIBM, WRONG, SCALAR, SLOW, BACKENDS };
    const struct posenc_backend *backends[BACKENDS] = { posenc_backend_find("libm"), &wrong,
                                                        scalar(), &slow };
    const struct bench_case c = rope_case(TOKENS);
    const struct bench_options options = { .threads = threads, .time_limit_s = 0.2, .seed = 1 };
    const struct stored_results seen = run_bench(&c, 1, backends, BACKENDS, &options);
    static const int right_backends[] = { LIBM, SCALAR };
    for (size_t i = 0; i < 2; i++) {
        const struct bench_result *r = &seen.results[right_backends[i]];
        printf("# %s, %d threads: %.0f ns, %.2f GB/s, %.3f of %s/%s, %.2f x libm\n",
               r->backend->name, r->threads, r->median_ns, r->gbps, r->roofline_ratio,
               r->roofline_kind, r->roofline_variant, r->vs_libm);
        require(!r->reason && r->bytes == 2 * TOKENS * HEADS * DIM * 4 && r->gbps > 0.001 &&
                    r->gbps < 4000.0,
                "a right backend is timed; bytes are those read and written");
        require(r->min_ns > 0.0 && r->min_ns <= r->median_ns && r->ci_low <= r->median_ns &&
                    r->median_ns <= r->ci_high && r->rounds >= 8 && r->ci_level >= 0.99,
                "the median lies within its interval of 99 % and above the minimum");
        require(r->roofline_kind && strcmp(r->roofline_kind, "in place") == 0 &&
                    r->roofline_ratio > 0.0 && r->roofline_ratio < FAR,
                "no backend is far above its roofline");
        require(r->vs_libm > 0.0 && r->vs_libm < FAR && r->control_pct >= 0.0 &&
                    r->control_pct < 100.0 * FAR,
                "the speed of libm and scalar differs by no more than noise explains");
    }
    const struct bench_result *r = &seen.results[SLOW];
    require(r->outcome == BENCH_TIMED && r->vs_libm > 0.0 && r->vs_libm < 1.0 / FAR &&
                r->roofline_ratio > 0.0 && r->roofline_ratio < 1.0 / FAR,
            "a backend that does its work a thousand times is far below libm and its roofline");
    require(seen.results[LIBM].vs_libm == 1.0, "libm is as fast as libm");
    require(is_wrong(&seen, WRONG), "a slightly wrong kernel gets a reason and no number");
}

/* Kernels of either family that are wrong in one element near the end of a large output. */
static void test_late_errors(void)
{
    static const enum posenc_kernel kernels[] = { POSENC_KERNEL_ROPE_HALF,
                                                  POSENC_KERNEL_SINUSOIDAL,
                                                  POSENC_KERNEL_ALIBI };
    struct posenc_backend same_family = make_backend("native"), other_family;
    same_family.rope_half = rope_late_error;
    same_family.sinusoidal = sinusoidal_late_error;
    same_family.alibi = alibi_late_error;
    other_family = same_family;
    other_family.family = "another";
    const struct posenc_backend *backends[] = { &same_family, &other_family };
    const struct bench_options options = { .time_limit_s = 0.05, .seed = 5 };
    for (size_t k = 0; k < 3; k++) {
        struct bench_case c = { .level = "L2" };
        c.problem = problem_default(kernels[k]);
        c.problem.tokens = c.problem.tokens > 0 ? 500 : 0;
        c.problem.rows = 500;
        c.problem.queries = c.problem.queries > 0 ? 500 : 0;
        snprintf(c.id, sizeof c.id, "%s/late", posenc_kernel_name(kernels[k]));
        const struct stored_results seen = run_bench(&c, 1, backends, 2, &options);
        require(is_wrong(&seen, 0) && is_wrong(&seen, 1),
                "a kernel that is wrong in one late element is not timed");
    }
}

static void test_tolerance(void)
{
    struct bench_case c = rope_case(200);
    c.problem.in_place = false;
    struct posenc_backend same_family = make_backend("native"),
                          other_family = make_backend("another");
    same_family.rope_half = other_family.rope_half = rope_wrong_in_last_bit;
    const struct posenc_backend *backends[] = { &same_family, &other_family };
    const struct bench_options options = { .time_limit_s = 0.05, .seed = 7 };
    const struct stored_results seen = run_bench(&c, 1, backends, 2, &options);
    require(strstr(seen.reason[0], "same bits"), "a family has the same bits");
    require(!seen.results[1].reason, "another family may differ in the last bit");
}

/* Runs each kernel in four forms, on three threads and on one. The shares of threads have the results of the whole call,
 * since the check compares them with the oracle of the whole. */
static void test_every_kernel(void)
{
    enum { ONE_BATCH, IN_PLACE, FEW_TOKENS, ONE_THREAD, FORMS };
    const struct posenc_backend *backends[] = { scalar() };
    for (int k = 0; k < POSENC_KERNEL_COUNT * FORMS; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)(k / FORMS);
        const int form = k % FORMS;
        const struct bench_options options = { .threads = form == ONE_THREAD ? 1 : 3,
                                               .time_limit_s = 0.01,
                                               .seed = 3 };
        const bool bias_alone = kernel_on_scores(kernel) && !kernel_takes_x(kernel);
        struct bench_case c = { .level = "L1" };
        c.problem = problem_default(kernel);
        c.problem.batch = form == ONE_BATCH || bias_alone ? 1 : 2;
        c.problem.in_place = form == IN_PLACE && kernel_in_place(kernel);
        if (c.problem.tokens > 0)
            c.problem.tokens =
                form == FEW_TOKENS ? 2 : 7; /* fewer than threads: cut by heads */
        if (form == FEW_TOKENS && c.problem.queries > 0)
            c.problem.heads = 2; /* fewer than threads: cut by queries */
        snprintf(c.id, sizeof c.id, "%s/%d", posenc_kernel_name(kernel), form);
        const struct stored_results seen = run_bench(&c, 1, backends, 1, &options);
        const struct bench_result *r = &seen.results[0];
        require(!r->reason && r->limit_resource && r->limit_kind && r->limit_variant &&
                    r->limit_gbps > 0.0 && r->limit_ratio > 0.0 && r->limit_ratio < FAR &&
                    r->limit_ratio >= 0.99 * r->roofline_ratio,
                c.id);
    }
}

static bool stop_after_two(void *user) { return ((const struct stored_results *)user)->n >= 2; }

static void test_stop(void)
{
    struct bench_case cases[4];
    const struct posenc_backend *backend = scalar();
    const struct bench_options options = { .time_limit_s = 0.05, .stop = stop_after_two };
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    for (size_t i = 0; i < 4; i++)
        cases[i] = rope_case(8);
    require(bench_run(cases, 4, &backend, 1, &options, store_result, &seen, error) == 0 &&
                seen.n == 2,
            "a run ends after the case in which stop() returned true");
}

static void test_rejections(void)
{
    struct bench_case c = { .id = "sinusoidal/f32/exact/test", .level = "L1" };
    c.problem = problem_default(POSENC_KERNEL_SINUSOIDAL);
    struct posenc_backend lacks = make_backend("native"), idle = lacks, foreign = lacks;
    idle.sinusoidal = write_nothing;
    foreign.required_features = "no_such_feature";
    const struct posenc_backend *backends[] = { &lacks, &idle, &foreign };
    const struct bench_options options = { .time_limit_s = 0.05 };
    struct stored_results seen = run_bench(&c, 1, backends, 3, &options);
    require(strcmp(seen.reason[0], "not provided") == 0,
            "a kernel that a backend lacks is reported");
    require(is_wrong(&seen, 1), "a kernel that writes nothing is wrong");
    require(seen.reason[2][0] != '\0', "a backend that this CPU cannot run is reported");
    c.problem.freqs.rope_theta = -1.0;
    const struct posenc_backend *able = scalar();
    seen = run_bench(&c, 1, &able, 1, &options);
    require(seen.results[0].outcome == BENCH_REJECTED,
            "an impossible problem is rejected, not timed");
}

/* Runs three cases of a kernel, each longer than the one before. */
static void test_tuning(void)
{
    enum { CASES = 3 };
    enum { WRONG, SLOW, LACKS, SCALAR, BACKENDS };
    struct posenc_backend wrong = make_backend("native"), slow = wrong, lacks = wrong;
    slow.rope_half = rope_thousandfold;
    lacks.rope_half = NULL;
    const struct posenc_backend *backends[BACKENDS] = { &wrong, &slow, &lacks, scalar() };
    struct bench_case cases[CASES];
    for (int i = 0; i < CASES; i++)
        cases[i] = rope_case(TOKENS / 4 << i);
    const struct bench_options options = { .tuning = true, .time_limit_s = 0.2, .seed = 1 };
    const struct stored_results seen = run_bench(cases, CASES, backends, BACKENDS, &options);
    require(is_wrong(&seen, WRONG) &&
                strcmp(seen.reason[2 * BACKENDS + WRONG], "wrong in a smaller case") == 0,
            "a wrong backend is rejected, and is not tried in the third case");
    for (size_t i = 0; i < seen.n; i += BACKENDS) {
        const struct bench_result *fastest = &seen.results[i + SCALAR];
        bool timed = fastest->outcome == BENCH_TIMED && fastest->rounds >= 3 &&
                     fastest->rounds <= MOST_TUNING_ROUNDS;
        for (int r = 0; timed && r < fastest->rounds; r++)
            timed = fastest->sample_ns[r] >= fastest->min_ns;
        require(strstr(seen.reason[i + SLOW], "slower than the fastest") &&
                    seen.results[i + LACKS].outcome == BENCH_NOT_PROVIDED,
                "a slow backend and one without the kernel are rejected");
        require(timed && fastest->footprint > 0 && !fastest->roofline_kind,
                "the fastest has a time in each round, and no roofline");
    }
}

/* ---- Shapes (bench/shapes.c) ---- */

static void test_footprint_cases(void)
{
    const bool kernels[POSENC_KERNEL_COUNT] = { false }, dtypes[] = { true, true, true };
    struct bench_case *cases;
    size_t n = bench_footprint_cases(kernels, dtypes, true, &cases), misplaced = 0,
           repeated = 0, in_dram = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = problem_working_set(&cases[i].problem);
        misplaced += strcmp(bench_level(bytes), cases[i].level) != 0;
        in_dram += strcmp(cases[i].level, "DRAM") == 0;
        for (size_t j = 0; j < i; j++)
            repeated += strcmp(cases[i].id, cases[j].id) == 0;
    }
    free(cases);
    require(n >= 2 * BENCH_DTYPES * POSENC_KERNEL_COUNT && repeated == 0,
            "every kernel has shapes, each with an id of its own");
    require(misplaced == 0, "every shape lies in the cache it is named after");
    require(in_dram > 0 ||
                machine_memory_bytes() / 32 < machine_caches().l3 + ((size_t)64 << 20),
            "DRAM has shapes if there is memory for them");
}

static void test_tuning_cases(void)
{
    bool kernels[POSENC_KERNEL_COUNT] = { false }, dtypes[BENCH_DTYPES] = { false };
    struct bench_case *cases;
    const size_t all = bench_tuning_cases(kernels, dtypes, &cases);
    free(cases);
    kernels[POSENC_KERNEL_ROPE_HALF] = dtypes[POSENC_DTYPE_BF16] = true;
    const size_t n = bench_tuning_cases(kernels, dtypes, &cases);
    bool grow = n >= 2 && strcmp(cases[0].id, "rope_half/bf16/given/l1") == 0;
    for (size_t i = 1; i < n; i++)
        grow =
            grow && cases[i].max_bytes > cases[i - 1].max_bytes &&
            problem_working_set(&cases[i].problem) > problem_working_set(&cases[i - 1].problem);
    require(grow && cases[n - 1].max_bytes == UINT64_MAX,
            "a tuning has a case in each level of memory, nearest first");
    require(all == n * BENCH_DTYPES * POSENC_KERNEL_COUNT,
            "a tuning has cases of all kernels and dtypes if none is named");
    free(cases);
}

static void test_emulation(void)
{
    const struct bench_case c = rope_case(8);
    const struct posenc_backend *backend = scalar();
    const struct bench_options options = { .time_limit_s = 0.05 };
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(&c, 1, &backend, 1, &options, store_result, &seen, error) == -1 &&
                seen.n == 0 && strstr(error, machine_emulator()),
            "under an emulator nothing is timed, and the error names it");
}

int main(void)
{
    test_footprint_cases();
    test_tuning_cases();
    if (machine_emulator()) {
        test_emulation();
        return tap_end();
    }
    test_tuning();
    test_numbers(1);
    test_numbers(2);
    test_tolerance();
    test_late_errors();
    test_every_kernel();
    test_rejections();
    test_stop();
    return tap_end();
}
